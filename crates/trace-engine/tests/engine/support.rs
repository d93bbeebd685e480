//! Runs one trace at a time on heap memory and reads it back.

pub use crate::alone::{Alone, Hooked, alone};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use trace_engine::engine::{Engine, Error, SaveRequest, State};
use trace_engine::{
    AlertHandler, BufferMode, Categories, Config, Disposition, HeapWords, Region, ThreadKoids, WakeHandler,
    engine,
};
use trace_format::argument::ArgumentValue;
use trace_format::buffer::{BufferHeader, Layout};
use trace_format::event::{Event as Record_, EventKind};
use trace_format::record::{Record, RecordHeader};
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::slab::{Loss, LossReason, SlabWord};
use trace_format::units::TicksPerSecond;
use trace_reader::buffer::{Activity, BufferPart, BufferReader, Findings, GapLoss, Source};

/// What was sent by the trace that runs.
pub static ALERTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// How often the dispatcher of a stream was woken.
pub static WAKES: AtomicU32 = AtomicU32::new(0);
const RATE: u64 = 1_000_000_000;
/// How long a busy machine may keep a thread from leaving an event.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What the engine writes into.
pub enum Memory {
    Heap(HeapWords),
    /// Shared with forked children, unless the engine sees to it that it is not.
    Shared(zx_sim::Vmo),
}

impl Source for &Memory {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Memory::Heap(words) => words.read_at(offset as usize, bytes),
            Memory::Shared(vmo) => return vmo.read_at(offset, bytes).map_err(std::io::Error::other),
        }
        Ok(bytes.len())
    }
}

/// A running trace.
pub struct Trace {
    pub engine: EndedEngine,
    words: &'static Memory,
    /// What was read so far, and what reads it.
    reader: Option<BufferReader<&'static Memory>>,
    out: Vec<u8>,
    layout: Layout,
    alone: Alone,
}

/// Ends the trace also where a test fails half-way.
pub struct EndedEngine(Engine);

impl std::ops::Deref for EndedEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl Drop for EndedEngine {
    fn drop(&mut self) {
        if engine::state() != State::Idle {
            let _ = self.terminate(Instant::now() + Duration::from_secs(1));
        }
    }
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
    pub gaps: Vec<GapLoss>,
    losses: [(LossReason, Loss); LossReason::ALL.len()],
    definition_bytes: u64,
    /// No other test's trace begins before this one was looked at.
    _alone: Alone,
}

fn config(categories: &[&str]) -> Config {
    Config {
        process: u64::from(std::process::id()),
        process_name: "p".into(),
        ticks_per_second: RATE,
        categories: Categories::Listed(categories.iter().map(ToString::to_string).collect()),
        alert: AlertHandler::new(|name| ALERTS.lock().unwrap().push(name.to_owned())),
        wake: WakeHandler::new(|| _ = WAKES.fetch_add(1, Ordering::Relaxed)),
        thread_time: false,
        thread_koids: ThreadKoids::default(),
        mirror: None,
        privacy: false,
    }
}

impl Trace {
    pub fn start(bytes: usize, categories: &[&str]) -> Self {
        let (region, words) = Region::on_heap(bytes);
        Self::start_on(region, Memory::Heap(words), BufferMode::Oneshot, categories)
    }

    pub fn start_in(mode: BufferMode, bytes: usize) -> Self {
        let (region, words) = Region::on_heap(bytes);
        Self::start_on(region, Memory::Heap(words), mode, &[])
    }

    /// With another configuration.
    pub fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_after(&alone(), change)
    }

    /// The same, in the turn of something before it.
    pub fn start_after(alone: &Alone, change: impl FnOnce(&mut Config)) -> Self {
        let (region, words) = Region::on_heap(1 << 20);
        let mut config = config(&[]);
        change(&mut config);
        Self::start_alone(region, Memory::Heap(words), BufferMode::Oneshot, config, alone.clone())
    }

    /// On a shared mapping, as a provider has it.
    pub fn start_shared(bytes: usize) -> Self {
        let vmo = zx_sim::Vmo::of_bytes("test", &vec![0; bytes]).unwrap();
        let mapping = vmo.map().unwrap();
        let (base, length) = (mapping.as_ptr(), mapping.len());
        // SAFETY: a mapping of so many bytes that its owner keeps, and that nothing refers to.
        let region = unsafe { Region::from_mapping(base, length, Box::new(mapping)) };
        Self::start_on(region, Memory::Shared(vmo), BufferMode::Oneshot, &[])
    }

    /// On any memory.
    pub fn start_on(region: Region, words: Memory, mode: BufferMode, categories: &[&str]) -> Self {
        Self::start_alone(region, words, mode, config(categories), alone())
    }

    /// Stops, and starts another one of the same kind before any other test does.
    pub fn stop_and_start_another(self) -> (Read, Self) {
        let alone = self.alone.clone();
        (self.stop(), Self::start_after(&alone, |_| ()))
    }

    fn start_alone(region: Region, words: Memory, mode: BufferMode, config: Config, alone: Alone) -> Self {
        let bytes = region.len_bytes();
        ALERTS.lock().unwrap().clear();
        WAKES.store(0, Ordering::Relaxed);
        let engine = EndedEngine(engine::initialize(region, mode, config).unwrap());
        engine.start(Disposition::Retain, &[]).unwrap();
        let layout = Layout::new(bytes as u64, mode).unwrap();
        let words = Box::leak(Box::new(words));
        Self { engine, words, reader: None, out: Vec::new(), layout, alone }
    }

    /// Gives the program a hook.
    pub fn hook(&self, hook: impl Fn(&Record_<'_>) -> bool + Send + Sync + 'static) -> Hooked {
        Hooked::new(&self.alone, hook)
    }

    pub fn slab_count(&self) -> u32 {
        self.layout.slab_count()
    }

    pub fn slab_bytes(&self) -> u64 {
        self.layout.slab_bytes
    }

    /// The word of every slab.
    pub fn slab_words(&self) -> Vec<SlabWord> {
        let mut bytes = vec![0; self.slab_count() as usize * 8];
        assert_eq!(self.words.read_at(self.layout.slab_words, &mut bytes).unwrap(), bytes.len());
        bytes.chunks_exact(8).map(|word| SlabWord(u64::from_le_bytes(word.try_into().unwrap()))).collect()
    }

    /// A word of the header as it is now.
    pub fn header_word(&self, index: usize) -> u64 {
        let mut bytes = [0; 8];
        assert_eq!(self.words.read_at(index as u64 * 8, &mut bytes).unwrap(), 8);
        u64::from_le_bytes(bytes)
    }

    /// The spare word of the ledger's entry for a reason.
    pub fn spare_word(&self, reason: LossReason) -> u64 {
        let mut bytes = [0; 8];
        assert_eq!(self.words.read_at(self.layout.loss_entry(reason) + 24, &mut bytes).unwrap(), 8);
        u64::from_le_bytes(bytes)
    }

    fn slabs_used(&self) -> usize {
        self.slab_words().iter().filter(|word| **word != SlabWord::EMPTY).count()
    }

    pub fn wait_for_slabs(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.slabs_used() < count {
            assert!(Instant::now() < deadline, "nobody writes");
        }
    }

    /// Ends the run; another may follow.
    pub fn pause(&self) {
        let stopped = self.engine.stop(Instant::now() + PATIENCE).unwrap();
        assert_eq!(stopped.stragglers, 0);
    }

    /// Goes on in another buffer. Returns what is in the one so far.
    pub fn go_over(&mut self, mode: BufferMode, bytes: usize, categories: &[&str]) -> Result<Read, Error> {
        self.go_over_as(mode, bytes, config(categories))
    }

    /// The same while threads write, any of which may be kept from leaving its event for a while.
    pub fn go_over_in_time(&mut self, mode: BufferMode, bytes: usize) -> Read {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.go_over(mode, bytes, &[]) {
                Err(Error::Straggler) if Instant::now() < deadline => {}
                left => return left.unwrap(),
            }
        }
    }

    /// As [`Trace::go_over`], with another configuration.
    pub fn go_over_with(&mut self, change: impl FnOnce(&mut Config)) -> Read {
        let mut config = config(&[]);
        change(&mut config);
        self.go_over_as(BufferMode::Oneshot, 1 << 20, config).unwrap()
    }

    fn go_over_as(&mut self, mode: BufferMode, bytes: usize, config: Config) -> Result<Read, Error> {
        let (region, words) = Region::on_heap(bytes);
        let stopped = self.engine.go_over(region, mode, config, &[])?;
        assert_eq!(stopped.stragglers, 0);
        self.read(BufferPart::Rest(Activity::Quiet));
        let left = self.parse();
        self.words = Box::leak(Box::new(Memory::Heap(words)));
        self.layout = Layout::new(bytes as u64, mode).unwrap();
        self.reader = None;
        self.out.clear();
        Ok(left)
    }

    /// Starts a further run. What was read so far is forgotten if its definitions are. A thread that has
    /// begun an event before the stop may be kept from leaving it for a while.
    pub fn resume(&mut self, disposition: Disposition) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.engine.start(disposition, &[]) {
            assert!(error == Error::Straggler && Instant::now() < deadline, "{error}");
        }
        if disposition == Disposition::ClearEntire {
            self.reader = None;
            self.out.clear();
        }
    }

    /// Reads a part of the buffer. Returns how many records of the rolling region were new.
    pub fn read(&mut self, part: BufferPart) -> u64 {
        let rate = TicksPerSecond(NonZeroU64::new(RATE).unwrap());
        let reader = match &mut self.reader {
            Some(reader) => {
                reader.begin(part).unwrap();
                reader
            }
            None => {
                let (bytes, mode) = (self.layout.total_bytes, self.layout.mode);
                self.reader.insert(BufferReader::open(self.words, bytes, mode, rate, part).unwrap())
            }
        };
        let before = reader.findings().events;
        while reader.read_batch(&mut self.out).unwrap() {}
        reader.findings().events - before
    }

    /// What was read is read again.
    pub fn forget_reader(mut self) -> Self {
        self.reader = None;
        self.out.clear();
        self
    }

    /// Records that threads have written, as the buffer that was read last says.
    pub fn written(&self) -> u64 {
        self.reader.as_ref().unwrap().written().unwrap().records
    }

    /// Reads a half that was handed over, and gives it back.
    pub fn save(&mut self, request: SaveRequest) -> u64 {
        let SaveRequest { wrapped_count, durable_bytes } = request;
        let events = self.read(BufferPart::Half { wrapped_count, durable_bytes });
        self.engine.mark_saved(request).unwrap();
        events
    }

    /// The whole buffer as it is now.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.layout.total_bytes as usize];
        assert_eq!(self.words.read_at(0, &mut bytes).unwrap(), bytes.len());
        bytes
    }

    pub fn stop(self) -> Read {
        self.pause();
        self.end()
    }

    /// Reads what is left and gives the buffer back.
    pub fn end(mut self) -> Read {
        self.read(BufferPart::Rest(Activity::Quiet));
        self.engine.terminate(Instant::now() + PATIENCE).unwrap();
        self.parse()
    }

    /// Reads the buffer of an engine that was terminated.
    pub fn read_terminated(mut self) -> Read {
        self.read(BufferPart::Rest(Activity::Quiet));
        self.parse()
    }

    fn parse(&self) -> Read {
        let slabs_used = self.slabs_used();
        let reader = self.reader.as_ref().unwrap();
        read(reader, &self.out, slabs_used, self.alone.clone())
    }
}

fn read(reader: &BufferReader<&Memory>, out: &[u8], slabs_used: usize, alone: Alone) -> Read {
    let mut strings = BTreeMap::new();
    let mut threads = BTreeMap::new();
    let mut events = Vec::new();
    let mut definition_bytes = 0;
    let mut rest = out;
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
    let mut archive = trace_reader::Reader::of_slice(out).unwrap();
    let mut dump = Vec::new();
    while let Some(record) = archive.next_item().unwrap() {
        let line = trace_reader::dump::Line(&record).to_string();
        dump.push(line.splitn(3, ' ').last().unwrap().to_owned());
    }
    Read {
        dump,
        header: *reader.header(),
        losses: reader.losses().unwrap(),
        gaps: reader.gaps().unwrap(),
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

    /// The events of each thread, sorted by time. A thread that takes the rest of an earlier slab, because
    /// the buffer is full, writes out of the order of slabs.
    //= docs/buffer.md#recall
    pub fn by_time(&self) -> BTreeMap<u64, Vec<&Event>> {
        let mut threads = self.by_thread();
        threads.values_mut().for_each(|events| events.sort_by_key(|event| event.timestamp));
        threads
    }

    pub fn dropped(&self) -> u64 {
        self.losses.iter().map(|(_, loss)| loss.count).sum()
    }

    pub fn loss(&self, reason: LossReason) -> u64 {
        self.losses[reason as usize].1.count
    }

    /// Count, first and last timestamp.
    pub fn loss_entry(&self, reason: LossReason) -> Loss {
        self.losses[reason as usize].1
    }

    pub fn rolling_bytes(&self) -> u64 {
        self.findings.bytes - self.definition_bytes
    }
}

/// Kind, category and name of each event.
pub fn kinds(read: &Read) -> Vec<String> {
    read.events.iter().map(|event| format!("{} {}/{}", event.kind, event.category, event.name)).collect()
}

/// Ends threads that wait for it, also where the test fails.
pub struct EndsThreads<'a>(pub &'a AtomicBool);

impl Drop for EndsThreads<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
