//! Some rows of a table, in columns, on their way from the thread that reads.

use super::names::{IS_OTHER, Names};
use crate::tables::store::{Places, Width, width_of};
use crate::tables::{Cell, Kind, Type, slices};
use std::io;

/// The values of a column.
#[derive(Debug)]
pub enum Values {
    /// Numbers, or the bits of doubles.
    Numbers(Numbers),
    /// Numbers of names; 0 is a missing one.
    Names(Vec<u32>),
    /// Texts of their own.
    Texts(Texts),
}

/// Numbers, each of which may be missing.
#[derive(Debug, Default)]
pub struct Numbers {
    /// One for each row, unless all are missing; what a missing one has is not used.
    values: Vec<u64>,
    /// Empty unless some are there and some are missing.
    are_there: Vec<bool>,
    rows: usize,
    /// How many rows have none.
    missing: usize,
}

/// Texts behind each other.
#[derive(Debug, Default)]
pub struct Texts {
    /// Where each ends.
    pub ends: Vec<u32>,
    pub are_there: Vec<bool>,
    pub bytes: Vec<u8>,
}

/// Rows in the order in which they came.
#[derive(Debug)]
pub struct Batch {
    /// Their numbers.
    pub rows: Vec<u64>,
    pub columns: Vec<Values>,
    /// What the rows of slices have behind their cells.
    pub pairs: Vec<u64>,
    /// Names without a number.
    pub others: Vec<Box<str>>,
    pub text_bytes: usize,
    /// Whether the rows are selected; empty if all are.
    pub selected: Vec<bool>,
}

impl Numbers {
    #[inline]
    fn push(&mut self, value: Option<u64>) {
        self.rows += 1;
        match value {
            Some(value) if self.missing == 0 => self.values.push(value),
            None if self.missing + 1 == self.rows => self.missing += 1,
            value => self.push_mixed(value),
        }
    }

    fn push_mixed(&mut self, value: Option<u64>) {
        if self.are_there.is_empty() {
            self.are_there.resize(self.rows - 1, self.missing == 0);
            self.values.resize(self.rows - 1, 0);
        }
        self.values.push(value.unwrap_or(0));
        self.are_there.push(value.is_some());
        self.missing += usize::from(value.is_none());
    }

    #[inline]
    pub fn get(&self, row: usize) -> Option<u64> {
        let is_there = match self.are_there.get(row) {
            Some(is_there) => *is_there,
            None => self.missing == 0,
        };
        is_there.then(|| self.values[row])
    }

    fn clear(&mut self) {
        let Self { values, are_there, rows, missing } = self;
        values.clear();
        are_there.clear();
        (*rows, *missing) = (0, 0);
    }
}

impl Texts {
    #[inline]
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        self.are_there[row].then(|| &self.bytes[self.start(row)..self.start(row + 1)])
    }

    /// Where a row's text begins.
    #[inline]
    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }
}

impl Batch {
    pub fn new(kind: Kind) -> Self {
        let columns = kind.table().columns.iter();
        let columns = columns.map(|(name, of)| match (of, width_of(name, *of)) {
            (Type::Text, Width::Narrow) => Values::Names(Vec::new()),
            (Type::Text, Width::Wide) => Values::Texts(Texts::default()),
            _ => Values::Numbers(Numbers::default()),
        });
        let (rows, pairs, others) = (Vec::new(), Vec::new(), Vec::new());
        Self { rows, columns: columns.collect(), pairs, others, text_bytes: 0, selected: Vec::new() }
    }

    /// Bytes of a row's texts, without names that have numbers.
    pub fn text_of(&self, row: usize) -> usize {
        if self.text_bytes == 0 {
            return 0;
        }
        let of_column = |values: &Values| match values {
            Values::Texts(texts) => texts.get(row).map_or(0, <[u8]>::len),
            Values::Names(names) if names[row] & IS_OTHER != 0 => self.other(names[row]).len(),
            _ => 0,
        };
        self.columns.iter().map(of_column).sum()
    }

    /// Whether a row is selected.
    pub fn has(&self, row: usize) -> bool {
        self.selected.get(row).is_none_or(|has| *has)
    }

    /// A name without a number.
    pub fn other(&self, name: u32) -> &str {
        &self.others[(name & !IS_OTHER) as usize]
    }

    /// The same without rows.
    pub fn emptied(mut self) -> Self {
        self.rows.clear();
        self.pairs.clear();
        self.others.clear();
        self.selected.clear();
        self.text_bytes = 0;
        for values in &mut self.columns {
            match values {
                Values::Numbers(numbers) => numbers.clear(),
                Values::Names(names) => names.clear(),
                Values::Texts(Texts { ends, are_there, bytes }) => {
                    ends.clear();
                    are_there.clear();
                    bytes.clear();
                }
            }
        }
        self
    }

    /// Adds a row, without some columns, by their bits.
    #[inline]
    pub fn push(&mut self, row: u64, cells: &[Cell<'_>], left_out: u64, names: &mut Names) {
        self.rows.push(row);
        for (place, (values, cell)) in self.columns.iter_mut().zip(cells).enumerate() {
            if left_out >> place & 1 != 0 {
                continue;
            }
            match values {
                Values::Numbers(numbers) => numbers.push(match *cell {
                    Cell::Integer(value) => Some(value as u64),
                    Cell::Unsigned(value) => Some(value),
                    Cell::Double(value) => Some(value.to_bits()),
                    Cell::Null | Cell::Text(_) => None,
                }),
                Values::Names(numbers) => numbers.push(match *cell {
                    Cell::Text(text) => names.number(text).unwrap_or_else(|| {
                        self.text_bytes += text.len();
                        self.others.push(text.into());
                        IS_OTHER | (self.others.len() as u32 - 1)
                    }),
                    _ => 0,
                }),
                Values::Texts(Texts { ends, are_there, bytes }) => {
                    if let Cell::Text(text) = *cell {
                        self.text_bytes += text.len();
                        bytes.extend_from_slice(text.as_bytes());
                    }
                    ends.push(bytes.len() as u32);
                    are_there.push(*cell != Cell::Null);
                }
            }
        }
    }

    /// A column's numbers, if it has any.
    #[inline]
    pub fn number(&self, column: usize, row: usize) -> Option<u64> {
        match self.columns.get(column) {
            Some(Values::Numbers(numbers)) => numbers.get(row),
            _ => None,
        }
    }

    /// Adds how slices are in each other, if the rows came without it.
    pub fn nest(&mut self, places: &mut Places) -> io::Result<()> {
        for place in 0..self.rows.len() {
            let number = |column: usize| self.number(column, place);
            let (ts, dur, async_id) = (number(slices::TS), number(slices::DUR), number(slices::ASYNC_ID));
            let nested = places.of_numbers(self.rows[place], ts, dur, async_id)?;
            for (column, value) in slices::NESTED.into_iter().zip(nested) {
                if let Some(Values::Numbers(numbers)) = self.columns.get_mut(column) {
                    numbers.push(value);
                }
            }
        }
        Ok(())
    }
}
