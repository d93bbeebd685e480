//! The engine where the kernel has no `membarrier`, or has none any more: each event has a full fence of its
//! own, and nothing else is different.
//!
//! A program of its own: a filter takes the call away before the engine asks for it, or while a trace runs.

#[path = "engine/refused_call.rs"]
mod refused_call;

use refused_call::refuse;
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace_engine::engine::{self, SaveRequest};
use trace_engine::{BufferMode, Config, Disposition, HeapWords, Region, Scope, duration, instant};
use trace_format::buffer::Layout;
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferPart, BufferReader, Source};

const BUFFER_BYTES: usize = 256 << 10;
const WRITERS: u64 = 4;
const EACH: u64 = 100_000;
/// Bytes that each writer has written in a round.
const ROUND_BYTES: u64 = 56;

/// Rounds that were saved, if all writers had got equally far.
static SAVED: AtomicU64 = AtomicU64::new(0);

struct Words(HeapWords);

impl Source for Words {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.read_at(offset as usize, bytes);
        Ok(bytes.len())
    }
}

/// Lets `membarrier` fail as on a kernel that does not have it.
fn take_membarrier_away() {
    refuse(libc::SYS_membarrier, libc::ENOSYS);
    // SAFETY: the command 0 only asks for others.
    assert_eq!(unsafe { libc::syscall(libc::SYS_membarrier, 0, 0, 0) }, -1, "the filter works");
}

/// Says that the call is to be there at first.
const LATER: &str = "later";

fn main() -> ExitCode {
    let is_later = match std::env::args().nth(1).as_deref() {
        Some(LATER) => true,
        _ => {
            let mut later = std::process::Command::new(std::env::current_exe().expect("this program"));
            assert!(later.arg(LATER).status().expect("it runs").success(), "taken away later");
            false
        }
    };
    if !is_later {
        take_membarrier_away();
    }
    let (region, words) = Region::on_heap(BUFFER_BYTES);
    let config = Config::new(u64::from(std::process::id()), "fence", 1_000_000_000);
    let engine = engine::initialize(region, BufferMode::Streaming, config).expect("the engine is idle");
    engine.start(Disposition::Retain, &[]).expect("the engine starts");
    let (bytes, mode) = (BUFFER_BYTES as u64, BufferMode::Streaming);
    let rate = TicksPerSecond(NonZeroU64::new(1_000_000_000).expect("not zero"));
    let mut reader: Option<BufferReader<Words>> = None;
    let mut read = |part: BufferPart| {
        match &mut reader {
            Some(reader) => reader.begin(part).expect("a buffer"),
            none => {
                let opened = BufferReader::open(Words(words.clone()), bytes, mode, rate, part);
                *none = Some(opened.expect("a buffer"));
            }
        }
        let reader = reader.as_mut().expect("it was opened");
        while reader.read_batch(&mut Vec::new()).expect("a buffer") {}
        assert_eq!(reader.findings().bad_records, 0);
        let lost: u64 = reader.losses().expect("a ledger").iter().map(|(_, loss)| loss.count).sum();
        (reader.findings().rolling_records, lost)
    };
    // Together they may be ahead by little more than a half: enough to fill one, and far from where nothing
    // is free.
    let layout = Layout::new(bytes, mode).expect("it is large enough");
    let half_bytes = u64::from(layout.slabs_per_half) * layout.slab_bytes;
    let ahead = (half_bytes + half_bytes / 8) / ROUND_BYTES / WRITERS;
    let mut halves = 0;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(move || {
                    for number in 0..EACH {
                        // Slow enough for a half to be back before it is needed.
                        while number > SAVED.load(Ordering::Acquire) + ahead {
                            std::thread::yield_now();
                        }
                        duration!("fence", "scope");
                        instant!("fence", "instant", Scope::Thread, "n" => number);
                    }
                })
            })
            .collect();
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            let service = engine.service().expect("a stream runs");
            if let Some(request @ SaveRequest { wrapped_count, durable_bytes }) = service.save {
                let (records, _) = read(BufferPart::Half { wrapped_count, durable_bytes });
                engine.mark_saved(request).expect("the half that was handed over");
                halves += 1;
                if is_later && halves == 20 {
                    take_membarrier_away();
                }
                SAVED.store(records / (2 * WRITERS), Ordering::Release);
            }
        }
    });
    engine.stop(Instant::now() + Duration::from_secs(10)).expect("the engine stops");
    let (records, lost) = read(BufferPart::Rest(Activity::Quiet));
    println!("{records} records in {halves} halves, {lost} lost");
    assert_eq!((records, lost), (WRITERS * EACH * 2, 0));
    assert!(halves > 100, "{halves} halves");
    ExitCode::SUCCESS
}
