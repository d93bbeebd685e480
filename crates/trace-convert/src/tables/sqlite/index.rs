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

/// In place of the number of a value: there is none.
const NO_VALUE: u32 = u32::MAX;
/// How far rows are moved one by one to be in the order of their times, on average, before they are sorted:
/// the row of a slice comes when it ends.
const MAX_MOVES: usize = 8;
/// Values of which is known where rows were found last.
const HINTS: usize = 64;

/// Where rows were found last: by value, its places, and the last one before those found.
pub struct Hints([Option<(u64, Range<usize>, usize)>; HINTS]);

impl Default for Hints {
    fn default() -> Self {
        Self(std::array::from_fn(|_| None))
    }
}

/// How many values are before the first for which a condition does not hold: in a few steps if they are few.
fn gallop(values: &[i64], holds: impl Fn(i64) -> bool) -> usize {
    let (mut from, mut step) = (0, 1);
    while let Some(value) = values.get(from + step - 1)
        && holds(*value)
    {
        from += step;
        step *= 2;
    }
    let end = values.len().min(from + step - 1);
    from + values[from..end].partition_point(|value| holds(*value))
}

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
        let mut index = Self::default();
        let order = index.divide(data, kind, place)?;
        let (mut ts_cache, mut dur_cache) = (None, None);
        if let Some(ts) = ts {
            for row in &index.rows {
                let at = table.get(ts, u64::from(*row), &mut ts_cache, &data.spill)?;
                index.ts.push(at.unwrap_or_default() as i64);
            }
            order.into_iter().for_each(|range| index.sort(range));
        }
        let Some(dur) = dur.filter(|_| ts.is_some()) else { return Ok(Some(index)) };
        for (rows, ts) in index.rows.chunks(STRIDE).zip(index.ts.chunks(STRIDE)) {
            let mut last = i64::MIN;
            for (row, at) in rows.iter().zip(ts) {
                let dur = table.get(dur, u64::from(*row), &mut dur_cache, &data.spill)?;
                last = last.max(dur.map_or(i64::MIN, |dur| at.saturating_add(dur as i64)));
            }
            index.ends.push(last);
        }
        Ok(Some(index))
    }

    /// Puts rows with equal values next to each other, and returns where those of each value are.
    fn divide(&mut self, data: &Data, kind: Kind, place: Option<usize>) -> io::Result<Vec<Range<usize>>> {
        let table = &data.tables[kind as usize];
        let Some(place) = place else {
            self.rows = (0..table.rows as u32).collect();
            self.places.insert(0, 0..table.rows as u32);
            return Ok(Vec::from_iter(std::iter::once(0..self.rows.len())));
        };
        let mut cache = None;
        let mut numbers: HashMap<u64, u32, foldhash::fast::RandomState> = HashMap::default();
        // By number of the value: how many rows have it, and then where the next one is put.
        let mut counts: Vec<u32> = Vec::new();
        let mut of_rows = Vec::with_capacity(table.rows as usize);
        let mut last = None;
        for row in 0..table.rows {
            let value = table.get(place, row, &mut cache, &data.spill)?;
            let number = match (value, last) {
                (None, _) => NO_VALUE,
                (Some(value), Some((of, number))) if value == of => number,
                (Some(value), _) => {
                    let next = counts.len() as u32;
                    let number = *numbers.entry(value).or_insert(next);
                    if number == next {
                        counts.push(0);
                    }
                    last = Some((value, number));
                    number
                }
            };
            if let Some(count) = counts.get_mut(number as usize) {
                *count += 1;
            }
            of_rows.push(number);
        }
        let mut begin = 0;
        let mut ranges = Vec::with_capacity(counts.len());
        for count in &mut counts {
            let end = begin + *count;
            ranges.push(begin as usize..end as usize);
            *count = begin;
            begin = end;
        }
        self.rows = vec![0; begin as usize];
        for (row, number) in (0..).zip(of_rows) {
            if let Some(next) = counts.get_mut(number as usize) {
                self.rows[*next as usize] = row;
                *next += 1;
            }
        }
        let places = numbers.into_iter().map(|(value, number)| {
            let Range { start, end } = ranges[number as usize];
            (value, start as u32..end as u32)
        });
        self.places = places.collect();
        Ok(ranges)
    }

    /// Sorts the rows of a value by their times; most are nearly in order.
    fn sort(&mut self, range: Range<usize>) {
        let (rows, ts) = (&mut self.rows[range.clone()], &mut self.ts[range]);
        let mut moves = MAX_MOVES * ts.len();
        for place in 1..ts.len() {
            let mut at = place;
            while at > 0 && ts[at - 1] > ts[at] && moves > 0 {
                ts.swap(at - 1, at);
                rows.swap(at - 1, at);
                (at, moves) = (at - 1, moves - 1);
            }
        }
        if moves > 0 {
            return;
        }
        let mut entries: Vec<(i64, u32)> = ts.iter().copied().zip(rows.iter().copied()).collect();
        entries.sort_unstable();
        for ((row, ts), (at, of)) in rows.iter_mut().zip(ts).zip(entries) {
            (*row, *ts) = (of, at);
        }
    }

    /// The places of the rows with a value, and times in a range. A hint is where the rows of the last call
    /// with this value began: those of a join come in the order of their times.
    pub fn find(&self, value: u64, from: i64, to: i64, hint: &mut Hints) -> Range<usize> {
        let slot = &mut hint.0[value as usize % HINTS];
        if slot.as_ref().is_none_or(|(of, ..)| *of != value) {
            let Some(range) = self.places.get(&value) else { return 0..0 };
            *slot = Some((value, range.start as usize..range.end as usize, 0));
        }
        let Some((_, range, last)) = slot else { return 0..0 };
        if self.ts.is_empty() || (from, to) == (i64::MIN, i64::MAX) {
            return range.clone();
        }
        let ts = &self.ts[range.clone()];
        let (mut known, mut step) = (*last, 1);
        while known > 0 && ts.get(known).is_none_or(|at| *at >= from) {
            known = known.saturating_sub(step);
            step *= 2;
        }
        let first = known + gallop(&ts[known..], |at| at < from);
        let behind = first + gallop(&ts[first..], |at| at <= to);
        *last = first.saturating_sub(1);
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
