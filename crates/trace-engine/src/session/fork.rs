//! Forked children: they leave their parent's trace, and join one of their own at their first event.

use crate::session::lease::Lease;
use crate::session::observer::epoch;
use crate::session::state::{State, end_change, state};
use crate::session::{hook, lease, missed, thread_exit, trace_ref};
use crate::site::{self, Site, dynamic_sites};
use crate::sync::{AtomicU32, Ordering, SpinLock};
use crate::sys::{self, ForkNotices};
use crate::thread::registry;
use core::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Installs the notices of exiting threads and of forked children, once for the process.
pub(super) fn install_notices() {
    install_fork_notices();
    sys::install_exit_notice(thread_exit::on_thread_exit);
}

extern "C" fn install_fork_notices() {
    let fork = ForkNotices { before: before_fork, in_parent: after_fork, in_child: fork_handler };
    sys::install_fork_notices(&fork);
}

// When the program or the plugin is loaded: a fork that has begun before they are installed would not wait
// for a thread that takes a lock meanwhile.
#[cfg(not(any(elsewhere, modelled)))]
sys::call_on_load!(install_fork_notices);

/// Held by a thread that forks, and by one that is in [`without_forks`].
static FORKS: SpinLock = SpinLock::new();

std::thread_local! {
    /// This thread is in [`without_forks`].
    static IS_WITHOUT_FORKS: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function while no other thread forks: for what takes locks that a child would find taken.
pub fn without_forks<R>(call: impl FnOnce() -> R) -> R {
    let _inside = Inside::enter();
    call()
}

/// Whether this thread is in [`without_forks`], as in a handler that has interrupted it there: another thread
/// would wait for this one.
#[must_use]
pub fn is_without_forks() -> bool {
    IS_WITHOUT_FORKS.get()
}

/// As long as it lives, this thread is in [`without_forks`].
struct Inside {
    is_outermost: bool,
}

impl Inside {
    #[inline(never)]
    fn enter() -> Self {
        install_notices();
        let is_outermost = !IS_WITHOUT_FORKS.get();
        if is_outermost {
            core::mem::forget(FORKS.lock());
            IS_WITHOUT_FORKS.set(true);
        }
        Self { is_outermost }
    }
}

impl Drop for Inside {
    #[inline(never)]
    fn drop(&mut self) {
        if self.is_outermost {
            IS_WITHOUT_FORKS.set(false);
            FORKS.release();
        }
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

/// How many forks are between this process and the first one that has used the engine.
static FORKED: AtomicU32 = AtomicU32::new(0);

/// Distinguishes this process from its forked children: each has another number. A child by `vfork` has that
/// of its parent, with which it shares all memory. Not 0.
#[must_use]
pub fn generation() -> u32 {
    install_notices();
    FORKED.load(Ordering::Relaxed).wrapping_add(1)
}

extern "C" fn fork_handler() {
    after_fork();
    on_fork_in_child();
}

/// What a forked child calls at its first event.
static AT_FIRST_EVENT: OnceLock<fn()> = OnceLock::new();
/// How far this process is with its first event, if it is a forked child.
static CHILD: AtomicU32 = AtomicU32::new(NO_CHILD);

/// It is none, or one that has made a provider by itself.
const NO_CHILD: u32 = 0;
/// It has recorded nothing yet.
const NEW: u32 = 1;
/// A thread has come to the first event, and waits for the recording. So do all others that come to one.
const JOINING: u32 = 2;
/// That thread knows whether the child is recorded.
const JOINED: u32 = 3;

std::thread_local! {
    /// This is the thread that waits for the recording.
    static IS_JOINING: Cell<bool> = const { Cell::new(false) };
}

/// How long a thread waits for the one that came to the first event: longer than that one does, which waits 5
/// s for each step of its registration.
const JOIN_WAIT: Duration = Duration::from_secs(20);
const JOIN_INTERVAL: Duration = Duration::from_micros(100);

/// Sets a function that every forked child from now on calls when it comes to its first event, whether its
/// parent was recording or not. Only the first such function counts. If this process is itself a child that
/// has recorded nothing yet, it counts as one that has.
pub fn call_at_first_event_of_children(register: fn()) {
    let _ = AT_FIRST_EVENT.set(register);
    install_notices();
    if CHILD.compare_exchange(NEW, NO_CHILD, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        site::for_each(Site::switch_off);
    }
}

/// Whether this is a forked child that has not found out yet whether it is recorded.
#[must_use]
pub fn is_new_child() -> bool {
    match CHILD.load(Ordering::Acquire) {
        NEW => true,
        JOINING => !has_started(),
        _ => false,
    }
}

/// Whether a run has begun, which switches each site on or off.
fn has_started() -> bool {
    matches!(state(), State::Started | State::Stopping | State::Stopped)
}

/// In a forked child: it never writes into its parent's buffer.
//= docs/buffer.md#fork
fn on_fork_in_child() {
    // The child is its only thread. The context is leaked: an interrupted event that the child may return to
    // finds memory of its own.
    if let Some(unlinked) = lease::unlink() {
        unlinked.context().detach();
    }
    FORKED.store(FORKED.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    registry::forget_current();
    dynamic_sites::release_in_child();
    trace_ref::forget_in_child();
    lease::HOLD.release_in_child();
    lease::LEASES.store(0, Ordering::Relaxed);
    hook::release_in_child();
    end_change(State::Idle);
    // A site that is on without a trace has the next event look whether this is a new child.
    let is_wanted = AT_FIRST_EVENT.get().is_some();
    IS_JOINING.set(false);
    missed::forget();
    CHILD.store(if is_wanted { NEW } else { NO_CHILD }, Ordering::Release);
    let switch = if is_wanted { Site::switch_on } else { Site::switch_off };
    site::for_each(switch);
}

/// At an event, before anything is written: whether it has to [wait](wait_for_first).
#[inline]
pub(crate) fn is_joining() -> bool {
    CHILD.load(Ordering::Relaxed) == JOINING
}

/// Whether a thread of this child has come to the first event, and does not know yet whether it is recorded.
/// What comes of a run that has started is.
fn is_early() -> bool {
    CHILD.load(Ordering::Acquire) == JOINING && !has_started()
}

/// Waits until the thread that came to a child's first event knows whether the child is recorded. False if
/// the event is lost, as [`is_missed`] says.
//= docs/buffer.md#fork
#[cold]
pub(crate) fn wait_for_first(site: &Site) -> bool {
    if is_early() && is_missed(site) {
        return false;
    }
    wait_for_other();
    true
}

fn wait_for_other() {
    let deadline = Instant::now() + JOIN_WAIT;
    // What the thread that joins records itself meanwhile is of no run.
    sys::keeping_errno(|| {
        while is_early() && !IS_JOINING.get() && Instant::now() < deadline {
            std::thread::sleep(JOIN_INTERVAL);
        }
    });
}

/// Whether an event is in a handler of a signal, which neither joins nor waits, as what it has interrupted
/// may hold what joining needs: then it is counted.
fn is_missed(site: &Site) -> bool {
    let is_missed = sys::is_in_handler();
    if is_missed {
        missed::count(site.category());
    }
    is_missed
}

/// At an event without a trace: true if it may have one now, as this is a forked child that has been given
/// the opportunity to be recorded at its first one.
pub(crate) fn is_first_of_child(site: &Site) -> bool {
    let is_child = match CHILD.load(Ordering::Acquire) {
        NEW => !is_missed(site) && join().is_ok(),
        state => state != NO_CHILD,
    };
    is_child && wait_for_first(site)
}

/// This process is no forked child, or one that has made a provider by itself.
struct NoChild;

/// Has a new child register, unless another thread does.
fn join() -> Result<(), NoChild> {
    let register = AT_FIRST_EVENT.get().ok_or(NoChild)?;
    // Before: a handler of a signal on this thread does not wait for it.
    let was_joining = IS_JOINING.replace(true);
    let found = CHILD.compare_exchange(NEW, JOINING, Ordering::AcqRel, Ordering::Acquire);
    if found.is_ok() {
        register();
        end_joining();
    }
    IS_JOINING.set(was_joining);
    if found == Err(NO_CHILD) { Err(NoChild) } else { Ok(()) }
}

/// Whether this is a forked child of which it is not known yet whether it is recorded.
pub(crate) fn is_undecided() -> bool {
    matches!(CHILD.load(Ordering::Relaxed), NEW | JOINING)
}

/// At the begin of a scope: has such a child register, as at an event. The record of the scope comes when it
/// ends, which may be too late. Not in a handler of a signal.
pub(crate) fn join_at_scope() {
    if is_undecided() && !sys::is_in_handler() && (CHILD.load(Ordering::Acquire) != NEW || join().is_ok()) {
        wait_for_other();
    }
}

/// Has a forked child that has recorded nothing yet do now what it would do at its first event.
pub fn join_if_new_child() {
    if CHILD.load(Ordering::Acquire) == NEW && join().is_ok() {
        wait_for_other();
    }
}

/// Switches all sites off if no run has begun: they were on so that each event waited. A run may begin at any
/// moment.
fn end_joining() {
    // In a child of a handler that has forked meanwhile it is new again.
    if CHILD.load(Ordering::Acquire) != JOINING {
        return;
    }
    while !has_started() {
        let before = (state(), epoch());
        if before.0 == State::Changing {
            std::thread::yield_now();
            continue;
        }
        CHILD.store(JOINED, Ordering::Release);
        missed::forget();
        site::for_each(Site::switch_off);
        if (state(), epoch()) == before {
            return;
        }
        // What the run wants, which has started meanwhile.
        let lease = Lease::of_thread();
        site::for_each(|site| {
            if lease.wants(site.category()) == Some(true) {
                site.switch_on();
            }
        });
    }
    CHILD.store(JOINED, Ordering::Release);
}
