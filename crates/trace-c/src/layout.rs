//! What a program carries of the engine, and the symbol that is named after this layout's number.
//!
//! Invariant **Y1**: the offset is that of the same thread-local in each thread of the process.
#![allow(unsafe_code)]

use crate::{known_categories, library_election};
use core::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicIsize, Ordering};

unsafe extern "C" {
    fn trace_thread_set(block: *const c_void);
    /// Takes the address of a thread-local.
    safe fn trace_thread_offset() -> isize;
    /// Returns a constant.
    safe fn trace_thread_is_fixed() -> c_int;
}

/// `trace_internal_process_t`.
#[repr(C)]
pub struct Process {
    thread_offset: AtomicIsize,
}

/// A program that carries another layout refers to another name. Where several copies have it, the loader may
/// have all of them use one: so all store the same.
#[unsafe(no_mangle)]
pub static trace_internal_layout_2: Process = Process { thread_offset: AtomicIsize::new(0) };

/// For programs that were compiled with headers of earlier releases, which do not know open scopes.
#[unsafe(no_mangle)]
pub static trace_internal_layout_1: Process = Process { thread_offset: AtomicIsize::new(0) };

/// Where this copy's thread-local is from the thread pointer; 0 where that is not the same in each thread.
pub fn own_offset(is_in_executable: bool) -> isize {
    let is_fixed = trace_thread_is_fixed() != 0;
    if is_fixed || is_in_executable { trace_thread_offset() } else { 0 }
}

/// Publishes where the thread-local of the elected copy is. Each copy of the library does that before
/// anything of the program that was linked with it runs: a site of it may be one that other libraries have,
/// too, and be fast already.
pub fn publish(offset: isize) {
    trace_internal_layout_1.thread_offset.store(offset, Ordering::Relaxed);
    trace_internal_layout_2.thread_offset.store(offset, Ordering::Relaxed);
}

/// Has to be called, in the elected copy, before a site is enlisted. Without an offset no site that has
/// enlisted is ever fast.
pub fn set_up() {
    static DONE: std::sync::Once = std::sync::Once::new();
    DONE.call_once(|| {
        known_categories::set_up();
        if library_election::own_offset() != 0 {
            // SAFETY: the function stores the pointer in the calling thread's own variable. Code in the
            // program follows it in later events, when the block is still there: the engine never unmaps
            // blocks.
            trace_engine::ffi::mirror_current_thread(|block| unsafe { trace_thread_set(block.cast()) });
        }
    });
}
