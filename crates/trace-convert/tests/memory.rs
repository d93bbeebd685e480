//! No import takes more memory than its limits, however small its input is: an allocator counts.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Write};
use std::sync::atomic::AtomicIsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use trace_convert::Summary;
use trace_convert::import::{ImportError, json, perfetto};

/// Counts the bytes that are taken by all threads, and the most at a time.
struct Counting;

static TAKEN: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
/// One test at a time counts.
static COUNTS: Mutex<()> = Mutex::new(());

fn count(bytes: isize) {
    let taken = TAKEN.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(taken, Relaxed);
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result of some work, and the most memory that it takes beyond what is taken already, in bytes.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = TAKEN.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = work();
    (result, usize::try_from(PEAK.load(Relaxed) - before).expect("a peak is not below its start"))
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn field(field: u64, payload: &[u8]) -> Vec<u8> {
    [&varint(field << 3 | 2)[..], &varint(payload.len() as u64), payload].concat()
}

/// A packet with packets, which come again so often.
fn compressed(packets: &[u8], times: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    (0..times).for_each(|_| encoder.write_all(packets).expect("memory"));
    field(1, &field(50, &encoder.finish().expect("memory")))
}

fn import(trace: &[u8]) -> (Result<Summary, ImportError>, usize) {
    peak(|| perfetto::import(trace, io::sink()))
}

const MIB: usize = 1 << 20;
/// An instant of the whole system at a nanosecond.
fn instant() -> Vec<u8> {
    field(1, &[number(8, 1), number(10, 1), field(11, &number(9, 3))].concat())
}

//= docs/import.md#memory
#[test]
fn compressed_packets_take_no_more_than_what_waits_for_its_order() {
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    // 100 MB of records and 40 MB of places; 48 MiB of both wait, while they grow twice as much.
    let packets = instant().repeat(1000);
    let trace = compressed(&packets, 2500);
    assert!(trace.len() < 200_000, "{}", trace.len());
    let (summary, taken) = import(&trace);
    assert_eq!(summary.expect("a trace").events, 2_500_000);
    assert!(taken < 96 * MIB, "{taken}");
    // The same in many packets.
    let many = compressed(&packets, 25).repeat(100);
    let (summary, taken) = import(&many);
    assert_eq!(summary.expect("a trace").events, 2_500_000);
    assert!(taken < 96 * MIB, "{taken}");
}

//= docs/import.md#memory
#[test]
fn compressed_packets_within_compressed_packets_are_counted() {
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let inner = compressed(&instant().repeat(1000), 1000);
    let trace = compressed(&[inner.clone(), instant(), inner].concat(), 1);
    let (summary, taken) = import(&trace);
    let summary = summary.expect("a trace");
    assert_eq!(summary.events, 1);
    assert_eq!(summary.skipped, [("compressed packets within compressed packets".to_owned(), 2)]);
    assert!(taken < MIB, "{taken}");
}

//= docs/import.md#memory
#[test]
fn a_packet_that_grows_when_it_is_decoded_is_left_out() {
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Annotations, processes and names of two bytes each.
    for (what, packet) in [
        ("annotations", field(11, &field(4, &[]).repeat(10_000_000))),
        ("annotations of one", field(11, &field(4, &field(11, &[]).repeat(10_000_000)))),
        ("processes", field(2, &field(1, &[]).repeat(10_000_000))),
        ("names", field(12, &field(2, &[]).repeat(10_000_000))),
        ("categories", field(11, &field(22, &[]).repeat(10_000_000))),
        ("switches", field(1, &field(4, &field(1, &[1; 10_000_000])))),
    ] {
        let (summary, taken) = import(&[field(1, &packet), instant()].concat());
        let skipped = summary.expect("a trace").skipped;
        assert_eq!(skipped, [("packets that are too large".to_owned(), 1)], "{what}");
        assert!(taken < 100 * MIB, "{what}: {taken}");
    }
    // Of the kernel's events each is decoded alone.
    let unknown = field(1, &field(1, &field(2, &number(1, 7)).repeat(3_000_000)));
    let (summary, taken) = import(&[unknown, instant()].concat());
    assert_eq!(summary.expect("a trace").skipped, [("kernel events of no kind".to_owned(), 3_000_000)]);
    assert!(taken < 64 * MIB, "{taken}");
}

//= docs/import.md#memory
#[test]
fn what_is_defined_has_a_limit() {
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Tracks with names, and names of sequences that are never forgotten.
    let mut trace = Vec::new();
    for number_of in 0..100_000_u64 {
        let track = [number(1, number_of), field(2, &[b'n'; 1000])].concat();
        trace.extend(field(1, &field(60, &track)));
        let name = [number(1, number_of), field(2, &[b'n'; 1000])].concat();
        trace.extend(field(1, &[number(10, number_of), field(12, &field(2, &name))].concat()));
    }
    trace.extend(instant());
    let (summary, taken) = import(&compressed(&trace, 1));
    let skipped = summary.expect("a trace").skipped;
    let [(kind, count)] = &skipped[..] else { panic!("{skipped:?}") };
    assert_eq!(kind, "definitions for which there was no room");
    assert!((100_000..200_000).contains(count), "{count}");
    assert!(taken < 80 * MIB, "{taken}");
}

//= docs/import.md#memory
#[test]
fn kinds_of_what_is_left_out_have_a_limit() {
    let _alone = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::from(r#"[{"ph":"i","ts":1},"#);
    for number in 0..200_000 {
        text += &format!(r#"{{"ph":"M","name":"{number} {}"}},"#, "x".repeat(300));
    }
    let (summary, taken) = peak(|| json::import(text.as_bytes(), io::sink()));
    let skipped = summary.expect("a trace").skipped;
    assert_eq!(skipped.len(), 1001);
    let others = skipped.iter().find(|(kind, _)| kind == "records of other kinds");
    assert_eq!(others.map(|(_, count)| *count), Some(199_000));
    assert!(taken < 5 * MIB, "{taken}");
}
