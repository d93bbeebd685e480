//! The trace that a command reads.

use crate::exit::Failure;
use crate::stdio::say;
use std::error::Error;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use trace_convert::Summary;
use trace_convert::import::{ImportError, ftrace, json, perfetto};
use trace_format::metadata::MAGIC_WORD;
use trace_reader::Plain;

/// So much of an input shows what it is.
const SNIFFED_BYTES: usize = 64 << 10;
/// How an archive begins.
const MAGIC: [u8; 8] = MAGIC_WORD.to_le_bytes();

/// Whether a name stands for stdin.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// An input's name, for people.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".to_owned() } else { path.display().to_string() }
}

/// Opens an input.
pub fn open(path: &Path) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot read {}: {error}", name(path)));
    if is_stdin(path) {
        return io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(failed);
    }
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(Failure::new(format!("cannot read {}: it is a directory", path.display())));
    }
    Ok(file)
}

/// Formats that become archives on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    Json,
    Ftrace,
    Perfetto,
}

impl Foreign {
    /// What a file is, by the first of its bytes, which may be all of them.
    fn of(start: &[u8], is_whole: bool) -> Option<Self> {
        if start.get(..MAGIC.len()) == Some(&MAGIC[..]) {
            return None;
        }
        // A line feed may begin JSON as well as a packet.
        if perfetto::is_perfetto(start, is_whole) {
            return Some(Self::Perfetto);
        }
        match start.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[' | b'{') => Some(Self::Json),
            _ => ftrace::is_ftrace(start).then_some(Self::Ftrace),
        }
    }

    fn import(self, input: impl Read, output: io::PipeWriter) -> Result<Summary, ImportError> {
        match self {
            Self::Json => json::import(input, output),
            Self::Ftrace => ftrace::import(input, output),
            Self::Perfetto => perfetto::import(input, output),
        }
    }
}

/// What is wrong with an input, for people. What an import says has its own place, which is not that in the
/// archive.
pub fn problem(error: &(dyn Error + 'static)) -> String {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(import) = inner.and_then(|inner| inner.downcast_ref::<ImportError>()) {
            return trace_manager::problem(import);
        }
        next = error.source();
    }
    trace_manager::problem(error)
}

/// What an import left out; nothing before it is done, or where there was none.
#[derive(Clone, Debug, Default)]
pub struct ImportReport(Arc<OnceLock<Summary>>);

impl ImportReport {
    /// How many things were left out.
    pub fn left_out(&self) -> u64 {
        self.0.get().map_or(0, |summary| summary.skipped.iter().map(|(_, count)| count).sum())
    }
}

/// An input as an archive: what has another format becomes one on the way.
pub fn as_archive(input: impl Read + Send + 'static) -> io::Result<Box<dyn Read>> {
    as_reported_archive(input).map(|(archive, _)| archive)
}

/// The same, with what was left out on the way.
pub fn as_reported_archive(
    mut input: impl Read + Send + 'static,
) -> io::Result<(Box<dyn Read>, ImportReport)> {
    let mut start = Vec::new();
    input.by_ref().take(SNIFFED_BYTES as u64).read_to_end(&mut start)?;
    let is_whole = start.len() < SNIFFED_BYTES;
    let foreign = Foreign::of(&decompressed_start(&start), is_whole);
    let whole = Cursor::new(start).chain(input);
    let Some(foreign) = foreign else {
        return Ok((Box::new(whole), ImportReport::default()));
    };
    let (reader, writer) = io::pipe()?;
    let thread = std::thread::Builder::new().name("trace-import".to_owned());
    let importing = thread.spawn(move || foreign.import(decompressing(whole)?, writer))?;
    let report = ImportReport::default();
    Ok((Box::new(Imported { reader, importing: Some(importing), report: report.clone() }), report))
}

/// What compressed bytes begin with; others begin with themselves.
fn decompressed_start(start: &[u8]) -> Vec<u8> {
    let mut first = Vec::new();
    // What is cut off is an error, behind the first bytes.
    let _ = decompressing(Cursor::new(start.to_vec()))
        .map(|plain| plain.take(SNIFFED_BYTES as u64).read_to_end(&mut first));
    first
}

/// The limits for what is compressed are those of archives.
fn decompressing<'a>(input: impl Read + Send + 'a) -> Result<impl Read + Send + 'a, ImportError> {
    Plain::open(input).map(|(plain, _)| plain).map_err(ImportError::Read)
}

/// An archive that another thread makes.
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
        // All has come, or all that could.
        let Some(importing) = self.importing.take() else {
            return Ok(0);
        };
        let failed = || io::Error::other("the importing thread has failed");
        let summary = importing.join().map_err(|_| failed())?.map_err(io::Error::other)?;
        for (kind, count) in &summary.skipped {
            say!("trace: {count} {kind} left out: an archive has nothing for them");
        }
        summary.first_warnings.iter().for_each(|warning| say!("trace: {warning}"));
        let more = summary.warnings - summary.first_warnings.len() as u64;
        if more > 0 {
            say!("trace: and {more} more of these");
        }
        let _ = self.report.0.set(summary);
        Ok(0)
    }
}
