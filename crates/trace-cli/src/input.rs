//! The trace that a command reads.

use crate::exit::Failure;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread::JoinHandle;
use trace_convert::Summary;
use trace_convert::import::{ImportError, json};

/// So much of an input shows what it is.
const SNIFFED_BYTES: usize = 64 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

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

/// An input as an archive: what is JSON becomes one on the way.
pub fn as_archive(mut input: impl Read + Send + 'static) -> io::Result<Box<dyn Read>> {
    let mut start = Vec::new();
    input.by_ref().take(SNIFFED_BYTES as u64).read_to_end(&mut start)?;
    let first = decompressed_start(&start);
    let is_json = matches!(first.iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'[' | b'{'));
    let whole = Cursor::new(start).chain(input);
    if !is_json {
        return Ok(Box::new(whole));
    }
    let (reader, writer) = io::pipe()?;
    let thread = std::thread::Builder::new().name("trace-import".to_owned());
    let importing = thread.spawn(move || json::import(decompressing(whole)?, writer))?;
    Ok(Box::new(Imported { reader, importing: Some(importing) }))
}

/// What compressed bytes begin with; others begin with themselves.
fn decompressed_start(start: &[u8]) -> Vec<u8> {
    let mut first = Vec::new();
    // What is cut off is an error, behind the first bytes.
    let _ = decompressing(Cursor::new(start.to_vec()))
        .map(|plain| plain.take(SNIFFED_BYTES as u64 / 16).read_to_end(&mut first));
    first
}

fn decompressing<'a>(mut input: impl Read + Send + 'a) -> Result<Box<dyn Read + Send + 'a>, ImportError> {
    let mut magic = Vec::new();
    input.by_ref().take(ZSTD.len() as u64).read_to_end(&mut magic).map_err(ImportError::Read)?;
    let whole = Cursor::new(magic.clone()).chain(input);
    if magic.starts_with(&GZIP) {
        return Ok(Box::new(flate2::read::MultiGzDecoder::new(whole)));
    }
    if magic == ZSTD {
        return Ok(Box::new(zstd::Decoder::new(whole).map_err(ImportError::Read)?));
    }
    Ok(Box::new(whole))
}

/// An archive that another thread makes.
struct Imported {
    reader: io::PipeReader,
    importing: Option<JoinHandle<Result<Summary, ImportError>>>,
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
            eprintln!("trace: {count} {kind} left out: an archive has nothing for them");
        }
        summary.first_warnings.iter().for_each(|warning| eprintln!("trace: {warning}"));
        Ok(0)
    }
}
