//! What a program carries of the engine, and the symbol that is named after this layout's number.
//!
//! Invariant **Y1**: the offset is that of the same thread-local in each thread of the process.
#![allow(unsafe_code)]

use core::ffi::c_void;
use std::sync::atomic::{AtomicIsize, Ordering};

unsafe extern "C" {
    fn trace_thread_set(block: *const c_void);
    fn trace_thread_offset() -> isize;
}

/// `trace_internal_process_t`.
#[repr(C)]
pub struct Process {
    thread_offset: AtomicIsize,
}

/// A program that carries another layout refers to another name.
#[unsafe(no_mangle)]
pub static trace_internal_layout_1: Process = Process { thread_offset: AtomicIsize::new(0) };

/// Says where this copy's thread-local is. Each copy of the library does that before one of them does
/// anything: the events of whoever was linked with it look there as soon as their sites are listed, wherever
/// that is.
pub fn publish_offset() {
    // SAFETY: takes an address.
    let offset = unsafe { trace_thread_offset() };
    trace_internal_layout_1.thread_offset.store(offset, Ordering::Relaxed);
}

/// Has to be called, in the copy that works for the process, before a site is enlisted. In other copies the
/// thread-local stays as it is, which sends all of their events the slow way.
pub fn set_up() {
    static DONE: std::sync::Once = std::sync::Once::new();
    DONE.call_once(|| {
        // SAFETY: blocks of the engine are never unmapped.
        trace_engine::mirror_current_thread(|block| unsafe { trace_thread_set(block.cast()) });
    });
}
