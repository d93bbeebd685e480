//! `kill -9` of a program that records itself from its first line on, or of the manager that takes over what
//! it has recorded, right before and after each of their system calls: from the program's first one to the
//! end of the recording.

use super::Traced;
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use trace_tests::Sandbox;
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::{Scene, counted, is_dead, numbers, stderr, wait_for_death};
use trace_tests::tracer::{Side, Tracer, held};
use trace_tests::wait_for;

/// Events of the program before there is a manager, and after the recording has begun.
const EVENTS: u64 = 400;

/// What may be there in the end: the recording's file, and what has been recovered of it and of the program.
const FILES: [&str; 4] = ["trace.fxt", "trace.partial.fxt", "recovered.fxt", "recovered.2.fxt"];

struct Stage {
    sandbox: Sandbox,
    traced: Traced,
    burst: Process,
    manager: Option<Process>,
    recording: Option<Process>,
    /// What each thread had written when the end of the recording was requested.
    recorded: Option<Vec<u64>>,
}

impl Stage {
    fn spawn(sandbox: &Sandbox, name: &str, arguments: &[&str], is_held: bool) -> Process {
        let mut command = sandbox.command(name);
        command.args(arguments);
        if name == "burst" {
            command.env("TRACE_STARTUP", "burst").env("TRACE_STARTUP_BUFFER_SIZE", "64");
        }
        if is_held {
            command = held(&command);
        }
        command.process_group(0);
        Sandbox::spawn_command(command)
    }

    fn sum(&self) -> u64 {
        counted(&self.sandbox).iter().sum()
    }

    /// The recording has begun, or the client has given up.
    fn has_begun(&self) -> bool {
        let recording = self.recording.as_ref();
        recording.is_some_and(|client| client.stderr_so_far().contains("press Ctrl-C")) || self.has_ended()
    }

    fn has_ended(&self) -> bool {
        self.recording.as_ref().is_none_or(|client| is_dead(client.pid()))
    }

    fn stop(&mut self) {
        if self.recorded.is_none() {
            self.recorded = Some(counted(&self.sandbox));
            self.recording.iter().for_each(|client| client.signal(Signal::INT));
        }
    }

    /// Plays it to the end, or until the call is reached.
    fn play(&mut self, mode: &str, (call, side): (u64, Side)) -> (Tracer, Option<u64>) {
        if self.traced == Traced::Starting {
            let mut tracer = Tracer::new(&self.burst, self.traced.thread());
            return match tracer.run_to(call, side, || self.sum() > EVENTS) {
                Some(found) => (tracer, Some(found)),
                None => self.record(mode, tracer, (call, side)),
            };
        }
        wait_for("events of the program", || (self.sum() > EVENTS).then_some(()));
        let manager = Self::spawn(&self.sandbox, "trace", &["manager"], true);
        let tracer = Tracer::new(&manager, self.traced.thread());
        self.manager = Some(manager);
        self.record(mode, tracer, (call, side))
    }

    fn record(&mut self, mode: &str, mut tracer: Tracer, (call, side): (u64, Side)) -> (Tracer, Option<u64>) {
        if self.manager.is_none() {
            self.manager = Some(Self::spawn(&self.sandbox, "trace", &["manager"], false));
        }
        let socket = self.sandbox.runtime_dir().join("provisioner");
        if let Some(found) = tracer.run_to(call, side, || socket.exists()) {
            return (tracer, Some(found));
        }
        let options = ["record", "--buffering-mode", mode, "--buffer-size", "1", "-o", "trace.fxt"];
        self.recording = Some(Self::spawn(&self.sandbox, "trace", &options, false));
        if let Some(found) = tracer.run_to(call, side, || self.has_begun()) {
            return (tracer, Some(found));
        }
        let before = self.sum();
        if let Some(found) = tracer.run_to(call, side, || self.sum() > before + EVENTS) {
            return (tracer, Some(found));
        }
        self.stop();
        let found = tracer.run_to(call, side, || self.has_ended());
        (tracer, found)
    }

    /// Recovers what the manager and the program have left, which are two recordings until one is part of the
    /// other. What was said.
    fn recover(&self, what: &str) -> String {
        let [file, second] = [FILES[2], FILES[3]];
        let output = self.sandbox.trace(["recover", "-o", file]);
        let mut said = stderr(&output);
        if said.contains("several recordings can be recovered") {
            let [one, other] = &Scene::sessions_of(&self.sandbox)[..] else { panic!("{what}: {said}") };
            for (session, file) in [(one, file), (other, second)] {
                let output = self.sandbox.trace(["recover", session.to_str().unwrap(), "-o", file]);
                assert!(output.status.success(), "{what}: {said}{}", stderr(&output));
                said += &stderr(&output);
            }
            let numbers = [file, second].map(|file| numbers(&self.sandbox, &[file]));
            assert!(are_disjoint(&numbers), "{what}: {said}");
        } else {
            assert!(output.status.success() || said.contains("nothing to recover"), "{what}: {said}");
        }
        said
    }

    fn check(mut self, tracer: Tracer, what: &str) {
        let before = counted(&self.sandbox);
        tracer.kill();
        let is_program = self.traced == Traced::Starting;
        let victim = if is_program { Some(&self.burst) } else { self.manager.as_ref() };
        wait_for_death(victim.expect("it runs").pid());
        // All that the program has written counts, if it was killed before the end was requested.
        let exact = (is_program && self.recorded.is_none()).then(|| counted(&self.sandbox));
        wait_for("the recording to begin", || self.has_begun().then_some(()));
        self.stop();
        wait_for("the client to end", || self.has_ended().then_some(()));
        kill(self.burst.pid(), Signal::KILL);
        wait_for_death(self.burst.pid());
        let least = match (exact, self.recorded.take()) {
            (Some(exact), _) => exact,
            (None, Some(recorded)) => {
                recorded.iter().zip(before).map(|(one, other)| *one.min(&other)).collect()
            }
            (None, None) => before,
        };
        let most: Vec<u64> = counted(&self.sandbox).iter().map(|counted| counted + 1).collect();
        let said = self.recover(what);
        let files: Vec<&str> = FILES.into_iter().filter(|name| self.sandbox.file(name).exists()).collect();
        let pid = |process: Option<&Process>| process.map_or(0, Process::pid);
        let (manager, burst) = (pid(self.manager.as_ref()), self.burst.pid());
        let recording = self.recording.take().unwrap_or(self.burst);
        let scene = Scene::of(self.sandbox, recording, manager, burst);
        let what = format!("{what}, {files:?}: {said}");
        // A manager that lives has no state that could be recovered once more.
        let apart: Vec<_> = files.iter().map(|file| scene.numbers(&[file])).collect();
        assert!(!is_program || are_disjoint(&apart), "{what}");
        // The program's own buffer has the beginning, and a recording's one does not get full.
        scene.check_between(&what, true, &files, &least, &most);
    }
}

fn are_disjoint(archives: &[BTreeMap<u64, BTreeSet<u64>>]) -> bool {
    archives.iter().enumerate().all(|(index, one)| {
        let others = &archives[..index];
        let is_other = |thread, own: &BTreeSet<u64>| {
            others.iter().all(|other| other.get(thread).is_none_or(|other| own.is_disjoint(other)))
        };
        one.iter().all(|(thread, own)| is_other(thread, own))
    })
}

/// The number of the call at which one was killed, or how many there were.
pub fn kill_at(mode: &str, traced: Traced, call: u64, side: Side) -> Result<u64, u64> {
    let sandbox = Sandbox::new();
    let page = sandbox.file("page");
    std::fs::write(&page, [0; 4096]).unwrap();
    let arguments = [page.to_str().unwrap(), &u64::MAX.to_string(), "500"];
    let burst = Stage::spawn(&sandbox, "burst", &arguments, traced == Traced::Starting);
    let mut stage = Stage { sandbox, traced, burst, manager: None, recording: None, recorded: None };
    let (tracer, found) = stage.play(mode, (call, side));
    let Some(number) = found else {
        let calls = tracer.calls;
        tracer.kill();
        return Err(calls);
    };
    stage.check(tracer, &format!("{mode} {traced:?} {side:?} call {call} ({number})"));
    Ok(number)
}
