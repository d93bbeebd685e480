//! A thread that never runs the application's signal handlers.
//!
//! Invariant **S1**: signal sets are initialized by the C library before they are read.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

/// Spawns a named thread with all signals blocked. None when the process can have no more threads.
pub(crate) fn spawn_blocked(name: &str, body: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initializes `all`; `pthread_sigmask` reads it and initializes `before` (S1).
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    // The new thread inherits the mask.
    let thread = Builder::new().name(name.to_owned()).spawn(body).ok();
    // SAFETY: `before` was initialized above (S1).
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut()) };
    thread
}
