//! Traces as they are stored: plain, or compressed with gzip or zstd, recognized by their content.

use crate::file_kind::{FileKind, SNIFFED_BYTES};
use flate2::bufread::GzDecoder;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

/// Largest window of zstd data, as a power of two: the one that every decoder should support, and that levels
/// up to 19 use.
const MAX_WINDOW_LOG: u32 = 23;
/// How much is decompressed at once: the decoders return nothing of the piece in which they detect damage.
const PIECE_BYTES: usize = 4 << 10;
/// Data that grows to more than this must not be ...
const MAX_UNSUSPECTED_BYTES: u64 = 1 << 30;
/// ... more than so many times its compressed size.
const MAX_EXPANSION: u64 = 1000;

/// Whether data expands more than recorded data does: to more than a thousand times its size, and to more
/// than a GiB. Such data is made to fill memory or a disk.
#[must_use]
pub const fn is_suspicious(compressed_bytes: u64, plain_bytes: u64) -> bool {
    plain_bytes > MAX_UNSUSPECTED_BYTES && plain_bytes / MAX_EXPANSION > compressed_bytes
}

/// An input whose first bytes have been read.
type Sniffed<R> = io::Chain<Cursor<Vec<u8>>, R>;

/// The plain bytes of an input.
pub struct Plain<R> {
    decoder: Decoder<R>,
    bytes: u64,
}

enum Decoder<R> {
    None(Sniffed<R>),
    Gzip(Gzip<BufReader<Counted<Sniffed<R>>>>),
    Zstd(zstd::Decoder<'static, BufReader<Counted<Sniffed<R>>>>),
}

impl<R: Read> Plain<R> {
    /// Reads the first bytes of an input, and determines its kind.
    ///
    /// # Errors
    /// The input cannot be read, or the decoder cannot be made.
    pub fn open(mut input: R) -> io::Result<(Self, FileKind)> {
        let mut start = Vec::new();
        input.by_ref().take(SNIFFED_BYTES as u64).read_to_end(&mut start)?;
        let kind = FileKind::of(&start);
        let input = Cursor::new(start).chain(input);
        let decoder = match kind {
            FileKind::Gzip => Decoder::Gzip(Gzip::new(BufReader::new(Counted::new(input)))),
            FileKind::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(BufReader::new(Counted::new(input)))?;
                decoder.window_log_max(MAX_WINDOW_LOG)?;
                Decoder::Zstd(decoder)
            }
            _ => Decoder::None(input),
        };
        Ok((Self { decoder, bytes: 0 }, kind))
    }
}

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = to.len().min(PIECE_BYTES);
        let piece = &mut to[..length];
        let (read, compressed, what) = match &mut self.decoder {
            Decoder::None(input) => return input.read(to),
            Decoder::Gzip(decoder) => {
                (decoder.read(piece), decoder.input().map_or(0, |input| input.get_ref().bytes), "gzip")
            }
            Decoder::Zstd(decoder) => (decoder.read(piece), decoder.get_ref().get_ref().bytes, "zstd"),
        };
        let read = read.map_err(|error| match error.kind() {
            ErrorKind::Interrupted => error,
            ErrorKind::UnexpectedEof => {
                io::Error::new(error.kind(), format!("the {what} data is cut off"))
            }
            kind if error.to_string().contains("too much memory") => io::Error::new(
                kind,
                format!("the {what} data needs a window of more than 8 MiB; decompress it first: zstd -d --long=31"),
            ),
            kind => io::Error::new(kind, format!("bad {what} data: {error}")),
        })?;
        self.bytes += read as u64;
        if is_suspicious(compressed, self.bytes) {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                format!(
                    "the {what} data grows to more than {MAX_EXPANSION} times its size; decompress it first if you trust it"
                ),
            ));
        }
        Ok(read)
    }
}

impl<R> fmt::Debug for Plain<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Members of gzip behind each other, and zeros behind the last one, which tapes and some tools add.
struct Gzip<R> {
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    fn new(input: R) -> Self {
        Self { member: Some(GzDecoder::new(input)) }
    }

    fn input(&self) -> Option<&R> {
        self.member.as_ref().map(GzDecoder::get_ref)
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(to)?;
            if read > 0 || to.is_empty() {
                return Ok(read);
            }
            if !pass_zeros(member.get_mut())? {
                return Ok(0);
            }
            self.member = self.member.take().map(|member| GzDecoder::new(member.into_inner()));
        }
        Ok(0)
    }
}

/// Consumes zeros; whether there is anything behind them.
fn pass_zeros(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = input.fill_buf()?;
        let (zeros, length) = (bytes.iter().take_while(|byte| **byte == 0).count(), bytes.len());
        input.consume(zeros);
        if zeros < length || length == 0 {
            return Ok(length > 0);
        }
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    input: R,
    bytes: u64,
}

impl<R> Counted<R> {
    const fn new(input: R) -> Self {
        Self { input, bytes: 0 }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(to)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
