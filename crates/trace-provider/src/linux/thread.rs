//! Threads of this library in a program that has others.
//!
//! Invariants:
//!
//! * **S1** Signal sets are initialized by the C library before they are read.
//! * **S2** A thread that has left the program's table uses nothing that was opened in it, and runs no code
//!   of the program.
#![allow(unsafe_code)]

use crate::linux::queue::queue;
use crate::linux::unrecorded::Unrecorded;
use core::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::thread::{Builder, JoinHandle};
use zx_sim::{Channel, Guarded, Handle, WakeReceiver};

/// Bytes of a thread's stack. Said here, as it would else be read from the environment.
const STACK_BYTES: usize = 2 << 20;

/// Spawns a named thread that never runs the program's signal handlers. None when the process can have no
/// more threads.
pub(crate) fn spawn_blocked(name: &str, body: Box<dyn FnOnce() + Send>) -> Option<JoinHandle<()>> {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initializes `all`; `pthread_sigmask` reads it and initializes `before` (S1).
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    // The new thread inherits the mask.
    let thread = Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(body).ok();
    // SAFETY: `before` was initialized above (S1).
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut()) };
    thread
}

/// Spawns a thread as [`spawn_blocked`], with a table of descriptors of its own that has nothing but one end
/// of a pair of wakes, and perhaps a channel. Waits until it has. It runs none of the program's code.
///
/// # Errors
/// The process can have no more threads, or the system permits no table of its own.
pub(crate) fn spawn_apart(
    name: &str,
    receiver: WakeReceiver,
    channel: Option<Channel>,
    body: impl FnOnce(WakeReceiver, Option<Channel>) + Send + 'static,
) -> Result<JoinHandle<()>, Unrecorded> {
    let receiver = Guarded::new(receiver).ok_or(Unrecorded::Closed)?;
    let number = std::os::fd::AsFd::as_fd(&receiver).as_raw_fd();
    let channel = channel.map(|channel| Guarded::new(channel).ok_or(Unrecorded::Closed));
    let channel = channel.transpose()?;
    let other = channel.as_ref().map(|channel| std::os::fd::AsFd::as_fd(channel).as_raw_fd());
    let (done, is_done) = queue();
    let separated = Box::new(move || {
        // SAFETY: the thread has nothing but these descriptors, which are open in the program's table until
        // it has reported that it is done (S2).
        let separated = match other {
            // SAFETY: as above.
            None => unsafe { zx_sim::apart::separate([number]) }.map(|[receiver]| (receiver, None)),
            // SAFETY: as above.
            Some(other) => unsafe { zx_sim::apart::separate([number, other]) }
                .map(|[receiver, other]| (receiver, Channel::from_handle(Handle::new(other)).ok())),
        };
        match separated {
            Ok((receiver, channel)) => {
                done.send(Ok(()));
                body(WakeReceiver::from_fd(receiver), channel);
            }
            Err(error) => _ = done.send(Err(error)),
        }
    });
    let thread = spawn_blocked(name, separated).ok_or(Unrecorded::NoThreads)?;
    is_done.receive(None).map_err(|_| Unrecorded::ThreadEnded)??;
    Ok(thread)
}
