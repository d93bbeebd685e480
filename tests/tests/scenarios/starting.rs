//! Programs that record from their first line on, before there is a recording.

use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::{Scene, freeze, stderr, wait_for_death};
use trace_tests::{Archive, Sandbox, wait_for};

const MODES: [&str; 3] = ["oneshot", "circular", "streaming"];
const PROGRAMS: u64 = 100;

/// `starting` with these arguments, to be recorded from its first line.
fn starting(sandbox: &Sandbox, number: u64, events: u64, milliseconds: u64, way: &str) -> Command {
    let mut command = sandbox.command("starting");
    let numbers = [number, events, milliseconds].map(|number| number.to_string());
    command.args(numbers).arg(way).env("TRACE_STARTUP", "start");
    command
}

/// One that waits for a line.
fn spawn_waiting(sandbox: &Sandbox, events: u64) -> Process {
    let mut program = Sandbox::spawn_command(starting(sandbox, 7, events, 0, "wait"));
    assert_eq!(program.line(), "ready");
    program
}

/// The events of each program in some archives: how many are called `first` and `last`, and how many there
/// are in between, none of them twice.
fn programs(archives: &[Archive]) -> BTreeMap<u64, [u64; 3]> {
    let mut found: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for event in archives.iter().flat_map(|archive| &archive.events) {
        let name = event.name();
        let place = ["first", "middle", "last"].iter().position(|known| *known == name);
        found.entry(event.u64("number")).or_default()[place.expect("an event of the category")] += 1;
    }
    found
}

/// Recovers all that is left: recordings of managers each into a file of its own, and then what programs have
/// recorded themselves.
fn recover_all(sandbox: &Sandbox) -> Vec<Archive> {
    let recover = |file: &str, session: Option<&PathBuf>| {
        let mut arguments = vec!["recover", "-o", file];
        arguments.extend(session.map(|session| session.to_str().unwrap()));
        let output = sandbox.trace(arguments);
        assert!(output.status.success(), "{output:?}");
        Archive::read(&sandbox.file(file))
    };
    let list: serde_json::Value = trace_tests::json(&sandbox.trace(["recover", "--list", "--json"]));
    let left = list.as_array().unwrap().iter().filter(|session| session["state"] == "to be recovered");
    let left = left.map(|session| PathBuf::from(session["directory"].as_str().unwrap()));
    let is_startup = |session: &PathBuf| {
        fs::read_to_string(session.join("manifest.jsonl")).unwrap().contains("\"is_startup\":true")
    };
    let (startups, others): (Vec<_>, Vec<_>) = left.partition(is_startup);
    let others = others.iter().enumerate();
    let mut archives: Vec<_> = others
        .map(|(number, session)| recover(&format!("recovered-of-{number}.fxt"), Some(session)))
        .collect();
    if !startups.is_empty() {
        archives.push(recover("started.fxt", None));
        // There is nothing else that a program has recorded itself.
        let output = sandbox.trace(["recover", "--startup"]);
        assert!(stderr(&output).contains("nothing to recover"), "{output:?}");
    }
    archives
}

/// Waits until the client records: an interrupt before that is a failure.
fn wait_for_start(recording: &Process) {
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
}

/// Whether all that the program has recorded so far has been taken over.
fn is_taken_over(startup: &Path) -> bool {
    !startup.join("provider-1").exists()
}

//= docs/recording.md#from-the-first-line
#[test]
fn without_a_manager_it_is_recovered_however_the_program_ends() {
    for way in ["return", "exit", "abort", "kill"] {
        let sandbox = Sandbox::new();
        let output = starting(&sandbox, 3, 500, 0, way).output().unwrap();
        assert_eq!(output.status.success(), matches!(way, "return" | "exit"), "{way}: {output:?}");
        assert_eq!(stderr(&output), "", "{way}");
        let list = String::from_utf8(sandbox.trace(["recover", "--list"]).stdout).unwrap();
        assert!(list.contains("to be recovered") && list.contains("starting"), "{way}: {list}");
        let output = sandbox.trace(["recover", "-o", "start.fxt"]);
        assert!(output.status.success(), "{way}: {output:?}");
        let archive = Archive::read(&sandbox.file("start.fxt"));
        assert_eq!(programs(&[archive]), BTreeMap::from([(3, [1, 1000, 1])]), "{way}");
        assert!(Scene::sessions_of(&sandbox).is_empty(), "{way}");
    }
}

/// What a recording has, whatever its mode: the program's own buffer is a part of its own, and what comes
/// after it is in the manager's.
//= docs/protocol.md#what-was-recorded-before
#[test]
fn a_recording_takes_over_what_was_recorded_before() {
    for mode in MODES {
        let sandbox = Sandbox::new();
        let mut program = spawn_waiting(&sandbox, 400);
        let [startup] = &Scene::sessions_of(&sandbox)[..] else { panic!("one directory") };
        let list = String::from_utf8(sandbox.trace(["recover", "--list"]).stdout).unwrap();
        assert!(!list.contains("to be recovered"), "the program is alive: {list}");
        let recording =
            sandbox.spawn("trace", &["record", "--buffering-mode", mode, "--categories", "start"]);
        wait_for("the program to be recorded", || is_taken_over(startup).then_some(()));
        wait_for_start(&recording);
        program.say("end");
        program.succeed();
        recording.signal(Signal::INT);
        let output = recording.finish();
        assert!(output.status.success(), "{output:?}");
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        let sent =
            archive.events.iter().find(|event| event.name() == "last").expect("the last one").u64("sent");
        let generated: u64 = archive.generated().into_values().sum();
        assert_eq!(generated, archive.events.len() as u64, "{mode}");
        assert_eq!(archive.losses.len(), 0, "{mode}: {:?}", archive.losses);
        let names: Vec<&str> = archive.providers.values().map(String::as_str).collect();
        assert_eq!(names.iter().filter(|name| **name == "starting").count(), 2, "{mode}: {names:?}");
        assert_eq!(programs(&[archive]), BTreeMap::from([(7, [1, sent, 1])]), "{mode}");
        assert!(Scene::sessions_of(&sandbox).is_empty(), "{mode}: {:?}", Scene::sessions_of(&sandbox));
    }
}

//= docs/protocol.md#what-was-recorded-before
#[test]
fn a_hundred_programs_before_during_and_after_a_recording_begins_are_recorded_once() {
    let sandbox = Sandbox::new();
    let run = |number| {
        let output: Output = starting(&sandbox, number, 20, 5, "return").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stderr(&output), "");
    };
    (0..PROGRAMS / 4).for_each(run);
    let recording = sandbox.spawn("trace", &["record"]);
    // While the manager starts.
    (PROGRAMS / 4..PROGRAMS / 2).for_each(run);
    wait_for_start(&recording);
    std::thread::scope(|scope| {
        for half in [PROGRAMS / 2..3 * PROGRAMS / 4, 3 * PROGRAMS / 4..PROGRAMS] {
            scope.spawn(|| half.for_each(run));
        }
    });
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let recorded = Archive::read(&sandbox.file("trace.fxt"));
    let in_recording = programs(std::slice::from_ref(&recorded)).len() as u64;
    assert!(in_recording >= PROGRAMS / 2, "{in_recording}");
    let mut archives = recover_all(&sandbox);
    archives.push(recorded);
    let expected: BTreeMap<u64, [u64; 3]> = (0..PROGRAMS).map(|number| (number, [1, 40, 1])).collect();
    assert_eq!(programs(&archives), expected);
}

/// Whatever dies while a recording takes over: each event is in one archive.
#[test]
fn who_dies_meanwhile_loses_and_doubles_nothing() {
    for victim in ["program", "manager", "both"] {
        for step in 0..4 {
            let sandbox = Sandbox::new();
            let program = spawn_waiting(&sandbox, 2000);
            let [startup] = &Scene::sessions_of(&sandbox)[..] else { panic!("one directory") };
            let recording = sandbox.spawn("trace", &["record"]);
            let manager = wait_for("a manager", || sandbox.manager_pid());
            match step {
                0 => {}
                1 => wait_for("a session", || {
                    Scene::sessions_of(&sandbox).iter().any(|session| session != startup).then_some(())
                }),
                2 => wait_for("the buffer", || is_taken_over(startup).then_some(())),
                _ => wait_for("events in the other buffer", || {
                    (is_taken_over(startup) && recording.stderr_so_far().contains("ecording")).then_some(())
                }),
            }
            if victim != "manager" {
                kill(program.pid(), Signal::KILL);
                wait_for_death(program.pid());
            }
            if victim != "program" {
                kill(manager, Signal::KILL);
                wait_for_death(manager);
            }
            if victim == "manager" {
                kill(program.pid(), Signal::KILL);
                wait_for_death(program.pid());
            }
            recording.signal(Signal::INT);
            let output = recording.finish();
            let mut archives = recover_all(&sandbox);
            let file = sandbox.file("trace.fxt");
            if file.exists() {
                archives.push(Archive::read(&file));
            }
            // Of a recording that was interrupted before it began.
            let partial = sandbox.file("trace.partial.fxt");
            if partial.exists() {
                archives.push(Archive::read_prefix(&partial));
            }
            let found = programs(&archives);
            let [first, middle, last] = found.get(&7).copied().unwrap_or_default();
            assert_eq!((first, last), (1, 0), "{victim} dies at step {step}: {output:?}");
            assert!(middle >= 4000, "{victim} dies at step {step}: {middle} of 4000, {output:?}");
            let events = archives.iter().flat_map(|archive| &archive.events);
            let mut times: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            for event in events.filter(|event| event.name() == "middle") {
                *times.entry((event.event.thread.0, event.event.timestamp.0)).or_default() += 1;
            }
            assert!(times.values().all(|times| *times == 1), "{victim} dies at step {step}: twice");
        }
    }
}

/// What has no room is counted, and the advice is what makes the program's own buffer larger.
//= docs/recording.md#from-the-first-line
#[test]
fn a_full_buffer_is_counted() {
    const EVENTS: u64 = 2 * 30_000 + 1;
    const SIZE: (&str, &str) = ("TRACE_STARTUP_BUFFER_SIZE", "1");
    let check = |archive: &Archive, said: &str| {
        let generated: u64 = archive.generated().into_values().sum();
        assert!(generated >= EVENTS, "{generated}");
        let lost: u64 = archive.losses.iter().map(|loss| loss.count).sum();
        assert_eq!(archive.events.len() as u64 + lost, generated);
        assert!(lost > 0 && said.contains(SIZE.0) && !said.contains("--buffer-size"), "{said}");
    };
    let sandbox = Sandbox::new();
    let output = starting(&sandbox, 1, 30_000, 0, "return").env(SIZE.0, SIZE.1).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = sandbox.trace(["recover", "-o", "start.fxt"]);
    assert!(output.status.success(), "{output:?}");
    check(&Archive::read(&sandbox.file("start.fxt")), &stderr(&output));

    let mut command = starting(&sandbox, 1, 30_000, 0, "wait");
    let mut program = Sandbox::spawn_command({
        command.env(SIZE.0, SIZE.1);
        command
    });
    assert_eq!(program.line(), "ready");
    let [startup] = &Scene::sessions_of(&sandbox)[..] else { panic!("one directory") };
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the buffer", || is_taken_over(startup).then_some(()));
    wait_for_start(&recording);
    program.say("end");
    program.succeed();
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    check(&Archive::read(&sandbox.file("trace.fxt")), &stderr(&output));
    // As advised.
    let output = starting(&sandbox, 1, 30_000, 0, "return").env(SIZE.0, "64").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = sandbox.trace(["recover", "-o", "larger.fxt"]);
    let archive = Archive::read(&sandbox.file("larger.fxt"));
    let generated: u64 = archive.generated().into_values().sum();
    assert_eq!((archive.losses.len(), archive.events.len() as u64), (0, generated), "{output:?}");
    assert!(generated >= EVENTS, "{generated}");
}

/// A recording that ends before it has begun keeps what it has taken over.
//= docs/recording.md#from-the-first-line
#[test]
fn a_recording_that_fails_keeps_what_it_has_taken_over() {
    const EVENTS: u64 = 1000;
    for case in ["no command", "no program", "interrupted", "manager killed", "in the background"] {
        let sandbox = Sandbox::new();
        // A program that does not start, so that the recording does not begin.
        let mut stuck = sandbox.spawn("starting", &["9", "0", "0", "wait"]);
        assert_eq!(stuck.line(), "ready");
        wait_for("its registration", || {
            let list = String::from_utf8_lossy(&sandbox.trace(["list-programs"]).stdout).into_owned();
            list.contains("starting").then_some(())
        });
        let waits = case != "no command" && case != "no program";
        let is_in_background = case == "in the background";
        if waits {
            freeze(stuck.pid());
        }
        let program = (case != "no program").then(|| spawn_waiting(&sandbox, EVENTS));
        let startups = Scene::sessions_of(&sandbox);
        let mut arguments = vec![if is_in_background { "start" } else { "record" }, "-o", "trace.fxt"];
        if !waits {
            // That it cannot be executed shows only when it is.
            fs::write(sandbox.file("broken"), "#!/does/not/exist\n").unwrap();
            fs::set_permissions(sandbox.file("broken"), fs::Permissions::from_mode(0o755)).unwrap();
            arguments.extend(["--", "./broken"]);
        }
        let recording = sandbox.spawn("trace", &arguments);
        for startup in &startups {
            wait_for("the buffer", || is_taken_over(startup).then_some(()));
        }
        match case {
            "interrupted" => recording.signal(Signal::INT),
            "manager killed" => kill(sandbox.manager_pid().unwrap(), Signal::KILL),
            "in the background" => {
                let has_events = || fs::metadata(sandbox.file("trace.fxt")).unwrap().len() > 16 << 10;
                wait_for("the file", || has_events().then_some(()));
                kill(sandbox.manager_pid().unwrap(), Signal::KILL);
            }
            _ => {}
        }
        let output = recording.finish();
        assert!(!output.status.success(), "{case}: {output:?}");
        program.iter().for_each(|program| kill(program.pid(), Signal::KILL));
        stuck.signal(Signal::KILL);
        let name = if is_in_background { "trace.fxt" } else { "trace.partial.fxt" };
        let partial = sandbox.file(name);
        if case == "no program" {
            // As nothing was recorded before, nothing is left.
            assert!(!partial.exists() && Scene::sessions_of(&sandbox).is_empty(), "{output:?}");
            continue;
        }
        let said = stderr(&output);
        // The manager may be killed before it has written anything.
        let is_kept = said.contains(&format!("{name} has the data that had arrived"));
        assert!(is_kept || case == "manager killed", "{case}: {said}");
        let mut archives = recover_all(&sandbox);
        if partial.exists() {
            archives.push(Archive::read_prefix(&partial));
        }
        let [first, middle, last] = programs(&archives)[&7];
        assert_eq!((first, last), (1, 0), "{case}: {said}");
        assert!(middle >= 2 * EVENTS, "{case}: {middle}, {said}");
    }
}

/// A command that cannot be run begins nothing, and takes nothing over.
//= docs/recording.md#exit-code
#[test]
fn a_command_that_is_not_there_begins_nothing() {
    let sandbox = Sandbox::new();
    let mut program = spawn_waiting(&sandbox, 10);
    let [startup] = &Scene::sessions_of(&sandbox)[..] else { panic!("one directory") };
    fs::write(sandbox.file("text"), "true").unwrap();
    for (command, code, why) in [
        ("./does-not-exist", 127, "command not found"),
        ("does-not-exist-either", 127, "command not found"),
        ("./text", 126, "command cannot be executed: Permission denied (os error 13)"),
        (".", 126, "command cannot be executed: Permission denied (os error 13)"),
    ] {
        let output = sandbox.trace(["record", "-o", "trace.fxt", "--", command]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(stderr(&output), format!("trace: {command}: {why}\n"));
    }
    assert!(!is_taken_over(startup) && sandbox.files() == ["text"], "{:?}", sandbox.files());
    assert!(program.is_running() && sandbox.manager_pid().is_none());
}

/// What a recording has taken over is recovered with it, though its mode is another.
//= docs/protocol.md#what-was-recorded-before
#[test]
fn what_was_taken_over_and_not_archived_is_recovered() {
    for mode in MODES {
        let sandbox = Sandbox::new();
        let program = spawn_waiting(&sandbox, 10_000);
        let [startup] = &Scene::sessions_of(&sandbox)[..] else { panic!("one directory") };
        // More than fits on its way to a client that does not read.
        let options = ["record", "-o", "-", "--buffering-mode", mode];
        let recording = sandbox.spawn("trace", &options);
        let manager = wait_for("a manager", || sandbox.manager_pid());
        wait_for("the buffer", || is_taken_over(startup).then_some(()));
        freeze(recording.pid());
        for process in [manager, program.pid()] {
            kill(process, Signal::KILL);
            wait_for_death(process);
        }
        kill(recording.pid(), Signal::KILL);
        let archives = recover_all(&sandbox);
        let found = programs(&archives);
        let [first, middle, last] = found[&7];
        assert_eq!((archives.len(), first, last), (1, 1, 0), "{mode}");
        assert!(middle >= 20_000, "{mode}: {middle} of 20000");
    }
}

/// A buffer of a program's own that cannot be had is no reason not to run.
#[test]
fn a_program_that_cannot_record_itself_says_why_and_runs() {
    let sandbox = Sandbox::new();
    let run = |name: &str, value: &str| {
        let output = starting(&sandbox, 1, 5, 0, "return").env(name, value).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        stderr(&output)
    };
    let reason = "trace: not recorded from the start: ";
    let said = run("TRACE_STARTUP_MODE", "streaming");
    assert_eq!(said, format!("{reason}TRACE_STARTUP_MODE is \"streaming\", expected oneshot or circular\n"));
    let said = run("TRACE_STARTUP_BUFFER_SIZE", "65");
    assert_eq!(said, format!("{reason}a buffer of 65 MiB, expected 1 to 64\n"));
    let said = run("TRACE_RUNTIME_DIR", "/proc/none");
    assert!(said.starts_with(&format!("{reason}cannot create /proc/none")), "{said}");
    assert!(Scene::sessions_of(&sandbox).is_empty());
}

/// A normal end writes the file; any other leaves the buffer, as without the variable.
//= docs/recording.md#from-the-first-line
#[test]
fn a_program_writes_what_it_has_recorded_when_it_ends() {
    let sandbox = Sandbox::new();
    for way in ["return", "exit", "abort", "kill"] {
        let mut command = starting(&sandbox, 5, 10, 0, way);
        let output = command.env("TRACE_STARTUP_FILE", "end.fxt").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{way}");
        let is_normal = way == "return";
        assert_eq!(sandbox.file("end.fxt").exists(), is_normal, "{way}");
        let archive = match is_normal {
            true => {
                let archive = Archive::read(&sandbox.file("end.fxt"));
                fs::remove_file(sandbox.file("end.fxt")).unwrap();
                assert!(Scene::sessions_of(&sandbox).is_empty());
                archive
            }
            false => recover_all(&sandbox).pop().unwrap(),
        };
        assert_eq!(programs(&[archive]), BTreeMap::from([(5, [1, 20, 1])]), "{way}");
        let _ = fs::remove_file(sandbox.file("started.fxt"));
    }
    // A recording that takes over has all of it: there is nothing to write.
    let program = starting(&sandbox, 6, 10, 0, "return").env("TRACE_STARTUP_FILE", "end.fxt").output();
    assert!(program.unwrap().status.success() && sandbox.file("end.fxt").exists());
    fs::remove_file(sandbox.file("end.fxt")).unwrap();
    let script = "TRACE_STARTUP=start TRACE_STARTUP_FILE=end.fxt exec \"$0\" 7 10 0 return";
    let starting = trace_tests::build::program("starting").to_str().unwrap();
    let output = sandbox.trace(["record", "--", "sh", "-c", script, starting]);
    assert!(output.status.success(), "{output:?}");
    assert!(!sandbox.file("end.fxt").exists());
    let found = programs(&[Archive::read(&sandbox.file("trace.fxt"))]);
    assert_eq!(found, BTreeMap::from([(7, [1, 20, 1])]));
}
