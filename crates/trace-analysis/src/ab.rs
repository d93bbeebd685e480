//! Whether one of two commands takes longer, from several recordings of each.
//!
//! Each run gives one number for each name ([`run`]), and runs are compared in pairs of neighbours
//! ([`comparison`]). A name has changed if two tests agree on that ([`judge`]): an exact test of the signs of
//! the pairs ([`signs`]) after Holm's correction for the number of names, at looks that share the rate of
//! false alarms ([`looks`]), and an interval by a bootstrap of whole blocks of runs ([`interval`]), which has
//! to lie beyond the minimum effect. [`power`] is what could have been found, and [`carriers`] are the parts
//! of a duration that account for its change.
//!
//! All but [`run`] works on plain numbers.
//= docs/ab.md#statistics

pub mod carriers;
pub mod comparison;
pub mod interval;
pub mod judge;
pub mod looks;
pub mod power;
mod random;
pub mod run;
pub mod signs;

pub use random::{Random, order};
