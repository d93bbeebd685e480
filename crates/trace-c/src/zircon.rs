//! Clocks, handles and names of results.
#![allow(unsafe_code)]

use crate::abi::{CStrRef, ERR_BAD_HANDLE, ERR_INVALID_ARGS, ERR_TIMED_OUT, ERR_WRONG_TYPE, OK, Out, Status};
use crate::fork_lock::ForkLock;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace_format::kernel_object::{TYPE_PROCESS, TYPE_THREAD};

/// The handles of the process and of the thread that uses it.
const PROCESS_SELF: u32 = 1;
const THREAD_SELF: u32 = 2;
/// The first handle of other objects; as in the system that the headers come from the lowest bits are set.
const FIRST: u32 = 0x13;
const STEP: u32 = 4;

const TYPE_CHANNEL: u8 = 4;
const TYPE_EVENT: u8 = 5;

/// Something that can be signalled.
#[derive(Default)]
pub struct Event {
    signals: Mutex<u32>,
    changed: Condvar,
}

impl Event {
    pub fn signal(&self, clear: u32, set: u32) {
        let mut signals = self.signals.lock();
        *signals = *signals & !clear | set;
        self.changed.notify_all();
    }

    /// Waits for one of these signals. Returns the signals at the end, and whether a wanted one is among
    /// them.
    fn wait(&self, wanted: u32, deadline: Option<Instant>) -> (u32, bool) {
        let mut signals = self.signals.lock();
        while *signals & wanted == 0 {
            let is_late = match deadline {
                Some(deadline) => self.changed.wait_until(&mut signals, deadline).timed_out(),
                None => {
                    self.changed.wait(&mut signals);
                    false
                }
            };
            if is_late {
                break;
            }
        }
        (*signals, *signals & wanted != 0)
    }
}

/// What a handle stands for.
#[derive(Clone)]
enum Object {
    Event(Arc<Event>),
    /// A connection to the manager, which is made when it is used.
    Connection,
}

#[derive(Default)]
struct Handles {
    objects: BTreeMap<u32, Object>,
    last: Option<u32>,
}

static HANDLES: ForkLock<Handles> = ForkLock::new(Handles { objects: BTreeMap::new(), last: None });

fn insert(object: Object) -> u32 {
    HANDLES.with(|handles| {
        let handle = handles.last.map_or(FIRST, |last| last.wrapping_add(STEP).max(FIRST));
        handles.last = Some(handle);
        handles.objects.insert(handle, object);
        handle
    })
}

fn find(handle: u32) -> Option<Object> {
    HANDLES.with(|handles| handles.objects.get(&handle).cloned())
}

fn remove(handle: u32) -> Option<Object> {
    HANDLES.with(|handles| handles.objects.remove(&handle))
}

/// The event behind a handle.
pub fn event(handle: u32) -> Result<Arc<Event>, Status> {
    match find(handle) {
        Some(Object::Event(event)) => Ok(event),
        Some(Object::Connection) => Err(ERR_WRONG_TYPE),
        None if handle == PROCESS_SELF || handle == THREAD_SELF => Err(ERR_WRONG_TYPE),
        None => Err(ERR_BAD_HANDLE),
    }
}

/// A new connection to the manager.
pub fn new_connection() -> u32 {
    insert(Object::Connection)
}

/// Uses a connection to the manager up; false if the handle is not one.
pub fn consume_connection(handle: u32) -> bool {
    matches!(remove(handle), Some(Object::Connection))
}

/// What a kernel object record contains about a handle.
pub struct Description {
    pub object_type: u8,
    pub koid: u64,
    pub name: String,
}

pub fn describe(handle: u32) -> Option<Description> {
    let of = |object_type, koid, name| Description { object_type, koid, name };
    match handle {
        PROCESS_SELF => Some(of(TYPE_PROCESS, zx_sim::process_koid(), zx_sim::process_name())),
        THREAD_SELF => Some(of(TYPE_THREAD, thread_koid(), thread_name())),
        _ => {
            let object_type = match find(handle)? {
                Object::Event(_) => TYPE_EVENT,
                Object::Connection => TYPE_CHANNEL,
            };
            Some(of(object_type, u64::from(handle), String::new()))
        }
    }
}

/// The id of the calling thread.
pub fn thread_koid() -> u64 {
    // SAFETY: gettid has no arguments, always succeeds and accesses no memory.
    unsafe { libc::syscall(libc::SYS_gettid) as u64 }
}

fn thread_name() -> String {
    let mut name = [0_u8; 16];
    // SAFETY: the call stores a name of at most 16 bytes, with its NUL, which is the size of the array.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..length]).into_owned()
}

pub extern "C" fn zx_process_self() -> u32 {
    PROCESS_SELF
}

pub extern "C" fn zx_thread_self() -> u32 {
    THREAD_SELF
}

pub extern "C" fn zx_ticks_get() -> i64 {
    zx_sim::ticks::now() as i64
}

pub extern "C" fn zx_ticks_get_boot() -> i64 {
    zx_sim::ticks::now() as i64
}

pub extern "C" fn zx_ticks_per_second() -> i64 {
    trace_provider::ticks_per_second() as i64
}

pub fn monotonic_nanos() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call stores into the structure, which is a local of its type.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

pub extern "C" fn zx_clock_get_monotonic() -> i64 {
    monotonic_nanos()
}

pub extern "C" fn zx_deadline_after(duration: i64) -> i64 {
    monotonic_nanos().saturating_add(duration)
}

/// The moment of a deadline on the monotonic clock; none for one that never comes.
pub fn instant_of(deadline: i64) -> Option<Instant> {
    let left = deadline.saturating_sub(monotonic_nanos());
    if deadline == i64::MAX {
        return None;
    }
    // A deadline that cannot be represented never comes either.
    Instant::now().checked_add(Duration::from_nanos(left.max(0) as u64))
}

pub extern "C" fn zx_nanosleep(deadline: i64) -> Status {
    let left = deadline.saturating_sub(monotonic_nanos()).max(0);
    std::thread::sleep(Duration::from_nanos(left as u64));
    OK
}

pub extern "C" fn zx_event_create(options: u32, out: Out<'_, u32>) -> Status {
    if options != 0 || out.is_null() {
        return ERR_INVALID_ARGS;
    }
    out.write(insert(Object::Event(Arc::default())));
    OK
}

pub extern "C" fn zx_handle_close(handle: u32) -> Status {
    match remove(handle) {
        Some(_) => OK,
        None if handle == 0 => OK,
        None => ERR_BAD_HANDLE,
    }
}

pub extern "C" fn zx_object_signal(handle: u32, clear: u32, set: u32) -> Status {
    match event(handle) {
        Ok(event) => {
            event.signal(clear, set);
            OK
        }
        Err(status) => status,
    }
}

pub extern "C" fn zx_object_wait_one(
    handle: u32,
    signals: u32,
    deadline: i64,
    observed: Out<'_, u32>,
) -> Status {
    let event = match event(handle) {
        Ok(event) => event,
        Err(status) => return status,
    };
    let (found, is_there) = event.wait(signals, instant_of(deadline));
    observed.write(found);
    if is_there { OK } else { ERR_TIMED_OUT }
}

pub extern "C" fn zx_status_get_string(status: Status) -> CStrRef<'static> {
    let name = match status {
        0 => c"ZX_OK",
        -1 => c"ZX_ERR_INTERNAL",
        -2 => c"ZX_ERR_NOT_SUPPORTED",
        -3 => c"ZX_ERR_NO_RESOURCES",
        -4 => c"ZX_ERR_NO_MEMORY",
        -10 => c"ZX_ERR_INVALID_ARGS",
        -11 => c"ZX_ERR_BAD_HANDLE",
        -12 => c"ZX_ERR_WRONG_TYPE",
        -14 => c"ZX_ERR_OUT_OF_RANGE",
        -15 => c"ZX_ERR_BUFFER_TOO_SMALL",
        -20 => c"ZX_ERR_BAD_STATE",
        -21 => c"ZX_ERR_TIMED_OUT",
        -22 => c"ZX_ERR_SHOULD_WAIT",
        -23 => c"ZX_ERR_CANCELED",
        -24 => c"ZX_ERR_PEER_CLOSED",
        -25 => c"ZX_ERR_NOT_FOUND",
        -26 => c"ZX_ERR_ALREADY_EXISTS",
        -27 => c"ZX_ERR_ALREADY_BOUND",
        -28 => c"ZX_ERR_UNAVAILABLE",
        -30 => c"ZX_ERR_ACCESS_DENIED",
        -40 => c"ZX_ERR_IO",
        -54 => c"ZX_ERR_NO_SPACE",
        _ => c"(UNKNOWN)",
    };
    name.into()
}
