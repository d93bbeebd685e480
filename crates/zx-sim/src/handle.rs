//! A descriptor of unknown kind, as it comes out of a message.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A handle that was not looked at yet. Objects take it apart again and check what it is.
#[derive(Debug)]
pub struct Handle(OwnedFd);

impl Handle {
    /// Wraps any descriptor.
    #[must_use]
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// The descriptor.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
