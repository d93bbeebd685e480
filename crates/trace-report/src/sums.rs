//! The sums of a trace and its problems, in one pass if its events are in order, else in two.

use std::io::{self, Read};
use trace_analysis::check::{Checker, Limits, Report};
use trace_analysis::stats::{Options, Stats, Sums};
use trace_format::units::Offset;
use trace_reader::{Disorder, DisorderFinder, Item, ReadError, Reader};

/// Sums, as the options say, and problems of a trace that can be opened several times.
///
/// # Errors
/// It is no archive or cannot be read.
pub fn of(
    mut open: impl FnMut() -> io::Result<Box<dyn Read>>,
    options: &Options,
) -> Result<(Stats, Report), ReadError> {
    let mut open = || open().map_err(|source| ReadError::Io { offset: Offset(0), source });
    let in_order = Disorder::default();
    match pass(open()?, options, &in_order, Some(DisorderFinder::default()))? {
        Ok(found) => Ok(found),
        Err(disorder) => match pass(open()?, options, &disorder, None)? {
            Ok(found) => Ok(found),
            // Only a finder finds any.
            Err(_) => Err(ReadError::Io { offset: Offset(0), source: io::Error::other("out of order") }),
        },
    }
}

/// One pass; with a finder, the disorder if there is any.
fn pass(
    input: impl Read,
    options: &Options,
    disorder: &Disorder,
    mut finder: Option<DisorderFinder>,
) -> Result<Result<(Stats, Report), Disorder>, ReadError> {
    let mut reader = Reader::new(input)?.strict();
    let (mut sums, mut checker) =
        (Sums::new(disorder, options), Checker::new(Limits::default(), disorder, options.chosen.as_ref()));
    let error = loop {
        match reader.next_item() {
            Ok(Some(record)) => {
                if let (Some(finder), Item::Event(event)) = (&mut finder, &record.item) {
                    finder.event(event);
                }
                // What is out of order is read again.
                if finder.as_ref().is_none_or(DisorderFinder::is_in_order) {
                    checker.record(&record);
                    sums.record(&record);
                }
            }
            Ok(None) => break None,
            Err(error) if sums.has_content() => break Some(error),
            Err(error) => return Err(error),
        }
    };
    if let Some(disorder) = finder.map(DisorderFinder::finish)
        && !disorder.is_empty()
    {
        return Ok(Err(disorder));
    }
    let stats = sums.finish(&reader, error.as_ref().map(ReadError::repeated))?;
    Ok(Ok((stats, checker.finish(&reader, error))))
}
