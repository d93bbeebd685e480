//! The context: one trace of this process into one buffer, from initialize to terminate.

use crate::buffer::durable::MAX_VIRTUAL_THREADS;
use crate::buffer::region::Region;
use crate::buffer::strings::StringTable;
use crate::record::alert::AlertHandler;
use crate::session::run::Run;
use crate::session::thread_koids::ThreadKoids;
use crate::slab::allocator::{SlabAllocator, SlabWords};
use crate::slab::free_list::FreeList;
use crate::slab::streaming::{Streaming, WakeHandler};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::ops::RangeInclusive;
use parking_lot::Mutex;
use std::sync::Arc;
use trace_format::buffer::{
    BufferHeader, BufferMode, END_TS_NONE, FLAG_FINAL, HEADER_BYTES, Layout, WORD_BYTES, field,
};
use trace_format::slab::{LossReason, SlabState, SlabWord};

/// What the engine is told when a trace is initialized.
#[derive(Clone, Debug)]
pub struct Config {
    /// Process koid (the pid) that events carry.
    pub process: u64,
    /// Name of the process.
    pub process_name: String,
    /// Rate of the clock behind `zx_sim::ticks::now`, per second, as the manager gave it.
    pub ticks_per_second: u64,
    /// Which categories to enable.
    pub categories: Categories,
    /// Who is told of alerts.
    pub alert: AlertHandler,
    /// Called when half of a stream is full while the dispatcher sleeps. Does nothing by default.
    pub wake: WakeHandler,
    /// Whether durations and instants have the processor time of their thread as arguments. That costs a
    /// system call for each, and all events take the slow path.
    pub thread_time: bool,
    /// By which numbers threads are recorded.
    pub thread_koids: ThreadKoids,
}

/// Says whether a category is wanted.
pub type AskCategory = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Which categories a trace wants.
#[derive(Clone)]
#[non_exhaustive]
pub enum Categories {
    /// Exact names, or prefixes ending in `*`, each wanted or, with a `-` in front, not wanted; none means
    /// all.
    Listed(Vec<String>),
    /// Those for which a function says so, on whatever thread asks, perhaps inside an event.
    Asked(AskCategory),
}

impl Default for Categories {
    /// All.
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl core::fmt::Debug for Categories {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Listed(list) => list.fmt(f),
            Self::Asked(_) => f.write_str("Asked"),
        }
    }
}

impl Config {
    /// All categories, and nobody who is told of alerts.
    #[must_use]
    pub fn new(process: u64, process_name: impl Into<String>, ticks_per_second: u64) -> Self {
        Self {
            process,
            process_name: process_name.into(),
            ticks_per_second,
            categories: Categories::default(),
            alert: AlertHandler::default(),
            wake: WakeHandler::default(),
            thread_time: false,
            thread_koids: ThreadKoids::default(),
        }
    }
}

/// What a start does with what is in the buffer already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Forgets everything, definitions too.
    ClearEntire,
    /// Forgets the events and keeps the definitions.
    ClearNondurable,
    /// Goes on behind what is there.
    Retain,
}

/// A number for a set of definitions.
fn next_generation() -> u64 {
    static GENERATION: AtomicU64 = AtomicU64::new(0);
    GENERATION.fetch_add(1, Ordering::Relaxed) + 1
}

/// The state of one trace. Everything a writer touches is an atomic or behind a lock it only tries.
pub(crate) struct Context {
    pub region: Region,
    pub layout: Layout,
    pub config: Config,
    /// The set of definitions in the durable region: differs from every other of the process; never 0.
    pub generation: AtomicU64,
    pub claims: SlabAllocator,
    /// What is wanted beside what the configuration says.
    pub run: Run,
    pub free_list: FreeList,
    /// Threads that may have taken a rest from another and not left it to others yet.
    pub recalling: AtomicU32,
    /// The number of the thread that the next to look for such a rest begins with.
    pub recall_from: AtomicUsize,
    /// Slabs with a lower sequence were cleared.
    pub floor_sequence: AtomicU64,
    /// What was handed over so far. Only for the dispatcher.
    pub streaming: Mutex<Streaming>,
    /// Strings with an index. Writers only try the lock: whoever does not get it writes inline.
    pub strings: Mutex<StringTable>,
    /// Koids of the virtual threads that have a name, in order. Writers only try this lock, too.
    pub virtual_threads: Mutex<Vec<u64>>,
    /// Bytes handed out of the durable region.
    pub durable_next: AtomicU64,
    /// Thread indices handed out.
    pub thread_indices: AtomicU32,
}

impl Context {
    /// Lays the buffer out: header, initialization record, name of the process.
    pub fn new(region: Region, layout: Layout, config: Config) -> Self {
        let context = Self {
            claims: SlabAllocator::new(layout.mode, layout.slabs_per_half),
            run: Run::default(),
            free_list: FreeList::new(layout.slab_count()),
            recalling: AtomicU32::new(0),
            recall_from: AtomicUsize::new(0),
            floor_sequence: AtomicU64::new(0),
            streaming: Mutex::new(Streaming::default()),
            region,
            layout,
            config,
            generation: AtomicU64::new(next_generation()),
            strings: Mutex::new(StringTable::new()),
            virtual_threads: Mutex::new(Vec::with_capacity(MAX_VIRTUAL_THREADS)),
            durable_next: AtomicU64::new(0),
            thread_indices: AtomicU32::new(0),
        };
        let words = BufferHeader::initial_words(&layout);
        for (index, word) in words.iter().enumerate().skip(1) {
            context.header(index).store(*word, Ordering::Relaxed);
        }
        // Release: a reader that finds the magic number finds the rest of the header.
        context.header(field::MAGIC).store(words[field::MAGIC], Ordering::Release);
        context.begin_gaps(2);
        context.write_initialization();
        context.write_process();
        context
    }

    /// A word of the buffer's header.
    pub fn header(&self, index: usize) -> &AtomicU64 {
        self.region.word(index as u64 * WORD_BYTES)
    }

    /// Forgets what was recorded, and counts it as cleared unless it was saved: whether the rest was read is
    /// for the reader to know. Sequences go on. Nobody may be inside an event.
    //= docs/buffer.md#dispositions
    pub fn clear(&self, disposition: Disposition) {
        let floor = self.floor_sequence.load(Ordering::Relaxed);
        let mut streaming = self.streaming.lock();
        let saved = self.claims.half_start(streaming.saved_halves());
        for slab in 0..self.layout.slab_count() {
            let word = self.word_of(slab);
            let is_unsaved = word.sequence() > saved || streaming.is_left_behind(slab);
            if word.state() == SlabState::Closed && word.sequence() >= floor && is_unsaved {
                let tally = self.tally(slab);
                self.add_loss(LossReason::Cleared, tally.total - tally.before, tally.first, tally.last);
            }
        }
        streaming.restart();
        drop(streaming);
        if self.layout.mode == BufferMode::Streaming {
            // What is short is told of all runs together.
            let claimed = self.claims.ticket().saturating_sub(self.claims.half_start(0));
            self.add_short(LossReason::NotSaved, claimed * self.layout.slab_bytes);
        }
        let floor = self.claims.clear();
        self.floor_sequence.store(floor, Ordering::Relaxed);
        // From here on a reader finds none of the slabs.
        self.header(field::FLOOR_SEQUENCE).store(floor, Ordering::SeqCst);
        for slab in 0..self.layout.slab_count() {
            self.slab_word(slab).store(SlabWord::EMPTY.0, Ordering::Relaxed);
        }
        self.free_list.clear();
        self.header(field::END_TS).store(END_TS_NONE, Ordering::Relaxed);
        self.header(field::RECORDS_DROPPED).store(0, Ordering::Relaxed);
        (0..2).for_each(|half| self.header(field::ROLLING_DATA_END + half).store(0, Ordering::Relaxed));
        self.set_wrapped_count(0);
        self.begin_gaps(2);
        if disposition == Disposition::ClearEntire {
            let used = self.durable_next.swap(0, Ordering::Relaxed).min(self.layout.durable_bytes);
            self.region.zero(self.layout.durable..self.layout.durable + used);
            *self.strings.lock() = StringTable::new();
            self.virtual_threads.lock().clear();
            self.thread_indices.store(0, Ordering::Relaxed);
            self.header(field::DURABLE_DATA_END).store(0, Ordering::Relaxed);
            self.spare_word(LossReason::DurableFull).store(0, Ordering::Relaxed);
            self.generation.store(next_generation(), Ordering::SeqCst);
            self.write_initialization();
            self.write_process();
        } else {
            self.write_initialization();
        }
    }

    /// The wrapped count, and the halves whose ends the header does not have yet.
    fn unfinished_halves(&self) -> (u64, RangeInclusive<u64>) {
        let last = self.claims.ticket().saturating_sub(1).max(self.claims.half_start(0));
        let wrapped = self.claims.half_of(last);
        // What was handed over has its end already: a flush may have come before it was full.
        let known = self.streaming.lock().handed_over_halves();
        (wrapped, wrapped.saturating_sub(1).max(known)..=wrapped)
    }

    /// Brings the header up to date after the last writer left.
    pub fn finalize(&self) {
        self.header(field::DURABLE_DATA_END).store(self.durable_bytes(), Ordering::Relaxed);
        let (wrapped, halves) = self.unfinished_halves();
        self.set_wrapped_count(wrapped);
        for half in halves {
            self.set_data_end(half, self.claims.claimed_in_half(half));
        }
        // Release: final values first.
        self.header(field::FLAGS).store(FLAG_FINAL, Ordering::Release);
    }

    /// The words of the header as they would be if recording ended now.
    pub fn header_now(&self) -> [u64; HEADER_BYTES / 8] {
        let mut words = core::array::from_fn(|index| self.header(index).load(Ordering::Relaxed));
        if words[field::FLAGS] & FLAG_FINAL == 0 {
            let (wrapped, halves) = self.unfinished_halves();
            words[field::DURABLE_DATA_END] = self.durable_bytes();
            words[field::VERSION] = BufferHeader::initial_words(&self.layout)[field::VERSION] | wrapped << 32;
            for half in halves {
                let place = half % u64::from(self.layout.mode.halves());
                let bytes = self.claims.claimed_in_half(half) * self.layout.slab_bytes;
                words[field::ROLLING_DATA_END + place as usize] = bytes;
            }
        }
        words
    }

    /// Recording begins: until it ends the header is not final.
    pub fn begin_run(&self, additional_categories: &[String]) {
        self.run.begin(additional_categories);
        self.header(field::FLAGS).store(0, Ordering::SeqCst);
        self.claims.resume();
    }

    /// Bytes of the durable region that were handed out.
    pub fn durable_bytes(&self) -> u64 {
        self.durable_next.load(Ordering::SeqCst)
    }

    pub fn set_wrapped_count(&self, wrapped: u64) {
        let words = BufferHeader::initial_words(&self.layout);
        self.header(field::VERSION).store(words[field::VERSION] | wrapped << 32, Ordering::Relaxed);
    }

    /// Stores how much of a half was claimed, in slabs.
    pub fn set_data_end(&self, half: u64, claimed: u64) {
        let place = half % u64::from(self.layout.mode.halves());
        let bytes = claimed * self.layout.slab_bytes;
        self.header(field::ROLLING_DATA_END + place as usize).store(bytes, Ordering::Relaxed);
    }

    /// Whether events of a category are wanted, in a run that wants some more than the trace.
    pub fn wants(&self, category: &[u8], additional: &[String]) -> bool {
        if category.is_empty() {
            return false;
        }
        match &self.config.categories {
            Categories::Listed(listed) => selects(listed, additional, category),
            Categories::Asked(is_wanted) => is_wanted(category),
        }
    }
}

/// Whether lists select a category, which may be several with commas between them: then one is enough.
//= docs/protocol.md#category-matching
fn selects(listed: &[String], additional: &[String], category: &[u8]) -> bool {
    category.split(|byte| *byte == b',').filter(|one| !one.is_empty()).any(|one| {
        let is_excluded = excludes(listed, one) || excludes(additional, one);
        let is_included = includes(listed, one) || (!additional.is_empty() && includes(additional, one));
        is_included && !is_excluded
    })
}

/// How the categories begin that only entries with the same beginning select.
//= docs/protocol.md#category-matching
const DISABLED_BY_DEFAULT: &str = "disabled-by-default-";

/// Whether a list wants a category: one without entries wants everything, and so does one that only excludes.
//= docs/protocol.md#category-matching
fn includes(list: &[String], category: &[u8]) -> bool {
    let is_disabled = category.starts_with(DISABLED_BY_DEFAULT.as_bytes());
    let mut wanted = list.iter().filter(|entry| !entry.starts_with('-')).peekable();
    if wanted.peek().is_none() {
        return !is_disabled;
    }
    wanted.any(|entry| matches(entry, category) && (!is_disabled || entry.starts_with(DISABLED_BY_DEFAULT)))
}

/// Whether an entry behind a `-` matches a category, whatever else is in the list.
//= docs/protocol.md#category-matching
fn excludes(list: &[String], category: &[u8]) -> bool {
    list.iter().filter_map(|entry| entry.strip_prefix('-')).any(|entry| matches(entry, category))
}

/// An entry ending in `*` is a prefix; an empty one matches nothing.
fn matches(entry: &str, category: &[u8]) -> bool {
    match entry.strip_suffix('*') {
        Some(prefix) => category.starts_with(prefix.as_bytes()),
        None => entry.as_bytes() == category && !entry.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::selects;

    //= docs/protocol.md#category-matching
    #[test]
    fn categories_match_by_name_or_prefix() {
        let matches = |list: &[&str], category: &str| {
            let list: Vec<_> = list.iter().map(ToString::to_string).collect();
            selects(&list, &[], category.as_bytes())
        };
        assert!(matches(&[], "anything"));
        assert!(matches(&["gfx"], "gfx"));
        assert!(!matches(&["gfx"], "gfx2"));
        assert!(!matches(&["gfx"], "gf"));
        assert!(matches(&["kernel:*"], "kernel:sched"));
        assert!(!matches(&["kernel:*"], "kernel"));
        assert!(matches(&["*"], "anything"));
        assert!(!matches(&[""], "anything"));
        assert!(matches(&["app", "net:*"], "net:tcp"));
        assert!(matches(&["app", "net:*"], "app"));
        assert!(!matches(&["app", "net:*"], "appx"));
        assert!(matches(&["-noisy"], "app"));
        assert!(!matches(&["-noisy"], "noisy"));
        assert!(matches(&["-noisy"], "noisy2"));
        // Whatever the order.
        for list in [["app*", "-app:debug*"], ["-app:debug*", "app*"]] {
            assert!(matches(&list, "app:main"));
            assert!(!matches(&list, "app:debug:x"));
            assert!(!matches(&list, "other"));
        }
        assert!(!matches(&["a", "-a"], "a"));
        assert!(!matches(&["-*"], "a"));
        assert!(!matches(&["", "-a"], "b"));
        // One of several is enough, by itself.
        for list in [&["a"][..], &["b"], &["b*"], &["a", "-b"], &["-b"], &[]] {
            assert!(matches(list, "a,b"), "{list:?}");
        }
        for list in [&["c"][..], &["a,b"], &["ab"], &["-a", "-b"], &["a", "-a"], &["-*"]] {
            assert!(!matches(list, "a,b"), "{list:?}");
        }
        assert!(!matches(&[], ","));
        // Only by name.
        let disabled = "disabled-by-default-x";
        for list in [&[disabled][..], &["disabled-by-default-*"], &["a", "disabled-by-default-x*"]] {
            assert!(matches(list, disabled), "{list:?}");
            assert!(matches(list, "b,disabled-by-default-x"), "{list:?}");
        }
        for list in [&[][..], &["*"], &["disabled*"], &["-a"], &[disabled, "-disabled-by-default-*"]] {
            assert!(!matches(list, disabled), "{list:?}");
        }
        assert!(matches(&[], "a,disabled-by-default-x"));
        assert!(selects(&["a".to_owned()], &[disabled.to_owned()], disabled.as_bytes()));
        assert!(!selects(&[], &["a".to_owned()], disabled.as_bytes()));
    }
}
