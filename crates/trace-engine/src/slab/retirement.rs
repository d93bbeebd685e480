//! Taking slabs back from their threads, without waiting for threads that do nothing.
//!
//! The dispatcher takes a slab's end out of the thread's control block, fences all threads, and waits until
//! each was seen outside of an event. What is below is its own then, except what a thread was inside of all
//! the time: a *straggler*, which keeps its slab.

use crate::session::context::Context;
use crate::session::engine;
use crate::site::Site;
use crate::sync::{Ordering, fence};
use crate::sys;
use crate::thread::block::{self, ThreadBlock};
use std::time::{Duration, Instant};

/// Stores reach other processors within microseconds, and before a thread that is interrupted goes on.
const SETTLE: Duration = Duration::from_millis(2);

/// Takes every slab back from every thread. Returns how many threads did not leave their event in time.
//= docs/buffer.md#retiring
pub(crate) fn retire_all(context: &Context, deadline: Instant) -> usize {
    fence(Ordering::SeqCst);
    block::all().for_each(ThreadBlock::revoke);
    fence_all_threads();
    let stragglers = wait_until_out(deadline);
    // A thread that was taking a slab set `end` once more and noticed.
    block::all().for_each(ThreadBlock::revoke);
    close_slabs(context, &stragglers, |_| true);
    while let Some(leftover) = context.free_list.pop() {
        context.close_leftover(leftover);
    }
    stragglers.len()
}

/// Takes the slabs of one half back. Returns those that stay with a thread.
//= docs/buffer.md#retiring
pub(crate) fn retire_half(context: &Context, half: u64, patience: Duration) -> Vec<u32> {
    context.claims.retire_half(half);
    fence(Ordering::SeqCst);
    let slabs = context.slabs_of_half(half);
    let first = context.region.address(context.layout.slab(slabs.start));
    // Behind the first slab's first byte, up to the end of the last.
    let ends = first + 1..=first + (slabs.len() as u64 * context.layout.slab_bytes) as usize;
    let revoke = || block::all().for_each(|block| block.revoke_within(&ends));
    revoke();
    fence_all_threads();
    let stragglers = wait_until_out(Instant::now() + patience);
    revoke();
    close_slabs(context, &stragglers, |slab| slabs.contains(&slab));
    close_leftovers(context);
    // Whoever was about to close a slab of its own has done so after this.
    fence_all_threads();
    wait_until_out(Instant::now() + patience);
    context.claims.in_use(context, half)
}

/// After this, what any thread has stored before it looked at its slab can be seen.
///
/// Where the kernel refuses a fence that it gave before, each event fences by itself from now on, and those
/// that are under way without one get time: a processor keeps no store to itself for so long.
//= docs/buffer.md#retiring
pub(crate) fn fence_all_threads() {
    if !sys::fence_all_threads() {
        engine::for_each_site(Site::unpublish);
        std::thread::sleep(SETTLE);
    }
}

/// Closes the slabs of all threads that are not inside an event.
fn close_slabs(context: &Context, stragglers: &[&'static ThreadBlock], is_wanted: impl Fn(u32) -> bool) {
    let generation = context.generation.load(Ordering::Relaxed);
    let is_straggler = |block: &ThreadBlock| stragglers.iter().any(|other| core::ptr::eq(*other, block));
    for block in block::all().filter(|block| !is_straggler(block)) {
        if block.generation.load(Ordering::Relaxed) == generation {
            block.slabs.iter().for_each(|own| context.close_for(block, own, &is_wanted));
        }
    }
}

/// Closes what ended threads have left of a half that is taken back.
fn close_leftovers(context: &Context) {
    let mut kept = Vec::new();
    while let Some(leftover) = context.free_list.pop() {
        if context.claims.is_retired(context.word_of(leftover.slab).sequence()) {
            context.close_leftover(leftover);
        } else {
            kept.push(leftover);
        }
    }
    kept.into_iter().for_each(|leftover| context.free_list.push(leftover));
}

/// Waits until each thread's counter was even or differs from its first odd value. Returns those of which
/// neither was seen; next time they are not waited for, unless they have moved.
pub(crate) fn wait_until_out(deadline: Instant) -> Vec<&'static ThreadBlock> {
    let mut inside: Vec<_> = block::all()
        .map(|block| (block, block.counter.load(Ordering::Acquire)))
        .filter(|(_, counter)| counter & 1 != 0)
        .collect();
    loop {
        // Acquire: pairs with the Release that makes the counter even; the record is complete.
        inside.retain(|(block, counter)| block.counter.load(Ordering::Acquire) == *counter);
        let is_waited_for = |(block, counter): &(&ThreadBlock, u64)| block.late_at() != *counter;
        if !inside.iter().any(is_waited_for) || Instant::now() >= deadline {
            for (block, counter) in &inside {
                block.set_late_at(*counter);
            }
            return inside.into_iter().map(|(block, _)| block).collect();
        }
        std::thread::sleep(Duration::from_micros(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::write::{Event, write_event};
    use crate::sync::AtomicBool;
    use crate::sync::AtomicU64;
    use crate::thread::block::Acquired;
    use trace_format::event::EventType;

    static SITE: Site = Site::new("cat", "litmus", &[]);

    /// The asymmetric fence: a thread that was seen outside of its event writes nothing any more into what
    /// was taken from it. Without the fence on all threads some of a million attempts miss a writer whose
    /// counter is still on its way to memory.
    //= docs/buffer.md#retiring
    #[test]
    fn a_thread_that_was_seen_outside_writes_no_more() {
        const ATTEMPTS: u64 = 600_000;
        const LEAST: Duration = Duration::from_secs(10);
        // Where other programs have the processors, an attempt takes a thousand times as long.
        const MOST: Duration = Duration::from_secs(30);
        const RECORD_BYTES: usize = 16;
        assert!(
            sys::register_membarrier(),
            "the kernel has no membarrier: this machine cannot show anything"
        );
        SITE.switch_on();
        SITE.publish(1, 2);
        let words: Vec<AtomicU64> = (0..8192).map(|_| AtomicU64::new(0)).collect();
        let start = words.as_ptr().expose_provenance();
        let is_over = AtomicBool::new(false);
        let (sender, owner) = std::sync::mpsc::channel();
        let mut misses = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let Some(Acquired::Own(block)) = block::acquire() else { panic!("no block") };
                sender.send(block).unwrap();
                let event = Event { event_type: EventType::Instant, start: None, extra: None };
                while !is_over.load(Ordering::Relaxed) {
                    write_event(&SITE, event, &());
                }
            });
            let block = owner.recv().unwrap();
            let own = &block.slabs[0];
            let begin = Instant::now();
            let mut attempts = 0;
            // Attempts without a fence are so quick that there have to be more of them.
            while (attempts < ATTEMPTS || begin.elapsed() < LEAST) && begin.elapsed() < MOST {
                attempts += 1;
                own.cursor.store(start, Ordering::Relaxed);
                own.end.store(start + size_of_val(words.as_slice()), Ordering::Release);
                while own.cursor.load(Ordering::Relaxed) < start + 3 * RECORD_BYTES {
                    core::hint::spin_loop();
                }
                own.end.store(0, Ordering::Relaxed);
                fence_all_threads();
                let counter = block.counter.load(Ordering::Acquire);
                while counter & 1 != 0 && block.counter.load(Ordering::Acquire) == counter {
                    core::hint::spin_loop();
                }
                let seen = own.cursor.load(Ordering::Relaxed);
                misses += u64::from((0..20).any(|_| own.cursor.load(Ordering::Relaxed) != seen));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(misses, 0, "of at least {ATTEMPTS} attempts");
    }
}
