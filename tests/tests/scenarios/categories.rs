//! Categories that programs know, and categories that were asked for.

use rustix::process::Signal;
use std::process::Output;
use trace_protocol::provider::{ProviderRequest, ProviderResponse};
use trace_protocol::{KnownCategories, KnownCategory, Message};
use trace_tests::build::program;
use trace_tests::proxy::register;
use trace_tests::{Sandbox, wait_for};
use zx_sim::{Channel, Handle, Vmo};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn emit() -> &'static str {
    program("emit").to_str().expect("a path in UTF-8")
}

const UNKNOWN: &str = "trace: warning: no running program knows the category emti; did you mean emit?";

//= docs/recording.md#categories
#[test]
fn a_misspelt_category_is_reported_before_running_programs_are_recorded() {
    let sandbox = Sandbox::new();
    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    emit.line();
    let categories = "emti,em*,kernel:sched,#default,-emitt,one/othr";
    let recording = sandbox.spawn("trace", &["record", "-o", "first.fxt", "--categories", categories]);
    let said = wait_for("the recording to start", || {
        let said = recording.stderr_so_far();
        said.contains("press Ctrl-C").then_some(said)
    });
    let other = "trace: warning: no running program knows the category one/othr; did you mean one/other?";
    let warnings: Vec<&str> = said.lines().filter(|line| line.contains("knows the category")).collect();
    assert_eq!(warnings, [UNKNOWN, other], "{said}");
    assert!(said.find(other) < said.find("press Ctrl-C"), "{said}");
    recording.signal(Signal::INT);
    recording.succeed();
    let started = sandbox.trace(["start", "-o", "second.fxt", "--categories", "emti,frame"]);
    let said = stderr(&started);
    // Nothing is like it.
    let unlike = "trace: warning: no running program knows the category frame\n";
    assert!(said.starts_with(&format!("{UNKNOWN}\n{unlike}")), "{said}");
    assert!(sandbox.trace(["stop"]).status.success());
    emit.succeed();
}

/// Entries for a program that was not there, whatever their categories are.
//= docs/recording.md#categories
#[test]
fn entries_for_a_program_that_took_no_part_are_reported() {
    let sandbox = Sandbox::new();
    let output =
        sandbox.record(&["--categories", "emit,emitt/*,render/x,emit/em*,-gone/*"], "emit", &["1", "1"]);
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    let warnings: Vec<&str> = said.lines().filter(|line| line.contains("was requested")).collect();
    let expected = [
        "trace: warning: emitt/* was requested, but no program emitt took part; did you mean emit?",
        "trace: warning: render/x was requested, but no program render took part",
    ];
    assert_eq!(warnings, expected, "{said}");
}

/// Its categories are known when it has joined, however short it lives.
//= docs/protocol.md#categories-of-a-session
//= docs/recording.md#categories
#[test]
fn a_category_that_a_command_does_not_know_is_reported_with_near_names() {
    let sandbox = Sandbox::new();
    let script = "\"$0\" 1 1 && read _";
    let mut recording = sandbox
        .spawn("trace", &["record", "-o", "t.fxt", "--categories", "emti", "--", "sh", "-c", script, emit()]);
    wait_for("the warning", || recording.stderr_so_far().contains(UNKNOWN).then_some(()));
    recording.say("go");
    recording.succeed();
    // Of one that has ended before the warning can come, the names are known in the end.
    let output = sandbox.trace(["record", "-o", "t.fxt", "--categories", "emti", "--", emit(), "1", "1"]);
    let end =
        "trace: warning: category emti was requested, but nothing of it was recorded; did you mean emit?";
    assert!(stderr(&output).contains(end), "{}", stderr(&output));
}

/// Answers the next question for categories.
fn answer(channel: &Channel, categories: KnownCategories) {
    let (txid, request) = wait_for("a question", || {
        let message = channel.read().ok()?;
        Some(ProviderRequest::<Handle>::decode(&message.bytes, message.handles).expect("a request"))
    });
    assert!(matches!(request, ProviderRequest::GetKnownCategories), "{request:?}");
    let response = ProviderResponse::<Handle>::KnownCategories(categories);
    let message = response.encode(txid).expect("within the limits");
    let message = message.spill(Vmo::store).expect("a VMO");
    channel.write(&message.bytes, message.handles).expect("the manager takes it");
}

//= docs/protocol.md#known-categories
#[test]
fn categories_that_a_list_has_no_room_for_are_counted_and_named() {
    let sandbox = Sandbox::new();
    let manager = sandbox.spawn("trace", &["manager"]);
    let _client = trace_tests::client::Client::connect(&sandbox);
    let (channel, _) = register(&sandbox.runtime_dir(), "many");
    let list = sandbox.spawn("trace", &["list-categories"]);
    let category = |name: String| KnownCategory { name, description: String::new() };
    let many = (0..5002).map(|number| category(format!("c{number:04}")));
    answer(&channel, KnownCategories::of(many.chain([category("l".repeat(101))])));
    let output = list.finish();
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 5001);
    let stderr = stderr(&output);
    let beyond = "trace: 2 categories not listed, the limit being 5000: c5000, c5001\n";
    let cut = "l".repeat(100);
    let long = format!(
        "trace: 1 category not listed, their names being longer than 100 bytes (NAME* selects them): {cut}\n"
    );
    assert_eq!(stderr, format!("{beyond}{long}"));
    for line in [
        "program 1: 2 categories beyond the limit of a list, among them: c5000, c5001",
        &format!("program 1: 1 categories with names of more than 100 bytes, among them: {cut}"),
    ] {
        wait_for("a line in the log", || manager.stderr_so_far().contains(line).then_some(()));
    }
}
