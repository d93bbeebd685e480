//! How recordings end: exit codes, durations, Ctrl-C, providers that do not answer.

use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use trace_tests::build::program;
use trace_tests::sandbox::{Process, kill};
use trace_tests::{Archive, Sandbox, wait_for};

fn path(name: &str) -> &'static str {
    program(name).to_str().expect("a path in UTF-8")
}

#[test]
fn the_commands_code_is_the_tools() {
    let sandbox = Sandbox::new();
    for (code, expected) in [("0", 0), ("1", 1), ("42", 42), ("255", 255)] {
        let output = sandbox.trace(["record", "--", path("emit"), "1", "1", "--exit", code]);
        assert_eq!(output.status.code(), Some(expected), "{output:?}");
        assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 14);
    }
}

#[test]
fn stdout_belongs_to_the_command() {
    let sandbox = Sandbox::new();
    let output = sandbox.trace(["record", "--allow-empty", "--", "/bin/echo", "hello"]);
    assert_eq!(output.stdout, b"hello\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("echo does not link the trace library"), "{stderr}");
    assert!(Archive::read(&sandbox.file("trace.fxt")).events.is_empty());
}

/// Waits until a program under `trace record` runs.
fn wait_for_child(recording: &trace_tests::sandbox::Process, name: &str) -> u32 {
    wait_for("the command to run", || {
        let children =
            std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", recording.pid())).ok()?;
        let pids = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
        let comm = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        pids.into_iter().find(|pid| comm(*pid).trim() == name)
    })
}

#[test]
fn ctrl_c_reaches_the_command_and_keeps_the_data() {
    let sandbox = Sandbox::new();
    let mut recording = sandbox.spawn("trace", &["record", "--", path("emit"), "2", "30", "--wait"]);
    let pid: u32 = recording.line().parse().unwrap();
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    recording.signal_group(Signal::INT);
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(128 + 2), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.providers.values().collect::<Vec<_>>(), ["trace_manager", "emit"]);
    assert_eq!(sandbox.files(), ["trace.fxt"]);
}

#[test]
fn ctrl_c_without_a_command_saves_what_others_did() {
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the manager", || sandbox.manager_pid());
    wait_for("the recording to be announced", || {
        recording.stderr_so_far().contains("press Ctrl-C").then_some(())
    });
    let mut emit = sandbox.spawn("emit", &["1", "5", "--wait", "--on"]);
    emit.line();
    assert_eq!(emit.line(), "on");
    emit.succeed();
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 70);
}

#[test]
fn sigterm_to_the_tool_ends_the_command_too() {
    let sandbox = Sandbox::new();
    let mut recording = sandbox.spawn("trace", &["record", "--", path("emit"), "1", "1", "--wait"]);
    recording.line();
    recording.signal(Signal::TERM);
    // Its input stays open until then, or it would end by itself.
    wait_for("the end of the recording", || (!recording.is_running()).then_some(()));
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(128 + 15), "{output:?}");
    assert_eq!(sandbox.files(), ["trace.fxt"]);
}

//= docs/recording.md#exit-code
#[test]
fn a_duration_ends_the_command_politely_and_then_for_good() {
    let sandbox = Sandbox::new();
    let begin = Instant::now();
    let output = sandbox.trace(["record", "--duration", "2", "--", path("stubborn"), "ignore-term"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(begin.elapsed() >= Duration::from_secs(2 + 5), "{:?}", begin.elapsed());
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 1);

    let output = sandbox.trace(["record", "--duration", "0.3", "--", path("stubborn"), "park"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("trace: stubborn: "), "it ended as it was asked to: {stderr}");
}

/// What the command says of itself counts, whatever ended the recording.
//= docs/recording.md#exit-code
#[test]
fn a_command_that_fails_is_the_recordings_failure() {
    let sandbox = Sandbox::new();
    let script = "trap 'exit 3' TERM; while :; do sleep 0.05; done";
    let output = sandbox.trace(["record", "--duration", "2", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let output = sandbox.trace(["record", "--duration", "30", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(output.status.code(), Some(128 + 15), "nobody has asked it to: {output:?}");
    for (signal, code, words) in [("SEGV", 11, "killed by SIGSEGV"), ("KILL", 9, "killed by SIGKILL")] {
        let output = sandbox.trace(["record", "--", "sh", "-c", &format!("ulimit -c 0; kill -{signal} $$")]);
        assert_eq!(output.status.code(), Some(128 + code), "{output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.lines().any(|line| line == format!("trace: sh: {words}")), "{stderr}");
    }
}

/// Of the ends that are asked for, an alert's.
//= docs/recording.md#exit-code
#[test]
fn an_alert_that_ends_the_recording_ends_the_command_with_success() {
    let sandbox = Sandbox::new();
    let command = ["record", "--trigger", "now:stop", "--", path("stubborn"), "alert", "now"];
    let mut recording = sandbox.spawn("trace", &command);
    recording.say("now");
    wait_for("the end of the recording", || (!recording.is_running()).then_some(()));
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_stopped_provider_is_given_up_and_its_data_kept() {
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record", "--duration", "1", "--", path("stubborn"), "stop"]);
    let pid = wait_for_child(&recording, "stubborn");
    let output = recording.finish();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("did not stop"), "{stderr}");
    assert!(stderr.contains(&format!("waiting for stubborn (pid {pid}) to stop")), "{stderr}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.events.iter().map(|event| event.name()).collect::<Vec<_>>(), ["here"]);
    assert_eq!(archive.events[0].event.process.0, u64::from(pid));
}

/// `trace record`, run by a command that decides which signals are ignored.
fn record_by(sandbox: &Sandbox, by: &[&str]) -> Process {
    let prepared = sandbox.command("trace");
    let mut command = std::process::Command::new(by[0]);
    command.args(&by[1..]).arg(prepared.get_program()).arg("record");
    command.current_dir(prepared.get_current_dir().unwrap());
    for (name, value) in prepared.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let recording = Sandbox::spawn_command(command);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    recording
}

/// A terminal that is closed, and Ctrl-\, end a recording as Ctrl-C does.
//= docs/recording.md#how-a-recording-ends
#[test]
fn a_hangup_and_a_quit_end_the_recording_and_keep_it() {
    for signal in [Signal::HUP, Signal::QUIT] {
        let sandbox = Sandbox::new();
        // The tests themselves may run under `nohup`.
        let recording = record_by(&sandbox, &["env", "--default-signal=HUP,QUIT"]);
        let output = sandbox.command("emit").args(["1", "1"]).env("TRACE_RECORD", "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        recording.signal(signal);
        let output = recording.finish();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 14);
        assert_eq!(sandbox.files(), ["trace.fxt"]);
    }
}

/// As under `nohup`: it is Ctrl-C that ends it, and the hangup before does not.
//= docs/recording.md#how-a-recording-ends
#[test]
fn what_was_ignored_when_it_began_stays_ignored() {
    let sandbox = Sandbox::new();
    let recording = record_by(&sandbox, &["/bin/sh", "-c", "trap '' HUP QUIT; exec \"$0\" \"$@\""]);
    recording.signal(Signal::HUP);
    recording.signal(Signal::QUIT);
    let output = sandbox.command("emit").args(["1", "1"]).env("TRACE_RECORD", "1").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    recording.signal(Signal::INT);
    recording.succeed();
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 14);
}

/// What `timeout -s INT` sends, to the process and then to its group, is one wish.
//= docs/recording.md#how-a-recording-ends
#[test]
fn two_interrupts_at_once_are_one() {
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let mut stopped = sandbox.spawn_recorded("stubborn", &["stop"]);
    assert_eq!(stopped.line(), "ready");
    // The second comes while the first is obeyed: that takes until the program answers.
    trace_tests::scene::wait_until_frozen(stopped.pid());
    recording.signal(Signal::INT);
    recording.signal_group(Signal::INT);
    wait_for("it to wait", || recording.stderr_so_far().contains("waiting for stubborn").then_some(()));
    stopped.signal(Signal::CONT);
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 1);
}

/// The manager has nothing to say while the command is waited for.
//= docs/recording.md#how-a-recording-ends
#[test]
fn a_command_that_takes_its_time_to_end_is_waited_for() {
    let sandbox = Sandbox::new();
    let script = r#"trap 'sleep 4; exit 3' INT; "$0" 1 1; echo ready; while :; do sleep 0.1; done"#;
    let emit = trace_tests::build::program("emit").to_str().unwrap();
    let mut recording = sandbox.spawn("trace", &["record", "--", "sh", "-c", script, emit]);
    while recording.line() != "ready" {}
    recording.signal_group(Signal::INT);
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).events.len(), 14);
}

/// The manager waits for five seconds for a program that has stopped and does not go, and says nothing.
//= docs/recording.md#how-a-recording-ends
#[test]
fn a_program_that_does_not_go_is_waited_for() {
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let mut lingering = sandbox.spawn("hostile", &["lingering"]);
    assert_eq!(lingering.line(), "ready");
    recording.signal(Signal::INT);
    recording.succeed();
    assert!(sandbox.file("trace.fxt").exists());
}

/// Beside a manager that does nothing any more one Ctrl-C is enough, and what was recorded can be had.
//= docs/recording.md#how-a-recording-ends
#[test]
fn ctrl_c_ends_the_recording_beside_a_frozen_manager() {
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let output = sandbox.command("emit").args(["1", "1"]).env("TRACE_RECORD", "1").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let manager = sandbox.manager_pid().expect("a manager runs");
    trace_tests::scene::freeze(manager);
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("trace: the trace manager does not answer; trace.partial.fxt has"), "{stderr}");
    trace_tests::sandbox::kill(manager, Signal::KILL);
    trace_tests::scene::wait_for_death(manager);
    assert!(sandbox.trace(["recover"]).status.success());
    assert_eq!(Archive::read(&sandbox.file("recovered.fxt")).events.len(), 14);
}

/// Nothing is left behind by a Ctrl-C that comes before anything is recorded: here, while the manager of the
/// directory is asked for a session in vain.
//= docs/recording.md#how-a-recording-ends
#[test]
fn a_ctrl_c_before_anything_is_recorded_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let manager = wait_for("the manager", || {
        sandbox.runtime_dir().join("provisioner").exists().then(|| sandbox.manager_pid()).flatten()
    });
    trace_tests::scene::freeze(manager);
    let recording = sandbox.spawn("trace", &["record"]);
    wait_for("the output", || (sandbox.files() == ["trace.partial.fxt"]).then_some(()));
    recording.signal(Signal::INT);
    let output = recording.finish();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(sandbox.files(), [""; 0]);
}

/// Another process does something to the archive before it gets its name.
//= docs/recording.md#files
#[test]
fn an_archive_that_is_not_what_was_written_gets_no_name() {
    type Spoil = fn(&Sandbox);
    let cases: [(Spoil, &str); 3] = [
        (
            |sandbox| fs::remove_file(sandbox.file("trace.partial.fxt")).unwrap(),
            "was deleted while it was written",
        ),
        (
            |sandbox| {
                let file = fs::File::options().write(true).open(sandbox.file("trace.partial.fxt"));
                file.unwrap().set_len(100).unwrap();
            },
            "it was made shorter while it was written",
        ),
        (
            |sandbox| {
                fs::rename(sandbox.file("trace.partial.fxt"), sandbox.file("mine.fxt")).unwrap();
                fs::write(sandbox.file("trace.partial.fxt"), "text").unwrap();
            },
            "/mine.fxt",
        ),
    ];
    for (spoil, words) in cases {
        let sandbox = Sandbox::new();
        let recording = sandbox.spawn("trace", &["record", "-o", "trace.fxt"]);
        wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
        sandbox.spawn_recorded("emit", &["1", "20"]).succeed();
        let is_written =
            || fs::metadata(sandbox.file("trace.partial.fxt")).is_ok_and(|facts| facts.len() > 10_000);
        wait_for("its events to be written", || is_written().then_some(()));
        spoil(&sandbox);
        recording.signal(Signal::INT);
        let output = recording.finish();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(words), "{output:?}");
        assert!(!sandbox.file("trace.fxt").exists());
    }
}

/// A request may take the manager long or not: a frozen manager is distinguished from one that works.
#[test]
fn clients_do_not_wait_for_a_frozen_manager() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start", "-o", "s.fxt"]).status.success());
    let manager = sandbox.manager_pid().expect("a manager runs");
    trace_tests::scene::freeze(manager);
    for command in [&["snapshot", "-o", "x.fxt"][..], &["flush"]] {
        let output = sandbox.trace(command.iter().copied());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains("does not answer"), "{command:?}: {output:?}");
    }
    assert!(!sandbox.file("x.fxt").exists());
}

/// The archive is there, and what it is made into is not worth the wait.
//= docs/recording.md#how-a-recording-ends
#[test]
fn a_ctrl_c_ends_a_conversion_and_keeps_the_archive() {
    let sandbox = Sandbox::new();
    let page = sandbox.file("page");
    fs::write(&page, [0; 4096]).unwrap();
    let burst = ["burst", page.to_str().unwrap(), "1000000"].map(|text| match text {
        "burst" => path("burst"),
        text => text,
    });
    let options = ["record", "-o", "trace.json", "--buffer-size", "256", "--buffering-mode", "oneshot", "--"];
    let recording = sandbox.spawn("trace", &[&options[..], &burst].concat());
    // The file of the result grows only when the conversion has begun.
    let is_converting = || {
        let files = sandbox.files();
        let result = files.iter().find(|name| name.starts_with(".trace-"))?;
        (fs::metadata(sandbox.file(result)).ok()?.len() > 0).then_some(())
    };
    wait_for("the conversion", is_converting);
    recording.signal(Signal::INT);
    let output = recording.finish();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("what was recorded is in"), "{output:?}");
    assert!(sandbox.file("trace.json.partial.fxt").exists() && !sandbox.file("trace.json").exists());
    assert!(!sandbox.files().iter().any(|name| name.starts_with(".trace-")), "{:?}", sandbox.files());
}

/// A reader that takes nothing any more holds the command up until its user wants to stop.
//= docs/recording.md#how-a-recording-ends
#[test]
fn a_reader_that_takes_nothing_does_not_keep_a_recording_from_ending() {
    // How many signals, and whether the archive comes while it records.
    let kinds = [(1, "oneshot"), (2, "oneshot"), (2, "streaming")];
    for ((signals, mode), compress) in kinds.into_iter().flat_map(|kind| [(kind, "false"), (kind, "zstd:-7")])
    {
        let sandbox = Sandbox::new();
        let mut command = sandbox.command("trace");
        let stream = program("stream").to_str().unwrap();
        // Compressed, an archive has to be larger to fill the pipe.
        let size = if compress == "false" { "1" } else { "8" };
        command.args(["record", "-o", "-", "--buffering-mode", mode, "--buffer-size", size]);
        command.args([&format!("--compress={compress}"), "--detach", "--"]);
        command.args([stream, "1", "200000", "0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut recording = command.spawn().unwrap();
        let reader = recording.stdout.take().unwrap();
        // The pipe is full: how many bytes that are depends on how they were written.
        let mut full = (0, Instant::now());
        wait_for("the recording to wait", || {
            let unread = zx_sim::unread(&reader);
            if unread != full.0 {
                full = (unread, Instant::now());
            }
            (unread > 30_000 && full.1.elapsed() > Duration::from_millis(300)).then_some(())
        });
        for number in 0..signals {
            let begin = Instant::now();
            wait_for("another signal's time", || {
                (number == 0 || begin.elapsed() > Duration::from_millis(500)).then_some(())
            });
            kill(recording.id(), Signal::INT);
        }
        let output = recording.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{signals} {mode} {compress}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = "trace: cannot write the trace: aborted: the reader of the trace takes nothing; ";
        assert!(said.lines().any(|line| line.starts_with(expected)), "{signals} {mode} {compress}: {said}");
        drop(reader);
    }
}
