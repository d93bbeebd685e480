//! What is on threads, on its way into order: by thread, then by time, slices before what else is at the
//! time.

use std::io;
use trace_model::Interval;
use trace_reader::sorter::{Sorter, changed, words};

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
    /// A slice of the thread that is not selected, which others may be in.
    LeftOut,
}

impl Kind {
    const ALL: [Self; 7] =
        [Self::Slice, Self::Operation, Self::Instant, Self::Flow, Self::Log, Self::Sample, Self::LeftOut];
}

/// Something on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The thread's number.
    pub thread: u32,
    pub kind: Kind,
    /// When it is, in nanoseconds. What is no slice has no order of records.
    pub interval: Interval,
    /// The number of its name.
    pub what: u32,
    /// Whatever else there is of it.
    pub more: &'a [u8],
}

const WORDS: usize = 5;
const THREAD_AT: usize = (WORDS - 1) * size_of::<u64>();

/// When something is that has no record of its end.
pub(crate) const fn when(begin: u64, end: u64) -> Interval {
    Interval { begin, end, begun: 0, ended: 0 }
}

impl<'a> Entry<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let Interval { begin, end, begun, ended } = self.interval;
        let both = u64::from(self.thread) | u64::from(self.what) << 32;
        out.extend_from_slice([begin, end, begun, ended, both].map(u64::to_le_bytes).as_flattened());
        out.push(self.kind as u8);
        out.extend_from_slice(self.more);
    }

    fn decode(bytes: &'a [u8]) -> io::Result<Self> {
        let ([begin, end, begun, ended, both], rest) = words::<WORDS>(bytes)?;
        let (kind, more) = rest.split_first().ok_or_else(changed)?;
        let kind = *Kind::ALL.get(usize::from(*kind)).ok_or_else(changed)?;
        let interval = Interval { begin, end, begun, ended };
        Ok(Self { thread: both as u32, kind, interval, what: (both >> 32) as u32, more })
    }
}

/// The thread of an encoded entry.
fn thread_of(bytes: &[u8]) -> io::Result<u32> {
    let thread = bytes.get(THREAD_AT..).and_then(<[u8]>::first_chunk);
    thread.map(|thread| u32::from_le_bytes(*thread)).ok_or_else(changed)
}

/// Entries, sorted by time.
#[derive(Default)]
pub(crate) struct Entries {
    by_time: Sorter,
    bytes: Vec<u8>,
}

impl Entries {
    pub fn push(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        self.bytes.clear();
        entry.encode(&mut self.bytes);
        // No time has more than 63 bits.
        let is_behind = u64::from(!matches!(entry.kind, Kind::Slice | Kind::LeftOut));
        self.by_time.push(entry.interval.begin << 1 | is_behind, &self.bytes);
        self.by_time.check()
    }

    /// Passes on all entries: thread by thread in the order of `threads`.
    pub fn finish(
        self,
        threads: &[u32],
        mut take: impl FnMut(Entry<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut positions = Vec::new();
        for (position, thread) in (0..).zip(threads) {
            let needed = *thread as usize + 1;
            positions.resize(needed.max(positions.len()), u32::MAX);
            positions[*thread as usize] = position;
        }
        let mut by_thread = Sorter::default();
        self.by_time.finish(|bytes| {
            let thread = thread_of(bytes)?;
            by_thread.push(positions.get(thread as usize).copied().unwrap_or(thread).into(), bytes);
            by_thread.check()
        })?;
        by_thread.finish(|bytes| take(Entry::decode(bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_by_thread_then_by_time_and_slices_first() {
        let mut entries = Entries::default();
        let entry = |thread, kind, begin, end, what: u32, more| {
            let interval = Interval { begin, end, begun: what.into(), ended: 9 };
            Entry { thread, kind, interval, what, more }
        };
        let all = [
            entry(0, Kind::Instant, 5, 5, 5, b""),
            entry(0, Kind::Slice, 5, 6, 1, &b"inner"[..]),
            entry(0, Kind::Slice, 5, u64::MAX, 2, b""),
            entry(1, Kind::Slice, 1, u64::MAX, 3, b""),
            entry(0, Kind::Log, 5, 5, 7, b""),
            entry(0, Kind::Operation, 2, 4, 6, b""),
        ];
        all.iter().for_each(|entry| entries.push(entry).unwrap());
        let mut found = Vec::new();
        let take = |entry: Entry<'_>| {
            found.push((entry.what, entry.more.to_vec()));
            assert_eq!(entry, *all.iter().find(|other| other.what == entry.what).unwrap());
            Ok(())
        };
        entries.finish(&[1, 0], take).unwrap();
        let expected =
            [3, 6, 1, 2, 5, 7].map(|what| (what, if what == 1 { b"inner".to_vec() } else { vec![] }));
        assert_eq!(found, expected);
    }
}
