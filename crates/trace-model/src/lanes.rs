//! Slices of tracks as steps for readers that know only stacks: what overlaps is on a lane of its own.
//!
//! On each lane, slices begin and end as on a stack, and no step comes before an earlier one. A slice is on
//! the lane of its parent, directly in it, unless one that overlaps it is in the way.

use crate::around::{Open, Placed};
use crate::interval::Interval;
use crate::nesting::words;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::io;
use trace_reader::sorter::Sorter;

/// Lanes of one track; what does not fit in them is on the last one.
pub const MAX_LANES: usize = 1000;

/// A step of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// The caller's number of the track.
    pub track: u64,
    /// The lane, of which 0 is the track itself.
    pub lane: usize,
    /// When it is, in nanoseconds.
    pub at: u64,
    /// The slice that begins, with the caller's bytes; none if the innermost one ends.
    pub begins: Option<(Interval, &'a [u8])>,
}

/// Takes slices of tracks, and gives steps of lanes.
///
/// Memory holds 48 MiB and the slices that are open at a time; a file holds the rest.
#[derive(Debug, Default)]
pub struct Lanes {
    sorter: Sorter,
    encoded: Vec<u8>,
}

#[derive(Debug, Default)]
struct Track {
    /// The lane of each open slice.
    open: Open<usize>,
    /// Of each lane, the open slices, the innermost last.
    lanes: Vec<Vec<Interval>>,
}

/// A slice that waits for those that begin at the same time.
struct Waiting {
    track: u64,
    interval: Interval,
    bytes: Vec<u8>,
}

const HEAD_WORDS: usize = 5;

impl Lanes {
    /// Adds a slice of a track, with what the caller needs to write it.
    pub fn push(&mut self, track: u64, interval: &Interval, bytes: &[u8]) {
        let Interval { begin, end, begun, ended } = *interval;
        self.encoded.clear();
        let head: [u64; HEAD_WORDS] = [track, begin, end, begun, ended];
        self.encoded.extend_from_slice(head.map(u64::to_le_bytes).as_flattened());
        self.encoded.extend_from_slice(bytes);
        self.sorter.push(begin, &self.encoded);
    }

    /// Passes on the steps of all lanes, of each in the order of their times. What did not end has no end.
    /// Returns how many slices found no lane that they fit on.
    ///
    /// # Errors
    /// What had to be sorted could not be kept in a file, or the caller's.
    pub fn finish(self, mut take: impl FnMut(&Step<'_>) -> io::Result<()>) -> io::Result<u64> {
        let mut tracks: HashMap<u64, Track, RandomState> = HashMap::default();
        let mut together: Vec<Waiting> = Vec::new();
        let mut misplaced = 0;
        self.sorter.finish(|entry| {
            let [track, begin, end, begun, ended] = words::<HEAD_WORDS>(entry)?;
            if together.first().is_some_and(|first| first.interval.begin != begin) {
                misplaced += place(&mut together, &mut tracks, &mut take)?;
            }
            let bytes = entry.get(HEAD_WORDS * size_of::<u64>()..).unwrap_or_default().to_vec();
            together.push(Waiting { track, interval: Interval { begin, end, begun, ended }, bytes });
            Ok(())
        })?;
        misplaced += place(&mut together, &mut tracks, &mut take)?;
        let mut tracks: Vec<(u64, Track)> = tracks.into_iter().collect();
        tracks.sort_by_key(|(track, _)| *track);
        for (number, mut track) in tracks {
            for lane in 0..track.lanes.len() {
                track.end(number, lane, u64::MAX - 1, None, &mut take)?;
            }
        }
        Ok(misplaced)
    }
}

/// Takes the slices that begin at one time; returns how many were misplaced.
fn place(
    together: &mut Vec<Waiting>,
    tracks: &mut HashMap<u64, Track, RandomState>,
    take: &mut impl FnMut(&Step<'_>) -> io::Result<()>,
) -> io::Result<u64> {
    let mut misplaced = 0;
    together.sort_by_key(|waiting| waiting.track);
    let mut intervals = Vec::new();
    for of_track in together.chunk_by(|a, b| a.track == b.track) {
        let [Waiting { track: number, .. }, ..] = of_track else { continue };
        let track = tracks.entry(*number).or_default();
        intervals.clear();
        intervals.extend(of_track.iter().map(|waiting| waiting.interval));
        let [Interval { begin: at, .. }, ..] = intervals[..] else { continue };
        while track.open.pop_before(at).is_some() {}
        for Placed { index, parent } in track.open.parents(&intervals) {
            let Waiting { interval, bytes, .. } = &of_track[index];
            let parent = parent.and_then(|parent| track.open.of(&parent)).map(|(of, lane)| (*of, *lane));
            let lane = track.lane(*number, interval, parent, take)?;
            misplaced += u64::from(lane.is_none());
            let lane = lane.unwrap_or(MAX_LANES - 1);
            track.open.insert(*interval, lane);
            track.lanes[lane].push(*interval);
            take(&Step { track: *number, lane, at, begins: Some((*interval, bytes)) })?;
        }
    }
    together.clear();
    Ok(misplaced)
}

impl Track {
    /// The lane for a slice that begins, after the ends of what is not around it; none if there is none.
    fn lane(
        &mut self,
        number: u64,
        slice: &Interval,
        parent: Option<(Interval, usize)>,
        take: &mut impl FnMut(&Step<'_>) -> io::Result<()>,
    ) -> io::Result<Option<usize>> {
        let at = slice.begin;
        if let Some((parent, lane)) = parent {
            self.end(number, lane, at, Some(&parent), take)?;
            if self.lanes[lane].last() == Some(&parent) {
                return Ok(Some(lane));
            }
        }
        for lane in 0..self.lanes.len() {
            self.end(number, lane, at, None, take)?;
            if self.lanes[lane].is_empty() {
                return Ok(Some(lane));
            }
        }
        if self.lanes.len() == MAX_LANES {
            return Ok(None);
        }
        self.lanes.push(Vec::new());
        Ok(Some(self.lanes.len() - 1))
    }

    /// Ends the slices of a lane that end until a time, up to one that stays.
    fn end(
        &mut self,
        number: u64,
        lane: usize,
        until: u64,
        stays: Option<&Interval>,
        take: &mut impl FnMut(&Step<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        while let Some(last) = self.lanes[lane].last().copied()
            && last.end <= until
            && stays != Some(&last)
        {
            self.lanes[lane].pop();
            take(&Step { track: number, lane, at: last.end, begins: None })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
