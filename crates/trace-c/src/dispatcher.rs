//! The loop: runs callbacks, on threads of its own or on a thread of the program that runs it.
//!
//! Invariants:
//!
//! * **L1** An `async_loop_t*` is from `async_loop_create`, and is destroyed once: when no other thread uses
//!   it, and not by a callback that the loop runs. An `async_dispatcher_t*` is the same pointer. So both are
//!   references, which are valid for the call.
//! * **L2** The functions of a configuration, and the data that it names, live as long as the loop, and may
//!   be used on each thread that runs it.
#![allow(unsafe_code)]

use crate::abi::{
    CStrRef, ERR_BAD_STATE, ERR_CANCELED, ERR_INVALID_ARGS, ERR_NO_MEMORY, ERR_TIMED_OUT, OK, Out, Status,
};
use crate::{handler, zircon};
use core::cell::Cell;
use core::ffi::c_void;
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

type GetDefault = extern "C" fn() -> *const Loop;
type SetDefault = extern "C" fn(*const Loop);
type Callback = unsafe extern "C" fn(&Loop, *mut c_void);

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

// SAFETY: `data` is only passed to the callbacks, which the program lends, with it, to any thread (L2).
unsafe impl Send for Config {}
// SAFETY: no field is ever written; `data` is lent to several threads at once (L2).
unsafe impl Sync for Config {}

impl Config {
    const fn new(has_default: bool, make_default_for_current_thread: bool) -> Self {
        let getter: GetDefault = async_get_default_dispatcher;
        let setter: SetDefault = async_set_default_dispatcher;
        Self {
            getter: if has_default { Some(getter) } else { None },
            setter: if has_default { Some(setter) } else { None },
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
    /// Runs a task on the loop at a time. The task is dropped, if the loop is shut down before.
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

impl Loop {
    /// What a dispatcher's users share with it.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Makes this loop the default of the calling thread, if the configuration has such a thing.
    fn set_default(&self) {
        if let Some(set) = self.config.setter {
            set(self);
        }
    }

    fn call(&self, callback: Option<Callback>) {
        if let Some(callback) = callback {
            // SAFETY: a function of the configuration with the data of the configuration, on a thread that
            // runs the loop (L2).
            unsafe { callback(self, self.config.data) };
        }
    }
}

/// A loop that a thread of its own runs.
struct Runner(*const Loop);

// SAFETY: a loop is used on many threads. The pointer stays valid until `async_loop_destroy` has joined this
// thread (L1).
unsafe impl Send for Runner {}

impl Runner {
    fn run(self) {
        // SAFETY: from a reference, and the loop is there until this thread was joined (L1).
        let owner = unsafe { &*self.0 };
        owner.set_default();
        run(owner, None, false, true);
    }
}

std::thread_local! {
    static DEFAULT: Cell<*const Loop> = const { Cell::new(ptr::null()) };
}

pub extern "C" fn async_get_default_dispatcher() -> *const Loop {
    DEFAULT.try_with(Cell::get).unwrap_or(ptr::null())
}

pub extern "C" fn async_set_default_dispatcher(dispatcher: *const Loop) {
    let _ = DEFAULT.try_with(|default| default.set(dispatcher));
}

pub extern "C" fn async_loop_create(config: Option<&Config>, out: Out<'_, *mut Loop>) -> Status {
    if out.is_null() {
        return ERR_INVALID_ARGS;
    }
    let config = config.copied().unwrap_or(const { Config::new(false, false) });
    let queue = Queue { state: RUNNABLE, tasks: BTreeMap::new(), last: 0, running: 0 };
    let shared = Arc::new(Shared { queue: Mutex::new(queue), changed: Condvar::new() });
    let owner = Box::leak(Box::new(Loop { shared, config, threads: Mutex::new(Vec::new()) }));
    let owner = ptr::from_mut(owner);
    out.write(owner);
    if config.make_default_for_current_thread
        && let Some(set) = config.setter
    {
        set(owner);
    }
    OK
}

pub extern "C" fn async_loop_get_dispatcher(owner: *mut Loop) -> *mut Loop {
    owner
}

pub extern "C" fn async_loop_from_dispatcher(dispatcher: *mut Loop) -> *mut Loop {
    dispatcher
}

pub extern "C" fn async_loop_shutdown(owner: Option<&Loop>) {
    let Some(owner) = owner else {
        return;
    };
    // Ends the trace that is recorded with this dispatcher, for which the loop still has to run.
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
    // SAFETY: null, or a loop that was not destroyed (L1). The reference ends before the loop does.
    let Some(this) = (unsafe { owner.as_ref() }) else {
        return;
    };
    async_loop_shutdown(Some(this));
    let config = this.config;
    if config.make_default_for_current_thread
        && let (Some(get), Some(set)) = (config.getter, config.setter)
        && ptr::eq(get(), owner)
    {
        set(ptr::null());
    }
    // SAFETY: from `Box::leak` in `async_loop_create`, and destroyed once. No thread uses the loop any more:
    // its own were joined, and those of the program have left it (L1).
    drop(unsafe { Box::from_raw(owner) });
}

/// How one unit of work went.
enum Step {
    Done,
    Ended(Status),
    Idle,
}

/// Does what is due, or waits for it until the deadline.
fn step(owner: &Loop, deadline: Option<Instant>, may_wait: bool) -> Step {
    let shared = &owner.shared;
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
    owner.call(owner.config.prologue);
    task();
    owner.call(owner.config.epilogue);
    Step::Done
}

fn run(owner: &Loop, deadline: Option<Instant>, once: bool, may_wait: bool) -> Status {
    let shared = owner.shared();
    shared.queue.lock().running += 1;
    let status = loop {
        match step(owner, deadline, may_wait) {
            Step::Done if once => break OK,
            Step::Done => {}
            Step::Idle => break OK,
            Step::Ended(status) => break status,
        }
    };
    shared.queue.lock().running -= 1;
    status
}

pub extern "C" fn async_loop_run(owner: &Loop, deadline: i64, once: bool) -> Status {
    run(owner, zircon::instant_of(deadline), once, true)
}

pub extern "C" fn async_loop_run_until_idle(owner: &Loop) -> Status {
    run(owner, None, false, false)
}

pub extern "C" fn async_loop_quit(owner: &Loop) {
    let mut queue = owner.shared.queue.lock();
    if queue.state == RUNNABLE {
        queue.state = QUIT;
        owner.shared.changed.notify_all();
    }
}

pub extern "C" fn async_loop_reset_quit(owner: &Loop) -> Status {
    let mut queue = owner.shared.queue.lock();
    if queue.state == SHUTDOWN || queue.running > 0 {
        return ERR_BAD_STATE;
    }
    queue.state = RUNNABLE;
    OK
}

pub extern "C" fn async_loop_get_state(owner: &Loop) -> u32 {
    owner.shared.queue.lock().state
}

pub extern "C" fn async_loop_start_thread(
    owner: &Loop,
    name: CStrRef<'_>,
    out: Out<'_, libc::pthread_t>,
) -> Status {
    if owner.shared.queue.lock().state == SHUTDOWN {
        return ERR_BAD_STATE;
    }
    let mut builder = std::thread::Builder::new();
    if let Some(name) = name.to_string_lossy() {
        builder = builder.name(name.into_owned());
    }
    let runner = Runner(owner);
    let Ok(thread) = builder.spawn(move || runner.run()) else {
        return ERR_NO_MEMORY;
    };
    out.write(thread.as_pthread_t());
    owner.threads.lock().push(thread);
    OK
}

pub extern "C" fn async_loop_join_threads(owner: Option<&Loop>) {
    if let Some(owner) = owner {
        join_threads(owner);
    }
}
