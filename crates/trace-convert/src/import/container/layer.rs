//! Readers of layers: limited in growth, and copies that can be read from any place.

use flate2::read::{DeflateDecoder, ZlibDecoder};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trace_reader::is_suspicious;

/// How much of the file itself was read.
#[derive(Clone, Default)]
pub(super) struct Outermost(Arc<AtomicU64>);

impl Outermost {
    pub fn counted<R: Read>(&self, input: R) -> impl Read + use<R> {
        Counted { input, bytes: self.clone() }
    }
}

struct Counted<R> {
    input: R,
    bytes: Outermost,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(to)?;
        self.bytes.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A layer that must not be much larger than the file that it comes from, however many layers are between.
pub(super) struct Bounded<R> {
    input: R,
    bytes: u64,
    outermost: Outermost,
}

impl<R> Bounded<R> {
    pub fn new(input: R, outermost: &Outermost) -> Self {
        Self { input, bytes: 0, outermost: outermost.clone() }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(to)?;
        self.bytes += read as u64;
        if is_suspicious(self.outermost.0.load(Ordering::Relaxed), self.bytes) {
            let problem =
                "what is in the file grows to more than 1000 times its size; unpack it first if you trust it";
            return Err(io::Error::new(ErrorKind::FileTooLarge, problem));
        }
        Ok(read)
    }
}

/// Compressed data within a layer.
pub(super) enum Compressed<R> {
    Zlib(ZlibDecoder<R>),
    Deflate(DeflateDecoder<R>),
}

impl<R: Read> Compressed<R> {
    pub fn zlib(input: R) -> Self {
        Self::Zlib(ZlibDecoder::new(input))
    }

    pub fn deflate(input: R) -> Self {
        Self::Deflate(DeflateDecoder::new(input))
    }
}

impl<R: Read> Read for Compressed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let (read, what) = match self {
            Self::Zlib(decoder) => (decoder.read(to), "zlib"),
            Self::Deflate(decoder) => (decoder.read(to), "deflate"),
        };
        read.map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            ErrorKind::UnexpectedEof => io::Error::new(error.kind(), format!("the {what} data is cut off")),
            kind => io::Error::new(kind, format!("bad {what} data: {error}")),
        })
    }
}

/// A copy of a layer, in an unlinked file.
pub(super) fn copied(layer: &mut impl Read) -> io::Result<Arc<File>> {
    let mut copy = tempfile::tempfile()?;
    io::copy(layer, &mut copy)?;
    copy.rewind()?;
    Ok(Arc::new(copy))
}

/// A part of a copied layer.
pub(super) struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Part {
    pub fn new(file: &Arc<File>, at: u64, length: u64) -> Self {
        Self { file: file.clone(), at, end: at.saturating_add(length) }
    }
}

impl Read for Part {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = to.len().min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let mut file = &*self.file;
        // Another part of it may have been read.
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.read(&mut to[..length])?;
        self.at += read as u64;
        Ok(read)
    }
}
