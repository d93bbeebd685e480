//! Writing without signals.
//!
//! A pipe without a reader raises SIGPIPE, and a file that is as long as the process may make one raises
//! SIGXFSZ: both end a program that does not expect them. The kernel sends them to the thread that writes.
//!
//! Invariant **Q1**: sets are initialized before they are read, and the calls take pointers to memory of
//! ours.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

const RAISED: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// While it lives, what the calling thread writes raises no signal: writing fails.
#[derive(Debug)]
pub struct Quiet {
    /// The signals that this took from the thread.
    blocked: libc::sigset_t,
    /// It is of one thread.
    _thread: core::marker::PhantomData<*const ()>,
}

impl Quiet {
    /// From here on.
    #[must_use]
    pub fn new() -> Self {
        let (mut blocked, mut before, mut pending) =
            (MaybeUninit::uninit(), MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::uninit());
        // SAFETY: all sets are initialized before they are read (Q1).
        let blocked = unsafe {
            libc::sigemptyset(blocked.as_mut_ptr());
            libc::sigpending(pending.as_mut_ptr());
            RAISED.iter().for_each(|signal| _ = libc::sigaddset(blocked.as_mut_ptr(), *signal));
            libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), before.as_mut_ptr());
            for signal in RAISED {
                // One that waits for the program stays.
                if libc::sigismember(pending.as_ptr(), signal) == 1
                    || libc::sigismember(before.as_ptr(), signal) == 1
                {
                    libc::sigdelset(blocked.as_mut_ptr(), signal);
                }
            }
            blocked.assume_init()
        };
        Self { blocked, _thread: core::marker::PhantomData }
    }
}

impl Default for Quiet {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a set that was initialized, and a time (Q1).
        unsafe {
            while libc::sigtimedwait(&raw const self.blocked, core::ptr::null_mut(), &raw const none) > 0 {}
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const self.blocked, core::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_raised_meanwhile_is_taken_back() {
        let quiet = Quiet::new();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // SAFETY: std has the signal ignored; here it would end the process. The number is a pipe's.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        assert_eq!(rustix::io::write(&writer, b"lost"), Err(rustix::io::Errno::PIPE));
        {
            let _inner = Quiet::new();
            assert_eq!(rustix::io::write(&writer, b"lost"), Err(rustix::io::Errno::PIPE));
        }
        drop(quiet);
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    }
}
