//! Begins and ends of async operations that belong together, in the order of their times.

use super::late::Part;
use super::spans::{EventPosition, Found, Key, Unmatched, What};
use std::collections::HashMap;
use trace_format::units::Koid;

/// The remark about operations that end in another process than they began in.
pub(super) const CROSSING: &str = "crossing-async";
/// The remark about operations that end by another name than they began by.
pub(super) const MISMATCHED: &str = "mismatched-async-end";

/// An operation that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    place: EventPosition,
    id: u64,
    process: Koid,
    name: Key,
}

/// All operations that are open, by category and id; of each, the innermost is the last.
#[derive(Debug, Default)]
pub(super) struct Operations(HashMap<Key, Vec<Open>>);

/// What has become of an end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It has ended an operation. There may be a remark.
    One(Option<Found>),
    /// There is nothing that it could end.
    Nothing(Found),
}

impl Operations {
    pub fn begin(&mut self, part: &Part<'_>, id: u64) {
        let Part { thread, place, category, name, .. } = *part;
        let open = Open { place, id, process: thread.process, name: Key::of_text(name) };
        self.0.entry(Key::new((category, id))).or_default().push(open);
    }

    /// Ends the last operation with the name in the process, or the last one there; else the last with the
    /// name in another process.
    //= docs/tables.md#tables
    pub fn end(&mut self, part: &Part<'_>, id: u64) -> Ended {
        let Part { thread, category, name, .. } = *part;
        let (key, named) = (Key::new((category, id)), Key::of_text(name));
        let is_here = |open: &Open| open.process == thread.process;
        let is_named = |open: &Open| open.name == named;
        let found = self.0.get_mut(&key).and_then(|open| {
            let place = open
                .iter()
                .rposition(|open| is_here(open) && is_named(open))
                .or_else(|| open.iter().rposition(is_here))
                .or_else(|| open.iter().rposition(is_named))?;
            Some((open.remove(place), open.is_empty()))
        });
        let Some((begun, was_last)) = found else {
            let text = format!("end of {name:?} with id {id:#x}, which has nothing to end");
            return Ended::Nothing(("unmatched-async-end", text));
        };
        if was_last {
            self.0.remove(&key);
        }
        Ended::One(if !is_here(&begun) {
            let (begun_in, ended_in) = (begun.process, thread.process);
            let text = format!("id {id:#x} was begun in process {begun_in} and ended in process {ended_in}");
            Some((CROSSING, text))
        } else if !is_named(&begun) && !name.as_bytes().is_empty() {
            let text = format!("end of {name:?} with id {id:#x}, which was begun by another name");
            Some((MISMATCHED, text))
        } else {
            None
        })
    }

    /// Adds those that have not ended.
    pub fn finish(&mut self, all: &mut Vec<Unmatched>) {
        let open = self.0.drain().flat_map(|(_, open)| open);
        all.extend(open.map(|Open { id, place, .. }| Unmatched {
            kind: "unmatched-async-begin",
            count: 1,
            place,
            what: What::Id(id),
        }));
    }
}
