//! Writes a trace as one page of HTML that works offline, from a file.
//!
//! Several passes read the trace: sums and losses come from `trace-analysis`, problems from `trace-reader`,
//! and everything that is drawn from the tables of `trace-convert`, so that the page and `trace query` agree.
//! The page is in `ui/`; `page.rs` joins its modules, and `blocks.rs` makes the columns that they draw.
//= docs/report.md#what-is-in-the-file
#![forbid(unsafe_code)]

mod arguments;
mod blocks;
mod collector;
mod columns;
mod lengths;
mod page;
mod summary;
pub mod svg;
mod texts;
mod tracks;
mod waits;

use blocks::{Activity, Blocks, Folded, Folding, compressed};
use collector::{Collector, Flow};
use columns::put_number;
use page::{Page, escaped};
use serde_json::{Value, json};
use std::io::{self, BufWriter, Read, Write};
use summary::Findings;
use trace_analysis::stats::{Options, Stats};
use trace_convert::tables::{Trace, fill};
use trace_convert::{ConvertError, Filter, Summary};
use trace_reader::check::{Limits, MAX_OPEN_SPANS, Problem, check};
use trace_reader::{Disorder, ReadError};
use tracks::{Kind, Track, Tracks};

/// Memory for the tables of the check.
const CHECK_TABLE_BYTES: usize = 8 << 20;
/// Slices that are all drawn one by one; of more, the longest so many are.
const FEW_SLICES: u64 = 1_000_000;
const MOST_LONG: u64 = 600_000;
/// About how many intervals all tracks together have, in which short slices are folded.
const INTERVALS: u64 = 100_000;

/// Why no page was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The page cannot be written.
    #[error("cannot write")]
    Write(#[source] io::Error),
}

/// A page that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// What the conversion has to say.
    pub summary: Summary,
    /// Bytes of the page that are data.
    pub bytes: u64,
}

/// Writes the page of a trace; `imported` has the problems of its import.
///
/// # Errors
/// The input is no archive or cannot be read, or the page cannot be written.
pub fn write(
    mut trace: Trace,
    imported: impl FnOnce() -> Vec<Problem>,
    output: impl Write,
) -> Result<Written, ReportError> {
    let mut open = || (trace.open)().map_err(|error| ReportError::Convert(ConvertError::Write(error)));
    // The passes below report it, if nothing can be read.
    let disorder = Disorder::find(open()?).unwrap_or_default();
    let stats = Stats::of(open()?, &disorder, &Options::default())?;
    let limits =
        Limits { table_bytes: CHECK_TABLE_BYTES, open_spans: MAX_OPEN_SPANS, clock_times: 0, usage_bytes: 0 };
    let checked = check(open()?, limits, &disorder)?;
    let mut collector = Collector::default();
    let summary = fill(open()?, &disorder, &mut collector, Filter::default())?;
    let page = Page::new().map_err(ReportError::Write)?;
    let mut output = Counting { output: BufWriter::with_capacity(1 << 16, output), bytes: 0 };
    page.begin(&trace.name, &mut output).map_err(ReportError::Write)?;
    let (activity, tracks, folded) =
        blocks_of(&mut collector, &page, &mut output).map_err(ReportError::Write)?;
    let bytes = output.bytes;
    let (base, unit) = (collector.times.unwrap_or_default().0, collector.unit.max(1));
    collector.flows.sort_unstable();
    let flows = flow_columns(&collector.flows, base, unit);
    let (ready, between) = (collector.waits.finish(), waits::of_flows(&collector.flows));
    let imported = imported();
    let findings = Findings {
        name: &trace.name,
        stats: &stats,
        check: &checked,
        imported: &imported,
        collector: &collector,
        ready: &ready,
        flows: &between,
        activity: &activity,
        folded,
        base,
    };
    let meta = escaped(&findings.json().to_string());
    let mut finish = || {
        page.section("flows", &compressed(&flows)?, &mut output)?;
        page.section("tracks", &compressed(tracks.to_string().as_bytes())?, &mut output)?;
        page.section("meta", &meta, &mut output)?;
        page.end(&mut output)?;
        output.flush()
    };
    finish().map_err(ReportError::Write)?;
    Ok(Written { summary, bytes })
}

/// Of a large trace, how short slices were folded, and their sums.
type WhatWasFolded = Option<(Folding, Folded)>;

/// Writes the blocks of everything that was collected.
fn blocks_of(
    collector: &mut Collector,
    page: &Page,
    output: &mut impl Write,
) -> io::Result<(Activity, Value, WhatWasFolded)> {
    let sorter = std::mem::take(&mut collector.sorter);
    let tracks = &collector.tracks;
    let (base, last) = collector.times.unwrap_or_default();
    // Times count from the first one, so that differences have the same divisor if that one has.
    let unit = collector.unit.max(1);
    let owners = tracks.threads.iter().map(|thread| thread.process).collect();
    let activity = Activity::new(owners, (base, last));
    let cut = collector.lengths.cut(FEW_SLICES, MOST_LONG);
    let intervals = (INTERVALS / tracks.list.len().max(1) as u64).clamp(64, 1 << 15);
    let folding = Folding { cut, width: ((last - base) / intervals).max(1) };
    let mut take =
        |number: usize, bytes: &[u8]| page.section(&format!("t{number}"), &compressed(bytes)?, output);
    let mut blocks = Blocks::new(&tracks.list, base, unit, activity, folding, &mut take);
    sorter.finish(|entry| blocks.push(entry))?;
    let (made, activity) = blocks.finish(&order_of(tracks))?;
    let processes = tracks.processes.iter().map(|of| json!([of.of.to_string(), of.name]));
    let threads = tracks.threads.iter().map(|of| json!([of.of.tid.to_string(), of.name, of.process]));
    let folded = made.folded_tracks.iter().map(|of| Track::new(Kind::Folded, u64::from(*of)));
    let all = tracks.list.iter().copied().chain(folded).zip(&made.rows);
    let all = all.map(|(of, rows)| {
        json!([of.kind as u8, of.owner, of.count, rows, of.what, of.id.to_string(), of.series])
    });
    let json = json!({
        "texts": collector.texts.list(),
        "whats": collector.whats.list(),
        "processes": processes.collect::<Vec<_>>(),
        "threads": threads.collect::<Vec<_>>(),
        "tracks": all.collect::<Vec<_>>(),
        "blocks": made.directory,
    });
    Ok((activity, json, (cut > 0).then_some((folding, made.folded))))
}

/// Tracks of a process beside each other.
fn order_of(tracks: &Tracks) -> Vec<u32> {
    let key = |number: &u32| {
        let track = &tracks.list[*number as usize];
        let process = match track.kind {
            Kind::Thread | Kind::Instants => tracks.process_of(track.owner as u32),
            _ => track.owner as u32,
        };
        (process, track.kind, track.owner, *number)
    };
    let mut order: Vec<u32> = (0..tracks.list.len() as u32).collect();
    order.sort_by_key(key);
    order
}

/// Flows in order: times as differences within a flow.
fn flow_columns(flows: &[Flow], base: u64, unit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, flows.len() as u64);
    let mut before: Option<&Flow> = None;
    for flow in flows {
        // A begin opens another flow, even with the same id.
        let is_next =
            before.is_some_and(|before| before.id == flow.id && before.phase != 2 && flow.phase != 0);
        put_number(&mut bytes, u64::from(flow.phase) << 1 | u64::from(is_next));
        let from = before.filter(|_| is_next).map_or(base, |before| before.at);
        put_number(&mut bytes, flow.at.saturating_sub(from) / unit);
        put_number(&mut bytes, flow.thread.into());
        put_number(&mut bytes, flow.what.into());
        before = Some(flow);
    }
    bytes
}

/// An output whose bytes are counted.
struct Counting<W> {
    output: W,
    bytes: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Opens an archive in memory as often as it is asked.
#[must_use]
pub fn in_memory(name: &str, bytes: Vec<u8>) -> Trace {
    let bytes = std::sync::Arc::<[u8]>::from(bytes);
    let open =
        Box::new(move || Ok(Box::new(io::Cursor::new(std::sync::Arc::clone(&bytes))) as Box<dyn Read>));
    Trace { name: name.to_owned(), open, disorder: None, bytes: None }
}
