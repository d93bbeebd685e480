//! Inputs of other formats, which a thread imports, and what that reports.
//= docs/import.md#importing

use crate::shell::json;
use crate::shell::stdio::say;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use trace_analysis::check::{Finding, Problem, TRUNCATED, UNDECODABLE};
use trace_analysis::counted::Counted;
use trace_convert::Summary;
use trace_convert::import::{Format, ImportError};
use trace_format::units::{Offset, ProviderId};
use trace_reader::{FileKind, Plain, ReadError};

/// The only provider of an archive that an import makes.
const PROVIDER: ProviderId = ProviderId(1);
/// The kind of problem of events that an import could not read, or not as they stand there.
const MALFORMED: &str = "malformed";
/// The kind of problem of events that an import has left out because they make no sense.
const NOT_IMPORTED: &str = "not-imported";
/// What an import calls these. Everything else that it skips is no event that could be in an archive.
const LOST_EVENTS: [&str; 8] = [
    "complete durations whose length cannot be expressed",
    "events of other phases",
    "events of phase \"\"",
    "events that are too large",
    "events without a time that can be expressed",
    "packets that are too large",
    "packets that refer to lost strings",
    "track events without a type",
];
/// What an import skipped; nothing before it is done, or where there was none.
#[derive(Clone, Debug, Default)]
pub struct ImportReport {
    summary: Arc<OnceLock<Summary>>,
    /// How far the input was read, in bytes of the decompressed data.
    end: Arc<AtomicU64>,
}

/// What the import calls events that it could not read.
const UNREADABLE_EVENTS: &str = "events that cannot be read";
/// The end of that and others of this kind.
const UNREADABLE: &str = "that cannot be read";

impl ImportReport {
    /// Reports undecodable records, and a truncated input, as problems of the trace.
    //= docs/check.md#problems
    pub fn problems(&self) -> Vec<Problem> {
        let is_cut_off = self.summary.get().is_some_and(|summary| summary.is_cut_off);
        let end = Finding {
            offset: Offset(self.end.load(Ordering::Relaxed)),
            provider: PROVIDER,
            text: "the input ends here, before the end of its document".to_owned(),
        };
        let truncated = Problem { kind: TRUNCATED, count: 1, first: vec![end] };
        self.undecodable().into_iter().chain(is_cut_off.then_some(truncated)).collect()
    }

    fn undecodable(&self) -> Option<Problem> {
        let summary = self.summary.get().filter(|summary| summary.unread > 0)?;
        let first = summary.first_unread.iter().map(|unread| Finding {
            offset: Offset(unread.offset),
            provider: PROVIDER,
            text: unread.text.clone(),
        });
        Some(Problem { kind: UNDECODABLE, count: summary.unread, first: first.collect() })
    }

    /// What was not read, or not as it stands there: kinds of problems, with how often they were met.
    //= docs/check.md#problems
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let problems = self.problems().into_iter().map(|problem| (problem.kind, problem.count));
        let malformed = self.summary.get().map_or(0, |summary| summary.malformed);
        let lost = self.summary.get().map_or(0, |summary| {
            let kinds = summary.skipped.iter().filter(|(kind, _)| LOST_EVENTS.contains(&kind.as_str()));
            kinds.map(|(_, count)| count).sum()
        });
        let found = [(MALFORMED, malformed), (NOT_IMPORTED, lost)];
        problems.chain(found.into_iter().filter(|(_, count)| *count > 0)).collect()
    }

    /// What was not imported, or not as it stands in the input, for programs.
    //= docs/check.md#json
    pub fn invalid(&self) -> Vec<serde_json::Value> {
        let of = self.counts().into_iter().filter(|(kind, _)| [MALFORMED, NOT_IMPORTED].contains(kind));
        let text = |kind| self.problem().filter(|_| kind == MALFORMED);
        of.map(|(kind, count)| json::problem(kind, Some(count), text(kind).as_deref(), None)).collect()
    }

    /// The size of an imported input, decompressed, as far as it was read; none of an archive.
    pub fn bytes(&self) -> Option<u64> {
        self.summary.get().map(|_| self.end.load(Ordering::Relaxed))
    }

    /// How many records were skipped.
    pub fn left_out(&self) -> u64 {
        self.summary.get().map_or(0, |summary| summary.skipped.iter().map(|(_, count)| count).sum())
    }

    /// The error of an input of which only a part was converted.
    pub fn problem(&self) -> Option<String> {
        let summary = self.summary.get()?;
        let of_kind = |(kind, _): &&(String, u64)| kind == UNREADABLE_EVENTS;
        let skipped = summary.skipped.iter().find(of_kind).map_or(0, |(_, count)| *count);
        let skipped_text = match skipped {
            0 => None,
            1 => Some("1 event could not be read and was skipped".to_owned()),
            count => Some(format!("{count} events could not be read and were skipped")),
        };
        let mended_text = match summary.malformed.saturating_sub(skipped) {
            0 => None,
            1 => Some("1 event is not valid and was mended".to_owned()),
            count => Some(format!("{count} events are not valid and were mended")),
        };
        let texts: Vec<String> = skipped_text.into_iter().chain(mended_text).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

/// An archive of an input in another format, and a report. People may be shown what is left out.
pub(super) fn imported(
    format: Format,
    input: impl Read + Send + 'static,
    is_shown: bool,
) -> io::Result<(Box<dyn Read>, ImportReport)> {
    let (reader, writer) = io::pipe()?;
    let report = ImportReport::default();
    let end = report.end.clone();
    let thread = std::thread::Builder::new().name("trace-import".to_owned());
    let importing = thread.spawn(move || {
        let mut input = decompressing(input)?;
        let imported = format.import(&mut input, writer);
        end.store(input.offset.0, Ordering::Relaxed);
        let summary = imported?;
        match input.finish() {
            Ok(()) => Ok(summary),
            Err(error) => {
                let error = Box::new(ImportError::Read(error));
                Err(ImportError::Stopped { error, summary: Box::new(summary) })
            }
        }
    })?;
    let archive = Imported { reader, importing: Some(importing), report: report.clone(), is_shown };
    Ok((Box::new(archive), report))
}

/// Compressed inputs have the same limits as compressed archives.
pub(super) fn decompressing<R: Read>(input: R) -> Result<Placed<R>, ImportError> {
    let (plain, kind) = Plain::open(input).map_err(ImportError::Read)?;
    let is_compressed = matches!(kind, FileKind::Gzip | FileKind::Zstd);
    Ok(Placed { plain, is_compressed, offset: Offset(0) })
}

/// An input whose errors have a position, in bytes of the decompressed data.
pub(super) struct Placed<R> {
    plain: Plain<R>,
    is_compressed: bool,
    offset: Offset,
}

impl<R: Read> Placed<R> {
    /// Reads the input to its end: a document may end before the checksum of its compressed file.
    fn finish(mut self) -> io::Result<()> {
        if self.is_compressed {
            io::copy(&mut self, &mut io::sink())?;
        }
        Ok(())
    }
}

impl<R: Read> Read for Placed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let offset = self.offset;
        let read = self.plain.read(bytes).map_err(|source| match source.kind() {
            io::ErrorKind::Interrupted => source,
            kind => io::Error::new(kind, ReadError::Io { offset, source }),
        })?;
        self.offset.0 += read as u64;
        Ok(read)
    }
}

/// An archive that an importing thread produces.
struct Imported {
    reader: io::PipeReader,
    importing: Option<JoinHandle<Result<Summary, ImportError>>>,
    report: ImportReport,
    is_shown: bool,
}

impl Read for Imported {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(bytes)?;
        if length > 0 || bytes.is_empty() {
            return Ok(length);
        }
        // All of it has arrived, or all that could be imported.
        let Some(importing) = self.importing.take() else {
            return Ok(0);
        };
        let failed = || io::Error::other("the importing thread has failed");
        let (summary, stopped) = match importing.join().map_err(|_| failed())? {
            Ok(summary) => (summary, None),
            Err(ImportError::Stopped { error, summary }) => (*summary, Some(*error)),
            Err(error) => return Err(io::Error::other(error)),
        };
        if self.is_shown {
            say_skipped(&summary);
        }
        let _ = self.report.summary.set(summary);
        stopped.map_or(Ok(0), |error| Err(io::Error::other(error)))
    }
}

/// Prints what an import has left out.
fn say_skipped(summary: &Summary) {
    for (kind, count) in &summary.skipped {
        let them = if *count == 1 { "it" } else { "them" };
        let why = if kind.ends_with(UNREADABLE) {
            String::new()
        } else {
            format!(": an archive cannot express {them}")
        };
        say!("trace: {} skipped{why}", Counted(*count, kind));
    }
    summary.first_warnings.iter().for_each(|warning| say!("trace: {warning}"));
    let more = summary.warnings - summary.first_warnings.len() as u64;
    if more > 0 {
        say!("trace: and {more} more of these");
    }
}
