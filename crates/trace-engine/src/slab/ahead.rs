//! The dispatcher's part of backing a sparse buffer: memory is there before threads need it.

use crate::slab::Slabs;
use crate::sync::Mutex;
use std::time::{Duration, Instant};
use trace_format::buffer::CHUNK_BYTES;

/// So long after a start, nothing is backed that no thread needs: other programs start at the same time.
const REST: Duration = Duration::from_millis(100);
/// How often a step is backed that no thread needs yet …
const IDLE_INTERVAL: Duration = Duration::from_millis(10);
/// … and its size: so much of the buffer, but within these.
const STEPS: u64 = 8;
const LEAST_STEP_BYTES: u64 = 512 << 10;
const MOST_STEP_BYTES: u64 = 4 << 20;
/// How often the dispatcher tries to get memory that it was refused.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// When the dispatcher goes on.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// None before a run has begun.
    next: Mutex<Option<Instant>>,
}

impl Ahead {
    /// A run begins.
    pub fn begin(&self) {
        *self.next.lock() = Some(Instant::now() + REST);
    }

    /// Backs what threads will need soon, or a step of the rest where that is due. Returns when to go on, if
    /// there is more to be done.
    //= docs/buffer.md#memory
    pub fn service(&self, slabs: &Slabs, now: Instant) -> Option<Duration> {
        let backing = slabs.buffer().backing()?;
        let mut next = self.next.lock();
        let due = (*next)?;
        let untried = backing.first_untried();
        let is_late = backing.take_call() | untried.is_some_and(|untried| untried < slabs.wanted());
        if !is_late && now < due {
            return Some(due - now);
        }
        let Some(untried) = untried else {
            let is_complete = backing.retry();
            *next = if is_complete { None } else { Some(now + RETRY_INTERVAL) };
            return (!is_complete).then_some(RETRY_INTERVAL);
        };
        let total = slabs.layout().total_bytes;
        let step = (total / STEPS).clamp(LEAST_STEP_BYTES, MOST_STEP_BYTES);
        let end = total.min(untried + step);
        for start in (untried..end).step_by(CHUNK_BYTES as usize) {
            // What is refused is tried again when all the rest was tried.
            backing.back(&(start..end.min(start + CHUNK_BYTES)));
        }
        let is_late = backing.first_untried().is_some_and(|untried| untried < slabs.wanted());
        let pause = if is_late { Duration::ZERO } else { IDLE_INTERVAL };
        *next = Some(now + pause);
        Some(pause)
    }
}

impl Slabs {
    /// The offset up to which the buffer should have memory by now: twice as much as was given out.
    fn wanted(&self) -> u64 {
        let layout = self.layout();
        let given_out = self.allocator.ticket().saturating_sub(self.allocator.half_start(0));
        layout.rolling + 2 * layout.slab_bytes * given_out.min(u64::from(layout.slab_count()))
    }
}

#[cfg(all(test, not(modelled)))]
mod tests {
    use super::*;
    use crate::buffer::region::Region;
    use crate::slab::streaming::WakeHandler;
    use crate::sync::{AtomicBool, AtomicU64, Ordering};
    use std::sync::Arc;
    use trace_format::buffer::{BufferMode, Layout};

    const BYTES: usize = 2 << 20;
    const CHUNKS: u64 = BYTES as u64 / CHUNK_BYTES;

    /// The slabs of a buffer of this many chunks, how many are backed, and whether more can be.
    fn slabs() -> (Slabs, Arc<AtomicU64>, Arc<AtomicBool>) {
        let (backed, is_full) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (region, _words) = Region::on_heap(BYTES);
        let (counter, refuse) = (backed.clone(), is_full.clone());
        let region = region.with_backing(Box::new(move |_| {
            let is_refused = refuse.load(Ordering::Relaxed);
            counter.fetch_add(u64::from(!is_refused), Ordering::Relaxed);
            !is_refused
        }));
        let layout = Layout::new(BYTES as u64, BufferMode::Circular).unwrap();
        assert!(region.back_first(&layout));
        (Slabs::new(region, layout, WakeHandler::default()), backed, is_full)
    }

    /// What runs of the dispatcher back, that look as late as they can.
    fn serve(ahead: &Ahead, slabs: &Slabs, mut now: Instant) -> (u32, Instant) {
        let mut turns = 0;
        while let Some(pause) = ahead.service(slabs, now) {
            now += pause;
            turns += 1;
            if pause == RETRY_INTERVAL {
                break;
            }
        }
        (turns, now)
    }

    //= docs/buffer.md#memory
    #[test]
    fn an_idle_program_gets_all_of_its_memory_in_steps() {
        let (slabs, backed, _) = slabs();
        let first = backed.load(Ordering::Relaxed);
        // 160 KiB precede the first half, which begins in the third chunk, and the second in the eighteenth.
        assert_eq!(first, 4 + 2);
        let ahead = Ahead::default();
        let begin = Instant::now();
        assert_eq!(ahead.service(&slabs, begin), None, "before the start");
        ahead.begin();
        let rest = ahead.service(&slabs, begin).unwrap();
        assert!(rest >= REST && backed.load(Ordering::Relaxed) == first, "{rest:?}");
        let (turns, end) = serve(&ahead, &slabs, begin);
        assert_eq!(backed.load(Ordering::Relaxed), CHUNKS);
        assert!((5..=9).contains(&turns), "{turns}");
        assert!(end >= begin + REST + 3 * IDLE_INTERVAL);
        assert_eq!(ahead.service(&slabs, end), None);
    }

    //= docs/buffer.md#memory
    #[test]
    fn twice_as_much_as_was_given_out_is_backed_at_once() {
        let (slabs, backed, _) = slabs();
        let ahead = Ahead::default();
        ahead.begin();
        let now = Instant::now();
        let layout = *slabs.layout();
        let half = u64::from(layout.slabs_per_half);
        let mut given_out = 0;
        while given_out < half {
            given_out += 8;
            slabs.allocator.take(slabs.buffer(), 8, |_, _| ()).unwrap();
            let (mut pause, mut turns) = (Duration::ZERO, 0);
            while pause == Duration::ZERO {
                pause = ahead.service(&slabs, now).unwrap();
                turns += 1;
            }
            assert!(turns < 10 && pause <= REST);
            let wanted = (layout.rolling + 2 * 8 * given_out / 8 * layout.slab_bytes).min(BYTES as u64);
            assert!(slabs.buffer().backing().unwrap().is_backed(&(0..wanted)), "{given_out}");
        }
        assert_eq!(backed.load(Ordering::Relaxed), CHUNKS);
    }

    #[test]
    fn refused_memory_is_asked_for_once_a_second() {
        let (slabs, backed, is_full) = slabs();
        let ahead = Ahead::default();
        ahead.begin();
        is_full.store(true, Ordering::Relaxed);
        let (_, now) = serve(&ahead, &slabs, Instant::now());
        assert_eq!(backed.load(Ordering::Relaxed), 6);
        assert_eq!(ahead.service(&slabs, now), Some(RETRY_INTERVAL), "still none");
        is_full.store(false, Ordering::Relaxed);
        let wait = ahead.service(&slabs, now + RETRY_INTERVAL / 2);
        assert_eq!((wait, backed.load(Ordering::Relaxed)), (Some(RETRY_INTERVAL / 2), 6));
        assert_eq!(ahead.service(&slabs, now + RETRY_INTERVAL), None);
        assert_eq!(backed.load(Ordering::Relaxed), CHUNKS);
    }
}
