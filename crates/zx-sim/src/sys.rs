//! The few system calls that have no safe wrapper.
//!
//! Invariant **S1**: only calls that take numbers, descriptors that are borrowed for the call, or pointers to
//! memory of ours of the size they are told.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Memory of what was sent on a socket and not yet read at the other end, in bytes.
pub(crate) fn unread_by_peer(socket: &impl AsFd) -> Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request fills one int, which `bytes` is (S1).
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status != 0 {
        return Err(Error::io("cannot see how full a fifo is", io::Error::last_os_error()));
    }
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Whether the program runs with rights its caller does not have.
pub(crate) fn is_set_uid() -> bool {
    // SAFETY: a number in, a number out (S1).
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The calling thread's id.
pub(crate) fn thread_id() -> u64 {
    // SAFETY: no arguments (S1).
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    id as u64
}

/// The first page of a perf event that counts nothing: it holds the kernel's own conversion from the TSC to
/// nanoseconds as (multiplier, shift), where the kernel offers it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn perf_time_conversion() -> Option<(u32, u16)> {
    const PERF_TYPE_SOFTWARE: u32 = 1;
    const PERF_COUNT_SW_DUMMY: u64 = 9;
    /// Disabled, without kernel and hypervisor.
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
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
    /// Offsets in the page, in bytes: capabilities, shift and multiplier.
    const CAPABILITIES: usize = 40;
    const SHIFT: usize = 50;
    const MULTIPLIER: usize = 52;
    const CAP_USER_TIME: u64 = 1 << 3;

    let attributes = Attributes {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: PERF_COUNT_SW_DUMMY,
        sample: [0; 3],
        flags: FLAGS,
        rest: [0; 2],
    };
    let no_group: libc::c_int = -1;
    let close_on_exec: libc::c_ulong = 8;
    // SAFETY: `attributes` is of the size it says (S1); the descriptor that comes back is nobody else's.
    let event = unsafe {
        let event =
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, no_group, close_on_exec);
        if event < 0 {
            return None;
        }
        OwnedFd::from_raw_fd(event as libc::c_int)
    };
    let page = memmap2::MmapOptions::new().len(4096).map_raw_read_only(&event).ok()?;
    let base = page.as_ptr();
    // SAFETY: inside the mapped page, aligned for their types, read once each; the kernel writes these
    // fields when the event is mapped and leaves them alone while it is disabled.
    unsafe {
        if base.add(CAPABILITIES).cast::<u64>().read_volatile() & CAP_USER_TIME == 0 {
            return None;
        }
        let shift = base.add(SHIFT).cast::<u16>().read_volatile();
        let multiplier = base.add(MULTIPLIER).cast::<u32>().read_volatile();
        (multiplier != 0).then_some((multiplier, shift))
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn perf_time_conversion() -> Option<(u32, u16)> {
    None
}
