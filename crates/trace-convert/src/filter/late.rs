//! Ends of what is out of order, which belong to begins in the order of times.
//= docs/check.md#order

use super::Selected;
use std::io::{self, Read};
use trace_format::event::EventKind;
use trace_model::{OperationKey, Pairing, token};
use trace_reader::item::Koid;
use trace_reader::sorter::{Sorter, words};
use trace_reader::{Disorder, Event, Item, Reader, ThreadNumbers};

/// Set in the first word of a part.
const IS_END: u64 = 1;
const IS_KEPT: u64 = 2;
const IS_OPERATION: u64 = 4;

/// Which of these ends are kept.
#[derive(Debug)]
pub struct LateEnds {
    disorder: Disorder,
    /// A bit for each, in the order of the file.
    kept: Vec<u64>,
    next: usize,
}

impl LateEnds {
    /// Reads an archive for them; none if everything is in order.
    pub fn find(input: impl Read, disorder: Disorder, selected: &mut Selected) -> io::Result<Option<Self>> {
        if disorder.has_parts_in_order() {
            return Ok(None);
        }
        let (mut parts, mut numbers, mut ends) = (Sorter::default(), ThreadNumbers::default(), 0);
        let mut reader = Reader::new(input).map_err(io::Error::other)?;
        // An error that comes later is found when the records are written.
        while let Ok(Some(record)) = reader.next_item() {
            let Item::Event(event) = &record.item else { continue };
            let Some((is_end, id)) = part(event).filter(|(_, id)| is_late(&disorder, event, *id)) else {
                continue;
            };
            let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
            let flags = flag(is_end, IS_END)
                | flag(selected.keeps_itself(event), IS_KEPT)
                | flag(id.is_some(), IS_OPERATION);
            let what = match id {
                Some(id) => {
                    let OperationKey { process, category, id } = OperationKey::of(event, id);
                    [process.0, category, id, token(event.name)]
                }
                None => match numbers.number(event.thread, super::MAX_THREADS) {
                    Some(thread) => [thread as u64, 0, 0, 0],
                    None => [super::MAX_THREADS as u64, 0, 0, 0],
                },
            };
            let [a, b, c, d] = what;
            parts.push(event.time.nanos().0, [flags, ends, a, b, c, d].map(u64::to_le_bytes).as_flattened());
            ends += u64::from(is_end);
        }
        let mut kept = vec![0_u64; (ends / 64) as usize + 1];
        let mut pairing = Pairing::default();
        parts.finish(|part| {
            let ([flags, number, a, b, c, d], _) = words(part)?;
            let is_kept = flags & IS_KEPT != 0;
            let key = OperationKey { process: Koid(a), category: b, id: c };
            let ended = match (flags & IS_END != 0, flags & IS_OPERATION != 0) {
                (false, true) => {
                    pairing.begin_operation(&key, d, is_kept);
                    return Ok(());
                }
                (false, false) => {
                    pairing.begin(a as usize, is_kept);
                    return Ok(());
                }
                (true, true) => pairing.end_operation(&key, d),
                (true, false) => pairing.end(a as usize),
            };
            if ended.begun().unwrap_or(is_kept) {
                kept[(number / 64) as usize] |= 1 << (number % 64);
            }
            Ok(())
        })?;
        Ok(Some(Self { disorder, kept, next: 0 }))
    }

    /// Whether an event is kept, if it is such an end. Takes each event, in the order of the archive.
    pub fn keeps(&mut self, event: &Event<'_>) -> Option<bool> {
        let (_, id) = part(event).filter(|(is_end, _)| *is_end)?;
        if !is_late(&self.disorder, event, id) {
            return None;
        }
        let place = self.next;
        self.next += 1;
        self.kept.get(place / 64).map(|bits| bits >> (place % 64) & 1 != 0)
    }
}

/// Whether an event ends something, and the id of its operation; none of an event without a counterpart.
fn part(event: &Event<'_>) -> Option<(bool, Option<u64>)> {
    match event.kind {
        EventKind::DurationBegin if event.ending().is_some() => None,
        EventKind::DurationBegin => Some((false, None)),
        EventKind::DurationEnd => Some((true, None)),
        EventKind::AsyncBegin { id } => Some((false, Some(id))),
        EventKind::AsyncEnd { id } => Some((true, Some(id))),
        _ => None,
    }
}

fn is_late(disorder: &Disorder, event: &Event<'_>, id: Option<u64>) -> bool {
    match id {
        Some(id) => disorder.has_operation(trace_reader::OperationKey::new(event.category, id)),
        None => disorder.has_thread(event.thread),
    }
}
