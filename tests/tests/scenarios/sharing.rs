//! Several recordings in one manager: of different programs, and of different users.
//= docs/recording.md#recordings-of-some-programs

use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::wait_for_death;
use trace_tests::{Archive, Sandbox, wait_for};

/// A recording of some programs that goes on until it is interrupted.
fn recording(sandbox: &Sandbox, file: &str, options: &[&str]) -> Process {
    let recording = sandbox.spawn("trace", &[&["record", "-o", file], options].concat());
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    recording
}

#[track_caller]
fn interrupt(recording: Process) -> Output {
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    output
}

/// The programs in an archive, without the manager, and the number of its events.
fn contents(sandbox: &Sandbox, file: &str) -> (Vec<String>, usize) {
    let archive = Archive::read(&sandbox.file(file));
    let programs = archive.providers.values().filter(|name| *name != "trace_manager");
    (programs.cloned().collect(), archive.events.len())
}

fn of(name: &str, events: usize) -> (Vec<String>, usize) {
    (vec![name.to_owned()], events)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

//= docs/protocol.md#several-sessions
#[test]
fn each_recording_has_its_programs_and_every_event_is_in_one() {
    let sandbox = Sandbox::new();
    let mut before = sandbox.spawn("emit", &["1", "7", "--wait"]);
    before.line();
    let of_emit = recording(&sandbox, "emit.fxt", &["--program", "emit"]);
    let of_stream =
        recording(&sandbox, "stream.fxt", &["--program", "stream", "--buffering-mode", "circular"]);
    let manager = sandbox.manager_pid();
    assert!(manager.is_some());
    // One that none of them has asked for neither waits nor is recorded.
    let output = sandbox.spawn("kinds", &[]).finish();
    assert!(output.status.success(), "{output:?}");
    sandbox.spawn_recorded("stream", &["2", "500", "0"]).succeed();
    sandbox.spawn_recorded("emit", &["2", "3"]).succeed();
    before.succeed();
    interrupt(of_emit);
    // The end of one is none of the other's.
    sandbox.spawn_recorded("stream", &["1", "50", "0"]).succeed();
    sandbox.spawn("emit", &["1", "1"]).succeed();
    interrupt(of_stream);
    let emitted = contents(&sandbox, "emit.fxt");
    assert_eq!(emitted, (vec!["emit".to_owned(); 2], (7 + 2 * 3) * 14));
    assert_eq!(contents(&sandbox, "stream.fxt"), (vec!["stream".to_owned(); 2], 2 * 500 + 50));
    assert_eq!(sandbox.files(), ["emit.fxt", "stream.fxt"]);
}

//= docs/protocol.md#several-sessions
#[test]
fn what_would_have_a_program_twice_is_refused_with_the_recording_that_has_it() {
    let sandbox = Sandbox::new();
    let of_emit = recording(&sandbox, "emit.fxt", &["--program", "emit"]);
    let of_two = recording(&sandbox, "two.fxt", &["--program", "stream", "--program", "kinds"]);
    let refused = |options: &[&str], recording: &Process| {
        let output = sandbox.trace([&["record", "-o", "x.fxt", "--duration", "1"], options].concat());
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        let said = text(&output.stderr);
        let end = format!("(pid {pid}); kill -INT {pid} ends it\n", pid = recording.pid());
        assert!(said.contains("the trace manager is in use by \"") && said.ends_with(&end), "{said}");
    };
    refused(&[], &of_emit);
    refused(&["--program", "emit"], &of_emit);
    refused(&["--program", "other", "--program", "kinds"], &of_two);
    let output = sandbox.trace(["record", "-o", "other.fxt", "--duration", "10ms", "--program", "other"]);
    assert!(output.status.success(), "{output:?}");
    // A recording of all programs is in the way of every other one.
    interrupt(of_emit);
    interrupt(of_two);
    let of_all = recording(&sandbox, "all.fxt", &[]);
    refused(&["--program", "emit"], &of_all);
    interrupt(of_all);
}

/// So many at once, and no more.
//= docs/protocol.md#several-sessions
#[test]
fn a_user_has_so_many_recordings() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..8).map(|number| format!("app-{number}")).collect();
    let files: Vec<String> = names.iter().map(|name| format!("{name}.fxt")).collect();
    let recordings =
        names.iter().zip(&files).map(|(name, file)| recording(&sandbox, file, &["--program", name]));
    let recordings: Vec<Process> = recordings.collect();
    let output = sandbox.trace(["record", "-o", "x.fxt", "--duration", "1", "--program", "emit"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    let reason = "the trace manager is in use by 8 recordings of this user, the most";
    let said = text(&output.stderr);
    assert!(said.ends_with(&format!("trace: unable to start trace: {reason}\n")), "{said}");
    // A command has a manager of its own then.
    let output = sandbox.record(&["-o", "own.fxt", "--program", "emit"], "emit", &["1", "2"]);
    assert!(
        text(&output.stderr)
            .starts_with(&format!("trace: {reason}: this recording has a manager of its own"))
    );
    assert_eq!(contents(&sandbox, "own.fxt"), of("emit", 2 * 14));
    recordings.into_iter().for_each(|recording| drop(interrupt(recording)));
    let output = sandbox.record(&["-o", "emit.fxt", "--program", "emit"], "emit", &["1", "1"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(contents(&sandbox, "emit.fxt"), of("emit", 14));
}

#[test]
fn names_that_no_program_has_are_reported() {
    let sandbox = Sandbox::new();
    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    emit.line();
    let output = sandbox.trace(["record", "--duration", "10ms", "--program", "emti", "--program", "emit"]);
    let said = text(&output.stderr);
    let warning =
        "trace: no running program is called emti, which is recorded when it starts; did you mean emit?\n";
    assert!(output.status.success() && said.starts_with(warning), "{said}");
    let output = sandbox.trace(["record", "-o", "x.fxt", "--duration", "10ms", "--program", "emti"]);
    let none =
        "trace: no program took part: none called emti ran meanwhile; trace list-programs shows what runs\n";
    assert!(text(&output.stderr).contains(none), "{output:?}");
    emit.succeed();
    let many: Vec<String> = (0..101).map(|number| format!("--program={number}")).collect();
    for (options, expected) in [
        (vec!["--program=".to_owned()], "a name is empty"),
        (vec![format!("--program={}", "a".repeat(101))], "has more than 100 bytes"),
        (vec!["--program=a\nb".to_owned()], "a\\nb has control characters, which no name has"),
        (many, "101 names, at most 100 are possible"),
    ] {
        let options = options.iter().map(String::as_str);
        let output = sandbox.trace(["record", "--duration", "1"].into_iter().chain(options));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.starts_with("trace: --program: ") && said.ends_with(&format!("{expected}\n")), "{said}");
    }
}

//= docs/recording.md#several-recordings-at-once
#[test]
fn a_list_shows_which_recording_a_program_belongs_to() {
    let sandbox = Sandbox::new();
    let of_emit = recording(&sandbox, "emit.fxt", &["--program", "emit"]);
    let mut emit = sandbox.spawn_recorded("emit", &["1", "1", "--wait"]);
    emit.line();
    let trace = trace_tests::build::program("trace").display();
    let line = format!("\"{trace} record -o emit.fxt --program emit\" (pid {})", of_emit.pid());
    let listed = sandbox.trace(["list-programs"]);
    let listed = text(&listed.stdout);
    assert!(listed.contains(&format!("  emit (pid {}), recorded by {line}\n", emit.pid())), "{listed}");
    let machine = sandbox.trace(["list-programs", "--json"]);
    let machine: Value = trace_tests::json(&machine);
    let entry = machine.as_array().unwrap().iter().find(|entry| entry["name"] == "emit").unwrap();
    assert_eq!(entry["recorded_by"], of_emit.pid());
    emit.succeed();
    interrupt(of_emit);
}

/// Requests about a recording name a program of it.
#[test]
fn a_snapshot_is_one_of_the_recording_that_is_meant() {
    let sandbox = Sandbox::new();
    let circular = ["--buffering-mode", "circular"];
    let of_emit = recording(&sandbox, "emit.fxt", &[&["--program", "emit"], &circular[..]].concat());
    let of_stream = recording(&sandbox, "stream.fxt", &[&["--program", "stream"], &circular[..]].concat());
    sandbox.spawn_recorded("emit", &["1", "3"]).succeed();
    sandbox.spawn_recorded("stream", &["1", "20", "0"]).succeed();
    let output = sandbox.trace(["snapshot", "-o", "x.fxt"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let expected = "trace: several recordings are running: name a program of the one that is meant with \
                    --program; trace list-programs shows which one a program belongs to\n";
    assert_eq!(text(&output.stderr), expected);
    let snapshot = |program: &str, file: &str| {
        let output = sandbox.trace(["snapshot", "--program", program, "-o", file]);
        assert!(output.status.success(), "{output:?}");
        contents(&sandbox, file)
    };
    let output = sandbox.trace(["snapshot", "--program", "emti", "-o", "x.fxt"]);
    let said = "trace: no recording has the program emti: trace list-programs shows which one a program belongs to\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(5), said));
    assert_eq!(snapshot("emit", "a.fxt"), of("emit", 3 * 14));
    assert_eq!(snapshot("stream", "b.fxt"), of("stream", 20));
    // An observer sees its own recording, and none without a name.
    let live = |options: &[&str]| sandbox.spawn("trace", &[&["live", "--json"], options].concat());
    let refused = live(&[]).finish();
    assert_eq!((refused.status.code(), text(&refused.stderr)), (Some(2), expected));
    let mut emit = sandbox.spawn_recorded("emit", &["1", "1", "--wait"]);
    emit.line();
    let mut watched = live(&["--program", "stream"]);
    let line = watched.line();
    let update: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(update["buffering_mode"], "circular");
    assert!(!line.contains("emit"), "{line}");
    let mut watched_emit = live(&["--program", "emit"]);
    assert!(watched_emit.line().contains("\"emit\""));
    interrupt(of_stream);
    watched.succeed();
    // There is one now.
    emit.succeed();
    let output = sandbox.trace(["snapshot", "-o", "d.fxt"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(contents(&sandbox, "d.fxt"), (vec!["emit".to_owned(); 2], 4 * 14));
    interrupt(of_emit);
    watched_emit.succeed();
}

/// Halves of streams are read for observers when they are saved.
#[test]
fn an_observer_sees_nothing_of_another_recordings_stream() {
    let sandbox = Sandbox::new();
    let of_emit = recording(&sandbox, "emit.fxt", &["--program", "emit"]);
    let of_stream = recording(&sandbox, "stream.fxt", &["--program", "stream", "--buffer-size", "1"]);
    let mut emit = sandbox.spawn_recorded("emit", &["1", "1", "--wait"]);
    emit.line();
    let live =
        |program| sandbox.spawn("trace", &["live", "--json", "--interval", "50ms", "--program", program]);
    let (mut of_its_own, mut of_the_other) = (live("stream"), live("emit"));
    // Both observe.
    let _ = (of_its_own.line(), of_the_other.line());
    let stream = sandbox.spawn_recorded("stream", &["2", "100000", "100000"]);
    while !of_its_own.line().contains("\"stream\"") {}
    stream.succeed();
    emit.succeed();
    interrupt(of_emit);
    interrupt(of_stream);
    let (own, other) = (of_its_own.finish(), of_the_other.finish());
    let has = |output: &Output, name: &str| text(&output.stdout).contains(name);
    assert!(!has(&own, "\"emit\"") && !has(&other, "\"stream\""), "{own:?} {other:?}");
    assert_eq!(contents(&sandbox, "emit.fxt"), of("emit", 14));
}

/// Its program stands in a file.
#[test]
fn a_recording_of_ones_own_is_watched_beside_another() {
    let sandbox = Sandbox::new();
    let of_emit = recording(&sandbox, "emit.fxt", &["--program", "emit"]);
    std::fs::write(sandbox.file("own.toml"), "program = [\"stream\"]\nenvironment-name = \"x\"\n").unwrap();
    let mut watched = sandbox.spawn("trace", &["live", "--json", "-c", "own.toml", "-o", "own.fxt"]);
    let line = watched.line();
    assert!(!line.contains("\"emit\""), "{line}");
    sandbox.spawn_recorded("stream", &["1", "20", "0"]).succeed();
    let output = interrupt(watched);
    let said = text(&output.stderr);
    assert_eq!(said.matches("--environment-name x is ignored").count(), 1, "{said}");
    assert_eq!(contents(&sandbox, "own.fxt"), of("stream", 20));
    interrupt(of_emit);
}

/// A snapshot that a recording takes of itself is its own.
#[test]
fn a_trigger_acts_on_its_own_recording() {
    let sandbox = Sandbox::new();
    let options = ["--buffering-mode", "circular", "--trigger", "SIGUSR2:snapshot"];
    let of_emit = recording(&sandbox, "emit.fxt", &[&["--program", "emit"], &options[..]].concat());
    let of_stream = recording(&sandbox, "stream.fxt", &[&["--program", "stream"], &options[..]].concat());
    sandbox.spawn_recorded("emit", &["1", "3"]).succeed();
    sandbox.spawn_recorded("stream", &["1", "20", "0"]).succeed();
    for recording in [&of_emit, &of_stream] {
        recording.signal(Signal::USR2);
        wait_for("the snapshot", || recording.stderr_so_far().contains("snapshot in ").then_some(()));
    }
    assert_eq!(contents(&sandbox, "emit-snapshot-1.fxt"), of("emit", 3 * 14));
    assert_eq!(contents(&sandbox, "stream-snapshot-1.fxt"), of("stream", 20));
    interrupt(of_emit);
    interrupt(of_stream);
}

/// Recordings that the manager holds have numbers.
//= docs/recording.md#in-the-background
#[test]
fn recordings_in_the_background_are_ended_by_their_numbers() {
    let sandbox = Sandbox::new();
    let succeeds = |arguments: &[&str]| {
        let output = sandbox.trace(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    };
    let output = succeeds(&["start", "-o", "emit.fxt", "--program", "emit"]);
    assert!(text(&output.stderr).ends_with("emit.fxt; to end it: trace stop\n"), "{output:?}");
    let output = succeeds(&["start", "-o", "stream.fxt", "--program", "stream"]);
    assert!(text(&output.stderr).ends_with("stream.fxt; to end it: trace stop 101\n"), "{output:?}");
    // And one in the foreground.
    let of_kinds = recording(&sandbox, "kinds.fxt", &["--program", "kinds"]);
    sandbox.spawn_recorded("emit", &["1", "3"]).succeed();
    sandbox.spawn_recorded("stream", &["1", "20", "0"]).succeed();
    let mut waiting = sandbox.spawn_recorded("emit", &["1", "1", "--wait"]);
    waiting.line();
    // When the manager has noticed both ends.
    let status = wait_for("programs to have ended", || {
        let status = succeeds(&["status", "--json"]);
        let status: Value = trace_tests::json(&status);
        let have_ended = |entry: &Value| entry["ended"].as_array().is_some_and(|ended| ended.len() == 1);
        status.as_array().unwrap().iter().all(have_ended).then_some(status)
    });
    let entries = status.as_array().unwrap().iter();
    let found: Vec<_> = entries.map(|entry| (entry["number"].as_u64(), &entry["label"])).collect();
    assert_eq!(found, [(Some(100), &"emit".into()), (Some(101), &"stream".into())]);
    let programs = |entry: &Value, list: &str| {
        let listed = entry[list].as_array().unwrap().iter();
        listed.map(|program| program["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let [first, second] = status.as_array().unwrap().first_chunk().unwrap();
    assert_eq!(
        (programs(first, "programs"), programs(first, "ended")),
        (vec!["emit".into()], vec!["emit".into()])
    );
    assert_eq!((programs(second, "programs"), programs(second, "ended")), (vec![], vec!["stream".into()]));
    let shown = succeeds(&["status"]);
    assert!(text(&shown.stdout).starts_with("Task Id: 100\n"), "{shown:?}");
    assert!(text(&shown.stdout).contains("\n\nTask Id: 101\n"), "{shown:?}");
    let which = "trace: recordings 100, 101 are running: give the number of one; trace status shows them\n";
    for arguments in [&["stop"][..], &["stop", "--abort"], &["flush"]] {
        let output = sandbox.trace(arguments);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), which), "{arguments:?}");
    }
    succeeds(&["flush", "100"]);
    for command in ["stop", "flush"] {
        let output = sandbox.trace([command, "99"]);
        let expected = "trace: no recording has the number 99: trace status shows those that run\n";
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(5), expected));
    }
    succeeds(&["stop", "101"]);
    assert_eq!(contents(&sandbox, "stream.fxt"), of("stream", 20));
    // The only one again.
    waiting.succeed();
    succeeds(&["stop"]);
    assert_eq!(contents(&sandbox, "emit.fxt"), (vec!["emit".to_owned(); 2], 4 * 14));
    interrupt(of_kinds);
}

/// Nothing is made for a recording that cannot begin.
//= docs/protocol.md#several-sessions
#[test]
fn refused_recordings_leave_nothing_in_the_manager() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start", "-o", "emit.fxt", "--program", "emit"]).status.success());
    let manager = sandbox.manager_pid().unwrap();
    // Threads and descriptors, with what they are.
    let list = || {
        let names = |what: &str, of: fn(PathBuf) -> Option<String>| -> Vec<String> {
            let entries = fs::read_dir(format!("/proc/{manager}/{what}")).unwrap();
            let mut names: Vec<_> = entries.filter_map(|entry| of(entry.unwrap().path())).collect();
            names.sort();
            names
        };
        let target = |path: PathBuf| Some(fs::read_link(path).ok()?.to_string_lossy().into_owned());
        // At most 32 threads that close descriptors stay, as many as a busy machine has needed at a time.
        let thread = |path: PathBuf| {
            fs::read_to_string(path.join("comm")).ok().filter(|name| name.trim_end() != "zx-closer")
        };
        [names("task", thread), names("fd", target)]
    };
    let refused = || {
        let output = sandbox.trace(["start", "-o", "x.fxt", "--program", "emit"]);
        assert_eq!(output.status.code(), Some(125), "{output:?}");
    };
    // The recording has all its threads by then. Some end soon, and connections a moment after their clients.
    (0..20).for_each(|_| refused());
    let most = list();
    (0..20).for_each(|_| refused());
    let is_gone = || list().iter().zip(&most).all(|(now, most)| now.len() <= most.len()).then_some(());
    trace_tests::sandbox::in_time(is_gone).unwrap_or_else(|| panic!("before: {most:#?}\nnow: {:#?}", list()));
    assert!(sandbox.trace(["stop"]).status.success());
    assert_eq!(sandbox.files(), ["emit.fxt"]);
    // Not even a number.
    let output = sandbox.trace(["start", "-o", "next.fxt"]);
    assert!(text(&output.stderr).starts_with("trace: recording number 101 into "), "{output:?}");
    assert!(sandbox.trace(["stop"]).status.success());
}

/// The path of a recording in the background is what its client says: only that very file is deleted or
/// moved.
//= docs/protocol.md#tasks
#[test]
fn another_file_at_the_path_of_a_recording_stays() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start", "-o", "a.fxt"]).status.success());
    sandbox.spawn_recorded("emit", &["1", "1"]).succeed();
    fs::rename(sandbox.file("a.fxt"), sandbox.file("moved.fxt")).unwrap();
    fs::write(sandbox.file("a.fxt"), "another").unwrap();
    let output = sandbox.trace(["stop", "--abort"]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("a.fxt is not deleted: it is not the file of the recording"));
    assert_eq!(fs::read(sandbox.file("a.fxt")).unwrap(), b"another");
    assert!(sandbox.file("moved.fxt").exists());
}

/// What is said of a trace is that of its file, wherever that is now.
//= docs/recording.md#while-it-is-recorded
#[test]
fn a_trace_is_found_in_its_directory_wherever_that_was_moved() {
    let sandbox = Sandbox::new();
    let [here, away] = ["here", "away"].map(|name| sandbox.file(name));
    fs::create_dir(&here).unwrap();
    let recording = recording(&sandbox, "here/a.fxt", &["--stats"]);
    sandbox.spawn_recorded("emit", &["1", "3"]).succeed();
    fs::rename(&here, &away).unwrap();
    fs::create_dir(&here).unwrap();
    fs::write(here.join("a.fxt"), "another").unwrap();
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let bytes = fs::metadata(away.join("a.fxt")).unwrap().len();
    let said = format!("trace: 42 events of 1 program in {} ({bytes} bytes)\n", away.join("a.fxt").display());
    assert!(text(&output.stderr).contains(&said), "{output:?}");
    assert_eq!(Archive::read(&away.join("a.fxt")).events.len(), 3 * 14);
    assert_eq!(fs::read(here.join("a.fxt")).unwrap(), b"another");
}

/// Recordings that share a manager share its end. What each has recorded is found for it.
//= docs/recovery.md#what-is-recovered
#[test]
fn what_a_killed_manager_leaves_of_several_recordings_is_recovered() {
    let sandbox = Sandbox::new();
    let options = |program| ["--program", program, "--buffering-mode", "oneshot"];
    let of_emit = recording(&sandbox, "emit.fxt", &options("emit"));
    let of_stream = recording(&sandbox, "stream.fxt", &options("stream"));
    sandbox.spawn_recorded("emit", &["1", "3"]).succeed();
    sandbox.spawn_recorded("stream", &["1", "20", "0"]).succeed();
    kill(of_emit.pid(), Signal::KILL);
    kill(of_stream.pid(), Signal::KILL);
    let manager = sandbox.manager_pid().unwrap();
    kill(manager, Signal::KILL);
    wait_for_death(manager);
    drop((of_emit.finish(), of_stream.finish()));
    let listed = sandbox.trace(["recover", "--list", "--json"]);
    let listed: Value = trace_tests::json(&listed);
    let directories = listed.as_array().unwrap().iter().map(|entry| entry["directory"].as_str().unwrap());
    let mut found: Vec<_> = directories
        .map(|directory| {
            let output = sandbox.trace(["recover", directory, "-o", "recovered.fxt"]);
            assert!(output.status.success(), "{output:?}");
            let found = contents(&sandbox, "recovered.fxt");
            fs::remove_file(sandbox.file("recovered.fxt")).unwrap();
            found
        })
        .collect();
    found.sort();
    assert_eq!(found, [of("emit", 3 * 14), of("stream", 20)]);
}
