//! A reader copies a buffer while four threads go round and round in it: whatever it accepts is whole, and of
//! one claim.
//!
//! It copies from the last word to the first: no copy promises an order, and this one is the worst, as it
//! meets payload before the header that says it is there.
//!
//! `torn [SECONDS]`, 3 if nothing is said. A program of its own, since it wants the processors for itself.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_engine::{BufferMode, Config, Disposition, HeapWords, Region, Scope, engine, instant};
use trace_format::buffer::Layout;
use trace_format::slab::{SlabState, SlabWord};
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferPart, BufferReader, Source};

const BUFFER_BYTES: u64 = 1 << 20;
const WRITERS: u64 = 4;

/// Ends threads that wait for it, also where the test fails.
struct EndsThreads<'a>(&'a AtomicBool);

impl Drop for EndsThreads<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The buffer, read backwards.
struct Backwards {
    words: HeapWords,
    layout: Layout,
    /// Shows only slabs that a thread is writing into.
    only_open: Cell<bool>,
}

impl Source for &Backwards {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        let length = bytes.len();
        for (number, word) in bytes.chunks_exact_mut(8).enumerate().rev() {
            self.words.read_at(offset as usize + 8 * number, word);
            // As a copy does that is interrupted between two cache lines.
            if (offset as usize / 8 + number) % 8 == 0 {
                core::hint::spin_loop();
            }
        }
        let table = self.layout.slab_count() as usize * 8;
        if self.only_open.get() && offset == self.layout.slab_words && length == table {
            for word in bytes.chunks_exact_mut(8) {
                if SlabWord(u64::from_le_bytes((&*word).try_into().unwrap())).state() != SlabState::Open {
                    word.fill(0);
                }
            }
        }
        Ok(length)
    }
}

fn write(writer: u64, number: u64) {
    // Whatever is mixed up shows: a record of another time or thread has other words.
    let mark = writer << 48 | number;
    instant!("cat", "whole", Scope::Thread, "a" => mark, "b" => mark ^ u64::MAX, "c" => mark.rotate_left(32));
}

/// Checks all that a copy of the buffer holds. Returns how many events there are.
fn check(archive: &[u8]) -> u64 {
    let mut reader = trace_reader::Reader::of_slice(archive).expect("records");
    let mut events = 0;
    while let Some(record) = reader.next_item().expect("records") {
        let trace_reader::Item::Event(event) = record.item else {
            continue;
        };
        let marks: Vec<_> = event
            .arguments
            .iter()
            .map(|(_, value)| match value {
                trace_reader::Value::Uint64(value) => value,
                other => panic!("torn: {other:?}"),
            })
            .collect();
        let [a, b, c] = marks[..] else { panic!("torn: {} arguments", marks.len()) };
        assert!(b == !a && c == a.rotate_left(32), "torn: {a:#x} {b:#x} {c:#x}");
        events += 1;
    }
    events
}

fn main() -> ExitCode {
    // The writers would not end by themselves.
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        show(panic);
        std::process::exit(101);
    }));
    let seconds = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(3);
    let (region, words) = Region::on_heap(BUFFER_BYTES as usize);
    let layout = Layout::new(BUFFER_BYTES, BufferMode::Circular).expect("a size");
    let source = Backwards { words, layout, only_open: Cell::new(false) };
    let config = Config::new(u64::from(std::process::id()), "torn", 1_000_000_000);
    let engine = engine::initialize(region, BufferMode::Circular, config).expect("the engine is idle");
    engine.start(Disposition::Retain, &[]).expect("the engine starts");
    let is_over = AtomicBool::new(false);
    let (mut copies, mut slabs, mut events) = (0_u64, 0_u64, 0_u64);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    write(writer, number);
                    number += 1;
                    // So that a slab lasts until the reader comes to it.
                    (0..3).for_each(|_| core::hint::spin_loop());
                }
            });
        }
        let _end = EndsThreads(&is_over);
        let rate = TicksPerSecond(NonZeroU64::new(1_000_000_000).expect("not zero"));
        let end = Instant::now() + Duration::from_secs(seconds);
        let magic = trace_format::metadata::MAGIC_WORD.to_le_bytes();
        let mut out = magic.to_vec();
        let part = BufferPart::Rest(Activity::Live);
        let mut reader =
            BufferReader::open(&source, BUFFER_BYTES, BufferMode::Circular, rate, part).expect("a buffer");
        while Instant::now() < end {
            // What it has read of a slab it does not hand on again.
            source.only_open.set(copies % 64 != 0);
            reader.begin(part).expect("a buffer");
            while reader.read_batch(&mut out).expect("a buffer") {}
            assert_eq!(reader.findings().bad_records, 0, "torn: {:?}", reader.findings().first_bad);
            events += check(&out);
            out.truncate(magic.len());
            copies += 1;
            slabs += u64::from(if source.only_open.get() { WRITERS as u32 } else { layout.slab_count() });
        }
    });
    engine.terminate(Instant::now() + Duration::from_secs(10)).expect("the engine ends");
    println!("{copies} copies of {slabs} slabs: {events} events accepted, none torn");
    assert!(copies > 10 && events > 1000, "too little was read");
    ExitCode::SUCCESS
}
