//! A lock that no forked child finds taken.

use parking_lot::Mutex;
use trace_engine::engine;

/// A value that one thread uses at a time, while no other thread forks.
pub struct ForkLock<T>(Mutex<T>);

impl<T> ForkLock<T> {
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Calls a function with the value. It must not use the same lock.
    pub fn with<R>(&self, call: impl FnOnce(&mut T) -> R) -> R {
        engine::without_forks(|| call(&mut self.0.lock()))
    }
}
