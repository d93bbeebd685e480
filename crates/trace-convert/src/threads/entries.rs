//! What is on threads, on its way into order: by thread, then by time, the outermost first.

use std::cmp::Reverse;
use std::io;
use std::ops::Range;
use trace_reader::sorter::Sorter;

/// The length of what has not ended.
pub(crate) const OPEN: u64 = u64::MAX;
/// So much of what begins at one time is put into the order of its lengths; if there is more, each part is.
const MAX_TOGETHER: usize = 16 << 20;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A slice of the thread.
    Slice,
    /// An asynchronous operation that began on the thread.
    Operation,
    /// A point in time.
    Instant,
    /// A begin, step or end of a flow.
    Flow,
    /// A log entry.
    Log,
    /// A sample; `what` is its stack.
    Sample,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Slice, Self::Operation, Self::Instant, Self::Flow, Self::Log, Self::Sample];
}

/// Something on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The thread's number.
    pub thread: u32,
    pub kind: Kind,
    /// When it begins, in nanoseconds.
    pub at: u64,
    /// How long it takes; [`OPEN`] if it has not ended.
    pub length: u64,
    /// The number of its name.
    pub what: u32,
    /// Whatever else there is of it.
    pub more: &'a [u8],
}

const HEAD_BYTES: usize = 25;

impl<'a> Entry<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.at.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.thread.to_le_bytes());
        out.extend_from_slice(&self.what.to_le_bytes());
        out.push(self.kind as u8);
        out.extend_from_slice(self.more);
    }

    fn decode(bytes: &'a [u8]) -> io::Result<Self> {
        let changed = || io::Error::other("what was sorted has changed");
        let (head, more) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or_else(changed)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|place| head[at + place]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|place| head[at + place]));
        let kind = *Kind::ALL.get(usize::from(head[24])).ok_or_else(changed)?;
        Ok(Self { at: word(0), length: word(8), thread: half(16), what: half(20), kind, more })
    }

    /// When it ends, if it does.
    pub fn end(&self) -> u64 {
        self.at.saturating_add(self.length)
    }
}

/// Entries, sorted by time.
#[derive(Default)]
pub(crate) struct Entries {
    by_time: Sorter,
    bytes: Vec<u8>,
}

/// What begins at one time.
#[derive(Default)]
struct Together {
    at: u64,
    bytes: Vec<u8>,
    /// Orders and places.
    index: Vec<(Order, Range<usize>)>,
}

/// Slices first, the longest around the others; of two that are equal, the later row is the outer one,
/// because rows come when their slices end. Everything else in the order of the rows.
type Order = (bool, Reverse<u64>, i64);

fn order_of(entry: &Entry<'_>, row: usize) -> Order {
    let row = row as i64;
    match entry.kind {
        Kind::Slice => (false, Reverse(entry.length), -row),
        _ => (true, Reverse(0), row),
    }
}

impl Together {
    /// Moves all of it on.
    fn flush(&mut self, positions: &[u32], by_thread: &mut Sorter) -> io::Result<()> {
        if self.index.len() > 1 {
            self.index.sort_unstable_by_key(|(order, _)| *order);
        }
        for (_, place) in self.index.drain(..) {
            let bytes = &self.bytes[place];
            let thread = Entry::decode(bytes)?.thread;
            by_thread.push(positions.get(thread as usize).copied().unwrap_or(thread).into(), bytes);
        }
        self.bytes.clear();
        Ok(())
    }
}

impl Entries {
    pub fn push(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        self.bytes.clear();
        entry.encode(&mut self.bytes);
        self.by_time.push(entry.at, &self.bytes);
        self.by_time.check()
    }

    /// Passes on all entries: thread by thread in the order of `threads`.
    pub fn finish(
        self,
        threads: impl Iterator<Item = u32>,
        mut take: impl FnMut(Entry<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut positions = Vec::new();
        for (position, thread) in (0..).zip(threads) {
            let needed = thread as usize + 1;
            positions.resize(needed.max(positions.len()), u32::MAX);
            positions[thread as usize] = position;
        }
        let mut by_thread = Sorter::default();
        let mut together = Together::default();
        self.by_time.finish(|bytes| {
            let entry = Entry::decode(bytes)?;
            if entry.at != together.at || together.bytes.len() > MAX_TOGETHER {
                together.flush(&positions, &mut by_thread)?;
                together.at = entry.at;
            }
            let order = order_of(&entry, together.index.len());
            let start = together.bytes.len();
            together.bytes.extend_from_slice(bytes);
            together.index.push((order, start..together.bytes.len()));
            by_thread.check()
        })?;
        together.flush(&positions, &mut by_thread)?;
        drop(together);
        by_thread.finish(|bytes| take(Entry::decode(bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_by_thread_then_by_time_and_the_outermost_first() {
        let mut entries = Entries::default();
        let entry = |thread, at, length, what, more| Entry {
            thread,
            kind: if length == 0 { Kind::Instant } else { Kind::Slice },
            at,
            length,
            what,
            more,
        };
        for entry in [
            entry(0, 5, 1, 1, &b"inner"[..]),
            entry(0, 5, 1, 2, b""),
            entry(1, 1, OPEN, 3, b""),
            entry(0, 5, OPEN, 4, b""),
            entry(0, 5, 0, 5, b""),
            entry(0, 5, 0, 7, b""),
            entry(0, 2, 0, 6, b""),
        ] {
            entries.push(&entry).unwrap();
        }
        let mut found = Vec::new();
        let mut take = |entry: Entry<'_>| {
            found.push((entry.thread, entry.at, entry.what, entry.kind, entry.more.to_vec(), entry.end()));
            Ok(())
        };
        entries.finish([1, 0].into_iter(), &mut take).unwrap();
        let expected = [
            (1, 1, 3, Kind::Slice, b"".to_vec(), OPEN),
            (0, 2, 6, Kind::Instant, b"".to_vec(), 2),
            (0, 5, 4, Kind::Slice, b"".to_vec(), OPEN),
            (0, 5, 2, Kind::Slice, b"".to_vec(), 6),
            (0, 5, 1, Kind::Slice, b"inner".to_vec(), 6),
            (0, 5, 5, Kind::Instant, b"".to_vec(), 5),
            (0, 5, 7, Kind::Instant, b"".to_vec(), 5),
        ];
        assert_eq!(found, expected);
    }
}
