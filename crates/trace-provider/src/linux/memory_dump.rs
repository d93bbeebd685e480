//! Reports of a program about its use of memory, on request.

use crate::linux::callbacks;
use crate::linux::lock::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use trace_engine::{engine, ffi};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind};
use trace_format::refs::{MAX_STRING_BYTES, StringRef, truncate};
use trace_format::sink::SliceSink;
use trace_format::units::{StringIndex, Ticks};
use trace_protocol::memory::MemoryDumpLevel;

/// The category that enables it.
const CATEGORY: &str = "memory_dump";
/// What is around all values of a dump.
const NAME: &str = "memory dump";
/// Words of the largest record here: the header, a name, a value.
const MAX_WORDS: usize = MAX_STRING_BYTES / 8 + 64;

/// A report of what a program uses memory for.
#[derive(Debug)]
pub struct MemoryDump {
    id: u64,
    level: MemoryDumpLevel,
    /// In the order in which they were added.
    values: Vec<(String, u64)>,
}

type Callback = Arc<dyn Fn(&mut MemoryDump) + Send + Sync>;

static CALLBACKS: Mutex<Vec<Callback>> = Mutex::new(Vec::new());

/// As [`TraceProvider::on_memory_dump`](crate::TraceProvider::on_memory_dump), for code without access to the
/// provider.
pub fn on_memory_dump(dump: impl Fn(&mut MemoryDump) + Send + Sync + 'static) {
    // A child would find the lock taken, as below.
    engine::without_forks(|| CALLBACKS.lock().push(Arc::new(dump)));
    callbacks::want();
}

impl MemoryDump {
    /// The number of the dump: the same in all programs that take part in it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the dump is detailed: report values that are expensive to compute, too, not only totals.
    #[must_use]
    pub fn is_detailed(&self) -> bool {
        self.level == MemoryDumpLevel::Detailed
    }

    /// Adds a value: the number of bytes that are used for `name`. Parts may be named after the whole:
    /// `cache`, `cache/images`.
    pub fn add(&mut self, name: &str, bytes: u64) {
        self.values.push((name.to_owned(), bytes));
    }
}

/// Calls all functions of this program, and writes their values, if the trace wants them. Whether values were
/// written.
pub(crate) fn take(id: u64, level: MemoryDumpLevel) -> bool {
    ffi::is_category_wanted(CATEGORY.as_bytes())
        && callbacks::run(move || ask_all(id, level)).unwrap_or(false)
}

fn ask_all(id: u64, level: MemoryDumpLevel) -> bool {
    let mut dump = MemoryDump { id, level, values: Vec::new() };
    // Outside of the lock: a function may register another.
    let callbacks = engine::without_forks(|| CALLBACKS.lock().clone());
    if callbacks.is_empty() {
        return false;
    }
    let head =
        [("dump", ArgumentValue::Uint64(id)), ("level", ArgumentValue::String(constant(level.text())))];
    write(constant(NAME), EventKind::DurationBegin, &head);
    for callback in &*callbacks {
        // One that panics has said so, and the others are asked all the same.
        let _ = catch_unwind(AssertUnwindSafe(|| callback(&mut dump)));
    }
    for (name, bytes) in &dump.values {
        write(text(name), EventKind::Counter { id: 0 }, &[("bytes", ArgumentValue::Uint64(*bytes))]);
    }
    write(constant(NAME), EventKind::DurationEnd, &[]);
    true
}

/// A constant with its index, if it has one.
fn constant(text: &str) -> StringRef<'_> {
    with_index(text, ffi::literal_index(text.as_bytes()))
}

/// A name that the program gives with its index, if it has one.
fn text(text: &str) -> StringRef<'_> {
    let text = truncate(text, MAX_STRING_BYTES);
    with_index(text, ffi::string_index(text.as_bytes()))
}

fn with_index(text: &str, index: Option<u16>) -> StringRef<'_> {
    match index {
        Some(index) => StringIndex::new(index).map_or(StringRef::Empty, StringRef::Index),
        None => StringRef::inline(text),
    }
}

/// Writes an event of the calling thread.
fn write(name: StringRef<'_>, kind: EventKind, values: &[(&str, ArgumentValue<'_>)]) {
    let Some(thread) = ffi::current_thread() else {
        return;
    };
    let arguments: Vec<_> =
        values.iter().map(|(name, value)| Argument { name: constant(name), value: *value }).collect();
    let event = Event {
        timestamp: Ticks(trace_engine::now().0),
        thread,
        category: constant(CATEGORY),
        name,
        kind,
        arguments: Arguments::from_slice(&arguments),
    };
    let mut words = vec![0; MAX_WORDS];
    let mut sink = SliceSink::new(&mut words);
    if event.encode(&mut sink).is_ok() && !sink.is_overrun() {
        ffi::write_record(sink.words());
    } else {
        ffi::count_too_large();
    }
}
