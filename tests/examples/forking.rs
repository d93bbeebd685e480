//! Forks while it is recorded.
//!
//! `forking NAME…` does these, one after the other, each with a child that it waits for:
//!
//! `forking --polled NAME…` has a provider without a thread, `forking --twice NAME…` two of them.
//!
//! * `events`: the child records three events and exits without clean-up;
//! * `silent`: the child records nothing;
//! * `drop`: the child returns from `main`;
//! * `own`: the child makes a provider of its own named "own" and records an event;
//! * `nested`: the child forks a child that records an event;
//! * `threads`: four threads fork at once, while others record;
//! * `many`: 300 children live at once, and record an event each at the same time; says how many milliseconds
//!   the slowest took for it;
//! * `crowd`: four threads of the child come to its first events at once, 2000 of each;
//! * `making N`: N children, each while another thread makes call sites of new texts, and each makes one;
//! * `flows`: 20 children hand out work, as the parent does;
//! * `outlive`: the child prints its pid and lives until stdin is closed, the parent does not wait.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use trace_provider::{DynamicSite, PolledProvider, Scope, TraceProvider, duration, instant};

fn main() {
    let mut names = std::env::args().skip(1).peekable();
    let is_polled = names.next_if(|name| name == "--polled").is_some();
    let is_twice = names.next_if(|name| name == "--twice").is_some();
    let provider = match is_polled {
        true => Provider::Polled(Box::new(PolledProvider::new("forking").expect("descriptors"))),
        false => Provider::Apart(TraceProvider::new("forking")),
    };
    let _second = is_twice.then(|| TraceProvider::new("second"));
    while let Some(what) = names.next() {
        instant!("forking", "before", Scope::Thread, "pid" => std::process::id());
        match what.as_str() {
            "events" => in_child(|| (0..3_u32).for_each(child_event)),
            "silent" => in_child(|| ()),
            "drop" => {
                // SAFETY: the child goes on with what it has of the parent, as any program may.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    child_event(0);
                    return;
                }
                wait(child);
            }
            "own" => in_child(|| {
                let _own = TraceProvider::new("own");
                child_event(0);
            }),
            "nested" => in_child(|| in_child(|| child_event(0))),
            "threads" => std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        (0..100_u32).for_each(|n| instant!("forking", "busy", Scope::Thread, "n" => n));
                        in_child(|| child_event(0));
                        (0..100_u32).for_each(|n| instant!("forking", "busy", Scope::Thread, "n" => n));
                    });
                }
            }),
            "many" => println!("{}", many()),
            "making" => making(names.next().and_then(|number| number.parse().ok()).expect("a number")),
            "crowd" => in_child(|| {
                let barrier = std::sync::Barrier::new(4);
                std::thread::scope(|scope| {
                    for thread in 0..4_u64 {
                        let barrier = &barrier;
                        scope.spawn(move || {
                            barrier.wait();
                            (0..2000_u64).for_each(|n| {
                                instant!("forking", "crowd", Scope::Thread, "n" => n, "thread" => thread);
                            });
                        });
                    }
                });
            }),
            "flows" => {
                hand_out();
                for _ in 0..20 {
                    in_child(|| {
                        // With it the child is recorded.
                        child_event(0);
                        hand_out();
                    });
                    hand_out();
                }
            }
            "outlive" => {
                // SAFETY: as above.
                if unsafe { libc::fork() } == 0 {
                    println!("{}", std::process::id());
                    let _ = std::io::stdin().read_to_end(&mut Vec::new());
                    std::mem::forget(provider);
                    return;
                }
            }
            other => panic!("{other} is unknown"),
        }
        instant!("forking", "after", Scope::Thread, "pid" => std::process::id());
    }
}

/// Forks while another thread makes sites, a few for each child: as many as there is room for in all.
fn making(children: u32) {
    let made = AtomicU32::new(0);
    let room = children * 10;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while made.load(Ordering::Relaxed) < room {
                let number = made.fetch_add(1, Ordering::Relaxed);
                let _ = DynamicSite::new("forking", &format!("made {number}"), []);
            }
        });
        for child in 0..children {
            // Not before the other thread goes on, unless it is through.
            while made.load(Ordering::Relaxed) < child * 10 {
                std::hint::spin_loop();
            }
            in_child(|| {
                end_if_hanging();
                let site = DynamicSite::new("forking", &format!("of child {child}"), ["pid"]);
                site.instant(Scope::Thread, (std::process::id(),));
                child_event(child);
            });
        }
    });
}

/// The kernel ends a child that hangs, whose parent then says so.
fn end_if_hanging() {
    // SAFETY: it only sets a timer.
    unsafe { libc::alarm(60) };
}

/// Work that another thread does: an arrow leads there.
fn hand_out() {
    duration!("forking", "hand out", "pid" => std::process::id());
    for _ in 0..5 {
        let parent = rayon_fxt::Parent::here("work");
        std::thread::spawn(move || parent.run(|| ())).join().expect("no panic");
    }
}

/// Held until the end.
#[expect(dead_code, reason = "what it holds is dropped with it")]
enum Provider {
    Apart(TraceProvider),
    Polled(Box<PolledProvider>),
}

fn child_event(number: u32) {
    instant!("forking", "child", Scope::Thread, "pid" => std::process::id(), "n" => number);
}

/// Milliseconds that the slowest of many children took for its first event.
fn many() -> u32 {
    let pipe = || std::io::pipe().expect("a pipe");
    // Each ends when the parent closes it; what the children say goes the other way.
    let ((mut go, begin), (mut told, say), (mut over, end)) = (pipe(), pipe(), pipe());
    let mut children = Vec::new();
    for _ in 0..300 {
        // SAFETY: the child goes on with what it has of the parent, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop((begin, end));
            let _ = go.read(&mut [0]);
            let now = Instant::now();
            child_event(0);
            let took = u32::try_from(now.elapsed().as_millis()).unwrap_or(u32::MAX);
            (&say).write_all(&took.to_le_bytes()).expect("the parent listens");
            let _ = over.read(&mut [0]);
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(0) };
        }
        children.push(child);
    }
    drop(begin);
    let took = children.iter().map(|_| {
        let mut took = [0; 4];
        told.read_exact(&mut took).expect("a child says something");
        u32::from_le_bytes(took)
    });
    let slowest = took.max().unwrap_or(0);
    drop(end);
    children.into_iter().for_each(wait);
    slowest
}

/// Does something in a forked child that then exits, and waits for it.
fn in_child(body: impl FnOnce()) {
    // SAFETY: the child does what a child of a program with threads may do on this system, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        body();
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(0) };
    }
    wait(child);
}

fn wait(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child ended well");
}
