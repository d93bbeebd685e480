//! The recorder of a process.

use crate::handles::Both;
use crate::metric::{CounterState, GaugeState, HistogramState, Metric};
use crate::patient::Patience;
use crate::table::Table;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SetRecorderError, SharedString, Unit};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use trace_engine::engine::{self, Observer, State};
use trace_provider::TraceProvider;

/// The length of an interval of a histogram, unless the program sets another one.
const INTERVAL: Duration = Duration::from_millis(100);

/// The recorders of the process: one, but for those of parts of a program that have one of their own.
static ALL: Mutex<Vec<Weak<Tables>>> = Mutex::new(Vec::new());
static PATIENCE: Patience = Patience::new();

/// Makes the recorder of the process, and a provider of this name: see [`TraceProvider::new`]. Keep what it
/// returns until the end of `main`.
///
/// # Panics
/// If the process has a recorder already.
pub fn init(name: &str) -> Metrics {
    Recorder::new().install().expect("the process has no other recorder");
    Metrics(TraceProvider::new(name))
}

/// The provider of [`init`]. When it is dropped, it [flushes](flush), and is unregistered.
#[derive(Debug)]
#[must_use = "the provider is unregistered when this is dropped"]
pub struct Metrics(TraceProvider);

impl Metrics {
    /// The provider.
    #[must_use]
    pub fn provider(&self) -> &TraceProvider {
        &self.0
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        flush();
    }
}

/// Ends the current interval of each histogram and records it. Call it before the process ends, or to
/// separate the values of one part of the program from those of the next. May be called on any thread; waits
/// for threads that are recording a value. Does nothing while nothing is recorded.
pub fn flush() {
    for_each(|tables| tables.histograms.for_each(HistogramState::flush));
}

/// How often, in all recorders of the process, a metric was requested that is not recorded, because there are
/// too many or because its name with its labels has more than 32 000 bytes.
#[must_use]
pub fn unrecorded() -> u64 {
    let sum = AtomicU64::new(0);
    for_each(|tables| _ = sum.fetch_add(tables.unrecorded.load(Ordering::Relaxed), Ordering::Relaxed));
    sum.into_inner()
}

fn for_each(call: impl Fn(&Tables)) {
    let Some(all) = PATIENCE.wait(|| ALL.try_lock()) else { return };
    let all: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
    all.iter().for_each(|tables| call(tables));
}

/// Records metrics. It is a [`metrics::Recorder`], for [`install`](Self::install), or for
/// [`metrics::with_local_recorder`].
pub struct Recorder {
    tables: Arc<Tables>,
    interval: Duration,
    other: Option<Box<dyn metrics::Recorder + Send + Sync>>,
}

struct Tables {
    counters: Table<CounterState>,
    gauges: Table<GaugeState>,
    histograms: Table<HistogramState>,
    unrecorded: AtomicU64,
    /// 0 before it is known. No lock guards it, which a forked child could find taken.
    interval_ticks: AtomicU64,
}

impl Default for Recorder {
    fn default() -> Self {
        let tables = Arc::new(Tables {
            counters: Table::new(),
            gauges: Table::new(),
            histograms: Table::new(),
            unrecorded: AtomicU64::new(0),
            interval_ticks: AtomicU64::new(0),
        });
        if let Some(mut all) = PATIENCE.wait(|| ALL.try_lock()) {
            all.retain(|known| known.strong_count() > 0);
            all.push(Arc::downgrade(&tables));
        }
        engine::observe(Observer { on_change, ..Observer::NONE });
        Self { tables, interval: INTERVAL, other: None }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("interval", &self.interval).finish_non_exhaustive()
    }
}

impl Recorder {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How long values of a histogram are collected before they are recorded, counted from the first of them;
    /// 100 ms by default. With zero, each value is recorded immediately.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Passes all metrics to another recorder, too, such as that of an exporter, whether a recording runs or
    /// not. Each metric is requested from it as often as if it were the only one.
    #[must_use]
    pub fn beside(mut self, other: Box<dyn metrics::Recorder + Send + Sync>) -> Self {
        self.other = Some(other);
        self
    }

    /// Makes it the recorder of the process.
    ///
    /// # Errors
    /// The process has a recorder already, which stays.
    pub fn install(self) -> Result<(), SetRecorderError<Self>> {
        metrics::set_global_recorder(self)
    }

    fn find<M: Metric>(&self, table: &Table<M>, key: &Key) -> Option<Arc<M>> {
        let found = table.find(key, || {
            let known = self.tables.interval_ticks.load(Ordering::Relaxed);
            if known > 0 || self.interval.is_zero() {
                return known;
            }
            let rate = u128::from(trace_provider::ticks_per_second());
            let ticks = self.interval.as_nanos().saturating_mul(rate) / 1_000_000_000;
            let ticks = u64::try_from(ticks).unwrap_or(u64::MAX).max(1);
            self.tables.interval_ticks.store(ticks, Ordering::Relaxed);
            ticks
        });
        if found.is_none() {
            self.tables.unrecorded.fetch_add(1, Ordering::Relaxed);
        }
        found
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        if let Some(other) = &self.other {
            other.describe_counter(key, unit, description);
        }
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        if let Some(other) = &self.other {
            other.describe_gauge(key, unit, description);
        }
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        if let Some(other) = &self.other {
            other.describe_histogram(key, unit, description);
        }
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        let other = self.other.as_ref().map(|other| other.register_counter(key, metadata));
        match (self.find(&self.tables.counters, key), other) {
            (Some(own), Some(other)) => Counter::from_arc(Arc::new(Both(own, other))),
            (Some(own), None) => Counter::from_arc(own),
            (None, other) => other.unwrap_or_else(Counter::noop),
        }
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        let other = self.other.as_ref().map(|other| other.register_gauge(key, metadata));
        match (self.find(&self.tables.gauges, key), other) {
            (Some(own), Some(other)) => Gauge::from_arc(Arc::new(Both(own, other))),
            (Some(own), None) => Gauge::from_arc(own),
            (None, other) => other.unwrap_or_else(Gauge::noop),
        }
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        let other = self.other.as_ref().map(|other| other.register_histogram(key, metadata));
        match (self.find(&self.tables.histograms, key), other) {
            (Some(own), Some(other)) => Histogram::from_arc(Arc::new(Both(own, other))),
            (Some(own), None) => Histogram::from_arc(own),
            (None, other) => other.unwrap_or_else(Histogram::noop),
        }
    }
}

/// On the provider's thread: a recording has begun, or is about to end.
fn on_change(state: State) {
    // A child forked meanwhile would find locks taken.
    match state {
        State::Started => engine::without_forks(|| {
            for_each(|tables| {
                tables.counters.for_each(CounterState::begin);
                tables.gauges.for_each(GaugeState::begin);
            });
        }),
        State::Stopping => engine::without_forks(flush),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Recorder, unrecorded};
    use metrics::{counter, histogram, with_local_recorder};

    #[test]
    fn tables_have_a_bound() {
        let recorder = Recorder::new();
        with_local_recorder(&recorder, || {
            for round in 0..2 {
                for number in 0..1030 {
                    histogram!("histogram", "number" => number.to_string()).record(1);
                }
                assert_eq!(unrecorded(), 6 * (round + 1));
            }
            counter!("x".repeat(32_001)).increment(1);
            assert_eq!(unrecorded(), 13);
            counter!("x".repeat(32_000)).increment(1);
            assert_eq!(unrecorded(), 13);
        });
        drop(recorder);
        assert_eq!(unrecorded(), 0);
    }
}
