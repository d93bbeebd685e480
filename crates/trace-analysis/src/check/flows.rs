//! Begins, steps and ends of flows that belong together, by their ids.
//!
//! Their threads and processes may have their parts of the file in any order, so an end may stand before its
//! begin, and a step behind both. Of flows that are over, only the id is kept.

use super::found::{EventPosition, Unmatched, What};
use std::collections::{HashMap, HashSet};

/// Flows that are over and still remembered.
const MAX_OVER: usize = 400_000;

/// A flow that is not over, or several with the same id.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    begins: u32,
    ends: u32,
    steps: u32,
    first_begin: Option<EventPosition>,
    first_end: Option<EventPosition>,
    first_step: Option<EventPosition>,
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

    pub fn part(&mut self, id: u64, part: FlowPart, place: EventPosition) {
        if part == FlowPart::Step && !self.open.contains_key(&id) && self.over.contains(&id) {
            return;
        }
        let open = self.open.entry(id).or_default();
        let (count, first) = match part {
            FlowPart::Begin => (&mut open.begins, &mut open.first_begin),
            FlowPart::Step => (&mut open.steps, &mut open.first_step),
            FlowPart::End => (&mut open.ends, &mut open.first_end),
        };
        *count += 1;
        first.get_or_insert(place);
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
            let Open { begins, ends, steps, first_begin, first_end, first_step } = open;
            let has_begin = begins > 0 || self.is_over_full || self.over.contains(&id);
            // A flow that has begun once may end in several places.
            let [more_ends, orphans] = [ends.saturating_sub(begins), steps];
            let [more_ends, orphans] = if has_begin { [0; 2] } else { [more_ends, orphans] };
            for (kind, count, place) in [
                ("unmatched-flow-begin", begins.saturating_sub(ends), first_begin),
                ("unmatched-flow-end", more_ends, first_end),
                ("unmatched-flow-step", orphans, first_step),
            ] {
                if let (1.., Some(place)) = (count, place) {
                    all.push(Unmatched { kind, count: count.into(), place, what: What::Id(id) });
                }
            }
        }
    }
}
