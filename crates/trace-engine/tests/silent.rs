//! A writing thread makes no system call and no allocation after its first event, however often the buffer
//! goes round: the kernel kills it for the first, and an allocator counts the second.
//!
//! A program of its own, since it ends with a thread that must not end.

mod silence;

use std::num::NonZeroU64;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace_engine::engine::{self, SaveRequest};
use trace_engine::{
    BufferMode, Config, Disposition, HeapWords, Region, Scope, counter, debug, display, duration, instant,
    log,
};
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferPart, BufferReader, Source};

const BUFFER_BYTES: usize = 4 << 20;
/// Rounds of a writer; each has [`EVENTS_PER_ROUND`] events.
const ROUNDS: u64 = 2_000_000;
const EVENTS_PER_ROUND: u64 = 5;
/// Rounds of at most 256 bytes that fit into three quarters of the buffer.
const ROUNDS_AHEAD: u64 = BUFFER_BYTES as u64 * 3 / 4 / 256;

/// Rounds that were saved.
static SAVED: AtomicU64 = AtomicU64::new(0);
static FINISHED: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: silence::Counting = silence::Counting;

struct Words(HeapWords);

impl Source for Words {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.read_at(offset as usize, bytes);
        Ok(bytes.len())
    }
}

#[derive(Debug)]
#[expect(dead_code, reason = "it is shown")]
enum Shape {
    Circle(u32),
}

/// One of each kind that applications use where it has to be fast.
fn write(round: u64) {
    duration!("silent", "round", "n" => round);
    instant!("silent", "instant", Scope::Thread, "shape" => debug(&Shape::Circle(7)), "shown" => display(&round));
    counter!("silent", "counter", 0, "value" => round);
    instant!("silent", "text", Scope::Process, "text" => "sixteen bytes ok");
    log!("silent", "round {round}");
}

/// The writer: it must never wait for anything but by looking.
fn run_writer() -> ! {
    write(0);
    silence::begin();
    for round in 1..ROUNDS {
        // Slow enough for a half to be back before it is needed.
        while round > SAVED.load(Ordering::Acquire) + ROUNDS_AHEAD {
            core::hint::spin_loop();
        }
        write(round);
    }
    FINISHED.store(ROUNDS, Ordering::Release);
    loop {
        core::hint::spin_loop();
    }
}

fn main() -> ExitCode {
    let (region, words) = Region::on_heap(BUFFER_BYTES);
    let config = Config::new(u64::from(std::process::id()), "silent", 1_000_000_000);
    let engine = engine::initialize(region, BufferMode::Streaming, config).expect("the engine is idle");
    engine.start(Disposition::Retain, &[]).expect("the engine starts");
    let rate = TicksPerSecond(NonZeroU64::new(1_000_000_000).expect("not zero"));
    let mut reader: Option<BufferReader<Words>> = None;
    let mut out = Vec::new();
    let mut read = |part: BufferPart| -> (u64, u64) {
        let reader = match &mut reader {
            Some(reader) => {
                reader.begin(part).expect("a buffer");
                reader
            }
            none => none.insert(
                BufferReader::open(
                    Words(words.clone()),
                    BUFFER_BYTES as u64,
                    BufferMode::Streaming,
                    rate,
                    part,
                )
                .expect("a buffer"),
            ),
        };
        while reader.read_batch(&mut out).expect("a buffer") {
            out.clear();
        }
        out.clear();
        let lost = reader.losses().expect("a ledger").iter().map(|(_, loss)| loss.count).sum();
        assert_eq!(reader.findings().bad_records, 0);
        (reader.findings().rolling_records, lost)
    };
    std::thread::spawn(|| run_writer());
    let deadline = Instant::now() + Duration::from_secs(300);
    let mut switches = 0;
    while FINISHED.load(Ordering::Acquire) == 0 {
        assert!(Instant::now() < deadline, "the writer does not get on");
        let service = engine.service().expect("a stream runs");
        if let Some(request @ SaveRequest { wrapped_count, durable_bytes }) = service.save {
            let (records, _) = read(BufferPart::Half { wrapped_count, durable_bytes });
            engine.mark_saved(request).expect("the half that was handed over");
            switches += 1;
            SAVED.store(records / EVENTS_PER_ROUND, Ordering::Release);
        }
    }
    engine.stop(Instant::now() + Duration::from_secs(10)).expect("the engine stops");
    let (records, lost) = read(BufferPart::Rest(Activity::Quiet));
    let allocations = silence::allocations();
    println!(
        "{records} records across {switches} switches: {lost} lost, {allocations} allocations, no system call"
    );
    assert_eq!(records, ROUNDS * EVENTS_PER_ROUND);
    assert_eq!((lost, allocations), (0, 0));
    assert!(switches >= 100, "{switches} switches");
    ExitCode::SUCCESS
}
