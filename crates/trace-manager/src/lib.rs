//! The trace manager: a core that decides ([`core`]) and a daemon that does the I/O ([`daemon`]).
//!
//! The core is told what happened and what time it is, and says what to do. The daemon waits for sockets,
//! FIFOs and timers with one `epoll` loop, never blocks on anyone, and never trusts a provider: buffers are
//! copied with `pread`, walked and checked record by record before anything reaches the archive.
#![forbid(unsafe_code)]

mod archive;
pub mod confirm;
pub mod core;
pub mod daemon;
mod problem;
pub mod recovery;

pub use problem::problem;
