//! What a program reports that it uses memory for.
//!
//! Invariant **M1**: function and data stay for the rest of the process's life, and may be used on any
//! thread; a dump is the one that the function was called with, until it returns, and is used by one thread
//! at a time.
//= docs/recording.md#memory-dumps
#![allow(unsafe_code)]

use crate::abi::CStrRef;
use core::ffi::c_void;
use trace_provider::MemoryDump;

/// `trace_memory_dump_callback_t`.
pub type Call = unsafe extern "C" fn(data: *mut c_void, dump: &mut MemoryDump);

/// A function of the program's, and what it is called with.
#[derive(Clone, Copy)]
struct Listener {
    call: Call,
    data: *mut c_void,
}

// SAFETY: the program lends function and data to any thread (M1).
unsafe impl Send for Listener {}
// SAFETY: the program lends them to several threads at once (M1).
unsafe impl Sync for Listener {}

impl Listener {
    fn report(self, dump: &mut MemoryDump) {
        // SAFETY: the function and the data that it was registered with, neither of which ever goes (M1).
        unsafe { (self.call)(self.data, dump) }
    }
}

pub extern "C" fn trace_on_memory_dump(call: Option<Call>, data: *mut c_void) {
    if let Some(call) = call {
        let listener = Listener { call, data };
        trace_provider::on_memory_dump(move |dump| listener.report(dump));
    }
}

pub extern "C" fn trace_memory_dump_get_id(dump: Option<&MemoryDump>) -> u64 {
    dump.map_or(0, MemoryDump::id)
}

pub extern "C" fn trace_memory_dump_is_detailed(dump: Option<&MemoryDump>) -> bool {
    dump.is_some_and(MemoryDump::is_detailed)
}

pub extern "C" fn trace_memory_dump_add(dump: Option<&mut MemoryDump>, name: CStrRef<'_>, bytes: u64) {
    if let Some(dump) = dump {
        dump.add(&String::from_utf8_lossy(name.bytes()), bytes);
    }
}
