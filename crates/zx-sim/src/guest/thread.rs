//! Threads of a library in a program that has others.
//!
//! Invariants:
//!
//! * **S1** Signal sets are initialized by the C library before they are read.
//! * **S2** A thread that has left the program's table uses nothing that was opened in it, and runs no code
//!   of the program.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::guest::apart::separate_all;
use crate::guest::identity::{Guarded, Identity};
use crate::guest::loaded;
use core::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Bytes of a thread's stack. Said here, as it would else be read from the environment.
const STACK_BYTES: usize = 2 << 20;

/// Calls a function while the calling thread takes no signals.
pub(crate) fn without_signals<R>(call: impl FnOnce() -> R) -> R {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initializes `all`; `pthread_sigmask` reads it and initializes `before` (S1).
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = call();
    // SAFETY: `before` was initialized above (S1).
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut()) };
    result
}

/// Spawns a named thread that never runs the program's signal handlers. Its code stays loaded.
///
/// # Errors
/// The process can have no more threads.
pub fn spawn_blocked(name: &str, body: Box<dyn FnOnce() + Send>) -> Result<JoinHandle<()>> {
    loaded::stay();
    let thread = Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    // The new thread inherits the mask.
    let spawned = without_signals(|| thread.spawn(body));
    spawned.map_err(|source| Error::io("the process can have no more threads", source))
}

/// How long a thread is waited for to begin. While a library is loaded none begins before the loader is done,
/// which waits for the constructors of the library.
pub const BEGIN_WAIT: Duration = Duration::from_secs(1);

/// A thread with descriptors of its own.
#[derive(Debug)]
pub struct Apart {
    /// For whom it is.
    pub thread: JoinHandle<()>,
    /// Whether it has begun within [`BEGIN_WAIT`]. Else it does when it can.
    pub has_begun: bool,
}

/// Spawns a thread as [`spawn_blocked`], with a table of descriptors of its own that has nothing but these,
/// which the program's table has no longer when the thread has begun. It runs none of the program's code.
///
/// # Errors
/// The process can have no more threads, or the system permits no table of its own.
pub fn spawn_apart(
    name: &str,
    kept: Vec<OwnedFd>,
    body: Box<dyn FnOnce(Vec<OwnedFd>) + Send>,
) -> Result<Apart> {
    let closed = || Error::io("its descriptors were closed", rustix::io::Errno::BADF);
    let kept: Option<Vec<_>> = kept.into_iter().map(Guarded::new).collect();
    let kept = kept.ok_or_else(closed)?;
    let identities: Vec<_> = kept.iter().map(Guarded::identity).collect();
    let numbers: Vec<_> = kept.iter().map(|kept| kept.as_fd().as_raw_fd()).collect();
    let done = Arc::new((Mutex::new(None), Condvar::new()));
    let place = Arc::clone(&done);
    let separated = Box::new(move || {
        // SAFETY: the thread has nothing but these descriptors, which are open in the program's table until
        // it has reported that it is done (S2).
        let separated = unsafe { separate_all(&numbers) };
        let separated = separated.and_then(|own| {
            // Another thread may have closed them just before, and put its own in their places.
            if own.iter().zip(&identities).all(|(own, identity)| Identity::of(own) == Some(*identity)) {
                return Ok(own);
            }
            core::mem::forget(own);
            Err(closed())
        });
        let (own, result) = separated.map_or_else(|error| (None, Err(error)), |own| (Some(own), Ok(())));
        *place.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        place.1.notify_one();
        if let Some(own) = own {
            body(own);
        }
    });
    let thread = spawn_blocked(name, separated)?;
    // Whether it is done within that time.
    let wait = move || {
        let mut result = done.0.lock().unwrap_or_else(PoisonError::into_inner);
        if result.is_none() {
            result = done.1.wait_timeout(result, BEGIN_WAIT).unwrap_or_else(PoisonError::into_inner).0;
        }
        result.take()
    };
    if let Some(result) = wait() {
        return result.map(|()| Apart { thread, has_begun: true });
    }
    let close = Box::new(move || {
        while wait().is_none() {}
        drop(kept);
    });
    // Where there can be no such thread they are closed now, and the thread finds out.
    let _ = spawn_blocked("close-beside", close);
    Ok(Apart { thread, has_begun: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_no_signals_and_shares_no_descriptors() {
        let _alone = crate::guest::apart::COPIES.lock();
        let (reader, writer) = std::io::pipe().unwrap();
        let status = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let before = status();
        let body = Box::new(move |own: Vec<OwnedFd>| {
            // All but those of the C library.
            let text = status();
            assert!(
                text.contains("SigBlk:\tfffffffe7ffbfeff") || text.contains("SigBlk:\tffffffff"),
                "{text}"
            );
            let [own] = <[_; 1]>::try_from(own).unwrap();
            std::io::Write::write_all(&mut std::fs::File::from(own), b"here").unwrap();
        });
        let thread = spawn_apart("apart", vec![writer.into()], body).unwrap();
        assert_eq!(std::io::read_to_string(reader).unwrap(), "here");
        thread.thread.join().unwrap();
        let mask = |text: &str| text.lines().find(|line| line.starts_with("SigBlk")).map(str::to_owned);
        assert_eq!(mask(&status()), mask(&before));
    }
}
