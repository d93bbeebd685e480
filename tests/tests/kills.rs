//! `kill -9` of the program, of the manager and of both, in each mode: at random times, and right before and after each of
//! their system calls.
//!
//! `KILLS` says how often each in each mode, 10 if nothing is said; a third as often at system calls. `KILLS_SEED` begins with
//! another time or call.
#![forbid(unsafe_code)]

use rustix::process::Signal;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};
use trace_tests::Sandbox;
use trace_tests::sandbox::Process;
use trace_tests::sandbox::kill;
use trace_tests::scene::{Scene, counted, is_dead, wait_for_death, was_recorded};
use trace_tests::tracer::{Side, Tracer, held};
use trace_tests::wait_for;
use zx_sim::Vmo;

/// Who is killed, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victims {
    Program,
    Manager,
    ProgramAndManager,
    ManagerAndProgram,
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

fn kill_often(mode: &str) {
    let times = number("KILLS").unwrap_or(10);
    let mut random = number("KILLS_SEED").unwrap_or(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for round in 0..times {
        let victims =
            [Victims::Program, Victims::Manager, Victims::ProgramAndManager, Victims::ManagerAndProgram];
        for victims in victims {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // A stream hands over a half from about 10 000 events on; a oneshot buffer is full at 20 000.
            let events = random % if mode == "oneshot" { 4000 } else { 25_000 };
            let between = Duration::from_micros(random >> 32 & 0x7ff);
            println!("{mode} {victims:?} round {round}: after {events} events, {between:?} apart");
            kill_once(mode, victims, events, between);
        }
    }
}

fn kill_once(mode: &str, victims: Victims, events: u64, between: Duration) {
    let mut scene = Scene::begin(mode, events);
    let before = counted(&scene.sandbox);
    let (program, manager) = (scene.burst, scene.manager);
    let pass = || {
        let until = Instant::now() + between;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    };
    match victims {
        Victims::Program => kill(program, Signal::KILL),
        Victims::Manager => kill(manager, Signal::KILL),
        Victims::ProgramAndManager => {
            kill(program, Signal::KILL);
            pass();
            kill(manager, Signal::KILL);
        }
        Victims::ManagerAndProgram => {
            kill(manager, Signal::KILL);
            pass();
            kill(program, Signal::KILL);
        }
    }
    if victims != Victims::Program {
        wait_for_death(manager);
    }
    if victims != Victims::Manager {
        wait_for_death(program);
    }
    if victims == Victims::Manager {
        // It goes on, and leaves its buffer; a ring that goes round while it is read would have gaps.
        let buffers =
            scene.sessions().into_iter().filter_map(|path| Vmo::open(&path.join("provider-1")).ok());
        for buffer in buffers {
            wait_for("the program to leave its buffer", || (!buffer.is_live().unwrap()).then_some(()));
        }
    }
    wait_for("the client to end", || (!scene.recording.is_running()).then_some(()));
    // What is in no archive is recovered; where the manager had time to write all of it there is nothing left.
    let mut files = vec!["trace.fxt"];
    let mut said = String::from("no session is left");
    if victims != Victims::Program && !scene.sessions().is_empty() {
        let output = scene.recover();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || text.contains("nothing to recover"), "{victims:?}: {text}");
        if output.status.success() {
            files.push("recovered.fxt");
        }
        said = text.into_owned();
    }
    // The program may go on after its manager, and is not recorded from when it has noticed.
    let exact = matches!(victims, Victims::Program | Victims::ProgramAndManager);
    let most: Vec<u64> = counted(&scene.sandbox).iter().map(|counted| counted + 1).collect();
    let least = if exact { counted(&scene.sandbox) } else { before };
    let what = format!("{mode} {victims:?} ({files:?}, {said:?})");
    scene.check_between(&what, mode != "circular", &files, &least, &most);
    kill(program, Signal::KILL);
}

/// Who stands at a system call when the kill comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Traced {
    Program,
    Manager,
    /// The manager, and the program is killed first.
    Both,
}

/// Events of each thread of a program that comes to its end: all fit into a oneshot buffer, others are used several times.
fn limit(mode: &str) -> u64 {
    if mode == "oneshot" { 1500 } else { 7000 }
}

/// A manager, a client that records, and a program that ends by itself; one of the former two stands still at a call, and
/// is killed. The number of the call that was reached, or how many there were.
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
    let is_program = traced == Traced::Program;
    let manager = spawn("trace", &["manager"], !is_program);
    let mut tracer = (!is_program).then(|| Tracer::new(&manager, "trace"));
    let socket = sandbox.runtime_dir().join("provisioner");
    let mut found = None;
    if let Some(tracer) = &mut tracer {
        found = tracer.run_to(call, side, || socket.exists());
    }
    if found.is_none() {
        wait_for("the manager to listen", || socket.exists().then_some(()));
    }
    let limit = limit(mode);
    let arguments = [page.to_str().unwrap(), &limit.to_string(), "10"];
    let burst = spawn("burst", &arguments, is_program);
    let options = ["record", "--buffering-mode", mode, "--buffer-size", "1"];
    let mut recording = spawn("trace", &options, false);
    let mut tracer = tracer.unwrap_or_else(|| Tracer::new(&burst, "trace-dispatch"));
    let mut is_interrupted = false;
    let mut is_over = |burst: &Process, recording: &mut Process| {
        let has_begun = || recording.stderr_so_far().contains("press Ctrl-C");
        if is_dead(burst.pid()) && !is_interrupted && has_begun() {
            is_interrupted = true;
            recording.signal(Signal::INT);
        }
        !recording.is_running()
    };
    let found = found.or_else(|| tracer.run_to(call, side, || is_over(&burst, &mut recording)));
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
    let victim = if is_program { burst.pid() } else { manager.pid() };
    wait_for_death(victim);
    wait_for("the client to end", || is_over(&burst, &mut recording).then_some(()));
    let scene = Scene::of(sandbox, recording, manager.pid(), burst.pid());
    wait_for("the program to end", || is_dead(burst.pid()).then_some(()));
    let mut files: Vec<&str> = Vec::new();
    if scene.sandbox.file("trace.fxt").exists() {
        files.push("trace.fxt");
    }
    if !is_program && !scene.sessions().is_empty() {
        let output = scene.recover();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || text.contains("nothing to recover"), "{text}");
        if output.status.success() {
            files.push("recovered.fxt");
        }
    }
    let counted = counted(&scene.sandbox);
    let most: Vec<u64> = counted.iter().map(|counted| (counted + 1).min(limit)).collect();
    // One that waited in vain for its manager is recorded by the next, from when it has found it.
    let from_first = mode != "circular" && has_started;
    let least = match traced {
        // It was not recorded.
        _ if !has_started => vec![0; counted.len()],
        Traced::Manager => before,
        Traced::Program | Traced::Both => counted,
    };
    let what = format!("{mode} {traced:?} {side:?} call {call} ({number})");
    scene.check_between(&what, from_first, &files, &least, &most);
    Ok(number)
}

/// A manager has told the program to start, and written that down.
fn has_started(sandbox: &Sandbox) -> bool {
    let entries = std::fs::read_dir(sandbox.runtime_dir()).unwrap().flatten();
    let manifests =
        entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("manifest.jsonl")).ok());
    manifests.into_iter().any(|text| text.contains("started"))
}

fn kill_at_calls(mode: &str) {
    let times = number("KILLS").unwrap_or(10).div_ceil(3);
    let mut random = number("KILLS_SEED").unwrap_or(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let calls = |traced| {
        let calls = kill_at(mode, traced, u64::MAX, Side::Before).expect_err("so many calls are not made");
        (traced, calls)
    };
    let all = [Traced::Program, Traced::Manager, Traced::Both].map(calls);
    for round in 0..times {
        for (traced, calls) in all {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Evenly over all calls, so that few rounds come everywhere too.
            let call = (round * calls / times + random % calls.div_ceil(times)).max(1);
            for side in [Side::Before, Side::After] {
                let number = kill_at(mode, traced, call, side);
                println!("{mode} {traced:?} {side:?} call {call} of {calls}: {number:?}");
            }
        }
    }
}

#[test]
fn oneshot_at_calls() {
    kill_at_calls("oneshot");
}

#[test]
fn circular_at_calls() {
    kill_at_calls("circular");
}

#[test]
fn streaming_at_calls() {
    kill_at_calls("streaming");
}

#[test]
fn oneshot() {
    kill_often("oneshot");
}

#[test]
fn circular() {
    kill_often("circular");
}

#[test]
fn streaming() {
    kill_often("streaming");
}
