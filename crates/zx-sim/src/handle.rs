//! A descriptor of unknown kind, as it comes out of a message.

use rustix::fs::{AtFlags, FileType, SealFlags, StatxFlags};
use rustix::net::{AddressFamily, sockopt};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

/// A handle that was not looked at yet. Objects take it apart again and check what it is.
///
/// Dropped, it is closed without waiting: the file system that a file is of has a say in its closing, and may
/// be a program of the peer's.
#[derive(Debug)]
pub struct Handle(Option<OwnedFd>);

impl Handle {
    /// Wraps any descriptor.
    #[must_use]
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(Some(descriptor))
    }

    /// The descriptor. Closing it may take as long as a peer likes, unless it is known what it is.
    #[must_use]
    pub fn into_fd(mut self) -> OwnedFd {
        self.0.take().expect(HELD)
    }

    /// Whether it is a regular file. Of its file system nothing is asked that it would have to answer.
    #[must_use]
    pub fn is_file(&self) -> bool {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        rustix::fs::statx(self, c"", flags, StatxFlags::TYPE)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile)
    }

    /// Whether it is memory without a name that nobody can make shorter: reading it waits for nobody.
    #[must_use]
    pub fn is_sealed_memory(&self) -> bool {
        rustix::fs::fcntl_get_seals(self).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
    }
}

const HELD: &str = "nothing but the end of a handle takes its descriptor";

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_ref().expect(HELD).as_fd()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(descriptor) = self.0.take() {
            close(descriptor);
        }
    }
}

/// Closes a descriptor that came from somebody else: here where that waits for nobody, and in a thread for
/// that otherwise.
fn close(descriptor: OwnedFd) {
    static CLOSER: OnceLock<Option<Sender<OwnedFd>>> = OnceLock::new();

    let is_socket = sockopt::socket_domain(&descriptor).is_ok_and(|domain| domain == AddressFamily::UNIX);
    // Of memory without a name alone there are seals to be had.
    if is_socket || rustix::fs::fcntl_get_seals(&descriptor).is_ok() {
        return;
    }
    let closer = CLOSER.get_or_init(|| {
        let (closer, descriptors) = channel::<OwnedFd>();
        let run = move || descriptors.into_iter().for_each(drop);
        std::thread::Builder::new().name("zx-closer".to_owned()).spawn(run).ok().map(|_| closer)
    });
    if let Some(closer) = closer {
        // The thread lives as long as the process; in a child by fork there is none, and what was sent stays
        // open until the child ends.
        let _ = closer.send(descriptor);
    }
}
