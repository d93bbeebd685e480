//! The spans of the subscriber that has no registry: slots that are used again and again.

use crate::span_data::SpanData;
use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;

/// Slots are made by the block.
const BLOCK_SLOTS: u32 = 256;
const BLOCKS: usize = 1024;
const MAX_SLOTS: u32 = BLOCK_SLOTS * BLOCKS as u32;
/// Free slots that a thread keeps for itself.
const MAX_KEPT: usize = 64;
/// Distinguishes ids of slots from 0.
const ID: u64 = 1 << 63;
const NUMBER_BITS: u32 = 24;
const GENERATIONS: u64 = 0x7fff_ffff;
/// Distinguishes ids of spans that have no slot, but the number of their callsite.
const WITHOUT_SLOT: u64 = 1 << 62;

/// A span, or none.
#[derive(Debug, Default)]
struct Slot {
    /// Generation in the upper half, references in the lower.
    state: AtomicU64,
    /// The next free slot, counted from 1.
    next: AtomicU32,
    data: SpanData,
}

static SLOTS: [OnceLock<Box<[Slot]>>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];
/// Slots that were never used begin here.
static UNUSED: AtomicU32 = AtomicU32::new(0);
/// Free slots that no thread keeps: the first one, counted from 1, below a number that changes each time.
static FREE: AtomicU64 = AtomicU64::new(0);

/// Free slots of a thread, which it gives back when it ends.
struct Kept(Vec<u32>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.drain(..).for_each(push_free);
    }
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

fn slot(number: u32) -> Option<&'static Slot> {
    let block = SLOTS.get((number / BLOCK_SLOTS) as usize)?.get()?;
    block.get((number % BLOCK_SLOTS) as usize)
}

/// The slot of an id, if that is still its span.
#[inline]
fn slot_of(id: u64) -> Option<&'static Slot> {
    if id & WITHOUT_SLOT != 0 {
        return None;
    }
    let slot = slot(id as u32 & ((1 << NUMBER_BITS) - 1))?;
    let state = slot.state.load(Ordering::Acquire);
    (state >> 32 == id >> NUMBER_BITS & GENERATIONS && state as u32 > 0).then_some(slot)
}

fn push_free(number: u32) {
    let Some(slot) = slot(number) else {
        return;
    };
    let mut first = FREE.load(Ordering::Relaxed);
    loop {
        slot.next.store(first as u32, Ordering::Relaxed);
        let new = (first >> 32).wrapping_add(1) << 32 | u64::from(number + 1);
        // Release: what the slot's next is was stored before.
        match FREE.compare_exchange_weak(first, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

fn pop_free() -> Option<u32> {
    let mut first = FREE.load(Ordering::Acquire);
    loop {
        let number = (first as u32).checked_sub(1)?;
        let next = slot(number)?.next.load(Ordering::Relaxed);
        // Another thread that takes this slot and gives it back changes the upper half.
        let new = (first >> 32).wrapping_add(1) << 32 | u64::from(next);
        match FREE.compare_exchange_weak(first, new, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => return Some(number),
            Err(now) => first = now,
        }
    }
}

fn pop_unused() -> Option<u32> {
    let take = |unused| (unused < MAX_SLOTS).then_some(unused + 1);
    let number = UNUSED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
    let block = &SLOTS[(number / BLOCK_SLOTS) as usize];
    block.get_or_init(|| (0..BLOCK_SLOTS).map(|_| Slot::default()).collect());
    Some(number)
}

/// A span begins, with one reference. None if there are too many.
pub fn begin(callsite: u32) -> Option<(u64, &'static SpanData)> {
    let kept = KEPT.try_with(|kept| kept.try_borrow_mut().ok()?.0.pop()).ok().flatten();
    let number = kept.or_else(pop_free).or_else(pop_unused)?;
    let slot = slot(number)?;
    slot.data.begin(callsite);
    let generation = slot.state.load(Ordering::Relaxed) >> 32;
    slot.state.store(generation << 32 | 1, Ordering::Release);
    Some((ID | generation << NUMBER_BITS | u64::from(number), &slot.data))
}

/// The id of a span for which there is no slot. It has no data, and shares the id with others.
pub const fn without_slot(callsite: u32) -> u64 {
    ID | WITHOUT_SLOT | callsite as u64
}

/// The number of an open span's callsite.
#[inline]
pub fn callsite_of(id: u64) -> Option<u32> {
    if id & WITHOUT_SLOT != 0 {
        return Some(id as u32);
    }
    find(id).map(SpanData::callsite)
}

/// The data of an open span.
#[inline]
pub fn find(id: u64) -> Option<&'static SpanData> {
    slot_of(id).map(|slot| &slot.data)
}

/// One more reference.
pub fn reference(id: u64) {
    if let Some(slot) = slot_of(id) {
        slot.state.fetch_add(1, Ordering::Relaxed);
    }
}

/// One reference less. With the last one the span ends: then its data, which `end` is called with.
pub fn release(id: u64, end: impl FnOnce(&SpanData)) -> bool {
    let Some(slot) = slot_of(id) else {
        return false;
    };
    if slot.state.fetch_sub(1, Ordering::AcqRel) as u32 != 1 {
        return false;
    }
    end(&slot.data);
    let generation = (slot.state.load(Ordering::Relaxed) >> 32).wrapping_add(1) & GENERATIONS;
    slot.state.store(generation << 32, Ordering::Release);
    let number = id as u32 & ((1 << NUMBER_BITS) - 1);
    let is_kept = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        (kept.0.len() < MAX_KEPT).then(|| kept.0.push(number))
    });
    if !matches!(is_kept, Ok(Some(()))) {
        push_free(number);
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
        assert_eq!((callsite_of(id), find(id).is_some()), (Some(u32::MAX), false));
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
                numbers.insert(id as u32 & ((1 << NUMBER_BITS) - 1));
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
