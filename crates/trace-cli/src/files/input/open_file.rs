//! A file that is read up to where its contents cannot be read any further.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;

/// An open file, whose contents may have an end too early.
pub struct OpenFile {
    pub file: File,
    /// The error behind its contents.
    pub(super) end: Option<io::Error>,
}

impl From<File> for OpenFile {
    fn from(file: File) -> Self {
        Self { file, end: None }
    }
}

impl Deref for OpenFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Read for OpenFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.file.read(bytes)? {
            0 if !bytes.is_empty() => self.end.take().map_or(Ok(0), Err),
            length => Ok(length),
        }
    }
}
