//! The few system calls that have no safe wrapper.
//!
//! Invariants:
//!
//! * **S1**: only calls that take numbers, descriptors that are borrowed for the call, or pointers to memory
//!   of ours of the size passed with them.
//! * **S2**: a descriptor that a call returns has no other owner.
#![allow(unsafe_code)]

use crate::channel::Peer;
use crate::error::{Error, Result};
use crate::guest::beyond_standard;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use rustix::net::RecvFlags;
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Memory of data that was sent on a socket and not yet read at the other end, in bytes.
pub(crate) fn unread_by_peer(socket: &impl AsFd) -> Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request fills one int, which `bytes` is (S1).
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status != 0 {
        return Err(Error::io("cannot see how full a fifo is", io::Error::last_os_error()));
    }
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Has the usual scheduler and the usual class of disk accesses serve this thread, if it may.
pub(crate) fn schedule_as_usual() {
    /// `IOPRIO_WHO_PROCESS` of `linux/ioprio.h`, and no class: that follows the niceness.
    const THREAD: libc::c_int = 1;
    const NO_CLASS: libc::c_int = 0;
    let usual = libc::sched_param { sched_priority: 0 };
    // SAFETY: numbers, and memory of ours of the type that the call reads (S1); 0 is this thread.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const usual);
        libc::syscall(libc::SYS_ioprio_set, THREAD, 0, NO_CLASS);
    }
}

/// Sets the user and the group as which this thread makes and opens files, and returns the ones before. What
/// may not be set stays: another call returns it.
pub(crate) fn set_file_user(uid: u32, gid: u32) -> (u32, u32) {
    // The group first: another user may not set it. Both return what was set before, and report nothing else.
    // SAFETY: only numbers are passed (S1); they change rights of this thread alone.
    let before = unsafe { (libc::setfsgid(gid), libc::setfsuid(uid)) };
    (before.1 as u32, before.0 as u32)
}

/// Has the system begin to write a part of a file to its disk, without waiting for that to end.
pub(crate) fn begin_writing_back(file: &impl AsFd, part: Range<u64>) {
    let number = |value: u64| libc::off64_t::try_from(value).unwrap_or(libc::off64_t::MAX);
    let (offset, length) = (number(part.start), number(part.end.saturating_sub(part.start)));
    let file = file.as_fd().as_raw_fd();
    // SAFETY: numbers, and a descriptor that is borrowed for the call (S1).
    let _ = unsafe { libc::sync_file_range(file, offset, length, libc::SYNC_FILE_RANGE_WRITE) };
}

/// The wait status of a process that has ended and was reaped, from Linux 6.15 on: `PIDFD_GET_INFO` of
/// `linux/pidfd.h`.
pub(crate) fn wait_status(process: &impl AsFd) -> Option<libc::c_int> {
    /// The first version of `struct pidfd_info`, of 64 bytes.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        cgroup: u64,
        ids: [u32; 11],
        exit_code: i32,
    }
    const _: () = assert!(size_of::<Info>() == 64);
    /// `_IOWR(0xff, 11, struct pidfd_info)`.
    const GET_INFO: libc::Ioctl = 0xc040_ff0b_u32 as libc::Ioctl;
    const EXIT: u64 = 1 << 3;

    let mut info = Info { mask: EXIT, ..Info::default() };
    // SAFETY: the request reads and writes 64 bytes, which `info` has (S1).
    let status = unsafe { libc::ioctl(process.as_fd().as_raw_fd(), GET_INFO, &raw mut info) };
    (status == 0 && info.mask & EXIT != 0).then_some(info.exit_code)
}

/// The number that a thread of this process's pid namespace has in another one, from Linux 6.11 on:
/// `NS_GET_PID_IN_PIDNS` of `linux/nsfs.h`. Does not touch `errno`.
pub(crate) fn number_in_namespace(namespace: &impl AsFd, thread: u32) -> Option<u32> {
    struct PidIn(u32);

    // SAFETY: the request takes a number in place of a pointer, and returns one (S1).
    unsafe impl Ioctl for PidIn {
        type Output = u32;
        const IS_MUTATING: bool = false;

        fn opcode(&self) -> Opcode {
            opcode::read::<libc::c_int>(0xb7, 8)
        }

        fn as_ptr(&mut self) -> *mut c_void {
            std::ptr::without_provenance_mut(self.0 as usize)
        }

        unsafe fn output_from_ptr(output: IoctlOutput, _: *mut c_void) -> rustix::io::Result<u32> {
            u32::try_from(output).map_err(|_| rustix::io::Errno::SRCH)
        }
    }

    // SAFETY: see above; other kinds of file that know the request are never asked, as it goes to namespaces
    // only (S1).
    let number = unsafe { ioctl(namespace, PidIn(thread)) };
    number.ok().filter(|number| *number != 0)
}

/// Whether the program runs with privileges that its caller does not have.
pub(crate) fn is_set_uid() -> bool {
    // SAFETY: a number in, a number out (S1).
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A duplicate of the descriptor that the process was started with under a number, if there is one. Programs
/// that the process runs inherit neither.
pub(crate) fn duplicate_inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: numbers in, numbers out (S1).
    let duplicate = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, number) };
    if duplicate < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above; that descriptor's owner, if it has one, keeps it (S1).
    unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    // SAFETY: the call has made it for this caller alone (S2).
    Ok(unsafe { OwnedFd::from_raw_fd(duplicate) })
}

/// Makes a number stand for a file, whatever it stood for before.
#[cfg(test)]
pub(crate) fn duplicate_to(file: &impl AsFd, number: RawFd) -> OwnedFd {
    // SAFETY: numbers (S1); from here on the number is the returned value's (S2).
    unsafe {
        assert_eq!(libc::dup3(file.as_fd().as_raw_fd(), number, libc::O_CLOEXEC), number);
        OwnedFd::from_raw_fd(number)
    }
}

/// The credentials of the process that made a socket pair, connected or listens, from `SO_PEERCRED`.
///
/// The typed wrapper holds the pid as a number that is never 0, which it is for a process of another pid
/// namespace; hence the call itself.
pub(crate) fn peer_credentials(socket: &impl AsFd) -> Result<Peer> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: at most `length` bytes are written to `credentials`, which is that large (S1).
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(Error::io("cannot read the peer's credentials", io::Error::last_os_error()));
    }
    Ok(Peer { pid: u32::try_from(credentials.pid).unwrap_or(0), uid: credentials.uid })
}

/// A further descriptor for what a number stands for, if that is anything, above those of standard input,
/// output and error.
pub(crate) fn duplicate(number: u32) -> Result<OwnedFd> {
    let closed =
        || Error::io("cannot use an inherited descriptor", io::Error::from_raw_os_error(libc::EBADF));
    let number = libc::c_int::try_from(number).map_err(|_| closed())?;
    // SAFETY: numbers (S1).
    let descriptor = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if descriptor < 0 {
        return Err(Error::io("cannot use an inherited descriptor", io::Error::last_os_error()));
    }
    // SAFETY: the call has returned it just now (S2).
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Handles of a message at most, with room for all that the kernel permits.
const MAX_HANDLES: usize = 253;
/// The kind of a control message with a descriptor of the sender's process, of Linux 6.5.
const SCM_PIDFD: libc::c_int = 4;

/// What a socket has received.
pub(crate) struct Received {
    /// The length of the message, or of its part, in bytes.
    pub length: usize,
    pub handles: Vec<OwnedFd>,
    /// The process that has sent it, if the socket has the kernel say that.
    pub sender: Option<Peer>,
    /// The process could not have descriptors for all handles.
    pub is_cut: bool,
}

/// Receives what there is, without waiting, with all handles.
///
/// Not by the typed wrapper: as for [`peer_credentials`], and because it leaves a descriptor open that the
/// kernel adds to each message where a peer that has the socket, too, wants that (`SO_PASSPIDFD`).
pub(crate) fn receive(
    socket: &impl AsFd,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> rustix::io::Result<Received> {
    // Room for all, aligned as headers of control messages are.
    let mut control = [0_u64; 160];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: a structure of numbers and pointers, for which zeros are values.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    let flags = flags.bits() as libc::c_int | libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the message points to memory of its own lengths that outlives the call (S1).
    let received = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags) };
    let Ok(length) = usize::try_from(received) else {
        let error = io::Error::last_os_error();
        return Err(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO));
    };
    let (mut handles, mut sender, mut is_cut) = (Vec::new(), None, message.msg_flags & libc::MSG_CTRUNC != 0);
    // SAFETY: the kernel has filled the message's control part; each header lies in it, with as much data as
    // it says; descriptors in it are new ones of this process.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(found) = header.as_ref() {
            let data = libc::CMSG_DATA(header);
            let length = found.cmsg_len - libc::CMSG_LEN(0) as usize;
            let descriptor = |number| OwnedFd::from_raw_fd(data.cast::<i32>().add(number).read_unaligned());
            match (found.cmsg_level, found.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                    for number in 0..(length / size_of::<i32>()).min(MAX_HANDLES) {
                        match beyond_standard(descriptor(number)) {
                            Ok(descriptor) => handles.push(descriptor),
                            Err(_) => is_cut = true,
                        }
                    }
                }
                // An error of the kernel's is no descriptor.
                (libc::SOL_SOCKET, SCM_PIDFD)
                    if length >= size_of::<i32>() && data.cast::<i32>().read_unaligned() >= 0 =>
                {
                    drop(descriptor(0));
                }
                (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if length >= size_of::<libc::ucred>() => {
                    let found = data.cast::<libc::ucred>().read_unaligned();
                    sender = Some(Peer { pid: u32::try_from(found.pid).unwrap_or(0), uid: found.uid });
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok(Received { length, handles, sender, is_cut })
}

/// The largest file that this process may write, in bytes.
///
/// The typed wrapper takes the call for one that cannot fail, but filters of system calls refuse it.
#[allow(clippy::useless_conversion, reason = "its type differs between machines")]
pub(crate) fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a structure that outlives the call (S1), and keeps what it has where the call is refused.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    if limit.rlim_cur == libc::RLIM_INFINITY { u64::MAX } else { u64::from(limit.rlim_cur) }
}

/// A lock of the whole file, as the calls on open file descriptions take it.
fn whole_file(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// Takes a shared lock on a file for the open file description of `file`.
pub(crate) fn lock_description(file: &impl AsFd) -> io::Result<()> {
    set_description_lock(file, libc::F_RDLCK)
}

/// Releases the lock, even if other handles share the description.
pub(crate) fn unlock_description(file: &impl AsFd) -> io::Result<()> {
    set_description_lock(file, libc::F_UNLCK)
}

fn set_description_lock(file: &impl AsFd, kind: libc::c_int) -> io::Result<()> {
    let lock = whole_file(kind);
    // SAFETY: the call reads one `flock`, which `lock` is (S1).
    let status = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether an open file description other than that of `file` holds a lock on the file.
pub(crate) fn is_locked_by_another(file: &impl AsFd) -> io::Result<bool> {
    let mut lock = whole_file(libc::F_WRLCK);
    // SAFETY: the call reads and writes one `flock`, which `lock` is (S1).
    let status = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    if status == 0 {
        Ok(libc::c_int::from(lock.l_type) != libc::F_UNLCK)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The first page of a perf event that counts nothing: it holds the kernel's own conversion from the TSC to
/// nanoseconds as (multiplier, shift), where the kernel offers it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn perf_time_conversion() -> Option<(u32, u16)> {
    use std::sync::atomic::{Ordering, fence};

    const PERF_TYPE_SOFTWARE: u32 = 1;
    const PERF_COUNT_SW_DUMMY: u64 = 9;
    /// Disabled, without kernel and hypervisor.
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
    const PERF_FLAG_FD_CLOEXEC: libc::c_long = 8;
    /// `struct perf_event_attr` in its first published size.
    #[repr(C)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        sample: [u64; 3],
        flags: u64,
        rest: [u64; 2],
    }
    const PAGE_BYTES: usize = 4096;
    /// Offsets in the page, in bytes: sequence number, capabilities, shift and multiplier.
    const SEQUENCE: usize = 8;
    const CAPABILITIES: usize = 40;
    const SHIFT: usize = 50;
    const MULTIPLIER: usize = 52;
    const CAP_USER_TIME: u64 = 1 << 3;
    /// The kernel writes the page once when it is mapped: more than a few attempts mean that the page is not
    /// as expected.
    const ATTEMPTS: usize = 100;

    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: PERF_COUNT_SW_DUMMY,
        sample: [0; 3],
        flags: FLAGS,
        rest: [0; 2],
    };
    let (this_process, any_cpu, no_group): (libc::c_long, libc::c_long, libc::c_long) = (0, -1, -1);
    // SAFETY: `attributes` is of the size it says (S1).
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_process,
            any_cpu,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    let event = libc::c_int::try_from(event).ok().filter(|event| *event >= 0)?;
    // SAFETY: the call just returned it (S2).
    let event = unsafe { OwnedFd::from_raw_fd(event) };
    let page = memmap2::MmapOptions::new().len(PAGE_BYTES).map_raw_read_only(&event).ok()?;
    let base = page.as_ptr();
    (0..ATTEMPTS).find_map(|_| {
        // SAFETY: inside the mapped page and aligned for their types; the kernel may write at any time, which
        // a volatile read permits and the sequence number shows: odd or changed while it does.
        let (before, capabilities, shift, multiplier, after) = unsafe {
            let before = base.add(SEQUENCE).cast::<u32>().read_volatile();
            fence(Ordering::Acquire);
            let capabilities = base.add(CAPABILITIES).cast::<u64>().read_volatile();
            let shift = base.add(SHIFT).cast::<u16>().read_volatile();
            let multiplier = base.add(MULTIPLIER).cast::<u32>().read_volatile();
            fence(Ordering::Acquire);
            let after = base.add(SEQUENCE).cast::<u32>().read_volatile();
            (before, capabilities, shift, multiplier, after)
        };
        let is_settled = before == after && before % 2 == 0;
        is_settled
            .then_some((capabilities & CAP_USER_TIME != 0 && multiplier != 0).then_some((multiplier, shift)))
    })?
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn perf_time_conversion() -> Option<(u32, u16)> {
    None
}

/// Maps a part of a [VMO](crate::Vmo) over other memory, shared and writable. False if that is not possible.
///
/// # Safety
/// `memory` is the page-aligned start of a mapping of this process that has as many bytes, of which no code
/// relies on what they hold.
#[must_use]
pub unsafe fn map_over(vmo: &impl AsFd, memory: *mut u8, part: core::ops::Range<u64>) -> bool {
    let (Ok(bytes), Ok(offset)) = (usize::try_from(part.end - part.start), libc::off_t::try_from(part.start))
    else {
        return false;
    };
    // SAFETY: the caller's.
    let mapped = unsafe {
        libc::mmap(
            memory.cast(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED,
            vmo.as_fd().as_raw_fd(),
            offset,
        )
    };
    mapped != libc::MAP_FAILED
}
