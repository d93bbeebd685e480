//! The standard library's atomics and lock.

use core::ops::Range;
pub(crate) use core::sync::atomic::{Ordering, compiler_fence, fence};
use std::sync::{self, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

pub(crate) type AtomicBool = core::sync::atomic::AtomicBool;
pub(crate) type AtomicPtr<T> = core::sync::atomic::AtomicPtr<T>;
pub(crate) type AtomicU32 = core::sync::atomic::AtomicU32;
pub(crate) type AtomicU64 = core::sync::atomic::AtomicU64;
pub(crate) type AtomicUsize = core::sync::atomic::AtomicUsize;

/// The standard library's lock, which a thread that has panicked leaves as it is for the others.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A function that is `const`, but in models: values of a checker's types are made at run time.
macro_rules! const_unless_modelled {
    ($(#[$meta:meta])* $visibility:vis fn $($rest:tt)*) => { $(#[$meta])* $visibility const fn $($rest)* };
}

/// An array of equal values that cannot be copied.
macro_rules! array_of {
    ($value:expr; $count:expr) => {
        [const { $value }; $count]
    };
}

/// Lets other threads run while this one waits for them.
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Lets other threads run.
pub(crate) fn yield_now() {
    std::thread::yield_now();
}

/// In models: the calling thread has these addresses of a slab to itself.
#[inline(always)]
pub(crate) fn assert_exclusive(_addresses: Range<usize>) {}
