//! The loop: runs callbacks, on threads of its own or on whatever thread runs it.
//!
//! Invariants:
//!
//! * **L1** An `async_loop_t*` is from `async_loop_create` and was not destroyed; an `async_dispatcher_t*` is
//!   the same pointer.
//! * **L2** Configurations, and the data they name, live as long as the loop.
#![allow(unsafe_code)]

use crate::abi::{
    self, ERR_BAD_STATE, ERR_CANCELED, ERR_INVALID_ARGS, ERR_NO_MEMORY, ERR_TIMED_OUT, OK, Status,
};
use crate::{handler, zircon};
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

const RUNNABLE: u32 = 0;
const QUIT: u32 = 1;
const SHUTDOWN: u32 = 2;

type GetDefault = unsafe extern "C" fn() -> *mut Loop;
type SetDefault = unsafe extern "C" fn(*mut Loop);
type Callback = unsafe extern "C" fn(*mut Loop, *mut c_void);

/// `async_loop_config_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Config {
    getter: Option<GetDefault>,
    setter: Option<SetDefault>,
    make_default_for_current_thread: bool,
    prologue: Option<Callback>,
    epilogue: Option<Callback>,
    data: *mut c_void,
    irq_support: bool,
}

// SAFETY: nothing is done with what `data` points to but to hand it to callbacks.
unsafe impl Send for Config {}
// SAFETY: as above.
unsafe impl Sync for Config {}

impl Config {
    const fn new(has_default: bool, make_default_for_current_thread: bool) -> Self {
        let getter: Option<GetDefault> = Some(async_get_default_dispatcher);
        let setter: Option<SetDefault> = Some(async_set_default_dispatcher);
        Self {
            getter: if has_default { getter } else { None },
            setter: if has_default { setter } else { None },
            make_default_for_current_thread,
            prologue: None,
            epilogue: None,
            data: ptr::null_mut(),
            irq_support: false,
        }
    }
}

macro_rules! configs {
    ($($name:ident = $has_default:literal, $make_default:literal;)*) => {
        $(#[unsafe(no_mangle)]
        pub static $name: Config = Config::new($has_default, $make_default);)*
    };
}

configs! {
    kAsyncLoopConfigAttachToCurrentThread = true, true;
    kAsyncLoopConfigNoAttachToCurrentThread = true, false;
    kAsyncLoopConfigNeverAttachToThread = false, false;
    kAsyncLoopConfigAttachToThread = true, true;
    kAsyncLoopConfigNoAttachToThread = true, false;
}

type Task = Box<dyn FnOnce() + Send>;

struct Queue {
    state: u32,
    /// By the time they are due, and the order in which they came.
    tasks: BTreeMap<(Instant, u64), Task>,
    last: u64,
    /// Threads that run the loop.
    running: usize,
}

/// What a loop's users share.
pub struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    /// Has something done by the loop at a time. Dropped, if the loop is shut down before.
    pub fn post(&self, at: Instant, task: impl FnOnce() + Send + 'static) {
        let mut queue = self.queue.lock();
        if queue.state != SHUTDOWN {
            queue.last += 1;
            let key = (at, queue.last);
            queue.tasks.insert(key, Box::new(task));
            self.changed.notify_one();
        }
    }
}

/// `async_loop_t`, and its dispatcher.
pub struct Loop {
    shared: Arc<Shared>,
    config: Config,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What a dispatcher's users share with it.
///
/// # Safety
/// L1.
pub unsafe fn shared(dispatcher: *mut Loop) -> Option<Arc<Shared>> {
    // SAFETY: L1.
    unsafe { dispatcher.as_ref() }.map(|owner| owner.shared.clone())
}

/// A loop that a thread of its own runs.
struct Runner(*mut Loop);

// SAFETY: a loop is used on many threads; it waits for its own before it goes (L1).
unsafe impl Send for Runner {}

impl Runner {
    fn run(self) {
        // SAFETY: alive until this thread was joined (L1).
        unsafe {
            set_default(self.0);
            async_loop_run(self.0, i64::MAX, false);
        }
    }
}

/// # Safety
/// L1, L2.
unsafe fn set_default(dispatcher: *mut Loop) {
    // SAFETY: L1, L2.
    if let Some(set) = unsafe { (*dispatcher).config.setter } {
        // SAFETY: the configuration's own function.
        unsafe { set(dispatcher) };
    }
}

std::thread_local! {
    static DEFAULT: Cell<*mut Loop> = const { Cell::new(ptr::null_mut()) };
}

pub unsafe extern "C" fn async_get_default_dispatcher() -> *mut Loop {
    DEFAULT.try_with(Cell::get).unwrap_or(ptr::null_mut())
}

pub unsafe extern "C" fn async_set_default_dispatcher(dispatcher: *mut Loop) {
    let _ = DEFAULT.try_with(|default| default.set(dispatcher));
}

pub unsafe extern "C" fn async_loop_create(config: *const Config, out: *mut *mut Loop) -> Status {
    if out.is_null() {
        return ERR_INVALID_ARGS;
    }
    // SAFETY: C1.
    let config = unsafe { abi::get(config) }.unwrap_or(const { Config::new(false, false) });
    let queue = Queue { state: RUNNABLE, tasks: BTreeMap::new(), last: 0, running: 0 };
    let shared = Arc::new(Shared { queue: Mutex::new(queue), changed: Condvar::new() });
    let owner = Box::into_raw(Box::new(Loop { shared, config, threads: Mutex::new(Vec::new()) }));
    // SAFETY: C1; the loop was just made.
    unsafe {
        out.write(owner);
        if config.make_default_for_current_thread {
            set_default(owner);
        }
    }
    OK
}

pub unsafe extern "C" fn async_loop_get_dispatcher(owner: *mut Loop) -> *mut Loop {
    owner
}

pub unsafe extern "C" fn async_loop_from_dispatcher(dispatcher: *mut Loop) -> *mut Loop {
    dispatcher
}

pub unsafe extern "C" fn async_loop_shutdown(owner: *mut Loop) {
    // SAFETY: L1.
    let Some(owner) = (unsafe { owner.as_ref() }) else {
        return;
    };
    // What is recorded with this dispatcher ends with it; the loop still works for that.
    handler::on_dispatcher_shutdown(&owner.shared);
    let dropped = {
        let mut queue = owner.shared.queue.lock();
        queue.state = SHUTDOWN;
        owner.shared.changed.notify_all();
        core::mem::take(&mut queue.tasks)
    };
    drop(dropped);
    join_threads(owner);
}

fn join_threads(owner: &Loop) {
    let threads = core::mem::take(&mut *owner.threads.lock());
    let this = std::thread::current().id();
    for thread in threads.into_iter().filter(|thread| thread.thread().id() != this) {
        let _ = thread.join();
    }
}

pub unsafe extern "C" fn async_loop_destroy(owner: *mut Loop) {
    if owner.is_null() {
        return;
    }
    // SAFETY: L1; nobody uses it from here on.
    unsafe {
        async_loop_shutdown(owner);
        let config = (*owner).config;
        if config.make_default_for_current_thread
            && let (Some(get), Some(set)) = (config.getter, config.setter)
            && get() == owner
        {
            set(ptr::null_mut());
        }
        drop(Box::from_raw(owner));
    }
}

/// How one unit of work went.
enum Step {
    Done,
    Ended(Status),
    Idle,
}

/// Does what is due, or waits for it until the deadline.
///
/// # Safety
/// L1, L2.
unsafe fn step(owner: *mut Loop, deadline: Option<Instant>, may_wait: bool) -> Step {
    // SAFETY: L1.
    let (shared, config) = unsafe { (&(*owner).shared, (*owner).config) };
    let mut queue = shared.queue.lock();
    let task = loop {
        match queue.state {
            SHUTDOWN => return Step::Ended(ERR_BAD_STATE),
            QUIT => return Step::Ended(ERR_CANCELED),
            _ => {}
        }
        let now = Instant::now();
        let next = queue.tasks.first_key_value().map(|((at, _), _)| *at);
        if next.is_some_and(|at| at <= now)
            && let Some((_, task)) = queue.tasks.pop_first()
        {
            break task;
        }
        if !may_wait {
            return Step::Idle;
        }
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Step::Ended(ERR_TIMED_OUT);
        }
        match next.into_iter().chain(deadline).min() {
            Some(until) => drop(shared.changed.wait_until(&mut queue, until)),
            None => shared.changed.wait(&mut queue),
        }
    };
    drop(queue);
    // SAFETY: the configuration's own functions (L2).
    unsafe {
        if let Some(prologue) = config.prologue {
            prologue(owner, config.data);
        }
        task();
        if let Some(epilogue) = config.epilogue {
            epilogue(owner, config.data);
        }
    }
    Step::Done
}

/// # Safety
/// L1, L2.
unsafe fn run(owner: *mut Loop, deadline: Option<Instant>, once: bool, may_wait: bool) -> Status {
    // SAFETY: L1.
    let shared = unsafe { (*owner).shared.clone() };
    shared.queue.lock().running += 1;
    let status = loop {
        // SAFETY: L1, L2.
        match unsafe { step(owner, deadline, may_wait) } {
            Step::Done if once => break OK,
            Step::Done => {}
            Step::Idle => break OK,
            Step::Ended(status) => break status,
        }
    };
    shared.queue.lock().running -= 1;
    status
}

pub unsafe extern "C" fn async_loop_run(owner: *mut Loop, deadline: i64, once: bool) -> Status {
    // SAFETY: L1, L2.
    unsafe { run(owner, zircon::instant_of(deadline), once, true) }
}

pub unsafe extern "C" fn async_loop_run_until_idle(owner: *mut Loop) -> Status {
    // SAFETY: L1, L2.
    unsafe { run(owner, None, false, false) }
}

pub unsafe extern "C" fn async_loop_quit(owner: *mut Loop) {
    // SAFETY: L1.
    let shared = unsafe { &(*owner).shared };
    let mut queue = shared.queue.lock();
    if queue.state == RUNNABLE {
        queue.state = QUIT;
        shared.changed.notify_all();
    }
}

pub unsafe extern "C" fn async_loop_reset_quit(owner: *mut Loop) -> Status {
    // SAFETY: L1.
    let mut queue = unsafe { &(*owner).shared }.queue.lock();
    if queue.state == SHUTDOWN || queue.running > 0 {
        return ERR_BAD_STATE;
    }
    queue.state = RUNNABLE;
    OK
}

pub unsafe extern "C" fn async_loop_get_state(owner: *mut Loop) -> u32 {
    // SAFETY: L1.
    unsafe { &(*owner).shared }.queue.lock().state
}

pub unsafe extern "C" fn async_loop_start_thread(
    owner: *mut Loop,
    name: *const c_char,
    out: *mut libc::pthread_t,
) -> Status {
    // SAFETY: L1.
    let this = unsafe { &*owner };
    if this.shared.queue.lock().state == SHUTDOWN {
        return ERR_BAD_STATE;
    }
    let mut builder = std::thread::Builder::new();
    if !name.is_null() {
        // SAFETY: C1.
        builder = builder.name(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
    }
    let runner = Runner(owner);
    let Ok(thread) = builder.spawn(move || runner.run()) else {
        return ERR_NO_MEMORY;
    };
    // SAFETY: C1.
    unsafe { abi::put(out, thread.as_pthread_t()) };
    this.threads.lock().push(thread);
    OK
}

pub unsafe extern "C" fn async_loop_join_threads(owner: *mut Loop) {
    // SAFETY: L1.
    if let Some(owner) = unsafe { owner.as_ref() } {
        join_threads(owner);
    }
}
