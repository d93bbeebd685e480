//! The thread that writes: it sorts batches, and writes groups of rows.

use super::batch::{Batch, Values};
use super::names::IS_OTHER;
use super::reading::Message;
use super::{other, properties, schema};
use crate::tables::Kind;
use crate::tables::order::{NO_TIME, ts_of};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Number of rows in a group.
//= docs/tables.md#parquet
const GROUP_ROWS: usize = if cfg!(test) { 50 } else { 1 << 18 };
/// Bytes of text in a group.
const GROUP_TEXT_BYTES: usize = 32 << 20;
/// Rows that are added before the bytes of a group are looked at.
const ROWS_AT_ONCE: usize = 4096;
/// Bytes of all groups that are not complete.
const GROUPS_BYTES: usize = 96 << 20;

/// The outputs of all tables.
pub struct Writing<W: Write + Send> {
    tables: Vec<TableWriter<W>>,
    names: Vec<ByteArray>,
}

struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    ts: Option<usize>,
    /// Rows that may have to wait for earlier ones.
    pending: Vec<Sorted>,
    group: Group,
    last: (i64, u64),
}

/// A batch, and its rows in order of time: time, number and place.
struct Sorted {
    batch: Batch,
    order: Vec<(i64, u64, u32)>,
}

/// Rows of a group, in order.
struct Group {
    rows: usize,
    bytes: usize,
    text_bytes: usize,
    columns: Vec<Column>,
    /// Names without a number.
    others: Vec<ByteArray>,
}

/// The values of a column of a group, and for each row whether it has one.
#[derive(Default)]
struct Column {
    is_there: Vec<i16>,
    /// Numbers, or the bits of doubles.
    numbers: Vec<i64>,
    names: Vec<u32>,
    ends: Vec<usize>,
    text: Vec<u8>,
}

impl<W: Write + Send> Writing<W> {
    /// Begins all tables, in the order of [`Kind`].
    pub fn new(outputs: Vec<W>) -> io::Result<Self> {
        let mut tables = Vec::new();
        for (kind, output) in Kind::ALL.into_iter().zip(outputs) {
            let schema = Arc::new(parse_message_type(&schema(kind.table())).map_err(other)?);
            let writer = SerializedFileWriter::new(output, schema, Arc::new(properties(kind)));
            tables.push(TableWriter {
                writer: writer.map_err(other)?,
                ts: ts_of(kind),
                pending: Vec::new(),
                group: Group::new(kind),
                last: (i64::MIN, 0),
            });
        }
        Ok(Self { tables, names: Vec::new() })
    }

    /// Writes what comes, until there is no more.
    pub fn run(mut self, messages: &Receiver<Message>) -> io::Result<()> {
        for Message { kind, batch, new_names, bound } in messages {
            self.names.extend(new_names);
            let Some(table) = self.tables.get_mut(kind as usize) else { continue };
            table.add(batch);
            table.emit(bound, &self.names)?;
            self.limit()?;
        }
        for mut table in self.tables {
            table.flush(&self.names)?;
            table.writer.close().map_err(other)?;
        }
        Ok(())
    }

    /// Writes the largest groups if all together are too large.
    fn limit(&mut self) -> io::Result<()> {
        while self.tables.iter().map(|table| table.group.memory()).sum::<usize>() > GROUPS_BYTES {
            let Some(largest) = self.tables.iter_mut().max_by_key(|table| table.group.memory()) else {
                break;
            };
            largest.flush(&self.names)?;
        }
        Ok(())
    }
}

impl<W: Write + Send> TableWriter<W> {
    fn add(&mut self, batch: Batch) {
        let times = self.ts.and_then(|place| match batch.columns.get(place) {
            Some(Values::Numbers(times, are_there)) => Some((times, are_there)),
            _ => None,
        });
        let ts = |place: usize| match times {
            Some((times, are_there)) if are_there[place] => times[place] as i64,
            Some(_) => NO_TIME,
            None => 0,
        };
        let rows = batch.rows.iter().enumerate();
        let mut order: Vec<_> = rows.map(|(place, row)| (ts(place), *row, place as u32)).collect();
        order.sort_unstable();
        self.pending.push(Sorted { batch, order });
    }

    /// Moves rows that are before the bound into groups; all if there is none.
    fn emit(&mut self, bound: Option<(i64, u64)>, names: &[ByteArray]) -> io::Result<()> {
        let mut order: Vec<(i64, u64, u32, u32)> = Vec::new();
        for (number, Sorted { order: rows, .. }) in self.pending.iter_mut().enumerate() {
            let end =
                bound.map_or(rows.len(), |bound| rows.partition_point(|(ts, row, _)| (*ts, *row) < bound));
            order.extend(rows.drain(..end).map(|(ts, row, place)| (ts, row, number as u32, place)));
        }
        order.sort();
        if let (Some(first), Some(last)) = (order.first(), order.last()) {
            if (first.0, first.1) < self.last {
                return Err(io::Error::other("the trace has changed while it was read"));
            }
            self.last = (last.0, last.1);
        }
        let mut rest = &order[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(GROUP_ROWS - self.group.rows).min(ROWS_AT_ONCE));
            self.group.gather(&self.pending, now);
            rest = later;
            if self.group.rows >= GROUP_ROWS || self.group.text_bytes >= GROUP_TEXT_BYTES {
                self.flush(names)?;
            }
        }
        self.pending.retain(|sorted| !sorted.order.is_empty());
        Ok(())
    }

    /// Writes a group of rows.
    fn flush(&mut self, names: &[ByteArray]) -> io::Result<()> {
        self.write_group(names).map_err(other)
    }

    fn write_group(&mut self, names: &[ByteArray]) -> Result<(), ParquetError> {
        if self.group.rows == 0 {
            return Ok(());
        }
        let Group { others, columns, .. } = &mut self.group;
        let mut group = self.writer.next_row_group()?;
        for values in columns {
            let Some(mut column) = group.next_column()? else { break };
            let is_there = Some(values.is_there.as_slice());
            match column.untyped() {
                ColumnWriter::Int64ColumnWriter(writer) => {
                    writer.write_batch(&values.numbers, is_there, None)?;
                }
                ColumnWriter::DoubleColumnWriter(writer) => {
                    let doubles = values.numbers.iter().map(|bits| f64::from_bits(*bits as u64));
                    writer.write_batch(&doubles.collect::<Vec<f64>>(), is_there, None)?;
                }
                ColumnWriter::ByteArrayColumnWriter(writer) => {
                    let texts = values.texts(names, others);
                    writer.write_batch(&texts, Some(&values.is_there), None)?;
                }
                _ => return Err(ParquetError::General("a column of another type".to_owned())),
            }
            column.close()?;
            values.clear();
        }
        group.close()?;
        others.clear();
        (self.group.rows, self.group.bytes, self.group.text_bytes) = (0, 0, 0);
        Ok(())
    }
}

impl Column {
    /// Texts that are there.
    fn texts(&mut self, names: &[ByteArray], others: &[ByteArray]) -> Vec<ByteArray> {
        if self.ends.is_empty() {
            let name = |number: &u32| match number & IS_OTHER {
                0 => names.get(*number as usize - 1),
                _ => others.get((number & !IS_OTHER) as usize),
            };
            return self.names.iter().map(|number| name(number).cloned().unwrap_or_default()).collect();
        }
        // One allocation for all of them.
        let text = ByteArray::from(std::mem::take(&mut self.text));
        let mut from = 0;
        let slice = |end: &usize| {
            let text = text.slice(from, *end - from);
            from = *end;
            text
        };
        self.ends.iter().map(slice).collect()
    }

    fn clear(&mut self) {
        let Self { is_there, numbers, names, ends, text } = self;
        is_there.clear();
        numbers.clear();
        names.clear();
        ends.clear();
        text.clear();
    }
}

impl Group {
    fn new(kind: Kind) -> Self {
        let columns = kind.table().columns.iter().map(|_| Column::default()).collect();
        Self { rows: 0, bytes: 0, text_bytes: 0, columns, others: Vec::new() }
    }

    fn memory(&self) -> usize {
        self.bytes + self.text_bytes
    }

    /// Adds rows, by the numbers of their batches and their places.
    fn gather(&mut self, batches: &[Sorted], rows: &[(i64, u64, u32, u32)]) {
        let places = || rows.iter().map(|(.., batch, place)| (*batch as usize, *place as usize));
        for (number, column) in self.columns.iter_mut().enumerate() {
            let values: Vec<&Values> = batches.iter().map(|sorted| &sorted.batch.columns[number]).collect();
            for (batch, place) in places() {
                column.is_there.push(match values[batch] {
                    Values::Numbers(numbers, are_there) => {
                        if are_there[place] {
                            column.numbers.push(numbers[place] as i64);
                        }
                        are_there[place].into()
                    }
                    Values::Names(numbers) => {
                        let mut name = numbers[place];
                        if name & IS_OTHER != 0 {
                            let other = &batches[batch].batch.others[(name & !IS_OTHER) as usize];
                            self.text_bytes += other.len();
                            self.others.push(other.clone());
                            name = IS_OTHER | (self.others.len() as u32 - 1);
                        }
                        if name != 0 {
                            column.names.push(name);
                        }
                        (name != 0).into()
                    }
                    Values::Texts(ends, are_there, text) => {
                        if are_there[place] {
                            let from = place.checked_sub(1).map_or(0, |before| ends[before]);
                            let text = &text[from as usize..ends[place] as usize];
                            self.text_bytes += text.len();
                            column.text.extend_from_slice(text);
                            column.ends.push(column.text.len());
                        }
                        are_there[place].into()
                    }
                });
            }
        }
        self.rows += rows.len();
        self.bytes += rows.len() * 8 * self.columns.len();
    }
}
