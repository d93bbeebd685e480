//! When a slice began and ended, and in which order that was recorded.

use std::cmp::Reverse;

/// A slice of a track.
///
/// `begun` and `ended` count the records of the track's slices, in the order of times for parts that the file
/// has in another order. A complete record is one record; a pair has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it began, in nanoseconds.
    pub begin: u64,
    /// When it ended, in nanoseconds; [`u64::MAX`] if it did not.
    pub end: u64,
    /// The number of the record that begins it.
    pub begun: u64,
    /// The number of the record that ends it.
    pub ended: u64,
}

/// The order in which slices around another one end: the first is its parent.
pub(crate) type Around = (u64, Reverse<u64>, Reverse<u64>);

impl Interval {
    /// Whether it has two records.
    #[inline]
    #[must_use]
    pub const fn is_pair(&self) -> bool {
        self.begun != self.ended
    }

    /// Whether it takes no time.
    #[inline]
    #[must_use]
    pub const fn is_instant(&self) -> bool {
        self.begin == self.end
    }

    /// How long it lasted, in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn duration(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Whether another slice of the same track is inside of it.
    //= docs/meaning.md#what-is-inside-what
    #[inline]
    #[must_use]
    pub const fn encloses(&self, inner: &Self) -> bool {
        if self.is_pair() && inner.is_pair() {
            return self.begun < inner.begun && inner.ended < self.ended;
        }
        if inner.is_instant() {
            let is_before = self.begin < inner.begin || self.begin == inner.begin && self.begun < inner.begun;
            let is_behind =
                self.end > inner.end || self.is_pair() && self.end == inner.end && self.ended > inner.ended;
            return is_before && is_behind;
        }
        self.begin < inner.begin && self.end >= inner.end
            || self.begin == inner.begin
                && (self.end > inner.end || self.end == inner.end && self.begun < inner.begun)
    }

    /// Its place among those around a slice.
    pub(crate) const fn around(&self) -> Around {
        (self.end, Reverse(self.begin), Reverse(self.begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn complete(begin: u64, end: u64, record: u64) -> Interval {
        Interval { begin, end, begun: record, ended: record }
    }

    const fn pair(begin: u64, end: u64, begun: u64, ended: u64) -> Interval {
        Interval { begin, end, begun, ended }
    }

    #[test]
    fn nothing_is_inside_of_itself() {
        for slice in [complete(0, 10, 1), complete(5, 5, 1), pair(0, 10, 1, 2), pair(5, 5, 1, 2)] {
            assert!(!slice.encloses(&slice), "{slice:?}");
        }
        // A record is not before itself.
        for (outer, inner) in [
            (pair(0, 10, 1, 5), pair(2, 8, 1, 3)),
            (pair(0, 10, 1, 5), pair(2, 8, 2, 5)),
            (complete(5, 9, 1), complete(5, 5, 1)),
            (pair(0, 5, 1, 3), complete(5, 5, 3)),
        ] {
            assert!(!outer.encloses(&inner), "{outer:?} {inner:?}");
        }
    }

    //= docs/meaning.md#what-is-inside-what
    #[test]
    fn times_decide_about_complete_records_and_then_the_order_of_records() {
        for (outer, inner, expected) in [
            // An earlier begin, a later end, an earlier record.
            (complete(0, 10, 2), complete(1, 9, 1), true),
            (complete(0, 10, 2), complete(1, 10, 1), true),
            (complete(0, 10, 1), complete(0, 9, 2), true),
            (complete(0, 10, 2), complete(0, 9, 1), true),
            (complete(0, 10, 1), complete(0, 10, 2), true),
            (complete(0, 10, 2), complete(0, 10, 1), false),
            (complete(0, 10, 1), complete(5, 11, 2), false),
            (complete(5, 11, 2), complete(0, 10, 1), false),
            (complete(0, 10, 1), complete(10, 11, 2), false),
            // Of length 0.
            (complete(0, 10, 2), complete(5, 5, 1), true),
            (complete(5, 10, 2), complete(5, 5, 1), false),
            (complete(5, 10, 1), complete(5, 5, 2), true),
            (complete(0, 5, 1), complete(5, 5, 2), false),
            (complete(0, 5, 2), complete(5, 5, 1), false),
            (complete(5, 5, 1), complete(5, 5, 2), false),
            (complete(5, 5, 1), complete(5, 6, 2), false),
            // A pair is open until the record of its end.
            (pair(0, 5, 1, 3), complete(5, 5, 2), true),
            (pair(0, 5, 1, 2), complete(5, 5, 3), false),
            (pair(5, 5, 1, 3), complete(5, 5, 2), true),
            (pair(5, 9, 2, 3), complete(5, 5, 1), false),
            (pair(0, 5, 1, 2), complete(3, 5, 3), true),
            (pair(0, 5, 1, 3), complete(0, 5, 2), true),
            (complete(0, 5, 1), pair(0, 5, 2, 3), true),
            (complete(0, 5, 3), pair(0, 5, 1, 2), false),
            (complete(0, 5, 3), pair(5, 5, 1, 2), false),
        ] {
            assert_eq!(outer.encloses(&inner), expected, "{outer:?} {inner:?}");
        }
    }

    //= docs/meaning.md#what-is-inside-what
    #[test]
    fn the_order_of_records_decides_about_pairs() {
        let first = pair(5, 5, 1, 2);
        assert!(!first.encloses(&pair(5, 5, 3, 4)));
        assert!(pair(5, 5, 1, 4).encloses(&pair(5, 5, 2, 3)));
        assert!(!pair(5, 5, 2, 3).encloses(&pair(5, 5, 1, 4)));
        assert!(!first.encloses(&first));
    }

    #[test]
    fn an_interval_has_a_length() {
        assert_eq!((complete(3, 10, 1).duration(), complete(10, 3, 1).duration()), (7, 0));
        assert!(complete(3, 3, 1).is_instant() && !complete(3, 4, 1).is_instant());
        assert!(pair(3, 3, 1, 2).is_pair() && !complete(3, 4, 1).is_pair());
    }
}
