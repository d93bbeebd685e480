//! A library that stays loaded.
//!
//! A program may unload a plugin, and with it a library that has a thread, or handlers of forks and ends of
//! threads, in the program.
//!
//! Invariant **U1**: the calls take addresses and texts that the loader knows.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

/// The bits of an address that are its place in a page.
const IN_PAGE: usize = 4095;

/// From now on the library that this code is in stays loaded, unless it is the executable, which always does.
pub fn stay() {
    // No lock, which a forked child could find taken: to do it twice does no harm.
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if IS_DONE.load(Ordering::Relaxed) {
        return;
    }
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: an address of this library, and a structure that the call fills; zeros are values of all its
    // fields, so that it is initialized even if the call fails (U1).
    let (found, info) =
        unsafe { (libc::dladdr((&raw const IS_DONE).cast(), info.as_mut_ptr()), info.assume_init()) };
    // SAFETY: a number in, a number out.
    let executable = unsafe { libc::getauxval(libc::AT_PHDR) } as usize & !IN_PAGE;
    if found != 0 && !info.dli_fname.is_null() && info.dli_fbase.addr() != executable {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the name that the loader has for what is loaded, ended by a NUL. Nothing is loaded by this
        // call (`RTLD_NOLOAD`), so that no constructor runs (U1).
        unsafe { libc::dlopen(info.dli_fname, flags) };
    }
    IS_DONE.store(true, Ordering::Relaxed);
}
