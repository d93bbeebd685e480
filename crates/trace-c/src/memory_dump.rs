//! What a program says that it uses memory for.
//!
//! Invariant **M1**: function and data stay for the rest of the process's life, and may be used on any
//! thread; a dump is the one that the function was called with, until it returns.
//= docs/recording.md#memory-dumps
#![allow(unsafe_code)]

use crate::abi;
use core::ffi::{c_char, c_void};
use core::ptr;
use trace_provider::MemoryDump;

/// `trace_memory_dump_callback_t`.
pub type Call = unsafe extern "C" fn(data: *mut c_void, dump: *mut MemoryDump);

/// A function of the program's, and what it is called with.
#[derive(Clone, Copy)]
struct Listener {
    call: Call,
    data: *mut c_void,
}

// SAFETY: M1.
unsafe impl Send for Listener {}
// SAFETY: M1.
unsafe impl Sync for Listener {}

impl Listener {
    fn ask(self, dump: &mut MemoryDump) {
        // SAFETY: M1.
        unsafe { (self.call)(self.data, ptr::from_mut(dump)) }
    }
}

pub unsafe extern "C" fn trace_on_memory_dump(call: Option<Call>, data: *mut c_void) {
    if let Some(call) = call {
        let listener = Listener { call, data };
        trace_provider::on_memory_dump(move |dump| listener.ask(dump));
    }
}

pub unsafe extern "C" fn trace_memory_dump_get_id(dump: *const MemoryDump) -> u64 {
    // SAFETY: M1.
    unsafe { dump.as_ref() }.map_or(0, MemoryDump::id)
}

pub unsafe extern "C" fn trace_memory_dump_is_detailed(dump: *const MemoryDump) -> bool {
    // SAFETY: M1.
    unsafe { dump.as_ref() }.is_some_and(MemoryDump::is_detailed)
}

pub unsafe extern "C" fn trace_memory_dump_add(dump: *mut MemoryDump, name: *const c_char, bytes: u64) {
    // SAFETY: M1, C1.
    if let (Some(dump), name) = unsafe { (dump.as_mut(), abi::text(name)) } {
        dump.add(&String::from_utf8_lossy(name), bytes);
    }
}
