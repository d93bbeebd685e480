//! Archives with less in them, for traces that are passed on.
//!
//! Every record is decoded and written anew, from what it means: nothing of the input is copied that was not
//! looked at. Strings and threads are defined again where the first remaining record needs them, so that a
//! text which only removed records used is not in the output. Which records belong together across the
//! selection is found in [passes](survey) before the one that writes.
//= docs/filter.md#what-is-in-the-output

mod archive;
mod arguments;
mod rewriter;
mod selection;
mod survey;
#[cfg(test)]
mod tests;
mod texts;

use crate::source::for_each;
use crate::{ConvertError, Summary};
use rewriter::Rewriter;
use std::io::{self, Read, Write};
use survey::Survey;
pub(crate) use survey::process_of;
use trace_format::units::Offset;
use trace_reader::ReadError;

/// What is removed.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Removes the arguments of events.
    pub strips_arguments: bool,
    /// The names of arguments that are kept nevertheless.
    pub kept_arguments: Vec<String>,
    /// Replaces texts by placeholders.
    pub redacts_texts: bool,
    /// Keeps only events of these categories, the entries of a [`trace_model::Choice`]; of all, if there are
    /// none.
    pub categories: Vec<String>,
    /// Keeps only what belongs to these processes, by name, in which `*` stands for any text, or number; to
    /// all, if there are none.
    pub processes: Vec<String>,
}

impl Options {
    /// Whether some records are kept and others removed.
    #[must_use]
    pub const fn selects(&self) -> bool {
        !self.categories.is_empty() || !self.processes.is_empty()
    }
}

/// The result of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Events that were kept, records that cannot be written again, and problems of the input.
    pub summary: Summary,
    /// Events that were removed.
    pub removed_events: u64,
    /// Other records that were kept, without definitions and losses.
    pub records: u64,
    /// Other records that were removed.
    pub removed_records: u64,
    /// Arguments that were removed from records that were kept.
    pub removed_arguments: u64,
    /// Texts that were replaced.
    pub replaced_texts: u64,
    /// Whether a process was found for each of those that were named; the names of the others.
    pub missing_processes: Vec<String>,
    /// Categories without an event in the trace, of those that are selected by their whole names.
    pub missing_categories: Vec<String>,
    /// The categories of the trace, if some are missing.
    pub categories: Vec<String>,
}

/// Writes the archive without what the options remove. The input is opened up to three times.
///
/// # Errors
/// The input cannot be read, or is no archive; the output cannot be written.
pub fn filter<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    mut output: impl Write,
    options: &Options,
) -> Result<Filtered, ConvertError> {
    let mut pass = |take: &mut dyn FnMut(&mut dyn Read) -> Result<(), ConvertError>| {
        let mut input = open().map_err(|source| ReadError::Io { offset: Offset(0), source })?;
        take(&mut input)
    };
    filter_from(&mut pass, &mut output, options)
}

/// A function that opens the input, and hands it to another one.
type Pass<'a> =
    dyn FnMut(&mut dyn FnMut(&mut dyn Read) -> Result<(), ConvertError>) -> Result<(), ConvertError> + 'a;

fn filter_from(
    pass: &mut Pass<'_>,
    output: &mut dyn Write,
    options: &Options,
) -> Result<Filtered, ConvertError> {
    let mut survey = Survey::default();
    if options.selects() {
        pass(&mut |input| survey.find_processes(input, options))?;
        pass(&mut |input| survey.find_records(input, options))?;
    }
    let mut rewriter = Rewriter::new(output, options, &survey);
    let mut end = None;
    pass(&mut |input| {
        end = Some(for_each(input, |record| rewriter.record(record))?);
        Ok(())
    })?;
    let end = end.expect("the pass has read its input");
    let mut filtered = rewriter.finish().map_err(ConvertError::Write)?;
    let Summary { events, skipped, .. } = std::mem::take(&mut filtered.summary);
    filtered.summary = Summary { skipped, ..end.summary(events, Default::default()) };
    filtered.missing_processes = survey.missing(options);
    filtered.missing_categories = survey.categories.missing(options);
    if !filtered.missing_categories.is_empty() {
        filtered.categories = survey.categories.seen().collect();
    }
    Ok(filtered)
}
