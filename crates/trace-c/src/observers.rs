//! Observers, to which programs have reported when recording starts and stops: event objects and functions.
#![allow(unsafe_code)]

use crate::abi::{ERR_INVALID_ARGS, ERR_NOT_FOUND, OK, Status};
use crate::dispatcher::{Loop, Shared};
use crate::fork_lock::ForkLock;
use crate::zircon::{self, Event};
use core::cell::Cell;
use core::ffi::c_void;
use parking_lot::ReentrantMutex;
use std::sync::Arc;
use std::time::Instant;
use trace_engine::engine::{self, Observer, State};

/// `ZX_EVENT_SIGNALED`.
const SIGNALED: u32 = 1 << 3;

struct Registered {
    listener: Listener,
    /// A start was reported to it, and it has not acknowledged that yet.
    is_pending: bool,
}

/// How a change is reported.
enum Listener {
    Event { handle: u32, event: Arc<Event> },
    Callback { callback: Arc<Callback>, dispatcher: Arc<Shared> },
}

impl Listener {
    fn is_event(&self, wanted: u32) -> bool {
        matches!(self, Self::Event { handle, .. } if *handle == wanted)
    }

    fn is_callback(&self, wanted: &Arc<Callback>) -> bool {
        matches!(self, Self::Callback { callback, .. } if Arc::ptr_eq(callback, wanted))
    }
}

/// A function of the program's, until it is stopped.
///
/// Invariants:
///
/// * **O1** Function and data may be used on the thread of the dispatcher while the lock is held and the flag
///   is set.
/// * **O2** The pointer that C has is from `Arc::into_raw`, and is given back once.
pub struct Callback {
    call: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
    /// The lock may be taken again by the callback itself, which stops its observer.
    is_on: ReentrantMutex<Cell<bool>>,
}

// SAFETY: the program lends function and data to whichever thread runs the dispatcher (O1).
unsafe impl Send for Callback {}
// SAFETY: function and data are used, and the flag is accessed, only by the thread that holds the lock (O1).
unsafe impl Sync for Callback {}

fn run(callback: &Arc<Callback>) {
    let is_on = callback.is_on.lock();
    if is_on.get() {
        // SAFETY: the function and the data that it was registered with, on a thread of the dispatcher, under
        // the lock, and not stopped (O1).
        unsafe { (callback.call)(callback.data) };
    }
    drop(is_on);
    handled(|listener| listener.is_callback(callback));
}

static REGISTERED: ForkLock<Vec<Registered>> = ForkLock::new(Vec::new());

/// These observers have handled the start.
fn handled(is_it: impl Fn(&Listener) -> bool) {
    REGISTERED.with(|registered| {
        for observer in registered.iter_mut().filter(|observer| is_it(&observer.listener)) {
            observer.is_pending = false;
        }
    });
}

fn on_change(state: State) {
    REGISTERED.with(|registered| report(registered, state));
}

fn report(registered: &mut [Registered], state: State) {
    for observer in registered {
        observer.is_pending = state == State::Started;
        match &observer.listener {
            Listener::Event { event, .. } => event.signal(0, SIGNALED),
            Listener::Callback { callback, dispatcher } => {
                let callback = callback.clone();
                dispatcher.post(Instant::now(), move || run(&callback));
            }
        }
    }
}

fn is_start_pending() -> bool {
    REGISTERED.with(|registered| registered.iter().any(|observer| observer.is_pending))
}

pub extern "C" fn trace_register_observer(handle: u32) -> Status {
    engine::observe(Observer { on_change, is_start_pending, ..Observer::NONE });
    let event = match zircon::event(handle) {
        Ok(event) => event,
        Err(status) => return status,
    };
    REGISTERED.with(|registered| {
        if registered.iter().any(|observer| observer.listener.is_event(handle)) {
            return ERR_INVALID_ARGS;
        }
        registered.push(Registered { listener: Listener::Event { handle, event }, is_pending: false });
        OK
    })
}

pub extern "C" fn trace_unregister_observer(handle: u32) -> Status {
    REGISTERED.with(|registered| {
        let before = registered.len();
        registered.retain(|observer| !observer.listener.is_event(handle));
        if registered.len() < before { OK } else { ERR_NOT_FOUND }
    })
}

pub extern "C" fn trace_notify_observer_updated(handle: u32) {
    handled(|listener| listener.is_event(handle));
}

pub extern "C" fn trace_internal_start_observer(
    loop_: Option<&Loop>,
    call: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> *const Callback {
    engine::observe(Observer { on_change, is_start_pending, ..Observer::NONE });
    let (Some(dispatcher), Some(call)) = (loop_.map(Loop::shared), call) else {
        return core::ptr::null();
    };
    let callback = Arc::new(Callback { call, data, is_on: ReentrantMutex::new(Cell::new(true)) });
    let listener = Listener::Callback { callback: callback.clone(), dispatcher };
    REGISTERED.with(|registered| registered.push(Registered { listener, is_pending: false }));
    Arc::into_raw(callback)
}

pub extern "C" fn trace_internal_stop_observer(observer: *const Callback) {
    if observer.is_null() {
        return;
    }
    // SAFETY: not null; from `trace_internal_start_observer`, and given back once (O2).
    let callback = unsafe { Arc::from_raw(observer) };
    REGISTERED.with(|registered| registered.retain(|observer| !observer.listener.is_callback(&callback)));
    callback.is_on.lock().set(false);
}
