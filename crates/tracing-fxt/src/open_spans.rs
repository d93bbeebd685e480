//! The open spans of a registry, by their ids: tables without locks.

use crate::span_data::SpanData;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Tables, each four times as large as the one before.
const TABLES: usize = 5;
/// Places of the first table.
const FIRST_SLOTS: usize = 1024;
/// Places that are tried in each table.
const TRIES: usize = 8;

#[derive(Debug, Default)]
struct Slot {
    /// The span's id; 0 in a free slot.
    id: AtomicU64,
    data: SpanData,
}

static SPANS: [OnceLock<Box<[Slot]>>; TABLES] = [const { OnceLock::new() }; TABLES];

#[inline]
fn slots(table: &[Slot], id: u64) -> impl Iterator<Item = &Slot> {
    let first = (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    (first..first + TRIES).map(move |slot| &table[slot & (table.len() - 1)])
}

/// The slot of an open span.
#[inline]
fn slot_of(id: u64) -> Option<&'static Slot> {
    // Most are in the first slot that is tried.
    let slot = slots(SPANS[0].get()?, id).next()?;
    if slot.id.load(Ordering::Acquire) == id { Some(slot) } else { slot_elsewhere(id) }
}

#[cold]
fn slot_elsewhere(id: u64) -> Option<&'static Slot> {
    let tables = SPANS.iter().map_while(OnceLock::get);
    tables.flat_map(|table| slots(table, id)).find(|slot| slot.id.load(Ordering::Acquire) == id)
}

/// The data of an open span. None if there was no slot for it.
#[inline]
pub fn find(id: u64) -> Option<&'static SpanData> {
    slot_of(id).map(|slot| &slot.data)
}

/// A span begins. None if there is no slot for it.
pub fn begin(id: u64, callsite: u32) -> Option<&'static SpanData> {
    for (number, table) in SPANS.iter().enumerate() {
        let table = table.get_or_init(|| (0..FIRST_SLOTS << (2 * number)).map(|_| Slot::default()).collect());
        for slot in slots(table, id) {
            // The id is given out to the program only when the data is complete.
            if slot.id.compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                slot.data.begin(callsite);
                slot.data.identify(id);
                return Some(&slot.data);
            }
        }
    }
    None
}

/// A span ends; what a function returns of its data.
pub fn end<R>(id: u64, call: impl FnOnce(&SpanData) -> R) -> Option<R> {
    let slot = slot_of(id)?;
    let result = call(&slot.data);
    slot.id.store(0, Ordering::Release);
    Some(result)
}

/// Calls a function with open spans: of so many slots, from one on. Returns where to go on; none at the end.
pub fn each(from: usize, count: usize, mut call: impl FnMut(u64, &SpanData)) -> Option<usize> {
    let slots = SPANS.iter().map_while(OnceLock::get).flatten();
    let mut looked_at = 0;
    for slot in slots.skip(from).take(count) {
        looked_at += 1;
        let id = slot.id.load(Ordering::Acquire);
        if id != 0 {
            call(id, &slot.data);
        }
    }
    (looked_at == count).then_some(from + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_found_until_they_end() {
        const SPANS: u64 = 20_000;
        let id = |number: u64| number << 20 | 1;
        for number in 0..SPANS {
            assert!(begin(id(number), number as u32).is_some(), "{number}");
        }
        for number in (0..SPANS).rev() {
            assert_eq!(find(id(number)).map(SpanData::callsite), Some(number as u32));
            assert_eq!(end(id(number), SpanData::callsite), Some(number as u32));
            assert!(find(id(number)).is_none() && end(id(number), |_| ()).is_none());
        }
    }
}
