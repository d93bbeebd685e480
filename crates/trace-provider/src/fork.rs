//! Forked children: what they must not keep of their parent's, and how they become providers of their own.
//!
//! Invariants:
//!
//! * **F1** The child's handler runs before any other code of the child, which has no other thread yet; it
//!   only calls functions that may be called there.
//! * **F2** [`NAME`] is null or was leaked from a box.
#![allow(unsafe_code)]

use crate::provider::TraceProvider;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use trace_engine::engine;

const NONE: i32 = -1;

/// Descriptors of the provider's thread that its manager watches.
static WATCHED: [AtomicI32; 16] = [const { AtomicI32::new(NONE) }; 16];
/// What the provider is called that was registered last.
static NAME: AtomicPtr<String> = AtomicPtr::new(core::ptr::null_mut());

/// True while a fork is under way, and while there are descriptors that are not in [`WATCHED`] yet. A flag to
/// spin on: a lock with a queue could be left in any state in a child.
static IS_HELD: AtomicBool = AtomicBool::new(false);

fn hold() {
    while IS_HELD.swap(true, Ordering::Acquire) {
        std::thread::yield_now();
    }
}

extern "C" fn before_fork() {
    hold();
}

extern "C" fn after_fork_in_parent() {
    release();
}

fn release() {
    IS_HELD.store(false, Ordering::Release);
}

/// Does something in which no fork may come between: making descriptors and putting them on the list. It must
/// not fork itself.
pub(crate) fn without_forks<T>(body: impl FnOnce() -> T) -> T {
    struct Held;
    impl Drop for Held {
        fn drop(&mut self) {
            release();
        }
    }
    hold();
    let _held = Held;
    body()
}

/// A descriptor that forked children close, for as long as this lives: otherwise the manager would take a
/// parent that has died for alive as long as its child is.
#[derive(Debug)]
pub(crate) struct ClosedInChildren(Option<&'static AtomicI32>);

impl ClosedInChildren {
    /// To be dropped before the descriptor is closed.
    pub fn new(object: &impl AsFd) -> Self {
        let fd = object.as_fd().as_raw_fd();
        let free = WATCHED
            .iter()
            .find(|slot| slot.compare_exchange(NONE, fd, Ordering::AcqRel, Ordering::Relaxed).is_ok());
        Self(free)
    }
}

impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.store(NONE, Ordering::Release);
        }
    }
}

/// From now on a forked child registers as a provider of this name when it records its first event.
pub(crate) fn register_children_as(name: &str) {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        // SAFETY: the handlers do what F1 says, and never go away.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child))
        };
    });
    engine::call_at_first_event_of_children(register_child);
    // The one before stays where it is: somebody may be reading it.
    NAME.store(Box::into_raw(Box::new(name.to_owned())), Ordering::Release);
}

extern "C" fn after_fork_in_child() {
    release();
    for slot in &WATCHED {
        let fd = slot.swap(NONE, Ordering::Relaxed);
        if fd != NONE {
            // SAFETY: a descriptor of a thread that does not exist here (F1).
            unsafe { libc::close(fd) };
        }
    }
}

/// In a child that records its first event.
fn register_child() {
    // SAFETY: never freed (F2).
    if let Some(name) = unsafe { NAME.load(Ordering::Acquire).as_ref() } {
        // It lives as long as the process: nobody here holds it.
        core::mem::forget(TraceProvider::new(name));
    }
}
