//! Tables as files of comma-separated values, with the names of the columns in the first line.
//= docs/tables.md#csv

use super::{Cell, Kind, Rows, TABLES};
use csv::Writer;
use std::io::{self, Write};

/// One output for each table.
pub struct Csv<W: Write> {
    writers: Vec<Writer<W>>,
}

impl<W: Write> Csv<W> {
    /// Begins all tables; the function creates the output for a table's name.
    ///
    /// # Errors
    /// An output cannot be made or written.
    pub fn new(mut output: impl FnMut(&str) -> io::Result<W>) -> io::Result<Self> {
        let mut writers = Vec::new();
        for table in TABLES {
            let mut writer = Writer::from_writer(output(table.name)?);
            writer.write_record(table.columns.iter().map(|(name, _)| name))?;
            writers.push(writer);
        }
        Ok(Self { writers })
    }

    /// Writes remaining data.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.writers.iter_mut().try_for_each(Writer::flush)
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

impl<W: Write> Rows for Csv<W> {
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        match self.writers.get_mut(kind as usize) {
            Some(writer) => {
                for cell in cells {
                    match cell {
                        Cell::Text(plain) => writer.write_field(plain)?,
                        Cell::Integer(value) => writer.write_field(itoa::Buffer::new().format(*value))?,
                        Cell::Unsigned(value) => writer.write_field(itoa::Buffer::new().format(*value))?,
                        other => writer.write_field(text(other))?,
                    }
                }
                // Ends the row.
                Ok(writer.write_record(None::<&[u8]>)?)
            }
            None => Ok(()),
        }
    }
}
