//! Rows as bytes, on their way from the thread that reads to the one that writes.

use crate::tables::{Cell, Kind, Rows};
use std::io;

/// Bytes of rows that are sent together.
const BATCH_BYTES: usize = 128 << 10;

/// Bytes of a cell without its text.
const CELL_BYTES: usize = 9;

/// Rows: of each the number of its table, the types of its cells as of [`Cell::encoded`], a word for each
/// cell, and the texts, whose words are their lengths.
#[derive(Debug, Default)]
pub struct Packed(Vec<u8>);

/// A value of a row that comes back: text is what it was, but not known to be UTF-8.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    Null,
    Integer(i64),
    Unsigned(u64),
    Double(f64),
    Text(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The value as it was.
    pub fn cell(self) -> Cell<'a> {
        match self {
            Self::Null => Cell::Null,
            Self::Integer(value) => Cell::Integer(value),
            Self::Unsigned(value) => Cell::Unsigned(value),
            Self::Double(value) => Cell::Double(value),
            Self::Text(text) => Cell::Text(str::from_utf8(text).unwrap_or_default()),
        }
    }
}

impl<'a> From<Cell<'a>> for Field<'a> {
    #[inline]
    fn from(cell: Cell<'a>) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::Integer(value) => Self::Integer(value),
            Cell::Unsigned(value) => Self::Unsigned(value),
            Cell::Double(value) => Self::Double(value),
            Cell::Text(text) => Self::Text(text.as_bytes()),
        }
    }
}

impl Packed {
    /// The same without rows, for others.
    pub fn emptied(mut self) -> Self {
        self.0.clear();
        Self(self.0)
    }

    #[inline]
    fn push(&mut self, kind: Kind, cells: &[Cell<'_>]) {
        let start = self.0.len() + 1;
        self.0.push(kind as u8);
        self.0.resize(start + CELL_BYTES * cells.len(), 0);
        let (types, words) = self.0[start..].split_at_mut(cells.len());
        for ((cell, of), word) in cells.iter().zip(types).zip(words.as_chunks_mut().0) {
            let (cell_type, value) = cell.encoded();
            (*of, *word) = (cell_type, value.to_le_bytes());
        }
        for cell in cells {
            if let Cell::Text(text) = cell {
                self.0.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Passes on all rows.
    ///
    /// # Errors
    /// Those of the function.
    pub fn unpack(&self, mut row: impl FnMut(Kind, &mut [Field<'_>]) -> io::Result<()>) -> io::Result<()> {
        let mut rest = self.0.as_slice();
        let mut fields = Vec::new();
        while let Some((kind, behind)) = rest.split_first() {
            let kind = *Kind::ALL.get(usize::from(*kind)).ok_or_else(changed)?;
            let count = kind.table().columns.len();
            let (types, behind) = behind.split_at_checked(count).ok_or_else(changed)?;
            let (words, mut texts) = behind.split_at_checked(8 * count).ok_or_else(changed)?;
            fields.clear();
            for (of, word) in types.iter().zip(words.as_chunks().0) {
                let word = u64::from_le_bytes(*word);
                fields.push(match *of {
                    0 => Field::Null,
                    1 => Field::Integer(word as i64),
                    2 => Field::Unsigned(word),
                    3 => Field::Double(f64::from_bits(word)),
                    _ => {
                        let (text, behind) = texts.split_at_checked(word as usize).ok_or_else(changed)?;
                        texts = behind;
                        Field::Text(text)
                    }
                });
            }
            rest = texts;
            row(kind, &mut fields)?;
        }
        Ok(())
    }
}

fn changed() -> io::Error {
    io::Error::other("rows have changed on their way")
}

/// Takes rows, and sends them on when there are many.
pub struct Packing<S> {
    open: Packed,
    /// Takes rows, and returns room for others.
    send: S,
}

impl<S: FnMut(Packed) -> io::Result<Packed>> Packing<S> {
    pub fn new(send: S) -> Self {
        Self { open: Packed::default(), send }
    }

    /// Sends the remaining rows.
    ///
    /// # Errors
    /// There is no other thread any more.
    pub fn finish(mut self) -> io::Result<()> {
        (self.send)(self.open).map(|_| ())
    }

    fn end(&mut self) -> io::Result<()> {
        if self.open.0.len() >= BATCH_BYTES {
            self.open = (self.send)(std::mem::take(&mut self.open))?;
        }
        Ok(())
    }
}

impl<S: FnMut(Packed) -> io::Result<Packed>> Rows for Packing<S> {
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        self.open.push(kind, cells);
        self.end()
    }

    #[inline]
    fn row_of<'c, const N: usize>(&mut self, kind: Kind, cell: impl Fn(usize) -> Cell<'c>) -> io::Result<()> {
        let cells: [Cell<'_>; N] = std::array::from_fn(cell);
        self.open.push(kind, &cells);
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_from_bytes() {
        let cells =
            [Cell::Unsigned(u64::MAX), Cell::Null, Cell::Text(""), Cell::Text("é,\"\n"), Cell::Integer(-5)];
        let long = "x".repeat(BATCH_BYTES);
        let logs = [
            Cell::Double(0.5),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Text(&long),
            Cell::Null,
        ];
        let mut batches = Vec::new();
        let mut packing = Packing::new(|packed| {
            batches.push(packed);
            Ok(Packed::default())
        });
        packing.row(Kind::Threads, &cells).unwrap();
        packing.row(Kind::Logs, &logs).unwrap();
        packing.row_of::<5>(Kind::Threads, |place| cells[place]).unwrap();
        packing.finish().unwrap();
        let mut kept = Vec::new();
        let mut keep = |kind: Kind, fields: &mut [Field<'_>]| {
            kept.push(format!("{kind:?} {fields:?}"));
            Ok(())
        };
        batches.iter().try_for_each(|batch| batch.unpack(&mut keep)).unwrap();
        assert_eq!(batches.len(), 2);
        let of = |kind: Kind, cells: &[Cell<'_>]| {
            let fields: Vec<Field<'_>> = cells.iter().map(|cell| Field::from(*cell)).collect();
            format!("{kind:?} {fields:?}")
        };
        let threads = of(Kind::Threads, &cells);
        assert_eq!(kept, [threads.clone(), of(Kind::Logs, &logs), threads]);
        let Packed(bytes) = &batches[1];
        for length in 1..bytes.len() {
            assert!(Packed(bytes[..length].to_vec()).unpack(|_, _| Ok(())).is_err(), "{length}");
        }
    }
}
