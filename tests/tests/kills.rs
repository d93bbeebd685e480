//! `kill -9` of the program, of the manager and of both, at random times, in each mode.
//!
//! `KILLS` says how often each in each mode, 10 if nothing is said; `KILLS_SEED` begins with another time.
#![forbid(unsafe_code)]

use rustix::process::Signal;
use std::time::{Duration, Instant};
use trace_tests::sandbox::kill;
use trace_tests::scene::{Scene, counted, wait_for_death};
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
    if victims != Victims::Program && !scene.sessions().is_empty() {
        let output = scene.recover();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || text.contains("nothing to recover"), "{victims:?}: {text}");
        if output.status.success() {
            files.push("recovered.fxt");
        }
    }
    // The program may go on after its manager, and is not recorded from when it has noticed.
    let exact = matches!(victims, Victims::Program | Victims::ProgramAndManager);
    let most: Vec<u64> = counted(&scene.sandbox).iter().map(|counted| counted + 1).collect();
    let least = if exact { counted(&scene.sandbox) } else { before };
    scene.check_between(&format!("{mode} {victims:?}"), &files, &least, &most);
    kill(program, Signal::KILL);
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
