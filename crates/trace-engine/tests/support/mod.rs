//! Runs one trace at a time on heap memory and reads it back.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trace_engine::{BufferMode, Config, HeapWords, Region, engine};
use trace_format::argument::ArgumentValue;
use trace_format::buffer::{BufferHeader, Layout};
use trace_format::event::{Event as Record_, EventKind};
use trace_format::record::{Record, RecordHeader};
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::slab::{Loss, LossReason, SlabWord};
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferReader, Findings};

/// The engine is one for the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
const RATE: u64 = 1_000_000_000;

/// What the engine writes into.
enum Memory {
    Heap(HeapWords),
    /// Shared with forked children, unless the engine sees to it that it is not.
    Shared(zx_sim::Vmo),
}

impl Memory {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Heap(words) => words.to_bytes(),
            Self::Shared(vmo) => {
                let mut bytes = vec![0; vmo.size().unwrap() as usize];
                assert_eq!(vmo.read_at(0, &mut bytes).unwrap(), bytes.len());
                bytes
            }
        }
    }
}

/// A running trace.
pub struct Trace {
    words: Memory,
    layout: Layout,
    _alone: MutexGuard<'static, ()>,
}

/// One event, resolved to text where that is easier to compare.
#[derive(Clone, Debug)]
pub struct Event {
    pub kind: String,
    pub timestamp: u64,
    /// Of a complete duration.
    pub end: Option<u64>,
    pub thread: u64,
    pub category: String,
    pub name: String,
    pub args: Vec<(String, String)>,
    numbers: BTreeMap<String, u64>,
}

/// Everything read back.
pub struct Read {
    /// Each record as `trace dump` shows it, without offset and provider.
    pub dump: Vec<String>,
    pub header: BufferHeader,
    pub findings: Findings,
    pub events: Vec<Event>,
    pub thread_records: usize,
    pub slabs_used: usize,
    losses: [(LossReason, Loss); 8],
    definition_bytes: u64,
    /// No other test's trace begins before this one was looked at.
    _alone: MutexGuard<'static, ()>,
}

impl Trace {
    pub fn start(bytes: usize, categories: &[&str]) -> Self {
        let (region, words) = Region::on_heap(bytes);
        Self::start_on(region, Memory::Heap(words), categories)
    }

    /// On a shared mapping, as a provider has it.
    pub fn start_shared(bytes: usize) -> Self {
        let vmo = zx_sim::Vmo::anonymous("test", bytes as u64).unwrap();
        let mapping = vmo.map().unwrap();
        let (base, length) = (mapping.as_ptr(), mapping.len());
        // SAFETY: a mapping of so many bytes that its owner keeps, and that nothing refers to.
        let region = unsafe { Region::from_mapping(base, length, Box::new(mapping)) };
        Self::start_on(region, Memory::Shared(vmo), &[])
    }

    fn start_on(region: Region, words: Memory, categories: &[&str]) -> Self {
        let bytes = region.len_bytes();
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if engine::state() != engine::State::Idle {
            // An earlier test failed half-way.
            engine::terminate(Instant::now() + Duration::from_secs(1)).unwrap();
        }
        let config = Config {
            process: u64::from(std::process::id()),
            process_name: "p".into(),
            ticks_per_second: RATE,
            categories: categories.iter().map(ToString::to_string).collect(),
        };
        engine::initialize(region, BufferMode::Oneshot, config).unwrap();
        engine::start().unwrap();
        let layout = Layout::new(bytes as u64, BufferMode::Oneshot).unwrap();
        Self { words, layout, _alone: alone }
    }

    fn slab_count(&self) -> u32 {
        self.layout.slab_count()
    }

    pub fn slab_bytes(&self) -> u64 {
        self.layout.slab_bytes
    }

    fn slabs_used(&self, bytes: &[u8]) -> usize {
        let start = self.layout.slab_words as usize;
        bytes[start..start + self.slab_count() as usize * 8]
            .as_chunks::<8>()
            .0
            .iter()
            .filter(|word| **word != SlabWord::EMPTY.0.to_le_bytes())
            .count()
    }

    pub fn wait_for_slabs(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.slabs_used(&self.words.to_bytes()) < count {
            assert!(Instant::now() < deadline, "nobody writes");
        }
    }

    pub fn stop(self) -> Read {
        let stopped = engine::stop(Instant::now() + Duration::from_secs(5)).unwrap();
        assert_eq!(stopped.stragglers, 0);
        let bytes = self.words.to_bytes();
        engine::terminate(Instant::now() + Duration::from_secs(5)).unwrap();
        let slabs_used = self.slabs_used(&bytes);
        read(&bytes, slabs_used, self._alone)
    }
}

fn read(bytes: &[u8], slabs_used: usize, alone: MutexGuard<'static, ()>) -> Read {
    let rate = TicksPerSecond(NonZeroU64::new(RATE).unwrap());
    let mut reader =
        BufferReader::open(bytes, bytes.len() as u64, BufferMode::Oneshot, rate, Activity::Quiet).unwrap();
    let mut out = Vec::new();
    while reader.read_batch(&mut out).unwrap() {}
    let mut strings = BTreeMap::new();
    let mut threads = BTreeMap::new();
    let mut events = Vec::new();
    let mut definition_bytes = 0;
    let mut rest = out.as_slice();
    while let Some(header) = rest.first_chunk::<8>() {
        let size = RecordHeader(u64::from_le_bytes(*header)).size().bytes();
        let (record, behind) = rest.split_at(size);
        rest = behind;
        match Record::decode(record).unwrap() {
            Record::Event(event) => {
                events.push(resolve(&event, &strings, &threads));
                continue;
            }
            Record::String(string) => {
                strings.insert(string.index, String::from_utf8(string.value.to_vec()).unwrap());
            }
            Record::Thread(thread) => {
                assert_eq!(thread.process.0.0, u64::from(std::process::id()));
                threads.insert(thread.index, thread.thread.0.0);
            }
            Record::Initialization(initialization) => {
                assert_eq!(initialization.ticks_per_second.0.get(), RATE);
            }
            other => assert!(!matches!(other, Record::Metadata(_) | Record::Unknown { .. }), "{other:?}"),
        }
        definition_bytes += size as u64;
    }
    let mut archive = trace_reader::Reader::of_slice(&out).unwrap();
    let mut dump = Vec::new();
    while let Some(record) = archive.next_item().unwrap() {
        let line = trace_reader::dump::Line(&record).to_string();
        dump.push(line.splitn(3, ' ').last().unwrap().to_owned());
    }
    Read {
        dump,
        header: *reader.header(),
        losses: reader.losses().unwrap(),
        findings: reader.findings().clone(),
        events,
        thread_records: threads.len(),
        slabs_used,
        definition_bytes,
        _alone: alone,
    }
}

fn resolve(event: &Record_<'_>, strings: &BTreeMap<u16, String>, threads: &BTreeMap<u8, u64>) -> Event {
    let text = |string: StringRef<'_>| match string {
        StringRef::Empty => String::new(),
        StringRef::Index(index) => strings[&index.get()].clone(),
        StringRef::Inline(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
    };
    let kind = match event.kind {
        EventKind::Instant { scope } => format!("instant {}", ["t", "p", "g"][scope as usize]),
        EventKind::Counter { id } => format!("counter {id}"),
        EventKind::DurationBegin => "begin".into(),
        EventKind::DurationEnd => "end".into(),
        EventKind::DurationComplete { end } => {
            assert!(end >= event.timestamp);
            "complete".into()
        }
        EventKind::AsyncBegin { id } => format!("async begin {id}"),
        EventKind::AsyncInstant { id } => format!("async instant {id}"),
        EventKind::AsyncEnd { id } => format!("async end {id}"),
        EventKind::FlowBegin { id } => format!("flow begin {id}"),
        EventKind::FlowStep { id } => format!("flow step {id}"),
        EventKind::FlowEnd { id } => format!("flow end {id}"),
        other => panic!("{other:?}"),
    };
    let end = match event.kind {
        EventKind::DurationComplete { end } => Some(end.0),
        _ => None,
    };
    let mut numbers = BTreeMap::new();
    let args = event
        .arguments
        .iter()
        .map(|argument| {
            let argument = argument.unwrap();
            let name = text(argument.name);
            let value = match argument.value {
                ArgumentValue::String(value) => format!("{:?}", text(value)),
                ArgumentValue::Koid(koid) => format!("#{}", koid.0),
                ArgumentValue::Blob(bytes) => format!("{bytes:?}"),
                ArgumentValue::Uint64(value) => {
                    numbers.insert(name.clone(), value);
                    format!("Uint64({value})")
                }
                other => format!("{other:?}"),
            };
            (name, value)
        })
        .collect();
    let thread = match event.thread {
        ThreadRef::Index(index) => threads[&index.get()],
        ThreadRef::Inline { process, thread } => {
            assert_eq!(process.0.0, u64::from(std::process::id()));
            thread.0.0
        }
    };
    Event {
        kind,
        timestamp: event.timestamp.0,
        end,
        thread,
        category: text(event.category),
        name: text(event.name),
        args,
        numbers,
    }
}

impl Event {
    pub fn u64(&self, name: &str) -> u64 {
        self.numbers[name]
    }
}

impl Read {
    /// Each event as a line.
    pub fn lines(&self) -> Vec<String> {
        let line = |event: &Event| {
            let args = event.args.iter().map(|(name, value)| format!(" {name}={value}"));
            format!("{} {}/{}{}", event.kind, event.category, event.name, args.collect::<String>())
        };
        self.events.iter().map(line).collect()
    }

    pub fn by_thread(&self) -> BTreeMap<u64, Vec<&Event>> {
        let mut threads: BTreeMap<u64, Vec<&Event>> = BTreeMap::new();
        for event in &self.events {
            threads.entry(event.thread).or_default().push(event);
        }
        threads
    }

    pub fn dropped(&self) -> u64 {
        self.losses.iter().map(|(_, loss)| loss.count).sum()
    }

    pub fn loss(&self, reason: LossReason) -> u64 {
        self.losses[reason as usize].1.count
    }

    pub fn rolling_bytes(&self) -> u64 {
        self.findings.bytes - self.definition_bytes
    }
}

/// Kind, category and name of each event.
pub fn kinds(read: &Read) -> Vec<String> {
    read.events.iter().map(|event| format!("{} {}/{}", event.kind, event.category, event.name)).collect()
}
