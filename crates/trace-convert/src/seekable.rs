//! Compression in independent frames, any of which can be read without the others: zstd's seekable format.
//!
//! ```text
//! frame │ frame │ … │ frame │ seek table, in a frame that decoders skip
//!                           ├ u32 0x184D2A5E, u32 bytes of what follows
//!                           ├ of each frame: u32 compressed bytes, u32 bytes of its contents
//!                           └ u32 number of frames, u8 0, u32 0x8F92EAB1
//! ```
//!
//! Every decoder of zstd reads the whole as one stream. A file that was cut off has no table and perhaps an
//! incomplete last frame; everything before the last [flush](Writer::flush) can still be read.

use std::fmt;
use std::io::{self, Write};
use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

/// Most bytes of a frame's contents.
pub const FRAME_BYTES: usize = 1 << 20;
/// The level for data that is compressed as it comes: the fastest one that finds repetitions of records.
pub const FAST_LEVEL: i32 = 1;
/// The level for other data.
pub const DEFAULT_LEVEL: i32 = 3;
/// The window, as a power of two: a whole frame.
const WINDOW_LOG: u32 = FRAME_BYTES.ilog2();
/// How much of the compressed data is written at once. A block has at most 128 KiB.
const PIECE_BYTES: usize = 132 << 10;
/// Begins the frame with the seek table.
const SKIPPABLE_MAGIC: u32 = 0x184D_2A5E;
/// Ends it.
const SEEKABLE_MAGIC: u32 = 0x8F92_EAB1;
/// The descriptor: the table has no checksums, since frames have their own.
const DESCRIPTOR: u8 = 0;
const FOOTER_BYTES: usize = 9;
/// The format allows no more.
const MAX_FRAMES: usize = 0x800_0000;

/// Compresses what is written into it. Without [`Writer::finish`], the output is incomplete.
pub struct Writer<W> {
    output: W,
    encoder: Encoder<'static>,
    /// The last compressed bytes, which are in the output.
    piece: Vec<u8>,
    /// The entries of the table.
    frames: Vec<[u32; 2]>,
    /// Compressed bytes of the current frame that are in the output.
    compressed: usize,
    /// Bytes that the current frame has taken.
    taken: usize,
    /// Some of them are not in the output.
    has_rest: bool,
    /// Bytes that are in the output.
    written: u64,
}

impl<W> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("written", &self.written).finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Compresses with a level of zstd's, from its beginning on.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(output: W, level: i32) -> io::Result<Self> {
        let mut encoder = Encoder::new(level)?;
        encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
        encoder.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Self {
            output,
            encoder,
            piece: Vec::with_capacity(PIECE_BYTES),
            frames: Vec::new(),
            compressed: 0,
            taken: 0,
            has_rest: false,
            written: 0,
        })
    }

    /// How many bytes the current frame has room for; a frame that is full ends.
    #[must_use]
    pub fn room(&self) -> usize {
        FRAME_BYTES - self.taken
    }

    /// Bytes that are in the output.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The output.
    pub fn output(&mut self) -> &mut W {
        &mut self.output
    }

    /// One step of the encoder, whose result is written; what it returned.
    fn step(
        &mut self,
        make: impl FnOnce(&mut Encoder<'static>, &mut OutBuffer<'_, Vec<u8>>) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.piece.clear();
        let result = make(&mut self.encoder, &mut OutBuffer::around(&mut self.piece))?;
        if !self.piece.is_empty() {
            self.output.write_all(&self.piece)?;
            self.compressed += self.piece.len();
            self.written += self.piece.len() as u64;
        }
        Ok(result)
    }

    /// Ends the current frame, unless it is empty.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end_frame(&mut self) -> io::Result<()> {
        if self.taken == 0 { Ok(()) } else { self.close_frame() }
    }

    fn close_frame(&mut self) -> io::Result<()> {
        while self.step(|encoder, out| encoder.finish(out, true))? > 0 {}
        self.has_rest = false;
        let size = |bytes: usize| u32::try_from(bytes).map_err(io::Error::other);
        self.frames.push([size(self.compressed)?, size(self.taken)?]);
        (self.compressed, self.taken) = (0, 0);
        self.encoder.reinit()
    }

    /// Writes the end of the last frame, and the table. Nothing comes behind that.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end(&mut self) -> io::Result<()> {
        // What is empty, too, begins as compressed data.
        if self.taken > 0 || self.frames.is_empty() {
            self.close_frame()?;
        }
        // A longer one is not allowed; without it the frames are a stream like any other.
        if self.frames.len() <= MAX_FRAMES {
            let table = self.table();
            self.output.write_all(&table)?;
        }
        self.output.flush()
    }

    /// The same; the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.end()?;
        Ok(self.output)
    }

    fn table(&self) -> Vec<u8> {
        let entries = self.frames.as_flattened();
        // No more than the format allows.
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let contents = number(size_of_val(entries) + FOOTER_BYTES);
        let mut words = vec![SKIPPABLE_MAGIC, contents];
        words.extend_from_slice(entries);
        words.push(number(self.frames.len()));
        let mut table: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        table.push(DESCRIPTOR);
        table.extend_from_slice(&SEEKABLE_MAGIC.to_le_bytes());
        table
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(self.room())];
        let mut input = InBuffer::around(part);
        while input.pos() < part.len() {
            self.step(|encoder, out| encoder.run(&mut input, out))?;
        }
        self.taken += part.len();
        self.has_rest |= !part.is_empty();
        if self.room() == 0 {
            self.end_frame()?;
        }
        Ok(part.len())
    }

    /// Has everything that was written so far be readable from the output. Costs some bytes.
    fn flush(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_rest) {
            while self.step(|encoder, out| encoder.flush(out))? > 0 {}
        }
        self.output.flush()
    }
}

#[cfg(test)]
mod tests;
