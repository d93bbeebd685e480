//! Begins, steps and ends of flows that belong together, by their ids.
//!
//! Their threads and processes may have their parts of the file in any order, so an end may stand before its
//! begin, and a step behind both. Of flows that are over, only the id is kept.

use super::found::{EventPosition, Unmatched, What};
use std::collections::{HashMap, HashSet};
use trace_format::units::{Offset, ProviderId};

/// Flows that are over and still remembered.
const MAX_OVER: usize = 400_000;

/// A flow that is not over, or several with the same id.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    begins: u32,
    ends: u32,
    steps: u32,
    chosen_begins: Chosen,
    chosen_ends: Chosen,
    chosen_steps: Chosen,
}

/// Parts of one kind that are chosen.
#[derive(Clone, Copy, Debug, Default)]
struct Chosen {
    count: u32,
    /// Where the first of them is.
    provider: ProviderId,
    offset: Offset,
}

/// A part of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowPart {
    Begin,
    Step,
    End,
}

/// All flows.
#[derive(Debug, Default)]
pub(super) struct Flows {
    open: HashMap<u64, Open>,
    over: HashSet<u64>,
    /// Some flows that are over were forgotten, so that a step without a begin means nothing.
    is_over_full: bool,
}

impl Flows {
    /// How many are not over.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    pub fn part(&mut self, id: u64, part: FlowPart, place: EventPosition, is_chosen: bool) {
        if part == FlowPart::Step && !self.open.contains_key(&id) && self.over.contains(&id) {
            return;
        }
        let open = self.open.entry(id).or_default();
        let (count, chosen) = match part {
            FlowPart::Begin => (&mut open.begins, &mut open.chosen_begins),
            FlowPart::Step => (&mut open.steps, &mut open.chosen_steps),
            FlowPart::End => (&mut open.ends, &mut open.chosen_ends),
        };
        *count += 1;
        if is_chosen {
            if chosen.count == 0 {
                (chosen.provider, chosen.offset) = (place.provider, place.offset);
            }
            chosen.count += 1;
        }
        if open.begins == open.ends && open.begins > 0 {
            self.open.remove(&id);
            if self.over.len() < MAX_OVER {
                self.over.insert(id);
            } else {
                self.is_over_full = true;
            }
        }
    }

    /// Adds the parts of those that are not over.
    pub fn finish(&mut self, all: &mut Vec<Unmatched>) {
        for (id, open) in self.open.drain() {
            let Open { begins, ends, steps, chosen_begins, chosen_ends, chosen_steps } = open;
            let has_begin = begins > 0 || self.is_over_full || self.over.contains(&id);
            // A flow that has begun once may end in several places.
            let [more_ends, orphans] = [ends.saturating_sub(begins), steps];
            let [more_ends, orphans] = if has_begin { [0; 2] } else { [more_ends, orphans] };
            for (kind, count, chosen) in [
                ("unmatched-flow-begin", begins.saturating_sub(ends), chosen_begins),
                ("unmatched-flow-end", more_ends, chosen_ends),
                ("unmatched-flow-step", orphans, chosen_steps),
            ] {
                // Which of several with one id have no other part is not known.
                let Chosen { count: most, provider, offset } = chosen;
                let count = count.min(most);
                if count > 0 {
                    let place = EventPosition { offset, provider };
                    all.push(Unmatched { kind, count: count.into(), place, what: What::Id(id) });
                }
            }
        }
    }
}
