//! What `crate::sync` is in models: the atomics and locks of loom, or of shuttle.

#[cfg_attr(shuttle, path = "unguarded.rs")]
mod guarded;
#[cfg(shuttle)]
pub(crate) mod scheduled;

use checker::sync;
#[cfg(test)]
pub(crate) use checker::sync::Arc;
pub(crate) use checker::sync::atomic::{AtomicPtr, Ordering, fence};
#[cfg(not(shuttle))]
pub(crate) use checker::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
pub(crate) use checker::thread;
use core::fmt;
pub(crate) use guarded::assert_exclusive;
#[cfg(test)]
pub(crate) use guarded::{assert_shared, guard};
#[cfg(not(shuttle))]
use loom as checker;
#[cfg(shuttle)]
pub(crate) use scheduled::{AtomicU32, AtomicU64, AtomicUsize};
#[cfg(shuttle)]
use shuttle as checker;
use std::time::Duration;

/// The compiler keeps the order of what goes through the checker.
pub(crate) fn compiler_fence(_ordering: Ordering) {}

macro_rules! const_unless_modelled {
    ($($function:tt)*) => { $($function)* };
}

macro_rules! array_of {
    ($value:expr; $count:expr) => {
        core::array::from_fn(|_| $value)
    };
}

/// The checker's lock with the methods of the engine's.
#[derive(Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> sync::MutexGuard<'_, T> {
        self.0.lock().expect("no thread has panicked")
    }

    pub(crate) fn try_lock(&self) -> Option<sync::MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

pub(crate) fn pause(_duration: Duration) {
    thread::yield_now();
}

pub(crate) fn yield_now() {
    thread::yield_now();
}
