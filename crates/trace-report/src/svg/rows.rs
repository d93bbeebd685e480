//! Puts the slices of the window into rows, those that are in others below them.

use super::collector::{Collector, Owner};
use super::layout::WIDTH;
use super::merge::{Bar, Bars, MAX_BARS};
use crate::entry::{Entry, Flow};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use trace_model::{Interval, Place, Placing, TrackRows};

/// Rows of a track; slices that are deeper are counted.
pub const MAX_ROWS: usize = 24;

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

/// Puts slices into rows.
struct Drawing<'a> {
    window: (u64, u64),
    shown: &'a BTreeSet<u32>,
    bars: Bars,
    rows: Vec<u32>,
    deep: u64,
}

impl Drawing<'_> {
    fn draw(&mut self, slice: &Entry, row: usize) {
        let (Entry { at, track, what, .. }, end) = (*slice, slice.end());
        if !self.shown.contains(&track) {
            return;
        }
        if row >= MAX_ROWS {
            self.deep += 1;
            return;
        }
        let (row, (from, to)) = (row as u32, self.window);
        let rows = &mut self.rows[track as usize];
        *rows = (*rows).max(row + 1);
        let (bar_from, bar_to) = (at.clamp(from, to), end.clamp(from, to));
        self.bars.push(Bar { track, row, from: bar_from, to: bar_to, count: 1, what, begin: at, end });
    }
}

impl Place for Drawing<'_> {
    type Item = Entry;
    /// The row.
    type Kept = usize;
    type Track = TrackRows;

    fn begin(
        &mut self,
        (_, rows): (u64, &mut TrackRows),
        interval: &Interval,
        slice: Entry,
        parent: Option<(&Interval, &usize)>,
    ) -> io::Result<Option<usize>> {
        let (row, _) = rows.begin(interval, parent.map(|(_, row)| *row));
        self.draw(&slice, row);
        Ok(Some(row))
    }
}

/// Places everything on the tracks that are shown.
pub fn place(collector: &mut Collector, shown: &BTreeSet<u32>) -> io::Result<Placed> {
    let (from, to) = collector.window;
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
    let bars = Bars::new(((to - from) as f64 / WIDTH) as u64);
    let rows = vec![0; tracks.len()];
    let mut placing = Placing::new(Drawing { window: (from, to), shown, bars, rows, deep: 0 });
    // The innermost slice of the thread at the time.
    let spot = |flow: Flow, placing: &Placing<Drawing<'_>>| {
        let rows = track_of_thread.get(&flow.thread).and_then(|track| placing.track(u64::from(*track)));
        let row = rows.and_then(|rows| rows.innermost(flow.at));
        Spot { flow, row: row.map(|row| row.min(MAX_ROWS - 1) as u32) }
    };
    let mut operations: BTreeMap<u32, TrackRows> = BTreeMap::new();
    std::mem::take(&mut collector.slices).finish(|bytes| {
        let (slice, _) = Entry::decode(bytes)?;
        if flows.peek().is_some_and(|flow| flow.at < slice.at) {
            placing.flush()?;
        }
        while let Some(flow) = flows.next_if(|flow| flow.at < slice.at) {
            spots.push(spot(flow, &placing));
        }
        match tracks[slice.track as usize] {
            Owner::Thread(_) => placing.push(slice.track.into(), &slice.interval(), slice),
            Owner::Operations(..) => {
                let (row, _) = operations.entry(slice.track).or_default().begin(&slice.interval(), None);
                placing.place().draw(&slice, row);
                Ok(())
            }
        }
    })?;
    placing.flush()?;
    spots.extend(flows.map(|flow| spot(flow, &placing)));
    let Drawing { bars, rows, deep, .. } = placing.into_place();
    Ok(Placed { bars: bars.finish(MAX_BARS), rows, spots, track_of_thread, deep })
}
