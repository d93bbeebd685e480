//! What has come since the last message, and how it is made small enough to be drawn.

use crate::entry::OPEN;
use crate::fold::Fold;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// Slices of a message that are passed on one by one, at most; of more, the longest so many.
pub const MAX_SLICES: usize = 2000;
/// Instants, flow events and log records of a message, and values of counters.
pub const MAX_POINTS: usize = 1000;
/// The width of an interval in which short slices are added up, at least: less than a pixel of some seconds.
const LEAST_WIDTH_NS: u64 = 1_000_000;

/// A slice: an entry of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub at: u64,
    /// How long it took; [`OPEN`] if it has not ended.
    pub length: u64,
    pub track: u32,
    pub what: u32,
}

/// A slice that has begun, and that pages may know: its track, its begin, and its name.
pub type Begun = (u32, u64, u32);

impl Slice {
    pub fn begun(&self) -> Begun {
        (self.track, self.at, self.what)
    }
}

/// Something at a moment: the number of its name, or of a counter its value as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub at: u64,
    pub track: u32,
    pub what: u64,
}

/// What comes between two messages.
#[derive(Debug, Default)]
pub struct Batch {
    pub slices: Vec<Slice>,
    pub points: Vec<Point>,
    pub samples: Vec<Point>,
    /// Points and samples that were left out, because an interval has one already.
    pub thinned: u64,
}

/// The width of the intervals of so many tracks, so that there are about `most` of them.
fn width(times: (u64, u64), tracks: usize, most: usize) -> u64 {
    let each = (most / tracks.max(1)).max(1) as u64;
    ((times.1 - times.0) / each).max(LEAST_WIDTH_NS)
}

fn span(times: impl Iterator<Item = (u32, u64)>) -> Option<((u64, u64), usize)> {
    let mut all: Option<(u64, u64)> = None;
    let mut tracks = Vec::new();
    for (track, at) in times {
        let (first, last) = all.get_or_insert((at, at));
        (*first, *last) = ((*first).min(at), (*last).max(at));
        if let Err(place) = tracks.binary_search(&track) {
            tracks.insert(place, track);
        }
    }
    all.map(|all| (all, tracks.len()))
}

/// A message, or a part of one.
pub type Object = serde_json::Map<String, Value>;

/// Adds a list to an object, unless it is empty.
pub fn add_list(out: &mut Object, name: &str, list: impl Iterator<Item = Value>) {
    let list: Vec<Value> = list.collect();
    if !list.is_empty() {
        out.insert(name.to_owned(), list.into());
    }
}

/// Times as differences: the first from a base, which may be later, the others from the one before.
fn differences(base: u64, times: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut before = base;
    times.map(|at| at.wrapping_sub(std::mem::replace(&mut before, at)) as i64).collect()
}

impl Batch {
    /// Adds everything to a message, and is empty then. Slices that pages knew to be open are passed on one
    /// by
    /// one however short they are, and are no longer among `known` then: pages would show them without an end
    /// otherwise.
    pub fn write(&mut self, base: u64, known: &mut HashSet<Begun>, out: &mut Object) {
        let folds = self.fold(known);
        // Of what begins at one time the longest is around the others, and of two that are equal the first.
        self.slices.sort_by_key(|slice| (slice.track, slice.at, Reverse(slice.length)));
        // 0 for those that have not ended.
        let length = |slice: &Slice| if slice.length == OPEN { 0 } else { slice.length + 1 };
        let slices = self.slices.chunk_by(|a, b| a.track == b.track).map(|slices| {
            let whats: Vec<u32> = slices.iter().map(|slice| slice.what).collect();
            let lengths: Vec<u64> = slices.iter().map(length).collect();
            json!([slices[0].track, differences(base, slices.iter().map(|slice| slice.at)), lengths, whats])
        });
        add_list(out, "slices", slices);
        let folds = folds.chunk_by(|a, b| a.0 == b.0).map(|folds| {
            let column = |of: fn(&Fold) -> u64| folds.iter().map(|(_, fold)| of(fold)).collect::<Vec<u64>>();
            let begins = differences(base, folds.iter().map(|(_, fold)| fold.from));
            let (lengths, whats) = (column(|fold| fold.to - fold.from + 1), column(|fold| fold.what.into()));
            json!([folds[0].0, begins, lengths, whats, column(|fold| fold.count), column(|fold| fold.sum)])
        });
        add_list(out, "folds", folds);
        let thinned = [&mut self.points, &mut self.samples].map(thin);
        self.thinned += thinned[0] + thinned[1];
        let columns = |points: &[Point], whats: Vec<Value>| {
            json!([points[0].track, differences(base, points.iter().map(|point| point.at)), whats])
        };
        let points = self.points.chunk_by(|a, b| a.track == b.track);
        add_list(out, "points", points.map(|of| columns(of, of.iter().map(|of| of.what.into()).collect())));
        let samples = self.samples.chunk_by(|a, b| a.track == b.track);
        let value = |of: &Point| f64::from_bits(of.what).into();
        add_list(out, "samples", samples.map(|of| columns(of, of.iter().map(value).collect())));
        self.slices.clear();
        self.points.clear();
        self.samples.clear();
    }

    /// Takes the shortest slices out where there are too many, and returns their sums, by track and time.
    fn fold(&mut self, known: &mut HashSet<Begun>) -> Vec<(u32, Fold)> {
        let is_too_many = self.slices.len() > MAX_SLICES;
        let mut kept = 0;
        for place in 0..if known.is_empty() { 0 } else { self.slices.len() } {
            let slice = &self.slices[place];
            if slice.length != OPEN && known.remove(&slice.begun()) && is_too_many {
                self.slices.swap(kept, place);
                kept += 1;
            }
        }
        let place = self.slices.len().saturating_sub(MAX_SLICES.max(kept));
        if place == 0 {
            return Vec::new();
        }
        let rest = &mut self.slices[kept..];
        let short = if place < rest.len() {
            rest.select_nth_unstable_by_key(place, |slice| slice.length).0
        } else {
            rest
        };
        let Some((times, tracks)) = span(short.iter().map(|slice| (slice.track, slice.at))) else {
            return Vec::new();
        };
        let width = width(times, tracks, MAX_SLICES);
        let mut folds: BTreeMap<(u32, u64), Fold> = BTreeMap::new();
        for slice in &*short {
            let Slice { at, length, track, what } = *slice;
            let fold = folds.entry((track, at / width));
            fold.and_modify(|fold| fold.add(at, length, what)).or_insert_with(|| Fold::of(at, length, what));
        }
        self.slices.drain(kept..kept + place);
        folds.into_iter().map(|((track, _), fold)| (track, fold)).collect()
    }
}

/// Sorts points by track and time; of too many only the last of an interval stays. How many are left out.
fn thin(points: &mut Vec<Point>) -> u64 {
    points.sort_by_key(|point| (point.track, point.at));
    if points.len() <= MAX_POINTS {
        return 0;
    }
    let Some((times, tracks)) = span(points.iter().map(|point| (point.track, point.at))) else { return 0 };
    let width = width(times, tracks, MAX_POINTS);
    let before = points.len();
    points.reverse();
    points.dedup_by_key(|point| (point.track, point.at / width));
    points.reverse();
    (before - points.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(batch: &mut Batch, base: u64) -> Value {
        let mut out = Object::new();
        batch.write(base, &mut HashSet::new(), &mut out);
        out.into()
    }

    #[test]
    fn few_slices_are_all_there_in_the_order_of_tracks_and_times() {
        let slice = |at, length, track, what| Slice { at, length, track, what };
        let mut batch = Batch {
            // A child, what is around it, one that begins with it, and one that has not ended.
            slices: vec![
                slice(20, 5, 1, 7),
                slice(10, 30, 1, 8),
                slice(10, 40, 0, 9),
                slice(20, 5, 1, 3),
                slice(50, OPEN, 1, 4),
            ],
            points: vec![Point { at: 9, track: 2, what: 1 }],
            samples: vec![
                Point { at: 30, track: 3, what: 1.5_f64.to_bits() },
                Point { at: 12, track: 3, what: 2.0_f64.to_bits() },
            ],
            thinned: 0,
        };
        assert_eq!(
            written(&mut batch, 10),
            json!({
                "slices": [[0, [0], [41], [9]], [1, [0, 10, 0, 30], [31, 6, 6, 0], [8, 7, 3, 4]]],
                "points": [[2, [-1], [1]]],
                "samples": [[3, [2, 18], [2.0, 1.5]]],
            })
        );
        assert_eq!(written(&mut batch, 10), json!({}));
    }

    #[test]
    fn of_many_the_longest_stay_and_sums_are_exact() {
        let mut batch = Batch::default();
        // On 3 threads, 60 ms of slices that follow each other.
        let length = |number: u64| if number.is_multiple_of(100) { 900 } else { number % 50 };
        for number in 0..60_000_u64 {
            batch.slices.push(Slice {
                at: number * 1000,
                length: length(number),
                track: (number % 3) as u32,
                what: 1,
            });
            batch.points.push(Point { at: number * 1000, track: 5, what: 2 });
        }
        let message = written(&mut batch, 0);
        let column = |name: &str, place: usize| -> Vec<u64> {
            let tracks = message[name].as_array().expect("tracks").iter();
            tracks
                .flat_map(|track| track[place].as_array().expect("a column"))
                .filter_map(Value::as_u64)
                .collect()
        };
        let one_by_one = column("slices", 2);
        assert_eq!(one_by_one.len(), MAX_SLICES);
        assert_eq!(one_by_one.iter().filter(|length| **length == 901).count(), 600);
        let (counts, sums) = (column("folds", 4), column("folds", 5));
        assert!(counts.len() <= 3 * 61, "{}", counts.len());
        assert_eq!(counts.iter().sum::<u64>() as usize + MAX_SLICES, 60_000);
        let all: u64 = (0..60_000).map(length).sum();
        assert_eq!(sums.iter().sum::<u64>() + one_by_one.iter().map(|length| length - 1).sum::<u64>(), all);
        let points = column("points", 2).len();
        assert!((60..=MAX_POINTS).contains(&points), "{points}");
        assert_eq!(batch.thinned, 60_000 - points as u64);
    }

    #[test]
    fn what_pages_know_to_be_open_is_never_drawn_together() {
        let mut batch = Batch::default();
        for number in 0..10_000 {
            // The first ones are the shortest.
            batch.slices.push(Slice { at: number, length: number, track: 1, what: 3 });
        }
        let never_ended = (1, 5, 4);
        let mut known: HashSet<Begun> = [(1, 7, 3), (1, 8, 3), never_ended].into();
        let mut message = Object::new();
        batch.write(0, &mut known, &mut message);
        assert_eq!(known, [never_ended].into());
        let lengths = message["slices"][0][2].as_array().expect("a column");
        assert_eq!((lengths.len(), &lengths[0], &lengths[1]), (MAX_SLICES, &json!(8), &json!(9)));
        let counts = message["folds"][0][4].as_array().expect("a column").iter();
        assert_eq!(counts.filter_map(Value::as_u64).sum::<u64>(), 10_000 - MAX_SLICES as u64);
    }
}
