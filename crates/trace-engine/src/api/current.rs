//! The operation that a thread works on, for what begins there to name it as its parent.

use crate::session::observer::observed_operation;
use core::cell::Cell;

#[derive(Clone, Copy, Debug)]
struct Current {
    /// 0 for none.
    id: u64,
    /// The observers' innermost operation when the thread began to work on this one; 0 for none. As long as
    /// they still report it, they have entered nothing inside of this one.
    around: u64,
}

const NONE: Current = Current { id: 0, around: 0 };

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(NONE) };
}

/// The id of the innermost operation that the calling thread works on, as far as it is recorded.
#[doc(hidden)]
#[must_use]
pub fn current_operation() -> Option<u64> {
    innermost_operation(observed_operation())
}

/// As [`current_operation`], for an observer that passes the innermost operation that it knows itself.
#[doc(hidden)]
#[inline]
#[must_use]
pub fn innermost_operation(observed: Option<u64>) -> Option<u64> {
    let Current { id, around } = CURRENT.try_with(Cell::get).unwrap_or(NONE);
    match observed {
        Some(observed) if id == 0 || observed != around => Some(observed),
        _ => Some(id).filter(|id| *id != 0),
    }
}

/// The calling thread works on an operation until this is dropped.
#[doc(hidden)]
#[derive(Debug)]
#[must_use = "the thread works on the operation until this is dropped"]
pub struct Within {
    before: Current,
}

impl Within {
    /// From now on.
    #[inline]
    pub fn new(id: u64) -> Self {
        let now = Current { id, around: observed_operation().unwrap_or(0) };
        Self { before: CURRENT.try_with(|current| current.replace(now)).unwrap_or(NONE) }
    }
}

impl Drop for Within {
    #[inline]
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| current.set(self.before));
    }
}
