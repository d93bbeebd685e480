//! Has loom check that threads touch the same slab only one after the other.

use core::cell::RefCell;
use core::ops::Range;
use loom::cell::UnsafeCell;
use std::rc::Rc;

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
