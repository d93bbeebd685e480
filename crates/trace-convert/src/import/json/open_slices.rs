//! Open slices, so that ends find the slices with their names.
//!
//! An end in an archive ends the innermost slice of its thread. If slices cross, so that an end has the name
//! of an outer one, the slices within that one end with it, as in Perfetto's reader of JSON.
//= docs/import.md#crossing-slices

use foldhash::HashMap;
use trace_linux::hash;
use trace_reader::Thread;

/// Maximum number of remembered slices, of all threads and of one.
const MAX_SLICES: usize = 1 << 20;
const MAX_DEPTH: usize = 1 << 16;
/// Maximum number of remembered slices of a thread that ended early.
const MAX_EARLY: usize = 64;

/// Hashes of category and name; none for missing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    category: Option<u64>,
    name: Option<u64>,
}

impl Slice {
    fn new(category: &str, name: &str) -> Self {
        let hashed = |text: &str| (!text.is_empty()).then(|| hash(text.as_bytes()));
        Self { category: hashed(category), name: hashed(name) }
    }

    /// Whether an end belongs to this slice: all members that both have are the same.
    fn is_ended_by(self, end: Self) -> bool {
        let agree = |own: Option<u64>, other: Option<u64>| own.is_none() || other.is_none() || own == other;
        agree(self.category, end.category) && agree(self.name, end.name)
    }
}

#[derive(Debug, Default)]
struct Open {
    slices: Vec<Slice>,
    /// Slices that ended with an outer one, and whose own ends are to come.
    ended_early: Vec<Slice>,
    last: u64,
    /// Some open slices are unknown: there was no room, or times are not in order.
    is_unknown: bool,
}

#[derive(Debug, Default)]
pub(super) struct OpenSlices {
    threads: HashMap<Thread, Open>,
    count: usize,
}

impl OpenSlices {
    fn thread(&mut self, thread: Thread, at: u64) -> &mut Open {
        let open = self.threads.entry(thread).or_default();
        if at < open.last && !open.is_unknown {
            open.is_unknown = true;
            self.count -= open.slices.len();
            open.slices = Vec::new();
        }
        open.last = at;
        open
    }

    /// Remembers a slice.
    pub fn begin(&mut self, thread: Thread, at: u64, category: &str, name: &str) {
        let is_full = self.count >= MAX_SLICES;
        let open = self.thread(thread, at);
        open.is_unknown |= is_full || open.slices.len() >= MAX_DEPTH;
        if !open.is_unknown {
            open.slices.push(Slice::new(category, name));
            self.count += 1;
        }
    }

    /// The number of inner slices that end before the one that an end belongs to; none if the end belongs to
    /// one that has ended early.
    pub fn end(&mut self, thread: Thread, at: u64, category: &str, name: &str) -> Option<usize> {
        let open = self.thread(thread, at);
        if open.is_unknown {
            return Some(0);
        }
        let end = Slice::new(category, name);
        if let Some(place) = open.slices.iter().rposition(|slice| slice.is_ended_by(end)) {
            let room = MAX_EARLY - open.ended_early.len();
            open.ended_early.extend(open.slices.iter().skip(place + 1).take(room));
            let ended = open.slices.drain(place..).count();
            self.count -= ended;
            return Some(ended - 1);
        }
        if let Some(place) = open.ended_early.iter().position(|slice| slice.is_ended_by(end)) {
            open.ended_early.remove(place);
            return None;
        }
        // Regardless of its name, it ends the innermost one.
        self.count -= usize::from(open.slices.pop().is_some());
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::units::Koid;

    fn thread(number: u64) -> Thread {
        Thread { process: Koid(1), thread: Koid(number) }
    }

    #[test]
    fn an_end_is_for_the_innermost_slice_of_its_name() {
        let mut open = OpenSlices::default();
        for name in ["a", "a", "b", "c"] {
            open.begin(thread(1), 1, "x", name);
        }
        assert_eq!(open.end(thread(2), 2, "x", "b"), Some(0));
        assert_eq!(open.end(thread(1), 2, "", "a"), Some(2));
        assert_eq!(open.end(thread(1), 2, "x", "b"), None);
        // One with another category, or without a name, ends the innermost.
        open.begin(thread(1), 3, "x", "d");
        assert_eq!(open.end(thread(1), 3, "y", "a"), Some(0));
        assert_eq!(open.end(thread(1), 3, "", ""), Some(0));
        assert_eq!(open.end(thread(1), 3, "x", "b"), Some(0));
        assert_eq!(open.count, 0);
    }

    #[test]
    fn ends_stay_where_not_all_beginnings_are_known() {
        let mut open = OpenSlices::default();
        open.begin(thread(1), 5, "", "a");
        open.begin(thread(1), 4, "", "b");
        assert_eq!(open.end(thread(1), 6, "", "c"), Some(0));
        assert_eq!(open.count, 0);
        for number in 0..MAX_DEPTH + 1 {
            open.begin(thread(2), number as u64, "", "a");
        }
        assert_eq!(open.end(thread(2), 1 << 20, "", "b"), Some(0));
    }
}
