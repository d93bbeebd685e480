//! Tables as Parquet files.
//= docs/tables.md#parquet

use super::{Cell, Kind, Rows, TABLES, Table, Type};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

/// Number of rows in a group.
const GROUP_ROWS: usize = 32_000;
/// Bytes of text in a group.
const GROUP_TEXT_BYTES: usize = 16 << 20;

/// One output for each table.
pub struct Parquet<W: Write + Send> {
    writers: Vec<TableWriter<W>>,
}

struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
    text_bytes: usize,
}

/// Waiting values of a column, and for each row whether it has one.
#[derive(Default)]
struct Column {
    is_there: Vec<i16>,
    integers: Vec<i64>,
    doubles: Vec<f64>,
    texts: Vec<ByteArray>,
}

fn other(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// A table's columns in Parquet's syntax.
fn schema(table: &Table) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|(name, of)| match of {
            Type::Integer => format!("optional int64 {name};"),
            Type::Unsigned => format!("optional int64 {name} (INTEGER(64,false));"),
            Type::Double => format!("optional double {name};"),
            Type::Text => format!("optional binary {name} (STRING);"),
        })
        .collect();
    format!("message {} {{ {} }}", table.name, columns.join(" "))
}

impl<W: Write + Send> Parquet<W> {
    /// Begins all tables; the function creates the output for a table's name.
    ///
    /// # Errors
    /// An output cannot be made or written.
    pub fn new(mut output: impl FnMut(&str) -> io::Result<W>) -> io::Result<Self> {
        let compression = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(compression);
        let properties = Arc::new(properties.set_created_by("trace".to_owned()).build());
        let mut writers = Vec::new();
        for table in TABLES {
            let schema = Arc::new(parse_message_type(&schema(&table)).map_err(other)?);
            let writer = SerializedFileWriter::new(output(table.name)?, schema, properties.clone());
            let columns = table.columns.iter().map(|_| Column::default()).collect();
            writers.push(TableWriter { writer: writer.map_err(other)?, columns, rows: 0, text_bytes: 0 });
        }
        Ok(Self { writers })
    }

    /// Writes remaining data.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> io::Result<()> {
        for mut table in self.writers {
            table.flush().map_err(other)?;
            table.writer.close().map_err(other)?;
        }
        Ok(())
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// Writes waiting values, as a group of rows.
    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for waiting in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            let is_there = Some(waiting.is_there.as_slice());
            match column.untyped() {
                ColumnWriter::Int64ColumnWriter(writer) => {
                    writer.write_batch(&waiting.integers, is_there, None)?;
                }
                ColumnWriter::DoubleColumnWriter(writer) => {
                    writer.write_batch(&waiting.doubles, is_there, None)?;
                }
                ColumnWriter::ByteArrayColumnWriter(writer) => {
                    writer.write_batch(&waiting.texts, is_there, None)?;
                }
                _ => return Err(ParquetError::General("a column of another type".to_owned())),
            }
            column.close()?;
            *waiting = Column::default();
        }
        group.close()?;
        (self.rows, self.text_bytes) = (0, 0);
        Ok(())
    }
}

impl<W: Write + Send> Rows for Parquet<W> {
    fn row(&mut self, kind: Kind, cells: &[Cell<'_>]) -> io::Result<()> {
        let Some(table) = self.writers.get_mut(kind as usize) else { return Ok(()) };
        for (column, cell) in table.columns.iter_mut().zip(cells) {
            column.is_there.push(i16::from(*cell != Cell::Null));
            match *cell {
                Cell::Null => {}
                Cell::Integer(value) => column.integers.push(value),
                // The schema declares it unsigned.
                Cell::Unsigned(value) => column.integers.push(value as i64),
                Cell::Double(value) => column.doubles.push(value),
                Cell::Text(text) => {
                    table.text_bytes += text.len();
                    column.texts.push(ByteArray::from(text.as_bytes().to_vec()));
                }
            }
        }
        table.rows += 1;
        if table.rows >= GROUP_ROWS || table.text_bytes >= GROUP_TEXT_BYTES {
            table.flush().map_err(other)?;
        }
        Ok(())
    }
}
