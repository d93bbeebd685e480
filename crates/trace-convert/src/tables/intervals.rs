//! When the slices of rows began and ended, and in which order that was recorded.

use trace_model::Interval;

/// The greatest time that a table can have.
pub(super) const MAX_TIME: u64 = i64::MAX as u64;

/// Intervals of the rows of [`Kind::Slices`](super::Kind::Slices), in their order.
#[derive(Debug, Default)]
pub struct Intervals {
    next: RowOrder,
}

/// Where the records of a row's slice are among all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowOrder {
    /// The number of the row.
    pub row: u32,
    /// What [`Rows::pair`](super::Rows::pair) says, from 1, and 0 for a slice with one record.
    pub pair: u32,
}

impl Intervals {
    /// Takes what [`Rows::pair`](super::Rows::pair) says of the next row.
    pub fn pair(&mut self, rows: u64) {
        self.next.pair = u32::try_from(rows).unwrap_or(u32::MAX).saturating_add(1);
    }

    /// The order of the next row.
    #[inline]
    pub fn next_order(&mut self) -> RowOrder {
        let RowOrder { row, pair } = self.next;
        self.next = RowOrder { row: row.saturating_add(1), pair: 0 };
        RowOrder { row, pair }
    }

    /// The interval of the next row, with its time and its length in nanoseconds.
    #[inline]
    pub fn next(&mut self, ts: u64, dur: Option<u64>) -> Interval {
        self.next_order().interval(ts, dur)
    }
}

impl RowOrder {
    /// The interval of the row, with its time and its length in nanoseconds.
    #[inline]
    #[must_use]
    pub fn interval(self, ts: u64, dur: Option<u64>) -> Interval {
        interval(self.row.into(), ts, dur, self.pair.into())
    }
}

/// The interval of a row. `pair` is what [`RowOrder::pair`] says.
///
/// Rows come in the order in which ends were recorded. Rows of slices without an end come last, an outer
/// slice before what is in it.
#[inline]
pub(super) fn interval(row: u64, ts: u64, dur: Option<u64>, pair: u64) -> Interval {
    let ended = if dur.is_some() { (row + 1) << 32 } else { u64::MAX - row };
    let begun = match pair.checked_sub(1) {
        None => ended,
        // Between the ends of two rows, what began first has the later row, unless it did not end.
        Some(between) => {
            let order = between.min(u32::MAX.into());
            let order = if dur.is_some() { u64::from(u32::MAX) - order } else { order };
            row.saturating_sub(between) << 32 | order
        }
    };
    let end = dur.map_or(u64::MAX, |dur| ts.saturating_add(dur).min(MAX_TIME));
    Interval { begin: ts, end, begun, ended }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows come in the order of ends, and rows without an end come last.
    #[test]
    fn intervals_have_the_order_of_records() {
        // begin a, complete b, begin c and d, end d, complete e, end c, end a, begin f and g, complete h.
        let [b, d, e, c] = [(1, 0), (2, 1), (4, 0), (5, 3)].map(|(ts, pair)| (ts, Some(0), pair));
        let rows = [b, d, e, c, (0, Some(9), 5), (9, Some(0), 0), (9, None, 2), (9, None, 3)];
        let rows: Vec<Interval> =
            (0..).zip(rows).map(|(row, (ts, dur, pair))| interval(row, ts, dur, pair)).collect();
        let [b, d, e, c, a, h, f, g] = rows[..] else { panic!("rows") };
        let begun =
            [a.begun, b.begun, c.begun, d.begun, d.ended, e.ended, c.ended, a.ended, f.begun, g.begun];
        let records = [&begun[..], &[h.ended, g.ended, f.ended]].concat();
        assert!(records.is_sorted_by(|before, behind| before < behind), "{records:?}");
        assert!(!b.is_pair() && d.is_pair() && f.is_pair());
        assert_eq!((g.end, interval(0, u64::MAX >> 1, Some(7), 0).end), (u64::MAX, MAX_TIME));
    }
}
