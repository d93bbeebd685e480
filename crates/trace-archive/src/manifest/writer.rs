//! Appends lines to a manifest.

use super::{Entry, FILE, Manifest};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The file that replaces it.
const NEW_FILE: &str = "manifest.new";
/// A manifest that has grown by this much is rewritten, without lines that later ones have made superfluous.
pub(super) const GROWTH_BYTES: u64 = 4 << 20;

/// Appends to a manifest.
#[derive(Debug)]
pub struct Writer {
    file: File,
    pub(super) bytes: u64,
    /// The size at which it is rewritten.
    pub(super) limit: u64,
}

impl Writer {
    /// Begins the manifest of a session, or goes on with it.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(no_follow());
        let file = options.open(directory.join(FILE))?;
        let bytes = file.metadata()?.len();
        let mut writer = Self { file, bytes, limit: bytes + GROWTH_BYTES };
        if bytes > 0 {
            // A killed process may have left an unfinished line before.
            writer.write(b"\n")?;
        }
        Ok(writer)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&mut self, entry: &Entry) -> io::Result<()> {
        self.write(&line(entry)?)
    }

    /// Rewrites the manifest of this directory if it has grown large. A process that is killed meanwhile
    /// leaves the old file or the new one.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn shorten(&mut self, directory: &Path) -> io::Result<()> {
        if self.bytes < self.limit {
            return Ok(());
        }
        let manifest = Manifest::read(directory).map_err(io::Error::other)?;
        let lines: Result<Vec<Vec<u8>>, _> = manifest.entries().iter().map(line).collect();
        let new = directory.join(NEW_FILE);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(no_follow());
        options.open(&new)?.write_all(&lines?.concat())?;
        std::fs::rename(&new, directory.join(FILE))?;
        *self = Self::open(directory)?;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

fn line(entry: &Entry) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    Ok(line)
}

fn no_follow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}
