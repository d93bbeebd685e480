//! Opens and ends scopes at random on four threads, prints what each has open, and dies:
//! `deep SEED kill|segfault|abort|overflow|memory|panic|panic-abort|wait`; or `deep SEED first`
//! in the first scope of all.
//!
//! A line is the name of the thread, how many of its scopes have ended, and those that are open; and another
//! one the same of its track.

use rustix::process::{Signal, getpid, kill_process};
use std::io::{BufRead, Write};
use std::sync::mpsc;
use trace_provider::{TraceProvider, Track, duration, track_duration};

/// One for each thread.
static LANES: [Track; 4] =
    [Track::new("lane-0"), Track::new("lane-1"), Track::new("lane-2"), Track::new("lane-deep")];

/// What a thread knows of its own scopes.
struct Log {
    random: u64,
    steps: u32,
    ended: u32,
    open: Vec<&'static str>,
    lane: &'static Track,
    lane_ended: u32,
    lane_open: Vec<&'static str>,
    /// At which depth it stays for ever.
    last_depth: usize,
    /// All scopes are to end.
    is_done: bool,
    tell: mpsc::Sender<String>,
    /// Whether to end all scopes, if it returns.
    then: Box<dyn FnMut() -> bool>,
}

impl Log {
    fn new(
        random: u64,
        lane: &'static Track,
        tell: mpsc::Sender<String>,
        then: Box<dyn FnMut() -> bool>,
    ) -> Self {
        let (open, lane_open) = (Vec::new(), Vec::new());
        let (steps, ended, lane_ended, last_depth, is_done) = (0, 0, 0, 0, false);
        Self { random, steps, ended, open, lane, lane_ended, lane_open, last_depth, is_done, tell, then }
    }

    fn next(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    fn enter(&mut self, name: &'static str) {
        self.open.push(name);
        self.walk();
        self.open.pop();
        self.ended += 1;
    }

    fn scope(&mut self) {
        match self.next(5) {
            0 => {
                duration!("deep", "one");
                self.enter("one");
            }
            1 => {
                duration!("deep", "two", "depth" => self.open.len() as u64);
                self.enter("two");
            }
            2 => traced(self),
            3 => {
                track_duration!("deep", *self.lane, "five");
                self.lane_open.push("five");
                self.walk();
                self.lane_open.pop();
                self.lane_ended += 1;
            }
            _ => {
                duration!("deep", "four", "text" => "some text");
                self.enter("four");
            }
        }
    }

    /// Opens scopes in the one that is open, and returns when that is to end.
    fn walk(&mut self) {
        while !self.is_done {
            if self.steps == 0 {
                if self.open.len() >= self.last_depth {
                    let name = std::thread::current()
                        .name()
                        .filter(|name| *name != "main")
                        .unwrap_or("deep")
                        .to_owned();
                    let line = format!("{name} {} {}", self.ended, self.open.join(">"));
                    let lane =
                        format!("{} {} {}", self.lane.name(), self.lane_ended, self.lane_open.join(">"));
                    let line = format!("{line}\n{lane}");
                    self.tell.send(line).expect("the main thread waits");
                    self.is_done = (self.then)();
                    continue;
                }
            } else {
                self.steps -= 1;
                if self.next(2) == 0 && !self.open.is_empty() {
                    return;
                }
            }
            self.scope();
        }
    }
}

#[trace_provider::trace(category = "deep", name = "three")]
fn traced(log: &mut Log) {
    log.enter("three");
}

extern "C" fn never_unwinds() {
    panic!("as it was told");
}

fn overflow(depth: u64) -> u64 {
    let room = std::hint::black_box([depth; 1000]);
    if depth == u64::MAX {
        return 0;
    }
    overflow(depth + 1) + room[(depth % 1000) as usize]
}

fn send(signal: Signal) {
    kill_process(getpid(), signal).expect("it may kill itself");
}

fn die(how: &str) -> bool {
    match how {
        "kill" => send(Signal::KILL),
        // The standard library's handler takes the first one, as no address belongs to it.
        "segfault" => (0..2).for_each(|_| send(Signal::SEGV)),
        "abort" => std::process::abort(),
        "overflow" => _ = overflow(0),
        // Until the kernel ends it.
        "memory" => loop {
            std::mem::forget(vec![1_u8; 1 << 20]);
        },
        "panic" => panic!("as it was told"),
        "panic-abort" => never_unwinds(),
        _ => _ = std::io::stdin().lock().lines().next(),
    }
    if how != "end" {
        std::process::exit(0);
    }
    true
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seed: u64 = arguments.next().and_then(|seed| seed.parse().ok()).expect("a seed");
    let how = arguments.next().expect("how to die");
    let _provider = TraceProvider::new("deep");
    if how == "first" {
        duration!("deep", "one");
        send(Signal::KILL);
    }
    let (tell, told) = mpsc::channel();
    for number in 0..3_u64 {
        let tell = tell.clone();
        let walk = move || {
            let random = seed.wrapping_add(number * 77);
            let then = Box::new(|| {
                loop {
                    std::thread::park();
                }
            });
            let mut log = Log::new(random, &LANES[number as usize], tell, then);
            // The very first scope of a thread, in one of four.
            log.steps = if log.next(4) == 0 { 0 } else { log.next(300) as u32 };
            log.last_depth = log.next(40) as usize;
            log.walk();
        };
        std::thread::Builder::new().name(format!("walker-{number}")).spawn(walk).expect("a thread");
    }
    let mut lines: Vec<String> = (0..3).map(|_| told.recv().expect("all threads stop somewhere")).collect();
    let then = Box::new(move || {
        lines.push(told.recv().expect("its own line"));
        let mut out = std::io::stdout().lock();
        lines.iter().for_each(|line| writeln!(out, "{line}").expect("stdout"));
        writeln!(out, "end").expect("stdout");
        out.flush().expect("stdout");
        drop(out);
        die(&how)
    });
    let mut log = Log::new(seed ^ 99, &LANES[3], tell, then);
    log.steps = log.next(300) as u32;
    log.last_depth = log.next(40) as usize;
    log.walk();
}
