//! Taking slabs back from their threads, without waiting for threads that do nothing.
//!
//! The dispatcher takes a slab's end out of the thread's control block, fences all threads, and waits until
//! each was seen outside of an event. What is below is its own then, except what a thread was inside of all
//! the time: a *straggler*, which keeps its slab.

use crate::site::{self, Site};
use crate::slab::Slabs;
use crate::sync::{Ordering, fence, pause};
use crate::sys;
use crate::thread::block::ThreadBlock;
use crate::thread::registry;
use std::time::{Duration, Instant};

/// Stores reach other processors within microseconds, and before a thread that is interrupted goes on.
const SETTLE: Duration = Duration::from_millis(2);

impl Slabs {
    /// Takes every slab back from every thread. Returns how many threads did not leave their event in time.
    //= docs/buffer.md#retiring
    pub fn retire_all(&self, deadline: Instant) -> usize {
        fence(Ordering::SeqCst);
        registry::all().for_each(ThreadBlock::revoke);
        fence_all_threads();
        let stragglers = wait_until_out(deadline);
        // A thread that was taking a slab set `end` once more and noticed.
        registry::all().for_each(ThreadBlock::revoke);
        self.close_slabs(&stragglers, |_| true);
        while let Some(leftover) = self.free_list.pop() {
            self.close_leftover(leftover);
        }
        stragglers.len()
    }

    /// Takes the slabs of one half back. Returns those that stay with a thread.
    //= docs/buffer.md#retiring
    pub fn retire_half(&self, half: u64, patience: Duration) -> Vec<u32> {
        self.allocator.retire_half(half);
        fence(Ordering::SeqCst);
        let slabs = self.slabs_of_half(half);
        let first = self.buffer.slab_address(slabs.start);
        // Behind the first slab's first byte, up to the end of the last.
        let ends = first + 1..=first + (slabs.len() as u64 * self.layout().slab_bytes) as usize;
        let revoke = || registry::all().for_each(|block| block.revoke_within(&ends));
        revoke();
        fence_all_threads();
        let stragglers = wait_until_out(Instant::now() + patience);
        revoke();
        self.close_slabs(&stragglers, |slab| slabs.contains(&slab));
        self.close_leftovers();
        // After this fence, any thread that was closing its own slab has finished.
        fence_all_threads();
        wait_until_out(Instant::now() + patience);
        self.allocator.in_use(&self.buffer, half)
    }

    /// Closes the slabs of all threads that are not inside an event.
    fn close_slabs(&self, stragglers: &[&'static ThreadBlock], is_wanted: impl Fn(u32) -> bool) {
        let generation = self.buffer.generation();
        let is_straggler = |block: &ThreadBlock| stragglers.iter().any(|other| core::ptr::eq(*other, block));
        for block in registry::all().filter(|block| !is_straggler(block)) {
            if block.generation() == generation {
                block.slabs().iter().for_each(|own| self.close_for(block, own, &is_wanted));
            }
        }
    }

    /// Closes what ended threads have left of a half that is retired.
    fn close_leftovers(&self) {
        let mut kept = Vec::new();
        while let Some(leftover) = self.free_list.pop() {
            if self.allocator.is_retired(self.buffer.word_of(leftover.slab).sequence()) {
                self.close_leftover(leftover);
            } else {
                kept.push(leftover);
            }
        }
        kept.into_iter().for_each(|leftover| self.free_list.push(leftover));
    }
}

/// After this, what any thread has stored before it looked at its slab can be seen.
///
/// Where the kernel refuses a fence that it gave before, each event fences by itself from now on, and those
/// that are under way without one get time: no store takes so long to become visible.
//= docs/buffer.md#retiring
pub(crate) fn fence_all_threads() {
    if !sys::fence_all_threads() {
        site::for_each(Site::unpublish);
        pause(SETTLE);
    }
}

/// Takes their slabs away from all threads without closing them; false if a thread is still inside an event.
pub(crate) fn take_slabs_away(patience: Duration) -> bool {
    let is_out = || wait_until_out(Instant::now() + patience).is_empty();
    if !is_out() {
        return false;
    }
    // A thread that ends right now may be about to close its slab: it finds none, or is waited for.
    registry::all().for_each(ThreadBlock::forget_slabs);
    is_out()
}

/// Waits until each thread's counter was even or differs from its first odd value. Returns those of which
/// neither was seen; next time they are not waited for, unless they have moved.
pub(crate) fn wait_until_out(deadline: Instant) -> Vec<&'static ThreadBlock> {
    let mut inside: Vec<_> = registry::all()
        .map(|block| (block, block.counter()))
        .filter(|(_, counter)| counter & 1 != 0)
        .collect();
    loop {
        inside.retain(|(block, counter)| block.counter() == *counter);
        let is_waited_for = |(block, counter): &(&ThreadBlock, u64)| block.late_at() != *counter;
        if !inside.iter().any(is_waited_for) || Instant::now() >= deadline {
            for (block, counter) in &inside {
                block.set_late_at(*counter);
            }
            return inside.into_iter().map(|(block, _)| block).collect();
        }
        pause(Duration::from_micros(20));
    }
}

#[cfg(all(test, not(modelled)))]
mod tests;
