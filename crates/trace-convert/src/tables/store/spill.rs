//! Bytes that are kept in memory up to a limit, and in a temporary file beyond it.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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

/// Names the file, which has no name of its own.
fn failed(error: io::Error) -> io::Error {
    let directory = std::env::temp_dir();
    io::Error::new(error.kind(), format!("a temporary file in {}: {error}", directory.display()))
}

/// Where a piece is.
#[derive(Debug)]
pub enum Piece {
    /// In memory.
    Held(Box<[u8]>),
    /// In the file.
    Stored {
        /// The file.
        file: Arc<File>,
        /// Its offset there.
        at: u64,
        /// Its length in bytes.
        length: usize,
    },
}

/// The pieces of all columns. Clones share the memory that may be used, and the file.
#[derive(Clone, Debug, Default)]
pub struct Spill {
    pub limits: Limits,
    shared: Arc<SharedSpill>,
}

#[derive(Debug, Default)]
struct SharedSpill {
    held: AtomicUsize,
    file: Mutex<Option<Arc<File>>>,
    end: AtomicU64,
}

impl Spill {
    /// Nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, shared: Arc::default() }
    }

    /// Whether there is room in memory for something that its owner keeps.
    pub fn has_room(&self, bytes: usize) -> bool {
        let add = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.limits.columns);
        // Relaxed: the count orders nothing else.
        self.shared.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Something for which there was room is not kept any more.
    pub fn release(&self, bytes: usize) {
        self.shared.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Keeps a piece.
    pub fn keep(&self, bytes: Vec<u8>) -> io::Result<Piece> {
        if self.has_room(bytes.len()) {
            return Ok(Piece::Held(bytes.into()));
        }
        self.store(&bytes)
    }

    /// Writes a piece to the file.
    pub fn store(&self, bytes: &[u8]) -> io::Result<Piece> {
        let file = {
            let mut file = self.shared.file.lock().unwrap_or_else(PoisonError::into_inner);
            match &*file {
                Some(file) => file.clone(),
                None => file.insert(Arc::new(tempfile::tempfile().map_err(failed)?)).clone(),
            }
        };
        let length = bytes.len();
        let at = self.shared.end.fetch_add(length as u64, Ordering::Relaxed);
        file.write_all_at(bytes, at).map_err(failed)?;
        Ok(Piece::Stored { file, at, length })
    }

    /// A part of a piece.
    pub fn read<'a>(&self, piece: &'a Piece, from: usize, length: usize) -> io::Result<Cow<'a, [u8]>> {
        let beyond = || io::Error::other("a column has no such place");
        match piece {
            Piece::Held(bytes) => {
                let part = bytes.get(from..).and_then(|rest| rest.get(..length));
                part.map(Cow::Borrowed).ok_or_else(beyond)
            }
            Piece::Stored { file, at, length: all } => {
                if from + length > *all {
                    return Err(beyond());
                }
                let mut part = vec![0; length];
                file.read_exact_at(&mut part, at + from as u64)?;
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
