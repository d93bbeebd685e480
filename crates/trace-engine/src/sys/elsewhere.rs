//! Other systems than Linux: nothing is recorded there, so nothing here is ever asked for.
//!
//! Invariant **S1**: no function here does anything.
#![allow(unsafe_code)]

use core::ffi::c_void;

pub(crate) fn register_membarrier() -> bool {
    false
}

pub(crate) fn fence_all_threads() -> bool {
    true
}

pub(crate) fn thread_id() -> u32 {
    0
}

pub(crate) fn thread_time() -> u64 {
    0
}

pub(crate) fn thread_name(buffer: &mut [u8; 16]) -> &[u8] {
    &buffer[..0]
}

pub(crate) fn is_in_handler() -> bool {
    false
}

pub(crate) fn thread_exists(_thread_id: u32) -> bool {
    true
}

pub(crate) fn map_wiped_on_fork(_bytes: usize) -> *mut u8 {
    core::ptr::null_mut()
}

/// # Safety
/// None is needed: there are no mappings.
pub(crate) unsafe fn unmap(_mapping: *mut u8, _bytes: usize) {}

pub(crate) fn keeping_errno(call: impl FnOnce()) {
    call();
}

pub(crate) fn can_populate() -> bool {
    false
}

pub(crate) fn populate(_address: usize, _bytes: usize) -> bool {
    false
}

pub(crate) fn map_zeros(_bytes: usize) -> *mut u8 {
    core::ptr::null_mut()
}

/// # Safety
/// None is needed: there are no mappings.
pub(crate) unsafe fn map_anew(_mapping: *mut u8, _bytes: usize) {}

#[allow(dead_code, reason = "no process is forked")]
pub(crate) struct ForkNotices {
    pub before: extern "C" fn(),
    pub in_parent: extern "C" fn(),
    pub in_child: extern "C" fn(),
}

pub(crate) fn install_fork_notices(_fork: &ForkNotices) {}

pub(crate) fn install_exit_notice(_on_thread_exit: extern "C" fn(*mut c_void)) {}

pub(crate) fn request_exit_notice(_value: usize) {}
