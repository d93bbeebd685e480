//! Rows as bytes, on their way from the thread that reads to the one that writes.

use crate::tables::{Cell, Kind, Rows};
use std::io;

/// Bytes of rows that are sent together.
const BATCH_BYTES: usize = 128 << 10;

/// Types of cells.
const NULL: u8 = 0;
const INTEGER: u8 = 1;
const UNSIGNED: u8 = 2;
const DOUBLE: u8 = 3;
const TEXT: u8 = 4;

/// Rows, each behind the number of its table; each cell behind its type.
#[derive(Debug, Default)]
pub struct Packed(Vec<u8>);

impl Packed {
    /// The same without rows, for others.
    pub fn emptied(mut self) -> Self {
        self.0.clear();
        Self(self.0)
    }

    #[inline]
    fn cell(&mut self, cell: Cell<'_>) {
        let (of, word) = match cell {
            Cell::Null => return self.0.push(NULL),
            Cell::Integer(value) => (INTEGER, value as u64),
            Cell::Unsigned(value) => (UNSIGNED, value),
            Cell::Double(value) => (DOUBLE, value.to_bits()),
            Cell::Text(text) => (TEXT, text.len() as u64),
        };
        let mut bytes = [of; 9];
        bytes[1..].copy_from_slice(&word.to_le_bytes());
        self.0.extend_from_slice(&bytes);
        if let Cell::Text(text) = cell {
            self.0.extend_from_slice(text.as_bytes());
        }
    }

    /// Passes on all rows.
    ///
    /// # Errors
    /// Those of the function.
    pub fn unpack(&self, rows: &mut impl Rows) -> io::Result<()> {
        let mut rest = self.0.as_slice();
        let mut cells = Vec::new();
        while let Some((kind, behind)) = rest.split_first() {
            rest = behind;
            let kind = *Kind::ALL.get(usize::from(*kind)).ok_or_else(changed)?;
            cells.clear();
            for _ in kind.table().columns {
                cells.push(unpack(&mut rest)?);
            }
            rows.row(kind, &cells)?;
        }
        Ok(())
    }
}

fn changed() -> io::Error {
    io::Error::other("rows have changed on their way")
}

#[inline]
fn unpack<'a>(rest: &mut &'a [u8]) -> io::Result<Cell<'a>> {
    let (of, behind) = rest.split_first().ok_or_else(changed)?;
    if *of == NULL {
        *rest = behind;
        return Ok(Cell::Null);
    }
    let (word, behind) = behind.split_first_chunk().ok_or_else(changed)?;
    *rest = behind;
    let word = u64::from_le_bytes(*word);
    Ok(match *of {
        INTEGER => Cell::Integer(word as i64),
        UNSIGNED => Cell::Unsigned(word),
        DOUBLE => Cell::Double(f64::from_bits(word)),
        _ => {
            let (text, behind) = rest.split_at_checked(word as usize).ok_or_else(changed)?;
            *rest = behind;
            Cell::Text(str::from_utf8(text).map_err(|_| changed())?)
        }
    })
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
        self.open.0.push(kind as u8);
        cells.iter().for_each(|cell| self.open.cell(*cell));
        self.end()
    }

    #[inline]
    fn row_of<'c, const N: usize>(&mut self, kind: Kind, cell: impl Fn(usize) -> Cell<'c>) -> io::Result<()> {
        self.open.0.push(kind as u8);
        (0..N).for_each(|place| self.open.cell(cell(place)));
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept(Vec<String>);

    impl Rows for Kept {
        fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
            self.0.push(format!("{kind:?} {cells:?}"));
            Ok(())
        }
    }

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
        let mut kept = Kept::default();
        batches.iter().try_for_each(|batch| batch.unpack(&mut kept)).unwrap();
        assert_eq!(batches.len(), 2);
        let threads = format!("Threads {cells:?}");
        assert_eq!(kept.0, [threads.clone(), format!("Logs {logs:?}"), threads]);
        let Packed(bytes) = &batches[1];
        for length in 1..bytes.len() {
            assert!(Packed(bytes[..length].to_vec()).unpack(&mut kept).is_err(), "{length}");
        }
    }
}
