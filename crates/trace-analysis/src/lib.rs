//! Statistics, assertions and comparisons over archives.
//!
//! [`walk`] goes through an archive once and passes on what happened: durations and operations with their
//! ends, instants, samples of counters, losses. [`stats`] sums that up by name, category, process or thread,
//! [`diff`] compares two such sums, and [`assertion`] is a small language of limits. [`samples`] takes the
//! measurements of test specifications, [`ab`] judges several archives of two commands, and [`check`] finds
//! all problems. Memory is bounded for archives of any length.
#![forbid(unsafe_code)]

pub mod ab;
pub mod assertion;
pub mod check;
pub mod cost;
pub mod counted;
pub mod diff;
pub mod live;
pub mod losses;
mod names;
pub mod population;
pub mod quantiles;
pub mod samples;
mod spans;
pub mod stats;
pub mod walk;

pub use names::{What, Whats};
pub use spans::{Span, Unfinished};
pub use trace_model::Shape;

#[cfg(test)]
mod testing;
