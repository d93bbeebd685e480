//! Rows with equal values one after the other, for `GROUP BY` and `DISTINCT`.
//!
//! Rows come in parts, each of which is put in the order of the groups in memory. What is used of them is
//! copied in that order, since the originals of a group are far from each other, and the parts are merged
//! while they are read.

use crate::tables::store::{Block, Column, Data, Limits, Spill, Width, Window, width_of};
use crate::tables::{Kind, Type};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// Rows of a part.
pub const PART_ROWS: usize = if cfg!(test) { 8 } else { 2 << 20 };
/// Most groups that are counted; with more, rows are sorted.
const MAX_GROUPS: usize = 1 << 20;
/// Memory for the copies, in bytes.
const MEMORY: usize = 48 << 20;

/// Rows in the order of their groups.
pub struct Grouped {
    kind: Kind,
    /// The columns that are grouped by.
    groups: Vec<usize>,
    /// The columns that are copied, by their bits.
    used: u64,
    /// The places of texts in their order, by number, once they are needed.
    ranks: Vec<u32>,
    spill: Spill,
    parts: Vec<Part>,
    /// The part that has the present row.
    current: usize,
    /// The place of the present row in it, if there is one yet.
    at: Option<u64>,
    /// Where rows of another group begin there.
    end: u64,
}

/// Some of the rows, in the order of their groups.
struct Part {
    /// Their numbers, from 1.
    rows: Column,
    /// By the place of the column.
    columns: Vec<Option<Column>>,
    /// The columns that are grouped by.
    keys: Vec<Window>,
    /// The first row that has not been the present one.
    next: u64,
    count: u64,
}

impl Part {
    /// A value of a column that is grouped by.
    fn key(&mut self, groups: &[usize], number: usize, at: u64, spill: &Spill) -> io::Result<Option<u64>> {
        let column = self.columns.get(groups[number]).and_then(Option::as_ref).ok_or_else(is_missing)?;
        self.keys[number].get(column, at, spill)
    }
}

/// The numbers of the groups that rows belong to, in the order of the groups' values.
struct Numbers {
    of_rows: Vec<u32>,
    count: usize,
}

fn is_text(kind: Kind, place: usize) -> bool {
    kind.table().columns.get(place).is_some_and(|(_, of)| *of == Type::Text)
}

/// What numbers with a sign are sorted by.
fn signed(value: u64) -> u64 {
    value ^ 1 << 63
}

impl Numbers {
    /// Divides each group by the values of a text column. False if there are too many.
    fn divide_by_texts(
        &mut self,
        ranks: &[u32],
        rows: &[u32],
        mut value: impl FnMut(u32) -> io::Result<Option<u64>>,
    ) -> io::Result<bool> {
        if !self.has_room_for(ranks.len()) {
            return Ok(false);
        }
        for (number, row) in self.of_rows.iter_mut().zip(rows) {
            let rank = value(*row)?.map_or(0, |text| ranks[text as usize]);
            *number = *number * ranks.len() as u32 + rank;
        }
        self.count *= ranks.len();
        Ok(true)
    }

    /// Divides each group by the values of a column of numbers. False if there are too many.
    fn divide(
        &mut self,
        rows: &[u32],
        mut value: impl FnMut(u32) -> io::Result<Option<u64>>,
    ) -> io::Result<bool> {
        let mut known: HashMap<u64, u32, foldhash::fast::RandomState> = HashMap::default();
        let mut last = None;
        for row in rows {
            let value = value(*row)?;
            if value == last {
                continue;
            }
            last = value;
            known.extend(value.map(|value| (signed(value), 0)));
            if !self.has_room_for(known.len() + 1) {
                return Ok(false);
            }
        }
        let mut order: Vec<u64> = known.keys().copied().collect();
        order.sort_unstable();
        (1..).zip(&order).for_each(|(rank, value)| _ = known.insert(*value, rank));
        for (number, row) in self.of_rows.iter_mut().zip(rows) {
            let rank = value(*row)?.map_or(0, |value| known[&signed(value)]);
            *number = *number * (order.len() as u32 + 1) + rank;
        }
        self.count *= order.len() + 1;
        Ok(true)
    }

    fn has_room_for(&self, values: usize) -> bool {
        self.count * values <= MAX_GROUPS
    }

    /// Replaces each number by the row's place in the order of the groups.
    fn into_places(mut self) -> Vec<u32> {
        let mut begins = vec![0; self.count + 1];
        self.of_rows.iter().for_each(|number| begins[*number as usize + 1] += 1);
        for number in 1..begins.len() {
            begins[number] += begins[number - 1];
        }
        for number in &mut self.of_rows {
            let place: &mut u32 = &mut begins[*number as usize];
            *number = *place;
            *place += 1;
        }
        self.of_rows
    }
}

impl Grouped {
    /// No rows yet. Groups are made by some columns, and columns are used, by their bits.
    pub fn new(kind: Kind, groups: Vec<usize>, used: u64) -> Self {
        let used = groups.iter().fold(used, |used, place| used | 1 << place);
        let spill = Spill::new(Limits { columns: MEMORY, ..Limits::default() });
        Self { kind, groups, used, ranks: Vec::new(), spill, parts: Vec::new(), current: 0, at: None, end: 0 }
    }

    /// Adds a part.
    pub fn add(&mut self, data: &Data, rows: &[u32]) -> io::Result<()> {
        let places = self.places(data, rows)?;
        let table = &data.tables[self.kind as usize];
        let mut columns = Vec::new();
        for (place, (name, of)) in self.kind.table().columns.iter().enumerate() {
            if self.used & 1 << place == 0 {
                columns.push(None);
                continue;
            }
            let (column, mut window) = (table.column(place)?, Window::default());
            let value = |row: u32| window.get(column, row.into(), &data.spill);
            columns.push(Some(self.copy(width_of(name, *of), rows, &places, value)?));
        }
        let numbers = self.copy(Width::Narrow, rows, &places, |row| Ok(Some(u64::from(row) + 1)))?;
        let keys = self.groups.iter().map(|_| Window::default()).collect();
        self.parts.push(Part { rows: numbers, columns, keys, next: 0, count: rows.len() as u64 });
        Ok(())
    }

    fn copy(
        &self,
        width: Width,
        rows: &[u32],
        places: &[u32],
        mut value: impl FnMut(u32) -> io::Result<Option<u64>>,
    ) -> io::Result<Column> {
        let mut block = Block::with_rows(width, places.len());
        for (row, place) in rows.iter().zip(places) {
            block.set(*place as usize, value(*row)?);
        }
        Column::of(width, &block, &self.spill)
    }

    /// Where rows are in the order of their groups.
    fn places(&mut self, data: &Data, rows: &[u32]) -> io::Result<Vec<u32>> {
        let mut numbers = Numbers { of_rows: vec![0; rows.len()], count: 1 };
        for place in &self.groups {
            let (column, mut window) = (data.tables[self.kind as usize].column(*place)?, Window::default());
            let value = |row: u32| window.get(column, row.into(), &data.spill);
            let is_divided = match is_text(self.kind, *place) {
                true if data.texts.has_unnumbered() => false,
                true => {
                    if self.ranks.is_empty() {
                        self.ranks = data.texts.ranks();
                    }
                    numbers.divide_by_texts(&self.ranks, rows, value)?
                }
                false => numbers.divide(rows, value)?,
            };
            if !is_divided {
                return sorted(data, self.kind, &self.groups, rows);
            }
        }
        Ok(numbers.into_places())
    }

    /// Goes on to the next row, and returns its place in its part.
    #[inline(always)]
    pub fn next(&mut self, data: &Data) -> io::Result<Option<u64>> {
        match &mut self.at {
            Some(at) if *at + 1 < self.end => {
                *at += 1;
                Ok(Some(*at))
            }
            _ => self.choose(data),
        }
    }

    /// The part that has the present row, by its number.
    pub fn part(&self) -> usize {
        self.current
    }

    /// Goes on to the part with the least group.
    #[inline(never)]
    fn choose(&mut self, data: &Data) -> io::Result<Option<u64>> {
        if let Some(part) = self.parts.get_mut(self.current).filter(|_| self.at.is_some()) {
            part.next = self.end;
        }
        let mut least = None;
        for number in (0..self.parts.len()).rev() {
            if self.parts[number].next == self.parts[number].count {
                continue;
            }
            least = match least {
                Some(least) if self.compare(data, number, least)?.is_gt() => Some(least),
                _ => Some(number),
            };
        }
        let Some(least) = least else { return Ok(None) };
        self.current = least;
        self.at = Some(self.parts[least].next);
        self.end = self.end_of_group(least)?;
        Ok(self.at)
    }

    /// Where another group begins in a part; the end, if it is the only part.
    fn end_of_group(&mut self, number: usize) -> io::Result<u64> {
        let is_single = self.parts.len() == 1;
        let part = &mut self.parts[number];
        let mut end = if is_single { part.count } else { part.next + 1 };
        'next: while end < part.count {
            for number in 0..self.groups.len() {
                let value = part.key(&self.groups, number, end, &self.spill)?;
                if value != part.key(&self.groups, number, end - 1, &self.spill)? {
                    break 'next;
                }
            }
            end += 1;
        }
        Ok(end)
    }

    /// The order of the groups that come next in two parts.
    fn compare(&mut self, data: &Data, a: usize, b: usize) -> io::Result<Ordering> {
        for (key, place) in self.groups.iter().enumerate() {
            let mut value = |number: usize| {
                let part = &mut self.parts[number];
                part.key(&self.groups, key, part.next, &self.spill)
            };
            let (a, b) = (value(a)?, value(b)?);
            let text = |number: u64| data.texts.get(number as u32, &data.spill);
            let order = match (a, b) {
                (Some(a), Some(b)) if a != b && is_text(self.kind, *place) => text(a)?.cmp(&text(b)?),
                (a, b) => a.map(signed).cmp(&b.map(signed)),
            };
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }

    /// A block of a column of the present part.
    pub fn block(&self, place: usize, number: usize) -> io::Result<Arc<Block>> {
        let column = self.parts.get(self.part()).and_then(|part| part.columns.get(place)?.as_ref());
        column.ok_or_else(is_missing)?.shared(number, &self.spill)
    }

    /// The number of the present row.
    pub fn row(&self) -> io::Result<u64> {
        let part = self.parts.get(self.part()).ok_or_else(is_missing)?;
        Ok(part.rows.get(self.at.unwrap_or_default(), &mut None, &self.spill)?.unwrap_or(1) - 1)
    }
}

fn is_missing() -> io::Error {
    io::Error::other("a column is missing")
}

/// Rows in the order of their keys; of equal ones, the order stays.
fn sorted_by<K: Ord>(order: Vec<u32>, mut key: impl FnMut(u32) -> io::Result<K>) -> io::Result<Vec<u32>> {
    let mut keyed = Vec::with_capacity(order.len());
    for of in order {
        keyed.push((key(of)?, of));
    }
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(keyed.into_iter().map(|(_, of)| of).collect())
}

/// The places of rows when they are sorted by their values in columns, those without a value first.
fn sorted(data: &Data, kind: Kind, groups: &[usize], rows: &[u32]) -> io::Result<Vec<u32>> {
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    for place in groups.iter().rev() {
        let table = &data.tables[kind as usize];
        let mut cache = None;
        let mut value = |of: u32| table.get(*place, rows[of as usize].into(), &mut cache, &data.spill);
        order = match is_text(kind, *place) {
            true => sorted_by(order, |of| {
                value(of)?.map(|number| data.texts.get(number as u32, &data.spill)).transpose()
            })?,
            false => sorted_by(order, |of| Ok(value(of)?.map(signed)))?,
        };
    }
    let mut places = vec![0; order.len()];
    (0..).zip(order).for_each(|(place, of)| places[of as usize] = place);
    Ok(places)
}
