//! Writes a trace as one page of HTML that works offline, from a file.
//!
//! Two threads read the trace. One takes everything that is drawn from the tables of `trace-convert`, so that
//! the page and `trace query` agree, has another one sort it, and makes blocks of columns, which further
//! threads compress.
//! Meanwhile the other one sums up, by `trace-analysis`, and looks for problems, by `trace-reader`. The page
//! is in `ui/`; `page.rs` joins its modules, and `blocks.rs` makes the columns that they draw.
//= docs/report.md#what-is-in-the-file
#![forbid(unsafe_code)]

mod arguments;
mod blocks;
mod collector;
mod columns;
mod entry;
mod fold;
mod lengths;
pub mod live;
mod packer;
mod page;
mod sorting;
mod states;
mod summary;
mod sums;
pub mod svg;
mod texts;
mod tracks;
mod waits;
pub mod xml;

pub use page::GENERATOR;

use blocks::{Activity, Blocks, Folded, Folding};
use collector::Collector;
use columns::put_number;
use entry::{Flow, LEFT_OUT};
use packer::{Packer, compressed};
use page::{Page, REPORT, escaped};
use serde_json::{Value, json};
use std::io::{self, BufWriter, Read, Write};
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;
use summary::Findings;
use trace_analysis::check::Problem;
use trace_analysis::stats::Options;
use trace_convert::tables::{FirstPass, Opener, Trace, fill, fill_in_order};
use trace_convert::{ConvertError, Filter, Summary};
use trace_model::Chosen;
use trace_reader::{Disorder, ReadError};
use tracks::{Kind, Track, Tracks};

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

/// Writes the page of what is chosen of a trace; `imported` has the problems of its import.
///
/// # Errors
/// The input is no archive or cannot be read, or the page cannot be written.
pub fn write(
    trace: Trace,
    chosen: Option<Chosen>,
    imported: impl FnOnce() -> Vec<Problem>,
    mut output: impl Write,
) -> Result<Written, ReportError> {
    let mut imported = Some(imported);
    write_page(
        trace,
        chosen,
        &mut || imported.take().map(|imported| imported()).unwrap_or_default(),
        &mut output,
    )
}

fn write_page(
    trace: Trace,
    chosen: Option<Chosen>,
    imported: &mut dyn FnMut() -> Vec<Problem>,
    output: &mut dyn Write,
) -> Result<Written, ReportError> {
    let Trace { name, open, disorder, .. } = trace;
    let open = Mutex::new(open);
    let inbox = Mutex::new(None);
    let filter = Filter::of(chosen.clone());
    let options = Options { chosen, ..Options::default() };
    thread::scope(|scope| {
        let sums = scope.spawn(|| sums::of(|| opened(&open), &options));
        let sums = || sums.join().unwrap_or_else(|panic| resume_unwind(panic));
        let mut collector = Collector::new(&filter);
        let mut summary = match collect(&open, disorder, &filter, &mut collector) {
            Ok(summary) => summary,
            // Where both fail, it is for the same reason.
            Err(error) => return sums().map_or_else(|error| Err(error.into()), |_| Err(error.into())),
        };
        collector.finish();
        let page = Page::of(&REPORT).map_err(ReportError::Write)?;
        let mut output = Counting { output: BufWriter::with_capacity(1 << 16, output), bytes: 0 };
        page.begin(&name, !filter.keeps_all(), &mut output).map_err(ReportError::Write)?;
        let take = |number: usize, text: &str| page.section(&format!("t{number}"), text, &mut output);
        let mut packer = Packer::new(scope, &inbox, take);
        let made = blocks_of(&mut collector, &mut |bytes| packer.push(bytes));
        let made = made.and_then(|made| packer.finish().map(|()| made));
        let (activity, tracks, folded, drawn_over) = made.map_err(ReportError::Write)?;
        summary.add_remarks([(DRAWN_OVER, drawn_over)]);
        let bytes = output.bytes;
        let (base, unit) = (collector.times.unwrap_or_default().0, collector.unit.max(1));
        collector.flows.sort_unstable();
        let flows = flow_columns(&collector.flows, base, unit);
        let (ready, between) = (collector.waits.finish(), waits::of_flows(&collector.flows));
        let (stats, checked) = sums()?;
        let imported = imported();
        let findings = Findings {
            name: &name,
            stats: &stats,
            check: &checked,
            imported: &imported,
            collector: &collector,
            ready: &ready,
            flows: &between,
            activity: &activity,
            folded,
            is_part: !filter.keeps_all(),
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
    })
}

fn opened(open: &Mutex<Opener>) -> io::Result<Box<dyn Read>> {
    (open.lock().unwrap_or_else(PoisonError::into_inner))()
}

/// Takes the rows that a filter keeps: in one pass, if begins and ends turn out to be in order.
fn collect(
    open: &Mutex<Opener>,
    disorder: Option<Disorder>,
    filter: &Filter,
    collector: &mut Collector,
) -> Result<Summary, ConvertError> {
    let input = || opened(open).map_err(ConvertError::Write);
    let disorder = match disorder {
        Some(disorder) => disorder,
        None => match fill_in_order(input()?, collector, filter.clone())? {
            FirstPass::InOrder(summary, _) => return Ok(summary),
            FirstPass::OutOfOrder(disorder) => disorder,
        },
    };
    *collector = Collector::new(filter);
    fill(input()?, &disorder, collector, filter.clone())
}

/// Of a large trace, how short slices were folded, and their sums.
type WhatWasFolded = Option<(Folding, Folded)>;
/// The remark about slices for which there was no row.
const DRAWN_OVER: &str =
    "slices that overlap more than 200 others, or are below 65 535: the page draws them over others";

/// Makes the blocks of everything that was collected.
fn blocks_of(
    collector: &mut Collector,
    take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>,
) -> io::Result<(Activity, Value, WhatWasFolded, u64)> {
    let sorting = std::mem::take(&mut collector.sorting);
    let tracks = &collector.tracks;
    let (base, last) = collector.times.unwrap_or_default();
    // Times count from the first one, so that differences have the same divisor if that one has.
    let unit = collector.unit.max(1);
    let owners = tracks.threads.iter().map(|thread| thread.process).collect();
    let activity = Activity::new(owners, (base, last));
    let cut = collector.lengths.cut(FEW_SLICES, MOST_LONG);
    let intervals = (INTERVALS / tracks.list.len().max(1) as u64).clamp(64, 1 << 15);
    let folding = Folding { cut, width: ((last - base) / intervals).max(1) };
    let mut blocks = Blocks::new(&tracks.list, base, unit, activity, folding, take);
    sorting.finish(|entry| blocks.push(entry))?;
    let (made, activity) = blocks.finish(&order_of(tracks))?;
    let processes = tracks.processes.iter().map(|of| json!([of.of.0.to_string(), of.name]));
    let threads = tracks.threads.iter().map(|of| json!([of.of.thread.0.to_string(), of.name, of.process]));
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
    Ok((activity, json, (cut > 0).then_some((folding, made.folded)), made.drawn_over))
}

/// Tracks of a process beside each other.
fn order_of(tracks: &Tracks) -> Vec<u32> {
    let key = |number: &u32| {
        let track = &tracks.list[*number as usize];
        let process = match track.kind {
            Kind::Thread | Kind::Instants | Kind::States => tracks.process_of(track.owner as u32),
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
    put_number(&mut bytes, flows.iter().filter(|flow| flow.thread != LEFT_OUT).count() as u64);
    let mut before: Option<&Flow> = None;
    for flow in flows {
        if flow.thread == LEFT_OUT {
            before = None;
            continue;
        }
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
