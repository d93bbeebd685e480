//! Threads with a table of descriptors of their own.
//!
//! The threads of a program share one table, in which any of them may close a number and give it to another
//! file. A library whose thread keeps descriptors between calls therefore keeps them in a table that only
//! this thread has: nothing the program does to its own table reaches them, they reach nothing of the
//! program's, and a forked child, which gets a copy of its parent's table, does not inherit them.
//!
//! Invariant **A1**: only calls that take numbers.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Standard input, output and error have the numbers below.
const FIRST_ORDINARY: RawFd = 3;

/// Gives the calling thread a table of its own that holds one descriptor of the table it had. The descriptor
/// stays open in the old table, too.
///
/// Standard input, output and error are open in the new table and lead nowhere: what a library prints by
/// mistake does not get into one of the thread's own files.
///
/// Requires `close_range` of Linux 5.9, or `unshare` and `/proc`.
///
/// # Errors
/// The system does not permit it: then the thread must not continue, as its table may be empty.
///
/// # Safety
/// The calling thread uses no descriptor that was opened before this call but the one returned, and no other
/// thread uses a descriptor that the calling thread opens later. `kept` is open, and no other thread closes
/// it before this has returned.
pub unsafe fn separate(kept: RawFd) -> Result<OwnedFd> {
    let failed = |source| Error::io("cannot give a thread descriptors of its own", source);
    // Nothing above the descriptor is copied, so nothing of it has to be closed.
    let is_cut = close_range(kept + 1, RawFd::MAX, libc::CLOSE_RANGE_UNSHARE)
        .and_then(|()| if kept > 0 { close_range(0, kept - 1, 0) } else { Ok(()) });
    if is_cut.is_err() {
        // SAFETY: a number (A1).
        if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        close_all_but(kept).map_err(failed)?;
    }
    // SAFETY: the table is this thread's alone, and the caller guarantees that no other object owns the
    // number.
    let kept = unsafe { OwnedFd::from_raw_fd(kept) };
    let kept = match kept.as_raw_fd() {
        FIRST_ORDINARY.. => kept,
        _ => fcntl_dupfd_cloexec(&kept, FIRST_ORDINARY).map_err(|source| failed(source.into()))?,
    };
    loop {
        // Not connected: writes to it are refused.
        let nowhere = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .map_err(|source| failed(source.into()))?;
        if nowhere.as_raw_fd() >= FIRST_ORDINARY {
            return Ok(kept);
        }
        std::mem::forget(nowhere);
    }
}

fn close_range(first: RawFd, last: RawFd, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: numbers (A1).
    let status = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Without `close_range`.
fn close_all_but(kept: RawFd) -> io::Result<()> {
    let entries = std::fs::read_dir("/proc/thread-self/fd")?;
    let numbers: Vec<RawFd> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number != kept) {
        // SAFETY: a number (A1), in a table that only this thread has.
        unsafe { libc::close(number) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use std::collections::BTreeSet;
    use std::fs::File;
    use std::sync::mpsc::channel;

    fn numbers() -> BTreeSet<RawFd> {
        let entries = std::fs::read_dir("/proc/thread-self/fd").unwrap();
        let all = entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap());
        // That of the directory was the last to be opened, and is closed by now.
        let mut all: BTreeSet<RawFd> = all.collect();
        all.retain(|number| crate::identity::is_open(*number));
        all
    }

    fn check(separate: unsafe fn(RawFd) -> Result<OwnedFd>) {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = theirs.into_handle().into_fd();
        let number = theirs.as_raw_fd();
        let shared = File::open("/proc/self/exe").unwrap();
        let (separated, is_separate) = channel();
        let (closed, is_closed) = channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: the thread uses nothing but what it gets, and the descriptor is closed only afterwards.
            let kept = unsafe { separate(number) }.unwrap();
            let before = numbers();
            separated.send(()).unwrap();
            is_closed.recv().unwrap();
            assert_eq!(before, BTreeSet::from([0, 1, 2, kept.as_raw_fd()]));
            assert_eq!(numbers(), before, "what others close is still open here");
            let own = File::open("/proc/self/exe").unwrap();
            let channel = Channel::from_handle(crate::Handle::new(kept)).unwrap();
            channel.write(b"still here", Vec::new()).unwrap();
            own.as_raw_fd()
        });
        is_separate.recv().unwrap();
        drop(theirs);
        closed.send(()).unwrap();
        thread.join().unwrap();
        assert_eq!(ours.read().unwrap().bytes, b"still here");
        assert!(shared.metadata().is_ok(), "what others have stays open");
    }

    #[test]
    fn a_separate_thread_shares_no_descriptors() {
        check(separate);
    }

    #[test]
    fn it_does_so_without_close_range() {
        /// As [`separate`], from the point on where `close_range` has failed.
        unsafe fn separate_slowly(kept: RawFd) -> Result<OwnedFd> {
            // SAFETY: a number; the rest as the caller has promised.
            unsafe {
                assert_eq!(libc::unshare(libc::CLONE_FILES), 0);
                close_all_but(kept).unwrap();
                separate(kept)
            }
        }
        check(separate_slowly);
    }
}
