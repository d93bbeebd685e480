//! Packets that are compressed within a packet, decompressed on demand.

use super::packets::Compressed;
use flate2::bufread::ZlibDecoder;
use std::io::{self, Read};

/// Largest window of zstd data, as a power of two: what every decoder should support.
const MAX_WINDOW_LOG: u32 = 23;

/// Sizes of compressed data before and after decompression.
#[derive(Clone, Copy, Default)]
pub(super) struct Growth {
    pub compressed: u64,
    pub plain: u64,
}

/// The plain bytes of compressed packets.
pub(super) struct Inflating<'a> {
    decoder: Decoder<'a>,
    /// Of packets before this one.
    before: Growth,
    compressed_bytes: usize,
    plain_bytes: u64,
}

enum Decoder<'a> {
    Zlib(ZlibDecoder<&'a [u8]>),
    Zstd(zstd::Decoder<'static, &'a [u8]>),
}

impl<'a> Inflating<'a> {
    /// # Errors
    /// The decoder cannot be made.
    pub fn new(compressed: Compressed<'a>, before: Growth) -> io::Result<Self> {
        let (decoder, bytes) = match compressed {
            Compressed::Zlib(bytes) => (Decoder::Zlib(ZlibDecoder::new(bytes)), bytes),
            Compressed::Zstd(bytes) => {
                let mut decoder = zstd::Decoder::with_buffer(bytes)?;
                decoder.window_log_max(MAX_WINDOW_LOG)?;
                (Decoder::Zstd(decoder), bytes)
            }
        };
        Ok(Self { decoder, before, compressed_bytes: bytes.len(), plain_bytes: 0 })
    }

    pub fn growth(&self) -> Growth {
        let left = match &self.decoder {
            Decoder::Zlib(decoder) => decoder.get_ref().len(),
            Decoder::Zstd(decoder) => decoder.get_ref().len(),
        };
        Growth {
            compressed: self.before.compressed + (self.compressed_bytes - left) as u64,
            plain: self.before.plain + self.plain_bytes,
        }
    }

    /// Whether it expands more than recorded data does.
    pub fn is_suspicious(&self) -> bool {
        let Growth { compressed, plain } = self.growth();
        trace_reader::is_suspicious(compressed, plain)
    }
}

impl Read for Inflating<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.decoder {
            Decoder::Zlib(decoder) => decoder.read(to)?,
            Decoder::Zstd(decoder) => decoder.read(to)?,
        };
        self.plain_bytes += read as u64;
        if self.is_suspicious() { Err(io::ErrorKind::InvalidData.into()) } else { Ok(read) }
    }
}
