//! What is left when everybody has died.

use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use trace_tests::sandbox::{Process, kill};
use trace_tests::{Archive, Sandbox, wait_for};

const THREADS: usize = 4;
const MODES: [&str; 3] = ["oneshot", "circular", "streaming"];

/// A recording of `burst`, under way.
struct Scene {
    sandbox: Sandbox,
    recording: Process,
    manager: u32,
    burst: u32,
}

impl Scene {
    /// Waits until so many events were written, by all threads together.
    fn begin(mode: &str, events: u64) -> Self {
        let sandbox = Sandbox::new();
        let page = sandbox.file("page");
        fs::write(&page, [0; 4096]).unwrap();
        let burst = trace_tests::build::program("burst").to_str().unwrap();
        let options = ["record", "--buffering-mode", mode, "--buffer-size", "1", "--", burst];
        let page_name = page.to_str().unwrap();
        let more = if mode == "oneshot" { "100" } else { "10" };
        let limit = u64::MAX.to_string();
        let arguments = [&options[..], &[page_name, &limit, more]].concat();
        let recording = sandbox.spawn("trace", &arguments);
        wait_for("the program to write", || (counted(&sandbox).iter().sum::<u64>() > events).then_some(()));
        let children = format!("/proc/{0}/task/{0}/children", recording.pid());
        let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let children = fs::read_to_string(children).unwrap();
        let mut pids = children.split_whitespace().map(|pid| pid.parse::<u32>().unwrap());
        let burst = pids.find(|pid| name(pid).trim() == "burst").expect("the program runs");
        let manager = sandbox.manager_pid().expect("a manager runs");
        Self { sandbox, recording, manager, burst }
    }

    fn sessions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.sandbox.runtime_dir()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("session-")).collect()
    }

    fn recover(&self) -> Output {
        self.sandbox.trace(["recover"])
    }

    /// What each thread's events in some archives are, and whether an archive has nothing twice.
    fn numbers(&self, files: &[&str]) -> BTreeMap<u64, BTreeSet<u64>> {
        let mut all: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for file in files {
            let archive = Archive::read_prefix(&self.sandbox.file(file));
            let mut own = BTreeSet::new();
            for event in &archive.events {
                let (thread, number) = (event.u64("thread"), event.u64("n"));
                assert!(own.insert((thread, number)), "{file}: thread {thread}, event {number} twice");
                all.entry(thread).or_default().insert(number);
            }
        }
        all
    }

    /// Everything that was counted is in the archives, and at most one event more of each thread. A circular buffer has the
    /// last of it.
    fn check(&self, mode: &str, files: &[&str], counted: &[u64]) {
        let numbers = self.numbers(files);
        for (thread, counted) in (0..).zip(counted) {
            let found = numbers.get(&thread).cloned().unwrap_or_default();
            let last = found.last().map_or(0, |last| last + 1);
            assert!(last == *counted || last == counted + 1, "{mode}, thread {thread}: {last} of {counted}");
            let first = found.first().copied().unwrap_or(0);
            assert!(mode == "circular" || first == 0, "{mode}, thread {thread}: begins with {first}");
            assert_eq!(found.len() as u64, last - first, "{mode}, thread {thread}: there are gaps");
        }
    }
}

/// What each thread says it has written.
fn counted(sandbox: &Sandbox) -> Vec<u64> {
    let bytes = fs::read(sandbox.file("page")).expect("the page");
    bytes.as_chunks::<8>().0.iter().take(THREADS).map(|word| u64::from_le_bytes(*word)).collect()
}

/// A process that does not run any more, and is not dead either: what it has written stands still.
fn freeze(pid: u32) {
    kill(pid, Signal::STOP);
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T')).then_some(())
    };
    wait_for("a process to stop", state);
}

fn wait_for_death(pid: u32) {
    wait_for("a process to die", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let is_zombie = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
        (stat.is_empty() || is_zombie).then_some(())
    });
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

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
            wait_for("the client to give up", || scene.sandbox.file("trace.fxt").exists().then_some(()));
            let output = scene.recover();
            assert!(output.status.success(), "{mode}: {output:?}");
            assert!(stderr(&output).contains("events of 1 provider in recovered.fxt"), "{output:?}");
            scene.check(mode, &["trace.fxt", "recovered.fxt"], &counted);
            if mode != "streaming" {
                scene.check(mode, &["recovered.fxt"], &counted);
            }
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
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("still has its buffer"), "{output:?}");
    assert!(session.join("provider-1").exists());
    kill(scene.burst, Signal::KILL);
    wait_for_death(scene.burst);
    let output = delete();
    assert!(output.status.success(), "{output:?}");
    assert!(scene.sessions().is_empty());
}

#[test]
fn what_was_cut_off_is_told_until_it_is_recovered() {
    let scene = Scene::begin("circular", 1000);
    freeze(scene.burst);
    kill(scene.manager, Signal::KILL);
    wait_for_death(scene.manager);
    kill(scene.burst, Signal::KILL);
    wait_for_death(scene.burst);
    let remark = "a recording of burst was cut off";
    let output = scene.sandbox.trace(["check", "nothing.fxt"]);
    assert!(stderr(&output).contains(remark), "{output:?}");
    let list = || String::from_utf8(scene.sandbox.trace(["recover", "--list"]).stdout).unwrap();
    assert!(list().contains("to be recovered  1 MiB  burst"), "{}", list());
    assert!(scene.recover().status.success());
    let output = scene.sandbox.trace(["check", "nothing.fxt"]);
    assert!(!stderr(&output).contains(remark), "{output:?}");
    assert!(list().contains(" recovered "), "{}", list());
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
    let output = scene.recover();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nothing to recover"), "{output:?}");
}

/// The client dies, and nobody wants the archive; the manager leaves the buffers.
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

/// An ordinary recording leaves nothing behind.
#[test]
fn after_an_ordinary_end_there_is_nothing_to_recover() {
    let sandbox = Sandbox::new();
    sandbox.record(&[], "emit", &["1", "1"]);
    let entries = fs::read_dir(sandbox.runtime_dir()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("session-")), "{names:?}");
    let output = sandbox.trace(["recover", "--list"]);
    assert!(stderr(&output).contains("nothing was left behind"), "{output:?}");
}
