//! How a trace is recorded, as the dispatcher configures it.

use crate::slab::streaming::WakeHandler;
use std::sync::Arc;

/// How a trace is recorded.
#[derive(Clone, Debug)]
pub struct Config {
    /// Process koid (the pid) that events carry.
    pub process: u64,
    /// Name of the process.
    pub process_name: String,
    /// Rate of the clock behind `zx_ticks::now`, per second, as the manager gave it.
    pub ticks_per_second: u64,
    /// Which categories to enable.
    pub categories: Categories,
    /// Called with the name of each alert.
    pub alert: AlertHandler,
    /// Called when half of a stream is full while the dispatcher sleeps. Does nothing by default.
    pub wake: WakeHandler,
    /// Whether durations and instants have the processor time of their thread as arguments. That costs a
    /// system call for each, and all events take the slow path.
    pub thread_time: bool,
    /// The koids by which threads are recorded.
    pub thread_koids: ThreadKoids,
    /// What is called with a mark of each event, for another trace of the machine. None by default. All
    /// events take the slow path where there is one.
    pub mirror: Option<Mirror>,
    /// Whether texts of the program's run are replaced: those that call sites do not mark as literals. All
    /// events take the slow path then.
    pub privacy: bool,
}

/// Is called with a mark of each event, on the thread of the event, outside of it; also in handlers of
/// signals.
pub type Mirror = fn(&Mark<'_>);

/// What is left of an event in a trace that knows nothing but these. It is of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    /// A duration begins.
    Begin(&'a [u8]),
    /// The innermost duration ends.
    End,
    /// Something that may end on another thread begins.
    AsyncBegin(&'a [u8], u64),
    /// It ends: name and id are those of its beginning.
    AsyncEnd(&'a [u8], u64),
    /// A moment.
    Instant(&'a [u8]),
    /// A number of the process changes: name of the counter, name of the number if it has several.
    Counter(&'a [u8], Option<&'a [u8]>, i64),
}

/// Returns whether a category is to be recorded.
pub type CategoryPredicate = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Which categories a trace wants.
#[derive(Clone)]
#[non_exhaustive]
pub enum Categories {
    /// Exact names, or prefixes ending in `*`, each wanted or, with a `-` in front, not wanted; none means
    /// all.
    Listed(Vec<String>),
    /// Those for which a function returns true. It is called on any thread, possibly inside an event.
    Filter(CategoryPredicate),
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
            Self::Filter(_) => f.write_str("Filter"),
        }
    }
}

impl Config {
    /// All categories; alerts are only recorded.
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
            mirror: None,
            privacy: false,
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

/// Called with the name of each alert, on the thread that raises it.
#[derive(Clone)]
pub struct AlertHandler(Arc<dyn Fn(&str) + Send + Sync>);

impl AlertHandler {
    /// A handler that calls a function.
    pub fn new(report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    pub(crate) fn report(&self, name: &str) {
        (self.0)(name);
    }
}

impl Default for AlertHandler {
    /// Does nothing.
    fn default() -> Self {
        Self::new(|_| ())
    }
}

impl core::fmt::Debug for AlertHandler {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("AlertHandler")
    }
}

/// The koid of a thread, by its id in this process.
type KoidOf = Arc<dyn Fn(u32) -> u64 + Send + Sync>;

/// The koids of threads in a trace: their ids by default.
#[derive(Clone, Default)]
pub struct ThreadKoids(Option<KoidOf>);

impl ThreadKoids {
    /// Those that a function returns. It is called on the thread itself, inside its first event of a trace:
    /// it may not wait or allocate, and has to leave `errno` as it is.
    pub fn new(koid_of: impl Fn(u32) -> u64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(koid_of)))
    }

    pub(crate) fn of(&self, thread_id: u32) -> u64 {
        self.0.as_ref().map_or_else(|| thread_id.into(), |koid_of| koid_of(thread_id))
    }
}

impl core::fmt::Debug for ThreadKoids {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if self.0.is_some() { "ThreadKoids(mapped)" } else { "ThreadKoids(ids)" })
    }
}
