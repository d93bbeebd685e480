//! A record as the header describes it, with pointers into the reader's memory, and into that of [`Filled`].

use crate::abi::{CArgument, CText, CValue, Record, kind};
use trace_format::blob::TYPE_DATA;
use trace_format::further::ARGUMENTS_BLOB_NAME;
use trace_reader::item::{EventKind, ProfilerKind, Scheduling};
use trace_reader::{Arguments, Event, Item, Resolved, Thread, Time, Value};

/// A record, and the memory that some of its pointers lead to.
pub struct Filled {
    record: Record,
    arguments: Vec<CArgument>,
    frames: Vec<u64>,
    text: String,
}

const NULL: u32 = 0;
const INT32: u32 = 1;
const UINT32: u32 = 2;
const INT64: u32 = 3;
const UINT64: u32 = 4;
const DOUBLE: u32 = 5;
const STRING: u32 = 6;
const POINTER: u32 = 7;
const KOID: u32 = 8;
const BOOL: u32 = 9;
const BLOB: u32 = 10;
/// Of a later version of the format.
const UNKNOWN: u32 = u32::MAX;

impl Filled {
    /// An empty record.
    pub const fn new() -> Self {
        Self { record: Record::EMPTY, arguments: Vec::new(), frames: Vec::new(), text: String::new() }
    }

    /// Replaces the record. Its pointers are valid until the reader advances, or this is filled again.
    pub fn fill(&mut self, found: &Resolved<'_>) -> *const Record {
        let mut record = Record {
            offset: found.offset.0,
            provider: found.provider.0,
            provider_name: found.provider_name.into(),
            ..Record::EMPTY
        };
        self.arguments.clear();
        self.frames.clear();
        self.item(&mut record, &found.item);
        record.arguments = self.arguments.as_ptr();
        record.num_arguments = self.arguments.len();
        record.frames = self.frames.as_ptr();
        record.num_frames = self.frames.len();
        self.record = record;
        &raw const self.record
    }

    fn item(&mut self, record: &mut Record, item: &Item<'_>) {
        match item {
            Item::Magic => record.kind = kind::MAGIC,
            Item::ProviderInfo { name } => {
                record.kind = kind::PROVIDER_INFO;
                record.name = (*name).into();
            }
            Item::ProviderSection => record.kind = kind::PROVIDER_SECTION,
            Item::ProviderEvent { about, event } => {
                record.kind = kind::PROVIDER_EVENT;
                record.subtype = (*event).into();
                record.id = about.0.into();
            }
            Item::Initialization { rate } => {
                record.kind = kind::INITIALIZATION;
                record.ticks_per_second = rate.0.into();
            }
            Item::String { index, value } => {
                record.kind = kind::STRING;
                record.id = (*index).into();
                record.name = (*value).into();
            }
            Item::Thread { index, thread } => {
                record.kind = kind::THREAD;
                record.id = (*index).into();
                set_thread(record, *thread);
            }
            Item::Event(event) => self.event(record, event),
            Item::Blob { name, blob_type, payload } => {
                record.kind = kind::BLOB;
                record.subtype = (*blob_type).into();
                record.name = (*name).into();
                set_payload(record, payload, payload.len() as u64);
            }
            Item::Loss(loss) => {
                record.kind = kind::LOSS;
                record.id = loss.provider.0.into();
                record.subtype = loss.reason.0.into();
                record.name = CText::of(loss.reason.text().unwrap_or_default().as_bytes());
                record.value = loss.count;
                (record.ticks, record.end_ticks) = (loss.first.0, loss.last.0);
            }
            Item::Ledger(ledger) => {
                record.kind = kind::LEDGER;
                record.id = ledger.provider.0.into();
                self.arguments.extend(
                    [
                        ("generated", ledger.generated),
                        ("archived", ledger.archived),
                        ("records", ledger.records),
                        ("uncertain", ledger.uncertain),
                    ]
                    .map(|(name, number)| argument(CText::of(name.as_bytes()), Value::Uint64(number))),
                );
            }
            Item::FurtherArguments(piece) => {
                record.kind = kind::BLOB;
                record.subtype = TYPE_DATA.into();
                record.name = CText::of(ARGUMENTS_BLOB_NAME.as_bytes());
                set_payload(record, piece, piece.len() as u64);
            }
            Item::Function(function) => {
                record.kind = kind::FUNCTION;
                record.process = function.process.0;
                record.name = CText::of(function.name);
                record.module_start = function.start;
                record.module_length = function.length;
            }
            Item::UserspaceObject { process, address, name, arguments } => {
                record.kind = kind::USERSPACE_OBJECT;
                record.process = process.0;
                record.id = *address;
                record.name = (*name).into();
                self.set_arguments(arguments);
            }
            Item::KernelObject { object_type, koid, name, arguments } => {
                record.kind = kind::KERNEL_OBJECT;
                record.subtype = (*object_type).into();
                record.id = koid.0;
                record.name = (*name).into();
                self.set_arguments(arguments);
            }
            Item::Scheduling { time, kind, arguments } => {
                record.kind = kind::SCHEDULING;
                set_time(record, *time);
                set_scheduling(record, *kind);
                self.set_arguments(arguments);
            }
            Item::Log { time, thread, message } => {
                record.kind = kind::LOG;
                set_time(record, *time);
                set_thread(record, *thread);
                record.name = (*message).into();
            }
            Item::Profiler { time, thread, kind } => {
                record.kind = kind::PROFILER;
                set_time(record, *time);
                set_thread(record, *thread);
                self.profiler(record, *kind);
            }
            Item::LargeBlob { category, name, event, payload, payload_bytes } => {
                record.kind = kind::LARGE_BLOB;
                record.category = (*category).into();
                record.name = (*name).into();
                // The event format has number 0, an attachment 1.
                record.subtype = u32::from(event.is_none());
                if let Some((time, thread, arguments)) = event {
                    set_time(record, *time);
                    set_thread(record, *thread);
                    self.set_arguments(arguments);
                }
                set_payload(record, payload, *payload_bytes);
            }
            Item::LargeBlobPart { payload } => {
                record.kind = kind::LARGE_BLOB_PART;
                set_payload(record, payload, payload.len() as u64);
            }
            Item::Unknown { header, size } => {
                record.kind = kind::UNKNOWN;
                record.id = header.0;
                record.value = size.bytes() as u64;
            }
            Item::Malformed { header, error } => {
                record.kind = kind::MALFORMED;
                record.id = header.0;
                self.text = error.to_string();
                record.name = CText::of(self.text.as_bytes());
            }
            Item::Damage { bytes } => {
                record.kind = kind::DAMAGE;
                record.value = *bytes;
            }
        }
    }

    fn event(&mut self, record: &mut Record, event: &Event<'_>) {
        record.kind = kind::EVENT;
        set_time(record, event.time);
        set_thread(record, event.thread);
        record.category = event.category.into();
        record.name = event.name.into();
        self.set_arguments(&event.arguments);
        // Types as in the format.
        (record.subtype, record.id) = match event.kind {
            EventKind::Instant { scope } => (0, scope as u64),
            EventKind::Counter { id } => (1, id),
            EventKind::DurationBegin => (2, 0),
            EventKind::DurationEnd => (3, 0),
            EventKind::DurationComplete { end } => {
                record.end_ticks = end.0;
                record.end_nanos = end.to_nanos(event.time.rate).0;
                (4, 0)
            }
            EventKind::AsyncBegin { id } => (5, id),
            EventKind::AsyncInstant { id } => (6, id),
            EventKind::AsyncEnd { id } => (7, id),
            EventKind::FlowBegin { id } => (8, id),
            EventKind::FlowStep { id } => (9, id),
            EventKind::FlowEnd { id } => (10, id),
            EventKind::Unknown { raw } => (raw.into(), 0),
        };
    }

    fn profiler(&mut self, record: &mut Record, kind: ProfilerKind<'_>) {
        match kind {
            ProfilerKind::Module { id, name, build_id } => {
                record.subtype = 0;
                record.id = id.into();
                record.name = CText::of(name);
                set_payload(record, build_id, build_id.len() as u64);
            }
            ProfilerKind::Mmap { module, flags, start, length, linked_at } => {
                record.subtype = 1;
                record.id = module.into();
                record.value = flags.into();
                record.module_start = start;
                record.module_length = length;
                record.module_linked_at = linked_at;
            }
            ProfilerKind::Backtrace { frames } => {
                record.subtype = 2;
                self.frames.extend(frames.iter());
            }
        }
    }

    fn set_arguments(&mut self, arguments: &Arguments<'_>) {
        self.arguments.extend(arguments.iter().map(|(name, value)| argument(name.into(), value)));
    }
}

fn argument(name: CText, value: Value<'_>) -> CArgument {
    let number = |number| CValue { number };
    let text = |bytes| CValue { text: CText::of(bytes) };
    let (argument_type, value) = match value {
        Value::Null => (NULL, number(0)),
        Value::Bool(value) => (BOOL, number(value.into())),
        Value::Int32(value) => (INT32, CValue { signed_number: value.into() }),
        Value::Uint32(value) => (UINT32, number(value.into())),
        Value::Int64(value) => (INT64, CValue { signed_number: value }),
        Value::Uint64(value) => (UINT64, number(value)),
        Value::Double(real) => (DOUBLE, CValue { real }),
        Value::String(value) => (STRING, text(value.0)),
        Value::Pointer(value) => (POINTER, number(value)),
        Value::Koid(value) => (KOID, number(value.0)),
        Value::Blob(bytes) => (BLOB, text(bytes)),
        Value::Unknown => (UNKNOWN, number(0)),
    };
    CArgument { name, argument_type, value }
}

fn set_time(record: &mut Record, time: Time) {
    record.has_time = true;
    record.ticks = time.ticks.0;
    record.nanos = time.nanos().0;
    record.ticks_per_second = time.rate.0.into();
}

const fn set_thread(record: &mut Record, thread: Thread) {
    record.process = thread.process.0;
    record.thread = thread.thread.0;
}

const fn set_payload(record: &mut Record, payload: &[u8], all: u64) {
    record.payload = CText::of(payload);
    record.payload_bytes = all;
}

fn set_scheduling(record: &mut Record, scheduling: Scheduling) {
    // Types as in the format.
    match scheduling {
        Scheduling::LegacyContextSwitch {
            cpu,
            outgoing_state,
            outgoing,
            incoming,
            outgoing_priority,
            incoming_priority,
        } => {
            record.subtype = 0;
            record.cpu = cpu.into();
            record.outgoing_state = outgoing_state.0.into();
            record.outgoing_process = outgoing.process.0;
            record.outgoing_thread = outgoing.thread.0;
            set_thread(record, incoming);
            record.outgoing_priority = outgoing_priority.into();
            record.incoming_priority = incoming_priority.into();
        }
        Scheduling::ContextSwitch { cpu, outgoing_state, outgoing, incoming } => {
            record.subtype = 1;
            record.cpu = cpu.into();
            record.outgoing_state = outgoing_state.0.into();
            record.outgoing_thread = outgoing.0;
            record.thread = incoming.0;
        }
        Scheduling::ThreadWakeup { cpu, thread } => {
            record.subtype = 2;
            record.cpu = cpu.into();
            record.thread = thread.0;
        }
        Scheduling::FiberSwitch { outgoing, incoming } => {
            record.subtype = 3;
            record.outgoing_thread = outgoing.0;
            record.thread = incoming.0;
        }
    }
}
