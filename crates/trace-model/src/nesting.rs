//! Which slice of a track a slice is in, how deep, and how much of its time is its own.
//!
//! Slices come in any order and are sorted by their begins. [`Roots`](crate::Roots) does without sorting
//! where it can.

use crate::interval::Interval;
use crate::placing::{Place, Placing};
use std::io;
use trace_reader::sorter::{Sorter, words};

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

/// Takes slices of tracks, and says where each is.
///
/// Memory holds 48 MiB and what [`Placing`] does; a file holds the rest.
#[derive(Debug, Default)]
pub struct Nesting {
    sorter: Sorter,
}

/// Encodes words as a record to sort.
pub(crate) fn bytes<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.map(u64::to_le_bytes).as_flattened().to_vec()
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
        let mut placing = Placing::new(Places(&mut take));
        self.sorter.finish(|entry| {
            let ([track, begin, end, begun, ended, of], _) = words(entry)?;
            placing.push(track, &Interval { begin, end, begun, ended }, of)
        })?;
        placing.end()
    }
}

/// Passes on where slices are.
struct Places<F>(F);

impl<F: FnMut(u64, &Interval, Nested) -> io::Result<()>> Place for Places<F> {
    type Item = u64;
    type Kept = Nested;
    type Track = ();

    fn begin(
        &mut self,
        _: (u64, &mut ()),
        _: &Interval,
        of: u64,
        parent: Option<(&Interval, &Nested)>,
    ) -> io::Result<Option<Nested>> {
        let parent = parent.map(|(_, parent)| parent);
        let depth = parent.map_or(0, |parent| parent.depth + 1);
        Ok(Some(Nested { of, parent: parent.map(|parent| parent.of), depth, own: None }))
    }

    fn end(
        &mut self,
        (track, ()): (u64, &mut ()),
        slice: &Interval,
        kept: Nested,
        own: Option<u64>,
    ) -> io::Result<()> {
        (self.0)(track, slice, Nested { own, ..kept })
    }
}

#[cfg(test)]
mod tests;
