//! Rows with equal values one after the other, for `GROUP BY` and `DISTINCT`.

use crate::tables::Kind;
use crate::tables::Type;
use crate::tables::store::{Block, Cache, Data, Width, width_of};
use std::collections::HashMap;
use std::io;

/// Most groups that are counted; with more, rows are sorted.
const MAX_GROUPS: usize = 1 << 20;
/// Memory for the values of grouped rows, in bytes.
const MEMORY: usize = 48 << 20;

/// Rows in the order of their groups, with copies of the values that are used: in the order of the groups the
/// originals are far from each other.
pub struct Grouped {
    rows: Vec<u32>,
    /// By the place of the column.
    columns: Vec<Option<Block>>,
    next: usize,
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
    /// None if there are too many groups.
    fn of(data: &Data, kind: Kind, groups: &[usize], rows: &[u32]) -> io::Result<Option<Self>> {
        let mut numbers = Self { of_rows: vec![0; rows.len()], count: 1 };
        for place in groups {
            if !numbers.divide(data, kind, *place, rows)? {
                return Ok(None);
            }
        }
        Ok(Some(numbers))
    }

    /// Divides each group by the values of a column. False if there are too many.
    fn divide(&mut self, data: &Data, kind: Kind, place: usize, rows: &[u32]) -> io::Result<bool> {
        let table = &data.tables[kind as usize];
        let mut cache = None;
        let mut value = |row: u32| table.get(place, u64::from(row), &mut cache, &data.spill);
        if is_text(kind, place) {
            let ranks = data.texts.ranks();
            if data.texts.has_unnumbered() || !self.has_room_for(ranks.len()) {
                return Ok(false);
            }
            for (number, row) in self.of_rows.iter_mut().zip(rows) {
                let rank = value(*row)?.map_or(0, |text| ranks[text as usize]);
                *number = *number * ranks.len() as u32 + rank;
            }
            self.count *= ranks.len();
            return Ok(true);
        }
        let mut known: HashMap<u64, u32, foldhash::fast::RandomState> = HashMap::default();
        for row in rows {
            if let Some(value) = value(*row)? {
                known.insert(signed(value), 0);
            }
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
    /// Groups rows by columns; none if there are too many groups, or there is no room for the columns that
    /// are used, by their bits.
    pub fn of(
        data: &Data,
        kind: Kind,
        groups: &[usize],
        used: u64,
        rows: &[u32],
    ) -> io::Result<Option<Self>> {
        let columns = kind.table().columns;
        let is_used = |place: usize| used & 1 << place != 0;
        let width = |place: usize| width_of(columns[place].0, columns[place].1);
        let bytes = |place: usize| if width(place) == Width::Narrow { 4 } else { 8 };
        let each: usize = (0..columns.len()).filter(|place| is_used(*place)).map(bytes).sum();
        if rows.len() * each > MEMORY {
            return Ok(None);
        }
        let Some(numbers) = Numbers::of(data, kind, groups, rows)? else { return Ok(None) };
        let places = numbers.into_places();
        let mut grouped = vec![0; rows.len()];
        rows.iter().zip(&places).for_each(|(row, place)| grouped[*place as usize] = *row);
        let copy = |place: usize| -> io::Result<Option<Block>> {
            if !is_used(place) {
                return Ok(None);
            }
            let mut block = Block::with_rows(width(place), rows.len());
            let mut cache: Cache = None;
            for (row, to) in rows.iter().zip(&places) {
                let value =
                    data.tables[kind as usize].get(place, u64::from(*row), &mut cache, &data.spill)?;
                block.set(*to as usize, value);
            }
            Ok(Some(block))
        };
        let columns = (0..columns.len()).map(copy).collect::<io::Result<_>>()?;
        Ok(Some(Self { rows: grouped, columns, next: 0 }))
    }

    /// Goes on to the next row, and returns it.
    pub fn next(&mut self) -> Option<u64> {
        let row = self.rows.get(self.next)?;
        self.next += 1;
        Some(u64::from(*row))
    }

    /// A value of the present row.
    #[inline]
    pub fn get(&self, place: usize) -> Option<u64> {
        self.columns.get(place)?.as_ref()?.get(self.next - 1)
    }
}

/// Rows sorted by their values in columns, those without a value first.
pub fn sorted(data: &Data, kind: Kind, groups: &[usize], mut rows: Vec<u32>) -> io::Result<Vec<u32>> {
    for place in groups.iter().rev() {
        let table = &data.tables[kind as usize];
        let mut cache = None;
        let mut value = |row: u32| table.get(*place, u64::from(row), &mut cache, &data.spill);
        if is_text(kind, *place) {
            let mut keyed = Vec::with_capacity(rows.len());
            for row in rows {
                let number = value(row)?;
                let text = number.map(|number| data.texts.get(number as u32, &data.spill)).transpose()?;
                keyed.push((text, row));
            }
            keyed.sort_by(|a, b| a.0.cmp(&b.0));
            rows = keyed.into_iter().map(|(_, row)| row).collect();
        } else {
            let mut keyed = Vec::with_capacity(rows.len());
            for row in rows {
                keyed.push((value(row)?.map(signed), row));
            }
            keyed.sort_by_key(|(key, _)| *key);
            rows = keyed.into_iter().map(|(_, row)| row).collect();
        }
    }
    Ok(rows)
}
