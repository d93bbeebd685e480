//! The formats that traces are converted to, and what the writers of several formats share.

pub mod catapult;
pub(crate) mod custom_tracks;
pub mod firefox;
mod flows;
pub mod folded;
mod jobs;
mod losses;
pub(crate) mod numbers;
mod odd;
pub mod perfetto;
pub mod speedscope;
mod threads;

pub use jobs::Jobs;
