//! Bars of a row: slices one by one if they are wide enough to be seen, and together if they are not.

/// More bars than these are merged while they are collected.
const MAX_COLLECTED: usize = 60_000;
/// Bars of a picture.
pub const MAX_BARS: usize = 8000;

/// One slice, or several that are drawn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    pub track: u32,
    pub row: u32,
    pub from: u64,
    pub to: u64,
    /// How many slices it is.
    pub count: u64,
    /// The name of the longest, its begin and its end.
    pub what: u32,
    pub begin: u64,
    pub end: u64,
}

impl Bar {
    fn width(&self) -> u64 {
        self.to - self.from
    }

    fn longest(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Adds a bar of the same row, which begins later.
    fn add(&mut self, other: &Self) {
        self.to = self.to.max(other.to);
        self.count += other.count;
        if other.longest() > self.longest() {
            (self.what, self.begin, self.end) = (other.what, other.begin, other.end);
        }
    }
}

/// Bars of all rows, which are merged where they are narrower than a limit.
pub struct Bars {
    list: Vec<Bar>,
    /// Bars that are narrower are drawn together, if no more than that is between them.
    narrow: u64,
}

impl Bars {
    /// Bars narrower than `narrow`, in nanoseconds, are merged.
    pub fn new(narrow: u64) -> Self {
        Self { list: Vec::new(), narrow: narrow.max(1) }
    }

    /// Adds a bar; of one row, in the order of their times.
    pub fn push(&mut self, bar: Bar) {
        self.list.push(bar);
        if self.list.len() >= MAX_COLLECTED {
            self.shrink(MAX_COLLECTED / 2);
        }
    }

    /// Merges ever wider bars, until there are no more than so many.
    fn shrink(&mut self, most: usize) {
        self.merge();
        while self.list.len() > most && self.narrow < u64::MAX / 4 {
            self.narrow *= 2;
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.list.sort_by_key(|bar| (bar.track, bar.row, bar.from));
        let mut merged: Vec<Bar> = Vec::with_capacity(self.list.len());
        for bar in &self.list {
            let last = merged.last_mut().filter(|last| (last.track, last.row) == (bar.track, bar.row));
            let is_narrow = |bar: &Bar| bar.count > 1 || bar.width() < self.narrow;
            match last {
                // A bar of several stays one of several, however wide it gets.
                Some(last)
                    if is_narrow(last)
                        && is_narrow(bar)
                        && bar.from <= last.to.saturating_add(self.narrow) =>
                {
                    last.add(bar);
                }
                _ => merged.push(*bar),
            }
        }
        self.list = merged;
    }

    /// All bars by track, row and time, at most so many.
    pub fn finish(mut self, most: usize) -> Vec<Bar> {
        self.shrink(most);
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(row: u32, from: u64, to: u64, what: u32) -> Bar {
        Bar { track: 0, row, from, to, count: 1, what, begin: from, end: to }
    }

    fn merged(bars: &[Bar], narrow: u64, most: usize) -> Vec<(u32, u64, u64, u64, u32)> {
        let mut all = Bars::new(narrow);
        bars.iter().for_each(|bar| all.push(*bar));
        let bars = all.finish(most);
        bars.iter().map(|bar| (bar.row, bar.from, bar.to, bar.count, bar.what)).collect()
    }

    #[test]
    fn narrow_bars_that_are_close_are_one_and_say_which_is_the_longest() {
        let bars = [
            bar(0, 0, 100, 1),
            bar(1, 0, 3, 2),
            bar(1, 5, 9, 3),
            bar(1, 12, 14, 4),
            bar(1, 14, 40, 5),
            bar(1, 41, 42, 6),
            bar(1, 60, 61, 7),
        ];
        let expected =
            [(0, 0, 100, 1, 1), (1, 0, 14, 3, 3), (1, 14, 40, 1, 5), (1, 41, 42, 1, 6), (1, 60, 61, 1, 7)];
        assert_eq!(merged(&bars, 10, 99), expected);
    }

    #[test]
    fn there_are_never_more_bars_than_allowed() {
        let bars: Vec<Bar> = (0..1000)
            .map(|place| bar(place % 3, u64::from(place) * 10, u64::from(place) * 10 + 5, place))
            .collect();
        let found = merged(&bars, 1, 10);
        assert!(found.len() <= 10, "{found:?}");
        assert_eq!(found.iter().map(|bar| bar.3).sum::<u64>(), 1000);
        let many = (0..200_000_u64).map(|place| bar(0, place * 10, place * 10 + 5, 0)).collect::<Vec<_>>();
        assert_eq!(merged(&many, 1, 8000).iter().map(|bar| bar.3).sum::<u64>(), 200_000);
    }
}
