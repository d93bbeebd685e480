//! The slices of a track that have not ended, while those of the track come in the order of their begins.

use crate::interval::{Around, Interval};
use foldhash::fast::RandomState;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

/// Open slices, with what is kept of each, in the order of their ends.
#[derive(Debug)]
pub(crate) struct Open<S> {
    /// Those that end first, the next one last: slices that do not overlap need no tree.
    stack: Vec<(Interval, S)>,
    /// All others.
    tree: BTreeMap<Around, (Interval, S)>,
}

/// How many slices of the stack may end before one that is added below them.
const NEAR: usize = 8;

impl<S> Default for Open<S> {
    fn default() -> Self {
        Self { stack: Vec::new(), tree: BTreeMap::new() }
    }
}

/// A slice among those that begin together, and the one that it is directly in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Its place in the list.
    pub index: usize,
    pub parent: Option<Around>,
}

impl<S> Open<S> {
    pub fn insert(&mut self, interval: Interval, state: S) {
        let Self { stack, tree } = self;
        let (key, new) = (interval.around(), (interval, state));
        let above = stack.iter().rev().take(NEAR).position(|(open, _)| open.around() > key);
        match above {
            Some(above) => stack.insert(stack.len() - above, new),
            None if stack.len() > NEAR => {
                tree.extend(stack.drain(..).map(|open| (open.0.around(), open)));
                tree.insert(key, new);
            }
            None if tree.first_key_value().is_none_or(|(first, _)| *first > key) => stack.insert(0, new),
            None => _ = tree.insert(key, new),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.stack.is_empty() && self.tree.is_empty()
    }

    /// The slice that ends next, if there is no tree.
    #[inline]
    pub fn innermost(&mut self) -> Option<&mut (Interval, S)> {
        if self.tree.is_empty() { self.stack.last_mut() } else { None }
    }

    /// Adds a slice that ends before all others.
    #[inline]
    pub fn push(&mut self, interval: Interval, state: S) {
        self.stack.push((interval, state));
    }

    pub fn of(&mut self, around: &Around) -> Option<&mut (Interval, S)> {
        match self.stack.binary_search_by(|(open, _)| around.cmp(&open.around())) {
            Ok(place) => self.stack.get_mut(place),
            Err(_) => self.tree.get_mut(around),
        }
    }

    /// Removes the next slice that ends before a time.
    #[inline]
    pub fn pop_before(&mut self, time: u64) -> Option<(Interval, S)> {
        let next = match self.stack.last() {
            Some((next, _)) => next.end,
            None => self.tree.first_key_value()?.0.0,
        };
        if next < time { self.pop() } else { None }
    }

    /// Removes the slice that ends next.
    #[inline]
    pub fn pop(&mut self) -> Option<(Interval, S)> {
        match self.stack.pop() {
            None => self.tree.pop_first().map(|(_, open)| open),
            next => next,
        }
    }

    /// Finds the parents of slices that begin together, at a time before which no open one ends. What is
    /// around a slice comes before it in the result.
    //= docs/meaning.md#what-is-inside-what
    pub fn parents(&self, together: &[Interval]) -> Vec<Placed> {
        if let [one] = together
            && !one.is_instant()
        {
            return vec![Placed { index: 0, parent: self.behind(&one.around()) }];
        }
        let Some(at) = together.first().map(|first| first.begin) else { return Vec::new() };
        let mut by_record: Vec<usize> = (0..together.len()).collect();
        by_record.sort_unstable_by_key(|index| together[*index].begun);
        let mut longer: BTreeSet<Around> = BTreeSet::new();
        let mut instants = Instants::new(self.ending_pairs(at));
        let mut placed = Vec::with_capacity(together.len());
        let mut inside: HashMap<Around, Vec<Placed>, RandomState> = HashMap::default();
        // Those of length 0 are in what an earlier record begins.
        for index in by_record.iter().copied() {
            let slice = together[index];
            if !slice.is_instant() {
                longer.insert(slice.around());
                continue;
            }
            let (parent, of_now) = instants.parent(&slice).unwrap_or_else(|| {
                let of_before = self.behind(&(at, Reverse(0), Reverse(0)));
                let of_now = longer.first().copied();
                let parent = of_before.into_iter().chain(of_now).min();
                (parent, of_now.filter(|of_now| parent == Some(*of_now)))
            });
            if slice.is_pair() {
                instants.open.push((slice, of_now));
            }
            match of_now {
                Some(of_now) => inside.entry(of_now).or_default(),
                None => &mut placed,
            }
            .push(Placed { index, parent });
        }
        let mut outer_first: Vec<usize> =
            by_record.into_iter().filter(|index| !together[*index].is_instant()).collect();
        outer_first.sort_by_key(|index| Reverse(together[*index].end));
        for index in outer_first {
            let around = together[index].around();
            let of_now = longer.range((Excluded(around), Unbounded)).next().copied();
            placed.push(Placed { index, parent: self.behind(&around).into_iter().chain(of_now).min() });
            // Whatever else is in it has later records.
            placed.extend(inside.remove(&around).into_iter().flatten());
        }
        placed
    }

    /// The open slice that ends next behind another.
    #[inline]
    pub fn behind(&self, around: &Around) -> Option<Around> {
        let count = self.stack.partition_point(|(open, _)| open.around() > *around);
        match count.checked_sub(1).and_then(|place| self.stack.get(place)) {
            Some((next, _)) => Some(next.around()),
            None => self.tree.range((Excluded(*around), Unbounded)).next().map(|(key, _)| *key),
        }
    }

    /// Pairs that end at a time, in the order of their ends.
    fn ending_pairs(&self, at: u64) -> Vec<Interval> {
        let open = self.stack.iter().rev().chain(self.tree.values());
        let ending = open.map(|(interval, _)| *interval).take_while(|interval| interval.end <= at);
        let mut ending: Vec<Interval> = ending.filter(Interval::is_pair).collect();
        ending.sort_unstable_by_key(|interval| interval.ended);
        ending
    }
}

/// Pairs that a slice of length 0 may be in because its record stands before that of their end.
struct Instants {
    /// Those that began before, the next one first.
    ending: std::iter::Peekable<std::vec::IntoIter<Interval>>,
    /// Those of length 0, the innermost last, and the longer one of the same begin that each is in.
    open: Vec<(Interval, Option<Around>)>,
}

impl Instants {
    fn new(ending: Vec<Interval>) -> Self {
        Self { ending: ending.into_iter().peekable(), open: Vec::new() }
    }

    /// The parent of the next slice in the order of records, and the longer one of the same begin that it is
    /// in.
    fn parent(&mut self, slice: &Interval) -> Option<(Option<Around>, Option<Around>)> {
        while self.open.pop_if(|(open, _)| open.ended < slice.begun).is_some() {}
        while self.ending.next_if(|ending| ending.ended < slice.begun).is_some() {}
        if let Some((open, longer)) = self.open.last() {
            return Some((Some(open.around()), *longer));
        }
        let ending = self.ending.peek().filter(|ending| ending.begun < slice.begun)?;
        Some((Some(ending.around()), None))
    }
}
