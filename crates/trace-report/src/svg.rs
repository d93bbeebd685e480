//! Writes a window of a trace as a picture for documents: one SVG without scripts and fonts of its own, for
//! light and dark pages.
//!
//! Three passes read the trace: the order of its events, its times, and what is in the window. What is kept
//! of the last is sorted, put into rows, and merged where it is too narrow to be seen, so that memory and
//! the picture are bounded however large the trace is.
//= docs/svg.md#the-picture

mod arrows;
mod axis;
mod collector;
mod counters;
mod draw;
mod layout;
mod merge;
mod rows;
mod text;

use crate::ReportError;
use collector::{Collector, Times};
use draw::Picture;
use std::io::Write;
use trace_convert::tables::{Trace, fill};
use trace_convert::{ConvertError, Filter, Summary};
use trace_format::shown::Lasting;
use trace_model::Chosen;

/// A moment of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds from the first moment that pictures show of the trace.
    FromBegin(u64),
    /// Nanoseconds on the clock of the trace; one before the first moment is that.
    At(u64),
}

impl Moment {
    const fn from(self, first: u64) -> u64 {
        match self {
            Self::FromBegin(nanos) => nanos,
            Self::At(at) => at.saturating_sub(first),
        }
    }
}

/// A time span of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its beginning; the trace's if there is none.
    pub from: Option<Moment>,
    /// Its end.
    pub to: Option<Moment>,
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SvgError {
    /// The trace cannot be read, or the picture cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The window is not in the trace.
    #[error("the window is empty or outside of the trace, which is {length} long")]
    Outside {
        /// How long the trace is, as text.
        length: String,
    },
    /// Nothing in the trace has a time.
    #[error("the trace has no events that a picture shows")]
    Nothing,
}

impl From<ConvertError> for SvgError {
    fn from(error: ConvertError) -> Self {
        Self::Report(ReportError::Convert(error))
    }
}

/// Writes the picture of what is chosen in a window. What the picture does not show is in the result.
///
/// # Errors
/// The input is no archive or cannot be read, the window is not in it, or the picture cannot be written.
pub fn write(
    trace: Trace,
    window: Window,
    chosen: Option<Chosen>,
    mut output: impl Write,
) -> Result<Summary, SvgError> {
    draw(trace, window, Filter::of(chosen), &mut output)
}

fn draw(
    mut trace: Trace,
    window: Window,
    filter: Filter,
    output: &mut dyn Write,
) -> Result<Summary, SvgError> {
    let disorder = trace.find_disorder()?;
    let mut open = || (trace.open)().map_err(|error| SvgError::from(ConvertError::Write(error)));
    let mut times = Times::default();
    fill(open()?, &disorder, &mut times, Filter::default())?;
    let Some((first, last)) = times.0 else { return Err(SvgError::Nothing) };
    let length = last - first;
    let from = window.from.map_or(0, |from| from.from(first));
    let to = window.to.map_or(length, |to| to.from(first).min(length));
    // A trace of one moment has a picture, too.
    let is_inside = from <= to && from <= length && (from < to || length == 0);
    if !is_inside {
        return Err(SvgError::Outside { length: Lasting(length as f64).to_string() });
    }
    let to = to.max(from + 1);
    let mut collector = Collector::new((first + from, first.saturating_add(to)), to >= length, &filter);
    let mut summary = fill(open()?, &disorder, &mut collector, filter)?;
    let skipped = std::mem::take(&mut collector.skipped);
    let picture = Picture::of(collector, &trace.name, first).map_err(ReportError::Write)?;
    summary.add_skipped(skipped.into_iter().chain(picture.skipped()));
    summary.events = picture.events();
    summary.add_remarks(picture.notes().iter().map(|note| (note.text, note.count)));
    picture.write(output).map_err(ReportError::Write)?;
    output.flush().map_err(ReportError::Write)?;
    Ok(summary)
}

#[cfg(test)]
mod tests;
