//! The trace manager: a core that decides ([`core`]) and a daemon that does the I/O ([`daemon`]).
//!
//! The core takes events and the time, and returns actions. The daemon waits for sockets, FIFOs and timers
//! with one `epoll` loop, never blocks on a peer, and never trusts a provider: buffers are copied with
//! `pread`, walked and checked record by record before anything reaches the archive.
#![forbid(unsafe_code)]

pub mod core;
pub mod daemon;
#[cfg(test)]
#[path = "../../trace-engine/src/own_process.rs"]
mod own_process;
