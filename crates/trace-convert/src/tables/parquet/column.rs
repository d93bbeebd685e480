//! A column of a group of rows, whose pages the package encodes and compresses.

use super::batch::{Batch, Values};
use super::names::IS_OTHER;
use ::parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use ::parquet::column::writer::{ColumnCloseResult, ColumnWriter, ColumnWriterImpl, get_column_writer};
use ::parquet::data_type::{ByteArray, DataType};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::properties::WriterPropertiesPtr;
use ::parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use ::parquet::schema::types::ColumnDescPtr;
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};

/// A column, by its place.
pub struct Column {
    place: usize,
    writer: ColumnWriter<'static>,
    pages: Pages,
}

/// The pages of a column, which its writer and the file share.
#[derive(Clone)]
struct Pages(Arc<Mutex<TrackedWrite<Vec<u8>>>>);

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        SerializedPageWriter::new(&mut *pages).write_page(page)
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Column {
    /// A column without rows.
    pub fn new(place: usize, descriptor: ColumnDescPtr, properties: WriterPropertiesPtr) -> Self {
        let pages = Pages(Arc::new(Mutex::new(TrackedWrite::new(Vec::new()))));
        let writer = get_column_writer(descriptor, properties, Box::new(pages.clone()));
        Self { place, writer, pages }
    }

    /// Adds rows of batches.
    pub fn extend(&mut self, rows: &[(&Batch, usize)], names: &[ByteArray]) -> Result<()> {
        let place = self.place;
        let numbers = rows.iter().map(|(batch, row)| batch.number(place, *row));
        let texts = rows.iter().map(|(batch, row)| match &batch.columns[place] {
            Values::Texts(texts) => texts.get(*row).map(|text| text.to_vec().into()),
            Values::Names(numbers) => match numbers[*row] {
                0 => None,
                name if name & IS_OTHER != 0 => Some(batch.other(name).into()),
                name => names.get(name as usize - 1).cloned(),
            },
            Values::Numbers(_) => None,
        });
        match &mut self.writer {
            ColumnWriter::ByteArrayColumnWriter(writer) => write(writer, texts),
            ColumnWriter::DoubleColumnWriter(writer) => {
                write(writer, numbers.map(|bits| bits.map(f64::from_bits)))
            }
            _ => self.extend_numbers(numbers),
        }
    }

    /// Adds rows with these numbers.
    pub fn extend_numbers(&mut self, numbers: impl ExactSizeIterator<Item = Option<u64>>) -> Result<()> {
        match &mut self.writer {
            ColumnWriter::Int64ColumnWriter(writer) => {
                write(writer, numbers.map(|number| number.map(|number| number as i64)))
            }
            _ => Err(ParquetError::General("the column has no integers".to_owned())),
        }
    }

    /// Ends the group: all pages, and what is known of them.
    pub fn end(self) -> Result<(Bytes, ColumnCloseResult)> {
        let closed = self.writer.close()?;
        let pages = Arc::into_inner(self.pages.0)
            .ok_or_else(|| ParquetError::General("the pages are in use".to_owned()))?;
        let pages = pages.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((pages.into_inner()?.into(), closed))
    }
}

fn write<T: DataType>(
    writer: &mut ColumnWriterImpl<'static, T>,
    rows: impl ExactSizeIterator<Item = Option<T::T>>,
) -> Result<()> {
    let (mut values, mut levels) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for value in rows {
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    writer.write_batch(&values, Some(&levels), None).map(|_| ())
}
