//! Where slices are in each other, while they come one after the other in the order in which they end.
//!
//! A slice is around those that ended before it and began behind its begin. A track's roots are the slices
//! that no other one has been around yet: they are in the order of their begins, and of their ends.

use crate::interval::Interval;

/// A slice that is in no other one yet, or several behind each other, and what the caller knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Root<T> {
    /// Its times and records.
    pub interval: Interval,
    /// The caller's.
    pub of: T,
    /// The time of several that it stands for, in nanoseconds.
    merged: Option<u64>,
}

/// The roots of a track.
#[derive(Debug)]
pub struct Roots<T> {
    slices: Vec<Root<T>>,
    last_end: u64,
}

/// A slice does not end in the order of the others, or what it is around is not known any more: the slices
/// of the track have to be sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfOrder;

/// What is known of a slice that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The time in which slices directly in it lasted, in nanoseconds.
    pub inside: u64,
    /// Whether a reader errs that takes the order of records for that of the nesting: the slice overlaps one
    /// that ended before it, or begins together with a shorter one that was recorded before it. Or it begins
    /// where another one ends whose record comes later, or ends where another one begins whose record came
    /// before.
    pub is_odd: bool,
}

impl<T> Root<T> {
    /// The time that it takes before another root begins. What it takes behind that, it takes all the
    /// time: it is the time of the last one that it stands for, which began before the other one.
    #[inline]
    const fn time_before(&self, other: u64) -> u64 {
        let Self { interval, merged, .. } = self;
        let time = match *merged {
            Some(time) => time,
            None => interval.duration(),
        };
        time.saturating_sub(interval.end.saturating_sub(other))
    }
}

impl<T> Default for Roots<T> {
    fn default() -> Self {
        Self { slices: Vec::new(), last_end: 0 }
    }
}

impl<T: Copy> Roots<T> {
    /// Slices in the order of their ends, of which none is in another.
    pub fn of(slices: impl Iterator<Item = (Interval, T)>) -> Self {
        let slices: Vec<_> = slices.map(|(interval, of)| Root { interval, of, merged: None }).collect();
        Self { last_end: slices.last().map_or(0, |last| last.interval.end), slices }
    }

    /// Adds the slice that has ended next. The function gets those that are directly in it; `beside` is empty
    /// memory, and is so again afterwards.
    ///
    /// # Errors
    /// The slice should have come earlier.
    #[inline]
    pub fn add(
        &mut self,
        interval: Interval,
        of: T,
        beside: &mut Vec<Root<T>>,
        inner: impl FnMut(&Root<T>),
    ) -> Result<Added, OutOfOrder> {
        if interval.end < self.last_end {
            return Err(OutOfOrder);
        }
        let (added, is_in_order) = self.push(interval, of, beside, inner);
        if is_in_order { Ok(added) } else { Err(OutOfOrder) }
    }

    /// The same for a caller who cannot sort: what is directly in the slice is what has come before it; of
    /// [merged](Self::merge) slices that lie around its begin, none is.
    #[inline]
    pub fn add_anyway(&mut self, interval: Interval, of: T, beside: &mut Vec<Root<T>>) -> Added {
        if interval.end < self.last_end {
            return Added { inside: 0, is_odd: true };
        }
        self.push(interval, of, beside, |_| ()).0
    }

    /// Adds a slice that does not end before the last one; false if it should have come earlier all the same.
    #[inline]
    fn push(
        &mut self,
        interval: Interval,
        of: T,
        beside: &mut Vec<Root<T>>,
        mut inner: impl FnMut(&Root<T>),
    ) -> (Added, bool) {
        let Self { slices, last_end } = self;
        *last_end = interval.end;
        let mut added = Added { inside: 0, is_odd: false };
        let mut covered = u64::MAX;
        while let Some(root) = slices.last() {
            // Most of the last ones end before.
            if root.interval.end <= interval.begin && root.interval.begin < interval.begin {
                break;
            }
            if interval.encloses(&root.interval) {
                let time = root.time_before(covered);
                let Interval { begin, end, .. } = root.interval;
                added.inside = added.inside.saturating_add(time);
                let is_recorded_first = root.interval.begun < interval.begun;
                added.is_odd |= begin == interval.begin && begin != end && is_recorded_first;
                covered = begin;
                inner(root);
                slices.pop();
            } else if root.interval.begin >= interval.end && !interval.is_instant() {
                // What is recorded before the end of a slice may begin where that is.
                beside.extend(slices.pop());
                added.is_odd = true;
            } else {
                break;
            }
        }
        let mut is_in_order = true;
        if let Some(before) = slices.last() {
            let Interval { end, ended, .. } = before.interval;
            if end > interval.begin {
                is_in_order = before.merged.is_none() && !before.interval.encloses(&interval);
                added.is_odd = true;
            } else {
                added.is_odd |= end == interval.begin && interval.begun < ended;
            }
        }
        slices.push(Root { interval, of, merged: None });
        if !beside.is_empty() {
            slices.extend(beside.drain(..).rev());
        }
        (added, is_in_order)
    }

    /// Adds the pair that has ended next to pairs alone: the order of their records decides. Returns how many
    /// roots there are more.
    #[inline]
    pub(crate) fn add_pair(&mut self, interval: Interval, of: T) -> isize {
        let before = self.slices.len();
        while self.slices.pop_if(|inner| inner.interval.begun > interval.begun).is_some() {}
        self.slices.push(Root { interval, of, merged: None });
        self.last_end = interval.end;
        self.slices.len() as isize - before as isize
    }

    /// The roots that end at a time or later, the last one first.
    pub(crate) fn since(&self, at: u64) -> impl Iterator<Item = &Interval> {
        self.slices.iter().rev().map(|root| &root.interval).take_while(move |root| root.end >= at)
    }

    /// When the last slice ended; 0 before there is one.
    pub(crate) const fn last_end(&self) -> u64 {
        self.last_end
    }

    /// How many roots there are.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slices.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// Merges each so many of the older half. What is around all of them has the same time in it as before;
    /// what begins in the middle of them is out of order.
    #[cold]
    pub fn merge(&mut self, each: usize) {
        let (old, new) = self.slices.split_at(self.slices.len() / 2);
        let merged = old.chunks(each.max(1)).filter_map(|some| {
            let ([first, ..], [.., last]) = (some, some) else { return None };
            let (begin, begun) = (first.interval.begin, first.interval.begun);
            let interval = Interval { begin, begun, ..last.interval };
            let (mut covered, mut time) = (u64::MAX, 0_u64);
            for root in some.iter().rev() {
                time = time.saturating_add(root.time_before(covered));
                covered = root.interval.begin;
            }
            Some(Root { interval, of: last.of, merged: Some(time) })
        });
        self.slices = merged.chain(new.iter().copied()).collect();
    }
}
