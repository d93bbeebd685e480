//! The program's hook: a function of its own that sees each event before it is recorded, and may keep it out.
//!
//! While there is one, no site is published, so that each event takes the slow path, which calls it.
//!
//! Invariant **J1**: the present hook is null or was leaked, as was each one before it.
#![allow(unsafe_code)]

#[cfg(not(modelled))]
use crate::site::{self, Site};
use crate::slab::retirement::fence_all_threads;
use crate::sync::{AtomicPtr, Ordering, pause, process};
#[cfg(not(modelled))]
use crate::sys;
use crate::thread::block::ThreadBlock;
use crate::thread::registry;
use core::cell::Cell;
use core::ptr;
use std::time::{Duration, Instant};
use trace_format::event::Event;

/// Sees an event before it is recorded: with all texts in it, and with its process and thread by koid. False
/// keeps the event out of the recording.
///
/// It is called on the thread of the event, outside of the engine's own work: it may wait and allocate.
/// Events that it records by itself, and those of signal handlers that interrupt it, are recorded without it.
/// It has to be safe in the handler of a signal if handlers record events, and must not be left by a jump.
pub type EventHook = dyn Fn(&Event<'_>) -> bool + Send + Sync;

/// A hook that was set once. It stays, as a thread may be about to call it.
struct Installed {
    hook: Box<EventHook>,
    /// Threads that are in it.
    calls: process::AtomicU64,
    /// The one that was set before.
    previous: *const Installed,
}

/// Which hook there is.
pub(crate) struct Hooks {
    current: AtomicPtr<Installed>,
}

/// Those of the process.
#[cfg(not(modelled))]
pub(crate) static HOOKS: Hooks = Hooks::new();
/// The last of all hooks that were set.
static LAST: process::AtomicPtr<Installed> = process::AtomicPtr::new(ptr::null_mut());
/// How long events that are under way may take before they count as left by a jump.
const PATIENCE: Duration = Duration::from_secs(if cfg!(modelled) { 3600 } else { 1 });
/// How long a thread sleeps before it looks again.
const NAP: Duration = Duration::from_micros(20);

std::thread_local! {
    /// The hook that this thread is in.
    static INSIDE: Cell<*const Installed> = const { Cell::new(ptr::null()) };
}

/// Follows a pointer of the list.
fn installed(pointer: *const Installed) -> Option<&'static Installed> {
    // SAFETY: null or leaked (J1), and shared through an atomic only.
    unsafe { pointer.as_ref() }
}

impl Hooks {
    const_unless_modelled! {
        /// There is none.
        pub fn new() -> Self {
            Self { current: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    /// Whether there is a hook: then no site may be published.
    #[inline]
    pub fn is_set(&self) -> bool {
        cfg!(feature = "hooks") && !self.current.load(Ordering::SeqCst).is_null()
    }

    /// Sets the hook, and returns the one before. When it returns no site is published, if there is one, and
    /// none is published any more. `own` is the block of the calling thread.
    fn replace(
        &self,
        next: *mut Installed,
        own: Option<&ThreadBlock>,
        unpublish_all: impl Fn(),
    ) -> *mut Installed {
        let before = self.current.swap(next, Ordering::SeqCst);
        if !next.is_null() {
            unpublish_all();
            // A thread that has looked before may be about to publish its site.
            fence_all_threads();
            wait_for_others(own);
            unpublish_all();
        }
        before
    }
}

/// Sets the function that sees each event before it is recorded, in place of one that was set before; none
/// ends that. It holds for all recordings of this process, and for its forked children. The function is kept
/// for the life of the process.
///
/// Each event that begins after this has returned is shown to that function, once; one that is under way
/// meanwhile is shown to it, to the one before, or to none. The call blocks for the time that such events
/// take, or for a second where one does not end; and until the function before has returned on other
/// threads, unless it is called in a hook. It may not be called in the handler of a signal.
#[cfg(not(modelled))]
pub fn set_event_hook(hook: Option<Box<EventHook>>) {
    let next = hook.map_or(ptr::null_mut(), install);
    let before = HOOKS.replace(next, Some(registry::current()), || site::for_each(Site::unpublish));
    if let Some(before) = installed(before).filter(|_| INSIDE.get().is_null()) {
        while before.calls.load(Ordering::SeqCst) > 0 {
            pause(NAP);
        }
    }
}

fn install(hook: Box<EventHook>) -> *mut Installed {
    let calls = process::AtomicU64::new(0);
    let new = Box::leak(Box::new(Installed { hook, calls, previous: ptr::null() }));
    let mut last = LAST.load(Ordering::Relaxed);
    loop {
        new.previous = last;
        // Release: pairs with the Acquire of the walk.
        match LAST.compare_exchange_weak(last, new, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return new,
            Err(now) => last = now,
        }
    }
}

/// In a forked child: the other threads that were in a hook do not exist here.
pub(super) fn release_in_child() {
    let last = if cfg!(feature = "hooks") { LAST.load(Ordering::Acquire) } else { return };
    let mut next = installed(last);
    while let Some(known) = next {
        let is_inside = ptr::eq(INSIDE.get(), known);
        known.calls.store(is_inside.into(), Ordering::SeqCst);
        next = installed(known.previous);
    }
}

/// Waits until each other thread was seen outside of an event.
fn wait_for_others(own: Option<&ThreadBlock>) {
    let deadline = Instant::now() + PATIENCE;
    for block in registry::all().filter(|block| !own.is_some_and(|own| ptr::eq(*block, own))) {
        let counter = block.counter();
        let is_waited_for = counter & 1 != 0 && block.late_at() != counter;
        while is_waited_for && block.counter() == counter && Instant::now() < deadline {
            pause(NAP);
        }
    }
}

/// Whether an event of this thread is one that a hook is to see.
#[cfg(not(modelled))]
#[inline]
pub(crate) fn is_wanted() -> bool {
    HOOKS.is_set() && INSIDE.get().is_null()
}

/// This thread is in a hook, also where that panics.
struct Call(&'static Installed);

#[cfg(not(modelled))]
impl Call {
    /// Of the present hook.
    fn begin() -> Option<Self> {
        loop {
            let found = HOOKS.current.load(Ordering::SeqCst);
            let call = Self(installed(found)?);
            INSIDE.set(found);
            // SeqCst: either the thread that sets another hook sees the call, or the look behind it sees
            // that.
            call.0.calls.fetch_add(1, Ordering::SeqCst);
            if ptr::eq(HOOKS.current.load(Ordering::SeqCst), found) {
                return Some(call);
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
        INSIDE.set(ptr::null());
    }
}

/// Calls the hook, if there is one; whether the event is to be recorded.
#[cfg(not(modelled))]
pub(crate) fn call(event: &Event<'_>) -> bool {
    let Some(call) = Call::begin() else {
        return true;
    };
    let mut is_kept = true;
    sys::keeping_errno(|| is_kept = (call.0.hook)(event));
    is_kept
}

#[cfg(all(test, modelled))]
impl Hooks {
    /// Sets one that is never called.
    pub fn set(&self, own: Option<&ThreadBlock>, unpublish_all: impl Fn()) {
        self.replace(install(Box::new(|_| true)), own, unpublish_all);
    }
}
