//! A column of a group of rows: its pages are encoded when they are full, and what all of them have in common
//! is known when the group is.

mod dictionary;
mod statistics;

use super::DISTINCT;
use super::batch::{Batch, Values};
use super::encoding::{differences, run, runs};
use super::names::IS_OTHER;
use crate::tables::store::{Width, width_of};
use crate::tables::{Kind, Type};
use ::parquet::basic::Encoding;
use ::parquet::bloom_filter::Sbbf;
use ::parquet::errors::ParquetError;
use ::parquet::file::page_index::column_index::ColumnIndexMetaData;
use ::parquet::file::statistics::Statistics;
use dictionary::{NameDictionary, NumberDictionary};
use statistics::{Bounds, Filter, PageBounds};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a page, or a few more.
const PAGE_ROWS: usize = if cfg!(test) { 20 } else { 1 << 14 };
/// Bytes of text of a page, or a text more.
const PAGE_BYTES: usize = 1 << 20;

/// A page of values that is encoded, but not compressed.
#[derive(Debug)]
pub struct Page {
    pub bytes: Vec<u8>,
    pub rows: usize,
    pub encoding: Encoding,
}

/// What is known of a column when all of its pages are.
#[derive(Debug)]
pub struct Ended {
    /// The distinct values that pages have numbers of, and how many there are.
    pub dictionary: Option<(Vec<u8>, usize)>,
    pub statistics: Statistics,
    pub filter: Option<Sbbf>,
    /// The least and greatest values of the pages.
    pub pages: Option<ColumnIndexMetaData>,
}

/// The rows of the open page, and what the group has so far.
pub struct Column {
    place: usize,
    are_there: Vec<bool>,
    missing: usize,
    open: Open,
    full: Vec<Page>,
    bounds: Bounds,
    /// Rows of the group that have no value.
    all_missing: usize,
    filter: Option<Filter>,
    page_bounds: Option<PageBounds>,
}

/// The values of the open page.
enum Open {
    /// Numbers that differ from row to row.
    Different(Vec<i64>),
    /// Numbers that repeat, or the bits of doubles.
    Numbers(Vec<i64>, Box<NumberDictionary>),
    /// Numbers of names, or places among the others.
    Names(Vec<u32>, Vec<Box<str>>, NameDictionary),
    /// The lengths of texts, and the texts behind each other.
    Texts(Vec<i64>, Vec<u8>),
}

impl Column {
    /// A column of a table, by its place, without rows.
    pub fn new(kind: Kind, place: usize) -> Self {
        let (name, of) = kind.table().columns[place];
        let open = match (of, width_of(name, of)) {
            (Type::Text, Width::Narrow) => Open::Names(Vec::new(), Vec::new(), NameDictionary::default()),
            (Type::Text, Width::Wide) => Open::Texts(Vec::new(), Vec::new()),
            (Type::Integer, _) if DISTINCT.contains(&name) => Open::Different(Vec::new()),
            _ => Open::Numbers(Vec::new(), Box::default()),
        };
        Self {
            place,
            are_there: Vec::new(),
            missing: 0,
            open,
            full: Vec::new(),
            bounds: Bounds::new(of),
            all_missing: 0,
            filter: (name == "name").then(Filter::default),
            page_bounds: ((name, of) == ("ts", Type::Integer)).then(PageBounds::default),
        }
    }

    /// Adds rows of a batch that are behind each other.
    pub fn extend(&mut self, batch: &Batch, rows: Range<usize>) {
        if let (Values::Numbers(from), Open::Different(values) | Open::Numbers(values, _)) =
            (&batch.columns[self.place], &mut self.open)
            && (from.is_empty() || from.all().is_some())
        {
            self.are_there.resize(self.are_there.len() + rows.len(), !from.is_empty());
            match from.all().and_then(|all| all.get(rows.clone())) {
                Some(added) => values.extend(added.iter().map(|value| *value as i64)),
                None => self.missing += rows.len(),
            }
            return;
        }
        self.gather(rows.map(|row| (batch, row)));
    }

    /// Adds rows of batches.
    pub fn gather<'b>(&mut self, rows: impl Iterator<Item = (&'b Batch, usize)>) {
        for (batch, row) in rows {
            let is_there = match (&batch.columns[self.place], &mut self.open) {
                (Values::Numbers(from), Open::Different(values) | Open::Numbers(values, _)) => {
                    let value = from.get(row);
                    values.extend(value.map(|value| value as i64));
                    value.is_some()
                }
                (Values::Names(from), Open::Names(values, others, _)) => {
                    let name = from[row];
                    if name & IS_OTHER != 0 {
                        values.push(IS_OTHER | others.len() as u32);
                        others.push(batch.others[(name & !IS_OTHER) as usize].clone());
                    } else if name != 0 {
                        values.push(name);
                    }
                    name != 0
                }
                (Values::Texts(from), Open::Texts(lengths, bytes)) => {
                    let text = from.get(row);
                    if let Some(text) = text {
                        lengths.push(text.len() as i64);
                        bytes.extend_from_slice(text);
                    }
                    text.is_some()
                }
                // The columns of a batch are those of its table.
                _ => false,
            };
            self.are_there.push(is_there);
            self.missing += usize::from(!is_there);
            if matches!(&self.open, Open::Texts(_, bytes) if bytes.len() >= PAGE_BYTES) {
                self.end_page(&[]);
            }
        }
    }

    /// Adds rows with these numbers.
    pub fn extend_numbers(&mut self, numbers: impl Iterator<Item = Option<u64>>) {
        let (Open::Different(values) | Open::Numbers(values, _)) = &mut self.open else { return };
        for number in numbers {
            values.extend(number.map(|number| number as i64));
            self.are_there.push(number.is_some());
            self.missing += usize::from(number.is_none());
        }
    }

    /// The pages that are full.
    pub fn full_pages(&mut self, names: &[Arc<str>]) -> std::vec::Drain<'_, Page> {
        if self.are_there.len() >= PAGE_ROWS {
            self.end_page(names);
        }
        self.full.drain(..)
    }

    /// Ends the group: the remaining pages, and what they have in common.
    pub fn end(&mut self, names: &[Arc<str>]) -> Result<(Vec<Page>, Ended), ParquetError> {
        if !self.are_there.is_empty() {
            self.end_page(names);
        }
        let dictionary = match &mut self.open {
            Open::Numbers(_, dictionary) => dictionary.take(),
            Open::Names(_, _, dictionary) => dictionary.take(),
            Open::Different(_) | Open::Texts(..) => None,
        };
        let ended = Ended {
            dictionary,
            statistics: self.bounds.take(std::mem::take(&mut self.all_missing)),
            filter: self.filter.as_mut().map(Filter::take).transpose()?,
            pages: self.page_bounds.as_mut().map(PageBounds::take).transpose()?,
        };
        Ok((std::mem::take(&mut self.full), ended))
    }

    fn end_page(&mut self, names: &[Arc<str>]) {
        let rows = self.are_there.len();
        let mut bytes = self.levels();
        let Self { open, bounds, filter, page_bounds, .. } = self;
        let encoding = match open {
            Open::Different(values) => {
                let of_page = bounds.add_numbers(values);
                if let Some(pages) = page_bounds {
                    pages.add(of_page, self.missing);
                }
                differences(values, &mut bytes);
                values.clear();
                Encoding::DELTA_BINARY_PACKED
            }
            Open::Numbers(values, dictionary) => {
                let encoding = dictionary.encode(values, bounds, &mut bytes);
                values.clear();
                encoding
            }
            Open::Names(values, others, dictionary) => {
                let mut seen = |name: &[u8]| {
                    bounds.add_text(name);
                    if let Some(filter) = filter {
                        filter.add(name);
                    }
                };
                let encoding = dictionary.encode(values, others, names, &mut seen, &mut bytes);
                values.clear();
                others.clear();
                encoding
            }
            Open::Texts(lengths, texts) => {
                let mut rest = &texts[..];
                for length in &*lengths {
                    let (text, behind) = rest.split_at(*length as usize);
                    bounds.add_text(text);
                    rest = behind;
                }
                differences(lengths, &mut bytes);
                bytes.append(texts);
                lengths.clear();
                Encoding::DELTA_LENGTH_BYTE_ARRAY
            }
        };
        self.all_missing += std::mem::take(&mut self.missing);
        self.are_there.clear();
        self.full.push(Page { bytes, rows, encoding });
    }

    /// Which rows of the page have a value: the number of bytes, and runs.
    fn levels(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        let rows = self.are_there.len();
        match self.missing {
            0 => run(1, rows, 1, &mut bytes),
            missing if missing == rows => run(0, rows, 1, &mut bytes),
            _ => runs(&self.are_there, 1, &mut bytes),
        }
        let length = bytes.len() as u32 - 4;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    }
}
