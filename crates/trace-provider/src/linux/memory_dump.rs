//! Reports of a program about its use of memory, on request.

use crate::linux::callbacks;
use crate::linux::lock::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use trace_engine::{Event, EventType, engine, ffi};
use trace_format::argument::ArgumentValue;
use trace_format::refs::StringRef;
use trace_protocol::memory::MemoryDumpLevel;

/// The category that enables it.
const CATEGORY: &str = "memory_dump";
/// What is around all values of a dump.
const NAME: &str = "memory dump";

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
    cfg!(feature = "dumps")
        && ffi::is_category_wanted(CATEGORY.as_bytes())
        && callbacks::run(move || ask_all(id, level)).unwrap_or(false)
}

fn ask_all(id: u64, level: MemoryDumpLevel) -> bool {
    let mut dump = MemoryDump { id, level, values: Vec::new() };
    // Outside of the lock: a function may register another.
    let callbacks = engine::without_forks(|| CALLBACKS.lock().clone());
    if callbacks.is_empty() {
        return false;
    }
    let level = ArgumentValue::String(StringRef::inline(level.text()));
    write(NAME, &["dump", "level"], EventType::DurationBegin, &[ArgumentValue::Uint64(id), level]);
    for callback in &*callbacks {
        // One that panics has said so, and the others are asked all the same.
        let _ = catch_unwind(AssertUnwindSafe(|| callback(&mut dump)));
    }
    let is_private = ffi::is_private();
    for (name, bytes) in &dump.values {
        let name = if is_private { ffi::REDACTED } else { name };
        write(name, &["bytes"], EventType::Counter, &[ArgumentValue::Uint64(*bytes)]);
    }
    write(NAME, &[], EventType::DurationEnd, &[]);
    true
}

/// Writes an event of the calling thread. What each of them says is decided here: no site has to stay for it.
fn write(name: &str, arguments: &[&str], event_type: EventType, values: &[ArgumentValue<'_>]) {
    let text = ffi::SiteText { category: CATEGORY.as_bytes(), name: name.as_bytes() };
    let names: Vec<&[u8]> = arguments.iter().map(|name| name.as_bytes()).collect();
    let extra = (event_type == EventType::Counter).then_some(0);
    ffi::with_unlisted_constants(text, &names, |site| {
        // Those that are texts are constants.
        let values = ffi::GivenValues { values, literals: u16::MAX };
        trace_engine::write_event(site, Event { event_type, start: None, extra }, &values);
    });
}
