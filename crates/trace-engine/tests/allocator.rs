//! An allocator that records an event for each allocation, in a process whose engine must not allocate for
//! that.

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace_engine::{BufferMode, Config, Disposition, Region, Scope, engine, instant};
use trace_format::event::EventKind;
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferPart, BufferReader, Source};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Tracing;

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Tracing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if engine::state() == engine::State::Started {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        instant!("alloc", "allocate", Scope::Thread, "bytes" => layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        instant!("alloc", "free", Scope::Thread, "bytes" => layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Tracing = Tracing;

struct Words(trace_engine::HeapWords);

impl Source for Words {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.read_at(offset as usize, bytes);
        Ok(bytes.len())
    }
}

#[test]
fn an_allocator_may_record_what_it_does() {
    const BYTES: usize = 8 << 20;
    let (region, words) = Region::on_heap(BYTES);
    let config = Config::new(u64::from(std::process::id()), "p", 1);
    let engine = engine::initialize(region, BufferMode::Oneshot, config).unwrap();
    engine.start(Disposition::Retain, &[]).unwrap();
    let threads: Vec<_> = (0..8_usize)
        .map(|thread| {
            std::thread::spawn(move || {
                // Each name is one that the engine has to take in, within an event that may be nested in an
                // allocation.
                let texts: Vec<String> = (0..100).map(|number| format!("{thread}-{number}")).collect();
                instant!("alloc", "kept", Scope::Thread, "texts" => texts.len());
                texts.iter().map(String::len).sum::<usize>()
            })
        })
        .collect();
    let lengths: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    engine.stop(Instant::now() + Duration::from_secs(5)).unwrap();
    let allocations = ALLOCATIONS.load(Ordering::Relaxed);
    assert_eq!(lengths, 8 * (10 * 3 + 90 * 4));
    engine.terminate(Instant::now() + Duration::from_secs(5)).unwrap();
    let rate = TicksPerSecond(NonZeroU64::MIN);
    let part = BufferPart::Rest(Activity::Quiet);
    let mut reader = BufferReader::open(Words(words), BYTES as u64, BufferMode::Oneshot, rate, part).unwrap();
    let mut out = Vec::new();
    while reader.read_batch(&mut out).unwrap() {}
    assert_eq!(reader.findings().bad_records, 0);
    assert!(reader.losses().unwrap().iter().all(|(_, loss)| loss.count == 0));
    let mut archive = trace_reader::Reader::of_slice(&out).unwrap();
    let mut found = 0;
    while let Some(record) = archive.next_item().unwrap() {
        if let trace_reader::Item::Event(event) = record.item
            && event.name.as_bytes() == b"allocate"
        {
            assert!(matches!(event.kind, EventKind::Instant { .. }));
            found += 1;
        }
    }
    assert!(allocations > 800, "{allocations} allocations");
    assert_eq!(found, allocations);
}
