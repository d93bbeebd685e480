//! The present trace, and what keeps it allocated while a thread uses it.
//!
//! Invariants:
//!
//! * **E1** The context pointer is null or a context that was leaked from a box. It is followed only through
//!   a [`Lease`], and by the thread that ends the trace.
//! * **E2** It is freed only after it was unlinked, all threads were fenced, every counter was seen even or
//!   changed since, and no lease was counted.
#![allow(unsafe_code)]

use crate::session::context::Context;
use crate::session::hold::Hold;
use crate::sync::{AtomicPtr, AtomicU32, Ordering, process};
use crate::thread::block::ThreadBlock;
use crate::thread::registry::{self, Acquired};
use core::ptr::NonNull;

static CONTEXT: AtomicPtr<Context> = AtomicPtr::new(core::ptr::null_mut());

/// Closed while a recording goes over to another buffer.
pub(super) static HOLD: Hold = Hold::new();

/// Leases of threads that are not inside an event.
pub(super) static LEASES: AtomicU32 = AtomicU32::new(0);

/// Whether there is a trace at all, for a thread that would have to take a block to look further.
pub(crate) fn has_context() -> bool {
    !CONTEXT.load(Ordering::SeqCst).is_null()
}

/// Whether a run is under way, also while a stop of it waits.
pub(crate) fn is_running() -> bool {
    has_context() && Lease::of_thread().context().is_some_and(|context| context.run().additional().is_some())
}

/// Counts the beginnings and ends of runs, and forks, in the child.
static RUNS: process::AtomicU64 = process::AtomicU64::new(0);

/// Stays the same as long as a run goes on, also when it goes over to another buffer.
pub(crate) fn run_number() -> u64 {
    RUNS.load(Ordering::SeqCst)
}

/// A run begins or ends.
pub(super) fn count_run() {
    RUNS.fetch_add(1, Ordering::SeqCst);
}

/// A trace begins. There was none.
pub(super) fn publish(context: Context) {
    CONTEXT.store(Box::into_raw(Box::new(context)), Ordering::SeqCst);
}

/// The recording goes on in another trace: from now on threads find that.
pub(super) fn replace(context: Box<Context>) -> Option<Unlinked> {
    NonNull::new(CONTEXT.swap(Box::into_raw(context), Ordering::SeqCst)).map(Unlinked)
}

/// A context that no thread finds any more.
pub(super) struct Unlinked(NonNull<Context>);

/// The trace ends: from now on no thread finds it.
pub(super) fn unlink() -> Option<Unlinked> {
    count_run();
    NonNull::new(CONTEXT.swap(core::ptr::null_mut(), Ordering::SeqCst)).map(Unlinked)
}

impl Unlinked {
    /// The context.
    pub fn context(&self) -> &Context {
        // SAFETY: still allocated (E1), as only `free` frees it, which takes `self`.
        unsafe { self.0.as_ref() }
    }

    /// Frees the context.
    ///
    /// # Safety
    /// All threads have left it, and no lease on it is counted (E2).
    pub unsafe fn free(self) {
        // SAFETY: from `Box::into_raw` (E1), unlinked and left by all threads (E2).
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// As long as it lives, the trace that it gives out does: the end of the trace waits for it, or, where that
/// takes too long, leaves the trace allocated.
pub(crate) struct Lease(Way);

/// How the end of a trace finds a lease.
enum Way {
    /// The thread counts as inside an event. A stop waits for that, too.
    Inside(&'static ThreadBlock),
    /// The same, with a block that is given back afterwards.
    Borrowed(&'static ThreadBlock),
    /// By a counter.
    Counted,
}

impl Lease {
    /// Of a thread with its block, which counts as inside an event from now on.
    pub fn inside(block: &'static ThreadBlock) -> Self {
        HOLD.enter(block);
        Self(Way::Inside(block))
    }

    /// Of a thread that counts as inside an event from now on, if it can have a block.
    pub fn of_thread() -> Self {
        match registry::acquire() {
            Some(Acquired::Own(block)) => Self::inside(block),
            Some(Acquired::Borrowed(block)) => {
                HOLD.enter(block);
                Self(Way::Borrowed(block))
            }
            None => Self::counted(),
        }
    }

    /// For what waits for threads to leave their events.
    pub fn counted() -> Self {
        // SeqCst: one order with the look at the context, and with its end and the look at the counter.
        LEASES.fetch_add(1, Ordering::SeqCst);
        Self(Way::Counted)
    }

    /// The running trace.
    pub fn context(&self) -> Option<&Context> {
        // SAFETY: null or a context (E1), which is alive as long as this is (E2).
        unsafe { CONTEXT.load(Ordering::SeqCst).as_ref() }
    }

    /// Whether the present run wants a category; none without one.
    pub fn run_wants(&self, category: &[u8]) -> Option<bool> {
        let context = self.context()?;
        context.run().additional().map(|additional| context.wants(category, additional))
    }

    /// Whether the present run wants a category; none without a trace.
    pub fn wants(&self, category: &[u8]) -> Option<bool> {
        let context = self.context()?;
        let additional = context.run().additional();
        Some(additional.is_some_and(|additional| context.wants(category, additional)))
    }
}

impl Drop for Lease {
    /// In one place: it is where many functions end that are long and seldom called.
    #[inline(never)]
    fn drop(&mut self) {
        match self.0 {
            Way::Inside(block) => block.leave(),
            Way::Borrowed(block) => {
                block.leave();
                block.free();
            }
            // A forked child has forgotten those of its parent.
            Way::Counted => {
                let _ =
                    LEASES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |leases| leases.checked_sub(1));
            }
        }
    }
}
