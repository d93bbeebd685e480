//! Where slices of a track are in each other, while they come in the order of their begins.

use crate::around::{Open, Placed};
use crate::interval::{Around, Interval};

/// The slices of a track that have not ended yet, and what the caller knows of them.
#[derive(Debug)]
pub struct Begins<T> {
    /// With how many are around each.
    open: Open<(T, u64)>,
}

/// Where a slice that begins is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun<T> {
    /// The slice that it is directly in.
    pub parent: Option<T>,
    /// How many are around it, of which each is directly in the next.
    pub depth: u64,
}

impl<T> Default for Begins<T> {
    fn default() -> Self {
        Self { open: Open::default() }
    }
}

impl<T: Copy> Begins<T> {
    /// Adds the next slice, which begins at a time of its own.
    #[inline]
    pub fn add(&mut self, interval: &Interval, of: T) -> Begun<T> {
        if interval.is_instant() {
            let mut begun = Begun { parent: None, depth: 0 };
            self.add_together(&[(*interval, of)], |_, found| begun = found);
            return begun;
        }
        if let Some((outer, (parent, depth))) = self.open.innermost_behind(interval.begin)
            && outer.around() > interval.around()
        {
            let (parent, depth) = (*parent, depth + 1);
            self.open.push(*interval, (of, depth));
            return Begun { parent: Some(parent), depth };
        }
        while self.open.pop_before(interval.begin.saturating_add(1)).is_some() {}
        let parent = self.open.behind(&interval.around());
        self.insert(interval, of, parent)
    }

    /// Adds all slices that begin at one time, the next one. The function gets where each is, by its place in
    /// the list.
    pub fn add_together(&mut self, together: &[(Interval, T)], mut take: impl FnMut(usize, Begun<T>)) {
        let Some((first, _)) = together.first() else { return };
        while self.open.pop_before(first.begin).is_some() {}
        let intervals: Vec<Interval> = together.iter().map(|(interval, _)| *interval).collect();
        for Placed { index, parent } in self.open.parents(&intervals) {
            let (interval, of) = &together[index];
            take(index, self.insert(interval, *of, parent));
        }
    }

    #[inline]
    fn insert(&mut self, interval: &Interval, of: T, parent: Option<Around>) -> Begun<T> {
        let parent = parent.and_then(|parent| self.open.of(&parent)).map(|(_, kept)| *kept);
        let depth = parent.map_or(0, |(_, depth)| depth + 1);
        self.open.insert(*interval, (of, depth));
        Begun { parent: parent.map(|(parent, _)| parent), depth }
    }
}
