//! The rows in which a track's slices are drawn: each below the one that it is in, where no other one is.

use crate::interval::Interval;

/// If so many rows below its parent have other slices when a slice begins, it is drawn over one of these.
const MAX_TAKEN: usize = 200;

/// The rows of a track, whose slices come in the order of their begins, an outer one before those in it.
#[derive(Debug, Default)]
pub struct TrackRows {
    /// When the last slice of each ends.
    ends: Vec<u64>,
}

impl TrackRows {
    /// The row of a slice that begins, below that of its parent, and whether another one is there.
    pub fn begin(&mut self, slice: &Interval, parent: Option<usize>) -> (usize, bool) {
        let first = parent.map_or(0, |row| row + 1);
        let last = first + MAX_TAKEN;
        let is_free = |row: &usize| self.ends.get(*row).is_none_or(|end| *end <= slice.begin);
        let row = (first..last).find(is_free).unwrap_or(last);
        if self.ends.len() <= row {
            self.ends.resize(row + 1, 0);
        }
        let is_taken = self.ends[row] > slice.begin;
        self.ends[row] = slice.end;
        (row, is_taken)
    }

    /// The row of the innermost slice that has not ended before a time.
    #[must_use]
    pub fn innermost(&self, at: u64) -> Option<usize> {
        self.ends.iter().rposition(|end| *end >= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::slices;
    use crate::{Place, Placing};
    use proptest::prelude::*;
    use std::io;

    const fn slice(begin: u64, end: u64) -> Interval {
        Interval { begin, end, begun: 0, ended: 0 }
    }

    #[test]
    fn what_overlaps_is_in_a_row_of_its_own() {
        let mut rows = TrackRows::default();
        assert_eq!(rows.begin(&slice(0, 20), None), (0, false));
        assert_eq!(rows.begin(&slice(1, 5), Some(0)), (1, false));
        assert_eq!(rows.begin(&slice(5, 7), Some(0)), (1, false));
        // It overlaps the first one; what is in that has to go around it.
        assert_eq!(rows.begin(&slice(10, 40), None), (1, false));
        assert_eq!(rows.begin(&slice(12, 15), Some(0)), (2, false));
        assert_eq!((rows.innermost(15), rows.innermost(16), rows.innermost(41)), (Some(2), Some(1), None));
        assert_eq!(rows.begin(&slice(20, 21), None), (0, false));
    }

    #[test]
    fn rows_have_a_limit() {
        let mut rows = TrackRows::default();
        let placed: Vec<(usize, bool)> =
            (0..300).map(|begin| rows.begin(&slice(begin, 1000), None)).collect();
        assert_eq!(placed[..=200], (0..=200).map(|row| (row, false)).collect::<Vec<_>>());
        assert_eq!(placed[201..], [(200, true); 99]);
        assert_eq!(rows.begin(&slice(500, 600), Some(200)), (201, false));
    }

    /// The slices of each row.
    #[derive(Default)]
    struct Drawn(Vec<Vec<Interval>>);

    impl Place for Drawn {
        type Item = ();
        type Kept = usize;
        type Track = TrackRows;

        fn begin(
            &mut self,
            (_, rows): (u64, &mut TrackRows),
            slice: &Interval,
            (): (),
            parent: Option<(&Interval, &usize)>,
        ) -> io::Result<Option<usize>> {
            let (row, is_taken) = rows.begin(slice, parent.map(|(_, row)| *row));
            assert!(!is_taken);
            assert!(parent.is_none_or(|(_, parent)| *parent < row));
            self.0.resize_with(self.0.len().max(row + 1), Vec::new);
            self.0[row].push(*slice);
            Ok(Some(row))
        }
    }

    proptest! {
        #[test]
        fn no_slice_is_drawn_over_another(mut slices in slices()) {
            slices.sort_by_key(|slice| slice.begin);
            let mut placing = Placing::new(Drawn::default());
            slices.iter().for_each(|slice| placing.push(1, slice, ()).unwrap());
            placing.end().unwrap();
            let rows = placing.into_place().0;
            prop_assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), slices.len());
            for row in rows {
                prop_assert!(row.is_sorted_by(|a, b| a.end <= b.begin), "{row:?}");
            }
        }
    }
}
