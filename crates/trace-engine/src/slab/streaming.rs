//! The dispatcher's part of streaming: halves go out when they are full and come back when they were saved.

use crate::buffer::HalfUsage;
use crate::slab::Slabs;
use crate::sync::Mutex;
use core::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a thread that is inside an event may hold a half up; then it keeps its slab, which is saved
/// later. Models have no time.
const PATIENCE: Duration = Duration::from_millis(if cfg!(modelled) { 3_600_000 } else { 10 });
/// The dispatcher looks at a running stream at most this often …
const MIN_POLL: Duration = Duration::from_micros(50);
/// … at least this often while it is not woken …
const MAX_POLL: Duration = Duration::from_millis(1);
/// … and this often, if nothing happens, while it is.
const IDLE_POLL: Duration = Duration::from_millis(100);

/// Wakes the dispatcher when half of a stream is full that was idle before. It is called by the thread that
/// finds it full, inside its event: it must not wait, allocate, or do what a signal handler may not.
#[derive(Clone, Default)]
pub struct WakeHandler(Option<Arc<dyn Fn() + Send + Sync>>);

impl WakeHandler {
    /// A handler that calls a function.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(wake)))
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn wake(&self) {
        if let Some(wake) = &self.0 {
            wake();
        }
    }
}

impl core::fmt::Debug for WakeHandler {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("WakeHandler")
    }
}

/// A half that is ready to be saved: what a SAVE_BUFFER packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveRequest {
    /// Number of the half, counted since the buffer was cleared.
    pub wrapped_count: u32,
    /// Bytes of durable data that the half may refer to.
    pub durable_bytes: u64,
}

/// What has to be done for a running stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// To be sent to the manager.
    pub save: Option<SaveRequest>,
    /// When to look again.
    pub poll_after: Duration,
}

/// The stream of halves: what was handed over so far.
#[derive(Debug, Default)]
pub(crate) struct Streaming {
    progress: Mutex<Progress>,
}

/// How far the stream of halves is.
#[derive(Debug, Default)]
struct Progress {
    /// The next half to be handed over.
    next: u64,
    outstanding: Option<SaveRequest>,
    /// Slabs that stayed with a thread when their half was handed over.
    left_behind: Vec<u32>,
    /// Those of them that came back before the half that is being saved was handed over: they are saved with
    /// it.
    coming_back: Vec<u32>,
    wants_flush: bool,
    /// When the dispatcher looked last, and the next ticket then.
    last_look: Option<(Instant, u64)>,
    /// How long it was to wait then.
    last_poll: Duration,
}

impl Streaming {
    /// Counts what is about to be cleared and was not saved. Halves count from 0 again.
    pub fn clear(&self, slabs: &Slabs) {
        let mut progress = self.progress.lock();
        slabs.count_cleared(progress.next, |slab| progress.is_left_behind(slab));
        *progress = Progress::default();
    }

    /// The wrapped count, and the halves whose ends the header does not have yet.
    pub fn unfinished_halves(&self, slabs: &Slabs) -> (u64, RangeInclusive<u64>) {
        let wrapped = slabs.last_half();
        // What was handed over has its end already: a flush may have come before it was full.
        let known = self.progress.lock().handed_over_halves();
        (wrapped, wrapped.saturating_sub(1).max(known)..=wrapped)
    }

    /// The half in use is to be handed over although it is not full.
    pub fn flush(&self) {
        self.progress.lock().wants_flush = true;
    }

    /// Hands the next half over if it is full or a flush was asked for, and no other half is being saved.
    //= docs/buffer.md#streaming
    pub fn service(&self, slabs: &Slabs) -> Service {
        let mut progress = self.progress.lock();
        let mut save = None;
        let slabs_per_half = slabs.layout().slabs_per_half;
        let longest = if slabs.wake.is_set() { IDLE_POLL } else { MAX_POLL };
        let poll_after = progress.poll_after(slabs.allocator.ticket(), slabs_per_half, longest);
        slabs.allocator.begin_watch();
        if progress.outstanding.is_none() {
            let may_sleep = poll_after > MAX_POLL;
            let half = progress.next;
            let wants_flush = std::mem::take(&mut progress.wants_flush);
            if slabs.is_due(half, may_sleep, wants_flush) {
                slabs.allocator.begin_watch();
                let claimed = slabs.allocator.skip_rest_of_half(half);
                // What is skipped was not written.
                progress.last_look = Some((Instant::now(), slabs.allocator.ticket()));
                save = Some(progress.hand_over(slabs, HalfUsage { half, claimed }));
            }
        }
        Service { save, poll_after }
    }

    /// Takes a saved half back. False if it is not the one that was handed over last.
    pub fn take_back(&self, slabs: &Slabs, saved: SaveRequest) -> bool {
        let mut progress = self.progress.lock();
        // How many durable bytes the manager has copied need not be said.
        let is_it = |asked: &SaveRequest| {
            asked.wrapped_count == saved.wrapped_count
                && [0, asked.durable_bytes].contains(&saved.durable_bytes)
        };
        if !progress.outstanding.as_ref().is_some_and(is_it) {
            return false;
        }
        progress.outstanding = None;
        let half = progress.next;
        progress.next += 1;
        for slab in std::mem::take(&mut progress.coming_back) {
            slabs.allocator.set_left_behind(slab, false);
        }
        slabs.buffer().begin_gaps(half + 3);
        slabs.allocator.release_half(half);
        true
    }
}

impl Progress {
    /// Halves that were handed over, saved or not.
    fn handed_over_halves(&self) -> u64 {
        self.next + u64::from(self.outstanding.is_some())
    }

    /// Whether a slab stayed with a thread when its half was handed over, and was not saved since.
    fn is_left_behind(&self, slab: u32) -> bool {
        self.left_behind.contains(&slab) || self.coming_back.contains(&slab)
    }

    /// When to look again: four times while half of the buffer fills, at the rate since the last look; where
    /// that falls, each interval is at most four times the one before.
    fn poll_after(&mut self, ticket: u64, slabs_per_half: u32, longest: Duration) -> Duration {
        let now = Instant::now();
        let wanted = match self.last_look.replace((now, ticket)) {
            None => MIN_POLL,
            Some((_, before)) if before == ticket => longest,
            Some((then, before)) => {
                // Not before: the buffer was cleared.
                let fraction = f64::from(slabs_per_half) / ticket.saturating_sub(before).max(1) as f64;
                (now - then).mul_f64(fraction.min(1e6) / 4.0)
            }
        };
        self.last_poll = wanted.min(self.last_poll * 4).clamp(MIN_POLL, longest);
        self.last_poll
    }

    fn hand_over(&mut self, slabs: &Slabs, usage: HalfUsage) -> SaveRequest {
        let half = usage.half;
        // Before the half is retired: a slab that comes back while this happens is for the next time.
        let (still_out, back) =
            std::mem::take(&mut self.left_behind).into_iter().partition(|slab| slabs.is_in_use(*slab));
        self.left_behind = still_out;
        self.coming_back = back;
        for slab in slabs.retire_half(half, PATIENCE) {
            slabs.allocator.set_left_behind(slab, true);
            if !self.left_behind.contains(&slab) {
                self.left_behind.push(slab);
            }
        }
        let buffer = slabs.buffer();
        // All definitions that the half's records use were committed before their threads were seen outside.
        let request = SaveRequest { wrapped_count: half as u32, durable_bytes: buffer.durable_bytes() };
        buffer.set_wrapped_count(half);
        buffer.set_data_end(usage);
        buffer.set_durable_end(request.durable_bytes);
        slabs.allocator.hand_over_half(half);
        self.outstanding = Some(request);
        request
    }
}

impl Slabs {
    /// The half of the last ticket.
    fn last_half(&self) -> u64 {
        let last = self.allocator.ticket().saturating_sub(1).max(self.allocator.half_start(0));
        self.allocator.half_of(last)
    }

    /// How much of a half was claimed so far.
    pub fn usage_of(&self, half: u64) -> HalfUsage {
        HalfUsage { half, claimed: self.allocator.claimed_in_half(half) }
    }

    /// Whether a half is to be handed over: it is full, or is to be flushed and not empty. If the dispatcher
    /// may sleep after this look, the thread that fills the half later wakes it.
    pub(crate) fn is_due(&self, half: u64, may_sleep: bool, wants_flush: bool) -> bool {
        if may_sleep {
            self.allocator.end_watch();
        }
        let claimed = self.allocator.claimed_in_half(half);
        claimed == u64::from(self.layout().slabs_per_half) || wants_flush && claimed > 0
    }
}
