//! Descriptors in a table that other code changes.
//!
//! A library that keeps a descriptor in its program's table cannot know that the number still stands for it:
//! the program may have closed all numbers it does not know, and opened files of its own under them. Device,
//! inode and kind distinguish files and sockets. They do not distinguish the kernel's anonymous objects, such
//! as `eventfd`, `epoll` and `inotify`, which share one inode: those must not be kept like this.

use rustix::fs::FileType;
use std::os::fd::{AsFd, BorrowedFd};

/// Distinguishes a file or socket from another that has its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    kind: FileType,
}

impl Identity {
    /// The identity of the descriptor's current object. None if it is not open.
    #[must_use]
    pub fn of(object: &impl AsFd) -> Option<Self> {
        Self::of_descriptor(object.as_fd())
    }

    #[inline(never)]
    fn of_descriptor(object: BorrowedFd<'_>) -> Option<Self> {
        let stat = rustix::fs::fstat(object).ok()?;
        Some(Self { device: stat.st_dev, inode: stat.st_ino, kind: FileType::from_raw_mode(stat.st_mode) })
    }
}

/// Whether a number is open.
#[cfg(test)]
pub(crate) fn is_open(number: std::os::fd::RawFd) -> bool {
    std::fs::symlink_metadata(format!("/proc/thread-self/fd/{number}")).is_ok()
}

/// An object in a shared table: it is used and closed only as long as its number stands for it.
#[derive(Debug)]
pub struct Guarded<T: AsFd> {
    /// None while it is being dropped.
    object: Option<T>,
    identity: Identity,
}

impl<T: AsFd> Guarded<T> {
    /// Guards an object that was just made. None if it is closed already.
    pub fn new(object: T) -> Option<Self> {
        match Identity::of(&object) {
            Some(identity) => Some(Self { object: Some(object), identity }),
            None => {
                std::mem::forget(object);
                None
            }
        }
    }

    /// The object, if its number still stands for it.
    pub fn get(&self) -> Option<&T> {
        self.object.as_ref().filter(|object| Identity::of(*object) == Some(self.identity))
    }

    /// The identity of the object when it was made.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }
}

impl<T: AsFd> Drop for Guarded<T> {
    fn drop(&mut self) {
        let is_ours = self.get().is_some();
        let object = self.object.take();
        if !is_ours {
            // The number now belongs to another object, which must stay open.
            std::mem::forget(object);
        }
    }
}

/// For callers that only need the number: it may stand for another object.
impl<T: AsFd> AsFd for Guarded<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.object.as_ref().expect("it is there until it is dropped").as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use std::fs::File;
    use std::os::fd::{AsRawFd, OwnedFd, RawFd};

    #[test]
    fn what_took_the_number_is_neither_used_nor_closed() {
        let _alone = crate::guest::apart::COPIES.lock();
        let (channel, peer) = Channel::pair().unwrap();
        let guarded = Guarded::new(channel).unwrap();
        assert!(guarded.get().is_some());
        let number = guarded.as_fd().as_raw_fd();
        let file = File::open("/proc/self/exe").unwrap();
        // A program that closes all numbers and opens files of its own.
        let own = take_number(number, &file);
        assert!(guarded.get().is_none());
        assert!(matches!(peer.read(), Err(crate::Error::PeerClosed)), "the channel itself is closed");
        drop(guarded);
        assert_eq!(Identity::of(&own), Identity::of(&file), "it is still open");
    }

    #[test]
    fn what_has_its_number_still_is_closed_with_it() {
        let _alone = crate::guest::apart::COPIES.lock();
        let (channel, peer) = Channel::pair().unwrap();
        let guarded = Guarded::new(channel).unwrap();
        drop(guarded);
        assert!(matches!(peer.read(), Err(crate::Error::PeerClosed)));
    }

    /// Puts a file in the place of the object with this number.
    fn take_number(number: RawFd, file: &File) -> OwnedFd {
        crate::sys::duplicate_to(file, number)
    }
}
