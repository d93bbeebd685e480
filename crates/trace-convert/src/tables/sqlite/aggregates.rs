//! Functions of SQL that SQLite does not have: `percentile` and `hist`.
//= docs/tables.md#functions

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};
use serde::Serializer;
use trace_model::percentile;

/// Values of a percentile: 64 MiB of them, more are refused.
const MAX_VALUES: usize = 8 << 20;

/// Gives a connection the functions.
pub fn load(connection: &Connection) -> Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_aggregate_function("percentile", 2, flags, Percentile)?;
    connection.create_aggregate_function("hist", 1, flags, Hist)
}

fn user(text: &str) -> Error {
    Error::UserFunctionError(text.into())
}

/// A number of an argument; none if it is missing.
fn number(context: &Context<'_>, place: usize) -> Result<Option<f64>> {
    match context.get_raw(place) {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(value) => Ok(Some(value as f64)),
        ValueRef::Real(value) => Ok(Some(value)),
        ValueRef::Text(_) => Err(user("percentile and hist: expected numbers, found text")),
        ValueRef::Blob(_) => Err(user("percentile and hist: expected numbers, found bytes")),
    }
}

/// `percentile(value, p)`: the least value that at least `p` percent of the values do not exceed.
//= docs/stats.md#percentiles
struct Percentile;

/// The values so far, and the percentage.
#[derive(Default)]
struct Values {
    all: Vec<f64>,
    percent: Option<f64>,
}

impl Aggregate<Values, Option<f64>> for Percentile {
    fn init(&self, _: &mut Context<'_>) -> Result<Values> {
        Ok(Values::default())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut Values) -> Result<()> {
        let percent = number(context, 1)?.filter(|percent| (1.0..=100.0).contains(percent));
        let wrong = || user("percentile(value, p): p is a number of percent, from 1 to 100");
        let percent = percent.ok_or_else(wrong)?;
        if values.percent.is_some_and(|first| first != percent) {
            return Err(user("percentile(value, p): p is the same for all rows"));
        }
        values.percent = Some(percent);
        if values.all.len() == MAX_VALUES {
            return Err(user("percentile(value, p): there are too many values"));
        }
        values.all.extend(number(context, 0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<Values>) -> Result<Option<f64>> {
        let Values { mut all, percent } = values.unwrap_or_default();
        if all.is_empty() {
            return Ok(None);
        }
        let place = percentile::rank(percent.unwrap_or_default(), all.len() as u64) as usize - 1;
        Ok(Some(*all.select_nth_unstable_by(place, f64::total_cmp).1))
    }
}

/// `hist(value)`: how many values there are in each range from a power of two to the next, as a JSON object
/// of the ranges' beginnings.
struct Hist;

/// How many values have each number of bits, and how many are below 0.
struct Counts {
    below: u64,
    by_bits: [u64; 65],
}

impl Aggregate<Counts, Option<String>> for Hist {
    fn init(&self, _: &mut Context<'_>) -> Result<Counts> {
        Ok(Counts { below: 0, by_bits: [0; 65] })
    }

    fn step(&self, context: &mut Context<'_>, counts: &mut Counts) -> Result<()> {
        match number(context, 0)? {
            None => {}
            Some(value) if value < 0.0 => counts.below += 1,
            Some(value) => counts.by_bits[64 - (value as u64).leading_zeros() as usize] += 1,
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, counts: Option<Counts>) -> Result<Option<String>> {
        let Some(Counts { below, by_bits }) = counts else { return Ok(None) };
        let begin = |bits| if bits == 0 { 0 } else { 1_u64 << (bits - 1) };
        let ranges = by_bits.iter().enumerate().map(|(bits, count)| (begin(bits).to_string(), *count));
        let all = std::iter::once(("<0".to_owned(), below)).chain(ranges);
        let mut json = Vec::new();
        serde_json::Serializer::new(&mut json)
            .collect_map(all.filter(|(_, count)| *count > 0))
            .map_err(|error| Error::UserFunctionError(error.into()))?;
        Ok(String::from_utf8(json).ok())
    }
}
