//! Forked children: what they must not keep of their parent's.
//!
//! A child has copies of all descriptors in its program's table. Those by which a peer sees that the parent
//! is gone, or that wake one of its threads, are closed in the child.
//!
//! Invariant **F1**: the child's handler runs before any other code of the child, which has no other thread
//! yet; it only calls functions that may be called there.
#![allow(unsafe_code)]

use crate::guest::identity::Identity;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

const FREE: i32 = 0;
/// An entry that a thread fills.
const TAKEN: i32 = -1;

/// A descriptor that children close, and the file that distinguishes it from a reuse of its number.
#[derive(Debug, Default)]
struct ClosedDescriptor {
    /// The descriptor's number plus one: an entry of zeros is free.
    behind: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

static DESCRIPTORS: [ClosedDescriptor; 64] = [const {
    ClosedDescriptor { behind: AtomicI32::new(FREE), device: AtomicU64::new(0), inode: AtomicU64::new(0) }
}; 64];

/// The process that this one was forked from; 0 where it was started as a program of its own, or where its
/// parent has no number in its pid namespace.
static PARENT: AtomicU32 = AtomicU32::new(0);

/// The process that this one was forked from, since [`install`].
#[must_use]
pub fn parent() -> Option<u64> {
    let parent = PARENT.load(Ordering::Relaxed);
    (parent != 0).then_some(u64::from(parent))
}

/// Forks between the program that was started and this process, since [`install`]. A child in another pid
/// namespace may have its parent's number.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Distinguishes this process from the one that it was forked from, since [`install`].
#[must_use]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A descriptor that forked children close, for as long as this lives. Where there is no room for more of
/// them, children keep it. None where it was closed before.
#[derive(Debug)]
pub struct ClosedInChildren(Option<&'static ClosedDescriptor>);

impl ClosedInChildren {
    /// To be dropped before the descriptor is closed.
    #[must_use]
    pub fn new(object: &impl AsFd) -> Self {
        install();
        Self::of(object.as_fd())
    }

    /// Whether it still stands for what it did.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.is_some_and(|place| {
            let (device, inode) = (place.device.load(Ordering::Relaxed), place.inode.load(Ordering::Relaxed));
            is_it(place.behind.load(Ordering::Acquire) - 1, device, inode)
        })
    }

    #[inline(never)]
    fn of(object: BorrowedFd<'_>) -> Self {
        let Some(identity) = Identity::of(&object) else {
            return Self(None);
        };
        let is_free = |place: &&ClosedDescriptor| {
            place.behind.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        // The compiler would write out all of its turns.
        let place = core::hint::black_box(&DESCRIPTORS[..]).iter().find(is_free);
        let place = place.unwrap_or_else(|| Box::leak(Box::default()));
        place.device.store(identity.device, Ordering::Relaxed);
        place.inode.store(identity.inode, Ordering::Relaxed);
        // Release: a child that loads the number also sees the rest.
        place.behind.store(object.as_raw_fd() + 1, Ordering::Release);
        Self(Some(place))
    }
}

impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.behind.store(FREE, Ordering::Release);
        }
    }
}

/// From now on each forked child knows its parent, and closes what is not its own.
pub fn install() {
    // No lock, which a child could find taken: to have two of them does no harm.
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    if !IS_INSTALLED.load(Ordering::Relaxed) {
        // SAFETY: the handler does what F1 says, and never goes away.
        unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
        IS_INSTALLED.store(true, Ordering::Relaxed);
    }
}

extern "C" fn after_fork_in_child() {
    // Where the parent has died already, it is the process that took its place.
    // SAFETY: a number (F1).
    let parent = unsafe { libc::getppid() };
    PARENT.store(u32::try_from(parent).unwrap_or(0), Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for place in &DESCRIPTORS {
        let behind = place.behind.swap(FREE, Ordering::Acquire);
        if behind > 0 {
            close_if_it_is(
                behind - 1,
                place.device.load(Ordering::Relaxed),
                place.inode.load(Ordering::Relaxed),
            );
        }
    }
}

/// Closes a descriptor, unless the program has given its number to something else.
fn close_if_it_is(number: i32, device: u64, inode: u64) {
    if is_it(number, device, inode) {
        // SAFETY: a descriptor of the parent's library, whose thread does not exist here (F1).
        unsafe { libc::close(number) };
    }
}

fn is_it(number: i32, device: u64, inode: u64) -> bool {
    // SAFETY: a structure of numbers, for which zeros are values.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: the call fills the structure (F1).
    let is_open = unsafe { libc::fstat(number, &raw mut stat) } == 0;
    is_open && (stat.st_dev, stat.st_ino) == (device, inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_no_room_a_descriptor_is_known_too() {
        let _alone = crate::guest::apart::COPIES.lock();
        let files: Vec<_> = (0..70).map(|_| std::io::pipe().unwrap().0).collect();
        let guards: Vec<_> = files.iter().map(ClosedInChildren::new).collect();
        assert!(guards.iter().all(ClosedInChildren::is_open));
        drop(files);
        assert!(!guards.iter().any(ClosedInChildren::is_open));
    }
}
