//! Slices by chance, and where they are by a look at all others.

use crate::{Interval, Nested};
use proptest::collection::vec;
use proptest::prelude::*;

/// What happens on a track: a complete record of a length, that came so late, or a part of a pair.
#[derive(Clone, Copy, Debug)]
enum Record {
    Complete { length: u64, late: u64 },
    Begin,
    End,
}

fn record() -> impl Strategy<Value = Record> {
    prop_oneof![
        3 => (0..7_u64, 0..3_u64).prop_map(|(length, late)| Record::Complete { length, late }),
        2 => Just(Record::Begin),
        2 => Just(Record::End),
    ]
}

/// Slices of a track in the order of the records that end them; what is open at the end comes last.
pub fn slices() -> impl Strategy<Value = Vec<Interval>> {
    vec((record(), 0..3_u64), 0..40).prop_map(|records| {
        let (mut now, mut open, mut slices) = (10_u64, Vec::new(), Vec::new());
        for (number, (record, pause)) in (1..).zip(records) {
            now += pause;
            match record {
                Record::Complete { length, late } => {
                    let begin = now.saturating_sub(length + late);
                    slices.push(Interval { begin, end: begin + length, begun: number, ended: number });
                }
                Record::Begin => open.push((now, number)),
                Record::End => slices.extend(open.pop().map(|(begin, begun)| Interval {
                    begin,
                    end: now,
                    begun,
                    ended: number,
                })),
            }
        }
        let unended = (1000..).zip(open.into_iter().rev());
        slices.extend(unended.map(|(ended, (begin, begun))| Interval { begin, end: u64::MAX, begun, ended }));
        slices
    })
}

/// Where each slice is: directly in the one around it that ends first, and then begins last.
//= docs/meaning.md#what-is-inside-what
pub fn by_definition(slices: &[Interval]) -> Vec<Nested> {
    let parent = |inner: &Interval| {
        let around = (0..slices.len()).filter(|place| slices[*place].encloses(inner));
        around.min_by_key(|place| {
            let slice = slices[*place];
            // Of pairs that end together, the inner one ends first.
            let ended = if inner.is_instant() && slice.end == inner.end { slice.ended } else { 0 };
            (slice.end, ended, std::cmp::Reverse((slice.begin, slice.begun)))
        })
    };
    let parents: Vec<Option<usize>> = slices.iter().map(parent).collect();
    let depth = |mut place: usize| {
        let mut depth = 0;
        while let Some(parent) = parents[place] {
            (place, depth) = (parent, depth + 1);
        }
        depth
    };
    let own = |place: usize| {
        let slice = slices[place];
        let is_inside = |at: u64| {
            (0..slices.len()).any(|inner| {
                parents[inner] == Some(place) && (slices[inner].begin..slices[inner].end).contains(&at)
            })
        };
        (slice.end != u64::MAX).then(|| (slice.begin..slice.end).filter(|at| !is_inside(*at)).count() as u64)
    };
    (0..slices.len())
        .map(|place| Nested {
            of: place as u64,
            parent: parents[place].map(|parent| parent as u64),
            depth: depth(place),
            own: own(place),
        })
        .collect()
}
