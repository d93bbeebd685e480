//! Unique numbers for flows.
//!
//! An archive may reuse a flow's id when the flow has ended, and each process may have its own; readers of
//! other formats take all parts with one id for one flow.
//= docs/perfetto.md#flows

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use trace_format::event::EventKind;
use trace_reader::{Event, Text, Thread, Time};

/// Maximum number of remembered flows; beyond it, all are forgotten.
const MAX_REMEMBERED: usize = 500_000;

/// The same for the sum of their names' bytes.
const MAX_NAMES_BYTES: usize = 8 << 20;

/// Maximum number of remembered flows with the same id.
const MAX_OF_ONE_ID: usize = 256;

/// A flow that has begun.
struct Begun {
    begin: Begin,
    /// The begin or the last step, from which its arrows come.
    last: Begin,
    names: Arc<Names>,
    number: u64,
    has_ended: bool,
}

/// Category and name of a flow's begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Names {
    category: Box<[u8]>,
    name: Box<[u8]>,
}

impl Names {
    fn are(&self, event: &Event<'_>) -> bool {
        *self.category == *event.category.as_bytes() && *self.name == *event.name.as_bytes()
    }

    pub fn category(&self) -> Text<'_> {
        Text(&self.category)
    }

    pub fn name(&self) -> Text<'_> {
        Text(&self.name)
    }
}

/// The position and time of a flow's begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    pub thread: Thread,
    pub time: Time,
}

/// The part of a flow that an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The flow's number.
    pub number: u64,
    /// The flow began under other names: readers of other formats join parts by name.
    pub names: Option<Arc<Names>>,
    /// The flow has ended before: this end is another arrow from its begin or its last step, where a flow
    /// with this number has to begin, too.
    pub again: Option<Begin>,
}

impl Part {
    /// Category and name of the flow that an event is a part of.
    pub fn named<'a>(&'a self, event: &Event<'a>) -> (Text<'a>, Text<'a>) {
        match self.names.as_deref() {
            Some(names) => (names.category(), names.name()),
            None => (event.category, event.name),
        }
    }
}

#[derive(Default)]
pub(crate) struct Flows {
    /// By id, in the order of the file, which threads do not share.
    begun: HashMap<u64, Vec<Begun>>,
    used: HashSet<u64>,
    /// Those of the last flow to begin. The next one often shares them.
    names: Option<Arc<Names>>,
    /// The sum of the names' lengths.
    names_bytes: usize,
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

impl Flows {
    /// The flow that an event is part of. Its number is its id if that is still unused.
    pub fn part(&mut self, event: &Event<'_>, id: u64) -> Part {
        if self.used.len() >= MAX_REMEMBERED || self.names_bytes > MAX_NAMES_BYTES {
            *self = Self::default();
        }
        let begin = Begin { thread: event.thread, time: event.time };
        if matches!(event.kind, EventKind::FlowBegin { .. }) {
            let number = self.free_number(id);
            let names = self.names(event);
            let begun = self.begun.entry(id).or_insert_with(|| Vec::with_capacity(1));
            if begun.len() == MAX_OF_ONE_ID {
                begun.remove(0);
            }
            begun.push(Begun { begin, last: begin, names, number, has_ended: false });
            return Part { number, names: None, again: None };
        }
        let at = begin.time.nanos();
        let of_id = self.begun.get_mut(&id).into_iter().flatten();
        // A flow with the event's name, of its own process, or else of another one; of several, the last.
        let likeness = |begun: &&mut Begun| {
            let is_own = begun.begin.thread.process == begin.thread.process;
            (begun.names.are(event), is_own, begun.begin.time.nanos())
        };
        let begun = of_id.filter(|begun| begun.begin.time.nanos() <= at).max_by_key(likeness);
        let Some(begun) = begun else { return Part { number: id, names: None, again: None } };
        let before = if begun.last.time.nanos() <= at { begun.last } else { begun.begin };
        let number = begun.number;
        let names = (!begun.names.are(event)).then(|| begun.names.clone());
        let is_end = matches!(event.kind, EventKind::FlowEnd { .. });
        if !is_end && begun.last.time.nanos() <= at {
            begun.last = begin;
        }
        if is_end && std::mem::replace(&mut begun.has_ended, true) {
            return Part { number: self.free_number(number), names, again: Some(before) };
        }
        Part { number, names, again: None }
    }

    fn names(&mut self, event: &Event<'_>) -> Arc<Names> {
        match &self.names {
            Some(names) if names.are(event) => names.clone(),
            _ => {
                let (category, name) = (event.category.as_bytes(), event.name.as_bytes());
                self.names_bytes += category.len() + name.len();
                self.names.insert(Arc::new(Names { category: category.into(), name: name.into() })).clone()
            }
        }
    }

    /// An unused number, the same each time.
    fn free_number(&mut self, wanted: u64) -> u64 {
        let mut number = wanted;
        while !self.used.insert(number) {
            number = hash(number);
        }
        number
    }
}
