//! What is on the threads of a trace, from the rows of its tables: for formats that have a stack for each
//! thread, or a timeline.
//!
//! Memory holds names, threads and the stacks of samples, all bounded; everything else is sorted in files.

mod collector;
mod entries;
mod names;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use collector::{Collector, Counter, Keep};
pub(crate) use entries::{Entries, Entry, Kind, when};
pub(crate) use names::{Names, ThreadName, Threads};

use crate::tables::{Trace, fill};
use crate::{ConvertError, Filter, Summary};
use trace_reader::Disorder;

/// Collects a trace in two passes: the first finds its order.
pub(crate) fn collect(
    trace: &mut Trace,
    filter: Filter,
    keep: Keep,
) -> Result<(Collector, Summary), ConvertError> {
    let disorder = match trace.disorder.take() {
        Some(disorder) => disorder,
        // The pass below reports it, if nothing can be read.
        None => Disorder::find((trace.open)().map_err(ConvertError::Write)?).unwrap_or_default(),
    };
    let mut collector = Collector::new(keep);
    let summary = fill((trace.open)().map_err(ConvertError::Write)?, &disorder, &mut collector, filter)?;
    Ok((collector, summary))
}

/// Adds what was skipped after the rows were made.
pub(crate) fn add_skipped(summary: &mut Summary, skipped: impl IntoIterator<Item = (&'static str, u64)>) {
    for (kind, count) in skipped {
        if count == 0 {
            continue;
        }
        match summary.skipped.binary_search_by(|(known, _)| (**known).cmp(kind)) {
            Ok(place) => summary.skipped[place].1 += count,
            Err(place) => summary.skipped.insert(place, (kind.to_owned(), count)),
        }
    }
}
