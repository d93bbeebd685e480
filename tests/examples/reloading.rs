//! A filter that is reloaded beside the layer that records.
//!
//! `reloading fork N`: prints "ready"; after the first line of stdin it forks until there were N children.
//! For each further line it says "more" or "enough". The filter takes its time to answer the provider's
//! thread.
//!
//! `reloading` prints "ready", and after each line of stdin what it says here:
//!
//! * `run batch`: 100 rounds of an event of level INFO and one of level DEBUG; how many of them the layer
//!   that prints has had;
//! * `reload FILTER`: reloads its filter; "done";
//! * `hold level|callsite`: a thread reloads the filter, and is held up when the layer that records has said
//!   which levels it wants, or whether it wants the event of level DEBUG; "held";
//! * `run release`: that thread goes on to its end; "done";
//! * `run busy`: four threads record 1000 rounds each, while the filter is reloaded; how many events of level
//!   INFO and DEBUG the layer that prints has had.

use std::cell::Cell;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::dispatcher::Dispatch;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::{Interest, NoSubscriber};
use tracing::{Level, Metadata, debug, info};
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Registry, fmt, registry, reload};

/// The filter takes longer than a fork.
static IS_SLOW: AtomicBool = AtomicBool::new(false);

/// Counts the lines of the layer that prints, and those of them that are details.
#[derive(Clone)]
struct Counting;
static LINES: AtomicU64 = AtomicU64::new(0);
static DETAILS: AtomicU64 = AtomicU64::new(0);

impl Write for Counting {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        LINES.fetch_add(1, Ordering::Relaxed);
        let is_detail = String::from_utf8_lossy(line).ends_with("detail\n");
        DETAILS.fetch_add(u64::from(is_detail), Ordering::Relaxed);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Nowhere,
    Level,
    Callsite,
}

/// A thread that is held up says so, and waits.
struct Gate {
    held: Sender<()>,
    go_on: Receiver<()>,
}

thread_local! {
    static HOLD: Cell<Hold> = const { Cell::new(Hold::Nowhere) };
    static GATE: Cell<Option<Gate>> = const { Cell::new(None) };
}

fn pass(here: Hold) {
    if HOLD.get() == here
        && let Some(gate) = GATE.take()
    {
        gate.held.send(()).expect("the other thread waits");
        gate.go_on.recv().expect("the other thread lives");
    }
}

/// The filter of the layer that prints, inside of the one that records, which is asked before it.
struct Held(reload::Layer<EnvFilter, Registry>);

impl Filter<Registry> for Held {
    fn enabled(&self, metadata: &Metadata<'_>, context: &Context<'_, Registry>) -> bool {
        Filter::enabled(&self.0, metadata, context)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if IS_SLOW.load(Ordering::Relaxed) {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
        }
        if *metadata.level() == Level::DEBUG {
            pass(Hold::Callsite);
        }
        Filter::callsite_enabled(&self.0, metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        pass(Hold::Level);
        Filter::max_level_hint(&self.0)
    }
}

fn round() {
    info!("information");
    debug!("detail");
}

fn main() {
    let (filter, handle) = reload::Layer::new(EnvFilter::new("info"));
    let print = fmt::layer().with_ansi(false).with_writer(|| Counting).with_filter(Held(filter));
    registry().with(print).with(tracing_fxt::layer()).init();
    let provider = trace_provider::TraceProvider::new("reloading");
    let reload = |filter: &str| handle.reload(EnvFilter::new(filter)).expect("the filter is there");
    let mut arguments = std::env::args().skip(1);
    if arguments.next().is_some_and(|mode| mode == "fork") {
        let children = arguments.next().and_then(|number| number.parse().ok()).expect("a number");
        return fork(children);
    }
    let mut held: Option<(Sender<()>, JoinHandle<()>)> = None;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        match line.expect("a line").split_once(' ').unwrap_or_else(|| panic!("a word and its argument")) {
            ("run", "batch") => {
                (0..100).for_each(|_| round());
                println!("{}", LINES.swap(0, Ordering::Relaxed));
            }
            ("reload", filter) => {
                reload(filter);
                println!("done");
            }
            ("hold", place) => {
                let place = if place == "level" { Hold::Level } else { Hold::Callsite };
                let ((is_held, wait), (go_on, is_released)) = (channel(), channel());
                let handle = handle.clone();
                let thread = std::thread::spawn(move || {
                    HOLD.set(place);
                    GATE.set(Some(Gate { held: is_held, go_on: is_released }));
                    handle.reload(EnvFilter::new("info")).expect("the filter is there");
                });
                wait.recv().expect("the thread is held up");
                held = Some((go_on, thread));
                println!("held");
            }
            ("run", "release") => {
                let (go_on, thread) = held.take().expect("a thread is held up");
                go_on.send(()).expect("it waits");
                thread.join().expect("no panic");
                println!("done");
            }
            ("run", "busy") => {
                busy(reload);
                let details = DETAILS.swap(0, Ordering::Relaxed);
                println!("{} {details}", LINES.swap(0, Ordering::Relaxed) - details);
            }
            (word, argument) => panic!("{word} {argument}"),
        }
    }
    drop(provider);
}

fn fork(children: u32) {
    // With another one, `tracing` takes a lock where it asks.
    let _other = Dispatch::new(NoSubscriber::new());
    round();
    IS_SLOW.store(true, Ordering::Relaxed);
    let forked = AtomicU32::new(0);
    println!("ready");
    let mut lines = std::io::stdin().lock().lines();
    lines.next();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while forked.load(Ordering::Relaxed) < children {
                in_child();
                forked.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in lines {
            println!("{}", if forked.load(Ordering::Relaxed) < children { "more" } else { "enough" });
        }
    });
}

/// A child that takes the lock.
fn in_child() {
    // SAFETY: the child only takes locks that no other thread has when it is forked, which is what is tested,
    // and the kernel ends it if it hangs.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it only sets a timer.
        unsafe { libc::alarm(60) };
        IS_SLOW.store(false, Ordering::Relaxed);
        drop(Dispatch::new(NoSubscriber::new()));
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(0) };
    }
    let mut status = -1;
    // SAFETY: a child of this process, and a place for its status.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    if (waited, status) != (child, 0) {
        // The thread that answers would go on without this one.
        eprintln!("a child ended with {status:#x}");
        std::process::exit(1);
    }
}

/// At least 100 reloads, and as long as threads record.
fn busy(reload: impl Fn(&str)) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..1000).for_each(|_| round()))).collect();
        let ender = scope.spawn(|| {
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            is_over.store(true, Ordering::Relaxed);
        });
        let mut reloads = 0;
        while reloads < 100 || !is_over.load(Ordering::Relaxed) {
            reload(["info", "info,other=trace", "reloading=info"][reloads % 3]);
            reloads += 1;
        }
        ender.join().expect("no panic");
    });
}
