//! Forked children: they leave their parent's trace, and join one of their own at their first event.

use crate::session::state::{State, end_change};
use crate::session::{hook, lease, thread_exit, trace_ref};
use crate::site::{self, Site, dynamic_sites};
use crate::sync::{AtomicBool, Ordering, SpinLock};
use crate::sys::{self, ForkNotices};
use crate::thread::registry;
use core::cell::Cell;
use std::sync::OnceLock;

/// Installs the notices of exiting threads and of forked children, once for the process.
pub(super) fn install_notices() {
    let fork = ForkNotices { before: before_fork, in_parent: after_fork, in_child: fork_handler };
    sys::install_notices(thread_exit::on_thread_exit, &fork);
}

/// Held by a thread that forks, and by one that is in [`without_forks`].
static FORKS: SpinLock = SpinLock::new();

std::thread_local! {
    /// This thread is in [`without_forks`].
    static IS_WITHOUT_FORKS: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function while no other thread forks: for what takes locks that a child would find taken.
pub fn without_forks<R>(call: impl FnOnce() -> R) -> R {
    install_notices();
    if IS_WITHOUT_FORKS.get() {
        return call();
    }
    let _forks = FORKS.lock();
    let _inside = Inside::new();
    call()
}

/// As long as it lives, this thread is in [`without_forks`].
struct Inside;

impl Inside {
    fn new() -> Self {
        IS_WITHOUT_FORKS.set(true);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        IS_WITHOUT_FORKS.set(false);
    }
}

extern "C" fn before_fork() {
    if !IS_WITHOUT_FORKS.get() {
        core::mem::forget(FORKS.lock());
    }
}

extern "C" fn after_fork() {
    if !IS_WITHOUT_FORKS.get() {
        FORKS.release();
    }
}

extern "C" fn fork_handler() {
    after_fork();
    on_fork_in_child();
}

/// What a forked child calls at its first event.
static AT_FIRST_EVENT: OnceLock<fn()> = OnceLock::new();
/// This process is a forked child that has recorded nothing yet.
static IS_NEW_CHILD: AtomicBool = AtomicBool::new(false);

/// Sets a function that every forked child from now on calls when it comes to its first event, whether its
/// parent was recording or not. Only the first such function counts. If this process is itself a child that
/// has recorded nothing yet, it counts as one that has.
pub fn call_at_first_event_of_children(register: fn()) {
    let _ = AT_FIRST_EVENT.set(register);
    install_notices();
    take_new_child();
}

/// Whether this is a forked child that has recorded nothing yet.
#[must_use]
pub fn is_new_child() -> bool {
    IS_NEW_CHILD.load(Ordering::Relaxed)
}

/// Whether this is a child that has recorded nothing yet; from now on it counts as one that has.
fn take_new_child() -> bool {
    let is_new = IS_NEW_CHILD.swap(false, Ordering::AcqRel);
    if is_new {
        site::for_each(Site::switch_off);
    }
    is_new
}

/// In a forked child: it never writes into its parent's buffer.
//= docs/buffer.md#fork
fn on_fork_in_child() {
    // The child is its only thread. The context is leaked: an interrupted event that the child may return to
    // finds memory of its own.
    if let Some(unlinked) = lease::unlink() {
        unlinked.context().buffer().detach();
    }
    registry::forget_current();
    dynamic_sites::release_in_child();
    trace_ref::forget_in_child();
    lease::HOLD.release_in_child();
    lease::LEASES.store(0, Ordering::Relaxed);
    hook::release_in_child();
    end_change(State::Idle);
    // A site that is on without a trace has the next event look whether this is a new child.
    let is_wanted = AT_FIRST_EVENT.get().is_some();
    IS_NEW_CHILD.store(is_wanted, Ordering::Relaxed);
    let switch = if is_wanted { Site::switch_on } else { Site::switch_off };
    site::for_each(switch);
}

/// At an event without a trace: true if this is a forked child's first, and the child has been given the
/// opportunity to be recorded.
pub(crate) fn is_first_of_child() -> bool {
    let Some(register) = AT_FIRST_EVENT.get() else {
        return false;
    };
    let is_first = take_new_child();
    if is_first {
        register();
    }
    is_first
}
