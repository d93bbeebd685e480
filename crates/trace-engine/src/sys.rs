//! The system calls of the engine: `membarrier`, thread ids and names, fork and exit notices.
//!
//! Invariants:
//!
//! * **S1** Only calls that take numbers or pointers to memory of ours, of the size that is passed with them.
#![allow(unsafe_code)]

use crate::sync::{Ordering, process};
use core::ffi::c_void;

const MEMBARRIER_PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

#[cfg(not(modelled))]
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: numbers only (S1).
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Models have no such fence: each event has a full one of its own.
#[cfg(modelled)]
fn membarrier(_command: libc::c_int) -> bool {
    crate::sync::fence(Ordering::SeqCst);
    true
}

const UNKNOWN: u8 = 0;
const MISSING: u8 = 1;
const AVAILABLE: u8 = 2;
/// It was there, and then the kernel has refused it.
const LOST: u8 = 3;

/// No `OnceLock`: a child that is forked while another thread asks would wait for that thread for ever. To
/// ask twice does no harm.
static MEMBARRIER: process::AtomicU8 = process::AtomicU8::new(UNKNOWN);

/// Whether this kernel can fence all threads of the process from outside; asks it to prepare for that,
/// if that was not done.
///
/// In a process of one thread that takes no time. In one of several the kernel waits until all processors
/// have scheduled: some 10 ms, and seconds where something keeps a busy machine from it.
pub(crate) fn register_membarrier() -> bool {
    let mut found = MEMBARRIER.load(Ordering::SeqCst);
    if found == UNKNOWN {
        found = if membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED) { AVAILABLE } else { MISSING };
        MEMBARRIER.store(found, Ordering::SeqCst);
    }
    found == AVAILABLE
}

/// A full memory barrier on every running thread of this process that does not fence itself: false if the
/// kernel refuses, though it did not before, as when the program has installed a filter of system calls.
#[must_use]
pub(crate) fn fence_all_threads() -> bool {
    if !register_membarrier() {
        return MEMBARRIER.load(Ordering::SeqCst) == MISSING;
    }
    let is_fenced = membarrier(MEMBARRIER_PRIVATE_EXPEDITED);
    if !is_fenced {
        MEMBARRIER.store(LOST, Ordering::SeqCst);
    }
    is_fenced
}

/// The id of the calling thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: no arguments (S1); a thread id is positive and fits 32 bits.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// How long the calling thread has run on processors, in nanoseconds; 0 if the kernel does not say.
pub(crate) fn thread_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure (S1).
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if result == 0 { (time.tv_sec as u64).wrapping_mul(1_000_000_000) + time.tv_nsec as u64 } else { 0 }
}

/// The kernel's name of the calling thread: up to 15 bytes, not necessarily UTF-8.
pub(crate) fn thread_name(buffer: &mut [u8; 16]) -> &[u8] {
    // SAFETY: the call fills at most 16 bytes, which the array has (S1).
    unsafe { libc::prctl(libc::PR_GET_NAME, buffer.as_mut_ptr()) };
    let length = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    &buffer[..length]
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        look: extern "C" fn(*mut c_void, *mut c_void) -> libc::c_int,
        found: *mut c_void,
    ) -> libc::c_int;
    fn _Unwind_GetIPInfo(frame: *mut c_void, is_interrupted: *mut libc::c_int) -> usize;
}

/// Whether the calling thread is in a handler of a signal, as far as its frames can be followed: the frame
/// that a signal has interrupted is marked. Takes no lock where the C library finds frames without one (glibc
/// since 2.35), and no memory.
pub(crate) fn is_in_handler() -> bool {
    const GO_ON: libc::c_int = 0;
    const STOP: libc::c_int = 4;
    extern "C" fn look(frame: *mut c_void, found: *mut c_void) -> libc::c_int {
        let mut is_interrupted = 0;
        // SAFETY: the frame that the walk is at, and a number that the call fills (S1).
        unsafe { _Unwind_GetIPInfo(frame, &raw mut is_interrupted) };
        if is_interrupted == 0 {
            return GO_ON;
        }
        // SAFETY: from below (S1).
        unsafe { *found.cast::<bool>() = true };
        STOP
    }
    let mut found = false;
    // SAFETY: the walk ends before the variable does (S1).
    unsafe { _Unwind_Backtrace(look, (&raw mut found).cast()) };
    found
}

/// Whether a thread of this process with this id exists.
pub(crate) fn thread_exists(thread_id: u32) -> bool {
    // SAFETY: signal 0 only asks (S1).
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread_id, 0) == 0 }
}

/// Whole pages of zeroed private memory, of which nothing is allocated; null if there are none.
pub(crate) fn map_zeros(bytes: usize) -> *mut u8 {
    // SAFETY: a fresh anonymous mapping wherever the kernel likes (S1).
    let memory = unsafe { map_anonymous(core::ptr::null_mut(), bytes, 0) };
    if memory == libc::MAP_FAILED { core::ptr::null_mut() } else { memory.cast() }
}

/// The same, which reads as zero in a forked child.
pub(crate) fn map_wiped_on_fork(bytes: usize) -> *mut u8 {
    let memory = map_zeros(bytes);
    if !memory.is_null() {
        // SAFETY: a mapping of ours (S1).
        unsafe { libc::madvise(memory.cast(), bytes, libc::MADV_WIPEONFORK) };
    }
    memory
}

/// # Safety
/// With `MAP_FIXED` there is a mapping of ours, of which no code relies on what it holds.
unsafe fn map_anonymous(at: *mut c_void, bytes: usize, flags: libc::c_int) -> *mut c_void {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the caller's.
    unsafe { libc::mmap(at, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) }
}

/// Gives such pages back.
///
/// # Safety
/// They are a mapping of this process that nothing uses any more.
pub(crate) unsafe fn unmap(mapping: *mut u8, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { libc::munmap(mapping.cast(), bytes) };
}

/// Calls a function that may change `errno`, and leaves that as it is.
pub(crate) fn keeping_errno(call: impl FnOnce()) {
    // SAFETY: the calling thread's own variable (S1).
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    call();
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// `MADV_POPULATE_WRITE`, of Linux 5.14.
const POPULATE_WRITE: libc::c_int = 23;

/// Whether this kernel can [`populate`] mappings.
pub(crate) fn can_populate() -> bool {
    // SAFETY: no bytes of memory (S1).
    unsafe { libc::madvise(core::ptr::null_mut(), 0, POPULATE_WRITE) == 0 }
}

/// Allocates the memory behind a part of a mapping that is made of whole pages; false if there is none, where
/// a store would end the process, or if the kernel refuses the call. Leaves `errno` as it is.
pub(crate) fn populate(address: usize, bytes: usize) -> bool {
    let memory = core::ptr::without_provenance_mut(address);
    // SAFETY: the calling thread's own variable; memory keeps what it holds (S1).
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let mut is_backed = libc::madvise(memory, bytes, POPULATE_WRITE) == 0;
        // A signal that ends the process, or a debugger, has interrupted it.
        while !is_backed && *errno == libc::EINTR {
            is_backed = libc::madvise(memory, bytes, POPULATE_WRITE) == 0;
        }
        *errno = before;
        is_backed
    }
}

/// Puts zeroed private memory in the place of a mapping.
///
/// # Safety
/// It is a mapping of this process, and no code relies on what it holds.
pub(crate) unsafe fn map_anew(mapping: *mut u8, bytes: usize) {
    // SAFETY: as the caller promises; every word of it stays valid.
    unsafe { map_anonymous(mapping.cast(), bytes, libc::MAP_FIXED) };
}

/// Key of the exit notice plus one, once [`install_exit_notice`] made it.
static EXIT_KEY: process::AtomicU32 = process::AtomicU32::new(0);

/// What is called around a fork: before it, and after it in the parent and in the child.
pub(crate) struct ForkNotices {
    pub before: extern "C" fn(),
    pub in_parent: extern "C" fn(),
    pub in_child: extern "C" fn(),
}

/// Has the loader call a function ahead of `main`, or while it loads a plugin: one that needs nothing that is
/// initialized by then but atomics (S1).
#[cfg(not(modelled))]
macro_rules! call_on_load {
    ($function:path) => {
        #[used]
        #[allow(unsafe_code, reason = "it is among the functions that the loader calls")]
        #[unsafe(link_section = ".init_array")]
        static ON_LOAD: extern "C" fn() = $function;
    };
}
#[cfg(not(modelled))]
pub(crate) use call_on_load;

/// Installs the notices of forks, once for the process. No function may unwind.
pub(crate) fn install_fork_notices(fork: &ForkNotices) {
    static IS_DONE: process::AtomicBool = process::AtomicBool::new(false);
    if !IS_DONE.load(Ordering::Relaxed) && !IS_DONE.swap(true, Ordering::AcqRel) {
        // SAFETY: the functions are `extern "C"` and live as long as the process (S1).
        unsafe { libc::pthread_atfork(Some(fork.before), Some(fork.in_parent), Some(fork.in_child)) };
    }
}

/// Installs the notice of exiting threads, once for the process. The function may not unwind.
pub(crate) fn install_exit_notice(on_thread_exit: extern "C" fn(*mut c_void)) {
    if EXIT_KEY.load(Ordering::Relaxed) != 0 {
        return;
    }
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: the function is `extern "C"` and lives as long as the process; `key` is ours to fill (S1).
    unsafe { libc::pthread_key_create(&raw mut key, Some(on_thread_exit)) };
    // No `OnceLock`: a child that is forked meanwhile would wait for another thread for ever.
    if EXIT_KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        // SAFETY: another thread was faster; nothing has used this key (S1).
        unsafe { libc::pthread_key_delete(key) };
    }
}

/// Asks for an exit notice with this value on the calling thread.
pub(crate) fn request_exit_notice(value: usize) {
    if let Some(key) = EXIT_KEY.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key exists; the value is never dereferenced by the C library (S1).
        unsafe { libc::pthread_setspecific(key, core::ptr::without_provenance(value)) };
    }
}
