//! A column: 64-bit values that may be missing, or numbers of texts, in blocks.

use super::spill::{Piece, Spill};
use std::io;
use std::sync::Arc;

/// Rows of a block.
pub const BLOCK_ROWS: usize = 1 << BLOCK_BITS;
/// The bits of a row's number that are its place in a block; few in tests, so that small traces have many.
pub const BLOCK_BITS: u32 = if cfg!(test) { 4 } else { 14 };

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits; 0 is a missing value.
    Narrow,
    /// 64 bits.
    Wide,
}

/// The values of some rows, in a column of up to [`BLOCK_ROWS`].
#[derive(Debug, Default)]
pub struct Block {
    // One of the two is empty.
    narrow: Vec<u32>,
    wide: Vec<u64>,
    /// A bit for each row that has a value; empty if all have.
    present: Vec<u64>,
}

impl Block {
    /// The value of a row; none if it is missing.
    #[inline(always)]
    pub fn get(&self, row: usize) -> Option<u64> {
        if let Some(value) = self.wide.get(row) {
            let is_present = self.present.is_empty() || self.present[row / 64] >> (row % 64) & 1 != 0;
            return is_present.then_some(*value);
        }
        self.narrow.get(row).filter(|value| **value != 0).map(|value| u64::from(*value))
    }

    /// A block of so many rows, which have to be set in any order.
    pub fn with_rows(width: Width, rows: usize) -> Self {
        match width {
            Width::Narrow => Self { narrow: vec![0; rows], ..Self::default() },
            Width::Wide => Self { wide: vec![0; rows], ..Self::default() },
        }
    }

    /// Sets the value of a row.
    #[inline]
    pub fn set(&mut self, row: usize, value: Option<u64>) {
        if let Some(narrow) = self.narrow.get_mut(row) {
            *narrow = value.unwrap_or(0) as u32;
        } else if let Some(value) = value {
            self.wide[row] = value;
        } else {
            self.set_missing(row);
        }
    }

    fn set_missing(&mut self, row: usize) {
        let words = self.wide.len().max(BLOCK_ROWS).div_ceil(64);
        if self.present.is_empty() {
            self.present = vec![u64::MAX; words];
        }
        self.present[row / 64] &= !(1 << (row % 64));
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.wide.len() + self.narrow.len()
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, width: Width, value: Option<u64>) {
        if width == Width::Narrow {
            return self.narrow.push(value.unwrap_or(0) as u32);
        }
        self.wide.push(value.unwrap_or(0));
        if value.is_none() {
            self.set_missing(self.wide.len() - 1);
        }
    }

    /// An empty block with room for all of its rows.
    pub fn with_room(width: Width) -> Self {
        match width {
            Width::Narrow => Self { narrow: Vec::with_capacity(BLOCK_ROWS), ..Self::default() },
            Width::Wide => Self { wide: Vec::with_capacity(BLOCK_ROWS), ..Self::default() },
        }
    }

    /// The memory of its values.
    pub fn bytes(&self) -> usize {
        8 * (self.wide.len() + self.present.len()) + 4 * self.narrow.len()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes());
        bytes.extend(self.narrow.iter().flat_map(|value| value.to_le_bytes()));
        bytes.extend(self.wide.iter().chain(&self.present).flat_map(|value| value.to_le_bytes()));
        bytes
    }

    fn of_bytes(width: Width, rows: usize, bytes: &[u8]) -> Self {
        if width == Width::Narrow {
            let narrow = bytes.as_chunks::<4>().0.iter().map(|value| u32::from_le_bytes(*value)).collect();
            return Self { narrow, ..Self::default() };
        }
        let mut words = bytes.as_chunks::<8>().0.iter().map(|value| u64::from_le_bytes(*value));
        Self { wide: words.by_ref().take(rows).collect(), present: words.collect(), narrow: Vec::new() }
    }
}

/// A block that is complete.
#[derive(Debug)]
enum Sealed {
    Held(Arc<Block>),
    Stored(Piece),
}

/// A block that was read lately, and its number.
pub type Cache = Option<(usize, Block)>;

/// The block of a complete column that a row was read from last, for rows that are read in their order.
#[cfg(feature = "sqlite")]
#[derive(Default)]
pub struct Window {
    number: usize,
    block: Option<Arc<Block>>,
}

#[cfg(feature = "sqlite")]
impl Window {
    /// The value of a row; none if it is missing.
    #[inline(always)]
    pub fn get(&mut self, column: &Column, row: u64, spill: &Spill) -> io::Result<Option<u64>> {
        let number = (row >> BLOCK_BITS) as usize;
        let block = match &mut self.block {
            Some(block) if self.number == number => block,
            block => {
                self.number = number;
                block.insert(column.shared(number, spill)?)
            }
        };
        Ok(block.get(row as usize % BLOCK_ROWS))
    }
}

/// A column that is complete or being filled.
#[derive(Debug)]
pub struct Column {
    width: Width,
    blocks: Vec<Sealed>,
    open: Block,
    rows: u64,
}

impl Column {
    /// A column without rows.
    pub fn new(width: Width) -> Self {
        Self { width, blocks: Vec::new(), open: Block::default(), rows: 0 }
    }

    /// A complete column with the rows of a block, which may be longer than a column's own blocks.
    #[cfg(feature = "sqlite")]
    pub fn of(width: Width, rows: &Block, spill: &Spill) -> io::Result<Self> {
        let mut column = Self::new(width);
        if rows.present.is_empty() {
            for narrow in rows.narrow.chunks(BLOCK_ROWS) {
                column.append(Block { narrow: narrow.to_vec(), ..Block::default() }, spill)?;
            }
            for wide in rows.wide.chunks(BLOCK_ROWS) {
                column.append(Block { wide: wide.to_vec(), ..Block::default() }, spill)?;
            }
            return Ok(column);
        }
        (0..rows.rows()).try_for_each(|row| column.push(rows.get(row), spill))?;
        column.finish(spill)?;
        Ok(column)
    }

    /// A block of a complete column, which is read unless it is in memory.
    #[cfg(feature = "sqlite")]
    pub fn shared(&self, number: usize, spill: &Spill) -> io::Result<Arc<Block>> {
        match self.blocks.get(number) {
            Some(Sealed::Held(block)) => Ok(block.clone()),
            _ => Ok(Arc::new(self.read(number, spill)?)),
        }
    }

    /// Adds the value of the next row.
    #[inline]
    pub fn push(&mut self, value: Option<u64>, spill: &Spill) -> io::Result<()> {
        self.open.push(self.width, value);
        self.rows += 1;
        if self.rows.is_multiple_of(BLOCK_ROWS as u64) { self.finish(spill) } else { Ok(()) }
    }

    /// Stores the rows that are not stored yet. There are no more, unless the last block is full.
    pub fn finish(&mut self, spill: &Spill) -> io::Result<()> {
        let block = std::mem::take(&mut self.open);
        self.seal(block, spill)
    }

    /// Adds the rows of a block to a column whose last block is full.
    pub fn append(&mut self, block: Block, spill: &Spill) -> io::Result<()> {
        self.rows += block.rows() as u64;
        self.seal(block, spill)
    }

    fn seal(&mut self, block: Block, spill: &Spill) -> io::Result<()> {
        if block.rows() == 0 {
            return Ok(());
        }
        self.blocks.push(match spill.has_room(block.bytes()) {
            true => Sealed::Held(Arc::new(block)),
            false => Sealed::Stored(spill.store(&block.to_bytes())?),
        });
        Ok(())
    }

    /// The column is not used any more.
    pub fn release(self, spill: &Spill) {
        for block in self.blocks {
            if let Sealed::Held(block) = block {
                spill.release(block.bytes());
            }
        }
    }

    /// A block of a complete column, which is read into the cache unless it is in memory.
    pub fn block<'a>(&'a self, number: usize, cache: &'a mut Cache, spill: &Spill) -> io::Result<&'a Block> {
        if let Some(Sealed::Held(block)) = self.blocks.get(number) {
            return Ok(block);
        }
        if cache.as_ref().is_none_or(|(cached, _)| *cached != number) {
            *cache = Some((number, self.read(number, spill)?));
        }
        match cache {
            Some((_, block)) => Ok(block),
            None => Err(io::Error::other("a column has no such row")),
        }
    }

    /// The value of a row of a complete column; none if it is missing.
    #[inline]
    pub fn get(&self, row: u64, cache: &mut Cache, spill: &Spill) -> io::Result<Option<u64>> {
        let (number, place) = ((row >> BLOCK_BITS) as usize, row as usize % BLOCK_ROWS);
        if let Some(Sealed::Held(block)) = self.blocks.get(number) {
            return Ok(block.get(place));
        }
        Ok(self.block(number, cache, spill)?.get(place))
    }

    fn read(&self, number: usize, spill: &Spill) -> io::Result<Block> {
        let Some(Sealed::Stored(piece)) = self.blocks.get(number) else {
            return Err(io::Error::other("a column has no such row"));
        };
        let rows = BLOCK_ROWS.min((self.rows - ((number as u64) << BLOCK_BITS)) as usize);
        Ok(Block::of_bytes(self.width, rows, &spill.read_all(piece)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::spill::Limits;
    use super::*;

    #[test]
    fn columns_come_back_from_memory_and_files() {
        for columns in [0, 12 * BLOCK_ROWS, usize::MAX >> 1] {
            let spill = &Spill::new(Limits { columns, ..Limits::default() });
            let value = |row: u64| (row % 23 != 7).then_some(row * 3 + 1);
            let rows = 3 * BLOCK_ROWS as u64 + 5;
            for width in [Width::Narrow, Width::Wide] {
                let mut column = Column::new(width);
                (0..rows).for_each(|row| column.push(value(row), spill).unwrap());
                column.finish(spill).unwrap();
                let mut cache = None;
                for row in (0..rows).step_by(3).chain((0..rows).rev().step_by(5)) {
                    assert_eq!(column.get(row, &mut cache, spill).unwrap(), value(row), "{width:?} {row}");
                }
                assert!(column.get(rows + BLOCK_ROWS as u64, &mut cache, spill).is_err());
            }
        }
    }
}
