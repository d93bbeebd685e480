//! A thread makes no system call and no allocation for its spans and events once each callsite was passed:
//! the kernel kills it for the first, and an allocator counts the second. With a subscriber by itself, and
//! with a layer: in processes of their own, since each ends with a thread that must not end.

#[path = "../../trace-engine/tests/silence/mod.rs"]
mod silence;

use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace_engine::engine;
use trace_engine::{BufferMode, Config, Disposition, Region};
use tracing::{debug, info, info_span};
use tracing_fxt::Options;
use tracing_subscriber::prelude::*;

const BUFFER_BYTES: usize = 128 << 20;
const ROUNDS: u64 = 100_000;

static FINISHED: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: silence::Counting = silence::Counting;

/// Two spans with their lives, one of them with a field that is recorded later, and three events.
fn round(number: u64) {
    let outer = info_span!("outer", number, late = tracing::field::Empty);
    let _outer = outer.enter();
    outer.record("late", number);
    info!("a message");
    debug!(number, shown = ?Some(number), "varies: {number}");
    let inner = info_span!("inner");
    inner.in_scope(|| info!(text = "sixteen bytes ok", "with a field"));
}

fn run() -> ! {
    (0..2).for_each(round);
    silence::begin();
    (2..ROUNDS).for_each(round);
    FINISHED.store(1, Ordering::Release);
    loop {
        core::hint::spin_loop();
    }
}

fn record(mode: &str) {
    let (region, words) = Region::on_heap(BUFFER_BYTES);
    let config = Config::new(u64::from(std::process::id()), "silent", 1_000_000_000);
    let engine = engine::initialize(region, BufferMode::Oneshot, config).expect("the engine is idle");
    engine.start(Disposition::Retain, &[]).expect("the engine starts");
    let options = Options::new().lifetimes();
    if mode == "subscriber" {
        tracing::subscriber::set_global_default(options.subscriber()).expect("there is no other");
    } else {
        tracing_subscriber::registry().with(options.layer()).init();
    }
    std::thread::spawn(|| run());
    let deadline = Instant::now() + Duration::from_secs(120);
    while FINISHED.load(Ordering::Acquire) == 0 {
        assert!(Instant::now() < deadline, "the writer does not get on");
        std::thread::yield_now();
    }
    engine.stop(Instant::now() + Duration::from_secs(10)).expect("the engine stops");
    let allocations = silence::allocations();
    let refused = engine.records_refused();
    println!("{mode}: {ROUNDS} rounds, {refused} records refused, {allocations} allocations, no system call");
    assert_eq!((refused, allocations, tracing_fxt::dropped_fields()), (0, 0, 0));
    drop(words);
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode] = &arguments[..]
        && ["subscriber", "layer"].contains(&mode.as_str())
    {
        record(mode);
        return ExitCode::SUCCESS;
    }
    let program = std::env::current_exe().expect("this program");
    for mode in ["subscriber", "layer"] {
        let status = Command::new(&program).arg(mode).status().expect("it runs");
        assert!(status.success(), "{mode}: {status}");
    }
    ExitCode::SUCCESS
}
