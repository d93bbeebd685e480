//! Bytes that are kept in memory up to a limit, and in a temporary file beyond it.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What is kept in memory; the rest is in a file.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all columns of a database.
    pub columns: usize,
    /// How many texts may have numbers.
    pub texts: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { columns: 64 << 20, texts: 1 << 18 }
    }
}

/// Where a piece is.
#[derive(Debug)]
pub enum Piece {
    /// In memory.
    Held(Box<[u8]>),
    /// In the file.
    Stored {
        /// Its offset there.
        at: u64,
        /// Its length in bytes.
        length: usize,
    },
}

/// The pieces of all columns.
#[derive(Debug, Default)]
pub struct Spill {
    pub limits: Limits,
    held: usize,
    file: Option<File>,
    end: u64,
}

impl Spill {
    /// Nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Whether there is room in memory for something that its owner keeps.
    pub fn has_room(&mut self, bytes: usize) -> bool {
        let is_room = self.held + bytes <= self.limits.columns;
        self.held += if is_room { bytes } else { 0 };
        is_room
    }

    /// Keeps a piece.
    pub fn keep(&mut self, bytes: Vec<u8>) -> io::Result<Piece> {
        if self.has_room(bytes.len()) {
            return Ok(Piece::Held(bytes.into()));
        }
        self.store(&bytes)
    }

    /// Writes a piece to the file.
    pub fn store(&mut self, bytes: &[u8]) -> io::Result<Piece> {
        let file = match &mut self.file {
            Some(file) => file,
            file => file.insert(tempfile::tempfile()?),
        };
        let (at, length) = (self.end, bytes.len());
        file.write_all_at(bytes, at)?;
        self.end += length as u64;
        Ok(Piece::Stored { at, length })
    }

    /// A part of a piece.
    pub fn read<'a>(&self, piece: &'a Piece, from: usize, length: usize) -> io::Result<Cow<'a, [u8]>> {
        let beyond = || io::Error::other("a column has no such place");
        match piece {
            Piece::Held(bytes) => {
                let part = bytes.get(from..).and_then(|rest| rest.get(..length));
                part.map(Cow::Borrowed).ok_or_else(beyond)
            }
            Piece::Stored { at, length: all } => {
                if from + length > *all {
                    return Err(beyond());
                }
                let mut part = vec![0; length];
                self.file.as_ref().ok_or_else(beyond)?.read_exact_at(&mut part, at + from as u64)?;
                Ok(Cow::Owned(part))
            }
        }
    }

    /// All of a piece.
    pub fn read_all<'a>(&self, piece: &'a Piece) -> io::Result<Cow<'a, [u8]>> {
        let length = match piece {
            Piece::Held(bytes) => bytes.len(),
            Piece::Stored { length, .. } => *length,
        };
        self.read(piece, 0, length)
    }
}
