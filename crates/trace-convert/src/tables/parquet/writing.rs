//! The files of tables. Errors of their outputs are passed on.

use super::column::Column;
use super::{other, properties, schema};
use crate::tables::Kind;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a table is written.
pub type Output<'w> = Box<dyn Write + Send + 'w>;

/// Why an output could not be written: the library forgets some errors.
pub type Failure = Arc<Mutex<Option<io::Error>>>;

/// An output that remembers why it could not be written.
struct Remembering<'w> {
    output: Output<'w>,
    failure: Failure,
}

impl Remembering<'_> {
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let copy = io::Error::new(error.kind(), error.to_string());
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            copy
        })
    }
}

impl Write for Remembering<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.output.flush();
        self.noted(flushed)
    }
}

/// A table's file, and the columns of the group that is not complete.
pub struct TableFile<'w> {
    file: SerializedFileWriter<Remembering<'w>>,
    columns: Vec<Column>,
}

impl<'w> TableFile<'w> {
    /// Begins a file.
    pub fn new(kind: Kind, output: Output<'w>, failure: &Failure) -> io::Result<Self> {
        let schema = Arc::new(parse_message_type(&schema(kind.table())).map_err(other)?);
        let output = Remembering { output, failure: failure.clone() };
        let file = SerializedFileWriter::new(output, schema, Arc::new(properties(kind))).map_err(other)?;
        Ok(Self { file, columns: Vec::new() })
    }

    /// The columns of the group; a group begins if none has.
    pub fn columns(&mut self) -> &mut [Column] {
        if self.columns.is_empty() {
            let properties = self.file.properties();
            for (place, of) in self.file.schema_descr().columns().iter().enumerate() {
                self.columns.push(Column::new(place, of.clone(), properties.clone()));
            }
        }
        &mut self.columns
    }

    /// Writes the group.
    pub fn end_group(&mut self) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(other)?;
        for column in self.columns.drain(..) {
            let (pages, closed) = column.end().map_err(other)?;
            group.append_column(&pages, closed).map_err(other)?;
        }
        group.close().map(|_| ()).map_err(other)
    }

    /// Completes the file.
    pub fn close(self) -> io::Result<()> {
        self.file.close().map(|_| ()).map_err(other)
    }
}
