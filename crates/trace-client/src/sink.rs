//! Where the archive of a session goes.

use crate::lending::Lending;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use trace_archive::confirm::check_file;

/// Takes the archive of a [`Session`](crate::session::Session) as it arrives.
pub trait Sink {
    /// Takes the next bytes, all of them.
    ///
    /// # Errors
    /// They cannot be written: the session ends, and the programs keep what was not confirmed.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The file, if the manager may write it, which is faster.
    fn lend(&mut self) -> Option<(BorrowedFd<'_>, Lending)> {
        None
    }

    /// Checks that what was written is still there. `written` is the number of bytes that have arrived.
    ///
    /// # Errors
    /// Another process has deleted the file, or made it shorter.
    fn check(&mut self, _written: u64) -> io::Result<()> {
        Ok(())
    }

    /// Bytes that a reader has not taken, or that are not written for another reason: they are not confirmed
    /// to the manager.
    fn unread(&self) -> u64 {
        0
    }

    /// Nothing reads what is written.
    fn is_closed(&self) -> bool {
        false
    }

    /// Reports what has failed in the background since the last call.
    ///
    /// # Errors
    /// What was taken could not be written.
    fn take_news(&self) -> io::Result<()> {
        Ok(())
    }

    /// All of the archive was taken.
    ///
    /// # Errors
    /// Some of it cannot be written.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file, which the manager may write.
#[derive(Debug)]
pub struct FileSink {
    file: File,
    lending: Lending,
}

impl FileSink {
    /// An empty file, open for reading and writing.
    #[must_use]
    pub fn new(file: File) -> Self {
        Self { file, lending: Lending::default() }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn file_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Sink for FileSink {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn lend(&mut self) -> Option<(BorrowedFd<'_>, Lending)> {
        Some((self.file.as_fd(), self.lending.clone()))
    }

    fn check(&mut self, written: u64) -> io::Result<()> {
        check_file(&self.file, written)
    }
}

/// Anything that can be written to. What it has taken counts as written.
pub struct WriterSink<W>(pub W);

impl<W: Write> Sink for WriterSink<W> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
