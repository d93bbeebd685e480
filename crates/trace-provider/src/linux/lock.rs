//! The standard library's lock, which a thread that has panicked leaves as it is for the others.

use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Between two attempts to take a lock within a time.
const ATTEMPT: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None if the lock is not free within `wait`.
    pub fn try_lock_for(&self, wait: Duration) -> Option<MutexGuard<'_, T>> {
        let deadline = Instant::now() + wait;
        loop {
            match self.0.try_lock() {
                Ok(guard) => return Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(ATTEMPT),
            }
        }
    }
}
