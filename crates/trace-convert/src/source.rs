//! An archive, record by record, as all exporters read it.

use crate::{ConvertError, Stopped, Summary};
use std::collections::BTreeMap;
use std::io::{self, Read};
use trace_model::OddFinder;
use trace_reader::{Names, ReadError, Reader, Recordings, Resolved};

/// Maximum number of warnings that a summary repeats.
const MAX_WARNINGS: usize = 5;

/// How reading ended.
pub(crate) struct End {
    /// The error, if it ended before the end of the input.
    stopped: Option<ReadError>,
    warnings: u64,
    first_warnings: Vec<String>,
    /// Recordings that have no end.
    unended: u64,
    /// The names of processes and threads as the last records say them.
    pub names: Names,
}

/// The remark about them.
const UNENDED: &str = "recordings without an end: the trace is cut off, or still being written";

/// Passes on each record, until the end or the point where the rest cannot be read: compressed data is
/// truncated or damaged, or the position in a damaged archive is lost.
pub(crate) fn for_each(
    input: impl Read,
    mut take: impl FnMut(&Resolved<'_>) -> io::Result<()>,
) -> Result<End, ConvertError> {
    let mut reader = Reader::new(input)?;
    let mut has_content = false;
    let mut recordings = Recordings::default();
    let stopped = loop {
        match reader.next_item() {
            // Where it is: a copy of it would take a tenth of the time of reading.
            Ok(Some(ref record)) => {
                has_content |= record.item.is_content();
                recordings.record(record);
                take(record).map_err(ConvertError::Write)?;
            }
            Ok(None) => break None,
            Err(error) if has_content => break Some(error),
            Err(error) => return Err(error.into()),
        }
    };
    let warnings = reader.warnings();
    let first = warnings.first();
    let first = first.iter().take(MAX_WARNINGS);
    Ok(End {
        stopped,
        warnings: warnings.count(),
        first_warnings: first.map(|warning| format!("byte {}: {}", warning.offset, warning.kind)).collect(),
        unended: recordings.without_end().len() as u64,
        names: reader.into_names(),
    })
}

/// Passes on the records of an archive to the exporter of a format whose readers keep stacks. A finder looks
/// for slices that such readers would misunderstand. Once there is one, no more records are passed on, and
/// the error names all of them.
pub(crate) fn for_each_unless_odd(
    input: impl Read,
    finder: Option<OddFinder>,
    mut take: impl FnMut(&Resolved<'_>) -> io::Result<()>,
) -> Result<End, ConvertError> {
    let Some(mut finder) = finder else { return for_each(input, take) };
    let end = for_each(input, |record| {
        finder.record(record);
        if finder.has_nothing() { take(record) } else { Ok(()) }
    })?;
    let odd = finder.finish();
    if odd.is_empty() { Ok(end) } else { Err(ConvertError::Odd(Box::new(odd))) }
}

/// Reads an archive up to its first content.
#[cfg(feature = "sqlite")]
pub(crate) fn probe(input: impl Read) -> Result<(), ConvertError> {
    let mut reader = Reader::new(input)?;
    while let Some(record) = reader.next_item()? {
        if record.item.is_content() {
            break;
        }
    }
    Ok(())
}

impl End {
    /// The results of the conversion.
    pub fn summary(self, events: u64, skipped: BTreeMap<&'static str, u64>) -> Summary {
        Summary {
            events,
            skipped: skipped.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect(),
            warnings: self.warnings,
            first_warnings: self.first_warnings,
            remarks: (self.unended > 0).then(|| (UNENDED.to_owned(), self.unended)).into_iter().collect(),
            stopped: self.stopped.map(Stopped::new),
            ..Summary::default()
        }
    }
}
