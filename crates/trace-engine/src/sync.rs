//! Atomics, fences and locks of the lock-free parts. Everything that a model checker has to see goes through
//! here: under `cfg(modelled)`, which only the packages `trace-engine-models` and `trace-engine-mixes` set,
//! they are loom's or shuttle's.
//!
//! They are aliases, so that clippy can distinguish a use of this module from one of the standard library's:
//! see `clippy.toml`.
#![allow(clippy::disallowed_types, reason = "the one place that may name them")]

#[cfg_attr(modelled, path = "../tests/models/sync.rs")]
#[macro_use]
mod real;

pub(crate) use real::*;

/// Statics of the process, which models neither check nor begin anew.
pub(crate) mod process {
    pub(crate) type AtomicBool = core::sync::atomic::AtomicBool;
    #[cfg(not(elsewhere))]
    pub(crate) type AtomicU8 = core::sync::atomic::AtomicU8;
    #[cfg(not(elsewhere))]
    pub(crate) type AtomicU32 = core::sync::atomic::AtomicU32;
    pub(crate) type AtomicU64 = core::sync::atomic::AtomicU64;
    pub(crate) type AtomicPtr<T> = core::sync::atomic::AtomicPtr<T>;
}

/// A lock that threads spin on. It has no queue, which a forked child could find in any state: the child
/// calls [`SpinLock::release_in_child`].
pub(crate) struct SpinLock(process::AtomicBool);

/// Releases the lock when it is dropped.
#[must_use]
pub(crate) struct SpinGuard<'a>(&'a SpinLock);

impl SpinLock {
    pub const fn new() -> Self {
        Self(process::AtomicBool::new(false))
    }

    pub fn lock(&self) -> SpinGuard<'_> {
        while self.0.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        SpinGuard(self)
    }

    /// In a forked child: the thread that held the lock does not exist here.
    pub fn release_in_child(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// For a thread that has forgotten its guard.
    pub fn release(&self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Drop for SpinGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
