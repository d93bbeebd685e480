//! Copies of inputs that are read again.

use crate::shell::exit::Failure;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A file for what has to be read again.
pub fn unlinked_file() -> Result<File, Failure> {
    tempfile::tempfile().map_err(|error| {
        let directory = std::env::temp_dir();
        Failure::new(format!("cannot create a file in {} ($TMPDIR): {error}", directory.display()))
    })
}

/// The error of a copy, which is none of its input.
fn not_copied(error: io::Error) -> io::Error {
    let directory = std::env::temp_dir();
    io::Error::new(error.kind(), format!("no copy in {} ($TMPDIR): {error}", directory.display()))
}

/// An input that is copied while it is read.
pub struct Copying {
    input: Box<dyn Read>,
    pub copy: File,
    /// Why it could not be read or copied any further.
    pub end: Option<io::Error>,
}

impl Read for Copying {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.end.is_some() {
            return Ok(0);
        }
        let read = self.input.read(bytes).and_then(|length| {
            self.copy.write_all(&bytes[..length]).map_err(not_copied)?;
            Ok(length)
        });
        read.or_else(|error| {
            if error.kind() == io::ErrorKind::Interrupted {
                return Err(error);
            }
            self.end = Some(error);
            Ok(0)
        })
    }
}

impl Copying {
    pub fn of(input: Box<dyn Read>) -> Result<Self, Failure> {
        Ok(Self { input, copy: unlinked_file()?, end: None })
    }

    /// Reads the same again, with the same end.
    pub fn again(mut self) -> io::Result<impl Read> {
        self.copy.rewind()?;
        Ok(io::BufReader::new(self.copy).chain(Failing(self.end)))
    }
}

/// Nothing, or an error.
pub struct Failing(pub Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// An error that is met each time that a copy is read.
#[derive(Debug)]
pub struct AgainError(pub Arc<io::Error>);

impl std::fmt::Display for AgainError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for AgainError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

/// A file that is read from a place of its own, so that others can read it at the same time.
pub struct Positioned {
    pub file: Arc<File>,
    pub at: u64,
}

impl Read for Positioned {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(bytes, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}
