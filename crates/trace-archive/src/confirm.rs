//! Confirms to the manager how much of an archive is written.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use zx_sim::{Error, Socket};

/// Checks that a file still has what was written into it: another process may have deleted or truncated it.
///
/// # Errors
/// The file was deleted or truncated; the error says which.
pub fn check_file(file: &File, written: u64) -> io::Result<()> {
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.nlink() == 0 {
        return Err(io::Error::other("it was deleted while it was written"));
    }
    if metadata.is_file() && metadata.len() < written {
        return Err(io::Error::other("it was made shorter while it was written"));
    }
    Ok(())
}

/// The current name of an open file, as far as this process can see it.
#[must_use]
pub fn name_of(file: &File) -> Option<PathBuf> {
    // A thread may have descriptors of its own.
    std::fs::read_link(format!("/proc/thread-self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))).ok()
}

/// Confirms how far the file is written, in the other direction of the socket that the archive comes through.
//= docs/protocol.md#confirmations
#[derive(Debug, Default)]
pub struct Confirmer {
    written: u64,
    reported: u64,
    /// The bytes of the current count that the socket has not accepted yet.
    rest: Vec<u8>,
}

impl Confirmer {
    /// Confirms that this many bytes of the archive are written, unless that was confirmed before. Never
    /// blocks: returns false if the socket is full; the caller tries again when it is writable.
    pub fn confirm(&mut self, socket: &Socket, written: u64) -> bool {
        self.written = written;
        while !self.is_reported() {
            if self.rest.is_empty() {
                self.reported = self.written;
                self.rest = self.written.to_le_bytes().to_vec();
            }
            match socket.write(&self.rest) {
                Ok(sent) => drop(self.rest.drain(..sent)),
                Err(Error::ShouldWait) => return false,
                // A closed socket is noticed by its reader.
                Err(_) => return true,
            }
        }
        true
    }

    /// Writes a first count, of 0.
    pub fn accept(&mut self, socket: &Socket) {
        self.rest = 0_u64.to_le_bytes().to_vec();
        self.confirm(socket, 0);
    }

    /// The socket has taken the last count.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.rest.is_empty() && self.reported == self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_count_is_reported_once_and_whole() {
        let (ours, theirs) = Socket::pair().unwrap();
        let mut confirmer = Confirmer::default();
        for written in [8, 8, 300, 300] {
            assert!(confirmer.confirm(&ours, written));
        }
        let mut bytes = [0; 64];
        assert_eq!(theirs.read(&mut bytes).unwrap(), 16);
        assert_eq!(bytes[..16], [8_u64.to_le_bytes(), 300_u64.to_le_bytes()].concat());
    }

    //= docs/protocol.md#confirmations
    #[test]
    fn a_manager_that_does_not_read_is_not_waited_for() {
        let (ours, theirs) = Socket::pair().unwrap();
        let mut confirmer = Confirmer::default();
        let full = (1..).find(|written| !confirmer.confirm(&ours, *written)).unwrap();
        assert!(!confirmer.confirm(&ours, full + 1000));
        let mut last = 0;
        let mut bytes = vec![0; 8 << 20];
        while let Ok(length) = theirs.read(&mut bytes) {
            last = u64::from_le_bytes(*bytes[..length].last_chunk().unwrap());
            assert!(confirmer.confirm(&ours, full + 1000));
        }
        assert_eq!(last, full + 1000);
    }
}
