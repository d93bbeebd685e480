//! Arrows of flows: from each begin or step to the steps and ends behind it.

use super::layout::{Layout, ROW};
use super::rows::{Placed, Spot};
use crate::entry::{Flow, LEFT_OUT};
use std::collections::BTreeMap;

/// Arrows of a picture.
const MAX_ARROWS: usize = 1000;

/// An arrow between two places: their times and heights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrow {
    pub from: (u64, f64),
    pub to: (u64, f64),
    pub what: u32,
    pub id: u64,
}

/// The arrows of a window.
#[derive(Debug, Default, PartialEq)]
pub struct Arrows {
    pub list: Vec<Arrow>,
    /// How many lead out of the window, or to tracks that are not shown.
    pub outside: u64,
    /// How many there is no room for.
    pub beyond: u64,
}

impl Arrows {
    /// Joins the parts of flows.
    pub fn of(flows: &[Flow], window: (u64, u64), placed: &Placed, layout: &Layout) -> Self {
        let mut sorted: Vec<&Flow> = flows.iter().collect();
        sorted.sort_unstable();
        let spots: BTreeMap<Flow, &Spot> = placed.spots.iter().map(|spot| (spot.flow, spot)).collect();
        let place = |flow: &Flow, tracks: &BTreeMap<u32, u32>| {
            let spot = spots.get(flow)?;
            let middle = layout.threads.get(&flow.thread).copied()?;
            let row = spot.row.zip(tracks.get(&flow.thread).and_then(|track| layout.tracks.get(track)));
            Some((flow.at, row.map_or(middle, |(row, y)| y + (f64::from(row) + 0.5) * ROW)))
        };
        let tracks = &placed.track_of_thread;
        let mut arrows = Self::default();
        let mut before: Option<&Flow> = None;
        for flow in sorted {
            let source = before.filter(|before| before.id == flow.id && flow.phase != 0);
            if let Some(source) = source
                && source.thread != LEFT_OUT
                && flow.thread != LEFT_OUT
                && flow.at >= window.0
                && source.at <= window.1
            {
                match place(source, tracks).zip(place(flow, tracks)) {
                    None => arrows.outside += 1,
                    Some(_) if arrows.list.len() == MAX_ARROWS => arrows.beyond += 1,
                    Some((from, to)) => {
                        arrows.list.push(Arrow { from, to, what: source.what, id: flow.id });
                    }
                }
            }
            // A flow may end in several places.
            if flow.phase != 2 || source.is_none() {
                before = (flow.phase != 2).then_some(flow);
            }
        }
        arrows
    }
}
