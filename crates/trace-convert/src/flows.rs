//! Numbers for flows where one number can be only one flow.
//!
//! An archive may use a flow's id again when the flow has ended, and each process may have its own; readers
//! of other formats take all that has one id for one flow.
//= docs/perfetto.md#flows

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use trace_format::event::EventKind;
use trace_format::units::Koid;
use trace_reader::Event;

/// What is remembered; then all is forgotten.
const MAX_REMEMBERED: usize = 500_000;

/// Flows of one id that are remembered.
const MAX_OF_ONE_ID: usize = 256;

/// A flow that has begun.
struct Begun {
    process: Koid,
    at: u64,
    number: u64,
}

#[derive(Default)]
pub(crate) struct Flows {
    /// By a hash of category, name and id, in the order of the file, which threads do not share.
    begun: HashMap<u64, Vec<Begun>>,
    used: HashSet<u64>,
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

impl Flows {
    /// The number of the flow that an event is part of; its id where that is still free.
    pub fn number(&mut self, event: &Event<'_>, id: u64) -> u64 {
        if self.used.len() >= MAX_REMEMBERED {
            *self = Self::default();
        }
        let key = hash((event.category.as_bytes(), event.name.as_bytes(), id));
        let (process, at) = (event.thread.process, event.time.nanos().0);
        if matches!(event.kind, EventKind::FlowBegin { .. }) {
            let mut number = id;
            while !self.used.insert(number) {
                // Of the number before, so that it is the same each time.
                number = hash(number);
            }
            let begun = self.begun.entry(key).or_default();
            if begun.len() == MAX_OF_ONE_ID {
                begun.remove(0);
            }
            begun.push(Begun { process, at, number });
            return number;
        }
        let before = |begun: &&Begun| begun.at <= at;
        let of_key = || self.begun.get(&key).into_iter().flatten().filter(before);
        // Its own process's flow, or the last of another one.
        let own = of_key().filter(|begun| begun.process == process).max_by_key(|begun| begun.at);
        own.or_else(|| of_key().max_by_key(|begun| begun.at)).map_or(id, |begun| begun.number)
    }
}
