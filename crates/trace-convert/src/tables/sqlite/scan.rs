//! A scan of a table: the rows that a plan asks for, one after the other.

use super::grouped::{Grouped, sorted};
use super::index::{Hints, Index};
use super::plan::{Comparison, Computed, Plan, Term, computed};
use crate::tables::store::{Cache, Data, Store, Width, width_of};
use crate::tables::{Kind, Type};
use rusqlite::types::ValueRef;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many scans for a value pass before there is an index: a single one is faster without.
const SCANS_BEFORE_INDEX: u32 = 3;

/// The tables of a connection.
pub struct Shared {
    store: Mutex<Store>,
    indexes: Mutex<HashMap<(usize, Option<usize>), Uses>>,
}

#[derive(Default)]
struct Uses {
    count: u32,
    index: Option<Arc<Index>>,
}

impl Shared {
    pub fn new(store: Store) -> Self {
        Self { store: Mutex::new(store), indexes: Mutex::default() }
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
    Listed(std::vec::IntoIter<u32>),
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
    Text(Cow<'a, str>),
}

/// A scan, which begins anew with each [`Scan::filter`].
pub struct Scan {
    shared: Arc<Shared>,
    kind: Kind,
    /// The places of the columns that a row's end is made of, in tables that have both.
    ts_and_dur: Option<(usize, usize)>,
    /// What there is of the tables, from the first filter on.
    data: Arc<Data>,
    is_filled: bool,
    /// Indexes that were used, by their columns.
    indexes: Vec<(Option<usize>, Arc<Index>, Hints)>,
    plan: (String, Plan),
    tests: Vec<Test>,
    candidates: Candidates,
    caches: RefCell<Vec<Cache>>,
    row: Option<u64>,
}

impl Scan {
    pub fn new(shared: Arc<Shared>, kind: Kind) -> Self {
        let caches = RefCell::new(kind.table().columns.iter().map(|_| None).collect());
        Self {
            shared,
            kind,
            ts_and_dur: kind.table().place("ts").zip(kind.table().place("dur")),
            data: Arc::default(),
            is_filled: false,
            indexes: Vec::new(),
            plan: Default::default(),
            tests: Vec::new(),
            candidates: Candidates::All(0..0),
            caches,
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
        self.candidates = self.candidates()?;
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
                Test::Between { .. } => {}
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
                Test::Ends { .. } => true,
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
        let mut rows = Vec::new();
        while let Some(row) = self.next_match()? {
            rows.push(u32::try_from(row).map_err(io::Error::other)?);
        }
        let Plan { groups, used, .. } = self.plan.1.clone();
        self.tests.clear();
        self.candidates = match Grouped::of(&self.data, self.kind, &groups, used, &rows)? {
            Some(grouped) => Candidates::Grouped(grouped),
            None => Candidates::Listed(sorted(&self.data, self.kind, &groups, rows)?.into_iter()),
        };
        Ok(())
    }

    /// Goes on to the next row.
    pub fn advance(&mut self) -> io::Result<()> {
        self.row = self.next_match()?;
        Ok(())
    }

    fn next_match(&mut self) -> io::Result<Option<u64>> {
        loop {
            let row = match &mut self.candidates {
                Candidates::All(rows) => rows.next(),
                Candidates::Listed(rows) => rows.next().map(u64::from),
                Candidates::Grouped(grouped) => grouped.next(),
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

    #[inline]
    fn get(&self, place: usize, row: u64) -> io::Result<Option<u64>> {
        let cache = &mut self.caches.borrow_mut()[place];
        self.data.tables[self.kind as usize].get(place, row, cache, &self.data.spill)
    }

    fn matches(&self, row: u64) -> io::Result<bool> {
        for test in &self.tests {
            let holds = match *test {
                Test::Is { place, value } => self.get(place, row)? == Some(value),
                Test::Between { place, from, to } => {
                    self.get(place, row)?.is_some_and(|value| (from..=to).contains(&(value as i64)))
                }
                Test::Ends { from, to } => self.end(row)?.is_some_and(|end| (from..=to).contains(&end)),
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn end(&self, row: u64) -> io::Result<Option<i64>> {
        let Some((ts, dur)) = self.ts_and_dur else { return Ok(None) };
        let ts = self.get(ts, row)?.unwrap_or_default() as i64;
        Ok(self.get(dur, row)?.map(|dur| ts.saturating_add(dur as i64)))
    }

    /// Whether there are no more rows.
    pub const fn is_over(&self) -> bool {
        self.row.is_none()
    }

    /// The number of the present row.
    pub fn row(&self) -> i64 {
        self.row.map_or(0, |row| row as i64 + 1)
    }

    /// A value of the present row.
    #[inline]
    pub fn value(&self, place: usize) -> io::Result<Value<'_>> {
        let Some(row) = self.row else { return Ok(Value::Null) };
        let Some((_, of)) = self.kind.table().columns.get(place) else {
            return Ok(match computed(self.kind, place) {
                Some(Computed::Trace) => {
                    let trace = self.data.tables[self.kind as usize].trace_of(row);
                    self.data.traces.get(trace).map_or(Value::Null, |name| Value::Text(name.into()))
                }
                Some(Computed::End) => self.end(row)?.map_or(Value::Null, Value::Integer),
                None => Value::Null,
            });
        };
        let value = match &self.candidates {
            Candidates::Grouped(grouped) => grouped.get(place),
            _ => self.get(place, row)?,
        };
        let Some(value) = value else { return Ok(Value::Null) };
        Ok(match of {
            // Numbers have a sign and 63 bits there.
            Type::Integer | Type::Unsigned => Value::Integer(value as i64),
            Type::Double => Value::Double(f64::from_bits(value)),
            Type::Text => Value::Text(self.text(place, value)?),
        })
    }

    fn text(&self, place: usize, value: u64) -> io::Result<Cow<'_, str>> {
        let (name, of) = self.kind.table().columns[place];
        match width_of(name, of) {
            Width::Narrow => self.data.texts.get(value as u32, &self.data.spill),
            Width::Wide => self.data.texts.long(value, &self.data.spill),
        }
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
