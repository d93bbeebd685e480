//! The order of a table's rows in time, found in a pass before the one that writes them.
//!
//! Rows come nearly in order. A row is *late* if many rows before it have a later time: a slice that lasts
//! long, whose row comes when it ends, or a provider whose buffer came after another's. Late rows are
//! collected before, so that few rows wait for others.

use super::store::{Block, Watcher};
use super::{KINDS, Kind, Type};
use std::io;

/// Rows that are looked at together; few in tests, so that small traces have many.
pub const BATCH_ROWS: u64 = if cfg!(test) { 16 } else { 1 << 13 };
/// A row is late if rows of so many batches before are later.
const WINDOW: u64 = if cfg!(test) { 4 } else { 16 };
/// Rows for which the earliest time is known together.
const CHUNK_ROWS: u64 = if cfg!(test) { 4 } else { 256 };
/// The time of rows without one, which come first.
pub const NO_TIME: i64 = i64::MIN;

/// The order of all tables.
#[derive(Debug, Default)]
pub struct Order {
    tables: [TableOrder; KINDS],
}

impl Watcher for Order {
    fn again(&mut self) {
        *self = Self::default();
    }

    fn rows(&mut self, kind: Kind, rows: usize, columns: &[(usize, &Block)]) -> io::Result<()> {
        let Some(ts) = ts_of(kind) else { return Ok(()) };
        let Some((_, block)) = columns.iter().find(|(place, _)| *place == ts) else { return Ok(()) };
        let order = &mut self.tables[kind as usize];
        (0..rows).for_each(|row| order.push(block.get(row).map_or(NO_TIME, |ts| ts as i64)));
        Ok(())
    }
}

#[derive(Debug, Default)]
struct TableOrder {
    /// How many there are so far.
    rows: u64,
    /// A bit for each row that is late.
    late: Vec<u64>,
    has_late: bool,
    /// The latest time in each batch and those before it.
    latest: Vec<i64>,
    /// The earliest time in each chunk and those behind it, without rows that are late.
    earliest: Vec<i64>,
}

/// The place of a table's times.
pub fn ts_of(kind: Kind) -> Option<usize> {
    kind.table().columns.iter().position(|column| *column == ("ts", Type::Integer))
}

/// The columns that a first pass has to find.
pub fn columns() -> Vec<(Kind, u64)> {
    Kind::ALL.iter().filter_map(|kind| Some((*kind, 1 << ts_of(*kind)?))).collect()
}

impl Order {
    /// All rows were seen.
    pub fn finish(&mut self) {
        self.tables.iter_mut().for_each(TableOrder::finish);
    }

    /// Whether a row is late.
    #[inline]
    pub fn is_late(&self, kind: Kind, row: u64) -> bool {
        let TableOrder { late, has_late, .. } = &self.tables[kind as usize];
        *has_late && late.get((row / 64) as usize).is_some_and(|bits| bits >> (row % 64) & 1 != 0)
    }

    /// Whether a table has late rows.
    pub fn has_late(&self, kind: Kind) -> bool {
        self.tables[kind as usize].has_late
    }

    /// The time before which there are no rows from this one on, unless they are late.
    pub fn bound(&self, kind: Kind, row: u64) -> i64 {
        self.tables[kind as usize].bound(row)
    }
}

impl TableOrder {
    fn bound(&self, row: u64) -> i64 {
        self.earliest.get((row / CHUNK_ROWS) as usize).copied().unwrap_or(i64::MAX)
    }

    /// The time before which a row is late.
    fn late_before(&self, row: u64) -> i64 {
        let before = (row / BATCH_ROWS).checked_sub(WINDOW);
        before.and_then(|batch| self.latest.get(batch as usize)).copied().unwrap_or(i64::MIN)
    }

    fn push(&mut self, ts: i64) {
        let row = self.rows;
        self.rows += 1;
        if row.is_multiple_of(BATCH_ROWS) {
            self.latest.push(self.latest.last().copied().unwrap_or(i64::MIN));
        }
        if row.is_multiple_of(CHUNK_ROWS) {
            self.earliest.push(i64::MAX);
        }
        if ts < self.late_before(row) {
            self.late.resize((row / 64) as usize + 1, 0);
            if let Some(bits) = self.late.last_mut() {
                *bits |= 1 << (row % 64);
            }
            self.has_late = true;
        } else if let Some(latest) = self.latest.last_mut() {
            *latest = ts.max(*latest);
            if let Some(earliest) = self.earliest.last_mut() {
                *earliest = ts.min(*earliest);
            }
        }
    }

    /// All rows were pushed.
    fn finish(&mut self) {
        let mut earliest = i64::MAX;
        for chunk in self.earliest.iter_mut().rev() {
            earliest = earliest.min(*chunk);
            *chunk = earliest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_behind_the_window_are_late() {
        let mut order = TableOrder::default();
        let rows = 10 * BATCH_ROWS;
        // The last row of every batch but one began with the trace; the one comes from the future.
        let ts = |row: u64| match row % BATCH_ROWS {
            last if last == BATCH_ROWS - 1 && row > 8 * BATCH_ROWS => i64::MAX,
            last if last == BATCH_ROWS - 1 => 7,
            _ => row as i64,
        };
        (0..rows).for_each(|row| order.push(ts(row)));
        order.finish();
        let late: Vec<u64> = (0..rows)
            .filter(|row| order.late.get(*row as usize / 64).is_some_and(|bits| bits >> (row % 64) & 1 != 0))
            .collect();
        assert_eq!(late, [5, 6, 7, 8].map(|batch| batch * BATCH_ROWS - 1));
        for row in 0..rows {
            let later = (row..rows).filter(|row| !late.contains(row)).map(ts).min();
            assert!(order.bound(row) <= later.unwrap(), "{row}");
        }
        assert_eq!(order.late_before(6 * BATCH_ROWS), (3 * BATCH_ROWS - 2) as i64);
        // Rows that are in order do not wait.
        assert_eq!(order.bound(6 * BATCH_ROWS), (6 * BATCH_ROWS) as i64);
    }
}
