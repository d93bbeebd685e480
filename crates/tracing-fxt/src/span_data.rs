//! What is kept of an open span, for any thread to read: its callsite and its fields.

use crate::fields::count_dropped;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use trace_engine::{ArgumentBuffer, ThreadMoment, engine};

/// Words of the span's own fields.
const FIELD_WORDS: usize = 20;
/// Words of fields that are recorded later.
const LATE_WORDS: usize = 8;
const WORD: usize = size_of::<u64>();
/// Of what stands for a span that has ended, and of what stands for an id.
const CLOSED: u64 = u64::MAX;
const TAG: u64 = 0xffff_ffff << 32;

/// How many ticks a span is young.
static YOUNG: AtomicU64 = AtomicU64::new(0);

/// For so many ticks after it was entered first, a span that is not closed is no operation for that reason.
pub fn set_young(ticks: u64) {
    YOUNG.store(ticks, Ordering::Relaxed);
}

/// What stands for an id; another one that had its slot has another.
const fn tag(id: u64) -> u64 {
    id.wrapping_mul(0x9e37_79b9_7f4a_7c15) & TAG & !(1 << 63)
}

/// Data of one span. A thread that finds it in use by another one goes without: what it would have stored is
/// counted.
#[derive(Debug, Default)]
pub struct SpanData {
    /// The callsite's number.
    callsite: AtomicU32,
    is_busy: AtomicBool,
    /// The flow that ends when the span is entered; 0 without one.
    flow: AtomicU64,
    /// Where the span comes from: the thread of its parent, and a moment of that thread; thread 0 for none.
    origin: Moment,
    /// The thread that is in the span.
    inside: Moment,
    /// Where the span was entered first; thread 0 before that, and a thread that there is not in a span that
    /// is an operation from its creation on.
    first: Moment,
    /// In the upper half what stands for the span's id, in the lower one the epoch in which the begin of its
    /// operation was written; 0 if it was not, [`CLOSED`] once the span has ended.
    operation: AtomicU64,
    /// The id of the operation in which it was created; 0 without one.
    parent: AtomicU64,
    fields: Words<FIELD_WORDS>,
    late: Words<LATE_WORDS>,
}

/// A thread and a moment of the present recording. They may be of two threads where one is stored while
/// another thread looks.
#[derive(Debug, Default)]
struct Moment {
    thread: AtomicU32,
    /// The recording's number: moments of earlier ones are none of this.
    epoch: AtomicU32,
    at: AtomicU64,
}

impl Moment {
    #[inline]
    fn store(&self, moment: ThreadMoment) {
        self.store_in(engine::epoch(), moment);
    }

    /// The same, in the recording with this number.
    #[inline]
    fn store_in(&self, epoch: u32, moment: ThreadMoment) {
        self.at.store(moment.at, Ordering::Relaxed);
        self.epoch.store(epoch, Ordering::Relaxed);
        self.thread.store(moment.thread, Ordering::Release);
    }

    #[inline]
    fn load(&self) -> Option<ThreadMoment> {
        let thread = self.thread.load(Ordering::Acquire);
        let is_present = thread != 0 && self.epoch.load(Ordering::Relaxed) == engine::epoch();
        is_present.then(|| ThreadMoment { thread, at: self.at.load(Ordering::Relaxed) })
    }

    #[inline]
    fn clear(&self) {
        self.thread.store(0, Ordering::Relaxed);
    }

    #[inline]
    fn is_clear(&self) -> bool {
        self.thread.load(Ordering::Relaxed) == 0
    }
}

/// Arguments, as words that another thread may look at.
#[derive(Debug)]
struct Words<const N: usize> {
    used: AtomicU32,
    words: [AtomicU64; N],
}

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Self { used: AtomicU32::new(0), words: [const { AtomicU64::new(0) }; N] }
    }
}

impl<const N: usize> Words<N> {
    fn is_empty(&self) -> bool {
        self.used.load(Ordering::Relaxed) == 0
    }

    fn clear(&self) {
        self.used.store(0, Ordering::Relaxed);
    }

    /// Adds as many of the arguments as fit; the number of others.
    fn add(&self, arguments: &ArgumentBuffer) -> usize {
        let mut used = self.used.load(Ordering::Relaxed) as usize;
        let mut dropped = 0;
        for argument in arguments.each() {
            let words = argument.chunks_exact(WORD);
            let Some(room) = self.words.get(used..used + words.len()) else {
                dropped += 1;
                continue;
            };
            for (place, word) in room.iter().zip(words) {
                place.store(u64::from_le_bytes(word.try_into().expect("a word")), Ordering::Relaxed);
            }
            used += room.len();
        }
        self.used.store(used as u32, Ordering::Relaxed);
        dropped
    }

    fn restore(&self, arguments: &mut ArgumentBuffer) {
        let used = (self.used.load(Ordering::Relaxed) as usize).min(N);
        let mut bytes = [[0; WORD]; N];
        for (to, from) in bytes.iter_mut().zip(&self.words[..used]) {
            *to = from.load(Ordering::Relaxed).to_le_bytes();
        }
        arguments.restore(bytes[..used].as_flattened());
    }
}

impl SpanData {
    /// A span begins.
    pub fn begin(&self, callsite: u32) {
        self.callsite.store(callsite, Ordering::Relaxed);
        self.flow.store(0, Ordering::Relaxed);
        self.origin.clear();
        self.inside.clear();
        self.first.clear();
        self.parent.store(0, Ordering::Relaxed);
        self.fields.clear();
        self.late.clear();
    }

    /// The span has this id. It is not known to another thread yet, and what is kept of the operation of the
    /// one before has another id.
    pub fn identify(&self, id: u64) {
        self.operation.store(tag(id), Ordering::Relaxed);
    }

    /// The span was created in the operation with this id.
    pub fn set_parent(&self, operation: u64) {
        self.parent.store(operation, Ordering::Relaxed);
    }

    /// The id of the operation in which it was created.
    pub fn parent(&self) -> Option<u64> {
        Some(self.parent.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Whether no thread was in it yet, and it is no operation from its creation on.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.first.is_clear()
    }

    /// The calling thread enters the span, as the first one.
    #[inline]
    pub fn enter_first(&self) {
        let (epoch, moment) = (engine::epoch(), ThreadMoment::last());
        self.first.store_in(epoch, moment);
        self.inside.store_in(epoch, moment);
    }

    /// It is an operation from its creation on.
    pub fn begin_life(&self) {
        self.first.thread.store(u32::MAX, Ordering::Relaxed);
    }

    /// Where it was entered first, if that was in the present recording.
    pub fn first(&self) -> Option<ThreadMoment> {
        self.first.load()
    }

    /// Whether it was entered and left, and has not been an operation in this recording.
    pub fn is_waiting(&self) -> bool {
        !self.is_operation() && self.inside.is_clear() && self.first.load().is_some()
    }

    /// Whether it is an operation of the present recording.
    pub fn is_operation(&self) -> bool {
        let known = self.operation.load(Ordering::Relaxed);
        known != CLOSED && known as u32 == engine::epoch()
    }

    /// The span with this id becomes an operation: true for the only caller in this recording that has to
    /// write its begin. False if it has ended.
    pub fn claim_operation(&self, id: u64) -> bool {
        let known = self.operation.load(Ordering::Relaxed);
        let new = tag(id) | u64::from(engine::epoch());
        let is_for = known & TAG == tag(id) && known != CLOSED && known != new;
        is_for && self.operation.compare_exchange(known, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The span ends. Whether it is an operation of the present recording.
    #[inline]
    pub fn close(&self) -> bool {
        // Who could claim it now is the provider's thread, which looks at spans that are older.
        let age = ThreadMoment::last().at.wrapping_sub(self.first.at.load(Ordering::Relaxed));
        let known = match age < YOUNG.load(Ordering::Relaxed) {
            true => self.operation.load(Ordering::Relaxed),
            false => self.operation.swap(CLOSED, Ordering::AcqRel),
        };
        known as u32 != 0 && known != CLOSED && known as u32 == engine::epoch()
    }
    /// The number of its callsite.
    pub fn callsite(&self) -> u32 {
        self.callsite.load(Ordering::Relaxed)
    }

    /// The span comes from the thread of its parent.
    pub fn come_from(&self, origin: ThreadMoment) {
        self.origin.store(origin);
    }

    /// Where the span comes from, once.
    #[inline]
    pub fn take_origin(&self) -> Option<ThreadMoment> {
        if self.origin.is_clear() {
            return None;
        }
        let origin = self.origin.load();
        self.origin.clear();
        origin
    }

    /// The calling thread enters the span.
    #[inline]
    pub fn enter(&self) {
        self.inside.store(ThreadMoment::last());
    }

    /// A thread leaves the span.
    #[inline]
    pub fn exit(&self) {
        self.inside.clear();
    }

    /// The thread that is in the span, at the moment at which it has entered it.
    pub fn inside(&self) -> Option<ThreadMoment> {
        self.inside.load()
    }

    /// A flow ends when the span is entered.
    pub fn expect_flow(&self, id: u64) {
        self.flow.store(id, Ordering::Relaxed);
    }

    /// The flow that ends now.
    #[inline]
    pub fn take_flow(&self) -> Option<u64> {
        let is_expected = self.flow.load(Ordering::Relaxed) != 0;
        is_expected.then(|| self.flow.swap(0, Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Stores the span's own fields.
    pub fn store_fields(&self, arguments: &ArgumentBuffer) {
        let dropped = self.in_turn(|| self.fields.add(arguments));
        report(dropped, arguments);
    }

    /// Stores fields that are recorded later.
    pub fn store_late(&self, arguments: &ArgumentBuffer) {
        let dropped = self.in_turn(|| self.late.add(arguments));
        report(dropped, arguments);
    }

    /// Whether it has fields of its own.
    #[inline]
    pub fn has_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    /// Whether fields were recorded later, and no end has had them yet.
    #[inline]
    pub fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Adds the span's own fields to the arguments.
    pub fn fields(&self, arguments: &mut ArgumentBuffer) {
        let _ = self.in_turn(|| self.fields.restore(arguments));
    }

    /// Adds the fields that were recorded later, which the next end does not have again.
    pub fn take_late(&self, arguments: &mut ArgumentBuffer) {
        let _ = self.in_turn(|| {
            self.late.restore(arguments);
            self.late.clear();
        });
    }

    /// Calls a function unless another thread has the data at this moment.
    fn in_turn<R>(&self, call: impl FnOnce() -> R) -> Option<R> {
        if self.is_busy.swap(true, Ordering::Acquire) {
            return None;
        }
        let result = call();
        self.is_busy.store(false, Ordering::Release);
        Some(result)
    }
}

/// Counts what was not stored.
fn report(dropped: Option<usize>, arguments: &ArgumentBuffer) {
    match dropped {
        Some(0) => {}
        Some(dropped) => count_dropped(dropped),
        None => count_dropped(arguments.count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use trace_engine::{BufferMode, Config, Disposition, Region};

    /// An arrow does not begin before the recording.
    #[test]
    fn moments_are_those_of_the_present_recording() {
        let (region, _words) = Region::on_heap(1 << 20);
        let engine = engine::initialize(region, BufferMode::Oneshot, Config::new(1, "test", 1)).unwrap();
        engine.start(Disposition::Retain, &[]).unwrap();
        let (span, other) = (SpanData::default(), SpanData::default());
        let moment = ThreadMoment { thread: 7, at: 100 };
        span.come_from(moment);
        assert_eq!(span.take_origin(), Some(moment));
        assert_eq!(span.take_origin(), None, "it is taken once");
        span.come_from(moment);
        other.inside.store(moment);
        assert_eq!(other.inside(), Some(moment));
        engine.stop(Instant::now() + Duration::from_secs(10)).unwrap();
        engine.start(Disposition::Retain, &[]).unwrap();
        assert_eq!((span.take_origin(), other.inside()), (None, None), "of the recording before");
        engine.terminate(Instant::now() + Duration::from_secs(10)).unwrap();
    }
}
