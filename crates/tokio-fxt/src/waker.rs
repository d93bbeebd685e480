//! The waker of a recorded task: notes when the task becomes ready, and wakes it by tokio's waker.

use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Waker;
use std::sync::Arc;
use std::task::Wake;
use trace_engine::{Site, stamp};

/// The task was woken, or is being polled: a further wake does not count.
const NOTED: u64 = 1;

/// Wakes a task.
#[derive(Debug)]
pub struct TaskWaker {
    outer: Waker,
    site: &'static Site,
    /// With [`NOTED`], the tick of the first wake since the last poll, or all bits during a poll; without it,
    /// the end of the last poll. The lowest bit of the ticks is lost.
    state: AtomicU64,
}

impl TaskWaker {
    /// During a poll.
    pub fn new(outer: Waker, site: &'static Site) -> Self {
        Self { outer, site, state: AtomicU64::new(u64::MAX) }
    }

    /// Whether it wakes the same task as the waker that the task gets from its runtime.
    pub fn is_for(&self, outer: &Waker) -> bool {
        self.outer.will_wake(outer)
    }

    /// A poll begins: when the task was woken for it, in ticks; none if that was during the poll before.
    #[inline]
    pub fn begin_poll(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(u64::MAX, Ordering::Relaxed);
        (state & NOTED != 0 && state != u64::MAX).then_some(state)
    }

    /// A poll has ended at this tick.
    #[inline]
    pub fn end_poll(&self, end: u64) {
        self.state.store(end & !NOTED, Ordering::Relaxed);
    }

    /// Relaxed: the runtime's waker, which is called next, orders the wake and the poll. Plain stores, as an
    /// exchange costs as much as the rest: of two threads that wake at the same time, either may be noted;
    /// and if the thread is interrupted between its look at the state and its store, and the task is polled
    /// meanwhile, the next delay counts from the end of that poll.
    #[inline]
    fn note(&self) {
        let state = self.state.load(Ordering::Relaxed);
        if state & NOTED == 0 && self.site.is_on() {
            let now = stamp();
            // If a poll has begun meanwhile, another wake has caused it.
            if self.state.load(Ordering::Relaxed) == state {
                self.state.store(now | NOTED, Ordering::Relaxed);
            }
        }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.note();
        self.outer.wake_by_ref();
    }
}
