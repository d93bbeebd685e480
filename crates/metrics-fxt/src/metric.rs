//! What is kept of a metric, and its samples.

use crate::buckets::{Buckets, Summary};
use crate::patient::Patience;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;
use trace_engine::args::{IntoValue, Values};
use trace_engine::{Event, EventType, Site, engine, stamp, write_event};

/// A kind of metric.
pub trait Metric: Send + Sync + 'static {
    /// Metrics of this kind at most.
    const MAX: usize;
    /// Names of the series of a sample.
    const SERIES: &'static [&'static str];
    fn new(site: &'static Site, interval_ticks: u64) -> Self;
}

fn write_sample(site: &Site, values: &impl Values) {
    if site.is_on() {
        write_event(site, Event { event_type: EventType::Counter, start: None, extra: Some(0) }, values);
    }
}

#[derive(Debug)]
pub struct CounterState {
    site: &'static Site,
    total: AtomicU64,
    /// It was incremented by nothing, as programs do to have a counter shown.
    is_shown: AtomicBool,
}

impl CounterState {
    pub fn increment(&self, value: u64) {
        if value > 0 {
            let before = self.total.fetch_add(value, Ordering::Relaxed);
            self.sample(before.wrapping_add(value));
        } else {
            self.show();
        }
    }

    pub fn raise_to(&self, value: u64) {
        if self.total.fetch_max(value, Ordering::Relaxed) < value {
            self.sample(value);
        } else if value == 0 {
            self.show();
        }
    }

    /// A sample of the total, once.
    fn show(&self) {
        if !self.is_shown.swap(true, Ordering::Relaxed) {
            self.sample(self.total.load(Ordering::Relaxed));
        }
    }

    /// A recording has begun.
    pub fn begin(&self) {
        let total = self.total.load(Ordering::Relaxed);
        if total > 0 || self.is_shown.load(Ordering::Relaxed) {
            self.sample(total);
        }
    }

    fn sample(&self, total: u64) {
        write_sample(self.site, &(total.into_value(), ()));
    }
}

impl Metric for CounterState {
    const MAX: usize = 4096;
    const SERIES: &'static [&'static str] = &["value"];

    fn new(site: &'static Site, _interval_ticks: u64) -> Self {
        Self { site, total: AtomicU64::new(0), is_shown: AtomicBool::new(false) }
    }
}

#[derive(Debug)]
pub struct GaugeState {
    site: &'static Site,
    /// The bits of a double.
    value: AtomicU64,
    /// It has had a value, which may be the one that it has now: 0.
    is_set: AtomicBool,
}

impl GaugeState {
    /// Changes the value to what a function makes of it.
    pub fn change(&self, change: impl Fn(f64) -> f64) {
        let new = |bits| Some(change(f64::from_bits(bits)).to_bits());
        let Ok(before) = self.value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, new) else { return };
        let before = f64::from_bits(before);
        let after = change(before);
        let is_first = !self.is_set.load(Ordering::Relaxed) && !self.is_set.swap(true, Ordering::Relaxed);
        if after != before || is_first {
            self.sample(after);
        }
    }

    /// A recording has begun.
    pub fn begin(&self) {
        if self.is_set.load(Ordering::Relaxed) {
            self.sample(f64::from_bits(self.value.load(Ordering::Relaxed)));
        }
    }

    fn sample(&self, value: f64) {
        if value.is_finite() {
            write_sample(self.site, &(value.into_value(), ()));
        }
    }
}

impl Metric for GaugeState {
    const MAX: usize = 4096;
    const SERIES: &'static [&'static str] = &["value"];

    fn new(site: &'static Site, _interval_ticks: u64) -> Self {
        Self { site, value: AtomicU64::new(0), is_set: AtomicBool::new(false) }
    }
}

#[derive(Debug)]
pub struct HistogramState {
    site: &'static Site,
    interval_ticks: u64,
    interval: Mutex<Interval>,
    patience: Patience,
}

/// The interval that has not ended yet.
#[derive(Debug)]
struct Interval {
    /// The epoch of the recording that it belongs to.
    epoch: u32,
    /// The tick of the first value.
    begin: u64,
    values: Buckets,
}

impl HistogramState {
    pub fn add(&self, value: f64, times: u32) {
        if self.site.is_on() && value.is_finite() && times > 0 {
            self.sample(self.add_to_interval(value, times));
        }
    }

    /// What is to be recorded, if the interval is over. No record is written under the lock: its writer may
    /// wait for a thread that waits for the lock, with forks held off.
    fn add_to_interval(&self, value: f64, times: u32) -> Option<Summary> {
        let (now, epoch) = (stamp(), engine::epoch());
        let mut interval = self.patience.wait(|| self.interval.try_lock())?;
        if interval.epoch != epoch {
            // What came behind the end of the last recording is of no recording.
            interval.values.take();
            interval.epoch = epoch;
        }
        if interval.values.is_empty() {
            interval.begin = now;
        }
        interval.values.add(value, times);
        let is_over = now.saturating_sub(interval.begin) >= self.interval_ticks;
        is_over.then(|| interval.values.take()).flatten()
    }

    /// A recording is about to end, or the program asks for what is there.
    pub fn flush(&self) {
        let Some(mut interval) = self.patience.wait(|| self.interval.try_lock()) else { return };
        let summary = interval.values.take().filter(|_| interval.epoch == engine::epoch());
        drop(interval);
        self.sample(summary);
    }

    fn sample(&self, summary: Option<Summary>) {
        if let Some(Summary { count, min, mean, max, p50, p99 }) = summary {
            let [min, mean, max, p50, p99] = [min, mean, max, p50, p99].map(IntoValue::into_value);
            write_sample(self.site, &(count.into_value(), (min, (mean, (max, (p50, (p99, ())))))));
        }
    }
}

impl Metric for HistogramState {
    const MAX: usize = 1024;
    const SERIES: &'static [&'static str] = &["count", "min", "mean", "max", "p50", "p99"];

    fn new(site: &'static Site, interval_ticks: u64) -> Self {
        Self {
            site,
            interval_ticks,
            interval: Mutex::new(Interval { epoch: 0, begin: 0, values: Buckets::new() }),
            patience: Patience::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HistogramState, Metric, Summary};
    use std::time::{Duration, Instant};
    use trace_engine::{BufferMode, Config, Disposition, Region, Site, engine};

    #[test]
    fn an_interval_is_of_one_recording() {
        let site = Site::leaked_constants("metrics", "histogram", HistogramState::SERIES);
        let histogram = HistogramState::new(site, u64::MAX);
        let take = || histogram.interval.lock().expect("no panic").values.take();
        histogram.add(1.0, 1);
        assert_eq!(take(), None);
        let (region, _words) = Region::on_heap(1 << 20);
        let config = Config::new(1, "metrics", 1);
        let engine = engine::initialize(region, BufferMode::Oneshot, config).expect("it is idle");
        engine.start(Disposition::Retain, &[]).expect("it is initialized");
        histogram.add(1.0, 1);
        engine.stop(Instant::now() + Duration::from_secs(5)).expect("it was started");
        engine.start(Disposition::Retain, &[]).expect("it was stopped");
        histogram.add(2.0, 2);
        histogram.add(f64::NAN, 1);
        let of_second = Summary { count: 2, min: 2.0, mean: 2.0, max: 2.0, p50: 2.0, p99: 2.0 };
        assert_eq!(take(), Some(of_second));
        engine.terminate(Instant::now() + Duration::from_secs(5)).expect("it was started");
    }
}
