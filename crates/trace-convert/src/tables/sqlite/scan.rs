//! A scan of a table: the rows that a plan asks for, one after the other.

use super::grouped::{Grouped, PART_ROWS};
use super::index::{Hints, Index};
use super::plan::{Comparison, Computed, Plan, Term, computed};
use super::selected::{SelectedRows, Selections};
use crate::tables::store::{BLOCK_BITS, BLOCK_ROWS, Block, Cache, Data, Store, Width, width_of};
use crate::tables::{Kind, Type};
use rusqlite::types::ValueRef;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many scans for a value pass before there is an index: a single one is faster without.
const SCANS_BEFORE_INDEX: u32 = 3;

/// The tables of a connection.
pub struct Shared {
    store: Mutex<Store>,
    pub selections: Selections,
    indexes: Mutex<HashMap<(usize, Option<usize>), Uses>>,
}

#[derive(Default)]
struct Uses {
    count: u32,
    index: Option<Arc<Index>>,
}

impl Shared {
    pub fn new(store: Store, selections: Selections) -> Self {
        Self { store: Mutex::new(store), selections, indexes: Mutex::default() }
    }

    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a column, or of the times, from the scan on from which it is worth while.
    fn index(&self, data: &Data, kind: Kind, place: Option<usize>) -> io::Result<Option<Arc<Index>>> {
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        let uses = indexes.entry((kind as usize, place)).or_default();
        uses.count = uses.count.saturating_add(1);
        if uses.count == SCANS_BEFORE_INDEX + 1 {
            uses.index = Index::of(data, kind, place)?.map(Arc::new);
        }
        Ok(uses.index.clone())
    }

    /// Columns that come later are not in the indexes.
    pub fn forget_indexes(&self) {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What a row has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    /// A column has a value.
    Is { place: usize, value: u64 },
    /// A number with a sign is in a range.
    Between { place: usize, from: i64, to: i64 },
    /// So is the end.
    Ends { from: i64, to: i64 },
    /// The row is selected.
    Selected,
}

/// A test of a term; `Nothing` holds for no row, and `Anything` is left to SQLite.
enum Tested {
    Test(Test),
    Anything,
    Nothing,
}

/// The rows to look at.
enum Candidates {
    All(Range<u64>),
    Grouped(Grouped),
    /// Places of an index, which is known by its number.
    Indexed {
        index: usize,
        places: Range<usize>,
        end: i64,
    },
}

/// A value of the present row.
pub enum Value<'a> {
    Null,
    Integer(i64),
    Double(f64),
    /// A text that stays where it is as long as the traces are there.
    Kept(&'a str),
    Text(Cow<'a, str>),
}

/// What the bits of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A number with a sign.
    Integer,
    Double,
    /// The number of a text.
    Numbered,
    /// The place of a text.
    Long,
}

impl Form {
    fn of((name, of): &(&str, Type)) -> Self {
        match of {
            // Numbers have a sign and 63 bits there.
            Type::Integer | Type::Unsigned => Self::Integer,
            Type::Double => Self::Double,
            Type::Text if width_of(name, *of) == Width::Narrow => Self::Numbered,
            Type::Text => Self::Long,
        }
    }
}

/// A scan, which begins anew with each [`Scan::filter`].
pub struct Scan {
    shared: Arc<Shared>,
    kind: Kind,
    forms: Vec<Form>,
    /// The places of the columns that a row's end is made of, in tables that have both.
    ts_and_dur: Option<(usize, usize)>,
    /// What there is of the tables, from the first filter on.
    data: Arc<Data>,
    is_filled: bool,
    /// Indexes that were used, by their columns.
    indexes: Vec<(Option<usize>, Arc<Index>, Hints)>,
    plan: (String, Plan),
    /// None if all rows are selected.
    selected: Option<SelectedRows>,
    tests: Vec<Test>,
    candidates: Candidates,
    caches: Vec<Cache>,
    /// Blocks that have the present row, as far as it was asked for their columns.
    blocks: Vec<Option<Arc<Block>>>,
    /// What they are blocks of: a part of grouped rows, and their number there.
    of_blocks: (usize, usize),
    /// The place of the present row in the table, or in a part of grouped rows.
    row: Option<u64>,
}

impl Scan {
    pub fn new(shared: Arc<Shared>, kind: Kind) -> Self {
        let caches = kind.table().columns.iter().map(|_| None).collect();
        let selected = shared.selections.of(kind);
        Self {
            shared,
            kind,
            forms: kind.table().columns.iter().map(Form::of).collect(),
            ts_and_dur: kind.table().place("ts").zip(kind.table().place("dur")),
            data: Arc::default(),
            is_filled: false,
            indexes: Vec::new(),
            plan: Default::default(),
            selected,
            tests: Vec::new(),
            candidates: Candidates::All(0..0),
            caches,
            blocks: kind.table().columns.iter().map(|_| None).collect(),
            of_blocks: (0, 0),
            row: None,
        }
    }

    /// Begins with the first row.
    pub fn filter<'v>(&mut self, plan: &str, values: impl Iterator<Item = ValueRef<'v>>) -> io::Result<()> {
        // It stays the same while it is used here.
        if !self.is_filled {
            self.data = self.shared.store().data().map_err(io::Error::other)?;
            self.is_filled = true;
        }
        if self.plan.0 != plan {
            self.plan = (plan.to_owned(), Plan::decode(plan));
        }
        self.tests.clear();
        self.candidates = Candidates::All(0..0);
        for (term, value) in self.plan.1.terms.iter().zip(values) {
            match test(self.kind, &self.data, *term, value) {
                Tested::Test(test) => self.tests.push(test),
                Tested::Anything => {}
                Tested::Nothing => {
                    self.row = None;
                    return Ok(());
                }
            }
        }
        self.tests.extend(self.selected.is_some().then_some(Test::Selected));
        self.candidates = self.candidates()?;
        self.blocks.iter_mut().for_each(|block| *block = None);
        if !self.plan.1.groups.is_empty() {
            self.group()?;
        }
        self.advance()
    }

    /// The fewest rows that can be found without a look at each.
    fn candidates(&mut self) -> io::Result<Candidates> {
        let (mut key, mut ts, mut end) = (None, (i64::MIN, i64::MAX), i64::MIN);
        for test in &self.tests {
            match *test {
                Test::Is { place, value } => key = key.or(Some((place, value))),
                Test::Between { place, from, to } if is_ts(self.kind, place) => {
                    ts = (ts.0.max(from), ts.1.min(to));
                }
                Test::Between { place, from, to } if from == to => key = Some((place, from as u64)),
                Test::Between { .. } | Test::Selected => {}
                Test::Ends { from, .. } => end = end.max(from),
            }
        }
        let has_ts = ts != (i64::MIN, i64::MAX);
        let key = key.map(|(place, value)| (Some(place), value)).or(has_ts.then_some((None, 0)));
        if let Some((key, value)) = key
            && let Some(number) = self.index(key)?
            && let Some((_, index, hints)) = self.indexes.get_mut(number)
        {
            let places = index.find(value, ts.0, ts.1, hints);
            // The index has tested these.
            let kind = self.kind;
            self.tests.retain(|test| match *test {
                Test::Is { place, value: of } => (Some(place), of) != (key, value),
                Test::Between { place, from, to } => {
                    let is_key = Some(place) == key && from == to && from as u64 == value;
                    !(is_key || is_ts(kind, place) && has_all_times(kind))
                }
                Test::Ends { .. } | Test::Selected => true,
            });
            return Ok(Candidates::Indexed { index: number, places, end });
        }
        Ok(Candidates::All(0..self.data.tables[self.kind as usize].rows))
    }

    /// The number of the index of a column, if there is one.
    fn index(&mut self, key: Option<usize>) -> io::Result<Option<usize>> {
        let known = self.indexes.iter().position(|(of, ..)| *of == key);
        if known.is_none()
            && let Some(index) = self.shared.index(&self.data, self.kind, key)?
        {
            self.indexes.push((key, index, Hints::default()));
            return Ok(Some(self.indexes.len() - 1));
        }
        Ok(known)
    }

    /// Puts rows with equal values next to each other, in the order of the values.
    fn group(&mut self) -> io::Result<()> {
        let Plan { groups, used, .. } = self.plan.1.clone();
        let mut grouped = Grouped::new(self.kind, groups, used);
        let mut rows = Vec::new();
        while let Some(row) = self.next_match()? {
            rows.push(u32::try_from(row).map_err(io::Error::other)?);
            if let Candidates::All(more) = &mut self.candidates
                && self.tests.is_empty()
                && u32::try_from(more.end).is_ok()
            {
                let more = more.by_ref().take(PART_ROWS - rows.len());
                rows.extend(more.map(|row| row as u32));
            }
            if rows.len() == PART_ROWS {
                grouped.add(&self.data, &rows)?;
                rows.clear();
            }
        }
        if !rows.is_empty() {
            grouped.add(&self.data, &rows)?;
        }
        self.tests.clear();
        self.candidates = Candidates::Grouped(grouped);
        Ok(())
    }

    /// Goes on to the next row.
    #[inline]
    pub fn advance(&mut self) -> io::Result<()> {
        self.row = self.next_match()?;
        let part = if let Candidates::Grouped(grouped) = &self.candidates { grouped.part() } else { 0 };
        let of_blocks = (part, (self.row.unwrap_or_default() >> BLOCK_BITS) as usize);
        if self.of_blocks != of_blocks {
            self.of_blocks = of_blocks;
            self.blocks.iter_mut().for_each(|block| *block = None);
        }
        Ok(())
    }

    #[inline]
    fn next_match(&mut self) -> io::Result<Option<u64>> {
        match &mut self.candidates {
            Candidates::All(rows) if self.tests.is_empty() => Ok(rows.next()),
            Candidates::Grouped(grouped) => grouped.next(&self.data),
            _ => self.next_tested(),
        }
    }

    fn next_tested(&mut self) -> io::Result<Option<u64>> {
        loop {
            let row = match &mut self.candidates {
                Candidates::All(rows) => rows.next(),
                Candidates::Grouped(grouped) => return grouped.next(&self.data),
                Candidates::Indexed { index, places, end } => {
                    let Some((_, index, _)) = self.indexes.get(*index) else { return Ok(None) };
                    places.start = index.skip(places.start, *end);
                    places.next().map(|place| index.row(place))
                }
            };
            let Some(row) = row else { return Ok(None) };
            if self.matches(row)? {
                return Ok(Some(row));
            }
        }
    }

    #[inline(always)]
    fn get(&mut self, place: usize, row: u64) -> io::Result<Option<u64>> {
        let Data { tables, spill, .. } = &*self.data;
        tables[self.kind as usize].get(place, row, &mut self.caches[place], spill)
    }

    fn matches(&mut self, row: u64) -> io::Result<bool> {
        for number in 0..self.tests.len() {
            let holds = match self.tests[number] {
                Test::Is { place, value } => self.get(place, row)? == Some(value),
                Test::Between { place, from, to } => {
                    self.get(place, row)?.is_some_and(|value| (from..=to).contains(&(value as i64)))
                }
                Test::Ends { from, to } => self.end(row)?.is_some_and(|end| (from..=to).contains(&end)),
                Test::Selected => match &mut self.selected {
                    Some(selected) => selected.has(&self.data, row)?,
                    None => true,
                },
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn end(&mut self, row: u64) -> io::Result<Option<i64>> {
        let Some((ts, dur)) = self.ts_and_dur else { return Ok(None) };
        let ts = self.get(ts, row)?.unwrap_or_default() as i64;
        Ok(self.get(dur, row)?.map(|dur| ts.saturating_add(dur as i64)))
    }

    /// Whether there are no more rows.
    pub const fn is_over(&self) -> bool {
        self.row.is_none()
    }

    /// The number of the present row.
    pub fn row(&self) -> io::Result<i64> {
        Ok(self.row_of_table()? as i64 + 1)
    }

    /// A value of the present row in a column that was asked for before, of a row in the same block; none if
    /// it takes more to find it.
    #[inline(always)]
    pub fn quick_value(&self, place: usize) -> Option<Value<'_>> {
        let block = self.blocks.get(place)?.as_ref()?;
        let Some(value) = block.get(self.row? as usize % BLOCK_ROWS) else { return Some(Value::Null) };
        match self.forms.get(place)? {
            Form::Integer => Some(Value::Integer(value as i64)),
            Form::Double => Some(Value::Double(f64::from_bits(value))),
            Form::Numbered => self.data.texts.numbered(value as u32).map(Value::Kept),
            Form::Long => None,
        }
    }

    /// A value of the present row.
    pub fn value(&mut self, place: usize) -> io::Result<Value<'_>> {
        let Some(row) = self.row else { return Ok(Value::Null) };
        let Some(form) = self.forms.get(place).copied() else { return self.computed(place) };
        let number = self.of_blocks.1;
        let block = match &self.candidates {
            Candidates::Indexed { .. } => None,
            Candidates::Grouped(grouped) => Some(grouped.block(place, number)?),
            Candidates::All(_) => {
                let Data { tables, spill, .. } = &*self.data;
                Some(tables[self.kind as usize].column(place)?.shared(number, spill)?)
            }
        };
        let value = match block {
            Some(block) => self.blocks[place].insert(block).get(row as usize % BLOCK_ROWS),
            // The next row is in another one.
            None => self.get(place, row)?,
        };
        let Some(value) = value else { return Ok(Value::Null) };
        let Data { texts, spill, .. } = &*self.data;
        Ok(match form {
            Form::Integer => Value::Integer(value as i64),
            Form::Double => Value::Double(f64::from_bits(value)),
            Form::Numbered => Value::Text(texts.get(value as u32, spill)?),
            Form::Long => Value::Text(texts.long(value, spill)?),
        })
    }

    /// The present row's place in the table.
    fn row_of_table(&self) -> io::Result<u64> {
        match &self.candidates {
            Candidates::Grouped(grouped) => grouped.row(),
            _ => Ok(self.row.unwrap_or_default()),
        }
    }

    fn computed(&mut self, place: usize) -> io::Result<Value<'_>> {
        let row = self.row_of_table()?;
        Ok(match computed(self.kind, place) {
            Some(Computed::Trace) => {
                let trace = self.data.tables[self.kind as usize].trace_of(row);
                self.data.traces.get(trace).map_or(Value::Null, |name| Value::Text(name.into()))
            }
            Some(Computed::End) => self.end(row)?.map_or(Value::Null, Value::Integer),
            None => Value::Null,
        })
    }
}

fn is_ts(kind: Kind, place: usize) -> bool {
    kind.table().columns.get(place).is_some_and(|(name, _)| *name == "ts")
}

/// Whether all rows of a table have a time.
fn has_all_times(kind: Kind) -> bool {
    kind != Kind::Blobs
}

/// The test for a term. SQLite applies the comparison itself once more, by its own rules of types.
fn test(kind: Kind, data: &Data, Term { place, comparison }: Term, value: ValueRef<'_>) -> Tested {
    let column = kind.table().columns.get(place);
    match (column, value) {
        // No comparison with it holds.
        (_, ValueRef::Null) => Tested::Nothing,
        (Some((_, Type::Text)), ValueRef::Text(text)) => {
            let Ok(text) = str::from_utf8(text) else { return Tested::Anything };
            match data.texts.known(text) {
                Ok(Some(number)) => Tested::Test(Test::Is { place, value: number.into() }),
                Ok(None) => Tested::Nothing,
                Err(_) => Tested::Anything,
            }
        }
        (Some((_, Type::Integer | Type::Unsigned)), _) => match range(comparison, value) {
            Some((from, to)) => Tested::Test(Test::Between { place, from, to }),
            None => Tested::Anything,
        },
        (None, _) => match range(comparison, value) {
            Some((from, to)) => Tested::Test(Test::Ends { from, to }),
            None => Tested::Anything,
        },
        _ => Tested::Anything,
    }
}

/// The numbers for which a comparison may hold; none if that is not known.
fn range(comparison: Comparison, value: ValueRef<'_>) -> Option<(i64, i64)> {
    // Doubles are exact up to here.
    const EXACT: f64 = 9e15;
    let (low, high) = match value {
        ValueRef::Integer(value) => (value, value),
        ValueRef::Real(value) if value.abs() < EXACT => (value.floor() as i64, value.ceil() as i64),
        _ => return None,
    };
    Some(match comparison {
        Comparison::Equal => (low, high),
        Comparison::Less | Comparison::AtMost => (i64::MIN, high),
        Comparison::Greater | Comparison::AtLeast => (low, i64::MAX),
    })
}
