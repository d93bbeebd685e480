//! How fast archives are compressed in frames, beside copying their bytes, and to what size.
//!
//! Two archives in memory of complete durations with an argument: one whose times are random, and a regular
//! one. Each result is the median of many runs in the processor's time of the thread that compresses; each
//! run measures all of them. Of `trace record`, the rows with level 1 and flushes count.

use std::hint::black_box;
use std::io::{Read, Write};
use trace_benches::{Cost, archive};
use trace_convert::seekable::Writer;
use trace_reader::Plain;

/// Events of each archive; with `--test` a thousandth.
const EVENTS: u64 = 1_000_000;
const RUNS: usize = 9;

/// A level that is measured once.
const SLOWEST: i32 = 19;

/// A way to compress: its level, and after how many bytes everything is made readable.
const WAYS: [(&str, i32, usize); 8] = [
    ("level -5", -5, usize::MAX),
    ("level -1", -1, usize::MAX),
    ("level 1", 1, usize::MAX),
    ("level 1, a flush each 256 KiB", 1, 256 << 10),
    ("level 1, a flush each 16 KiB", 1, 16 << 10),
    ("level 3", 3, usize::MAX),
    ("level 9", 9, usize::MAX),
    ("level 19", SLOWEST, usize::MAX),
];

/// Time that this thread was on a processor, in nanoseconds.
fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for a write.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn measure<T>(cost: &mut Cost, bytes: usize, run: impl FnOnce() -> T) -> T {
    let begin = processor_time();
    let result = run();
    cost.push((processor_time() - begin) as f64 / bytes as f64);
    result
}

fn compress(archive: &[u8], level: i32, flushed: usize, output: Vec<u8>) -> Vec<u8> {
    let mut writer = Writer::new(output, level).expect("memory");
    for piece in archive.chunks(flushed.min(256 << 10)) {
        writer.write_all(piece).expect("memory");
        if flushed < usize::MAX {
            writer.flush().expect("memory");
        }
    }
    writer.finish().expect("memory")
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let (events, runs) = if is_test { (EVENTS / 1000, 1) } else { (EVENTS, RUNS) };
    for (name, archive) in
        [("random times", archive::nested(events, true)), ("regular times", archive::durations(events))]
    {
        let bytes = archive.len();
        let mut copy = vec![0_u8; bytes];
        let mut copying = Cost::new("copying");
        let mut costs = WAYS.map(|(name, ..)| Cost::new(name));
        let mut reading = Cost::new("decompressing level 1");
        let mut sizes = [0; WAYS.len()];
        let mut room = Vec::with_capacity(bytes);
        for run in 0..runs {
            measure(&mut copying, bytes, || {
                copy.copy_from_slice(black_box(&archive));
                black_box(&mut copy);
            });
            for ((cost, size), (_, level, flushed)) in costs.iter_mut().zip(&mut sizes).zip(WAYS) {
                // What takes so long needs no median.
                if level == SLOWEST && run > 0 {
                    continue;
                }
                room.clear();
                room = measure(cost, bytes, || compress(black_box(&archive), level, flushed, room));
                *size = room.len();
                if (level, flushed) == (1, usize::MAX) {
                    let (mut plain, _) = Plain::open(&room[..]).expect("what was compressed");
                    copy.clear();
                    measure(&mut reading, bytes, || {
                        plain.read_to_end(&mut copy).expect("what was compressed")
                    });
                    assert!(copy == archive);
                }
            }
        }
        println!("\n{events} events with {name} in {:.0} MB, {runs} runs\n", bytes as f64 / 1e6);
        println!("| what | median MB/s | of copying | bytes | part |");
        println!("|---|---|---|---|---|");
        let row = |cost: &Cost, size: Option<usize>| {
            let rate = 1000.0 / cost.median();
            let part = size.map_or(String::new(), |size| format!("1/{:.1}", bytes as f64 / size as f64));
            let size = size.map_or(String::new(), |size| size.to_string());
            println!(
                "| {} | {rate:.0} | 1/{:.0} | {size} | {part} |",
                cost.name,
                cost.median() / copying.median()
            );
        };
        row(&copying, Some(bytes));
        costs.iter().zip(sizes).for_each(|(cost, size)| row(cost, Some(size)));
        row(&reading, None);
    }
}
