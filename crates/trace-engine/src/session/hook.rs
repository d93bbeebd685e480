//! The program's hook: a function of its own that sees each event before it is recorded, and may keep it out.
//!
//! While there is one, no site is published, so that each event takes the slow path, which calls it.

use crate::site::{self, Site};
use crate::slab::retirement::fence_all_threads;
use crate::sync::{Ordering, pause, process};
#[cfg(not(modelled))]
use crate::sys;
use crate::thread::registry;
use core::cell::Cell;
use core::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use trace_format::event::Event;

/// Sees an event before it is recorded: with all texts in it, and with its process and thread by koid. False
/// keeps the event out of the recording.
///
/// It is called on the thread of the event, outside of the engine's own work: it may wait, allocate, and stop
/// the recording. Events that it records by itself are recorded without it. It has to be safe in the handler
/// of a signal if handlers record events.
pub type EventHook = fn(&Event<'_>) -> bool;

/// Different functions that may be hooks in the life of a process.
const MAX_HOOKS: usize = 8;
static HOOKS: [OnceLock<EventHook>; MAX_HOOKS] = [const { OnceLock::new() }; MAX_HOOKS];
/// The place of the present hook, counted from 1; 0 without one.
static CURRENT: process::AtomicU64 = process::AtomicU64::new(0);
/// Threads that are in a hook.
static CALLS: process::AtomicU64 = process::AtomicU64::new(0);
/// How long events that are under way may take before they count as left by a jump.
const PATIENCE: Duration = Duration::from_secs(1);

std::thread_local! {
    /// Whether this thread is in the hook.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The process has had eight different hooks already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyHooks(());

impl fmt::Display for TooManyHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a process has at most {MAX_HOOKS} different hooks of events in its life")
    }
}

impl std::error::Error for TooManyHooks {}

/// Sets the function that sees each event before it is recorded, in place of one that was set before; none
/// ends that. It holds for all recordings of this process, and for its forked children.
///
/// An event that begins after this has returned is seen by that function, once; one that is under way
/// meanwhile may be seen. The call blocks for the time that such events take, or for a second where one does
/// not end; and until the function before, if it is called at the moment, has returned on other threads. It
/// does not wait for that where a hook itself calls it.
///
/// # Errors
/// The process has had eight different hooks already.
pub fn set_event_hook(hook: Option<EventHook>) -> Result<(), TooManyHooks> {
    let Some(hook) = hook else {
        remove();
        return Ok(());
    };
    let is_same = |known: &EventHook| core::ptr::fn_addr_eq(*known, hook);
    let is_ours =
        |place: &&OnceLock<EventHook>| place.set(hook).is_ok() || place.get().is_some_and(is_same);
    let number = HOOKS.iter().take_while(|place| !is_ours(place)).count();
    if number == MAX_HOOKS {
        return Err(TooManyHooks(()));
    }
    remove();
    CURRENT.store(number as u64 + 1, Ordering::SeqCst);
    unpublish_all();
    // A thread that has looked before may be about to publish its site.
    fence_all_threads();
    wait_for_others();
    unpublish_all();
    Ok(())
}

/// From now on there is no hook, and none is being called.
fn remove() {
    CURRENT.store(0, Ordering::SeqCst);
    while !IS_INSIDE.get() && CALLS.load(Ordering::SeqCst) > 0 {
        pause(Duration::from_micros(20));
    }
}

/// In a forked child: the threads that were in the hook do not exist here.
#[cfg(not(modelled))]
pub(super) fn release_in_child() {
    CALLS.store(u64::from(IS_INSIDE.get()), Ordering::SeqCst);
}

fn unpublish_all() {
    site::for_each(Site::unpublish);
}

/// Waits until each other thread was seen outside of an event.
fn wait_for_others() {
    let deadline = Instant::now() + PATIENCE;
    let own = registry::current();
    for block in registry::all().filter(|block| !core::ptr::eq(*block, own)) {
        let counter = block.counter();
        while counter & 1 != 0 && block.counter() == counter && Instant::now() < deadline {
            pause(Duration::from_micros(20));
        }
    }
}

/// Whether there is a hook: then no site may be published.
#[inline]
pub(crate) fn is_set() -> bool {
    CURRENT.load(Ordering::SeqCst) != 0
}

/// Whether this event is one that a hook is to see: not those of the hook itself.
#[cfg(not(modelled))]
#[inline]
pub(crate) fn is_wanted() -> bool {
    is_set() && !IS_INSIDE.get()
}

/// This thread is in the hook, also where that panics.
#[cfg(not(modelled))]
struct Inside;

#[cfg(not(modelled))]
impl Inside {
    fn enter() -> Self {
        IS_INSIDE.set(true);
        // SeqCst: one order with the look at the hook behind it, and with its end and the look at this.
        CALLS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

#[cfg(not(modelled))]
impl Drop for Inside {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::SeqCst);
        IS_INSIDE.set(false);
    }
}

/// Calls the hook, if there is one; whether the event is to be recorded.
#[cfg(not(modelled))]
pub(crate) fn call(event: &Event<'_>) -> bool {
    let _inside = Inside::enter();
    let place = (CURRENT.load(Ordering::SeqCst) as usize).checked_sub(1);
    let Some(hook) = place.and_then(|number| HOOKS[number].get()) else {
        return true;
    };
    let mut is_kept = true;
    sys::keeping_errno(|| is_kept = hook(event));
    is_kept
}
