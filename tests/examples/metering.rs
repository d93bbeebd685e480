//! Metrics: `metering alone|beside|each` changes some and prints what another recorder has got; `metering
//! waits` does so before it says that it waits, and again after its input.

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit,
    counter, describe_counter, gauge, histogram,
};
use metrics_fxt::Recorder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trace_provider::{TraceProvider, category_enabled};

/// Calls that another recorder has got.
static DESCRIPTIONS: AtomicU64 = AtomicU64::new(0);
static REGISTRATIONS: AtomicU64 = AtomicU64::new(0);
static CHANGES: AtomicU64 = AtomicU64::new(0);

struct Other;

fn count(calls: &AtomicU64) {
    calls.fetch_add(1, Ordering::Relaxed);
}

impl CounterFn for Other {
    fn increment(&self, _: u64) {
        count(&CHANGES);
    }

    fn absolute(&self, _: u64) {
        count(&CHANGES);
    }
}

impl GaugeFn for Other {
    fn increment(&self, _: f64) {
        count(&CHANGES);
    }

    fn decrement(&self, _: f64) {
        count(&CHANGES);
    }

    fn set(&self, _: f64) {
        count(&CHANGES);
    }
}

impl HistogramFn for Other {
    fn record(&self, _: f64) {
        count(&CHANGES);
    }
}

impl metrics::Recorder for Other {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        count(&DESCRIPTIONS);
    }

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        count(&DESCRIPTIONS);
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        count(&DESCRIPTIONS);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        count(&REGISTRATIONS);
        Counter::from_arc(Arc::new(Self))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        count(&REGISTRATIONS);
        Gauge::from_arc(Arc::new(Self))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        count(&REGISTRATIONS);
        Histogram::from_arc(Arc::new(Self))
    }
}

fn change() {
    describe_counter!("requests", "requests that were served");
    for _ in 0..3 {
        counter!("requests", "method" => "GET", "path" => "/\"a\"").increment(1);
    }
    counter!("requests").increment(0);
    counter!("requests", "method" => "PUT").increment(40);
    counter!("clock").absolute(100);
    counter!("clock").absolute(99);
    counter!("clock").absolute(101);

    let load = gauge!("load");
    load.set(1.5);
    load.set(1.5);
    load.increment(1.0);
    load.decrement(3);
    load.set(f64::NAN);
    load.set(0.25);
    gauge!("idle").set(0);
    gauge!("idle").set(0);

    let latency = histogram!("latency", "path" => "/");
    (1..=100).for_each(|value| latency.record(value));
    latency.record(f64::INFINITY);
    histogram!("size").record_many(4096, 3);
}

fn threads() {
    let thread = || (0..500).for_each(|_| counter!("shared").increment(1));
    std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(thread)));
}

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    if mode == "alone" {
        let _metrics = metrics_fxt::init("metering");
        change();
        threads();
        return;
    }
    let interval = if mode == "each" { Duration::ZERO } else { Duration::from_secs(3600) };
    let recorder = Recorder::new().interval(interval);
    recorder.beside(Box::new(Other)).install().expect("the first recorder");
    let _provider = TraceProvider::new("metering");
    change();
    if mode == "waits" {
        println!("waits");
        for line in std::io::stdin().lines() {
            let is_wanted = line.expect("text") == "on";
            while category_enabled!("metrics") != is_wanted {
                std::thread::yield_now();
            }
            histogram!("latency", "path" => "/").record(8.0);
            histogram!("latency", "path" => "/").record(16.0);
            println!("done");
        }
    } else {
        metrics_fxt::flush();
    }
    let counts = [&DESCRIPTIONS, &REGISTRATIONS, &CHANGES].map(|count| count.load(Ordering::Relaxed));
    println!("{counts:?}");
}
