//! Keeps threads from beginning events while a recording goes on in another buffer.
//!
//! A thread that comes to an event waits outside of it until the other buffer is there. One that is inside
//! already goes on in the present buffer, as do handlers that interrupt it there.

use crate::slab::Slabs;
use crate::slab::retirement::{fence_all_threads, wait_until_out};
use crate::sync::{AtomicU32, Ordering, pause};
use crate::sys;
use crate::thread::block::ThreadBlock;
use std::time::{Duration, Instant};

/// Threads begin events.
const OPEN: u32 = 0;
/// They do, and take no more references to write.
const CLOSING: u32 = 1;
/// They wait.
const CLOSED: u32 = 2;

/// How long a thread sleeps before it looks again.
const NAP: Duration = Duration::from_micros(20);

/// Whether threads may begin events.
pub(crate) struct Hold {
    state: AtomicU32,
    /// The thread that closes it, which has no other to wait for: neither do handlers that interrupt it.
    holder: AtomicU32,
}

impl Hold {
    const_unless_modelled! {
        /// It is open.
        pub fn new() -> Self {
            Self { state: AtomicU32::new(OPEN), holder: AtomicU32::new(0) }
        }
    }

    /// Marks the thread as inside an event, or one level deeper inside; waits before its outermost one.
    //= docs/buffer.md#another-buffer
    pub fn enter(&self, block: &ThreadBlock) {
        loop {
            // It fences: either the thread that has closed it sees the event, or the look behind it sees
            // that.
            block.enter();
            let may_begin = self.state.load(Ordering::SeqCst) != CLOSED || block.nested() > 0;
            if may_begin || self.is_holder() {
                return;
            }
            block.leave();
            self.wait(CLOSED);
        }
    }

    /// Whether a reference to write that was counted just now is to be given back.
    pub fn is_closing_references(&self) -> bool {
        self.state.load(Ordering::SeqCst) != OPEN && !self.is_holder()
    }

    /// Waits until references to write are given out again.
    pub fn wait_until_open(&self) {
        self.wait(CLOSING);
    }

    fn is_holder(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == sys::thread_id()
    }

    /// Waits as long as the state is this or a later one.
    fn wait(&self, least: u32) {
        sys::keeping_errno(|| {
            while self.state.load(Ordering::SeqCst) >= least {
                pause(NAP);
            }
        });
    }

    /// From now on references to write are not given out to threads other than the holder, until what is
    /// returned is dropped.
    pub fn close_references(&self, holder: u32) -> Closed<'_> {
        self.holder.store(holder, Ordering::Relaxed);
        self.state.store(CLOSING, Ordering::SeqCst);
        Closed(self)
    }

    /// In a forked child, which the closing thread is not in.
    pub fn release_in_child(&self) {
        self.state.store(OPEN, Ordering::SeqCst);
    }
}

/// As long as it lives, threads wait.
#[must_use = "it opens when this is dropped"]
pub(crate) struct Closed<'a>(&'a Hold);

impl Closed<'_> {
    /// Has all threads wait before their next event, and waits until none is inside of one from before. None
    /// takes space in the buffer any more then; one that has some left may use it, until the buffer is
    /// [stopped](Closed::stop). False if the deadline passes first.
    //= docs/buffer.md#another-buffer
    pub fn wait_until_out(&self, deadline: Instant) -> bool {
        self.0.state.store(CLOSED, Ordering::SeqCst);
        fence_all_threads();
        wait_until_out(deadline).is_empty()
    }

    /// Stops the buffer, and takes all slabs back. Returns how many threads did not leave their event in
    /// time.
    pub fn stop(&self, slabs: &Slabs, deadline: Instant) -> usize {
        slabs.leave();
        slabs.retire_all(deadline)
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.state.store(OPEN, Ordering::SeqCst);
    }
}
