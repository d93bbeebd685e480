//! The dispatcher's part of streaming: halves go out when they are full and come back when they were saved.

use crate::session::context::Context;
use crate::slab::retirement::retire_half;
use crate::sync::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace_format::buffer::field;

/// How long a thread that is inside an event may hold a half up; then it keeps its slab, which is saved
/// later.
const PATIENCE: Duration = Duration::from_millis(10);
/// The dispatcher looks at a running stream at most this often …
const MIN_POLL: Duration = Duration::from_micros(50);
/// … at least this often while it is not woken …
const MAX_POLL: Duration = Duration::from_millis(1);
/// … and this often, if nothing happens, while it is.
const IDLE_POLL: Duration = Duration::from_millis(100);

/// Who is woken when half of a stream is full that was idle before, by the thread that finds it so, inside
/// its event: it must not wait, allocate, or do what a signal handler may not.
#[derive(Clone, Default)]
pub struct WakeHandler(Option<Arc<dyn Fn() + Send + Sync>>);

impl WakeHandler {
    /// A handler that calls a function.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(wake)))
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

/// How far the stream of halves is.
#[derive(Debug, Default)]
pub(crate) struct Streaming {
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
    /// The buffer was cleared: halves count from 0 again.
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// Halves that were handed over, saved or not.
    pub fn handed_over_halves(&self) -> u64 {
        self.next + u64::from(self.outstanding.is_some())
    }

    /// Halves that were saved.
    pub fn saved_halves(&self) -> u64 {
        self.next
    }

    /// Whether a slab stayed with a thread when its half was handed over, and was not saved since.
    pub fn is_left_behind(&self, slab: u32) -> bool {
        self.left_behind.contains(&slab) || self.coming_back.contains(&slab)
    }

    /// The half in use is to be handed over although it is not full.
    pub fn flush(&mut self) {
        self.wants_flush = true;
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
}

impl Context {
    /// Hands the next half over if it is full or a flush was asked for, and no other half is being saved.
    //= docs/buffer.md#streaming
    pub fn service(&self) -> Service {
        let mut streaming = self.streaming.lock();
        let mut save = None;
        let slabs_per_half = self.layout.slabs_per_half;
        let longest = if self.config.wake.0.is_some() { IDLE_POLL } else { MAX_POLL };
        let poll_after = streaming.poll_after(self.claims.ticket(), slabs_per_half, longest);
        self.claims.begin_watch();
        if streaming.outstanding.is_none() {
            if poll_after > MAX_POLL {
                self.claims.end_watch();
            }
            let half = streaming.next;
            let claimed = self.claims.claimed_in_half(half);
            let is_full = claimed == u64::from(slabs_per_half);
            let is_flushed = std::mem::take(&mut streaming.wants_flush) && claimed > 0;
            if is_full || is_flushed {
                self.claims.begin_watch();
                let claimed = self.claims.skip_rest_of_half(half);
                // What is skipped was not written.
                streaming.last_look = Some((Instant::now(), self.claims.ticket()));
                save = Some(self.hand_over(&mut streaming, half, claimed));
            }
        }
        Service { save, poll_after }
    }

    /// Wakes the dispatcher if it sleeps and a half is full. For threads that have taken tickets.
    pub fn wake_dispatcher(&self) {
        if let WakeHandler(Some(wake)) = &self.config.wake
            && self.claims.is_wake_due()
        {
            wake();
        }
    }

    fn hand_over(&self, streaming: &mut Streaming, half: u64, claimed: u64) -> SaveRequest {
        // Before the half is retired: a slab that comes back while this happens is for the next time.
        let (still_out, back) =
            std::mem::take(&mut streaming.left_behind).into_iter().partition(|slab| self.is_in_use(*slab));
        streaming.left_behind = still_out;
        streaming.coming_back = back;
        for slab in retire_half(self, half, PATIENCE) {
            self.claims.set_left_behind(slab, true);
            if !streaming.left_behind.contains(&slab) {
                streaming.left_behind.push(slab);
            }
        }
        // All definitions that the half's records use were committed before their threads were seen outside.
        let request = SaveRequest { wrapped_count: half as u32, durable_bytes: self.durable_bytes() };
        self.set_wrapped_count(half);
        self.set_data_end(half, claimed);
        self.header(field::DURABLE_DATA_END).store(request.durable_bytes, Ordering::Release);
        self.claims.hand_over_half(half);
        streaming.outstanding = Some(request);
        request
    }

    /// Takes a saved half back. False if it is not the one that was handed over last.
    pub fn take_back(&self, saved: SaveRequest) -> bool {
        let mut streaming = self.streaming.lock();
        if streaming.outstanding != Some(saved) {
            return false;
        }
        streaming.outstanding = None;
        let half = streaming.next;
        streaming.next += 1;
        for slab in std::mem::take(&mut streaming.coming_back) {
            self.claims.set_left_behind(slab, false);
        }
        self.begin_gaps(half + 3);
        self.claims.release_half(half);
        true
    }
}
