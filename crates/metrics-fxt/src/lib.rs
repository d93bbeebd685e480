//! Records the counters, gauges and histograms of the [`metrics`](https://docs.rs/metrics) crate: with the
//! same provider, and in the same traces, as the macros of `trace-provider`.
//!
//! One line in `main` makes the provider and the recorder:
//!
//! ```
//! let _provider = metrics_fxt::init("my-app");
//! metrics::counter!("requests", "method" => "GET").increment(1);
//! metrics::histogram!("latency").record(0.25);
//! ```
//!
//! A process has one recorder. To keep another one, such as that of an exporter, pass it to
//! [`Recorder::beside`]: it gets everything that it would get if it were the only one.
//!
//! | metric | in the trace: a counter of category `metrics` |
//! |---|---|
//! | counter | a sample of the total, `value`, whenever it changes |
//! | gauge | a sample, `value`, whenever it changes to another finite number |
//! | histogram | a sample of the values of each interval: `count`, `min`, `mean`, `max`, `p50`, `p99` |
//!
//! Labels are a part of the name, as exporters write them: `requests{method="GET"}`. Each combination of
//! labels is a row of its own in viewers, while arguments of a counter are series of one row.
//!
//! When a recording begins, each counter and gauge that has changed before is sampled once.
//!
//! # Histograms
//!
//! Values are collected while a recording runs. The first value that comes after the
//! [interval](Recorder::interval) is over ends the interval and is its last; so does the end of the
//! recording, [`flush`], and dropping the value that [`init`] returned. If the process ends in another way,
//! the values of the current interval are not recorded. `p50` and `p99` are the middle of a bucket, off by at
//! most 1/32, for values from 2^-32 to 2^48. Values of 0 and below count as the smallest. Values that are not
//! finite are ignored.
//!
//! # Cost
//!
//! While category `metrics` is not recorded, a counter and a gauge change one atomic number, and a histogram
//! loads a word. While it is, each change is one record, and recording a value of a histogram takes the lock
//! of that histogram. The macros look their metric up by its key under a shared lock, as with every recorder;
//! kept handles avoid that. With another recorder beside, looking a metric up allocates a handle.
//!
//! # Limits
//!
//! A recorder has up to 4096 counters, 4096 gauges and 1024 histograms, of 5 KiB each once they got a value
//! in a recording. Others are passed on, but not recorded: [`unrecorded`] counts them. Two threads
//! that change a metric at the same time may record the two values in either order. Units and descriptions
//! are not recorded.
#![forbid(unsafe_code)]

mod buckets;
mod handles;
mod metric;
mod patient;
mod recorder;
mod table;

pub use recorder::{Metrics, Recorder, flush, init, unrecorded};
