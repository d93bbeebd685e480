//! Which rows a scan passes on: those that are selected of their trace.
//= docs/selecting.md#tables

use crate::Filter;
use crate::tables::Kind;
use crate::tables::chosen::{self, ChosenRows};
use crate::tables::store::{Cache, Data};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// How many answers about categories and names are remembered.
const MAX_ANSWERS: usize = 1 << 20;

/// What is selected of each trace; nothing if all is.
#[derive(Clone, Debug, Default)]
pub struct Selections(Arc<[Filter]>);

impl Selections {
    pub fn new(filters: Vec<Filter>) -> Self {
        if filters.iter().all(Filter::keeps_all) { Self::default() } else { Self(filters.into()) }
    }

    /// The columns of a table that have to be there, by their bits.
    pub fn needed(&self, kind: Kind) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        chosen::places(kind).into_iter().flatten().fold(0, |bits, place| bits | 1 << place)
    }

    /// Answers for the rows of a table; none if all are selected.
    pub fn of(&self, kind: Kind) -> Option<SelectedRows> {
        (self.needed(kind) != 0).then(|| SelectedRows {
            kind,
            places: chosen::places(kind),
            traces: self.0.iter().map(ChosenRows::new).collect(),
            texts: HashMap::default(),
            caches: std::array::from_fn(|_| None),
        })
    }
}

/// Answers for the rows of a table.
pub struct SelectedRows {
    kind: Kind,
    places: [Option<usize>; chosen::COLUMNS.len()],
    traces: Vec<Option<ChosenRows>>,
    /// By the numbers of category and name, which all traces have in common.
    texts: HashMap<[Option<u64>; 2], bool, foldhash::fast::RandomState>,
    caches: [Cache; chosen::COLUMNS.len()],
}

impl SelectedRows {
    /// Whether a row is selected.
    pub fn has(&mut self, data: &Data, row: u64) -> io::Result<bool> {
        let table = &data.tables[self.kind as usize];
        let Some(Some(chosen)) = self.traces.get_mut(table.trace_of(row)) else { return Ok(true) };
        let mut values = [None; chosen::COLUMNS.len()];
        for ((value, place), cache) in values.iter_mut().zip(self.places).zip(&mut self.caches) {
            if let Some(place) = place {
                *value = table.get(place, row, cache, &data.spill)?;
            }
        }
        let [ts, pid, tid, category, name] = values;
        if !chosen.has_place(ts.map(|ts| (ts as i64).max(0) as u64), pid, tid) {
            return Ok(false);
        }
        if let Some(has) = self.texts.get(&[category, name]) {
            return Ok(*has);
        }
        let text =
            |number: Option<u64>| number.map(|number| data.texts.get(number as u32, &data.spill)).transpose();
        let (of_category, of_name) = (text(category)?, text(name)?);
        let has = chosen.has_texts(of_category.as_deref(), of_name.as_deref());
        if self.texts.len() < MAX_ANSWERS {
            self.texts.insert([category, name], has);
        }
        Ok(has)
    }
}
