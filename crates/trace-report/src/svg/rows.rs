//! Puts the slices of the window into rows, those that are in others below them.

use super::collector::{Collector, Flow, Owner, Slice};
use super::layout::WIDTH;
use super::merge::{Bar, Bars, MAX_BARS};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Rows of a track; slices that are deeper are counted.
pub const MAX_ROWS: usize = 24;
/// So many slices that begin at one time are put into the order of their ends; of more, each part is.
const MAX_TOGETHER: usize = 1 << 20;

/// Where a flow event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub flow: Flow,
    /// The row of the slice that it is in, if it is in one.
    pub row: Option<u32>,
}

/// The rows of all tracks.
pub struct Placed {
    /// By track, row and time.
    pub bars: Vec<Bar>,
    /// How many rows each track has.
    pub rows: Vec<u32>,
    /// Flow events of the window, by their time.
    pub spots: Vec<Spot>,
    /// The tracks of threads with slices.
    pub track_of_thread: BTreeMap<u32, u32>,
    /// Slices that are too deep.
    pub deep: u64,
}

/// A track, while its slices come.
#[derive(Default)]
struct State {
    /// Ends of the open slices by depth, or of the last ones by row.
    ends: Vec<u64>,
    rows: u32,
}

/// Places everything on the tracks that are shown.
pub fn place(collector: &mut Collector, shown: &BTreeSet<u32>) -> io::Result<Placed> {
    let (from, to) = collector.window;
    let mut states: Vec<State> = collector.tracks.iter().map(|_| State::default()).collect();
    let tracks: Vec<Owner> = collector.tracks.iter().map(|(owner, ..)| *owner).collect();
    let mut track_of_thread = BTreeMap::new();
    for (track, owner) in (0_u32..).zip(&tracks) {
        if let Owner::Thread(thread) = owner {
            track_of_thread.insert(*thread, track);
        }
    }
    let mut flows: Vec<Flow> =
        collector.flows.iter().filter(|flow| flow.at >= from && flow.at <= to).copied().collect();
    flows.sort_by_key(|flow| flow.at);
    let mut flows = flows.into_iter().peekable();
    let mut spots = Vec::new();
    // The innermost slice of the thread at the time.
    let spot = |flow: Flow, states: &[State]| {
        let track = track_of_thread.get(&flow.thread);
        let ends = track.map(|track: &u32| &states[*track as usize].ends);
        let row = ends.and_then(|ends| ends.iter().rposition(|end| *end >= flow.at)).map(|row| row as u32);
        Spot { flow, row: row.map(|row| row.min(MAX_ROWS as u32 - 1)) }
    };
    let mut bars = Bars::new(((to - from) as f64 / WIDTH) as u64);
    let mut deep = 0;
    let mut together: Vec<Slice> = Vec::new();
    let mut flush = |together: &mut Vec<Slice>, states: &mut [State]| {
        // Of what begins at one time, the longest is around the others; of two that are equal, the later row.
        together.reverse();
        together.sort_by_key(|slice| std::cmp::Reverse(slice.end));
        for slice in together.drain(..) {
            let state = &mut states[slice.track as usize];
            let row = match tracks[slice.track as usize] {
                Owner::Thread(_) => {
                    while state.ends.pop_if(|end| *end <= slice.at).is_some() {}
                    state.ends.push(slice.end);
                    state.ends.len() - 1
                }
                Owner::Operations(..) => {
                    let free = state.ends.iter().position(|end| *end <= slice.at);
                    let row = free.unwrap_or(state.ends.len().min(MAX_ROWS));
                    match state.ends.get_mut(row) {
                        Some(end) => *end = slice.end,
                        None => state.ends.push(slice.end),
                    }
                    row
                }
            };
            if !shown.contains(&slice.track) {
                continue;
            }
            if row >= MAX_ROWS {
                deep += 1;
                continue;
            }
            let row = row as u32;
            state.rows = state.rows.max(row + 1);
            let Slice { at, end, track, what } = slice;
            let (bar_from, bar_to) = (at.clamp(from, to), end.clamp(from, to));
            bars.push(Bar { track, row, from: bar_from, to: bar_to, count: 1, what, begin: at, end });
        }
    };
    std::mem::take(&mut collector.slices).finish(|bytes| {
        let slice = Slice::decode(bytes)?;
        if together.first().is_some_and(|first| first.at != slice.at) || together.len() == MAX_TOGETHER {
            flush(&mut together, &mut states);
        }
        while let Some(flow) = flows.next_if(|flow| flow.at < slice.at) {
            spots.push(spot(flow, &states));
        }
        together.push(slice);
        Ok(())
    })?;
    flush(&mut together, &mut states);
    spots.extend(flows.map(|flow| spot(flow, &states)));
    let bars = bars.finish(MAX_BARS);
    let rows = states.iter().map(|state| state.rows).collect();
    Ok(Placed { bars, rows, spots, track_of_thread, deep })
}
