//! An archive as large as one likes.

use std::io::{BufWriter, Write};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::initialization::Initialization;
use trace_format::kernel_object::{KernelObject, TYPE_PROCESS};
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::{Scheduling, ThreadState};
use trace_format::sink::Sink;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{
    Koid, ProcessKoid, ProviderId, StringIndex, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond,
};

/// How many there are.
pub const PROVIDERS: u32 = 20;
/// Of each provider.
pub const STRINGS: u16 = 5_000;
const THREADS: u8 = 100;
/// Flows that each provider begins long before it ends them.
pub const OPEN_FLOWS: u64 = 5_000;
const RATE: u64 = 2_399_987_654;

struct Archive<W: Write> {
    output: BufWriter<W>,
    bytes: u64,
}

impl<W: Write> Sink for Archive<W> {
    fn word(&mut self, word: u64) {
        self.output.write_all(&word.to_le_bytes()).expect("room for the archive");
        self.bytes += 8;
    }
}

impl<W: Write> Archive<W> {
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

    fn switch(&mut self, provider: u32, number: u64) {
        let thread =
            |number: u64| ThreadKoid(Koid(u64::from(provider) * 1000 + 1 + number % u64::from(THREADS)));
        self.write(Record::Scheduling(Scheduling::ContextSwitch {
            timestamp: Ticks(40_000_000_000_000 + number * 50),
            cpu: 3,
            outgoing_state: ThreadState::BLOCKED,
            outgoing: thread(number),
            incoming: thread(number + 1),
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

/// Writes an archive of about so many bytes, with a context switch behind every so many events; how many
/// events it has.
///
/// # Errors
/// It cannot be written.
///
/// # Panics
/// There is no room for it.
pub fn write(output: impl Write, bytes: u64, switch_every: Option<u64>) -> std::io::Result<u64> {
    let mut archive = Archive { output: BufWriter::with_capacity(1 << 20, output), bytes: 0 };
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
            if switch_every.is_some_and(|every| number.is_multiple_of(every)) {
                archive.switch(provider, number / 4);
            }
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
