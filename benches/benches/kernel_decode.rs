//! How fast pages of the kernel become records: `cargo bench -p trace-benches --bench kernel_decode`.
//!
//! Pages as a busy scheduler fills them, all the way from the bytes that `trace_pipe_raw` gave to records in
//! a trace buffer. Beside it the floor: the same pages only copied.
#![forbid(unsafe_code)]

use ktrace_provider::decoder::{Decoder, Texts};
use ktrace_provider::format::Format;
use ktrace_provider::merge::{Merge, Merged};
use ktrace_provider::page::PageLayout;
use ktrace_provider::records::EngineRecords;
use std::hint::black_box;
use std::time::{Duration, Instant};
use trace_engine::{BufferMode, Config, Disposition, Region, engine};

const RUNS: usize = 15;
const CPUS: u16 = 2;
/// Of each CPU.
const PAGES: usize = 500;
const PAGE_BYTES: usize = 4096;
const BUFFER_BYTES: usize = 256 << 20;

const SWITCH: u16 = 372;
const WAKING: u16 = 375;
const IRQ_ENTRY: u16 = 225;
const IRQ_EXIT: u16 = 224;

fn format(name: &str, id: u16, fields: &[(&str, u16, u16)]) -> Format {
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    let common = [
        ("unsigned short common_type", 0, 2),
        ("unsigned char common_flags", 2, 1),
        ("unsigned char common_preempt_count", 3, 1),
        ("int common_pid", 4, 4),
    ];
    for (declaration, offset, size) in common.iter().chain(fields) {
        text.push_str(&format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:1;\n"));
    }
    Format::parse(&text).expect("a format")
}

fn formats() -> [Format; 4] {
    [
        format(
            "sched_switch",
            SWITCH,
            &[
                ("char prev_comm[16]", 8, 16),
                ("pid_t prev_pid", 24, 4),
                ("int prev_prio", 28, 4),
                ("long prev_state", 32, 8),
                ("char next_comm[16]", 40, 16),
                ("pid_t next_pid", 56, 4),
                ("int next_prio", 60, 4),
            ],
        ),
        format(
            "sched_waking",
            WAKING,
            &[("char comm[16]", 8, 16), ("pid_t pid", 24, 4), ("int prio", 28, 4), ("int target_cpu", 32, 4)],
        ),
        format("irq_handler_entry", IRQ_ENTRY, &[("int irq", 8, 4), ("__data_loc char[] name", 12, 4)]),
        format("irq_handler_exit", IRQ_EXIT, &[("int irq", 8, 4), ("int ret", 12, 4)]),
    ]
}

/// An event's payload.
struct Payload(Vec<u8>);

impl Payload {
    fn new(id: u16, tid: u32) -> Self {
        let mut payload = Self(id.to_le_bytes().to_vec());
        payload.0.extend([1, 2]);
        payload.word(tid);
        payload
    }

    fn word(&mut self, word: u32) {
        self.0.extend(word.to_le_bytes());
    }

    fn comm(&mut self, tid: u32) {
        let mut comm = format!("worker-{tid}").into_bytes();
        comm.resize(16, 0);
        self.0.extend(comm);
    }
}

/// The events of a CPU, in turn: a wakeup and the switch to who was woken, and with every eighth an
/// interrupt.
fn payloads(cpu: u32, turn: u32) -> Vec<Vec<u8>> {
    let (from, to) = (1000 + cpu * 100 + turn % 64, 1000 + cpu * 100 + (turn + 1) % 64);
    let mut waking = Payload::new(WAKING, from);
    waking.comm(to);
    [to, 120, cpu].iter().for_each(|word| waking.word(*word));
    let mut switch = Payload::new(SWITCH, from);
    switch.comm(from);
    [from, 120, 1, 0].iter().for_each(|word| switch.word(*word));
    switch.comm(to);
    [to, 120].iter().for_each(|word| switch.word(*word));
    let mut payloads = vec![waking.0, switch.0];
    if turn.is_multiple_of(8) {
        let mut entry = Payload::new(IRQ_ENTRY, to);
        [36, 14 << 16 | 16].iter().for_each(|word| entry.word(*word));
        entry.0.extend(b"virtio1-req.0\0\0\0");
        let mut exit = Payload::new(IRQ_EXIT, to);
        [36, 1].iter().for_each(|word| exit.word(*word));
        payloads.extend([entry.0, exit.0]);
    }
    payloads
}

/// Pages of a CPU, and how many events are in them.
fn pages(cpu: u16) -> (Vec<u8>, usize) {
    let (mut bytes, mut events, mut time, mut turn) = (Vec::new(), 0, 1_000_000_000_u64, 0);
    for _ in 0..PAGES {
        let mut page = vec![0; 16];
        page[..8].copy_from_slice(&time.to_le_bytes());
        loop {
            let next = payloads(cpu.into(), turn);
            if page.len() + next.iter().map(|payload| payload.len() + 4).sum::<usize>() > PAGE_BYTES {
                break;
            }
            turn += 1;
            for payload in next {
                let delta = 1500;
                time += delta;
                page.extend(((payload.len() / 4) as u32 | (delta as u32) << 5).to_le_bytes());
                page.extend(payload);
                events += 1;
            }
        }
        let commit = page.len() as u64 - 16;
        page[8..16].copy_from_slice(&commit.to_le_bytes());
        page.resize(PAGE_BYTES, 0);
        bytes.extend(page);
    }
    (bytes, events)
}

/// All of it once; how long that took.
fn decode(layout: &PageLayout, cpus: &[Vec<u8>]) -> Duration {
    let mut decoder = Decoder::new(EngineRecords::new(), Texts::default());
    formats().iter().for_each(|format| decoder.add("kernel:sched", format));
    let mut merge = Merge::default();
    let begin = Instant::now();
    for round in 0..PAGES / 10 {
        let mut horizon = u64::MAX;
        for (cpu, pages) in (0..).zip(cpus) {
            let mut last = None;
            for page in pages[round * 10 * PAGE_BYTES..][..10 * PAGE_BYTES].chunks(PAGE_BYTES) {
                merge.page(layout).copy_from_slice(page);
                last = merge.keep(layout, cpu);
            }
            horizon = horizon.min(last.expect("events"));
        }
        merge.take_until(horizon, |at, cpu, what| {
            if let Merged::Event(payload) = what {
                decoder.event(at, cpu, payload);
            }
        });
    }
    merge.take_until(u64::MAX, |at, cpu, what| {
        if let Merged::Event(payload) = what {
            decoder.event(at, cpu, payload);
        }
    });
    begin.elapsed()
}

fn copy(cpus: &[Vec<u8>]) -> Duration {
    let mut room = vec![0_u8; PAGE_BYTES];
    let begin = Instant::now();
    for page in cpus.iter().flat_map(|pages| pages.chunks(PAGE_BYTES)) {
        room.copy_from_slice(black_box(page));
        black_box(&room);
    }
    begin.elapsed()
}

fn main() {
    let text = "field: u64 timestamp; offset:0; size:8; signed:0;\nfield: local_t commit; offset:8; size:8; signed:1;\n\
                field: char data; offset:16; size:4080; signed:0;\n";
    let layout = PageLayout::parse(text).expect("a layout");
    let (cpus, events): (Vec<_>, Vec<_>) = (0..CPUS).map(pages).unzip();
    let events: usize = events.into_iter().sum();
    let deadline = || Instant::now() + Duration::from_secs(1);
    let mut decoded = Vec::new();
    let mut copied = Vec::new();
    let (region, words) = Region::on_heap(BUFFER_BYTES);
    let engine = engine::initialize(region, BufferMode::Oneshot, Config::new(1, "bench", 1_000_000_000))
        .expect("a trace");
    for _ in 0..RUNS {
        engine.start(Disposition::ClearEntire, &[]).expect("it starts");
        decoded.push(decode(&layout, &cpus));
        assert_eq!(engine.records_refused(), 0);
        engine.stop(deadline()).expect("it stops");
        copied.push(copy(&cpus));
    }
    engine.terminate(deadline()).expect("it ends");
    drop(words);
    for (what, mut times) in [("pages to records", decoded), ("pages copied", copied)] {
        times.sort();
        let rate = |time: Duration| events as f64 / time.as_secs_f64() / 1e6;
        let nanos = |time: Duration| time.as_nanos() as f64 / events as f64;
        println!(
            "{what:<18} best {:8.2} M events/s ({:6.1} ns each), median {:8.2} ({:6.1} ns)",
            rate(times[0]),
            nanos(times[0]),
            rate(times[RUNS / 2]),
            nanos(times[RUNS / 2])
        );
    }
}
