//! Slices of tracks as steps for readers that know only stacks: what overlaps is on a lane of its own.
//!
//! On each lane, slices begin and end as on a stack, and no step comes before an earlier one. A slice is on
//! the lane of its parent, directly in it, unless one that overlaps it is in the way.

use crate::around::{Open, Placed};
use crate::interval::Interval;
use crate::nesting::{SWEPT, words};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::io;
use trace_reader::sorter::Sorter;

/// Lanes of one track. A slice that needs a further one is left out.
pub const MAX_LANES: usize = 1000;
/// Slices of all tracks that have begun and not ended. One that begins beyond that is left out.
const MAX_OPEN: usize = if cfg!(test) { 2000 } else { 500_000 };
/// Of slices that begin together, so many bytes are put into an order at a time.
const MAX_TOGETHER_BYTES: usize = if cfg!(test) { 1 << 20 } else { 8 << 20 };
/// What waits in memory; a file holds the rest.
const RUN_BYTES: usize = 16 << 20;

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
/// Memory holds 16 MiB, 8 MiB of slices that begin together, and what is known of 500 000 open slices; a file
/// holds the rest.
#[derive(Debug)]
pub struct Lanes {
    sorter: Sorter,
    encoded: Vec<u8>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self { sorter: Sorter::with_runs_of(RUN_BYTES), encoded: Vec::new() }
    }
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
    /// Returns how many slices were left out.
    ///
    /// # Errors
    /// What had to be sorted could not be kept in a file, or the caller's.
    pub fn finish(self, mut take: impl FnMut(&Step<'_>) -> io::Result<()>) -> io::Result<u64> {
        let mut placing = Placing::default();
        self.sorter.finish(|entry| {
            let [track, begin, end, begun, ended] = words::<HEAD_WORDS>(entry)?;
            let is_later = placing.together.first().is_some_and(|first| first.interval.begin != begin);
            if is_later || placing.bytes > MAX_TOGETHER_BYTES {
                placing.place(&mut take)?;
            }
            let bytes = entry.get(HEAD_WORDS * size_of::<u64>()..).unwrap_or_default().to_vec();
            placing.bytes += size_of::<Waiting>() + bytes.len();
            let interval = Interval { begin, end, begun, ended };
            placing.together.push(Waiting { track, interval, bytes });
            Ok(())
        })?;
        placing.place(&mut take)?;
        let Placing { tracks, left_out, .. } = placing;
        let mut tracks: Vec<(u64, Track)> = tracks.into_iter().collect();
        tracks.sort_by_key(|(track, _)| *track);
        for (number, mut track) in tracks {
            track.end_all(number, u64::MAX - 1, &mut take)?;
        }
        Ok(left_out)
    }
}

/// Slices on their way to lanes.
#[derive(Default)]
struct Placing {
    tracks: HashMap<u64, Track, RandomState>,
    /// Slices that begin at one time, and their bytes.
    together: Vec<Waiting>,
    bytes: usize,
    /// Slices on lanes.
    open: usize,
    /// Slices that came since all tracks were looked at for ended ones.
    since: usize,
    left_out: u64,
}

impl Placing {
    /// Takes the slices that begin at one time, or the first of them.
    fn place(&mut self, take: &mut impl FnMut(&Step<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut together = std::mem::take(&mut self.together);
        self.bytes = 0;
        together.sort_by_key(|waiting| waiting.track);
        let mut intervals = Vec::new();
        for of_track in together.chunk_by(|a, b| a.track == b.track) {
            let [Waiting { track: number, interval: Interval { begin: at, .. }, .. }, ..] = *of_track else {
                continue;
            };
            self.since += of_track.len();
            if self.open + of_track.len() > MAX_OPEN && self.since * SWEPT >= self.tracks.len() {
                self.sweep(at, take)?;
            }
            let track = self.tracks.entry(number).or_default();
            while track.open.pop_before(at).is_some() {}
            intervals.clear();
            intervals.extend(of_track.iter().map(|waiting| waiting.interval));
            let before = track.len();
            for Placed { index, parent } in track.open.parents(&intervals) {
                let Waiting { interval, bytes, .. } = &of_track[index];
                let parent = parent.and_then(|parent| track.open.of(&parent));
                let parent = parent.map(|(of, lane)| (*of, *lane));
                let is_full = self.open + track.len() >= MAX_OPEN + before;
                let lane = if is_full { None } else { track.lane(number, interval, parent, take)? };
                let Some(lane) = lane else {
                    self.left_out += 1;
                    continue;
                };
                track.open.insert(*interval, lane);
                track.lanes[lane].push(*interval);
                take(&Step { track: number, lane, at, begins: Some((*interval, bytes)) })?;
            }
            self.open = self.open + track.len() - before;
        }
        Ok(())
    }

    /// Ends what has ended on all tracks.
    #[cold]
    fn sweep(&mut self, at: u64, take: &mut impl FnMut(&Step<'_>) -> io::Result<()>) -> io::Result<()> {
        self.since = 0;
        for (number, track) in &mut self.tracks {
            while track.open.pop_before(at).is_some() {}
            track.end_all(*number, at.saturating_sub(1), take)?;
        }
        self.tracks.retain(|_, track| track.len() > 0);
        self.open = self.tracks.values().map(Track::len).sum();
        Ok(())
    }
}

impl Track {
    /// How many slices are on its lanes.
    fn len(&self) -> usize {
        self.lanes.iter().map(Vec::len).sum()
    }

    /// Ends the slices of all lanes that end until a time.
    fn end_all(
        &mut self,
        number: u64,
        until: u64,
        take: &mut impl FnMut(&Step<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        (0..self.lanes.len()).try_for_each(|lane| self.end(number, lane, until, None, take))
    }

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
