//! An archive in memory, in the shape that assertions want.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use trace_format::event::EventKind;
use trace_format::loss::{LedgerRecord, LossCode, LossRecord};
use trace_format::slab::LossReason;
use trace_format::units::{Koid, Nanos, ProviderId, Ticks, TicksPerSecond};
use trace_reader::item::{Scheduling, ThreadState};
use trace_reader::{Item, Plain, Reader};

/// The id of the manager's own provider.
pub const MANAGER: ProviderId = ProviderId(0);

/// One event, with the provider it belongs to.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its provider.
    pub provider: ProviderId,
    /// Itself.
    pub event: ResolvedEvent,
}

/// Text of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Vec<u8>);

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "as in the reader")]
pub enum Value {
    Null,
    Bool(bool),
    Int32(i32),
    Uint32(u32),
    Int64(i64),
    Uint64(u64),
    Double(f64),
    String(Text),
    Pointer(u64),
    Koid(Koid),
    Blob(Vec<u8>),
    Unknown,
}

/// An event that outlives its reader.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "as in the reader")]
pub struct ResolvedEvent {
    pub timestamp: Ticks,
    pub rate: TicksPerSecond,
    pub process: Koid,
    pub thread: Koid,
    pub category: Text,
    pub name: Text,
    pub kind: EventKind,
    pub arguments: Vec<(Text, Value)>,
}

impl Text {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// For display.
    #[must_use]
    pub fn to_str(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<trace_reader::Text<'_>> for Text {
    fn from(text: trace_reader::Text<'_>) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<trace_reader::Value<'_>> for Value {
    fn from(value: trace_reader::Value<'_>) -> Self {
        use trace_reader::Value as Found;

        match value {
            Found::Null => Self::Null,
            Found::Bool(value) => Self::Bool(value),
            Found::Int32(value) => Self::Int32(value),
            Found::Uint32(value) => Self::Uint32(value),
            Found::Int64(value) => Self::Int64(value),
            Found::Uint64(value) => Self::Uint64(value),
            Found::Double(value) => Self::Double(value),
            Found::String(value) => Self::String(value.into()),
            Found::Pointer(value) => Self::Pointer(value),
            Found::Koid(value) => Self::Koid(value),
            Found::Blob(value) => Self::Blob(value.to_vec()),
            Found::Unknown => Self::Unknown,
        }
    }
}

impl From<trace_reader::Event<'_>> for ResolvedEvent {
    fn from(event: trace_reader::Event<'_>) -> Self {
        Self {
            timestamp: event.time.ticks,
            rate: event.time.rate,
            process: event.thread.process,
            thread: event.thread.thread,
            category: event.category.into(),
            name: event.name.into(),
            kind: event.kind,
            arguments: event.arguments.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        }
    }
}

impl ResolvedEvent {
    /// When, in nanoseconds, rounded down.
    #[must_use]
    pub fn nanos(&self) -> Nanos {
        self.timestamp.to_nanos(self.rate)
    }

    /// The argument of a name.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.iter().find(|(found, _)| found.as_bytes() == name.as_bytes()).map(|(_, value)| value)
    }
}

/// Everything an archive holds.
#[derive(Debug, Default)]
pub struct Archive {
    /// Names of the providers, by id.
    pub providers: BTreeMap<ProviderId, String>,
    /// Events of all providers, in the order of the file, without the manager's own.
    pub events: Vec<Event>,
    /// Begins that have no end, and say so.
    pub open: Vec<Event>,
    /// Events of the manager's own provider.
    pub manager_events: Vec<ResolvedEvent>,
    /// Names of processes.
    pub processes: BTreeMap<u64, String>,
    /// Names of threads.
    pub threads: BTreeMap<u64, String>,
    /// Providers whose buffer filled up.
    pub filled_up: Vec<ProviderId>,
    /// What providers lost, as the manager wrote it down.
    pub losses: Vec<LossRecord>,
    /// How the records of providers add up.
    pub ledgers: Vec<LedgerRecord>,
    /// Ticks per second, of each initialization record.
    pub rates: Vec<u64>,
    /// What the scheduler did, in the order of the file.
    pub scheduling: Vec<Scheduled>,
}

/// What the scheduler did; threads by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in the reader")]
pub enum Scheduled {
    Switch { at: u64, cpu: u16, outgoing: u64, state: ThreadState, incoming: u64 },
    Wakeup { at: u64, cpu: u16, thread: u64, waker: Option<u64> },
}

impl Scheduled {
    /// When, in ticks.
    #[must_use]
    pub const fn at(&self) -> u64 {
        match self {
            Self::Switch { at, .. } | Self::Wakeup { at, .. } => *at,
        }
    }

    fn new(at: u64, kind: Scheduling, arguments: trace_reader::Arguments<'_>) -> Option<Self> {
        Some(match kind {
            Scheduling::ContextSwitch { cpu, outgoing_state: state, outgoing, incoming } => {
                Self::Switch { at, cpu, outgoing: outgoing.0, state, incoming: incoming.0 }
            }
            Scheduling::ThreadWakeup { cpu, thread } => {
                let waker = arguments.iter().find_map(|(name, value)| match value {
                    trace_reader::Value::Koid(koid) if name.as_bytes() == b"waker" => Some(koid.0),
                    _ => None,
                });
                Self::Wakeup { at, cpu, thread: thread.0, waker }
            }
            _ => return None,
        })
    }
}

impl Event {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.event.name.to_str().into_owned()
    }

    /// An unsigned argument.
    ///
    /// # Panics
    /// If there is none of this name and type.
    #[must_use]
    pub fn u64(&self, name: &str) -> u64 {
        match self.event.argument(name) {
            Some(Value::Uint64(value)) => *value,
            other => panic!("{name} is {other:?}"),
        }
    }
}

impl Archive {
    /// Reads an archive that must be without a flaw.
    ///
    /// # Panics
    /// If the file is no archive, or anything in it is wrong.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::without_flaw(file)
    }

    /// Reads an archive that may break off anywhere, also before its beginning, compressed or not.
    ///
    /// # Panics
    /// If the file is no archive, or anything in it is wrong.
    #[must_use]
    pub fn read_prefix(path: &Path) -> Self {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (mut plain, _) = Plain::open(file).expect("the file can be read");
        let mut bytes = Vec::new();
        match plain.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::UnexpectedEof => panic!("{}: {error}", path.display()),
            // A client that was killed before it wrote anything leaves such a file.
            _ if bytes.is_empty() => Self::default(),
            _ => Self::of_prefix(&bytes),
        }
    }

    /// As [`Archive::read`], of bytes.
    ///
    /// # Panics
    /// If anything in them is wrong.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::without_flaw(bytes)
    }

    /// As [`Archive::read_prefix`], of bytes.
    ///
    /// # Panics
    /// If they are no archive, or anything in them is wrong.
    #[must_use]
    pub fn of_prefix(bytes: &[u8]) -> Self {
        Self::read_items(bytes).0
    }

    fn without_flaw(input: impl std::io::Read) -> Self {
        let (archive, warnings) = Self::read_items(input);
        assert_eq!(warnings, [""; 0], "the archive has flaws");
        archive
    }

    fn read_items(input: impl std::io::Read) -> (Self, Vec<String>) {
        let mut reader = Reader::new(input).unwrap_or_else(|error| panic!("no archive: {error}"));
        let mut archive = Self::default();
        while let Some(record) = reader.next_item().expect("the archive can be read") {
            let provider = record.provider;
            match record.item {
                Item::ProviderInfo { name } => {
                    archive.providers.insert(provider, name.to_str().into_owned());
                }
                Item::Event(event) if provider == MANAGER => archive.manager_events.push(event.into()),
                Item::Event(event) if event.ending().is_some() => {
                    archive.open.push(Event { provider, event: event.into() });
                }
                Item::Event(event) => archive.events.push(Event { provider, event: event.into() }),
                Item::KernelObject { object_type: 1, koid, name, .. } => {
                    archive.processes.insert(koid.0, name.to_str().into_owned());
                }
                Item::KernelObject { object_type: 2, koid, name, .. } => {
                    archive.threads.insert(koid.0, name.to_str().into_owned());
                }
                Item::ProviderEvent { about, event: 0 } => archive.filled_up.push(about),
                Item::Scheduling { time, kind, arguments } => {
                    archive.scheduling.extend(Scheduled::new(time.ticks.0, kind, arguments));
                }
                Item::Loss(loss) => archive.losses.push(loss),
                Item::Ledger(ledger) => archive.ledgers.push(ledger),
                Item::Initialization { rate } => archive.rates.push(rate.0.get()),
                // What one that means harm writes may look like a record of a later version.
                Item::Unknown { .. } if record.provider_name.as_bytes() == b"hostile" => {}
                Item::Unknown { .. } | Item::Malformed { .. } | Item::Damage { .. } => {
                    panic!("unexpected {record:?}")
                }
                _ => {}
            }
        }
        (archive, reader.warnings().first().iter().map(|warning| format!("{warning:?}")).collect())
    }

    /// Whether the last ledger of each provider adds up with its losses, and how many records it says were
    /// generated.
    ///
    /// # Panics
    /// If a provider's does not, or one has none.
    #[must_use]
    pub fn generated(&self) -> BTreeMap<ProviderId, u64> {
        let providers = self.providers.keys().copied().filter(|id| *id != MANAGER);
        providers
            .map(|id| {
                let ledger = self.ledgers.iter().rfind(|ledger| ledger.provider == id).expect("a ledger");
                let lost = self.losses.iter().filter(|loss| loss.provider == id).map(|loss| loss.count);
                let known = ledger.archived + lost.sum::<u64>();
                assert!(
                    known.abs_diff(ledger.generated) <= ledger.uncertain,
                    "{ledger:?}, {:?}",
                    self.losses
                );
                (id, ledger.generated)
            })
            .collect()
    }

    /// How many records were lost for a reason.
    #[must_use]
    pub fn lost(&self, reason: LossReason) -> u64 {
        let of_reason = self.losses.iter().filter(|loss| loss.reason == LossCode::from(reason));
        of_reason.map(|loss| loss.count).sum()
    }

    /// The number of the thread of a name.
    ///
    /// # Panics
    /// If there is not exactly one.
    #[must_use]
    pub fn thread(&self, name: &str) -> u64 {
        let mut found = self.threads.iter().filter(|(_, found)| *found == name);
        let (Some((thread, _)), None) = (found.next(), found.next()) else {
            panic!("not one {name}: {:?}", self.threads)
        };
        *thread
    }

    /// Events of a name, by thread, in the order of the file.
    #[must_use]
    pub fn by_thread(&self, name: &str) -> BTreeMap<u64, Vec<&Event>> {
        let mut threads: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.event.name.as_bytes() == name.as_bytes()) {
            threads.entry(event.event.thread.0).or_default().push(event);
        }
        threads
    }

    /// The same in the order of time: what was written at the end of a full buffer, into slabs that were
    /// taken back from other threads, may stand before what the thread wrote earlier.
    pub fn by_thread_and_time(&self, name: &str) -> BTreeMap<u64, Vec<&Event>> {
        let mut threads = self.by_thread(name);
        threads.values_mut().for_each(|events| events.sort_by_key(|event| event.event.timestamp));
        threads
    }
}
