//! The list of slots under loom, which plays two threads through in every interleaving, and fails if they
//! touch the data of a span without being ordered.
//!
//! A model replaces the atomics, and what a span keeps. Blocks of slots are made by the standard library's
//! `OnceLock`, of which loom knows nothing, and no thread keeps slots for itself.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), allow(dead_code, reason = "models are tests"))]

#[path = "../../src/pool/slots.rs"]
mod slots;

/// The atomics of the checker.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

#[cfg(test)]
mod models;
