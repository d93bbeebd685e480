//! The input of a command: a trace.

mod copy;
mod import;
mod open_file;

pub use copy::unlinked_file;
pub use import::ImportReport;
pub use open_file::OpenFile;

use crate::shell::exit::Failure;
use crate::shell::progress;
use crate::shell::stdio::say;
use copy::{AgainError, Copying, Failing, Positioned};
use import::{decompressing, imported};
use indicatif::ProgressBar;
use std::error::Error;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trace_archive::output::open_same;
use trace_convert::ConvertError;
use trace_convert::import::container::{self, ContainerError, SNIFFED_BYTES};
use trace_convert::import::{Format, ImportError, json, other_format};
use trace_convert::tables::Trace;
use trace_format::metadata::MAGIC_WORD;
use trace_model::{Chosen, Selection, Survey};
use trace_reader::{Disorder, Plain, ReadError};

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

/// Inputs that can be read once, and what to read instead: a file and a place in it.
static KEPT: Mutex<Vec<(PathBuf, File, u64)>> = Mutex::new(Vec::new());

/// From now on it is an error to open another file of this name: it would be taken for this one.
pub fn must_be(path: &Path, file: &File) {
    if let Ok(file) = file.try_clone() {
        OWN.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), file));
    }
}

/// From now on an input can be opened several times, also by several threads. One that can be read once is
/// copied; an error is left to its readers, which would have met it in that place.
pub fn keep(path: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::unreadable(format!("cannot read {}: {error}", name(path)));
    let is_kept = |(kept, ..): &(PathBuf, File, u64)| kept == path;
    if KEPT.lock().unwrap_or_else(PoisonError::into_inner).iter().any(is_kept) {
        return Ok(());
    }
    let is_special = |path: &Path| path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    if !is_stdin(path) && !is_special(path) {
        return Ok(());
    }
    let OpenFile { mut file, .. } = open(path)?;
    let is_file = file.metadata().map_err(failed)?.is_file();
    let (file, begin) = if is_file {
        let begin = file.stream_position().map_err(failed)?;
        (file, begin)
    } else {
        let mut copying = Copying::of(Box::new(file))?;
        io::copy(&mut copying, &mut io::sink()).map_err(failed)?;
        if let Some(error) = copying.end {
            return Err(self::failed(path, &error));
        }
        (copying.copy, 0)
    };
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), file, begin));
    Ok(())
}

/// Opens an input.
pub fn open(path: &Path) -> Result<OpenFile, Failure> {
    let failed = |error: io::Error| Failure::unreadable(format!("cannot read {}: {error}", name(path)));
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, file, begin)) = kept.iter().find(|(kept, ..)| kept == path) {
        // A place of its own in the file.
        let again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let sought = again.and_then(|mut file| file.seek(SeekFrom::Start(*begin)).map(|_| file));
        return sought.map(OpenFile::from).map_err(failed);
    }
    drop(kept);
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
    scan_for(file, path, Shown::As(what), selection, false)
}

/// Opens an input as `scan` does, and says nothing of it: another part of the command does.
pub fn scan_quietly(file: OpenFile, path: &Path, selection: &Selection) -> Result<Scanned, Failure> {
    scan_for(file, path, Shown::Nothing, selection, false).map(|(scanned, _)| scanned)
}

/// Opens an input as `scan` does, with its ends in order, too: an importer sorts durations by their begins.
pub fn scan_ends(
    file: OpenFile,
    path: &Path,
    what: &'static str,
    selection: &Selection,
) -> Result<(Scanned, ProgressBar), Failure> {
    scan_for(file, path, Shown::As(what), selection, true)
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

/// What people see of the reading: a bar that is called so, and what an import has to say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    As(&'static str),
}

impl Shown {
    fn bar(self, bytes: u64) -> ProgressBar {
        match self {
            Self::Nothing => ProgressBar::hidden(),
            Self::As(what) => progress::bar(what, bytes),
        }
    }
}

fn scan_for(
    file: OpenFile,
    path: &Path,
    shown: Shown,
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
        let bar = shown.bar(2 * metadata.len());
        let (disorder, chosen) = surveyed(progress::reading(&*file, &bar), path, selection)?;
        (&*file).seek(begin).map_err(failed)?;
        bar.set_position(metadata.len());
        let archive = Box::new(progress::reading(file, &bar));
        return Ok((Scanned { archive, disorder, report: ImportReport::default(), chosen }, bar));
    }
    let bar = shown.bar(metadata.len());
    let input = progress::reading(Cursor::new(start).chain(file), &bar);
    let opened = archive_of(kind, input, shown != Shown::Nothing).map_err(failed)?;
    let Opened { archive, report, is_sorted } = opened;
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
    let Opened { archive, report, .. } = archive_of(kind, input, true).map_err(failed)?;
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
    let opened = archive_of(kind, Cursor::new(start).chain(end).chain(input), true)?;
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

/// Imports an input of this kind, unless it is an archive. People may be shown what is left out.
fn archive_of(kind: Kind, input: impl Read + Send + 'static, is_shown: bool) -> io::Result<Opened> {
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
            opened.remarks.iter().filter(|_| is_shown).for_each(|remark| say!("trace: {remark}"));
            (opened.format, opened.input)
        }
    };
    let (archive, report) = match format {
        Some(format) => imported(format, input, is_shown)?,
        None => (input as Box<dyn Read>, ImportReport::default()),
    };
    Ok(Opened { archive, report, is_sorted: format.is_some_and(Format::is_sorted) })
}

/// The first bytes after decompression; uncompressed ones are returned as they are.
fn decompressed_start(start: &[u8]) -> Vec<u8> {
    let mut first = Vec::new();
    // A truncated input is an error, after the first bytes.
    let _ = decompressing(Cursor::new(start.to_vec()))
        .map(|plain| plain.take(SNIFFED_BYTES as u64).read_to_end(&mut first));
    first
}
