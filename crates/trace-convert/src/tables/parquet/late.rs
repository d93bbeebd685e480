//! Rows that come late: collected before the others, in the order of time.

use crate::tables::order::{NO_TIME, Order, ts_of};
use crate::tables::{Cell, ColumnSet, KINDS, Kind, Rows};
use std::io;
use trace_reader::sorter::{Sorted, Sorter, changed};

/// Memory for the late rows of a table; more are in a file.
const MEMORY: usize = 16 << 20;

/// Takes all rows, and keeps those that are late.
pub struct Collecting<'a> {
    order: &'a Order,
    rows: [u64; KINDS],
    /// What is known of the next slice.
    pair: u64,
    sorters: [Option<Sorter>; KINDS],
    bytes: Vec<u8>,
}

/// The late rows of a table.
pub struct Late {
    sorted: Sorted,
    next: Vec<u8>,
}

/// Keeps the order of numbers with a sign.
const fn ordered(ts: i64) -> u64 {
    ts as u64 ^ 1 << 63
}

impl<'a> Collecting<'a> {
    pub fn new(order: &'a Order) -> Self {
        let sorter = |place: usize| order.has_late(Kind::ALL[place]).then(|| Sorter::with_runs_of(MEMORY));
        let sorters = std::array::from_fn(sorter);
        Self { order, rows: [0; KINDS], pair: 0, sorters, bytes: Vec::new() }
    }

    /// What there is of each table.
    pub fn finish(self) -> io::Result<[Option<Late>; KINDS]> {
        let mut late = std::array::from_fn(|_| None);
        for (late, sorter) in late.iter_mut().zip(self.sorters) {
            if let Some(sorter) = sorter {
                let mut rows = Late { sorted: sorter.sorted()?, next: Vec::new() };
                rows.advance()?;
                *late = Some(rows);
            }
        }
        Ok(late)
    }
}

impl Rows for Collecting<'_> {
    fn wanted(&self) -> ColumnSet {
        let mut wanted = ColumnSet::NONE;
        for kind in Kind::ALL.into_iter().filter(|kind| self.order.has_late(*kind)) {
            wanted.add(kind, u64::MAX);
        }
        wanted
    }

    fn pair(&mut self, rows: u64) {
        self.pair = rows + 1;
    }

    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        // A slice has it behind its cells.
        let pair = (kind == Kind::Slices).then(|| Cell::Unsigned(std::mem::take(&mut self.pair)));
        let row = self.rows[kind as usize];
        self.rows[kind as usize] += 1;
        if let Some(sorter) = &mut self.sorters[kind as usize]
            && self.order.is_late(kind, row)
        {
            let ts = match ts_of(kind).and_then(|place| cells.get(place)) {
                Some(Cell::Integer(ts)) => *ts,
                _ => NO_TIME,
            };
            encode(row, ts, cells.iter().chain(&pair), &mut self.bytes);
            sorter.push(ordered(ts), &self.bytes);
            sorter.check()?;
        }
        Ok(())
    }
}

impl Late {
    fn advance(&mut self) -> io::Result<()> {
        self.next.clear();
        if let Some(record) = self.sorted.advance()? {
            self.next.extend_from_slice(record);
        }
        Ok(())
    }

    /// The time and number of the next row.
    pub fn next(&self) -> io::Result<Option<(i64, u64)>> {
        Ok(decode(&self.next)?.map(|(row, ts, _)| (ts, row)))
    }

    /// Passes on the next row if it is before a time and number; says whether there was one.
    pub fn take_before(
        &mut self,
        bound: Option<(i64, u64)>,
        take: impl FnOnce(u64, &[Cell<'_>]),
    ) -> io::Result<bool> {
        let Some((row, ts, cells)) = decode(&self.next)? else { return Ok(false) };
        if bound.is_some_and(|bound| (ts, row) >= bound) {
            return Ok(false);
        }
        take(row, &cells);
        self.advance()?;
        Ok(true)
    }
}

/// A row as bytes: its number, its time, and each cell behind a byte for its type.
fn encode<'a>(row: u64, ts: i64, cells: impl IntoIterator<Item = &'a Cell<'a>>, bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.extend(row.to_le_bytes());
    bytes.extend(ts.to_le_bytes());
    for cell in cells {
        let (of, word) = cell.encoded();
        bytes.push(of);
        if of > 0 {
            bytes.extend(word.to_le_bytes());
        }
        if let Cell::Text(text) = cell {
            bytes.extend(text.as_bytes());
        }
    }
}

/// A row, with its number and time; none of no bytes.
fn decode(mut bytes: &[u8]) -> io::Result<Option<(u64, i64, Vec<Cell<'_>>)>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut take = |length: usize| bytes.split_off(..length).ok_or_else(changed);
    let word = |bytes: &[u8]| bytes.first_chunk().map(|word| u64::from_le_bytes(*word)).ok_or_else(changed);
    let (row, ts) = (word(take(8)?)?, word(take(8)?)? as i64);
    let mut cells = Vec::new();
    while let Ok(of) = take(1) {
        let value = if of == [0] { 0 } else { word(take(8)?)? };
        cells.push(match of {
            [0] => Cell::Null,
            [1] => Cell::Integer(value as i64),
            [2] => Cell::Unsigned(value),
            [3] => Cell::Double(f64::from_bits(value)),
            _ => {
                let length = usize::try_from(value).map_err(io::Error::other)?;
                Cell::Text(str::from_utf8(take(length)?).map_err(io::Error::other)?)
            }
        });
    }
    Ok(Some((row, ts, cells)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_from_bytes() {
        let cells = [
            Cell::Integer(-5),
            Cell::Null,
            Cell::Unsigned(u64::MAX),
            Cell::Double(0.5),
            Cell::Text(""),
            Cell::Text("é"),
            Cell::Null,
        ];
        let mut bytes = vec![1];
        encode(7, -9, &cells, &mut bytes);
        assert_eq!(decode(&bytes).unwrap(), Some((7, -9, cells.to_vec())));
        assert_eq!(decode(&[]).unwrap(), None);
        assert!(decode(&bytes[..bytes.len() - 4]).is_err());
        assert!(ordered(-1) < ordered(0) && ordered(0) < ordered(1));
    }
}
