//! Recovery of what is left when all processes have died.

use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use trace_format::loss::LossCode;
use trace_tests::sandbox::kill;
use trace_tests::scene::{Scene, counted, freeze, stderr, wait_for_death};
use trace_tests::{Archive, Sandbox, wait_for};

const MODES: [&str; 3] = ["oneshot", "circular", "streaming"];

//= docs/recovery.md#what-is-recovered
#[test]
fn manager_and_program_die_and_every_committed_event_is_recovered() {
    for mode in MODES {
        for manager_first in [true, false] {
            let scene = Scene::begin(mode, 3000);
            let counted = if manager_first {
                freeze(scene.burst);
                let counted = counted(&scene.sandbox);
                kill(scene.manager, Signal::KILL);
                wait_for_death(scene.manager);
                kill(scene.burst, Signal::KILL);
                counted
            } else {
                freeze(scene.manager);
                kill(scene.burst, Signal::KILL);
                wait_for_death(scene.burst);
                let counted = counted(&scene.sandbox);
                kill(scene.manager, Signal::KILL);
                counted
            };
            wait_for_death(scene.manager);
            wait_for_death(scene.burst);
            scene.wait_for_client();
            assert!(scene.sandbox.file("trace.partial.fxt").exists());
            assert!(!scene.sandbox.file("trace.fxt").exists());
            let output = scene.recover();
            assert!(output.status.success(), "{mode}: {output:?}");
            assert!(stderr(&output).contains("events of 1 program in recovered.fxt"), "{output:?}");
            scene.check(mode, &["recovered.fxt"], &counted);
            assert!(scene.sessions().is_empty());
            assert!(!scene.sandbox.file("trace.partial.fxt").exists());
        }
    }
}

/// A program that outlives its manager goes on; what it had recorded can be had at once.
#[test]
fn what_a_living_program_recorded_is_recovered_and_kept_until_it_is_deleted() {
    let scene = Scene::begin("oneshot", 1000);
    // When the client ends, the kernel wakes frozen processes of its group.
    freeze(scene.recording.pid());
    freeze(scene.burst);
    let counted = counted(&scene.sandbox);
    kill(scene.manager, Signal::KILL);
    wait_for_death(scene.manager);
    let [session] = &scene.sessions()[..] else { panic!("{:?}", scene.sessions()) };
    let output = scene.recover();
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("still running"), "{output:?}");
    scene.check("oneshot", &["recovered.fxt"], &counted);
    let delete = || scene.sandbox.trace(["recover", "--delete", session.to_str().unwrap()]);
    let output = delete();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(stderr(&output).contains("still has its buffer"), "{output:?}");
    assert!(session.join("provider-1").exists());
    kill(scene.burst, Signal::KILL);
    wait_for_death(scene.burst);
    let output = delete();
    assert!(output.status.success(), "{output:?}");
    assert!(scene.sessions().is_empty());
}

#[test]
fn an_interrupted_recording_is_reported_until_it_is_recovered() {
    let scene = Scene::begin("circular", 1000);
    freeze(scene.burst);
    kill(scene.manager, Signal::KILL);
    wait_for_death(scene.manager);
    kill(scene.burst, Signal::KILL);
    wait_for_death(scene.burst);
    let remark = "a recording of burst was cut off";
    let output = scene.sandbox.trace(["check", "nothing.fxt"]);
    assert!(stderr(&output).contains(remark), "{output:?}");
    scene.wait_for_client();
    let list = String::from_utf8(scene.sandbox.trace(["recover", "--list"]).stdout).unwrap();
    assert!(list.contains("to be recovered"), "{list}");
    let [session] = &scene.sessions()[..] else { panic!("{:?}", scene.sessions()) };
    let partial = scene.sandbox.file("trace.partial.fxt");
    let buffer = session.join("provider-1");
    assert!(list.contains(&format!("{}  the recording's own file", partial.display())), "{list}");
    // What there is of it by now: memory is allocated while it is written.
    let allocated = fs::metadata(&buffer).unwrap().blocks() * 512;
    assert!((256 << 10..=(1 << 20) + (8 << 10)).contains(&allocated), "{allocated}");
    let size = match allocated >> 20 {
        0 => format!("{:.2} KiB", allocated as f64 / 1024.0),
        _ => "1.00 MiB".to_owned(),
    };
    let whose = format!("{size}  {}  buffer of burst (pid {})", buffer.display(), scene.burst);
    assert!(list.contains(&whose), "{list}");
    let doctor = scene.sandbox.trace(["doctor", "--no-self-trace", "--json"]);
    let findings: serde_json::Value = trace_tests::json(&doctor);
    let found =
        findings.as_array().unwrap().iter().find(|found| found["capability"] == "leftover recordings");
    let detail = found.unwrap()["detail"].as_str().unwrap();
    assert!(detail.starts_with("1 interrupted, with "), "{detail}");
    // It is not a week old.
    let output = scene.sandbox.trace(["recover", "--delete"]);
    assert!(
        output.status.success() && stderr(&output).contains("nothing is older than 7 days"),
        "{output:?}"
    );
    assert_eq!(scene.sessions().len(), 1);
    let output = scene.sandbox.trace(["recover", "--delete", "--older-than", "0"]);
    assert!(output.status.success() && stderr(&output).contains("deleted"), "{output:?}");
    assert!(scene.sessions().is_empty());
    let output = scene.sandbox.trace(["check", "nothing.fxt"]);
    assert!(!stderr(&output).contains(remark), "{output:?}");
    let output = scene.recover();
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("nothing to recover"), "{output:?}");
}

/// A command that cannot be run ends the recording, of which nothing is left behind, although another program
/// has recorded.
#[test]
fn a_mistyped_command_leaves_nothing_to_be_recovered() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    wait_for("the manager", || sandbox.manager_pid());
    let mut program = sandbox.spawn("emit", &["1", "500", "--wait"]);
    program.line();
    let providers = || sandbox.trace(["list-programs"]).stdout;
    wait_for("the program", || String::from_utf8_lossy(&providers()).contains("emit").then_some(()));
    for (command, code) in [("./nonexistent", 127), ("/etc/passwd", 126)] {
        let output = sandbox.trace(["record", "-o", "none.fxt", "--", command]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let output = sandbox.trace(["recover", "--list"]);
        assert!(stderr(&output).contains("there is nothing to recover"), "{command}: {output:?}");
        assert!(Scene::sessions_of(&sandbox).is_empty(), "{command}");
        assert!(!sandbox.file("none.fxt").exists() && !sandbox.file("none.partial.fxt").exists());
    }
    program.close_stdin();
    program.succeed();
}

/// The client dies, so that the archive has no recipient; the manager leaves the buffers.
#[test]
fn a_client_that_dies_leaves_its_recording_to_be_recovered() {
    for mode in ["oneshot", "circular"] {
        let scene = Scene::begin(mode, 1000);
        let before = counted(&scene.sandbox);
        scene.recording.signal(Signal::KILL);
        let is_left = || fs::read_to_string(scene.sandbox.runtime_dir().join("manager.log")).ok();
        wait_for("the session to end", || is_left()?.contains("trace recover").then_some(()));
        let after = counted(&scene.sandbox);
        let output = scene.recover();
        assert!(output.status.success(), "{mode}: {output:?}");
        for (thread, found) in scene.numbers(&["recovered.fxt"]) {
            let (last, thread) = (found.last().unwrap() + 1, thread as usize);
            assert!((before[thread]..=after[thread]).contains(&last), "{mode}, thread {thread}: {last}");
        }
        kill(scene.burst, Signal::KILL);
    }
}

/// A user cannot know whether the manager has noticed yet that its client has died.
//= docs/recovery.md#recovery
#[test]
fn a_recording_whose_end_the_manager_has_not_noticed_is_recovered() {
    let scene = Scene::begin("oneshot", 1000);
    freeze(scene.burst);
    let counted = counted(&scene.sandbox);
    freeze(scene.manager);
    scene.recording.signal(Signal::KILL);
    wait_for_death(scene.recording.pid());
    let mut recovery = scene.sandbox.spawn("trace", &["recover"]);
    let descriptors = format!("/proc/{}/fd", recovery.pid());
    let is_connected = || {
        let mut entries = fs::read_dir(&descriptors).ok()?.flatten();
        entries
            .any(|entry| {
                fs::read_link(entry.path()).is_ok_and(|link| link.to_string_lossy().starts_with("socket:"))
            })
            .then_some(())
    };
    wait_for("the recovery to ask the manager", || {
        is_connected().or_else(|| (!recovery.is_running()).then_some(()))
    });
    kill(scene.manager, Signal::CONT);
    let output = recovery.finish();
    assert!(output.status.success(), "{output:?}");
    scene.check("oneshot", &["recovered.fxt"], &counted);
    kill(scene.burst, Signal::KILL);
}

/// The manager dies in the middle of a half that the client has taken a part of: what is in no file of the
/// client's is recovered.
//= docs/recovery.md#what-is-recovered
#[test]
fn a_half_that_was_given_in_part_is_recovered() {
    // A half is more than the socket takes.
    let options = ["--buffer-size", "8", "--write-period", "1h"];
    let scene = Scene::begin_with("streaming", &options, 1000);
    // It takes nothing more, so that a half stays half sent.
    freeze(scene.recording.pid());
    let [session] = &scene.sessions()[..] else { panic!("{:?}", scene.sessions()) };
    let manifest = || fs::read_to_string(session.join("manifest.jsonl")).unwrap();
    wait_for("a half to be given in part", || {
        manifest().lines().last().is_some_and(|line| line.contains("\"part\"")).then_some(())
    });
    freeze(scene.burst);
    let counted = counted(&scene.sandbox);
    kill(scene.manager, Signal::KILL);
    wait_for_death(scene.manager);
    kill(scene.burst, Signal::KILL);
    wait_for_death(scene.burst);
    scene.recording.signal(Signal::CONT);
    scene.wait_for_client();
    let output = scene.recover();
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("bytes of it come from"), "{output:?}");
    scene.check("streaming", &["recovered.fxt"], &counted);
}

/// What the client's socket had taken, and what stands behind it, is not lost with the client. Of a file that
/// was handed over, nothing waits for the client.
//= docs/recovery.md#what-is-recovered
//= docs/protocol.md#files-that-are-handed-over
#[test]
fn a_frozen_client_that_dies_loses_nothing() {
    let ways = [&["--max-size", "1GiB"][..], &[]];
    for (mode, way) in MODES.iter().flat_map(|mode| ways.map(|way| (*mode, way))) {
        let is_handed_over = way.is_empty();
        let sandbox = Sandbox::new();
        let emits = ["1", "500"];
        let output = sandbox.record(&["-o", "whole.fxt", "--buffering-mode", mode], "emit", &emits);
        assert!(output.status.success(), "{output:?}");
        let recording = sandbox.spawn("trace", &[&["record", "--buffering-mode", mode], way].concat());
        wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
        let mut program = sandbox.spawn("emit", &[&emits[..], &["--wait", "--on"]].concat());
        assert_eq!((program.line().parse(), program.line()), (Ok(program.pid()), "on".to_owned()));
        freeze(recording.pid());
        program.close_stdin();
        program.succeed();
        // Its buffer is being read, and cannot be given up where the client has to confirm it.
        let sessions = Scene::sessions_of(&sandbox);
        let [session] = &sessions[..] else { panic!("{sessions:?}") };
        let manifest = || fs::read_to_string(session.join("manifest.jsonl")).unwrap();
        let awaited = if is_handed_over { "\"archived\":{" } else { "\"end\"" };
        wait_for("the rest to be read", || manifest().contains(awaited).then_some(()));
        recording.signal(Signal::KILL);
        recording.finish();
        wait_for("the session to end", || manifest().contains("\"ended\"").then_some(()));
        assert_eq!(session.join("provider-2").exists(), !is_handed_over, "{mode}: {}", manifest());
        assert_eq!(manifest().contains("\"archived\":{"), is_handed_over, "{mode}: {}", manifest());
        // What was recovered before stays.
        fs::copy(sandbox.file("whole.fxt"), sandbox.file("recovered.fxt")).unwrap();
        let output = sandbox.trace(["recover"]);
        assert!(output.status.success(), "{mode}: {output:?}");
        let events = |name: &str| Archive::read(&sandbox.file(name)).events.len();
        assert_eq!(events("recovered-1.fxt"), events("whole.fxt"), "{mode}");
        let bytes = |name| fs::read(sandbox.file(name)).unwrap();
        assert_eq!(bytes("recovered.fxt"), bytes("whole.fxt"), "{mode}");
        assert!(Scene::sessions_of(&sandbox).is_empty());
    }
}

#[test]
fn what_is_being_recorded_is_left_to_its_recording() {
    let scene = Scene::begin("circular", 1000);
    let [session] = &scene.sessions()[..] else { panic!("{:?}", scene.sessions()) };
    let output = scene.sandbox.trace(["recover", session.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("is being recorded right now"), "{output:?}");
    let output = scene.sandbox.trace(["recover", "--delete", session.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(session.join("provider-1").exists());
    let list = scene.sandbox.trace(["recover", "--list", "--machine", "json"]);
    let list: serde_json::Value = trace_tests::json(&list);
    assert_eq!((&list[0]["state"], &list[0]["programs"][0]["name"]), (&"running".into(), &"burst".into()));
    kill(scene.burst, Signal::KILL);
}

/// An ordinary recording leaves nothing behind.
#[test]
fn after_an_ordinary_end_there_is_nothing_to_recover() {
    let sandbox = Sandbox::new();
    sandbox.record(&[], "emit", &["1", "1"]);
    let entries = fs::read_dir(sandbox.runtime_dir()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("session-")), "{names:?}");
    let output = sandbox.trace(["recover", "--list"]);
    assert!(stderr(&output).contains("there is nothing to recover"), "{output:?}");
}

/// Whatever keeps a piece from being read: nothing is deleted, and when it can be read all is recovered.
//= docs/recovery.md#what-is-recovered
#[test]
fn what_cannot_be_read_is_not_deleted() {
    let scene = Scene::begin("streaming", 30_000);
    let partial = scene.sandbox.file("trace.partial.fxt");
    let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let [session] = &scene.sessions()[..] else { panic!("{:?}", scene.sessions()) };
    // Without a part, there is nothing but the buffer.
    wait_for("a part", || (length(&partial) > length(&session.join("head.fxt"))).then_some(()));
    freeze(scene.recording.pid());
    freeze(scene.burst);
    let counted = counted(&scene.sandbox);
    for pid in [scene.recording.pid(), scene.manager, scene.burst] {
        kill(pid, Signal::KILL);
        wait_for_death(pid);
    }
    let buffer = session.join("provider-1");
    let away = |path: &Path| path.with_extension("away");
    type Replace = fn(&Path);
    let spoil: [(&Path, Replace); 4] = [
        (&buffer, |_| {}),
        (&buffer, |path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap()),
        (&buffer, |path| fs::write(path, [0xff; 1000]).unwrap()),
        (&partial, |_| {}),
    ];
    for (path, replace) in spoil {
        fs::rename(path, away(path)).unwrap();
        replace(path);
        let output = scene.recover();
        assert_eq!(output.status.code(), Some(6), "{output:?}");
        assert!(stderr(&output).contains("nothing was deleted"), "{output:?}");
        assert!(session.exists() && (partial.exists() || path == partial));
        if path == buffer {
            // Other commands go on to remind of the client's file.
            let output = scene.sandbox.trace(["check", "nothing.fxt"]);
            assert!(stderr(&output).contains("a recording of burst was cut off"), "{output:?}");
        }
        {
            let losses = Archive::read_prefix(&scene.sandbox.file("recovered.fxt")).losses;
            assert!(losses.iter().any(|loss| loss.reason == LossCode::REST_MISSING), "{losses:?}");
        }
        let _ = fs::remove_file(path);
        fs::rename(away(path), path).unwrap();
    }
    // The recording's own file is cut, or damaged in the middle: what was behind that is nowhere else.
    let whole = fs::read(&partial).unwrap();
    let mut damaged = whole.clone();
    let middle = whole.len() / 16 * 8;
    damaged[middle..middle + 512].fill(0xff);
    for spoiled in [&whole[..1000], &damaged] {
        fs::write(&partial, spoiled).unwrap();
        let output = scene.recover();
        assert_eq!(output.status.code(), Some(6), "{output:?}");
        assert!(stderr(&output).contains("nothing was deleted"), "{output:?}");
        // Which of its records is cut by the damage is left to chance.
        let whys = ["bytes of the recording's own file can be read, which had", "finding of kind malformed"];
        assert!(whys.iter().any(|why| stderr(&output).contains(why)), "{output:?}");
        let checked = scene.sandbox.trace(["check", "--json", "recovered.fxt"]);
        let losses = trace_tests::Answer::of(&checked).losses;
        let is_there = losses.iter().any(|loss| loss["code"] == LossCode::REST_MISSING.0);
        assert!(is_there, "{losses:?}");
        assert_eq!(fs::read(&partial).unwrap(), spoiled);
    }
    fs::write(&partial, &whole).unwrap();
    // Too few descriptors for all of it.
    let tool = trace_tests::build::program("trace").to_str().unwrap();
    let mut recover = std::process::Command::new("sh");
    recover.args(["-c", r#"ulimit -n 8; exec "$0" recover"#, tool]);
    recover.current_dir(scene.sandbox.work_dir()).env("TRACE_RUNTIME_DIR", scene.sandbox.runtime_dir());
    let output = recover.output().unwrap();
    assert!(!output.status.success() && session.exists() && partial.exists(), "{output:?}");
    let output = scene.recover();
    assert!(output.status.success(), "{output:?}");
    scene.check("streaming", &["recovered.fxt"], &counted);
    assert!(!session.exists() && !partial.exists());
}
