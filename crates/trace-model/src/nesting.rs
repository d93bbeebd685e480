//! Which slice of a track a slice is in, how deep, and how much of its time is its own.
//!
//! Slices come in any order and are sorted by their begins. [`Roots`](crate::Roots) does without sorting
//! where it can.

use crate::around::{Open, Placed};
use crate::interval::{Around, Interval};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::io;
use trace_reader::sorter::Sorter;

/// Where a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nested {
    /// The caller's number of the slice.
    pub of: u64,
    /// The slice that it is directly in, by its number.
    pub parent: Option<u64>,
    /// How many are around it, of which each is directly in the next.
    pub depth: u64,
    /// The time in which none of the slices directly in it lasted, in nanoseconds; none if it did not end.
    pub own: Option<u64>,
}

/// Slices of all tracks that have begun and not ended. Beyond that, nothing is found to be in a slice.
const MAX_OPEN: usize = if cfg!(test) { 2000 } else { 500_000 };
/// Slices that begin together and are put into an order at a time.
const MAX_TOGETHER: usize = if cfg!(test) { 2000 } else { 1 << 20 };
/// So many tracks are looked at for ended slices for each slice that has come since.
pub(crate) const SWEPT: usize = 64;

/// Takes slices of tracks, and says where each is.
///
/// Memory holds 48 MiB, 500 000 open slices, and a million that begin together; a file holds the rest.
#[derive(Debug, Default)]
pub struct Nesting {
    sorter: Sorter,
}

/// What is kept of an open slice.
#[derive(Debug)]
struct Kept {
    of: u64,
    parent: Option<u64>,
    depth: u64,
    inner: u64,
    /// The end of the slices in it so far.
    covered: u64,
}

/// Encodes words as a record to sort.
pub(crate) fn bytes<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.map(u64::to_le_bytes).as_flattened().to_vec()
}

/// Undoes it.
pub(crate) fn words<const N: usize>(bytes: &[u8]) -> io::Result<[u64; N]> {
    let words = bytes.as_chunks::<8>().0.first_chunk::<N>();
    words
        .map(|words| words.map(u64::from_le_bytes))
        .ok_or_else(|| io::Error::other("what was sorted has changed"))
}

impl Nesting {
    /// Adds a slice of a track.
    pub fn push(&mut self, track: u64, interval: &Interval, of: u64) {
        let Interval { begin, end, begun, ended } = *interval;
        self.sorter.push(begin, &bytes([track, begin, end, begun, ended, of]));
    }

    /// Passes on where each slice is, in any order.
    ///
    /// # Errors
    /// What had to be sorted could not be kept in a file, or the caller's.
    pub fn finish(self, mut take: impl FnMut(Nested) -> io::Result<()>) -> io::Result<()> {
        self.finish_slices(|_, _, nested| take(nested))
    }

    /// The same with the tracks and the slices.
    ///
    /// # Errors
    /// As [`Nesting::finish`].
    pub fn finish_slices(
        self,
        mut take: impl FnMut(u64, &Interval, Nested) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut nester = Nester::default();
        self.sorter.finish(|entry| {
            let [track, begin, end, begun, ended, of] = words(entry)?;
            let is_later = nester.together.first().is_some_and(|(_, first, _)| first.begin != begin);
            if is_later || nester.together.len() >= MAX_TOGETHER {
                nester.nest(&mut take)?;
            }
            nester.together.push((track, Interval { begin, end, begun, ended }, of));
            Ok(())
        })?;
        nester.nest(&mut take)?;
        let mut tracks: Vec<(u64, Open<Kept>)> = nester.tracks.into_iter().collect();
        tracks.sort_by_key(|(track, _)| *track);
        for (track, mut open) in tracks {
            while let Some((interval, kept)) = open.pop() {
                take(track, &interval, kept.nested(&interval))?;
            }
        }
        Ok(())
    }
}

/// Slices on their way.
#[derive(Default)]
struct Nester {
    tracks: HashMap<u64, Open<Kept>, RandomState>,
    /// Slices that begin at one time.
    together: Vec<(u64, Interval, u64)>,
    open: usize,
    /// Slices that came since all tracks were looked at for ended ones.
    since: usize,
}

impl Nester {
    /// Takes the slices that begin at one time, or the first of them.
    fn nest(&mut self, take: &mut impl FnMut(u64, &Interval, Nested) -> io::Result<()>) -> io::Result<()> {
        let mut together = std::mem::take(&mut self.together);
        together.sort_by_key(|(track, ..)| *track);
        let mut intervals = Vec::new();
        for of_track in together.chunk_by(|a, b| a.0 == b.0) {
            let [(track, Interval { begin: at, .. }, _), ..] = *of_track else { continue };
            self.since += of_track.len();
            if self.open + of_track.len() > MAX_OPEN && self.since * SWEPT >= self.tracks.len() {
                self.sweep(at, take)?;
            }
            let Self { tracks, open: count, .. } = self;
            let open = tracks.entry(track).or_default();
            while let Some((interval, kept)) = open.pop_before(at) {
                *count -= 1;
                take(track, &interval, kept.nested(&interval))?;
            }
            intervals.clear();
            intervals.extend(of_track.iter().map(|(_, interval, _)| *interval));
            for Placed { index, parent } in open.parents(&intervals) {
                let (_, interval, of) = of_track[index];
                let kept = open.begin(&interval, of, parent.as_ref());
                if *count >= MAX_OPEN {
                    take(track, &interval, kept.nested(&interval))?;
                    continue;
                }
                *count += 1;
                open.insert(interval, kept);
            }
        }
        together.clear();
        self.together = together;
        Ok(())
    }

    /// Passes on what has ended on all tracks.
    #[cold]
    fn sweep(
        &mut self,
        at: u64,
        take: &mut impl FnMut(u64, &Interval, Nested) -> io::Result<()>,
    ) -> io::Result<()> {
        self.since = 0;
        for (track, open) in &mut self.tracks {
            while let Some((interval, kept)) = open.pop_before(at) {
                self.open -= 1;
                take(*track, &interval, kept.nested(&interval))?;
            }
        }
        Ok(())
    }
}

impl Open<Kept> {
    /// What is kept of a slice that begins; its parent loses the time.
    fn begin(&mut self, interval: &Interval, of: u64, parent: Option<&Around>) -> Kept {
        let Some((_, around)) = parent.and_then(|parent| self.of(parent)) else {
            return Kept { of, parent: None, depth: 0, inner: 0, covered: 0 };
        };
        let from = interval.begin.max(around.covered);
        around.inner = around.inner.saturating_add(interval.end.saturating_sub(from));
        around.covered = around.covered.max(interval.end);
        Kept { of, parent: Some(around.of), depth: around.depth + 1, inner: 0, covered: 0 }
    }
}

impl Kept {
    /// Where the slice is, after its end.
    fn nested(self, interval: &Interval) -> Nested {
        let Self { of, parent, depth, inner, .. } = self;
        let own = (interval.end != u64::MAX).then(|| interval.duration().saturating_sub(inner));
        Nested { of, parent, depth, own }
    }
}

#[cfg(test)]
mod tests;
