//! Locks that are not waited for without end: a forked child inherits one that a thread of its parent held,
//! which does not exist there.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::TryLockError;
use std::time::{Duration, Instant};

/// How long a thread that holds a lock may be kept from running by a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);
/// Attempts before the waiting thread sleeps.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// Whether a lock was waited for in vain: it is only tried then.
#[derive(Debug, Default)]
pub struct Patience(AtomicBool);

impl Patience {
    /// Of a lock that is new.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Takes the lock. None if it does not become free.
    pub fn wait<G>(&self, attempt: impl Fn() -> Result<G, TryLockError<G>>) -> Option<G> {
        let attempt = || match attempt() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(guard) = attempt() {
            return Some(guard);
        }
        if self.0.load(Ordering::Relaxed) {
            return None;
        }
        for _ in 0..ATTEMPTS {
            if let Some(guard) = attempt() {
                return Some(guard);
            }
            std::thread::yield_now();
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(guard) = attempt() {
                return Some(guard);
            }
            std::thread::sleep(PAUSE);
        }
        self.0.store(true, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Patience;
    use std::sync::{Mutex, RwLock};

    #[test]
    fn a_lock_that_stays_taken_is_waited_for_once() {
        let (lock, patience) = (Mutex::new(1), Patience::default());
        assert_eq!(patience.wait(|| lock.try_lock()).map(|value| *value), Some(1));
        let taken = lock.lock().expect("no panic");
        assert!(patience.wait(|| lock.try_lock()).is_none() && patience.wait(|| lock.try_lock()).is_none());
        drop(taken);
        assert_eq!(patience.wait(|| lock.try_lock()).map(|value| *value), Some(1));
        let shared = RwLock::new(2);
        assert_eq!(patience.wait(|| shared.try_read()).map(|value| *value), Some(2));
        assert_eq!(patience.wait(|| shared.try_write()).map(|value| *value), Some(2));
    }
}
