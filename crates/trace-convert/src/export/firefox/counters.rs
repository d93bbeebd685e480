//! Counters: a track for each of their series. The format has the changes of a value rather than the value.
//= docs/firefox.md#counters

use super::milliseconds;
use crate::export::threads::{Counter, Entries, Entry, Names};
use crate::json::Json;
use crate::tables::series_title;
use std::collections::BTreeMap;
use std::io::{self, Write};
use tempfile::SpooledTempFile;

const SPILL_BYTES: usize = 1 << 20;
/// Colours of tracks.
const COLOURS: [&str; 8] = ["blue", "green", "magenta", "orange", "purple", "red", "teal", "yellow"];

/// Changes of a counter, which wait until its times are written.
struct Changes {
    counter: u32,
    count: u64,
    values: Json<SpooledTempFile>,
    last: f64,
}

/// Writes all counters; returns how many values there were that JSON has no numbers for.
pub fn write<W: Write>(
    values: Entries,
    counters: &[Counter],
    names: &Names,
    main_threads: &BTreeMap<u64, usize>,
    base: u64,
    json: &mut Json<W>,
) -> io::Result<u64> {
    let mut order: Vec<u32> = (0..counters.len() as u32).collect();
    let key = |counter: &Counter| (counter.pid, names.get(counter.what), counter.id, counter.series.clone());
    order.sort_by_cached_key(|number| key(&counters[*number as usize]));
    let mut changes: Option<Changes> = None;
    let (mut is_first, mut infinite) = (true, 0);
    values.finish(&order, |entry: Entry<'_>| {
        let value = entry.more.first_chunk().map_or(f64::NAN, |value| f64::from_le_bytes(*value));
        if !value.is_finite() {
            infinite += 1;
            return Ok(());
        }
        if changes.as_ref().is_none_or(|changes| changes.counter != entry.thread) {
            end(changes.take(), json)?;
            json.raw(if std::mem::take(&mut is_first) { "" } else { "," });
            let counter = &counters[entry.thread as usize];
            begin(counter, names, main_threads, entry.thread, json);
            let values = Json::new(SpooledTempFile::new(SPILL_BYTES));
            changes = Some(Changes { counter: entry.thread, count: 0, values, last: 0.0 });
        }
        let Some(changes) = &mut changes else { return Ok(()) };
        let separator = if changes.count == 0 { "" } else { "," };
        json.raw(separator);
        milliseconds(json, entry.interval.begin.saturating_sub(base));
        changes.values.raw(separator);
        let change = value - changes.last;
        // The sum of two finite numbers may be none.
        changes.values.double(if change.is_finite() { change } else { 0.0 });
        (changes.last, changes.count) = (value, changes.count + 1);
        changes.values.flush_if_full()?;
        json.flush_if_full()
    })?;
    end(changes, json)?;
    Ok(infinite)
}

fn begin<W: Write>(
    counter: &Counter,
    names: &Names,
    main_threads: &BTreeMap<u64, usize>,
    number: u32,
    json: &mut Json<W>,
) {
    let (category, name) = names.get(counter.what);
    let label = series_title(name, &counter.series, counter.id);
    json.string_behind("{\"name\":", label.as_bytes());
    json.string_behind(",\"category\":", category.as_bytes());
    json.string_behind(",\"description\":", format!("{category} {label}").trim().as_bytes());
    json.integer_behind(",\"pid\":\"", counter.pid);
    json.raw("\",\"mainThreadIndex\":");
    json.integer(main_threads.get(&counter.pid).copied().unwrap_or_default());
    json.raw(",\"display\":{\"graphType\":\"line-accumulated\",\"unit\":\"\",\"color\":\"");
    json.raw(COLOURS[number as usize % COLOURS.len()]);
    json.raw("\",\"markerSchemaLocation\":null,\"sortWeight\":50,\"label\":");
    json.string(label.as_bytes());
    json.raw(",\"tooltipRows\":[{\"type\":\"value\",\"source\":\"accumulated\",\"format\":{\"unit\":\"number\"},\"label\":");
    json.string(label.as_bytes());
    json.raw("}]},\"samples\":{\"time\":[");
}

fn end<W: Write>(changes: Option<Changes>, json: &mut Json<W>) -> io::Result<()> {
    let Some(Changes { count, values, .. }) = changes else { return Ok(()) };
    json.raw("],\"count\":[");
    json.append(values)?;
    json.integer_behind("],\"length\":", count);
    json.raw("}}");
    Ok(())
}
