//! Recordings that the manager holds: start, status, flush, snapshot, stop.

use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use trace_tests::client::Client;
use trace_tests::sandbox::Process;
use trace_tests::{Answer, Archive, Requirement, Sandbox, build, wait_for};

const NOTHING_RECORDED: &str = "nothing is being recorded: begin with trace record or trace start";

fn succeeds(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let output = sandbox.trace(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

fn fails(sandbox: &Sandbox, arguments: &[&str], words: &str) {
    let output = sandbox.trace(arguments);
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(words), "{arguments:?}: no {words:?} in {stderr}");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn status(sandbox: &Sandbox) -> Value {
    let all: Value = trace_tests::json(&succeeds(sandbox, &["status", "--json"]));
    all[0].clone()
}

/// A program that has begun to record, and writes 2000 events in a second.
fn streaming(sandbox: &Sandbox) -> Process {
    let program = sandbox.spawn_recorded("stream", &["1", "1000000000", "2000"]);
    wait_for("some events", || (status(sandbox)["programs"][0]["records"].as_u64()? > 100).then_some(()));
    program
}

#[test]
fn a_recording_outlives_the_process_that_started_it() {
    let sandbox = Sandbox::new();
    assert_eq!(text(&succeeds(&sandbox, &["status"]).stdout).trim_end(), NOTHING_RECORDED);
    assert_eq!(status(&sandbox), Value::Null);
    fails(&sandbox, &["stop"], NOTHING_RECORDED);
    let output = succeeds(&sandbox, &["start", "--label", "night", "--categories", "emit,nothing"]);
    let expected =
        format!("Task Id: 100\nName: night\nStarted by: {} start", build::program("trace").display());
    assert!(text(&output.stdout).starts_with(&expected), "{output:?}");
    assert!(
        text(&output.stdout)
            .contains("Remaining Duration: infinite\nCategories: emit,nothing\nTriggers: none\n")
    );
    // It is seen by name, and no other client can record meanwhile.
    fails(&sandbox, &["start"], "start --label night --categories emit,nothing\" (pid ");
    fails(&sandbox, &["record", "-o", "other.fxt", "--duration", "1"], "the trace manager is in use by");
    let mut emit = sandbox.spawn_recorded("emit", &["2", "7", "--wait"]);
    emit.line();
    emit.succeed();
    let found = status(&sandbox);
    assert_eq!(
        (&found["number"], &found["label"], &found["file"]),
        (&100.into(), &"night".into(), &sandbox.file("trace.fxt").to_str().unwrap().into())
    );
    assert_eq!((&found["remaining_ns"], &found["buffering_mode"]), (&Value::Null, &"streaming".into()));
    let ended = format!(": ended, {} events, 0 lost", 2 * 7 * 13);
    wait_for("the ended program to be shown", || {
        text(&succeeds(&sandbox, &["status"]).stdout).contains(&ended).then_some(())
    });
    assert_eq!(text(&succeeds(&sandbox, &["flush"]).stderr), "");
    let output = succeeds(&sandbox, &["stop"]);
    let said = text(&output.stderr);
    assert!(said.contains("category nothing was requested, but nothing of it was recorded"), "{said}");
    assert!(said.contains(&format!("{} events of 1 program", 2 * 7 * 13)), "{said}");
    // All but those of the category that was not asked for.
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 2 * 7 * 13);
    assert_eq!(text(&succeeds(&sandbox, &["status"]).stdout).trim_end(), NOTHING_RECORDED);
    // The next one does not touch what is there.
    succeeds(&sandbox, &["start"]);
    let output = succeeds(&sandbox, &["stop", "-o", "moved.fxt.gz"]);
    assert!(text(&output.stderr).contains("in moved.fxt.gz"), "{output:?}");
    assert_eq!(sandbox.files(), ["moved.fxt.gz", "trace.fxt"]);
    succeeds(&sandbox, &["check", "moved.fxt.gz"]);
}

#[test]
fn a_recording_ends_by_its_duration_and_stop_waits_for_it() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start", "--duration", "6s", "--buffering-mode", "streaming", "-o", "a.fxt"]);
    let _program = streaming(&sandbox);
    assert!(status(&sandbox)["remaining_ns"].as_u64().unwrap() < 6_000_000_000);
    succeeds(&sandbox, &["flush"]);
    // What was handed over is in the file before the end.
    let is_written = || Archive::read_prefix(&sandbox.file("a.fxt")).events.len() > 10;
    wait_for("the flushed events", || is_written().then_some(()));
    let output = succeeds(&sandbox, &["stop", "-v"]);
    let said = text(&output.stderr);
    assert!(said.contains("waiting for its end in"), "{said}");
    assert!(said.contains("Durable buffer used: "), "{said}");
    let archive = Archive::read(&sandbox.file("a.fxt"));
    let [begin, end] = &archive.manager_events[..] else { panic!("{:?}", archive.manager_events) };
    let seconds = (end.nanos().0 - begin.nanos().0) as f64 / 1e9;
    assert!((6.0..20.0).contains(&seconds), "{seconds}");
    let numbers: Vec<u64> = archive.events.iter().map(|event| event.u64("n")).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64) && numbers.len() > 100, "{}", numbers.len());
}

/// Its end is reported when it is asked for, once.
//= docs/protocol.md#tasks
#[test]
fn a_recording_that_has_ended_by_itself_is_reported_by_stop() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start", "--duration", "3s", "-o", "a.fxt"]);
    sandbox.spawn_recorded("emit", &["1", "10"]).succeed();
    wait_for("the end of the recording", || status(&sandbox).is_null().then_some(()));
    let output = succeeds(&sandbox, &["stop", "--json"]);
    assert!(text(&output.stderr).contains("140 events of 1 program in "), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("a.fxt")).events.len(), 140);
    fails(&sandbox, &["stop"], NOTHING_RECORDED);
}

#[test]
fn an_alert_ends_a_recording() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start", "--trigger", "stall:stop"]);
    assert!(text(&succeeds(&sandbox, &["status"]).stdout).contains("Triggers:\n- stall : Terminate\n"));
    let mut program = sandbox.spawn_recorded("stubborn", &["alert", "stall"]);
    program.say("now");
    assert_eq!(program.line(), "raised");
    wait_for("the end of the recording", || status(&sandbox).is_null().then_some(()));
    let path = sandbox.file("trace.fxt");
    let names: Vec<_> = Archive::read(&path).events.iter().map(|event| event.name()).collect();
    assert_eq!(names, ["here", "alert"]);
    fails(&sandbox, &["start", "--trigger", "stall:snapshot"], "only stop is possible here");
    // A client that stops it later gets a report of what happened, once.
    fails(&sandbox, &["stop", "--abort"], NOTHING_RECORDED);
    let said = text(&succeeds(&sandbox, &["stop"]).stderr);
    let lines: Vec<&str> = said.lines().collect();
    let (what, when) = lines[0].split_once(" at ").expect("when it ended");
    let expected = format!("trace: alert stall of stubborn (pid {}) ended the recording", program.pid());
    assert_eq!((what, shape(when)), (&*expected, "0-0-0 0:0:0 UTC, 0.0 s after its start".to_owned()));
    let bytes = fs::metadata(&path).unwrap().len();
    let expected = format!("trace: 2 events of 1 program in {} ({bytes} bytes)", path.display());
    assert_eq!(lines.last(), Some(&&*expected));
    fails(&sandbox, &["stop"], NOTHING_RECORDED);
}

/// A text with one 0 for each number in it.
fn shape(text: &str) -> String {
    let mut shape = text.replace(|found: char| found.is_ascii_digit(), "0");
    while shape.contains("00") {
        shape = shape.replace("00", "0");
    }
    shape
}

/// An idle manager stays until a client has asked for the result of the recording, and the file can be moved
/// then.
//= docs/protocol.md#tasks
#[test]
fn the_manager_stays_until_the_end_of_a_triggered_recording_is_reported() {
    let sandbox = Sandbox::new();
    let mut manager = sandbox.spawn("trace", &["manager", "--on-demand", "--idle-timeout", "500ms"]);
    // It has a client until it has a recording.
    let client = Client::connect(&sandbox);
    succeeds(&sandbox, &["start", "--trigger", "stall:stop"]);
    drop(client);
    let mut program = sandbox.spawn_recorded("stubborn", &["alert", "stall"]);
    program.say("now");
    assert_eq!(program.line(), "raised");
    program.close_stdin();
    program.succeed();
    let is_complete = || Archive::read_prefix(&sandbox.file("trace.fxt")).manager_events.len() == 2;
    wait_for("the end of the recording", || is_complete().then_some(()));
    // One that is not needed has come and gone meanwhile.
    let elsewhere = Sandbox::new();
    let output = elsewhere.spawn("trace", &["manager", "--on-demand", "--idle-timeout", "1s"]).finish();
    assert!(output.status.success(), "{output:?}");
    assert!(manager.is_running());
    let said = text(&succeeds(&sandbox, &["stop", "-o", "moved.json"]).stderr);
    assert!(said.contains("trace: alert stall of stubborn (pid "), "{said}");
    assert!(said.contains("trace: 2 events of 1 program in moved.json ("), "{said}");
    assert_eq!(sandbox.files(), ["moved.json"]);
    manager.succeed();
}

#[test]
fn what_is_thrown_away_is_gone() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start"]);
    let _program = streaming(&sandbox);
    assert_eq!(text(&succeeds(&sandbox, &["stop", "--abort"]).stdout), "Trace aborted.\n");
    assert!(sandbox.files().is_empty(), "{:?}", sandbox.files());
    // A program gets the recording that was discarded, in a document.
    succeeds(&sandbox, &["start", "--label", "gone"]);
    let answer = Answer::of(&succeeds(&sandbox, &["stop", "--abort", "--json"]));
    assert_eq!((answer.command.as_str(), &answer.result["label"]), ("stop", &"gone".into()));
    assert!(sandbox.files().is_empty(), "{:?}", sandbox.files());
    assert!(text(&succeeds(&sandbox, &["recover", "--list"]).stderr).contains("there is nothing to recover"));
}

/// A flight recorder: what has just happened is saved any number of times, and the recording goes on.
#[test]
fn snapshots_of_a_circular_recording_have_the_last_seconds() {
    let sandbox = Sandbox::new();
    fails(&sandbox, &["snapshot"], NOTHING_RECORDED);
    succeeds(&sandbox, &["start", "--buffering-mode", "circular", "--buffer-size", "1"]);
    // It goes round several times.
    let program = sandbox.spawn_recorded("stream", &["1", "1000000000", "50000"]);
    let records = || status(&sandbox)["programs"][0]["records"].as_u64();
    wait_for("the buffer to go round", || (records()? > 150_000).then_some(()));
    for (name, last, least, most) in [("a.fxt", "200ms", 0.03, 0.4), ("b.fxt", "100s", 0.1, 30.0)] {
        let output = succeeds(&sandbox, &["snapshot", "--last", last, "-o", name]);
        let said = text(&output.stderr);
        let archive = Archive::read(&sandbox.file(name));
        let times: Vec<u64> = archive.events.iter().map(|event| event.event.nanos().0).collect();
        let span = (times[times.len() - 1] - times[0]) as f64 / 1e9;
        assert!((least..=most).contains(&span), "{name}: {span} s; {said}");
        let expected = format!("stream (pid {}): the last ", program.pid());
        assert!(said.contains(&expected) && said.contains(&format!(", {} events\n", times.len())), "{said}");
        let numbers: Vec<u64> = archive.events.iter().map(|event| event.u64("n")).collect();
        assert_eq!(numbers[numbers.len() - 1] - numbers[0] + 1, numbers.len() as u64, "{name}: a gap");
    }
    let before = records().unwrap();
    wait_for("more events", || (records()? > before).then_some(()));
    succeeds(&sandbox, &["stop"]);
    assert_eq!(sandbox.files(), ["a.fxt", "b.fxt", "trace.fxt"]);
}

#[test]
fn what_start_cannot_do_is_refused() {
    let sandbox = Sandbox::new();
    fails(&sandbox, &["start", "--", "app"], "trace start runs no command");
    fails(&sandbox, &["start", "--max-size", "1GiB"], "--max-size is for trace record");
    fails(&sandbox, &["start", "-o", "x.json"], "trace stop -o converts it");
    fails(&sandbox, &["start", "-o", "missing/x.fxt"], "/missing: No such file");
    fs::write(sandbox.file("there.fxt"), "mine").unwrap();
    fails(&sandbox, &["start", "-o", "there.fxt"], "it exists already; name another file with -o");
    assert_eq!(fs::read_to_string(sandbox.file("there.fxt")).unwrap(), "mine");
    assert_eq!(sandbox.files(), ["there.fxt"]);
}

/// The manager is killed: nothing that was recorded is lost.
#[test]
fn a_recording_whose_manager_dies_is_recovered() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["start"]);
    let program = streaming(&sandbox);
    trace_tests::sandbox::kill(sandbox.manager_pid().unwrap(), Signal::KILL);
    wait_for("its end", || sandbox.manager_pid().is_none().then_some(()));
    drop(program);
    let output = succeeds(&sandbox, &["recover"]);
    assert!(text(&output.stderr).contains("events of 1 program in recovered.fxt"), "{output:?}");
    assert!(Archive::read(&sandbox.file("recovered.fxt")).events.len() > 100);
}

/// Another process does something to the file while it is recorded into it.
//= docs/recording.md#files
#[test]
fn a_file_that_is_not_what_was_written_is_no_success() {
    type Spoil = fn(&Sandbox);
    let cases: [(Spoil, &str); 3] = [
        (|sandbox| fs::remove_file(sandbox.file("s.fxt")).unwrap(), "it was deleted while it was written"),
        (
            |sandbox| {
                fs::write(sandbox.file("other"), "text").unwrap();
                fs::rename(sandbox.file("other"), sandbox.file("s.fxt")).unwrap();
            },
            "it was deleted while it was written",
        ),
        (
            |sandbox| File::options().write(true).open(sandbox.file("s.fxt")).unwrap().set_len(100).unwrap(),
            "it was made shorter while it was written",
        ),
    ];
    let recorded = |sandbox: &Sandbox| {
        succeeds(sandbox, &["start", "-o", "s.fxt"]);
        sandbox.spawn_recorded("emit", &["1", "20"]).succeed();
        let written = || fs::metadata(sandbox.file("s.fxt")).unwrap().len();
        wait_for("more than one of them leaves", || (written() > 100).then_some(()));
    };
    for (spoil, words) in cases {
        let sandbox = Sandbox::new();
        recorded(&sandbox);
        spoil(&sandbox);
        fails(&sandbox, &["stop"], words);
    }
    // Under another name it is still whole.
    let sandbox = Sandbox::new();
    recorded(&sandbox);
    fs::rename(sandbox.file("s.fxt"), sandbox.file("moved.fxt")).unwrap();
    let output = sandbox.trace(["stop"]);
    assert!(output.status.success() && text(&output.stderr).contains("/moved.fxt ("), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("moved.fxt")).events.len(), 20 * 14);
}

/// The file has whole records, the rest can be had, and clients that ask get a report of what has happened.
//= docs/recording.md#in-the-background
#[test]
fn a_full_disk_ends_a_recording_with_whole_records() {
    if !Requirement::Mounts.is_met("a_full_disk_ends_a_recording_with_whole_records") {
        return;
    }
    for mode in ["oneshot", "circular", "streaming"] {
        let sandbox = Sandbox::new();
        let disk = sandbox.file("disk");
        fs::create_dir(&disk).unwrap();
        let _disk = SmallDisk::mount(&disk);
        succeeds(&sandbox, &["start", "-o", "disk/s.fxt", "--buffering-mode", mode, "--buffer-size", "8"]);
        sandbox.spawn_recorded("emit", &["1", "5000"]).succeed();
        wait_for("the recording to end", || status(&sandbox).is_null().then_some(()));
        let bytes = fs::read(disk.join("s.fxt")).unwrap();
        let whole = trace_reader::complete_records_end(&mut std::io::Cursor::new(&bytes)).unwrap();
        assert_eq!(whole, bytes.len() as u64, "{mode}");
        fails(&sandbox, &["stop"], "No space left on device");
        succeeds(&sandbox, &["recover"]);
        assert_eq!(Archive::read(&sandbox.file("recovered.fxt")).events.len(), 5000 * 14, "{mode}");
    }
}

/// A file system of a mebibyte.
pub struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    pub fn mount(path: &'a Path) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m,mode=700", "none"]).arg(path);
        assert!(mount.status().unwrap().success());
        Self(path)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

//= docs/recording.md#in-the-background
#[test]
fn a_flush_says_where_there_is_nothing_to_hand_over() {
    let sandbox = Sandbox::new();
    for mode in ["oneshot", "circular"] {
        succeeds(&sandbox, &["start", "--buffering-mode", mode]);
        let said = text(&succeeds(&sandbox, &["flush"]).stderr);
        let expected = format!("trace: nothing to flush: a {mode} recording stays in the programs' buffers");
        assert!(said.starts_with(&expected), "{said}");
        succeeds(&sandbox, &["stop", "--abort"]);
    }
}
