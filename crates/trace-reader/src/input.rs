//! Where bytes come from: memory, which is read in place, or a stream, which is buffered.

use std::io::{self, ErrorKind, Read};

/// A stream is read in pieces of at most this size, and at first of the smaller one, so that a small input
/// takes little memory.
const BUFFER_BYTES: usize = 512 << 10;
const FIRST_BUFFER_BYTES: usize = 16 << 10;

/// A source of bytes that can be looked at before they are taken.
pub trait Input {
    /// Has at least so many bytes at hand; fewer only at the end, or in front of an error.
    fn fill(&mut self, bytes: usize);

    /// What is at hand.
    fn at_hand(&self) -> &[u8];

    /// Takes bytes that are at hand.
    fn take(&mut self, bytes: usize);

    /// Nothing comes behind what is at hand.
    fn is_at_end(&self) -> bool;

    /// Why nothing comes any more, if that is not the end; once.
    fn take_error(&mut self) -> Option<io::Error>;
}

/// Bytes in memory.
#[derive(Debug)]
pub struct Slice<'a>(pub(crate) &'a [u8]);

impl<'a> Slice<'a> {
    /// As [`Input::at_hand`], for as long as the bytes live.
    #[inline]
    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl Input for Slice<'_> {
    #[inline]
    fn fill(&mut self, _: usize) {}

    #[inline]
    fn at_hand(&self) -> &[u8] {
        self.0
    }

    #[inline]
    fn take(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    #[inline]
    fn is_at_end(&self) -> bool {
        true
    }

    fn take_error(&mut self) -> Option<io::Error> {
        None
    }
}

/// Bytes that are read as they are needed. The reader needs no buffer of its own.
#[derive(Debug)]
pub struct Stream<R> {
    input: R,
    buffer: Vec<u8>,
    /// The first byte in the buffer that has not been taken.
    start: usize,
    /// Behind the last byte in the buffer.
    end: usize,
    is_at_end: bool,
    error: Option<io::Error>,
}

impl<R> Stream<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), start: 0, end: 0, is_at_end: false, error: None }
    }
}

impl<R: Read> Stream<R> {
    #[cold]
    fn read(&mut self, bytes: usize) {
        while self.end - self.start < bytes && !self.is_at_end {
            if self.buffer.len() - self.start < bytes && self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.end == self.buffer.len() {
                // What has been read so far was full, so there may be more.
                let wanted = bytes.max(BUFFER_BYTES);
                self.buffer.resize((2 * self.buffer.len()).clamp(FIRST_BUFFER_BYTES, wanted), 0);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.input.read(room) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => self.end += read.min(room.len()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error);
                    self.is_at_end = true;
                }
            }
        }
    }
}

impl<R: Read> Input for Stream<R> {
    #[inline]
    fn fill(&mut self, bytes: usize) {
        if self.end - self.start < bytes && !self.is_at_end {
            self.read(bytes);
        }
    }

    #[inline]
    fn at_hand(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    #[inline]
    fn take(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    #[inline]
    fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}
