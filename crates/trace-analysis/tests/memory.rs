//! No input makes the reader take more memory than a small multiple of its size: an allocator counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use trace_analysis::check::{Limits, check, check_slice};
use trace_reader::{Disorder, Reader};

/// Counts the bytes that each thread has taken, and the most it had at a time.
struct Counting;

thread_local! {
    static TAKEN: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let taken = TAKEN.get() + bytes;
    TAKEN.set(taken);
    PEAK.set(PEAK.get().max(taken));
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

/// The most memory that something takes beyond what is taken already, in bytes.
fn peak(work: impl FnOnce()) -> usize {
    let before = TAKEN.get();
    PEAK.set(before);
    work();
    usize::try_from(PEAK.get() - before).expect("a peak is not below its start")
}

/// Buffers and the like, whatever the input.
const FIXED_BYTES: usize = 200 << 10;

/// Reads in all ways, which takes at most so many times the size of the input.
fn assert_small(what: &str, trace: &[u8], factor: usize) {
    let limit = factor * trace.len();
    let resolved = peak(|| {
        let mut reader = Reader::of_slice(trace).expect("a trace");
        while let Ok(Some(_)) = reader.next_item() {}
    });
    assert!(resolved <= limit + 16_384, "{what}: {resolved} bytes for {}", trace.len());
    let checked = peak(|| drop(check_slice(trace, Limits::default())));
    assert!(checked <= limit + 32_768, "{what}: {checked} bytes for {}", trace.len());
    let streamed = peak(|| drop(check(trace, Limits::default(), &Disorder::default())));
    // A stream is read in pieces that double, and a record of up to a MiB is held whole.
    assert!(
        streamed <= limit + 3 * trace.len() + FIXED_BYTES,
        "{what}: {streamed} bytes for {}",
        trace.len()
    );
}

fn bytes(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let magic = [0x0016_5478_4604_0010];
    magic.into_iter().chain(words).flat_map(u64::to_le_bytes).collect()
}

#[test]
//= docs/format.md#malformed-input
fn lies_about_sizes_take_no_memory() {
    for (what, words) in [
        ("a record of 4 GiB", vec![0xf | (1 << 29) << 4 | 1 << 40, 0, (4 << 30) - 24]),
        ("a record of 32 GiB", vec![0xf | 0xffff_ffff << 4, 0]),
        ("a blob of 4 GiB in an argument", vec![0x10_0054, 1, 2, 3, 0xffff_ffff_0000_001a]),
        ("a string of 32 767 bytes", vec![0x0000_7fff_0001_fff2, 0]),
        ("15 arguments that are not there", vec![0xf0_0044, 1, 2, 3]),
        ("255 frames that are not there", vec![0xff_0002_004a, 1, 2, 3]),
    ] {
        assert_small(what, &bytes(words), 1);
    }
}

#[test]
fn definitions_take_a_small_multiple_of_their_size() {
    assert_small("the largest string index", &bytes([0x1_7fff_0022, 0x61]), 1);
    let strings = (1..=0x7fff_u64).flat_map(|index| [0x1_0000_0022 | index << 16, 0x61]);
    assert_small("all string indices", &bytes(strings), 10);
    let scattered = (0..300_u64).flat_map(|place| [0x1_0000_0022 | (1 + place * 109) << 16, 0x61]);
    assert_small("string indices far apart", &bytes(scattered), 10);
    let redefined = (0..100_000_u64).flat_map(|_| [0x1_0001_0022, 0x61]);
    assert_small("one index again and again", &bytes(redefined), 1);
    let providers = (1..=5_000_u64).flat_map(|id| [0x1_0010 | id << 20, 0x1_0001_0022, 0x61, 0x1_0033, 1, 2]);
    assert_small("5 000 providers", &bytes(providers), 30);
    let sections = (1..=20_000_u64).map(|id| 0x2_0010 | id << 20);
    assert_small("20 000 sections of nobody", &bytes(sections), 30);
    let names = (1..=20_000_u64).flat_map(|koid| [0x80_0101_0037, koid, 0x61]);
    assert_small("names of 20 000 processes", &bytes(names), 8);
}

#[test]
fn open_spans_take_a_small_multiple_of_their_size() {
    let begins = (0..50_000_u64).flat_map(|time| [0x2_0044, time, 1, 2]);
    assert_small("begins of one thread", &bytes(begins), 8);
    let threads = (0..50_000_u64).flat_map(|thread| [0x2_0044, 1, 1, thread]);
    assert_small("begins of many threads", &bytes(threads), 12);
    let operations = (0..50_000_u64).flat_map(|id| [0x5_0054, 1, 1, 2, id]);
    assert_small("operations", &bytes(operations), 12);
    let over = (0..50_000_u64).flat_map(|id| [0x5_0054, 1, 1, 2, id, 0x7_0054, 1, 1, 2, id]);
    assert_small("operations that are over", &bytes(over), 2);
    let flows = (0..50_000_u64).flat_map(|id| [0x8_0054, 1, 1, 2, id]);
    assert_small("flows", &bytes(flows), 12);
    let over = (0..50_000_u64).flat_map(|id| [0x8_0054, 1, 1, 2, id, 0xa_0054, 1, 1, 2, id]);
    assert_small("flows that are over", &bytes(over), 6);
}

#[test]
fn problems_take_no_memory_however_many_there_are() {
    let undefined = (0..200_000_u64).flat_map(|_| [0x9_0100_0024, 1]);
    assert_small("undefined threads", &bytes(undefined), 1);
    let malformed = (0..200_000_u64).map(|_| 0x14);
    assert_small("malformed records", &bytes(malformed), 1);
    let ends = (0..200_000_u64).flat_map(|id| [0xa_0054, 1, 1, 2, id / 100_000]);
    assert_small("ends of one flow", &bytes(ends), 1);
}

#[test]
fn memory_has_a_limit_even_for_a_large_input() {
    // 100 MB of definitions and begins, made as they are read.
    struct Endless {
        words: Vec<u64>,
        number: u64,
    }
    impl Read for Endless {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            if self.number == 1_200_000 {
                return Ok(0);
            }
            if self.words.is_empty() {
                let number = self.number;
                self.number += 1;
                self.words = if number == 0 {
                    vec![0x0016_5478_4604_0010]
                } else {
                    let index = 1 + number % 0x7fff;
                    vec![
                        0x1_0010 | (number / 0x7fff) << 20,
                        0x1_0000_0022 | index << 16,
                        number,
                        0x8_0054,
                        1,
                        1,
                        2,
                        number,
                        0x80_0101_0037,
                        number,
                        0x61,
                    ]
                };
                self.words.reverse();
            }
            let (chunks, _) = to.as_chunks_mut::<8>();
            let mut filled = 0;
            for (chunk, word) in chunks.iter_mut().zip(std::iter::from_fn(|| self.words.pop())) {
                *chunk = word.to_le_bytes();
                filled += 8;
            }
            Ok(filled)
        }
    }
    let mut report = None;
    let peak = peak(|| {
        report = Some(
            check(Endless { words: Vec::new(), number: 0 }, Limits::default(), &Disorder::default())
                .expect("a trace"),
        );
    });
    let report = report.expect("it was checked");
    assert!(report.bytes > 100 << 20, "{}", report.bytes);
    assert!(peak < 64 << 20, "{peak}");
    let kinds: Vec<_> = report.problems.iter().map(|problem| problem.kind).collect();
    assert!(kinds.contains(&"tables-full") && kinds.contains(&"spans-full"), "{kinds:?}");
}

#[test]
fn compressed_input_takes_no_more_than_its_window() {
    let words = (0..2_000_000_u64).flat_map(|time| [0x44, time, 1, 2]);
    let trace = bytes(words);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&trace).expect("memory");
    let gzip = gzip.finish().expect("memory");
    let taken = peak(|| {
        assert_eq!(
            check(&gzip[..], Limits::default(), &Disorder::default()).expect("a trace").events,
            2_000_000
        )
    });
    assert!(taken < 2 << 20, "{taken}");
    // What zstd's library takes is not counted here; its window is limited to 8 MiB.
    let zstd = zstd::encode_all(&trace[..], 1).expect("memory");
    let taken = peak(|| {
        assert_eq!(
            check(&zstd[..], Limits::default(), &Disorder::default()).expect("a trace").events,
            2_000_000
        )
    });
    assert!(taken < 2 << 20, "{taken}");
}
