//! The thread that writes: it compresses pages, and writes groups of rows when all of their pages are there.

use super::column::{Ended, Page};
use super::sorting::Encoded;
use super::{COMPRESSION_LEVEL, other, properties, schema};
use crate::tables::Kind;
use ::parquet::basic::{Compression, Encoding, EncodingMask, ZstdLevel};
use ::parquet::column::page::{CompressedPage, Page as FilePage, PageWriteSpec, PageWriter};
use ::parquet::column::writer::ColumnCloseResult;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder, PageEncodingStats};
use ::parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use ::parquet::schema::parser::parse_message_type;
use bytes::Bytes;
use std::io::{self, Write};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use zstd::bulk::Compressor;

/// The outputs of all tables.
pub struct Writing<W: Write + Send> {
    tables: Vec<TableWriter<W>>,
    compressor: Compressor<'static>,
    failure: Failure,
}

/// Why an output could not be written: the library forgets some errors.
type Failure = Arc<Mutex<Option<io::Error>>>;

/// An output that remembers why it could not be written.
struct Remembering<W> {
    output: W,
    failure: Failure,
}

impl<W> Remembering<W> {
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let copy = io::Error::new(error.kind(), error.to_string());
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            copy
        })
    }
}

impl<W: Write> Write for Remembering<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.output.flush();
        self.noted(flushed)
    }
}

struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<Remembering<W>>,
    /// The columns of the group that is not complete.
    chunks: Vec<Chunk>,
}

/// The pages of a column.
struct Chunk {
    pages: TrackedWrite<Vec<u8>>,
    offsets: OffsetIndexBuilder,
    encodings: Vec<PageEncodingStats>,
    uncompressed_bytes: usize,
}

impl<W: Write + Send> Writing<W> {
    /// Begins all tables, in the order of [`Kind`].
    pub fn new(outputs: Vec<W>) -> io::Result<Self> {
        let (mut tables, failure) = (Vec::new(), Failure::default());
        for (kind, output) in Kind::ALL.into_iter().zip(outputs) {
            let schema = Arc::new(parse_message_type(&schema(kind.table())).map_err(other)?);
            let output = Remembering { output, failure: failure.clone() };
            let file = SerializedFileWriter::new(output, schema, Arc::new(properties(kind)));
            let chunks = kind.table().columns.iter().map(|_| Chunk::new()).collect();
            tables.push(TableWriter { file: file.map_err(other)?, chunks });
        }
        Ok(Self { tables, compressor: Compressor::new(COMPRESSION_LEVEL)?, failure })
    }

    /// Writes what comes, until there is no more; completes the files if the thread before has come to its
    /// end.
    pub fn run(self, encoded: &Receiver<Encoded>) -> io::Result<()> {
        let failure = self.failure.clone();
        self.write(encoded).map_err(|error| {
            let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
            failure.unwrap_or(error)
        })
    }

    fn write(mut self, encoded: &Receiver<Encoded>) -> io::Result<()> {
        for encoded in encoded {
            match encoded {
                Encoded::Page(kind, place, page) => {
                    if let Some(chunk) =
                        self.tables.get_mut(kind as usize).and_then(|table| table.chunks.get_mut(place))
                    {
                        chunk.data(page, &mut self.compressor).map_err(other)?;
                    }
                }
                Encoded::Group(kind, rows, columns) => {
                    if let Some(table) = self.tables.get_mut(kind as usize) {
                        table.group(rows, columns, &mut self.compressor).map_err(other)?;
                    }
                }
            }
        }
        self.tables.into_iter().try_for_each(|table| table.file.close().map(|_| ()).map_err(other))
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// Writes a group of rows.
    fn group(
        &mut self,
        rows: usize,
        columns: Vec<Ended>,
        compressor: &mut Compressor<'static>,
    ) -> Result<(), ParquetError> {
        let descriptors = self.file.schema_descr().columns().to_vec();
        let mut group = self.file.next_row_group()?;
        for ((chunk, ended), of) in self.chunks.iter_mut().zip(columns).zip(descriptors) {
            let chunk = std::mem::replace(chunk, Chunk::new());
            let metadata = ColumnChunkMetaData::builder(of).set_num_values(rows as i64);
            let metadata = metadata.set_statistics(ended.statistics);
            let Chunk { pages, offsets, mut encodings, uncompressed_bytes } = chunk;
            let (mut bytes, mut uncompressed) = (Vec::new(), uncompressed_bytes);
            if let Some((values, count)) = ended.dictionary {
                let mut dictionary = Chunk::new();
                dictionary.dictionary(&values, count, compressor)?;
                encodings.splice(0..0, dictionary.encodings);
                uncompressed += dictionary.uncompressed_bytes;
                bytes = dictionary.pages.into_inner()?;
            }
            let dictionary_bytes = bytes.len();
            bytes.append(&mut pages.into_inner()?);
            let metadata = metadata
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_encodings_mask(EncodingMask::new_from_encodings(
                    encodings.iter().map(|of| &of.encoding).chain([&Encoding::RLE]),
                ))
                .set_page_encoding_stats(encodings)
                .set_total_compressed_size(bytes.len() as i64)
                .set_total_uncompressed_size(uncompressed as i64)
                .set_data_page_offset(0)
                .build()?;
            let close = ColumnCloseResult {
                bytes_written: bytes.len() as u64,
                rows_written: rows as u64,
                metadata,
                bloom_filter: ended.filter,
                column_index: ended.pages,
                offset_index: Some(offsets.build()),
            };
            let close = close.update_dictionary_location(dictionary_bytes)?;
            group.append_column(&Bytes::from(bytes), close)?;
        }
        group.close()?;
        Ok(())
    }
}

fn compressed(
    bytes: &[u8],
    compressor: &mut Compressor<'static>,
    page: impl FnOnce(Bytes) -> FilePage,
) -> Result<CompressedPage, ParquetError> {
    let compressed = compressor.compress(bytes)?;
    Ok(CompressedPage::new(page(compressed.into()), bytes.len()))
}

impl Chunk {
    fn new() -> Self {
        let (offsets, encodings) = (OffsetIndexBuilder::new(), Vec::new());
        Self { pages: TrackedWrite::new(Vec::new()), offsets, encodings, uncompressed_bytes: 0 }
    }

    fn dictionary(
        &mut self,
        values: &[u8],
        count: usize,
        compressor: &mut Compressor<'static>,
    ) -> Result<(), ParquetError> {
        let page = compressed(values, compressor, |buf| FilePage::DictionaryPage {
            buf,
            num_values: count as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        })?;
        self.write(page).map(|_| ())
    }

    fn data(&mut self, page: Page, compressor: &mut Compressor<'static>) -> Result<(), ParquetError> {
        let Page { bytes, rows, encoding } = page;
        let page = compressed(&bytes, compressor, |buf| FilePage::DataPage {
            buf,
            num_values: rows as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        })?;
        let written = self.write(page)?;
        self.offsets.append_row_count(rows as i64);
        self.offsets.append_offset_and_size(written.offset as i64, written.compressed_size as i32);
        Ok(())
    }

    fn write(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        let (page_type, encoding) = (page.page_type(), page.encoding());
        let written = SerializedPageWriter::new(&mut self.pages).write_page(page)?;
        self.uncompressed_bytes += written.uncompressed_size;
        match self.encodings.last_mut() {
            Some(last) if last.page_type == page_type && last.encoding == encoding => last.count += 1,
            _ => self.encodings.push(PageEncodingStats { page_type, encoding, count: 1 }),
        }
        Ok(written)
    }
}
