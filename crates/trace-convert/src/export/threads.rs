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

use crate::tables::{ChosenRows, Trace, fill};
use crate::{ConvertError, Filter, Summary};

/// Collects a trace in two passes: the first finds its order.
pub(crate) fn collect(
    trace: &mut Trace,
    filter: Filter,
    keep: Keep,
) -> Result<(Collector, Summary), ConvertError> {
    let disorder = trace.find_disorder()?;
    let mut collector = Collector::new(keep, ChosenRows::new(&filter));
    let summary = fill((trace.open)().map_err(ConvertError::Write)?, &disorder, &mut collector, filter)?;
    Ok((collector, summary))
}
