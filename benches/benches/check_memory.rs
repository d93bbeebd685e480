//! How much memory `trace check` takes for an archive of 2 GB, and how long it takes against copying the file.
//!
//! `cargo build --release` first: it runs the `trace` that stands beside it. `--bytes N` makes a smaller archive.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::mem::MaybeUninit;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::initialization::Initialization;
use trace_format::kernel_object::{KernelObject, TYPE_PROCESS};
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{
    Koid, ProcessKoid, ProviderId, StringIndex, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond,
};

const BYTES: u64 = 2_000_000_000;
const PROVIDERS: u32 = 20;
const STRINGS: u16 = 5_000;
const THREADS: u8 = 100;
/// Flows that each provider begins long before it ends them.
const OPEN_FLOWS: u64 = 5_000;
const RATE: u64 = 2_399_987_654;

struct Archive {
    output: BufWriter<File>,
    bytes: u64,
}

impl Sink for Archive {
    fn word(&mut self, word: u64) {
        self.output.write_all(&word.to_le_bytes()).expect("room for the archive");
        self.bytes += 8;
    }
}

impl Archive {
    fn write(&mut self, record: Record<'_>) {
        record.encode(self).expect("a valid record");
    }

    fn definitions(&mut self, id: u32) {
        let name = format!("provider {id}");
        self.write(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(id), name: name.as_bytes() }));
        let ticks_per_second = TicksPerSecond::new(RATE).expect("not 0");
        self.write(Record::Initialization(Initialization { ticks_per_second }));
        for index in 1..=STRINGS {
            let value = format!("a string of provider {id} with number {index}");
            self.write(Record::String(StringRecord { index, value: value.as_bytes() }));
        }
        let process = Koid(u64::from(id) * 1000);
        for index in 1..=THREADS {
            let thread = ThreadKoid(Koid(process.0 + u64::from(index)));
            self.write(Record::Thread(ThreadRecord { index, process: ProcessKoid(process), thread }));
        }
        self.write(Record::KernelObject(KernelObject {
            object_type: TYPE_PROCESS,
            koid: process,
            name: StringRef::Inline(name.as_bytes()),
            arguments: Arguments::new(&[]),
        }));
    }

    fn event(&mut self, number: u64, kind: EventKind) {
        let index = |index: u64| StringRef::Index(StringIndex::new(index as u16).expect("not 0"));
        let argument = [Argument { name: index(3), value: ArgumentValue::Uint64(number) }];
        let thread = ThreadIndex::new(1 + (number % u64::from(THREADS)) as u8).expect("not 0");
        let strings = u64::from(STRINGS);
        let name = match kind {
            EventKind::FlowBegin { id } | EventKind::FlowEnd { id } => index(1 + id % strings),
            _ => index(1 + number / 4 % strings),
        };
        self.write(Record::Event(Event {
            timestamp: Ticks(40_000_000_000_000 + number * 50),
            thread: ThreadRef::Index(thread),
            category: index(2),
            name,
            kind,
            arguments: Arguments::new(&argument),
        }));
    }
}

/// Writes the archive; how many events it has.
fn write(file: File, bytes: u64) -> std::io::Result<u64> {
    let mut archive = Archive { output: BufWriter::with_capacity(1 << 20, file), bytes: 0 };
    archive.write(Record::Metadata(Metadata::TraceInfoMagic));
    let mut events = 0;
    for provider in 1..=PROVIDERS {
        archive.definitions(provider);
        let flow = |number: u64| u64::from(provider) << 32 | number;
        for number in 0..OPEN_FLOWS {
            archive.event(number, EventKind::FlowBegin { id: flow(number) });
        }
        let share = bytes * u64::from(provider) / u64::from(PROVIDERS);
        let mut number = OPEN_FLOWS;
        while archive.bytes < share {
            // Four in a row are of one thread.
            let kind = match number % 4 {
                0 => EventKind::DurationBegin,
                1 => EventKind::Instant { scope: Scope::Thread },
                2 => EventKind::Counter { id: 0 },
                _ => EventKind::DurationEnd,
            };
            archive.event(number / 4, kind);
            number += 1;
        }
        while !number.is_multiple_of(4) {
            let kind = if number % 4 == 3 { EventKind::DurationEnd } else { EventKind::Counter { id: 0 } };
            archive.event(number / 4, kind);
            number += 1;
        }
        for flow_number in 0..OPEN_FLOWS {
            archive.event(number, EventKind::FlowEnd { id: flow(flow_number) });
        }
        events += number + OPEN_FLOWS;
    }
    archive.output.flush()?;
    Ok(events)
}

/// Largest memory of the children that were waited for, in bytes.
fn peak_of_children() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to memory of the right size, which the call fills, and zeros are a valid `rusage`.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_maxrss as u64 * 1024
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--bytes").skip(1);
    let bytes = arguments.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(BYTES);
    let program =
        std::env::current_exe().expect("a path").ancestors().nth(2).expect("a directory").join("trace");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("large.fxt");
    let events = write(File::create(&path).expect("a file"), bytes).expect("room for the archive");
    let size = path.metadata().expect("a file").len();

    let start = Instant::now();
    let (mut file, mut buffer) = (File::open(&path).expect("a file"), vec![0; 1 << 20]);
    while file.read(&mut buffer).expect("a file") > 0 {}
    let reading = start.elapsed();

    let start = Instant::now();
    let output = Command::new(&program).arg("check").arg(&path).stderr(Stdio::inherit()).output();
    let Ok(output) = output else {
        eprintln!("{} is not there: cargo build --release", program.display());
        return ExitCode::FAILURE;
    };
    let checking = start.elapsed();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.ends_with("clean\n"), "{text}");
    assert!(text.contains(&format!(" {events} events ")), "{text}");
    let strings = u64::from(PROVIDERS) * u64::from(STRINGS);
    println!(
        "archive: {:.2} GB, {events} events, {strings} strings, {OPEN_FLOWS} flows open at a time",
        size as f64 / 1e9
    );
    println!("peak memory of trace check: {:.1} MB", peak_of_children() as f64 / 1e6);
    println!(
        "time: {:.1} s, {:.1} million events/s, {:.2} GB/s; reading the file alone {:.1} s",
        checking.as_secs_f64(),
        events as f64 / checking.as_secs_f64() / 1e6,
        size as f64 / checking.as_secs_f64() / 1e9,
        reading.as_secs_f64()
    );
    ExitCode::SUCCESS
}
