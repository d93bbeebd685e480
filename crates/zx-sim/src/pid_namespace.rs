//! The numbers that threads of this process have for processes of another pid namespace.
//!
//! A process in a container has numbers of its own for its threads, and cannot see which ones they have
//! outside. Given the outer namespace as a descriptor, Linux 6.11 and later report them.

use crate::handle::Handle;
use crate::sys;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

const OWN: &str = "/proc/self/ns/pid";
/// The calling thread, by the numbers that this `/proc` has for it and its process.
const THREAD: &str = "/proc/thread-self";

/// Another pid namespace than the one of this process.
#[derive(Debug)]
pub struct PidNamespace {
    /// In the descriptor table of the thread that has made this, which may be its own.
    _descriptor: OwnedFd,
    numbers: ThreadNumbers,
}

/// Translates the numbers of threads, for as long as the [`PidNamespace`] lives. All threads may use it.
#[derive(Clone, Debug)]
pub struct ThreadNumbers {
    /// The path at which threads with other tables find the namespace.
    path: Arc<CStr>,
    /// Device and inode.
    file: (u64, u64),
}

/// What distinguishes the pid namespace of this process: its inode. 0 without `/proc`.
#[must_use]
pub fn own_number() -> u64 {
    rustix::fs::stat(OWN).map_or(0, |found| found.st_ino)
}

impl PidNamespace {
    /// The namespace of this process, for other processes.
    #[must_use]
    pub fn of_this_process() -> Option<Handle> {
        File::open(OWN).ok().map(|file| Handle::new(file.into()))
    }

    /// Accepts a handle from another process. None if it is no namespace, or the one that this process is in.
    #[must_use]
    pub fn from_handle(handle: Handle) -> Option<Self> {
        let (file, own) = (handle.file()?, Self::of_this_process()?.file()?);
        // All namespaces are files of one file system, whose `stat` depends on no other process.
        let is_another = file.0 == own.0 && file.1 != own.1;
        is_another.then(|| Self::new(handle.into_fd(), file)).flatten()
    }

    fn new(descriptor: OwnedFd, file: (u64, u64)) -> Option<Self> {
        let thread = std::fs::read_link(THREAD).ok()?.into_os_string().into_vec();
        let path = [&b"/proc/"[..], &thread, format!("/fd/{}", descriptor.as_raw_fd()).as_bytes()].concat();
        let numbers = ThreadNumbers { path: CString::new(path).ok()?.into(), file };
        Some(Self { _descriptor: descriptor, numbers })
    }

    /// The translator of thread numbers.
    #[must_use]
    pub fn numbers(&self) -> ThreadNumbers {
        self.numbers.clone()
    }
}

impl ThreadNumbers {
    /// The number that a thread of this process has in the other namespace. None if the kernel does not
    /// report it, or the thread has none there. Allocates nothing, and leaves `errno` as it is.
    #[must_use]
    pub fn of(&self, thread: u32) -> Option<u32> {
        use rustix::fs::{Mode, OFlags};
        let namespace = rustix::fs::open(&*self.path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let namespace = Handle::new(namespace.ok()?);
        // The number of the descriptor may stand for another file by now.
        let file = namespace.file();
        let namespace = namespace.into_fd();
        if file != Some(self.file) {
            return None;
        }
        sys::number_in_namespace(&namespace, thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_other_namespace_is_not_taken() {
        assert!(PidNamespace::from_handle(PidNamespace::of_this_process().unwrap()).is_none());
        for path in ["/proc/self/exe", "/dev/null", "/proc/self/ns"] {
            assert!(PidNamespace::from_handle(Handle::new(File::open(path).unwrap().into())).is_none());
        }
    }

    #[test]
    fn a_number_that_stands_for_another_file_gives_no_number() {
        let own = PidNamespace::of_this_process().unwrap();
        let file = own.file().unwrap();
        let namespace = PidNamespace::new(own.into_fd(), file).unwrap();
        let thread = u32::try_from(crate::thread_koid()).unwrap();
        let numbers = namespace.numbers();
        let other = ThreadNumbers { file: (file.0, file.1 + 1), ..numbers.clone() };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // In its own namespace a thread has its own number, if the kernel reports it at all.
                assert!(numbers.of(thread).is_none_or(|found| found == thread));
                assert_eq!((other.of(thread), numbers.of(0)), (None, None));
            });
        });
        drop(namespace);
        assert_eq!(numbers.of(thread), None);
    }
}
