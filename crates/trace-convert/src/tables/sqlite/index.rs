//! The rows of a table by the values of a column, those of one value in the order of their times: for joins,
//! which look for rows again and again.

use crate::tables::Kind;
use crate::tables::store::Data;
use std::collections::HashMap;
use std::io;
use std::ops::Range;

/// Most rows of a table with an index: 16 bytes of memory for each.
const MAX_ROWS: u64 = 4_000_000;
/// Rows of which the last end is known together.
const STRIDE: usize = 64;

/// Where the rows with a value are.
#[derive(Debug, Default)]
pub struct Index {
    places: HashMap<u64, Range<u32>, foldhash::fast::RandomState>,
    /// The rows.
    rows: Vec<u32>,
    /// Their times, if the table has any.
    ts: Vec<i64>,
    /// The last end of each so many rows.
    ends: Vec<i64>,
}

impl Index {
    /// The index of a column, or without one that of the times alone; none if there are too many rows.
    pub fn of(data: &Data, kind: Kind, place: Option<usize>) -> io::Result<Option<Self>> {
        let table = &data.tables[kind as usize];
        if table.rows > MAX_ROWS {
            return Ok(None);
        }
        let is_there = |name: &str| {
            let place = kind.table().place(name)?;
            table.columns[place].is_some().then_some(place)
        };
        let (ts, dur) = (is_there("ts"), is_there("dur"));
        let (mut cache, mut ts_cache, mut dur_cache) = (None, None, None);
        let mut entries = Vec::with_capacity(table.rows as usize);
        for row in 0..table.rows {
            let value = match place {
                Some(place) => table.get(place, row, &mut cache, &data.spill)?,
                None => Some(0),
            };
            let Some(value) = value else { continue };
            let at = match ts {
                Some(ts) => table.get(ts, row, &mut ts_cache, &data.spill)?.unwrap_or_default() as i64,
                None => 0,
            };
            entries.push((value, at, row as u32));
        }
        entries.sort_unstable();
        let mut index = Self::default();
        for part in entries.chunk_by(|a, b| a.0 == b.0) {
            let begin = index.rows.len() as u32;
            index.rows.extend(part.iter().map(|(.., row)| *row));
            index.places.insert(part[0].0, begin..index.rows.len() as u32);
        }
        if ts.is_some() {
            index.ts = entries.iter().map(|(_, at, _)| *at).collect();
        }
        let Some(dur) = dur.filter(|_| ts.is_some()) else { return Ok(Some(index)) };
        for part in entries.chunks(STRIDE) {
            let mut last = i64::MIN;
            for (_, at, row) in part {
                let dur = table.get(dur, u64::from(*row), &mut dur_cache, &data.spill)?;
                last = last.max(dur.map_or(i64::MIN, |dur| at.saturating_add(dur as i64)));
            }
            index.ends.push(last);
        }
        Ok(Some(index))
    }

    /// The places of the rows with a value, and times in a range.
    pub fn find(&self, value: u64, from: i64, to: i64) -> Range<usize> {
        let Some(range) = self.places.get(&value) else { return 0..0 };
        let range = range.start as usize..range.end as usize;
        if self.ts.is_empty() || (from, to) == (i64::MIN, i64::MAX) {
            return range;
        }
        let ts = &self.ts[range.clone()];
        let first = ts.partition_point(|at| *at < from);
        let behind = first + ts[first..].partition_point(|at| *at <= to);
        range.start + first..range.start + behind
    }

    /// The row at a place.
    pub fn row(&self, place: usize) -> u64 {
        u64::from(self.rows[place])
    }

    /// The first place from one on at which a row may end at a time or later.
    pub fn skip(&self, mut place: usize, end: i64) -> usize {
        while self.ends.get(place / STRIDE).is_some_and(|last| *last < end) {
            place = (place / STRIDE + 1) * STRIDE;
        }
        place
    }
}
