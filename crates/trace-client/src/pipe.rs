//! Pipes, connections and terminals: what takes nothing while its reader does not.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// What an archive is written into that is no file of its own: standard output, or a connection.
#[derive(Debug)]
pub struct Pipe(OwnedFd);

impl Pipe {
    /// Takes the end that is written to.
    #[must_use]
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Another descriptor of it.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// It may wait for its reader: it is not a file after all.
    pub(crate) fn has_reader(&self) -> bool {
        let found = rustix::fs::fstat(&self.0);
        found.is_ok_and(|found| !rustix::fs::FileType::from_raw_mode(found.st_mode).is_file())
    }

    /// Its reader is gone.
    pub(crate) fn is_closed(&self) -> bool {
        let mut polled = [PollFd::new(&self.0, PollFlags::empty())];
        let found = poll(&mut polled, Some(&Timespec::default())).map(|_| polled[0].revents());
        found.is_ok_and(|found| found.intersects(PollFlags::ERR | PollFlags::HUP))
    }

    /// Bytes that its reader has not taken.
    pub(crate) fn unread(&self) -> u64 {
        zx_sim::unread(&self.0)
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write(self.as_fd(), bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes some bytes, without a buffer. Another process that shares the descriptor may have made it
/// non-blocking: then this blocks in `poll`.
///
/// # Errors
/// The operating system's.
pub fn write(output: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match rustix::io::write(output, bytes) {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                // An error shows in the next write.
                let _ = poll(&mut [PollFd::new(&output, PollFlags::OUT)], None);
            }
            written => return Ok(written?),
        }
    }
}
