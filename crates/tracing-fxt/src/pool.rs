//! The spans of the subscriber that has no registry: slots that are used again and again.

mod slots;

use crate::span_data::SpanData;
use crate::sync::{AtomicU32, AtomicU64};
use core::cell::RefCell;
use slots::{ID, Slots, WITHOUT_SLOT};

/// Free slots that a thread keeps for itself.
const MAX_KEPT: usize = 64;

static SLOTS: Slots<SpanData, 1024, 256> = Slots::new(AtomicU32::new(0), AtomicU64::new(0));

/// Free slots of a thread, which it gives back when it ends.
struct Kept(Vec<u32>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|number| SLOTS.give_back(number));
    }
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

/// A span begins, with one reference. None if there are too many.
#[inline]
pub fn begin(callsite: u32) -> Option<(u64, &'static SpanData)> {
    let kept = KEPT.try_with(|kept| kept.try_borrow_mut().ok()?.0.pop()).ok().flatten();
    let number = kept.or_else(|| SLOTS.take())?;
    let begun = SLOTS.begin(number, |data| data.begin(callsite));
    begun.inspect(|(id, data)| data.identify(*id))
}

/// Calls a function with open spans: of so many slots, from one on. Returns where to go on; none at the end.
pub fn each(from: usize, count: usize, mut call: impl FnMut(u64, &SpanData)) -> Option<usize> {
    let until = (from + count).min(SLOTS.used());
    for number in from..until {
        if let Some((id, data)) = SLOTS.open(number as u32) {
            call(id, data);
        }
    }
    (until < SLOTS.used()).then_some(until)
}

/// The id of a span for which there is no slot. It has no data, and shares the id with others.
pub const fn without_slot(callsite: u32) -> u64 {
    ID | WITHOUT_SLOT | callsite as u64
}

/// An open span: the number of its callsite, and its data if it has a slot.
#[inline]
pub fn look_up(id: u64) -> Option<(u32, Option<&'static SpanData>)> {
    if id & WITHOUT_SLOT != 0 {
        return Some((id as u32, None));
    }
    find(id).map(|data| (data.callsite(), Some(data)))
}

/// The data of an open span.
#[inline]
pub fn find(id: u64) -> Option<&'static SpanData> {
    SLOTS.find(id)
}

/// One more reference.
pub fn reference(id: u64) {
    SLOTS.reference(id);
}

/// One reference less. With the last one the span ends: then its data, which `end` is called with.
#[inline]
pub fn release(id: u64, end: impl FnOnce(&SpanData)) -> bool {
    let Some(number) = SLOTS.release(id, end) else {
        return false;
    };
    let is_kept = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        (kept.0.len() < MAX_KEPT).then(|| kept.0.push(number))
    });
    if !matches!(is_kept, Ok(Some(()))) {
        SLOTS.give_back(number);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_span_without_a_slot_has_its_callsite() {
        let id = without_slot(u32::MAX);
        assert_eq!(look_up(id).map(|(callsite, data)| (callsite, data.is_some())), Some((u32::MAX, false)));
        reference(id);
        assert!(!release(id, |_| panic!("it has no data")));
    }

    /// Spans that one thread begins and another ends are never one, and slots come back.
    #[test]
    fn slots_belong_to_one_span_at_a_time() {
        const SPANS: usize = 20_000;
        let (sender, receiver) = std::sync::mpsc::sync_channel::<u64>(500);
        let ender = std::thread::spawn(move || {
            let mut numbers = BTreeSet::new();
            for id in receiver {
                let data = find(id).expect("it is open");
                assert_eq!(u64::from(data.callsite()), id & 0xff, "another span has the slot");
                assert!(!release(id, |_| ()) && release(id, |_| ()), "it has two references");
                assert!(find(id).is_none() && !release(id, |_| ()), "it has ended");
                numbers.insert(slots::number_of(id));
            }
            numbers.len()
        });
        for _ in 0..SPANS {
            let (id, data) = begin(0).expect("there is room");
            data.begin((id & 0xff) as u32);
            reference(id);
            sender.send(id).expect("the other thread runs");
        }
        drop(sender);
        let used = ender.join().expect("no panic");
        assert!(used < 1000, "{used} slots for 500 open spans");
    }
}
