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
use crate::guest::{FIRST_ORDINARY, beyond_standard};
use rustix::event::epoll;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

std::thread_local! {
    static IS_APART: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread has a table of its own: no thread of others may close what is in it.
#[must_use]
pub fn is_apart() -> bool {
    IS_APART.get()
}

/// Gives the calling thread a table of its own that holds some descriptors of the table it had, which are
/// returned in their order. They stay open in the old table, too.
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
/// The calling thread uses no descriptor that was opened before this call but those returned, and no other
/// thread uses a descriptor that the calling thread opens later. Those in `kept` are open and different, and
/// no other thread closes them before this has returned.
pub(crate) unsafe fn separate_all(kept: &[RawFd]) -> Result<Vec<OwnedFd>> {
    let failed = |source| Error::io("cannot give a thread descriptors of its own", source);
    if close_range_but(kept).is_err() {
        // SAFETY: a number (A1).
        if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        close_all_but(kept).map_err(failed)?;
    }
    IS_APART.set(true);
    // SAFETY: the table is this thread's alone, and the caller guarantees that no other object owns the
    // numbers.
    let kept = kept.iter().map(|kept| unsafe { OwnedFd::from_raw_fd(*kept) }).collect::<Vec<_>>();
    let kept = kept.into_iter().map(beyond_standard).collect::<Result<Vec<_>>>()?;
    loop {
        // It can neither be read nor written, and a filter that permits the thread to wait permits it, too.
        let nowhere = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|source| failed(source.into()))?;
        if nowhere.as_raw_fd() >= FIRST_ORDINARY {
            return Ok(kept);
        }
        std::mem::forget(nowhere);
    }
}

/// Gives the calling thread a table that holds only these.
fn close_range_but(kept: &[RawFd]) -> io::Result<()> {
    // Nothing above the last is copied, so nothing of it has to be closed.
    let last = kept.iter().copied().max().unwrap_or(-1);
    close_range(last + 1, RawFd::MAX, libc::CLOSE_RANGE_UNSHARE)?;
    let mut first = 0;
    // They are few, and to sort them would take more code in every program.
    while let Some(number) = kept.iter().copied().filter(|number| *number >= first).min() {
        if first < number {
            close_range(first, number - 1, 0)?;
        }
        first = number + 1;
    }
    Ok(())
}

fn close_range(first: RawFd, last: RawFd, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: numbers (A1).
    let status = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Without `close_range`.
fn close_all_but(kept: &[RawFd]) -> io::Result<()> {
    let entries = std::fs::read_dir("/proc/thread-self/fd")?;
    let numbers: Vec<RawFd> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| !kept.contains(number)) {
        // SAFETY: a number (A1), in a table that only this thread has.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// For tests that look whether a descriptor was the last of its object: one of these tests has copies of all
/// for a moment.
#[cfg(test)]
pub(crate) static COPIES: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use std::collections::BTreeSet;
    use std::fs::File;
    use std::sync::mpsc::channel;

    /// # Safety
    /// As for [`separate_all`].
    unsafe fn separate<const N: usize>(kept: [RawFd; N]) -> Result<[OwnedFd; N]> {
        // SAFETY: the caller's promise.
        unsafe { separate_all(&kept) }.map(|kept| kept.try_into().expect("as many as there were"))
    }

    fn numbers() -> BTreeSet<RawFd> {
        let entries = std::fs::read_dir("/proc/thread-self/fd").unwrap();
        let all = entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap());
        // That of the directory was the last to be opened, and is closed by now.
        let mut all: BTreeSet<RawFd> = all.collect();
        all.retain(|number| crate::guest::identity::is_open(*number));
        all
    }

    fn check(separate: unsafe fn([RawFd; 2]) -> Result<[OwnedFd; 2]>) {
        let _alone = COPIES.lock();
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = theirs.into_handle().into_fd();
        let between = File::open("/proc/self/exe").unwrap();
        let file = File::open("/proc/self/exe").unwrap();
        let numbers_kept = [file.as_raw_fd(), theirs.as_raw_fd()];
        let shared = File::open("/proc/self/exe").unwrap();
        let (separated, is_separate) = channel();
        let (closed, is_closed) = channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: the thread uses nothing but what it gets, and the descriptor is closed only afterwards.
            let [file, kept] = unsafe { separate(numbers_kept) }.unwrap();
            let before = numbers();
            separated.send(()).unwrap();
            is_closed.recv().unwrap();
            assert_eq!(before, BTreeSet::from([0, 1, 2, file.as_raw_fd(), kept.as_raw_fd()]));
            assert!(File::from(file).metadata().unwrap().is_file());
            let before = numbers();
            assert_eq!(numbers(), before, "what others close is still open here");
            let own = File::open("/proc/self/exe").unwrap();
            let channel = Channel::from_handle(crate::Handle::new(kept)).unwrap();
            channel.write(b"still here", Vec::new()).unwrap();
            own.as_raw_fd()
        });
        is_separate.recv().unwrap();
        drop((theirs, between, file));
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
        /// As [`separate_all`], from the point on where `close_range` has failed.
        unsafe fn separate_slowly(kept: [RawFd; 2]) -> Result<[OwnedFd; 2]> {
            // SAFETY: a number; the rest as the caller has promised.
            unsafe {
                assert_eq!(libc::unshare(libc::CLONE_FILES), 0);
                close_all_but(&kept).unwrap();
                separate(kept)
            }
        }
        check(separate_slowly);
    }

    /// A number is another file's in each table.
    #[test]
    fn what_may_block_is_closed_in_the_table_that_it_is_in() {
        let _alone = COPIES.lock();
        // A file without seals.
        let open = || File::open("/proc/self/exe").unwrap();
        let closed = |number| {
            let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while crate::guest::identity::is_open(number) {
                assert!(std::time::Instant::now() < end, "{number} stays open");
                std::thread::yield_now();
            }
        };
        for _ in 0..3 {
            let file = open();
            let number = file.as_raw_fd();
            let thread = std::thread::spawn(move || {
                // SAFETY: the thread uses nothing else, and the descriptor is open until the thread ends.
                let [own] = unsafe { separate([number]) }.unwrap();
                let number = own.as_raw_fd();
                drop(crate::Handle::new(own));
                closed(number);
            });
            thread.join().unwrap();
            assert!(crate::guest::identity::is_open(number), "that of the others stays open");
            drop(crate::Handle::new(file.into()));
            closed(number);
        }
    }
}
