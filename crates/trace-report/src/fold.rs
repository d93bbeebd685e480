//! Slices that are too short to be drawn one by one, added up.

/// Some slices of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// When the first of them begins.
    pub from: u64,
    /// When the last of them has ended.
    pub to: u64,
    pub count: u64,
    pub sum: u64,
    /// The longest one's name.
    pub what: u32,
    longest: u64,
}

impl Fold {
    /// One slice.
    pub fn of(at: u64, length: u64, what: u32) -> Self {
        Self { from: at, to: at.saturating_add(length), count: 1, sum: length, what, longest: length }
    }

    /// Adds a slice.
    pub fn add(&mut self, at: u64, length: u64, what: u32) {
        self.from = self.from.min(at);
        self.to = self.to.max(at.saturating_add(length));
        self.count += 1;
        self.sum = self.sum.saturating_add(length);
        if length > self.longest {
            (self.longest, self.what) = (length, what);
        }
    }
}
