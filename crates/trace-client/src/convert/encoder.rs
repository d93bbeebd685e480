//! Compression of output.

use crate::compressor::{Compressor, Manner, Place};
use crate::format::Compression;
use crossbeam_channel::{Receiver, unbounded};
use std::io::{self, Write};

/// How much is handed over to the thread that compresses.
const CHUNK_BYTES: usize = 256 << 10;

/// Writes through a compressor, or none.
pub struct Encoder<'a>(Kind<'a>);

enum Kind<'a> {
    Plain(&'a mut dyn Write),
    Gzip(flate2::write::GzEncoder<&'a mut dyn Write>),
    Zstd(Zstd<'a>),
}

/// Has a second thread compress.
struct Zstd<'a> {
    compressor: Compressor,
    chunk: Vec<u8>,
    compressed: Receiver<Vec<u8>>,
    output: &'a mut dyn Write,
}

impl<'a> Zstd<'a> {
    fn new(manner: Manner, output: &'a mut dyn Write) -> io::Result<Self> {
        let (back, compressed) = unbounded();
        let compressor = Compressor::start(Place::Back(back), manner, false)?;
        Ok(Self { compressor, chunk: Vec::new(), compressed, output })
    }

    fn push(&mut self) -> io::Result<()> {
        self.compressor.push(&mut self.chunk)?;
        self.compressed.try_iter().try_for_each(|piece| self.output.write_all(&piece))
    }

    fn finish(mut self) -> io::Result<()> {
        self.push()?;
        self.compressor.finish()?;
        self.compressed.try_iter().try_for_each(|piece| self.output.write_all(&piece))?;
        self.output.flush()
    }
}

impl<'a> Encoder<'a> {
    /// Begins to write into an output.
    ///
    /// # Errors
    /// The process is out of threads or descriptors.
    pub fn new(compression: Compression, manner: Manner, output: &'a mut dyn Write) -> io::Result<Self> {
        Ok(Self(match compression {
            Compression::None => Kind::Plain(output),
            Compression::Gzip => {
                Kind::Gzip(flate2::write::GzEncoder::new(output, flate2::Compression::default()))
            }
            Compression::Zstd => Kind::Zstd(Zstd::new(manner, output)?),
        }))
    }

    /// Ends what is compressed.
    ///
    /// # Errors
    /// The output's.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::Plain(output) => output.flush(),
            Kind::Gzip(encoder) => encoder.finish()?.flush(),
            Kind::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl Write for Encoder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Plain(output) => output.write(bytes),
            Kind::Gzip(encoder) => encoder.write(bytes),
            Kind::Zstd(encoder) => {
                // What is too long for a chunk comes again.
                let part = bytes.len().min(CHUNK_BYTES - encoder.chunk.len());
                encoder.chunk.extend_from_slice(&bytes[..part]);
                if encoder.chunk.len() == CHUNK_BYTES {
                    encoder.push()?;
                }
                Ok(part)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Plain(output) => output.flush(),
            Kind::Gzip(encoder) => encoder.flush(),
            // Only the end of the output is waited for.
            Kind::Zstd(encoder) => encoder.output.flush(),
        }
    }
}
