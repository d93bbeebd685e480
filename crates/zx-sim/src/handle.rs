//! A descriptor of unknown kind, as it comes out of a message.

use crate::guest::apart;
use crate::sys::{self, Received};
use rustix::fs::{AtFlags, FileType, OFlags, SealFlags, StatxFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, ReturnFlags, Shutdown, SocketType, sockopt,
};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle whose kind was not checked yet. Objects are made from it after a check.
///
/// When it is dropped, it is closed without waiting: closing a file may depend on its file system, which may
/// be a program of the peer's.
#[derive(Debug)]
pub struct Handle {
    descriptor: Option<OwnedFd>,
    /// Other processes have it, too: its content is theirs.
    is_shared: AtomicBool,
}

impl Handle {
    /// Wraps any descriptor.
    #[must_use]
    pub fn new(descriptor: OwnedFd) -> Self {
        Self { descriptor: Some(descriptor), is_shared: AtomicBool::new(false) }
    }

    /// Other processes have it, or will: they can read its content even after this handle is closed.
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// The descriptor. Closing it may take as long as a peer wants, unless its kind is known.
    #[must_use]
    pub fn into_fd(mut self) -> OwnedFd {
        self.descriptor.take().expect(HELD)
    }

    /// Device and inode, if it is a regular file. Makes no request that its file system would have to answer.
    #[must_use]
    pub fn file(&self) -> Option<(u64, u64)> {
        self.file_and_owner().map(|(file, _)| file)
    }

    /// Device and inode, if it is a regular file of a user's.
    pub(crate) fn file_of(&self, uid: u32) -> Option<(u64, u64)> {
        self.file_and_owner().filter(|(_, owner)| *owner == uid).map(|(file, _)| file)
    }

    /// The same, with the user that the file belongs to.
    fn file_and_owner(&self) -> Option<((u64, u64), u32)> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::UID;
        let stat = match rustix::fs::statx(self, c"", flags, wanted) {
            Ok(stat) => stat,
            // A filter of system calls forbids what can look at any file; the descriptor's own is left.
            Err(Errno::PERM | Errno::ACCESS | Errno::NOSYS) => {
                let stat = rustix::fs::fstat(self).ok()?;
                let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                return is_file.then_some(((stat.st_dev, stat.st_ino), stat.st_uid));
            }
            Err(_) => return None,
        };
        let is_file = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
        let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        is_file.then_some(((device, stat.stx_ino), stat.stx_uid))
    }

    /// Device and inode, if it is a regular file of a user's that can be read, and written at any place.
    #[must_use]
    pub fn writable_file_of(&self, uid: u32) -> Option<(u64, u64)> {
        let (file, owner) = self.file_and_owner()?;
        let flags = rustix::fs::fcntl_getfl(self).ok()?;
        let is_plain = (flags & OFlags::ACCMODE) == OFlags::RDWR
            && !flags.intersects(OFlags::APPEND | OFlags::DIRECT | OFlags::PATH);
        (owner == uid && is_plain).then_some(file)
    }

    /// Whether it is anonymous memory that no process can shrink: reading it never blocks.
    #[must_use]
    pub fn is_sealed_memory(&self) -> bool {
        rustix::fs::fcntl_get_seals(self).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
    }
}

const HELD: &str = "nothing but the end of a handle takes its descriptor";

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_ref().expect(HELD).as_fd()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(descriptor) = self.descriptor.take() {
            close(descriptor, *self.is_shared.get_mut());
        }
    }
}

/// Peers may be untrusted, and may have put anything into the descriptors that are closed.
static ARE_PEERS_UNKNOWN: AtomicBool = AtomicBool::new(false);

/// From here on, descriptors are closed as if their peers wanted that to take long: for a process that serves
/// untrusted programs.
pub fn distrust_peers() {
    ARE_PEERS_UNKNOWN.store(true, Ordering::Relaxed);
}

/// Closes a descriptor that came from another process, or is connected with one: here if that cannot block,
/// and in a thread for that otherwise.
fn close(descriptor: OwnedFd, is_shared: bool) {
    match sockopt::socket_domain(&descriptor) {
        Ok(AddressFamily::UNIX) => {
            if ARE_PEERS_UNKNOWN.load(Ordering::Relaxed) && !is_shared {
                empty(&descriptor);
            }
        }
        // Only anonymous memory has seals.
        Err(_) if rustix::fs::fcntl_get_seals(&descriptor).is_ok() => {}
        domain => {
            if domain.is_ok() {
                // A connection may be configured to wait at closing until everything has arrived.
                let _ = sockopt::set_socket_linger(&descriptor, None);
            }
            if apart::is_apart() {
                closer::close_beside(descriptor);
            } else {
                closer::close(descriptor);
            }
        }
    }
}

/// Closes memory on another thread: the kernel may have many of its pages to give back.
pub(crate) fn close_memory(memory: OwnedFd) {
    closer::close(memory);
}

/// Maximum number of messages that a socket can have unread: each takes some hundred bytes of a buffer that
/// is no larger than this many times that.
const MAX_UNREAD: usize = 1024;
const UNREAD_BYTES: usize = 64 << 10;

/// Receives the handles in a socket's last messages: the kernel would close them with the socket, and wait
/// for that.
fn empty(socket: &OwnedFd) {
    // No further message arrives.
    let _ = rustix::net::shutdown(socket, Shutdown::Both);
    // A stream returns the data before the next handles at once; of a message the rest is dropped.
    let is_stream = sockopt::socket_type(socket).is_ok_and(|kind| kind == SocketType::STREAM);
    let mut bytes = vec![0; if is_stream { UNREAD_BYTES } else { 1 }];
    for _ in 0..MAX_UNREAD {
        match receive_handles(socket, &mut bytes, RecvFlags::empty()) {
            Ok((received, handles)) if received.length == 0 && handles.is_empty() => {
                if is_stream || !has_message(socket) {
                    break;
                }
            }
            Ok((_, handles)) => drop(handles),
            // The error for an end that closed without reading everything is reported once, before the rest.
            Err(rustix::io::Errno::CONNRESET) => {}
            Err(_) => break,
        }
    }
}

/// Whether a socket of messages has one unread, after its shutdown. An empty message looks like the end, but
/// only a message has a sender's credentials, for which there is no room here.
fn has_message(socket: &OwnedFd) -> bool {
    let with_credentials = |is_on| sockopt::set_socket_passcred(socket, is_on).is_ok();
    if !with_credentials(true) {
        return true;
    }
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let mut none = RecvAncillaryBuffer::new(&mut []);
    let peeked = rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut none, flags);
    // With credentials, a further message would be read as one that may come from any pid namespace.
    with_credentials(false) && peeked.is_ok_and(|peeked| peeked.flags.contains(ReturnFlags::CTRUNC))
}

/// Receives pending data, with all handles.
pub(crate) fn receive_handles(
    socket: &impl AsFd,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> rustix::io::Result<(Received, Vec<Handle>)> {
    let mut received = sys::receive(socket, bytes, flags)?;
    let handles = std::mem::take(&mut received.handles).into_iter().map(Handle::new).collect();
    Ok((received, handles))
}

/// Closes descriptors whose closing may take long.
mod closer {
    use crate::guest::thread::without_signals;
    use std::os::fd::OwnedFd;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Condvar, Mutex, PoisonError};
    use std::time::Duration;

    /// Maximum number of threads that wait in a close at a time; beyond it, descriptors stay open meanwhile.
    const MAX_THREADS: usize = 32;
    /// A thread that had nothing to close for so long ends.
    const IDLE: Duration = Duration::from_secs(1);

    struct Pool {
        /// Descriptors that no thread has taken.
        waiting: Vec<OwnedFd>,
        threads: usize,
        /// Those that are in a close.
        closing: usize,
    }

    static POOL: Mutex<Pool> = Mutex::new(Pool { waiting: Vec::new(), threads: 0, closing: 0 });
    static CHANGED: Condvar = Condvar::new();
    /// The process that has these threads. In a child by fork the lock may be held for ever.
    static OWNER: AtomicU32 = AtomicU32::new(0);

    pub fn close(descriptor: OwnedFd) {
        let pid = std::process::id();
        let owner = OWNER.compare_exchange(0, pid, Ordering::Relaxed, Ordering::Relaxed);
        if owner.is_err_and(|owner| owner != pid) {
            return close_beside(descriptor);
        }
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        pool.waiting.push(descriptor);
        if pool.waiting.len() > pool.threads - pool.closing && pool.threads < MAX_THREADS {
            pool.threads += usize::from(spawn(Box::new(run)));
        }
        drop(pool);
        CHANGED.notify_one();
    }

    /// Bytes of the stack of a thread that only closes.
    const STACK_BYTES: usize = 64 << 10;

    /// Closes a descriptor of a table that only the calling thread has, and threads that it makes: the number
    /// is another file's for the threads above.
    pub fn close_beside(descriptor: OwnedFd) {
        // If there can be no thread, it is closed here.
        spawn(Box::new(move || drop(descriptor)));
    }

    fn spawn(body: Box<dyn FnOnce() + Send>) -> bool {
        let thread = std::thread::Builder::new().name("zx-closer".to_owned()).stack_size(STACK_BYTES);
        without_signals(|| thread.spawn(body)).is_ok()
    }

    fn run() {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(descriptor) = pool.waiting.pop() else {
                let (woken, waited) =
                    CHANGED.wait_timeout(pool, IDLE).unwrap_or_else(PoisonError::into_inner);
                pool = woken;
                if waited.timed_out() && pool.waiting.is_empty() {
                    pool.threads -= 1;
                    return;
                }
                continue;
            };
            pool.closing += 1;
            drop(pool);
            drop(descriptor);
            pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            pool.closing -= 1;
        }
    }
}
