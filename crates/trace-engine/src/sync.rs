//! Atomics and fences of the lock-free parts. Everything that a model checker has to see goes through
//! here.
//!
//! They are aliases, so that clippy tells a use of this module from one of the standard library's: see
//! `clippy.toml`.
#![allow(clippy::disallowed_types, reason = "the one place that may name them")]

/// A function that is `const`, but in models: values of loom's types are made at run time.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $visibility:vis fn $($rest:tt)*) => { $(#[$meta])* $visibility const fn $($rest)* };
}

pub(crate) use core::sync::atomic::{Ordering, compiler_fence, fence};

pub(crate) type AtomicBool = core::sync::atomic::AtomicBool;
pub(crate) type AtomicPtr<T> = core::sync::atomic::AtomicPtr<T>;
pub(crate) type AtomicU8 = core::sync::atomic::AtomicU8;
pub(crate) type AtomicU32 = core::sync::atomic::AtomicU32;
pub(crate) type AtomicU64 = core::sync::atomic::AtomicU64;
pub(crate) type AtomicUsize = core::sync::atomic::AtomicUsize;

/// A lock that threads spin on. It has no queue, which a forked child could find in any state: the child
/// calls [`SpinLock::release_in_child`].
pub(crate) struct SpinLock(AtomicBool);

/// Releases the lock when it is dropped.
#[must_use]
pub(crate) struct SpinGuard<'a>(&'a SpinLock);

impl SpinLock {
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
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
}

impl Drop for SpinGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

pub(crate) type Mutex<T> = parking_lot::Mutex<T>;
