//! Some rows of a table, in columns, on their way from one thread to the other.

use super::names::{IS_OTHER, Names, array};
use crate::tables::store::{Width, width_of};
use crate::tables::{Cell, Kind, Type};
use ::parquet::data_type::ByteArray;

/// The values of a column.
#[derive(Debug)]
pub enum Values {
    /// Numbers, or the bits of doubles, and whether each is there.
    Numbers(Vec<u64>, Vec<bool>),
    /// Numbers of names; 0 is a missing one.
    Names(Vec<u32>),
    /// Where each text ends, and whether it is there.
    Texts(Vec<u32>, Vec<bool>, Vec<u8>),
}

/// Rows in the order in which they came.
#[derive(Debug)]
pub struct Batch {
    /// Their numbers.
    pub rows: Vec<u64>,
    pub columns: Vec<Values>,
    /// Names without a number.
    pub others: Vec<ByteArray>,
    pub text_bytes: usize,
}

impl Batch {
    pub fn new(kind: Kind) -> Self {
        let columns = kind.table().columns.iter().map(|(name, of)| match (of, width_of(name, *of)) {
            (Type::Text, Width::Narrow) => Values::Names(Vec::new()),
            (Type::Text, Width::Wide) => Values::Texts(Vec::new(), Vec::new(), Vec::new()),
            _ => Values::Numbers(Vec::new(), Vec::new()),
        });
        Self { rows: Vec::new(), columns: columns.collect(), others: Vec::new(), text_bytes: 0 }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, row: u64, cells: &[Cell<'_>], names: &mut Names) {
        self.rows.push(row);
        for (values, cell) in self.columns.iter_mut().zip(cells) {
            match values {
                Values::Numbers(numbers, are_there) => {
                    numbers.push(match *cell {
                        Cell::Integer(value) => value as u64,
                        Cell::Unsigned(value) => value,
                        Cell::Double(value) => value.to_bits(),
                        Cell::Null | Cell::Text(_) => 0,
                    });
                    are_there.push(*cell != Cell::Null);
                }
                Values::Names(numbers) => numbers.push(match *cell {
                    Cell::Text(text) => names.number(text).unwrap_or_else(|| {
                        self.text_bytes += text.len();
                        self.others.push(array(text));
                        IS_OTHER | (self.others.len() as u32 - 1)
                    }),
                    _ => 0,
                }),
                Values::Texts(ends, are_there, bytes) => {
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
}
