//! What the `metrics` crate calls when a metric changes.

use crate::metric::{CounterState, GaugeState, HistogramState};
use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn};
use std::sync::Arc;

impl CounterFn for CounterState {
    fn increment(&self, value: u64) {
        Self::increment(self, value);
    }

    fn absolute(&self, value: u64) {
        self.raise_to(value);
    }
}

impl GaugeFn for GaugeState {
    fn increment(&self, value: f64) {
        self.change(|before| before + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|before| before - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for HistogramState {
    fn record(&self, value: f64) {
        self.add(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        self.add(value, u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// A metric, and that of another recorder.
pub struct Both<M, H>(pub Arc<M>, pub H);

impl CounterFn for Both<CounterState, Counter> {
    fn increment(&self, value: u64) {
        self.1.increment(value);
        self.0.increment(value);
    }

    fn absolute(&self, value: u64) {
        self.1.absolute(value);
        self.0.raise_to(value);
    }
}

impl GaugeFn for Both<GaugeState, Gauge> {
    fn increment(&self, value: f64) {
        self.1.increment(value);
        self.0.increment(value);
    }

    fn decrement(&self, value: f64) {
        self.1.decrement(value);
        self.0.decrement(value);
    }

    fn set(&self, value: f64) {
        self.1.set(value);
        self.0.set(value);
    }
}

impl HistogramFn for Both<HistogramState, Histogram> {
    fn record(&self, value: f64) {
        self.1.record(value);
        self.0.add(value, 1);
    }

    fn record_many(&self, value: f64, count: usize) {
        self.1.record_many(value, count);
        HistogramFn::record_many(&*self.0, value, count);
    }
}
