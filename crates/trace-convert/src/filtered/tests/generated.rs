//! Archives as programs record them, in random order, whose parts belong together.

use crate::sink::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::blob::{Blob, TYPE_DATA};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::function::FunctionRecord;
use trace_format::initialization::Initialization;
use trace_format::kernel_object::{KernelObject, PROCESS_ARGUMENT, TYPE_CHANNEL, TYPE_PROCESS, TYPE_THREAD};
use trace_format::large::LargeBlob;
use trace_format::log::Log;
use trace_format::loss::{LedgerRecord, LossCode, LossRecord};
use trace_format::metadata::Metadata;
use trace_format::profiler::{Profiler, ProfilerKind};
use trace_format::program_info::{COMMAND_LINE_ARGUMENT, PROVIDER_ARGUMENT};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::{Scheduling, ThreadState};
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{
    Koid, ProcessKoid, ProviderId, StringIndex, ThreadIndex, ThreadKoid, Ticks, TicksPerSecond,
};
use trace_format::userspace_object::{ProcessRef, UserspaceObject};
use trace_reader::Reader;
use trace_reader::dump::Line;

/// An archive, and the processes in it by their names.
pub struct Archive {
    pub bytes: Vec<u8>,
    pub processes: BTreeMap<&'static str, u64>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reader = Reader::of_slice(&self.bytes).map_err(|_| fmt::Error)?;
        while let Some(record) = reader.next_item().map_err(|_| fmt::Error)? {
            writeln!(f, "{}", Line(&record))?;
        }
        Ok(())
    }
}

pub fn thread(process: u64, thread: u64) -> ThreadRef {
    ThreadRef::Inline { process: ProcessKoid(Koid(process)), thread: ThreadKoid(Koid(thread)) }
}

fn argument<'a>(name: &'a str, value: ArgumentValue<'a>) -> Argument<'a> {
    Argument { name: StringRef::inline(name), value }
}

fn text(text: &str) -> ArgumentValue<'_> {
    ArgumentValue::String(StringRef::inline(text))
}

/// An instant without anything.
pub fn event() -> Event<'static> {
    Event {
        timestamp: Ticks(1),
        thread: thread(0, 0),
        category: StringRef::Empty,
        name: StringRef::Empty,
        kind: EventKind::Instant { scope: Scope::Thread },
        arguments: Arguments::default(),
    }
}

/// Writes an archive.
pub struct Writer {
    bytes: Bytes,
    current: u32,
    time: u64,
    /// Records of each provider.
    counts: BTreeMap<u32, u64>,
    indices: HashMap<(u32, String), StringIndex>,
}

impl Writer {
    pub fn new() -> Self {
        let mut writer = Self {
            bytes: Bytes(Vec::new()),
            current: 0,
            time: 1000,
            counts: BTreeMap::new(),
            indices: HashMap::new(),
        };
        writer.introduce(0, "trace_manager");
        let arguments = [
            argument("host", text("myhost")),
            argument("command_line", text("server worker --flag")),
            argument("categories", text("app_event net_event disk_event")),
        ];
        writer.global("recording", &arguments);
        writer
    }

    fn global(&mut self, name: &str, arguments: &[Argument<'_>]) {
        self.select(0);
        self.time += 1;
        self.write(&Record::Event(Event {
            timestamp: Ticks(self.time),
            thread: thread(1, 1),
            category: StringRef::inline("trace"),
            name: StringRef::inline(name),
            kind: EventKind::Instant { scope: Scope::Global },
            arguments: Arguments::from_slice(arguments),
        }));
    }

    pub fn finish(mut self) -> Archive {
        self.global("recording_end", &[]);
        Archive { bytes: self.bytes.0, processes: BTreeMap::from([("server", 10), ("worker", 20)]) }
    }

    /// Writes a record of the current provider.
    pub fn write(&mut self, record: &Record<'_>) {
        record.encode(&mut self.bytes).unwrap();
        *self.counts.entry(self.current).or_default() += 1;
    }

    fn metadata(&mut self, metadata: &Metadata<'_>) {
        Metadata::TraceInfoMagic.encode(&mut self.bytes).unwrap();
        metadata.encode(&mut self.bytes).unwrap();
    }

    pub fn introduce(&mut self, id: u32, name: &str) {
        self.metadata(&Metadata::ProviderInfo { id: ProviderId(id), name: name.as_bytes() });
        self.current = id;
        let rate = TicksPerSecond::new(2_000_000_000).unwrap();
        self.write(&Record::Initialization(Initialization { ticks_per_second: rate }));
    }

    fn select(&mut self, id: u32) {
        if self.current != id {
            self.metadata(&Metadata::ProviderSection { id: ProviderId(id) });
            self.current = id;
        }
    }

    pub fn loss(&mut self, id: u32, reason: LossCode, count: u64) {
        self.select(id);
        let loss = LossRecord { provider: ProviderId(id), reason, count, first: Ticks(1), last: Ticks(2) };
        LossRecord::blob(&loss.to_bytes()).encode(&mut self.bytes).unwrap();
    }

    /// A ledger of records of which some were lost, and which is wrong by some.
    pub fn ledger(&mut self, id: u32, lost: u64, wrong: u64) {
        self.select(id);
        let records = self.counts.get(&id).copied().unwrap_or_default() + wrong;
        let provider = ProviderId(id);
        let ledger = LedgerRecord { provider, generated: 100 + lost, archived: 100, records, uncertain: 0 };
        LedgerRecord::blob(&ledger.to_bytes()).encode(&mut self.bytes).unwrap();
    }

    pub fn instant(&mut self, id: u32, process: u64, category: &str, name: &str, arguments: &[Argument<'_>]) {
        self.select(id);
        self.time += 1;
        self.write(&Record::Event(Event {
            timestamp: Ticks(self.time),
            thread: thread(process, process + 1),
            category: StringRef::inline(category),
            name: StringRef::inline(name),
            arguments: Arguments::from_slice(arguments),
            ..event()
        }));
    }

    /// A reference to a text, which is in the table or not.
    fn string<'a>(&mut self, text: &'a str, is_indexed: bool) -> StringRef<'a> {
        if !is_indexed || text.is_empty() {
            return StringRef::inline(text);
        }
        let key = (self.current, text.to_owned());
        if let Some(index) = self.indices.get(&key) {
            return StringRef::Index(*index);
        }
        let index = StringIndex::new(self.indices.len() as u16 * 3 + 1).unwrap();
        self.write(&Record::String(StringRecord { index: index.get(), value: text.as_bytes() }));
        self.indices.insert(key, index);
        StringRef::Index(index)
    }

    fn object(&mut self, object_type: u8, koid: u64, name: &str, arguments: &[Argument<'_>]) {
        let arguments = Arguments::from_slice(arguments);
        let name = StringRef::inline(name);
        self.write(&Record::KernelObject(KernelObject { object_type, koid: Koid(koid), name, arguments }));
    }

    /// A program: a provider of one process, with the names of that.
    fn program(&mut self, id: u32, process: u64, name: &str) {
        self.select(0);
        let arguments = [
            argument(PROVIDER_ARGUMENT, ArgumentValue::Uint32(id)),
            argument(PROCESS_ARGUMENT, ArgumentValue::Koid(Koid(process))),
            argument(COMMAND_LINE_ARGUMENT, text("--flag secret")),
        ];
        self.object(TYPE_CHANNEL, 0, name, &arguments);
        self.introduce(id, name);
    }

    /// The names of a program's process and threads.
    fn names(&mut self, id: u32, process: u64, name: &str) {
        self.select(id);
        self.object(TYPE_PROCESS, process, name, &[]);
        let of_process = [argument(PROCESS_ARGUMENT, ArgumentValue::Koid(Koid(process)))];
        for thread in [process + 1, process + 2] {
            self.object(TYPE_THREAD, thread, "main-thread", &of_process);
        }
    }
}

/// Spans that are open.
#[derive(Default)]
struct Open {
    durations: HashMap<(usize, u64), Vec<(&'static str, String)>>,
    /// Operations: the process and the thread in which they began, category and id.
    operations: Vec<(usize, &'static str, u64)>,
    flows: Vec<u64>,
}

const PROGRAMS: [(u32, u64, &str); 2] = [(1, 10, "server"), (2, 20, "worker")];
/// The provider of the kernel's records.
const KERNEL: u32 = 3;
const CATEGORIES: [&str; 3] = ["app", "net", "disk"];

/// One thing that happens, of random bytes.
fn step(writer: &mut Writer, open: &mut Open, number: u64, bytes: [u8; 6]) {
    let [what, program, of_thread, category, choice, argument_bits] = bytes;
    let place = usize::from(program) % 2;
    let (id, process, name) = PROGRAMS[place];
    let thread_koid = process + 1 + u64::from(of_thread % 2);
    let category = CATEGORIES[usize::from(category) % 3];
    writer.select(id);
    writer.time += 1;
    let timestamp = Ticks(writer.time);
    let is_indexed = choice & 1 == 1;
    let at = if choice & 2 == 2 {
        let index = ThreadIndex::new(1 + (of_thread % 2)).unwrap();
        let (process, thread) = (ProcessKoid(Koid(process)), ThreadKoid(Koid(thread_koid)));
        writer.write(&Record::Thread(ThreadRecord { index: index.get(), process, thread }));
        ThreadRef::Index(index)
    } else {
        thread(process, thread_koid)
    };
    let own_name = format!("{category}_event");
    let written = |writer: &mut Writer, category: &str, name: &str, kind| {
        let secret = format!("secret {}", argument_bits % 5);
        let key = writer.string("key", is_indexed);
        let value = ArgumentValue::String(writer.string(&secret, argument_bits & 8 == 8));
        let all = [
            Argument { name: key, value },
            argument("bytes", ArgumentValue::Int32(7)),
            argument("count", ArgumentValue::Double(0.5)),
            argument("raw", ArgumentValue::Blob(b"payload")),
            argument("flag", ArgumentValue::Bool(true)),
            argument("none", ArgumentValue::Null),
        ];
        let arguments: Vec<_> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| argument_bits >> at & 1 == 1)
            .map(|(_, one)| *one)
            .collect();
        let category = writer.string(category, is_indexed);
        let name = writer.string(name, is_indexed);
        let arguments = Arguments::from_slice(&arguments);
        writer.write(&Record::Event(Event { timestamp, thread: at, category, name, kind, arguments }));
    };
    match what % 20 {
        0 | 1 => written(writer, category, &own_name, EventKind::Instant { scope: Scope::Process }),
        2 if argument_bits & 6 != 0 => written(writer, category, &own_name, EventKind::Counter { id: 3 }),
        3 | 4 => {
            open.durations.entry((place, thread_koid)).or_default().push((category, own_name.clone()));
            written(writer, category, &own_name, EventKind::DurationBegin);
        }
        5 | 6 => {
            if let Some((category, name)) = open.durations.get_mut(&(place, thread_koid)).and_then(Vec::pop) {
                // Some writers say nothing where a duration ends.
                let is_plain = choice & 4 == 4;
                let (category, name) = if is_plain { ("", "") } else { (category, name.as_str()) };
                written(writer, category, name, EventKind::DurationEnd);
            }
        }
        7 => {
            open.operations.push((place, category, number));
            written(writer, category, &own_name, EventKind::AsyncBegin { id: number });
        }
        8 => {
            if let Some((_, category, id)) = open.operations.pop() {
                // It ends in this process, or in another one.
                written(writer, category, &format!("{category}_event"), EventKind::AsyncEnd { id });
            }
        }
        9 => {
            open.flows.push(number);
            written(writer, category, &own_name, EventKind::FlowBegin { id: number });
        }
        10 => {
            if let Some(id) = open.flows.pop() {
                written(writer, category, &own_name, EventKind::FlowStep { id });
                written(writer, category, &own_name, EventKind::FlowEnd { id });
            }
        }
        11 => writer.write(&Record::Log(Log { timestamp, thread: at, message: b"message" })),
        12 => {
            let name = StringRef::inline("hidden");
            let payload = b"payload";
            writer.write(&Record::Blob(Blob { blob_type: TYPE_DATA, name, payload }));
        }
        13 => {
            writer.select(KERNEL);
            let arguments = [argument("weight", ArgumentValue::Int32(5)), argument("why", text("secret"))];
            let arguments = Arguments::from_slice(&arguments);
            let other = ThreadKoid(Koid(PROGRAMS[1 - place].1 + 1));
            let outgoing_state = ThreadState::BLOCKED;
            writer.write(&Record::Scheduling(Scheduling::ContextSwitch {
                timestamp,
                cpu: 1,
                outgoing_state,
                outgoing: ThreadKoid(Koid(thread_koid)),
                incoming: other,
                arguments,
            }));
            let thread = ThreadKoid(Koid(thread_koid));
            writer.write(&Record::Scheduling(Scheduling::ThreadWakeup {
                timestamp,
                cpu: 1,
                thread,
                arguments,
            }));
        }
        14 => {
            let kind = ProfilerKind::Module { id: 1, name: b"module", build_id: b"build" };
            writer.write(&Record::Profiler(Profiler { timestamp, thread: at, kind }));
            let function = FunctionRecord { process: Koid(process), start: 16, length: 8, name: b"hidden" };
            writer.write(&Record::Blob(function.to_bytes().blob()));
        }
        15 => {
            let name = StringRef::inline("hidden");
            let category = StringRef::inline(category);
            writer.write(&Record::Large(LargeBlob {
                category,
                name: name_of(name),
                event: None,
                payload: b"payload",
            }));
        }
        16 => {
            let ThreadRef::Index(index) = at else { return };
            let (address, name) = (u64::from(choice), StringRef::inline("hidden"));
            let arguments = [argument("why", text("secret"))];
            let arguments = Arguments::from_slice(&arguments);
            let process = ProcessRef::Index(index);
            writer.write(&Record::UserspaceObject(UserspaceObject { process, address, name, arguments }));
        }
        17 => writer.names(id, process, name),
        18 => {
            writer.ledger(id, 0, 0);
        }
        _ => {
            written(writer, category, &own_name, EventKind::DurationComplete { end: timestamp });
        }
    }
}

/// Names of large blobs stay.
fn name_of(_: StringRef<'_>) -> StringRef<'static> {
    StringRef::inline("capture")
}

/// Ends everything that is open.
fn close(writer: &mut Writer, open: Open) {
    let written = |writer: &mut Writer, place: usize, thread_koid: u64, category: &str, kind| {
        let (id, process, _) = PROGRAMS[place];
        writer.select(id);
        writer.time += 1;
        let name = format!("{category}_event");
        writer.write(&Record::Event(Event {
            timestamp: Ticks(writer.time),
            thread: thread(process, thread_koid),
            category: StringRef::inline(category),
            name: StringRef::inline(&name),
            kind,
            arguments: Arguments::default(),
        }));
    };
    for ((place, thread_koid), stack) in open.durations {
        for (category, _) in stack.into_iter().rev() {
            written(writer, place, thread_koid, category, EventKind::DurationEnd);
        }
    }
    for (place, category, id) in open.operations {
        written(writer, place, PROGRAMS[place].1 + 1, category, EventKind::AsyncEnd { id });
    }
    for id in open.flows {
        written(writer, 0, 11, "app", EventKind::FlowEnd { id });
    }
}

/// Archives of two programs, without a problem.
pub fn archives() -> impl Strategy<Value = Archive> {
    (vec(any::<[u8; 6]>(), 0..120), any::<bool>()).prop_map(|(steps, are_names_late)| {
        let mut writer = Writer::new();
        let mut open = Open::default();
        for (id, process, name) in PROGRAMS {
            writer.program(id, process, name);
            if !are_names_late {
                writer.names(id, process, name);
            }
        }
        // Records of the scheduler name threads of other programs.
        writer.program(KERNEL, 30, "kernel");
        for (number, bytes) in steps.into_iter().enumerate() {
            step(&mut writer, &mut open, number as u64, bytes);
        }
        close(&mut writer, open);
        for (id, process, name) in PROGRAMS {
            writer.names(id, process, name);
            writer.ledger(id, 0, 0);
        }
        writer.ledger(KERNEL, 0, 0);
        writer.finish()
    })
}
