//! The input of a command: a trace.

mod copy;
mod open_file;

pub use copy::unlinked_file;
pub use open_file::OpenFile;

use crate::shell::exit::Failure;
use crate::shell::progress;
use crate::shell::stdio::say;
use copy::{AgainError, Copying, Failing, Positioned};
use indicatif::ProgressBar;
use std::error::Error;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use trace_analysis::check::{Finding, Problem, TRUNCATED, UNDECODABLE};
use trace_analysis::counted::Counted;
use trace_archive::output::open_same;
use trace_convert::import::container::{self, ContainerError, SNIFFED_BYTES};
use trace_convert::import::{Format, ImportError, json, other_format};
use trace_convert::tables::Trace;
use trace_convert::{ConvertError, Summary};
use trace_format::metadata::MAGIC_WORD;
use trace_format::units::{Offset, ProviderId};
use trace_model::{Chosen, Selection, Survey};
use trace_reader::{Disorder, FileKind, Plain, ReadError};

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
/// The first bytes of a file that zstd has compressed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The first bytes of an archive.
const MAGIC: [u8; 8] = MAGIC_WORD.to_le_bytes();

/// Whether a name stands for stdin.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// An input's name, for people.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Files of this process's own, which are read by name again.
static OWN: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());

/// From now on it is an error to open another file of this name: it would be taken for this one.
pub fn must_be(path: &Path, file: &File) {
    if let Ok(file) = file.try_clone() {
        OWN.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), file));
    }
}

/// Opens an input.
pub fn open(path: &Path) -> Result<OpenFile, Failure> {
    let failed = |error: io::Error| Failure::unreadable(format!("cannot read {}: {error}", name(path)));
    if is_stdin(path) {
        return io::stdin().as_fd().try_clone_to_owned().map(|file| File::from(file).into()).map_err(failed);
    }
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let file = match own.iter().rfind(|(own, _)| own == path) {
        Some((_, file)) => open_same(path, file),
        None => File::open(path),
    };
    drop(own);
    if let Err(error) = &file
        && error.kind() == io::ErrorKind::NotFound
        && let Some((container, member)) = member_of(path)
    {
        return opened_member(container, member, path);
    }
    let file = file.map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        let what = match path.extension().is_some_and(|extension| extension == "trace") {
            true => "a recording of Instruments (.trace), which `xctrace export` prints",
            false => "a directory",
        };
        return Err(Failure::unreadable(format!("cannot read {}: it is {what}", path.display())));
    }
    Ok(file.into())
}

/// The container and the name of its member, if that is what a path has on both sides of a colon.
//= docs/import.md#containers
fn member_of(path: &Path) -> Option<(&Path, &str)> {
    let text = path.to_str()?;
    let parts = text.match_indices(':').map(|(at, _)| (Path::new(&text[..at]), &text[at + 1..]));
    parts.into_iter().find(|(container, member)| !member.is_empty() && container.is_file())
}

/// A member of a container, in an unlinked file; what can be read of it.
fn opened_member(container: &Path, member: &str, path: &Path) -> Result<OpenFile, Failure> {
    let failed = |error: io::Error| Failure::unreadable(format!("cannot read {}: {error}", name(path)));
    let opened = container::open(File::open(container).map_err(failed)?, Some(member))
        .map_err(|error| failed(advised(error)))?;
    let mut copying = Copying::of(opened.input)?;
    let length = io::copy(&mut copying, &mut io::sink()).map_err(failed)?;
    let Copying { copy: mut file, end, .. } = copying;
    file.rewind().map_err(failed)?;
    match end {
        Some(error) if length == 0 => Err(failed(error)),
        end => Ok(OpenFile { file, end }),
    }
}

/// Describes an error of an input. The position in an import's error is its own, not that in the archive; and
/// a file that is no archive may be one of another format.
//= docs/import.md#importing
pub fn problem(error: &(dyn Error + 'static)) -> String {
    let mut next = Some(error);
    while let Some(error) = next {
        let read = match error.downcast_ref() {
            // It stands for the other error.
            Some(ConvertError::Read(read)) => Some(read),
            _ => error.downcast_ref(),
        };
        if let Some(ReadError::NoTrace { found }) = read {
            return format!(
                "expected a Fuchsia trace, a JSON trace, text of ftrace or perf, or a Perfetto trace, plain, compressed \
                 with gzip or zstd, or in a ZIP or tar archive; found {found}"
            );
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(import) = inner.and_then(|inner| inner.downcast_ref::<ImportError>()) {
            return import_problem(import);
        }
        next = error.source();
    }
    trace_archive::problem(error)
}

fn import_problem(import: &ImportError) -> String {
    let inner = match import {
        ImportError::Read(error) => error.get_ref(),
        _ => None,
    };
    // It has the position.
    match inner.and_then(|inner| inner.downcast_ref::<ReadError>()) {
        Some(read) => trace_archive::problem(read),
        None => trace_archive::problem(import),
    }
}

/// What an import skipped; nothing before it is done, or where there was none.
#[derive(Clone, Debug, Default)]
pub struct ImportReport {
    summary: Arc<OnceLock<Summary>>,
    /// How far the input was read, in bytes of the decompressed data.
    end: Arc<AtomicU64>,
}

/// An input whose rest cannot be read; `result` describes what the output has of it.
//= docs/import.md#what-is-cut-off
pub fn stopped(path: &Path, error: &(dyn Error + 'static), result: &str) -> Failure {
    let failure = failed(path, error);
    Failure { text: format!("{}; {result}", failure.text), ..failure }
}

/// An input that cannot be read, or for which there is no room.
//= docs/command-line.md#exit-codes
pub fn failed(path: &Path, error: &(dyn Error + 'static)) -> Failure {
    let text = format!("{}: {}", name(path), problem(error));
    if is_for_want_of_room(error) { Failure::new(text) } else { Failure::unreadable(text) }
}

/// Whether an error is about the copy of an input or a part of it: no input has too little room to be read.
fn is_for_want_of_room(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let mut next = Some(error);
    while let Some(error) = next {
        if matches!(error.downcast_ref(), Some(ImportError::Wait(_))) {
            return true;
        }
        let Some(io) = error.downcast_ref::<io::Error>() else {
            next = error.source();
            continue;
        };
        if matches!(io.kind(), FileTooLarge | QuotaExceeded | StorageFull) {
            return true;
        }
        // `source` would leave out the error that an I/O error wraps.
        next = io.get_ref().map(|inner| inner as &(dyn Error + 'static));
    }
    false
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

/// An archive and the result of a first pass over it.
pub struct Scanned {
    pub archive: Box<dyn Read>,
    /// The threads and operations whose begins and ends are not in the order of their times.
    pub disorder: Disorder,
    pub report: ImportReport,
    /// What of the trace is selected; none if everything is.
    pub chosen: Option<Chosen>,
}

/// Opens an input as an archive whose begins and ends are paired, and shows progress while it is read. A
/// first pass reads the file, or a copy of an input that cannot be read twice. An importer's sorted output
/// needs no such pass.
//= docs/check.md#order
pub fn scan(
    file: OpenFile,
    path: &Path,
    what: &'static str,
    selection: &Selection,
) -> Result<(Scanned, ProgressBar), Failure> {
    scan_for(file, path, what, selection, false)
}

/// Opens an input as `scan` does, with its ends in order, too: an importer sorts durations by their begins.
pub fn scan_ends(
    file: OpenFile,
    path: &Path,
    what: &'static str,
    selection: &Selection,
) -> Result<(Scanned, ProgressBar), Failure> {
    scan_for(file, path, what, selection, true)
}

/// The order of a trace, and what of it is selected.
fn surveyed(
    archive: impl Read,
    path: &Path,
    selection: &Selection,
) -> Result<(Disorder, Option<Chosen>), Failure> {
    // Errors are left to the second pass to report.
    let (disorder, survey) = match selection.needs_survey() {
        true => Survey::find(archive).unwrap_or_default(),
        false => (Disorder::find(archive).unwrap_or_default(), Survey::default()),
    };
    Ok((disorder, chosen(selection, survey, path)?))
}

/// Reads a trace for its order and for what a selection needs to know.
pub fn survey(trace: &mut Trace, path: &Path) -> Result<(Disorder, Survey), Failure> {
    let archive = (trace.open)();
    let archive = archive.map_err(|error| Failure::new(format!("cannot read {}: {error}", name(path))))?;
    // Errors are left to the second pass to report.
    Ok(Survey::find(io::BufReader::new(archive)).unwrap_or_default())
}

/// What of a trace is selected.
pub fn chosen(selection: &Selection, survey: Survey, path: &Path) -> Result<Option<Chosen>, Failure> {
    selection.choose(survey).map_err(|why| Failure::usage(format!("{}: {why}", name(path))))
}

fn scan_for(
    file: OpenFile,
    path: &Path,
    what: &'static str,
    selection: &Selection,
    needs_ends: bool,
) -> Result<(Scanned, ProgressBar), Failure> {
    let failed = |error: io::Error| Failure::unreadable(format!("cannot read {}: {error}", name(path)));
    let metadata = file.metadata().map_err(failed)?;
    // Part of standard input may have been read before, if it is a file.
    let begin = SeekFrom::Start((&*file).stream_position().unwrap_or(0));
    let (start, _, kind) = sniff(&mut &*file).map_err(failed)?;
    if kind == Kind::Archive && metadata.is_file() && file.end.is_none() {
        (&*file).seek(begin).map_err(failed)?;
        // Each byte is read twice.
        let bar = progress::bar(what, 2 * metadata.len());
        let (disorder, chosen) = surveyed(progress::reading(&*file, &bar), path, selection)?;
        (&*file).seek(begin).map_err(failed)?;
        bar.set_position(metadata.len());
        let archive = Box::new(progress::reading(file, &bar));
        return Ok((Scanned { archive, disorder, report: ImportReport::default(), chosen }, bar));
    }
    let bar = progress::bar(what, metadata.len());
    let input = progress::reading(Cursor::new(start).chain(file), &bar);
    let Opened { archive, report, is_sorted } = archive_of(kind, input).map_err(failed)?;
    if is_sorted && !needs_ends && selection.is_all() {
        return Ok((Scanned { archive, disorder: Disorder::default(), report, chosen: None }, bar));
    }
    let mut copying = Copying::of(archive)?;
    let (disorder, chosen) = surveyed(&mut copying, path, selection)?;
    // The importer may have stopped before the end.
    let _ = io::copy(&mut copying, &mut io::sink());
    let archive = Box::new(copying.again().map_err(failed)?);
    Ok((Scanned { archive, disorder, report, chosen }, bar))
}

/// An archive that can be read again and again.
pub fn again(file: OpenFile, path: &Path, what: &'static str) -> Result<(Trace, ImportReport), Failure> {
    let failed = |error: io::Error| Failure::unreadable(format!("cannot read {}: {error}", name(path)));
    let metadata = file.metadata().map_err(failed)?;
    let begin = (&*file).stream_position().unwrap_or(0);
    let (start, _, kind) = sniff(&mut &*file).map_err(failed)?;
    let is_plain = start.starts_with(&MAGIC);
    if kind == Kind::Archive && metadata.is_file() && file.end.is_none() {
        let length = metadata.len().saturating_sub(begin);
        let (file, bars) = (Arc::new(file.file), Bars::default());
        let open = Box::new(move || {
            let input = Positioned { file: file.clone(), at: begin };
            Ok(bars.reading(input, what, length) as Box<dyn Read>)
        });
        let bytes = is_plain.then_some(length);
        return Ok((Trace { name: name(path), open, disorder: None, bytes }, ImportReport::default()));
    }
    let input = Bars::default().reading(Cursor::new(start).chain(file), what, metadata.len());
    let Opened { archive, report, .. } = archive_of(kind, input).map_err(failed)?;
    let mut copying = Copying::of(archive)?;
    io::copy(&mut copying, &mut io::sink()).map_err(failed)?;
    let Copying { copy, end, .. } = copying;
    let end = end.map(Arc::new);
    let bytes = copy.metadata().map_err(failed)?.len();
    let copy = Arc::new(copy);
    let open = Box::new(move || {
        let copy = io::BufReader::new(Positioned { file: copy.clone(), at: 0 });
        let end = end.clone().map(|end| io::Error::new(end.kind(), AgainError(end)));
        Ok(Box::new(copy.chain(Failing(end))) as Box<dyn Read>)
    });
    Ok((Trace { name: name(path), open, disorder: None, bytes: Some(bytes) }, report))
}

/// Bars of one input, of which one is shown at a time.
#[derive(Default)]
struct Bars {
    is_shown: Arc<AtomicBool>,
}

impl Bars {
    fn reading(
        &self,
        input: impl Read + Send + 'static,
        what: &'static str,
        bytes: u64,
    ) -> Box<dyn Read + Send> {
        if self.is_shown.swap(true, Ordering::Relaxed) {
            return Box::new(input);
        }
        let bar = progress::bar(what, bytes);
        let input = Box::new(progress::reading(input, &bar));
        Box::new(Progressing { input, bar, is_shown: self.is_shown.clone() })
    }
}

/// Reads with a bar.
struct Progressing {
    input: Box<dyn Read + Send>,
    bar: ProgressBar,
    is_shown: Arc<AtomicBool>,
}

impl Read for Progressing {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.input.read(bytes)
    }
}

impl Drop for Progressing {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.is_shown.store(false, Ordering::Relaxed);
    }
}

/// Whether the Perfetto UI reads this file as it is, and loses nothing by it: no archive, not compressed with
/// zstd, and not Fuchsia's JSON.
//= docs/perfetto.md#what-is-served
pub fn is_for_perfetto(file: &File) -> io::Result<bool> {
    let mut file = file;
    if !file.metadata()?.is_file() {
        return Ok(false);
    }
    let (start, _, kind) = sniff(&mut file)?;
    file.rewind()?;
    let is_for_perfetto = match kind {
        Kind::Archive | Kind::Container | Kind::Other(_) => false,
        Kind::Foreign(_) if start.starts_with(&ZSTD) => false,
        Kind::Foreign(Format::Json) => !json::is_lines(&decompressed_start(&start)) && !is_fuchsias(file)?,
        Kind::Foreign(_) => true,
    };
    file.rewind()?;
    Ok(is_for_perfetto)
}

/// Whether a JSON trace has system events as an object, for which Perfetto refuses it. Damage is left to the
/// readers of the trace.
fn is_fuchsias(file: &File) -> io::Result<bool> {
    const MEMBER: &[u8] = b"\"systemTraceEvents\"";
    /// More than stands between the name and the value.
    const OVERLAP: usize = MEMBER.len() + 64;
    let Ok((mut plain, _)) = Plain::open(file) else { return Ok(false) };
    let mut chunk = Vec::new();
    loop {
        let kept = chunk.len();
        if plain.by_ref().take(SNIFFED_BYTES as u64).read_to_end(&mut chunk).is_err() || chunk.len() == kept {
            return Ok(false);
        }
        let mut rest = &chunk[..];
        while let Some(at) = rest.windows(MEMBER.len()).position(|bytes| bytes == MEMBER) {
            rest = &rest[at + MEMBER.len()..];
            let value = rest.iter().find(|byte| !byte.is_ascii_whitespace() && **byte != b':');
            if value == Some(&b'{') {
                return Ok(true);
            }
        }
        chunk.drain(..chunk.len().saturating_sub(OVERLAP));
    }
}

/// Opens an input as an archive; other formats are imported.
pub fn as_archive(input: impl Read + Send + 'static) -> io::Result<Box<dyn Read>> {
    as_reported_archive(input).map(|(archive, _)| archive)
}

/// The same, with a report of what was skipped.
pub fn as_reported_archive(
    mut input: impl Read + Send + 'static,
) -> io::Result<(Box<dyn Read>, ImportReport)> {
    let (start, end, kind) = sniff(&mut input)?;
    let opened = archive_of(kind, Cursor::new(start).chain(end).chain(input))?;
    Ok((opened.archive, opened.report))
}

/// What an input is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An archive, or something else that is not read.
    Archive,
    Foreign(Format),
    /// Something that has a trace in it.
    Container,
    /// The recording of another tool, or the like, which is this.
    Other(&'static str),
}

/// The first bytes of an input, the error behind them, and what it is.
fn sniff(input: &mut impl Read) -> io::Result<(Vec<u8>, Failing, Kind)> {
    let mut start = Vec::new();
    let end = input.take(SNIFFED_BYTES as u64).read_to_end(&mut start).err();
    if start.is_empty()
        && let Some(error) = end
    {
        return Err(error);
    }
    let is_whole = start.len() < SNIFFED_BYTES;
    let plain = decompressed_start(&start);
    let kind = match container::is_container(&plain, is_whole) {
        true => Kind::Container,
        false => match (Format::of(&plain, is_whole), other_format(&plain)) {
            (Some(format), _) => Kind::Foreign(format),
            (None, Some(found)) => Kind::Other(found),
            (None, None) => Kind::Archive,
        },
    };
    Ok((start, Failing(end), kind))
}

/// The error of a container, with what to do about it.
fn advised(error: ContainerError) -> io::Error {
    match error {
        ContainerError::Read(error) => error,
        ContainerError::Several { ref example, .. } => {
            io::Error::other(format!("{error}; name it behind the file, such as FILE:{example}"))
        }
        error => io::Error::other(error),
    }
}

/// An input as an archive.
struct Opened {
    archive: Box<dyn Read>,
    report: ImportReport,
    /// Whether an import has sorted its events.
    is_sorted: bool,
}

/// Imports an input of this kind, unless it is an archive.
fn archive_of(kind: Kind, input: impl Read + Send + 'static) -> io::Result<Opened> {
    let (format, input) = match kind {
        //= docs/import.md#what-is-no-trace
        Kind::Other(found) => {
            let error = io::Error::other(ImportError::NoTrace { found: found.to_owned() });
            (None, Box::new(Failing(Some(error))) as _)
        }
        Kind::Archive => (None, Box::new(input) as Box<dyn Read + Send>),
        Kind::Foreign(format) => (Some(format), Box::new(input) as _),
        //= docs/import.md#containers
        Kind::Container => {
            let opened = container::open(input, None).map_err(advised)?;
            opened.remarks.iter().for_each(|remark| say!("trace: {remark}"));
            (opened.format, opened.input)
        }
    };
    let (archive, report) = match format {
        Some(format) => imported(format, input)?,
        None => (input as Box<dyn Read>, ImportReport::default()),
    };
    Ok(Opened { archive, report, is_sorted: format.is_some_and(Format::is_sorted) })
}

fn imported(format: Format, input: impl Read + Send + 'static) -> io::Result<(Box<dyn Read>, ImportReport)> {
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
    let archive = Imported { reader, importing: Some(importing), report: report.clone() };
    Ok((Box::new(archive), report))
}

/// The first bytes after decompression; uncompressed ones are returned as they are.
fn decompressed_start(start: &[u8]) -> Vec<u8> {
    let mut first = Vec::new();
    // A truncated input is an error, after the first bytes.
    let _ = decompressing(Cursor::new(start.to_vec()))
        .map(|plain| plain.take(SNIFFED_BYTES as u64).read_to_end(&mut first));
    first
}

/// Compressed inputs have the same limits as compressed archives.
fn decompressing<R: Read>(input: R) -> Result<Placed<R>, ImportError> {
    let (plain, kind) = Plain::open(input).map_err(ImportError::Read)?;
    let is_compressed = matches!(kind, FileKind::Gzip | FileKind::Zstd);
    Ok(Placed { plain, is_compressed, offset: Offset(0) })
}

/// An input whose errors have a position, in bytes of the decompressed data.
struct Placed<R> {
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
        let _ = self.report.summary.set(summary);
        stopped.map_or(Ok(0), |error| Err(io::Error::other(error)))
    }
}
