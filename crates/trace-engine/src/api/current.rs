//! The operation that a thread works on, for what begins there to name it as its parent.

use crate::session::observer::observed_operation;
use core::cell::Cell;

thread_local! {
    /// 0 for none.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// The id of the innermost operation that the calling thread works on, as far as it is recorded.
#[doc(hidden)]
#[must_use]
pub fn current_operation() -> Option<u64> {
    observed_operation().or_else(current_poll)
}

/// The id of the operation whose poll the calling thread is in; no observer is asked.
#[doc(hidden)]
#[inline]
#[must_use]
pub fn current_poll() -> Option<u64> {
    CURRENT.try_with(Cell::get).ok().filter(|id| *id != 0)
}

/// The calling thread works on an operation until this is dropped.
#[doc(hidden)]
#[derive(Debug)]
#[must_use = "the thread works on the operation until this is dropped"]
pub struct Within {
    before: u64,
}

impl Within {
    /// From now on.
    #[inline]
    pub fn new(id: u64) -> Self {
        Self { before: CURRENT.try_with(|current| current.replace(id)).unwrap_or(0) }
    }
}

impl Drop for Within {
    #[inline]
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| current.set(self.before));
    }
}
