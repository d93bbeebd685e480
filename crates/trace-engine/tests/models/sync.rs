//! What `crate::sync` is in models: loom's atomics and locks.

use core::cell::RefCell;
use core::fmt;
use core::ops::Range;
use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::rc::Rc;
use std::time::Duration;

/// The compiler keeps the order of what goes through loom.
pub(crate) fn compiler_fence(_ordering: Ordering) {}

macro_rules! const_unless_loom {
    ($($function:tt)*) => { $($function)* };
}

macro_rules! array_of {
    ($value:expr; $count:expr) => {
        core::array::from_fn(|_| $value)
    };
}

/// Loom's lock with the methods of parking_lot's.
#[derive(Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("no thread has panicked")
    }

    pub(crate) fn try_lock(&self) -> Option<loom::sync::MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

pub(crate) fn pause(_duration: Duration) {
    loom::thread::yield_now();
}

pub(crate) fn yield_now() {
    loom::thread::yield_now();
}

/// The addresses of a slab, and what only one thread may touch at a time.
type Guarded = (Range<usize>, Rc<UnsafeCell<()>>);

std::thread_local! {
    /// All threads of a model run on one thread of the system.
    static GUARDED: RefCell<Vec<Guarded>> = const { RefCell::new(Vec::new()) };
}

/// Has loom check who touches these slabs, and no others.
pub(crate) fn guard(slabs: impl Iterator<Item = Range<usize>>) {
    let cells = slabs.map(|addresses| (addresses, Rc::new(UnsafeCell::new(())))).collect();
    GUARDED.replace(cells);
}

fn guarded(addresses: &Range<usize>) -> Vec<Rc<UnsafeCell<()>>> {
    let overlaps = |slab: &Range<usize>| slab.start < addresses.end && addresses.start < slab.end;
    GUARDED.with_borrow(|all| {
        all.iter().filter(|(slab, _)| overlaps(slab)).map(|(_, cell)| cell.clone()).collect()
    })
}

/// Loom fails if another thread touches a slab of these at the same time, or without being ordered before or
/// after.
pub(crate) fn assert_exclusive(addresses: Range<usize>) {
    guarded(&addresses).iter().for_each(|cell| cell.with_mut(|_| ()));
}

/// As [`assert_exclusive`], for a thread that only reads: others may read, too.
pub(crate) fn assert_shared(addresses: &Range<usize>) {
    guarded(addresses).iter().for_each(|cell| cell.with(|_| ()));
}
