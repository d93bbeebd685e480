//! Slices of tracks as steps for readers that know only stacks: what overlaps is on a lane of its own.
//!
//! On each lane, slices begin and end as on a stack, and no step comes before an earlier one. A slice is on
//! the lane of its parent, directly in it, unless one that overlaps it is in the way.

use crate::interval::Interval;
use crate::placing::{Place, Placing};
use std::io;
use std::marker::PhantomData;
use trace_reader::sorter::{Sorter, words};

/// Lanes of one track. A slice that needs a further one is left out.
pub const MAX_LANES: usize = 1000;
/// Of slices that begin together, so many bytes are put into an order at a time.
const TOGETHER_BYTES: usize = if cfg!(test) { 1 << 20 } else { 8 << 20 };
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
/// Memory holds 16 MiB and what [`Placing`] does; a file holds the rest. A slice that begins beyond its limit
/// of open ones is left out. [`Stepping`] is the same for slices that are in order.
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

impl Lanes {
    /// Adds a slice of a track, with what the caller needs to write it.
    pub fn push(&mut self, track: u64, interval: &Interval, bytes: &[u8]) {
        let Interval { begin, end, begun, ended } = *interval;
        self.encoded.clear();
        let head = [track, begin, end, begun, ended];
        self.encoded.extend_from_slice(head.map(u64::to_le_bytes).as_flattened());
        self.encoded.extend_from_slice(bytes);
        self.sorter.push(begin, &self.encoded);
    }

    /// Passes on the steps of all lanes, of each in the order of their times. What did not end has no end.
    /// Returns how many slices were left out.
    ///
    /// # Errors
    /// What had to be sorted could not be kept in a file, or the caller's.
    pub fn finish(self, take: impl FnMut(&Step<'_>) -> io::Result<()>) -> io::Result<u64> {
        let mut placing = Placing::new(Stepping::new(take)).with_bytes(TOGETHER_BYTES);
        self.sorter.finish(|entry| {
            let ([track, begin, end, begun, ended], bytes) = words(entry)?;
            placing.push(track, &Interval { begin, end, begun, ended }, bytes.to_vec())
        })?;
        placing.end()?;
        Ok(placing.place().left_out)
    }
}

/// Takes steps.
pub trait Steps {
    /// Takes the next one.
    ///
    /// # Errors
    /// It cannot keep the step.
    fn step(&mut self, step: &Step<'_>) -> io::Result<()>;
}

impl<F: FnMut(&Step<'_>) -> io::Result<()>> Steps for F {
    fn step(&mut self, step: &Step<'_>) -> io::Result<()> {
        self(step)
    }
}

/// Makes steps of slices that come in the order of their begins.
pub struct Stepping<S, B> {
    /// What takes them.
    pub steps: S,
    /// How many slices were left out.
    pub left_out: u64,
    /// The caller's bytes.
    bytes: PhantomData<B>,
}

impl<S, B> Stepping<S, B> {
    /// One that has left out none.
    pub const fn new(steps: S) -> Self {
        Self { steps, left_out: 0, bytes: PhantomData }
    }
}

/// Of each lane of a track, the slices that are open there, the innermost last.
type Stacks = Vec<Vec<Interval>>;

impl<S: Steps, B: AsRef<[u8]>> Place for Stepping<S, B> {
    type Item = B;
    /// The lane.
    type Kept = usize;
    type Track = Stacks;

    fn heap_bytes(bytes: &B) -> usize {
        bytes.as_ref().len()
    }

    fn leaves_out(&mut self) -> bool {
        self.left_out += 1;
        true
    }

    fn begin(
        &mut self,
        (track, lanes): (u64, &mut Stacks),
        slice: &Interval,
        bytes: B,
        parent: Option<(&Interval, &usize)>,
    ) -> io::Result<Option<usize>> {
        let lane = self.lane((track, lanes), slice.begin, parent)?;
        match lane {
            Some(lane) => {
                lanes[lane].push(*slice);
                self.steps.step(&Step {
                    track,
                    lane,
                    at: slice.begin,
                    begins: Some((*slice, bytes.as_ref())),
                })?;
            }
            None => self.left_out += 1,
        }
        Ok(lane)
    }

    fn end(
        &mut self,
        (track, lanes): (u64, &mut Stacks),
        slice: &Interval,
        lane: usize,
        _: Option<u64>,
    ) -> io::Result<()> {
        // Another slice may have begun on the lane at that time: then the end was passed on before.
        if lanes[lane].pop_if(|last| last == slice).is_some() && slice.end != u64::MAX {
            self.steps.step(&Step { track, lane, at: slice.end, begins: None })?;
        }
        Ok(())
    }
}

impl<S: Steps, B> Stepping<S, B> {
    /// The lane for a slice that begins, after the ends of what is not around it; none if there is none.
    fn lane(
        &mut self,
        (track, lanes): (u64, &mut Stacks),
        at: u64,
        parent: Option<(&Interval, &usize)>,
    ) -> io::Result<Option<usize>> {
        // Ends the slices of a lane until now, up to one that stays.
        let mut end = |lane: usize, stack: &mut Vec<Interval>, stays: Option<&Interval>| {
            while let Some(last) = stack.pop_if(|last| last.end <= at && stays != Some(last)) {
                self.steps.step(&Step { track, lane, at: last.end, begins: None })?;
            }
            io::Result::Ok(())
        };
        if let Some((parent, lane)) = parent {
            end(*lane, &mut lanes[*lane], Some(parent))?;
            if lanes[*lane].last() == Some(parent) {
                return Ok(Some(*lane));
            }
        }
        for (lane, stack) in lanes.iter_mut().enumerate() {
            end(lane, stack, None)?;
            if stack.is_empty() {
                return Ok(Some(lane));
            }
        }
        if lanes.len() == MAX_LANES {
            return Ok(None);
        }
        lanes.push(Vec::new());
        Ok(Some(lanes.len() - 1))
    }
}

#[cfg(test)]
mod tests;
