//! The context: one trace of this process into one buffer, from initialize to terminate.

use crate::claim::Claims;
use crate::durable::MAX_VIRTUAL_THREADS;
use crate::region::Region;
use crate::strings::StringTable;
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use parking_lot::Mutex;
use trace_format::buffer::{BufferHeader, FLAG_FINAL, Layout, field};
use trace_format::slab::LossReason;
use zx_sim::ticks;

/// Bytes of a header word.
const WORD: u64 = 8;

/// What the engine is told when a trace is initialized.
#[derive(Clone, Debug)]
pub struct Config {
    /// Process koid (the pid) that events carry.
    pub process: u64,
    /// Name of the process.
    pub process_name: String,
    /// Rate of the clock behind `zx_sim::ticks::now`, per second, as the manager gave it.
    pub ticks_per_second: u64,
    /// Categories to enable: exact names, or prefixes ending in `*`; none means all.
    pub categories: Vec<String>,
}

/// The state of one trace. Everything a writer touches is an atomic or behind a lock it only tries.
pub(crate) struct Context {
    pub region: Region,
    pub layout: Layout,
    pub config: Config,
    /// Differs from that of every other context of the process; never 0.
    pub generation: u64,
    pub claims: Claims,
    /// Strings with an index. Writers only try the lock: whoever does not get it writes inline.
    pub strings: Mutex<StringTable>,
    /// Koids of the virtual threads that have a name, in order. Writers only try this lock, too.
    pub virtual_threads: Mutex<Vec<u64>>,
    /// Bytes handed out of the durable region.
    pub durable_next: AtomicU64,
    /// Thread indices handed out.
    pub thread_indices: AtomicU32,
    /// The reason that ended recording plus one; 0 while it goes on.
    ended_by: AtomicUsize,
}

impl Context {
    /// Lays the buffer out: header, initialization record, name of the process.
    pub fn new(region: Region, layout: Layout, config: Config, generation: u64) -> Self {
        let context = Self {
            claims: Claims::new(&layout),
            region,
            layout,
            config,
            generation,
            strings: Mutex::new(StringTable::new()),
            virtual_threads: Mutex::new(Vec::with_capacity(MAX_VIRTUAL_THREADS)),
            durable_next: AtomicU64::new(0),
            thread_indices: AtomicU32::new(0),
            ended_by: AtomicUsize::new(0),
        };
        let words = BufferHeader::initial_words(&layout);
        for (index, word) in words.iter().enumerate().skip(1) {
            context.header(index).store(*word, Ordering::Relaxed);
        }
        // Release: a reader that finds the magic number finds the rest of the header.
        context.header(field::MAGIC).store(words[field::MAGIC], Ordering::Release);
        context.write_initialization();
        context.write_process();
        context
    }

    /// A word of the buffer's header.
    pub fn header(&self, index: usize) -> &AtomicU64 {
        self.region.word(index as u64 * WORD)
    }

    /// Counts records that were not kept.
    pub fn count_loss(&self, reason: LossReason, timestamp: u64) {
        let entry = self.layout.loss_entry(reason);
        self.region.word(entry).fetch_add(1, Ordering::Relaxed);
        self.region.word(entry + WORD).fetch_max(!timestamp, Ordering::Relaxed);
        self.region.word(entry + 2 * WORD).fetch_max(timestamp, Ordering::Relaxed);
        self.header(field::RECORDS_DROPPED).fetch_add(1, Ordering::Relaxed);
    }

    /// Ends recording for the whole provider: what is kept is a prefix in time, up to the earliest
    /// refusal. An event that is refused happened when it was refused: a thread that slept between its
    /// event's beginning and the refusal takes nothing away from those that were recorded meanwhile.
    //= docs/buffer.md#the-end-of-a-oneshot-buffer
    pub fn refuse(&self, reason: LossReason) {
        let timestamp = ticks::now();
        self.header(field::END_TS).fetch_min(timestamp, Ordering::Relaxed);
        let by = reason as usize + 1;
        let first = self.ended_by.compare_exchange(0, by, Ordering::Relaxed, Ordering::Relaxed);
        self.claims.set_full();
        let reason = match first {
            Ok(_) => reason,
            Err(by) => LossReason::ALL[by - 1],
        };
        self.count_loss(reason, timestamp);
    }

    /// Brings the header up to date after the last writer left.
    pub fn finalize(&self) {
        let durable = self.durable_next.load(Ordering::Relaxed);
        self.header(field::DURABLE_DATA_END).store(durable, Ordering::Relaxed);
        let claimed = u64::from(self.claims.claimed()) * self.layout.slab_bytes;
        self.header(field::ROLLING_DATA_END).store(claimed, Ordering::Relaxed);
        // Release: final values first.
        self.header(field::FLAGS).store(FLAG_FINAL, Ordering::Release);
    }

    /// Whether events of a category are wanted.
    pub fn wants(&self, category: &str) -> bool {
        category_matches(&self.config.categories, category)
    }
}

/// The filter rule: an empty list wants everything; an entry ending in `*` is a prefix; an empty entry
/// matches nothing, and an empty category is never wanted.
//= docs/protocol.md#category-matching
pub(crate) fn category_matches(wanted: &[String], category: &str) -> bool {
    if category.is_empty() {
        return false;
    }
    wanted.is_empty()
        || wanted.iter().any(|entry| match entry.strip_suffix('*') {
            Some(prefix) => category.starts_with(prefix),
            None => entry == category,
        })
}

#[cfg(test)]
mod tests {
    use super::category_matches;

    //= docs/protocol.md#category-matching
    #[test]
    fn categories_match_by_name_or_prefix() {
        let matches = |list: &[&str], category: &str| {
            category_matches(&list.iter().map(ToString::to_string).collect::<Vec<_>>(), category)
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
        assert!(!matches(&[], ""));
    }
}
