//! Tables as Parquet files, in the order of time.
//!
//! A first pass over the trace finds the order of the rows, and how slices are in each other. A second one
//! collects the rows that come late, if there are any. The last one reads the trace while a second thread
//! sorts rows and writes them.
//= docs/tables.md#parquet

mod batch;
mod column;
mod late;
mod names;
mod nesting;
mod reading;
mod sorting;
mod writing;

use super::order::{self, Order};
use super::store::Whole;
use super::{ChosenRows, KINDS, Kind, TABLES, Table, Trace, Type};
use crate::{ConvertError, Filter, Summary};
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{KeyValue, SortingColumn};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use late::Late;
use reading::Reading;
use sorting::Sorting;
use std::io::{self, Write};
use std::sync::mpsc::sync_channel;
use std::thread::{self, Builder};
use writing::Output;

/// The version of tables, columns and their meaning. It grows with a column that is removed or means
/// something else; a new column leaves it.
//= docs/tables.md#parquet
pub const SCHEMA_VERSION: u32 = 1;
/// Batches between the threads that wait at a time.
const WAITING: usize = 4;
/// Rows of a page.
const PAGE_ROWS: usize = if cfg!(test) { 20 } else { 1 << 14 };
/// Rows that are encoded before the sizes of pages and of a group are looked at.
const ROWS_AT_ONCE: usize = if cfg!(test) { 20 } else { 1 << 12 };
/// Bytes of a column's distinct values in a group. With more, the pages that follow have the values.
const DICTIONARY_BYTES: usize = if cfg!(test) { 200 } else { 1 << 20 };
/// Bytes of a dictionary of numbers, at most: beyond, numbers take less room without one.
const NUMBERS_BYTES: usize = if cfg!(test) { 200 } else { 1 << 16 };
/// Distinct names of a group that its filter is made for: it is 10 KiB then.
const BLOOM_NAMES: u64 = 8192;
/// Columns that are different in nearly every row.
const DISTINCT: [&str; 9] =
    ["ts", "dur", "id", "parent_id", "self_dur", "first_ts", "last_ts", "integer", "ts_utc"];

/// The error of an output as it was, or another one.
fn other(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
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

/// How a table is written.
fn properties(kind: Kind) -> WriterProperties {
    let table = kind.table();
    let entry = |key: &str, value: String| KeyValue { key: key.to_owned(), value: Some(value) };
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("trace {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![
            entry("trace.schema_version", SCHEMA_VERSION.to_string()),
            entry("trace.table", table.name.to_owned()),
        ]))
        .set_max_row_group_row_count(None)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(ROWS_AT_ONCE)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    if let Some(place) = order::ts_of(kind) {
        let by_time = SortingColumn { column_idx: place as i32, descending: false, nulls_first: true };
        let ts = ColumnPath::from("ts");
        properties = properties
            .set_sorting_columns(Some(vec![by_time]))
            .set_column_statistics_enabled(ts, EnabledStatistics::Page);
    }
    for (name, of) in table.columns {
        let column = ColumnPath::from(*name);
        if *name == "name" {
            properties = properties
                .set_column_bloom_filter_enabled(column.clone(), true)
                .set_column_bloom_filter_max_ndv(column.clone(), BLOOM_NAMES);
        }
        let is_long = super::store::LONG.contains(name);
        let encoding = match of {
            Type::Integer | Type::Unsigned => Some(Encoding::DELTA_BINARY_PACKED),
            Type::Text if is_long => Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
            Type::Text | Type::Double => None,
        };
        if let Some(encoding) = encoding {
            properties = properties.set_column_encoding(column.clone(), encoding);
        }
        if *of != Type::Text {
            properties = properties.set_column_dictionary_page_size_limit(column.clone(), NUMBERS_BYTES);
        }
        if is_long || DISTINCT.contains(name) {
            properties = properties.set_column_dictionary_enabled(column, false);
        }
    }
    properties.build()
}

/// Writes all tables of a trace; the function creates the output for a table's name.
///
/// # Errors
/// The trace cannot be read, or an output cannot be made or written.
pub fn write_parquet<'w, W: Write + Send + 'w>(
    trace: Trace,
    filter: &Filter,
    mut output: impl FnMut(&str) -> io::Result<W>,
) -> Result<Summary, ConvertError> {
    let output = |name: &str| output(name).map(|output| Box::new(output) as Output<'w>);
    let outputs: io::Result<_> = TABLES.iter().map(|table| table.name).map(output).collect();
    write(trace, filter, outputs.map_err(ConvertError::Write)?)
}

fn write(trace: Trace, filter: &Filter, outputs: Vec<Output<'_>>) -> Result<Summary, ConvertError> {
    let mut order = Order::default();
    let mut whole = Whole::in_time(trace, filter, &order::columns(), &mut order)?;
    order.finish();
    let mut late: [Option<Late>; KINDS] = std::array::from_fn(|_| None);
    if Kind::ALL.iter().any(|kind| order.has_late(*kind)) {
        let mut collecting = late::Collecting::new(&order);
        whole.fill(&mut whole.nesting().around(&mut collecting))?;
        late = collecting.finish().map_err(ConvertError::Write)?;
    }
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(WAITING);
        let (emptied, room) = sync_channel(WAITING);
        let sorting = Sorting::new(outputs, whole.nesting(), emptied).map_err(ConvertError::Write)?;
        let writer =
            Builder::new().name("write".to_owned()).spawn_scoped(scope, move || sorting.run(&receiver));
        let writer = writer.map_err(ConvertError::Write)?;
        let mut reading = Reading::new(&order, ChosenRows::new(filter), late, sender, room);
        let filled = whole.fill(&mut reading);
        let filled = filled.and_then(|summary| {
            reading.finish().map_err(ConvertError::Write)?;
            Ok(summary)
        });
        drop(reading);
        match writer.join() {
            Ok(Ok(())) => filled,
            // The reading thread only knows that there is no other one.
            Ok(Err(error)) => Err(ConvertError::Write(error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
