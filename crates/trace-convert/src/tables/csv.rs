//! Tables as files of comma-separated values, with the names of the columns in the first line.
//!
//! A first pass over the trace finds how slices are in each other. The second one reads it while another
//! thread makes lines and writes them.
//= docs/tables.md#csv

mod packed;

use super::store::Whole;
use super::{Cell, ChosenRows, Kind, Rows, TABLES, Trace, slices};
use crate::{ConvertError, Filter, Summary};
use packed::{Field, Packed, Packing};
use std::io::{self, Write};
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder};

/// Batches of rows that wait at a time.
const WAITING: usize = 4;

/// Bytes of a table to collect before they are written.
const FLUSH_BYTES: usize = 64 << 10;

/// How cells with text are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Texts {
    /// Each text is written as it is.
    #[default]
    Unchanged,
    /// A text that a spreadsheet would take for a formula has an apostrophe in front, and is quoted.
    Spreadsheet,
}

impl Texts {
    /// Appends a cell, and a comma behind it.
    #[inline]
    pub fn write(self, text: &[u8], line: &mut Vec<u8>) {
        if self == Self::Spreadsheet
            && matches!(text.first(), Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r'))
        {
            return quote(b"'", text, line);
        }
        // Without a branch for each byte.
        let is_special = |byte: &u8| (*byte == b',') | (*byte == b'"') | (*byte == b'\n') | (*byte == b'\r');
        if text.iter().fold(false, |is_any, byte| is_any | is_special(byte)) {
            return quote(b"", text, line);
        }
        line.extend_from_slice(text);
        line.push(b',');
    }
}

fn quote(prefix: &[u8], mut rest: &[u8], line: &mut Vec<u8>) {
    line.push(b'"');
    line.extend_from_slice(prefix);
    while let Some(at) = rest.iter().position(|byte| *byte == b'"') {
        let (before, behind) = rest.split_at(at + 1);
        line.extend_from_slice(before);
        line.push(b'"');
        rest = behind;
    }
    line.extend_from_slice(rest);
    line.extend_from_slice(b"\",");
}

/// One output for each table.
pub struct Csv<W: Write> {
    tables: Vec<Lines<W>>,
    /// The rows that are written; none if all are.
    chosen: Option<ChosenRows>,
}

impl<W: Write> Csv<W> {
    /// Begins all tables; the function creates the output for a table's name.
    ///
    /// # Errors
    /// An output cannot be made or written.
    pub fn new(texts: Texts, mut output: impl FnMut(&str) -> io::Result<W>) -> io::Result<Self> {
        let mut tables = Vec::new();
        for table in TABLES {
            let none = Digits { number: 0, length: 0, digits: [0; 20] };
            let numbers = vec![none; table.columns.len()];
            let mut lines = Lines { output: output(table.name)?, texts, text: Vec::new(), numbers };
            table.columns.iter().for_each(|(name, _)| lines.field(name.as_bytes()));
            lines.end()?;
            tables.push(lines);
        }
        Ok(Self { tables, chosen: None })
    }

    /// Writes remaining data.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.tables.iter_mut().try_for_each(Lines::finish)
    }
}

/// Writes all tables of a trace; the function creates the output for a table's name.
///
/// # Errors
/// The trace cannot be read, or an output cannot be made or written.
pub fn write_csv<'w, W: Write + Send + 'w>(
    trace: Trace,
    filter: &Filter,
    texts: Texts,
    mut output: impl FnMut(&str) -> io::Result<W>,
) -> Result<Summary, ConvertError> {
    let output = |name: &str| output(name).map(|output| Box::new(output) as Box<dyn Write + Send + 'w>);
    let csv = Csv::new(texts, output).map_err(ConvertError::Write)?;
    write(trace, filter, Csv { chosen: ChosenRows::new(filter), ..csv })
}

fn write(
    trace: Trace,
    filter: &Filter,
    mut csv: Csv<Box<dyn Write + Send + '_>>,
) -> Result<Summary, ConvertError> {
    let mut whole = Whole::new(trace, filter)?;
    let (sender, receiver) = sync_channel::<Packed>(WAITING);
    let (emptied, room) = sync_channel::<Packed>(WAITING + 2);
    let mut nesting = whole.nesting();
    let filled = thread::scope(|scope| {
        let csv = &mut csv;
        let write = move || -> io::Result<()> {
            for packed in receiver {
                packed.unpack(|kind, fields| {
                    if kind == Kind::Slices {
                        let nested = nesting.next(None)?;
                        for (place, value) in slices::NESTED.into_iter().zip(nested) {
                            fields[place] = value.map_or(Field::Null, |value| Field::Integer(value as i64));
                        }
                    }
                    csv.write_row(kind, fields)
                })?;
                // The reading thread may have ended.
                let _ = emptied.try_send(packed.emptied());
            }
            Ok(())
        };
        let writer = Builder::new().name("write".to_owned()).spawn_scoped(scope, write).ok()?;
        let mut packing = Packing::new(|packed| {
            sender.send(packed).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(room.try_recv().unwrap_or_default())
        });
        let filled = whole.fill(&mut packing);
        let filled =
            filled.and_then(|summary| packing.finish().map_err(ConvertError::Write).map(|()| summary));
        drop(sender);
        let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // The reading thread only knows that there is no other one.
        Some(written.map_err(ConvertError::Write).and(filled))
    });
    let summary = match filled {
        Some(filled) => filled?,
        // There may be no more threads.
        None => {
            let mut rows = whole.nesting().around(&mut csv);
            whole.fill(&mut rows)?
        }
    };
    csv.finish().map_err(ConvertError::Write)?;
    Ok(summary)
}

/// The lines of a table. Each field has a comma behind it, the last one a line feed instead.
struct Lines<W> {
    output: W,
    texts: Texts,
    text: Vec<u8>,
    /// By column: its last number, and its digits.
    numbers: Vec<Digits>,
}

/// A number that is likely to come again.
#[derive(Clone, Copy)]
struct Digits {
    number: u64,
    length: usize,
    digits: [u8; 20],
}

impl<W: Write> Lines<W> {
    #[inline]
    fn field(&mut self, text: &[u8]) {
        self.texts.write(text, &mut self.text);
    }

    /// A field without anything special.
    #[inline]
    fn plain(&mut self, field: &str) {
        self.text.extend_from_slice(field.as_bytes());
        self.text.push(b',');
    }

    /// A number without a sign, which many rows have.
    #[inline]
    fn number(&mut self, place: usize, number: u64) {
        let mut buffer = itoa::Buffer::new();
        let Some(last) = self.numbers.get_mut(place) else { return self.plain(buffer.format(number)) };
        if last.number != number || last.length == 0 {
            let digits = buffer.format(number).as_bytes();
            last.digits[..digits.len()].copy_from_slice(digits);
            (last.number, last.length) = (number, digits.len());
        }
        self.text.extend_from_slice(&last.digits[..last.length]);
        self.text.push(b',');
    }

    /// Ends a line.
    #[inline]
    fn end(&mut self) -> io::Result<()> {
        if let Some(last) = self.text.last_mut() {
            *last = b'\n';
        }
        if self.text.len() < FLUSH_BYTES {
            return Ok(());
        }
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let written = self.output.write_all(&self.text);
        self.text.clear();
        written
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write()?;
        self.output.flush()
    }
}

/// A value as text; nothing for one that is missing.
#[must_use]
pub fn text(cell: &Cell<'_>) -> String {
    match *cell {
        Cell::Null => String::new(),
        Cell::Integer(value) => value.to_string(),
        Cell::Unsigned(value) => value.to_string(),
        Cell::Double(value) if value.is_finite() => ryu::Buffer::new().format_finite(value).to_owned(),
        Cell::Double(value) if value.is_nan() => "NaN".to_owned(),
        Cell::Double(value) => if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        Cell::Text(text) => text.to_owned(),
    }
}

impl<W: Write> Csv<W> {
    #[inline]
    fn write_row(&mut self, kind: Kind, fields: &[Field<'_>]) -> io::Result<()> {
        if let Some(chosen) = &mut self.chosen
            && !chosen.has(kind, |place| fields.get(place).map_or(Cell::Null, |field| field.cell()))
        {
            return Ok(());
        }
        let Some(lines) = self.tables.get_mut(kind as usize) else { return Ok(()) };
        for (place, field) in fields.iter().enumerate() {
            match *field {
                Field::Null => lines.text.push(b','),
                Field::Text(text) => lines.field(text),
                Field::Integer(value) => lines.plain(itoa::Buffer::new().format(value)),
                Field::Unsigned(value) => lines.number(place, value),
                Field::Double(value) => lines.plain(&text(&Cell::Double(value))),
            }
        }
        lines.end()
    }
}

impl<W: Write> Rows for Csv<W> {
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        let fields: Vec<Field<'_>> = cells.iter().map(|cell| Field::from(*cell)).collect();
        self.write_row(kind, &fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn cells() -> impl Strategy<Value = Vec<(u8, f64, String)>> {
        vec((0..5_u8, any::<f64>(), "[a-c,\"\r\n ü]{0,12}"), 11)
    }

    proptest! {
        /// Those of a library for such files.
        #[test]
        fn lines_are_those_of_others(rows in vec(cells(), 0..20)) {
            let mut csv = Csv::new(Texts::Unchanged, |_| Ok(Vec::new())).unwrap();
            let mut expected = ::csv::Writer::from_writer(Vec::new());
            let columns = Kind::Instants.table().columns;
            expected.write_record(columns.iter().map(|(name, _)| name)).unwrap();
            for row in &rows {
                let cell = |(kind, number, text): &'_ (u8, f64, String)| match kind {
                    0 => Cell::Null,
                    1 => Cell::Integer(*number as i64),
                    2 => Cell::Unsigned(number.to_bits()),
                    3 => Cell::Double(*number),
                    _ => Cell::Text(&*text.clone().leak()),
                };
                let cells: Vec<Cell<'_>> = row.iter().map(cell).collect();
                csv.row(Kind::Instants, &cells).unwrap();
                expected.write_record(cells.iter().map(text)).unwrap();
            }
            let lines = &mut csv.tables[Kind::Instants as usize];
            let mut found = std::mem::take(&mut lines.output);
            found.append(&mut lines.text);
            prop_assert_eq!(String::from_utf8(found), String::from_utf8(expected.into_inner().unwrap()));
        }
    }
}
