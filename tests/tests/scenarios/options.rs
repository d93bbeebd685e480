//! Options of `trace record`, each with what it does.

use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use trace_format::loss::LossCode;
use trace_tests::build::program;
use trace_tests::{Archive, Sandbox, wait_for};

fn path(name: &str) -> &'static str {
    program(name).to_str().expect("a path in UTF-8")
}

fn record(sandbox: &Sandbox, options: &[&str], command: &[&str]) -> Output {
    let output = sandbox.trace([&["record"], options, &["--"], command].concat());
    assert!(output.status.success(), "{options:?}: {output:?}");
    output
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fails(sandbox: &Sandbox, arguments: &[&str], code: i32, words: &str) {
    let output = sandbox.trace(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
}

fn events(sandbox: &Sandbox, name: &str) -> usize {
    let path = sandbox.file(name);
    let bytes = fs::read(&path).unwrap();
    let mut plain = Vec::new();
    if name.ends_with(".gz") {
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
    } else if name.ends_with(".zst") {
        plain = zstd::decode_all(&bytes[..]).unwrap();
    } else {
        plain = bytes;
    }
    Archive::of_bytes(&plain).events.len()
}

const EMIT: [&str; 2] = ["1", "3"];
const EVENTS: usize = 3 * 14;

#[test]
fn the_name_selects_the_format_and_options_overrule_it() {
    let sandbox = Sandbox::new();
    let emit = [path("emit"), EMIT[0], EMIT[1]];
    for name in ["a.fxt", "a.fxt.gz", "a.fxt.zst", "plain"] {
        record(&sandbox, &["-o", name], &emit);
        assert_eq!(events(&sandbox, name), EVENTS, "{name}");
    }
    // Fuchsia's dialect has an object that Chrome's lacks.
    let dialect = |bytes: &[u8]| {
        let value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        assert!(value["traceEvents"].as_array().unwrap().len() >= EVENTS);
        if value["systemTraceEvents"]["type"] == "fuchsia" { "Fuchsia" } else { "Chrome" }
    };
    for (options, name, expected) in [
        (&["-o", "a.json"][..], "a.json", "Chrome"),
        (&["-o", "b", "--format", "json"], "b", "Chrome"),
        (&["-o", "b.json", "--format", "catapult"], "b.json", "Fuchsia"),
        (&["-o", "c", "--binary=false"], "c", "Fuchsia"),
    ] {
        record(&sandbox, options, &emit);
        assert_eq!(dialect(&fs::read(sandbox.file(name)).unwrap()), expected, "{name}");
    }
    for (to, name, expected) in [
        (&[][..], "f.json", "Chrome"),
        (&["--format", "json"], "g.json", "Chrome"),
        (&["--format", "catapult"], "h.json", "Fuchsia"),
    ] {
        let output = sandbox.trace([&["convert"], to, &["a.fxt", name]].concat());
        assert!(output.status.success(), "{output:?}");
        assert_eq!(dialect(&fs::read(sandbox.file(name)).unwrap()), expected, "{name}");
    }
    record(&sandbox, &["-o", "d.json.gz"], &emit);
    let mut plain = Vec::new();
    let file = fs::File::open(sandbox.file("d.json.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut plain).unwrap();
    assert_eq!(dialect(&plain), "Chrome");
    record(&sandbox, &["-o", "e.json", "--format", "fxt"], &emit);
    assert_eq!(events(&sandbox, "e.json"), EVENTS);
    // As Fuchsia's, which appends to the name.
    record(&sandbox, &["--compress"], &emit);
    assert_eq!(events(&sandbox, "trace.fxt.gz"), EVENTS);
}

#[test]
fn the_archive_goes_to_stdout_or_over_a_connection_as_it_comes() {
    let sandbox = Sandbox::new();
    let output = record(&sandbox, &["-o", "-"], &[path("emit"), EMIT[0], EMIT[1]]);
    assert_eq!(Archive::of_bytes(&output.stdout).events.len(), EVENTS);
    // What the command says is not in between.
    assert!(
        stderr(&output).lines().any(|line| line.split(' ').count() == 2 && !line.contains("trace")),
        "{}",
        stderr(&output)
    );
    let output = record(&sandbox, &["-o", "-", "--format", "catapult"], &[path("emit"), EMIT[0], EMIT[1]]);
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok());

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    record(&sandbox, &["-o", &address], &[path("emit"), EMIT[0], EMIT[1]]);
    assert_eq!(Archive::of_bytes(&reader.join().unwrap()).events.len(), EVENTS);
    fails(
        &sandbox,
        &["record", "-o", "tcp:127.0.0.1:1", "--duration", "1"],
        125,
        "cannot connect to 127.0.0.1:1",
    );
    assert!(sandbox.files().is_empty(), "{:?}", sandbox.files());
}

/// Arguments of the events that a recording has.
fn categories(sandbox: &Sandbox) -> Vec<String> {
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let mut found: Vec<String> =
        archive.events.iter().map(|event| event.event.category.to_str().into_owned()).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn categories_are_chosen_by_name_group_program_and_minus() {
    let sandbox = Sandbox::new();
    let emit = [path("emit"), EMIT[0], EMIT[1]];
    let config = sandbox.file("trace.toml");
    fs::write(&config, "[category-groups]\nboth = ['emit', 'other']\n").unwrap();
    let config = ["--config", config.to_str().unwrap()];
    for (list, expected) in [
        ("emit", &["emit"][..]),
        ("*", &["emit", "other"]),
        ("em*", &["emit"]),
        ("-other", &["emit"]),
        ("-other,*", &["emit"]),
        ("#both", &["emit", "other"]),
        ("#both,-emit", &["other"]),
        ("emit/other", &["other"]),
        ("someone/emit", &[]),
        ("someone/emit,other", &["other"]),
    ] {
        record(&sandbox, &[&config[..], &["--categories", list]].concat(), &emit);
        assert_eq!(categories(&sandbox), expected, "{list}");
    }
    fails(
        &sandbox,
        &["record", "--categories", "#none"],
        2,
        "no category group found for #none; there are #default",
    );
    // What was asked for and did not come.
    let output = record(&sandbox, &["--categories", "emmit,other"], &emit);
    assert!(
        stderr(&output).contains("category emmit was requested, but nothing of it was recorded"),
        "{}",
        stderr(&output)
    );
    let output = record(&sandbox, &["--categories", "othre,emit,other"], &emit);
    assert!(
        stderr(&output)
            .contains("category othre was requested, but nothing of it was recorded; did you mean other?")
    );
    let output = record(&sandbox, &["--categories", "othre", "--no-verify-trace"], &emit);
    assert!(!stderr(&output).contains("was asked for"), "{}", stderr(&output));
}

/// Buffers of one size for all, and of another for one; the summary says what would have been enough, and it
/// is.
#[test]
fn the_flag_that_would_have_avoided_a_loss_avoids_it() {
    let sandbox = Sandbox::new();
    let stream = [path("stream"), "1", "100000", "0"];
    let record =
        |options: &[&str]| record(&sandbox, &[&["--buffering-mode", "oneshot"], options].concat(), &stream);
    let output = record(&["--program-buffer-size", "stream:1", "--buffer-size", "16MiB"]);
    let said = stderr(&output);
    let row = said.lines().find(|line| line.starts_with("stream")).unwrap();
    assert!(row.contains("100 %"), "{said}");
    assert!(said.contains("(buffer full)"), "{said}");
    let advice =
        said.lines().find_map(|line| line.strip_prefix("trace: nothing would have been lost with: "));
    let advice: Vec<&str> = advice.unwrap().split(' ').collect();
    assert_eq!(advice[0], "--buffer-size");
    let output = record(&advice);
    assert!(
        !stderr(&output).contains(" lost 1 ") && !stderr(&output).contains("would have"),
        "{}",
        stderr(&output)
    );
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 100_000);
}

#[test]
fn the_command_gets_further_arguments_and_may_outlive_the_recording() {
    let sandbox = Sandbox::new();
    record(&sandbox, &["--append-args=1,4", "--append-args", "--exit,0"], &[path("emit")]);
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 4 * 14);
    let output =
        sandbox.trace(["record", "--return-child-result=false", "--", path("emit"), "1", "1", "--exit", "9"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    // Detached: it runs on.
    let mut recording = sandbox
        .spawn("trace", &["record", "--duration", "2s", "--detach", "--", path("stubborn"), "ignore-term"]);
    wait_for("the end of the recording", || {
        recording.stderr_so_far().contains("stubborn runs on").then_some(())
    });
    let listed: serde_json::Value = trace_tests::json(&sandbox.trace(["list-programs", "--json"]));
    assert_eq!(listed[0]["name"], "stubborn");
    let pid = listed[0]["pid"].as_u64().unwrap();
    wait_for("the tool to end", || (!recording.is_running()).then_some(()));
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    // It has the output of the tool.
    trace_tests::sandbox::kill(pid as u32, Signal::KILL);
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    // Decoupled: recording goes on without it.
    let recording = sandbox.spawn("trace", &["record", "--decouple", "--", path("emit"), "1", "1"]);
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    let mut second = sandbox.spawn_recorded("emit", &["1", "2", "--wait", "--on"]);
    second.line();
    assert_eq!(second.line(), "on");
    second.succeed();
    // It has registered, and goes on until it has recorded.
    let children = format!("/proc/{0}/task/{0}/children", recording.pid());
    let children = || fs::read_to_string(&children).unwrap();
    let is_over = |pid: &str| trace_tests::scene::is_dead(pid.parse().unwrap());
    let is_program =
        |pid: &&str| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "emit\n");
    wait_for("the first program to end", || {
        children().split_whitespace().filter(is_program).all(is_over).then_some(())
    });
    recording.signal(Signal::INT);
    assert_eq!(recording.finish().status.code(), Some(0));
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 3 * 14);
    fails(&sandbox, &["record", "--detach", "--duration", "1"], 2, "--detach needs a command");
}

#[test]
fn enough_is_enough() {
    let sandbox = Sandbox::new();
    // A half lasts for seconds, which a busy machine has, too.
    let options =
        ["--buffering-mode", "s", "--buffer-size", "4", "--max-size", "3MiB", "--return-child-result=false"];
    let output = record(&sandbox, &options, &[path("stream"), "1", "100000000", "25000"]);
    assert!(stderr(&output).contains("stopped: the recording has reached 3MiB"), "{}", stderr(&output));
    let size = fs::metadata(sandbox.file("trace.fxt")).unwrap().len();
    assert!((9 << 18..=3 << 20).contains(&size), "{size}");
    let numbers: Vec<u64> =
        Archive::read(&sandbox.file("trace.fxt")).events.iter().map(|event| event.u64("n")).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{}", numbers.len());
}

/// However fast it comes, the file does not get larger, it ends with a whole record, and what is missing is
/// said.
//= docs/recording.md#how-a-recording-ends
#[test]
fn an_archive_is_never_larger_than_it_may_be() {
    for mode in ["oneshot", "circular", "streaming"] {
        let sandbox = Sandbox::new();
        let options = ["--buffering-mode", mode, "--max-size", "64KiB", "--return-child-result=false"];
        let output = record(&sandbox, &options, &[path("emit"), "1", "2000"]);
        let said = stderr(&output);
        let bytes = fs::read(sandbox.file("trace.fxt")).unwrap();
        assert!(bytes.len() <= 64 << 10 && bytes.len() > 50 << 10, "{mode}: {}", bytes.len());
        let whole = trace_reader::complete_records_end(&mut std::io::Cursor::new(&bytes)).unwrap();
        assert_eq!(whole, bytes.len() as u64, "{mode}");
        assert!(said.contains("records (") && said.contains("were deleted"), "{mode}: {said}");
        let advice = "--max-size left out ";
        assert!(said.contains(advice) && !said.contains("nothing would have been lost"), "{mode}: {said}");
        // The archive says what it is missing, and the summary what is in it.
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        let events = archive.events.len();
        assert!(said.contains(&format!("trace: {events} events of 1 program")), "{mode}: {said}");
        let lost = archive.losses.iter().filter(|loss| loss.reason == LossCode::LEFT_OUT);
        // Those of the manager's own records are no program's.
        let lost = lost.map(|loss| loss.count).max().unwrap_or(0);
        assert!(
            lost > 0 && said.contains(&format!("{lost} (no room in the archive)")),
            "{mode}: {lost}, {said}"
        );
        // As advised; a circular buffer keeps the newest.
        let options = ["--buffering-mode", mode, "--max-size", "64MiB", "--buffer-size", "16"];
        let said = stderr(&record(&sandbox, &options, &[path("emit"), "1", "2000"]));
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        assert_eq!((archive.events.len(), archive.losses.len()), (2000 * 14, 0), "{mode}: {said}");
        assert!(!said.contains("--max-size"), "{mode}: {said}");
    }
}

/// What a program has recorded while little happens is in the file soon, though no half is full.
//= docs/protocol.md#flush
#[test]
fn a_quiet_stream_is_written_all_the_same() {
    let sandbox = Sandbox::new();
    let options = ["record", "--buffering-mode", "streaming", "--write-period", "50ms", "--"];
    // It takes a minute to fill a half.
    let program = [path("stream"), "1", "1000000", "1000"];
    let recording = sandbox.spawn("trace", &[&options[..], &program].concat());
    let partial = sandbox.file("trace.partial.fxt");
    for events in [1, 2, 10] {
        wait_for("events", || {
            let archive = fs::read(&partial).ok().filter(|bytes| !bytes.is_empty())?;
            (Archive::of_prefix(&archive).events.len() >= events).then_some(())
        });
    }
    recording.signal(Signal::TERM);
    recording.finish();
    let numbers: Vec<u64> =
        Archive::read(&sandbox.file("trace.fxt")).events.iter().map(|event| event.u64("n")).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
}

#[test]
fn alerts_stop_a_recording_and_take_snapshots() {
    let sandbox = Sandbox::new();
    let mut program = sandbox.spawn_recorded("stubborn", &["alert", "look"]);
    let mut other = sandbox.spawn_recorded("stubborn", &["alert", "enough"]);
    let recording = sandbox.spawn(
        "trace",
        &[
            &["record", "--trigger", "look:snapshot", "--trigger", "enough:stop", "--cooldown", "1ms"][..],
            &["--buffering-mode", "circular"],
        ]
        .concat(),
    );
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    // Programs that are there before the manager may come a moment after the announcement.
    wait_for("both programs to be recorded", || {
        let taken = sandbox.trace(["snapshot", "-o", "probe.fxt"]);
        assert!(taken.status.success(), "{taken:?}");
        let providers = Archive::read(&sandbox.file("probe.fxt")).providers.len();
        fs::remove_file(sandbox.file("probe.fxt")).unwrap();
        (providers == 3).then_some(())
    });
    for number in 1..=2 {
        program.say("now");
        assert_eq!(program.line(), "raised");
        let name = format!("trace-snapshot-{number}.fxt");
        wait_for("a snapshot", || sandbox.files().contains(&name).then_some(()));
        assert_eq!(Archive::read(&sandbox.file(&name)).providers.len(), 3);
    }
    other.say("now");
    assert_eq!(other.line(), "raised");
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stderr(&output).contains("alert look: snapshot in "), "{}", stderr(&output));
    assert!(stderr(&output).contains("alert enough: stopping"), "{}", stderr(&output));
    assert_eq!(sandbox.files(), ["trace-snapshot-1.fxt", "trace-snapshot-2.fxt", "trace.fxt"]);
    fails(&sandbox, &["record", "-o", "-", "--trigger", "a:snapshot"], 2, "stdout has no name");
    let twice = ["record", "--trigger", "a:stop", "--trigger", "a:snapshot"];
    fails(&sandbox, &twice, 2, "multiple trigger options for \"a\"");
}

/// An alert that is raised again and again writes one file, and the rest is counted.
//= docs/recording.md#how-a-recording-ends
#[test]
fn an_alert_takes_a_snapshot_now_and_then() {
    let sandbox = Sandbox::new();
    let options = ["record", "--trigger", "look:snapshot", "--cooldown", "1h"];
    let recording = sandbox.spawn("trace", &options);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let mut program = sandbox.spawn_recorded("stubborn", &["alert", "look"]);
    for _ in 0..300 {
        program.say("now");
        assert_eq!(program.line(), "raised");
    }
    program.close_stdin();
    program.succeed();
    // One that is under way when the recording ends is given up.
    wait_for("the snapshot", || recording.stderr_so_far().contains(": snapshot in ").then_some(()));
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let said = " more within 3600s of a snapshot were ignored";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    assert_eq!(sandbox.files(), ["trace-snapshot-1.fxt", "trace.fxt"]);
}

/// What `config` prints makes `record` do the same.
#[test]
fn the_effective_configuration_is_a_configuration() {
    let sandbox = Sandbox::new();
    let spec = r#"{ // comments are welcome
        "app": "APP", "args": ["1", "3"], "categories": ["emit"], "buffer_size_in_mb": 2, "test_name": "t",
    }"#;
    fs::write(sandbox.file("spec.json"), spec.replace("APP", path("emit"))).unwrap();
    fs::write(sandbox.file("a.toml"), "spec-file = 'spec.json'\noutput-file = 'a.fxt'\nbuffer-size = 3\n")
        .unwrap();
    let output = sandbox.trace(["record", "--print-config", "--config", "a.toml", "--buffer-size", "5MiB"]);
    assert!(output.status.success(), "{output:?}");
    let effective = String::from_utf8(output.stdout).unwrap();
    for line in [
        "buffer-size = \"5MiB\"",
        "output = \"a.fxt\"",
        "categories = [\"emit\"]",
        "spec-file = \"spec.json\"",
    ] {
        assert!(effective.contains(line), "{effective}");
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("spec.json: buffer_size_in_mb is overridden by an option"), "{said}");
    fs::write(sandbox.file("b.toml"), &effective).unwrap();
    let output = sandbox.trace(["record", "--config", "b.toml"]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("a.fxt"));
    assert_eq!(archive.events.len(), 3 * 13);
    let text = format!("{:?}", archive.manager_events[0].argument("buffer_size_megabytes"));
    assert!(text.contains("Uint32(5)"), "{text}");
    fails(&sandbox, &["record", "--config", "missing.toml"], 2, "missing.toml: No such file");
    fs::write(sandbox.file("c.toml"), "bufer-size = 3").unwrap();
    fails(
        &sandbox,
        &["record", "--config", "c.toml"],
        2,
        "c.toml: line 1, column 1: unknown key bufer-size; did you mean buffer-size?",
    );
    let spec = "// a test\n{ \"measure\": [\n  { \"type\": \"duration\", // of frames\n    \"event_nam\": \"x\" },\n] }";
    fs::write(sandbox.file("d.json"), spec).unwrap();
    let unknown = "d.json: line 4, column 5: unknown key event_nam; did you mean event_name?";
    fails(&sandbox, &["record", "--spec-file", "d.json"], 2, unknown);
    fs::write(sandbox.file("d.json"), "{\"aps\": 1}").unwrap();
    fails(&sandbox, &["record", "--spec-file", "d.json"], 2, "d.json: line 1, column 2: unknown key aps");
}
