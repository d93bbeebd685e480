//! What the kernel records between two recordings.

use std::process::Command;
use trace_tests::kernel::{ROOT, alone};
use trace_tests::{Archive, Requirement, Sandbox};

/// The texts in `trace_marker` that an archive has.
fn texts(sandbox: &Sandbox, categories: &str) -> Vec<String> {
    // One without events would not replace it.
    let _ = std::fs::remove_file(sandbox.file("t.fxt"));
    let output = sandbox.trace(["record", "--categories", categories, "-o", "t.fxt", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("t.fxt"));
    let texts = archive.events.iter().filter(|event| event.name() == "print");
    texts.map(|event| format!("{:?}", event.event.argument("text"))).collect()
}

fn mark(text: &str) {
    let line = format!("echo {text} > {ROOT}/trace_marker");
    assert!(Command::new("sh").args(["-c", &line]).status().expect("a shell").success());
}

//= docs/kernel.md#retained-events
#[test]
fn events_between_two_recordings_are_retained_if_both_ask_for_it() {
    if !Requirement::Markers.is_met("events_between_two_recordings_are_retained_if_both_ask_for_it") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let mut kernel = sandbox.spawn("trace", &["ktrace"]);
    assert_eq!(kernel.line(), "ready");
    let shown = |text: &str| format!("Some(String(Text({:?})))", text.as_bytes());
    mark("before");
    assert_eq!(texts(&sandbox, "kernel:retain,kernel:probe"), Vec::<String>::new());
    mark("between");
    assert_eq!(texts(&sandbox, "kernel:retain,kernel:probe"), [shown("between")]);
    mark("once");
    // Another selection begins with an empty buffer, and so does a recording that does not ask for it.
    assert_eq!(texts(&sandbox, "kernel:retain,kernel:probe,kernel:oom"), Vec::<String>::new());
    mark("again");
    assert_eq!(texts(&sandbox, "kernel:probe"), Vec::<String>::new());
    mark("unread");
    assert_eq!(texts(&sandbox, "kernel:retain,kernel:probe"), Vec::<String>::new());
}

//= docs/kernel.md#retained-events
#[test]
fn a_provider_of_one_recording_says_that_it_retains_nothing() {
    if !Requirement::Tracefs.is_met("a_provider_of_one_recording_says_that_it_retains_nothing") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let output = sandbox.trace(["record", "--categories", "kernel:retain,kernel:oom", "--", "true"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("kernel:retain: nothing is retained: this provider ends with the recording"),
        "{said}"
    );
}

//= docs/kernel.md#categories
#[test]
fn all_of_the_kernels_categories_are_listed_and_selected_by_one_entry() {
    if !Requirement::Tracefs.is_met("all_of_the_kernels_categories_are_listed_and_selected_by_one_entry") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let mut kernel = sandbox.spawn("trace", &["ktrace"]);
    assert_eq!(kernel.line(), "ready");
    let listed = String::from_utf8(sandbox.trace(["list-categories"]).stdout).expect("text");
    for name in ["kernel", "kernel:*", "kernel:retain", "kernel:sched"] {
        assert!(listed.lines().any(|line| line.starts_with(&format!("  {name}: "))), "{name}: {listed}");
    }
    let output = sandbox.trace(["record", "--categories", "kernel:*", "-o", "t.fxt", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("t.fxt"));
    for category in ["kernel:syscall", "kernel:vm"] {
        let is_of =
            |event: &&trace_tests::archive::Event| event.event.category.as_bytes() == category.as_bytes();
        assert!(archive.events.iter().any(|event| is_of(&event)), "{category}");
    }
}
