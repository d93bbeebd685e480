//! `kill -9` in each mode: of any process that takes part, at random times and around the ends of programs
//! and recordings; and of the program, the manager and both, right before and after each of their system
//! calls, those of the thread that writes the client's file included, and those while it takes over what a
//! program has recorded by itself; of the client at those of the thread that compresses its file; and of
//! programs that record themselves, with their children, at random times. [`ending`] has those at which an
//! archive has no end.
//!
//! `KILLS` says how many trials there are in all, 60 if nothing is said: each way to kill once. `KILLS_SEED`
//! is a word that decides when they happen; the gate takes the commit's hash. A failing trial names itself.
#![forbid(unsafe_code)]

#[path = "kills/any_process.rs"]
mod any_process;
#[path = "kills/ending.rs"]
mod ending;
#[path = "kills/hand_over.rs"]
mod hand_over;
#[path = "kills/own.rs"]
mod own;
#[path = "kills/random.rs"]
mod random;

use random::Random;
use rustix::process::Signal;
use std::os::unix::process::CommandExt;
use trace_tests::sandbox::Process;
use trace_tests::scene::{Scene, counted, is_dead, wait_for_death, was_recorded};
use trace_tests::tracer::{Side, Tracer, held};
use trace_tests::{Requirement, Sandbox, wait_for};

/// A way to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Any process, at any time.
    AnyProcess,
    AtCall(Traced, Side),
    /// A program that records itself, at any time.
    Own(own::Language),
}

/// Where what was recorded may be in the end, the best first.
const FILES: [&str; 5] =
    ["recovered.fxt", "trace.fxt", "trace.partial.fxt", "trace.fxt.zst", "trace.partial.fxt.zst"];
const MODES: [&str; 3] = ["oneshot", "circular", "streaming"];
const WAYS: [Way; 20] = [
    Way::AnyProcess,
    Way::AtCall(Traced::Program, Side::Before),
    Way::AnyProcess,
    Way::AtCall(Traced::Program, Side::After),
    Way::AtCall(Traced::Manager, Side::Before),
    Way::AnyProcess,
    Way::AtCall(Traced::Manager, Side::After),
    Way::AtCall(Traced::Both, Side::Before),
    Way::AnyProcess,
    Way::AtCall(Traced::Both, Side::After),
    Way::AtCall(Traced::Writer, Side::Before),
    Way::AtCall(Traced::Writer, Side::After),
    Way::AtCall(Traced::Compressor, Side::Before),
    Way::AtCall(Traced::Compressor, Side::After),
    Way::AtCall(Traced::Starting, Side::Before),
    Way::AtCall(Traced::Starting, Side::After),
    Way::AtCall(Traced::Taking, Side::Before),
    Way::AtCall(Traced::Taking, Side::After),
    Way::Own(own::Language::Rust),
    Way::Own(own::Language::C),
];
const KILLS: u64 = 60;

/// The trials of a mode.
fn kill_all(mode: &str) {
    let kills = std::env::var("KILLS").map_or(KILLS, |text| text.parse().expect("KILLS is a number"));
    let seed = std::env::var("KILLS_SEED").unwrap_or_default();
    // How often a thread calls the system, as far as it is known.
    let mut calls: Vec<(Traced, u64)> = Vec::new();
    let has_ptrace = Requirement::Ptrace.is_met(&format!("{mode}: kills at system calls"));
    for trial in 0..kills {
        let (way, of) =
            (WAYS[trial as usize / MODES.len() % WAYS.len()], MODES[trial as usize % MODES.len()]);
        if of != mode || (matches!(way, Way::AtCall(..)) && !has_ptrace) {
            continue;
        }
        let mut random = Random::new(&seed, trial);
        println!("trial {trial} of seed {seed:?}: {mode} {way:?}");
        match way {
            Way::AnyProcess => any_process::kill_once(of, &mut random),
            Way::Own(language) => own::kill_once(of, language, &mut random),
            Way::AtCall(traced, side) => {
                let is_handed_over = matches!(traced, Traced::Starting | Traced::Taking);
                let kill_at = if is_handed_over { hand_over::kill_at } else { kill_at };
                let known = calls.iter().find(|(of, _)| *of == traced).map(|(_, calls)| *calls);
                let calls = known.unwrap_or_else(|| {
                    let made = kill_at(mode, traced, u64::MAX, side).expect_err("so many calls are not made");
                    calls.push((traced, made));
                    made
                });
                let call = 1 + random.next() % calls;
                println!("at call {call} of about {calls}");
                // It makes fewer now and then, and ends by itself.
                let number = kill_at(mode, traced, call, side);
                println!("system call {number:?}");
            }
        }
    }
}

/// Who stands at a system call when the kill comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traced {
    Program,
    Manager,
    /// The manager, at a call of the thread that writes the file which the client has handed over.
    Writer,
    /// The manager, and the program is killed first.
    Both,
    /// The client, at a call of the thread that compresses its file.
    Compressor,
    /// A program that records itself before a recording runs.
    Starting,
    /// The manager that takes that over.
    Taking,
}

impl Traced {
    /// The thread whose calls count.
    fn thread(self) -> &'static str {
        match self {
            Self::Program | Self::Starting => "trace-dispatch",
            Self::Manager | Self::Both | Self::Taking => "trace",
            Self::Writer => "trace-writer",
            Self::Compressor => "trace-zstd",
        }
    }
}

/// Waits for a condition, for which a process that stands at each call has to be let go on.
fn wait_while_traced(
    traced: (&mut Option<Tracer>, &mut Option<u64>),
    (call, side): (u64, Side),
    what: &str,
    is_true: &mut dyn FnMut() -> bool,
) {
    let (tracer, found) = traced;
    if let (Some(tracer), None) = (tracer, &found) {
        *found = tracer.run_to(call, side, &mut *is_true);
    }
    if found.is_none() {
        wait_for(what, || is_true().then_some(()));
    }
}

/// Events of each thread of a program that comes to its end: all fit into a oneshot buffer, others are used
/// several times.
fn limit(mode: &str) -> u64 {
    if mode == "oneshot" { 1500 } else { 7000 }
}

/// A manager, a client that records, and a program that ends by itself; one of them stands still at a call,
/// and is killed. The number of the call that was reached, or how many there were.
fn kill_at(mode: &str, traced: Traced, call: u64, side: Side) -> Result<u64, u64> {
    let sandbox = Sandbox::new();
    let page = sandbox.file("page");
    std::fs::write(&page, [0; 4096]).unwrap();
    let spawn = |name: &str, arguments: &[&str], is_held: bool| {
        let mut command = sandbox.command(name);
        command.args(arguments).env("TRACE_RECORD", "1");
        if is_held {
            command = held(&command);
        }
        command.process_group(0);
        Sandbox::spawn_command(command)
    };
    let (is_program, is_client) = (traced == Traced::Program, traced == Traced::Compressor);
    let is_manager = !is_program && !is_client;
    let manager = spawn("trace", &["manager"], is_manager);
    let mut tracer = is_manager.then(|| Tracer::new(&manager, traced.thread()));
    let mut found = None;
    let at = (call, side);
    let socket = sandbox.runtime_dir().join("provisioner");
    wait_while_traced((&mut tracer, &mut found), at, "the manager to listen", &mut || socket.exists());
    let name = if is_client { "trace.fxt.zst" } else { "trace.fxt" };
    let options = ["record", "--buffering-mode", mode, "--buffer-size", "1", "-o", name];
    let recording = spawn("trace", &options, is_client);
    if is_client {
        tracer = Some(Tracer::new(&recording, traced.thread()));
    }
    let has_begun = |recording: &Process| recording.stderr_so_far().contains("press Ctrl-C");
    // Only one process may wait for one that is traced.
    let is_running = |recording: &Process| !is_dead(recording.pid());
    wait_while_traced((&mut tracer, &mut found), at, "the recording to begin", &mut || {
        has_begun(&recording) || !is_running(&recording)
    });
    let limit = limit(mode);
    let arguments = [page.to_str().unwrap(), &limit.to_string(), "10"];
    let burst = spawn("burst", &arguments, is_program);
    let mut tracer = tracer.unwrap_or_else(|| Tracer::new(&burst, traced.thread()));
    let mut is_interrupted = false;
    let mut is_over = |burst: &Process, recording: &Process| {
        if is_dead(burst.pid()) && !is_interrupted && has_begun(recording) {
            is_interrupted = true;
            recording.signal(Signal::INT);
        }
        !is_running(recording)
    };
    let found = found.or_else(|| tracer.run_to(call, side, || is_over(&burst, &recording)));
    let before = counted(&sandbox);
    let has_started = has_started(&sandbox) && was_recorded(&sandbox);
    if traced == Traced::Both {
        burst.signal(Signal::KILL);
        wait_for_death(burst.pid());
    }
    let Some(number) = found else {
        let calls = tracer.calls;
        tracer.kill();
        return Err(calls);
    };
    tracer.kill();
    let victim = match traced {
        Traced::Program | Traced::Starting => &burst,
        Traced::Compressor => &recording,
        Traced::Manager | Traced::Writer | Traced::Both | Traced::Taking => &manager,
    };
    wait_for_death(victim.pid());
    wait_for("the client to end", || is_over(&burst, &recording).then_some(()));
    let scene = Scene::of(sandbox, recording, manager.pid(), burst.pid());
    wait_for("the program to end", || is_dead(burst.pid()).then_some(()));
    let output = scene.recover();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || text.contains("nothing to recover"), "{text}");
    let file = FILES.into_iter().find(|name| scene.sandbox.file(name).exists());
    let files: Vec<&str> = file.into_iter().collect();
    let counted = counted(&scene.sandbox);
    let most: Vec<u64> = counted.iter().map(|counted| (counted + 1).min(limit)).collect();
    // One that waited in vain for its manager is recorded by the next, from when it has found it.
    let from_first = mode != "circular" && has_started;
    let least = match traced {
        // It was not recorded.
        _ if !has_started => vec![0; counted.len()],
        Traced::Manager | Traced::Writer | Traced::Compressor | Traced::Taking => before,
        Traced::Program | Traced::Both | Traced::Starting => counted,
    };
    let what = format!("{mode} {traced:?} {side:?} call {call} ({number})");
    scene.check_between(&what, from_first, &files, &least, &most);
    Ok(number)
}

/// A manager has started the program, and recorded that in its state.
fn has_started(sandbox: &Sandbox) -> bool {
    let entries = std::fs::read_dir(sandbox.runtime_dir()).unwrap().flatten();
    let manifests =
        entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("manifest.jsonl")).ok());
    manifests.into_iter().any(|text| text.contains("started"))
}

#[test]
fn oneshot() {
    kill_all("oneshot");
}

#[test]
fn circular() {
    kill_all("circular");
}

#[test]
fn streaming() {
    kill_all("streaming");
}
