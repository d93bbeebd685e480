//! Whether a trace runs, and acquiring it.
#![allow(unsafe_code)]

use crate::abi::{self, ERR_BAD_STATE, OK, Status, StringRef};
use crate::context::TraceContext;
use core::ffi::c_char;
use core::ptr;
use trace_engine::engine::{self, State};
use trace_engine::ffi::{self, TraceRef};
use trace_format::buffer::HEADER_BYTES;

const STOPPED: u32 = 0;
const STARTED: u32 = 1;
const STOPPING: u32 = 2;

/// `trace_site_t`: while it is 0 or of an earlier run it says nothing, else that the category is not wanted.
#[repr(C)]
pub struct RawSite {
    state: core::sync::atomic::AtomicUsize,
}

/// Handed out for prolonged references, which are only counted.
static PROLONGED: u64 = 0;

pub fn nonce() -> u64 {
    trace_engine::nonce()
}

pub unsafe extern "C" fn trace_generate_nonce() -> u64 {
    nonce()
}

pub unsafe extern "C" fn trace_state() -> u32 {
    match engine::state() {
        State::Started => STARTED,
        State::Stopping => STOPPING,
        State::Idle | State::Initialized | State::Stopped | State::Changing => STOPPED,
    }
}

pub unsafe extern "C" fn trace_is_category_enabled(category: *const c_char) -> bool {
    // SAFETY: C1.
    ffi::is_category_wanted(unsafe { abi::text(category) })
}

pub unsafe extern "C" fn trace_is_category_bytestring_enabled(bytes: *const u8, length: usize) -> bool {
    // SAFETY: C1.
    ffi::is_category_wanted(unsafe { abi::bytes(bytes, length) })
}

pub unsafe extern "C" fn trace_acquire_context() -> *mut TraceContext {
    TraceRef::acquire().map_or(ptr::null_mut(), TraceContext::leak)
}

/// Acquires the trace for a category, and stores its reference.
unsafe fn acquire_for(category: &[u8], out: *mut StringRef) -> *mut TraceContext {
    let Some(trace) = TraceRef::acquire().filter(|_| ffi::is_category_wanted(category)) else {
        return ptr::null_mut();
    };
    // SAFETY: C1.
    unsafe { abi::put(out, StringRef::new(ffi::string_index(category), category)) };
    TraceContext::leak(trace)
}

/// As [`acquire_for`], with a memory for what is not wanted.
unsafe fn acquire_cached(category: &[u8], site: *mut RawSite, out: *mut StringRef) -> *mut TraceContext {
    use core::sync::atomic::Ordering;
    // Before the look at the category, so that what is remembered is never too new.
    let unwanted = (engine::epoch() as usize) << 2 | 1;
    // SAFETY: C1.
    let site = unsafe { site.as_ref() };
    if site.is_some_and(|site| site.state.load(Ordering::Relaxed) == unwanted) {
        return ptr::null_mut();
    }
    // SAFETY: C1.
    let context = unsafe { acquire_for(category, out) };
    if context.is_null()
        && let Some(site) = site
    {
        site.state.store(unwanted, Ordering::Relaxed);
    }
    context
}

pub unsafe extern "C" fn trace_acquire_context_for_category(
    category: *const c_char,
    out: *mut StringRef,
) -> *mut TraceContext {
    // SAFETY: C1.
    unsafe { acquire_for(abi::text(category), out) }
}

pub unsafe extern "C" fn trace_acquire_context_for_category_cached(
    category: *const c_char,
    site: *mut RawSite,
    out: *mut StringRef,
) -> *mut TraceContext {
    // SAFETY: C1.
    unsafe { acquire_cached(abi::text(category), site, out) }
}

pub unsafe extern "C" fn trace_acquire_context_for_category_bytestring(
    bytes: *const u8,
    length: usize,
    out: *mut StringRef,
) -> *mut TraceContext {
    // SAFETY: C1.
    unsafe { acquire_for(abi::bytes(bytes, length), out) }
}

pub unsafe extern "C" fn trace_acquire_context_for_category_bytestring_cached(
    bytes: *const u8,
    length: usize,
    site: *mut RawSite,
    out: *mut StringRef,
) -> *mut TraceContext {
    // SAFETY: C1.
    unsafe { acquire_cached(abi::bytes(bytes, length), site, out) }
}

pub unsafe extern "C" fn trace_release_context(context: *mut TraceContext) {
    if !context.is_null() {
        // SAFETY: of one of the functions above, and released once.
        unsafe { TraceContext::finish(context) };
    }
}

pub unsafe extern "C" fn trace_acquire_prolonged_context() -> *const u64 {
    TraceRef::acquire_prolonged().map_or(ptr::null(), |trace| {
        trace.leak();
        &raw const PROLONGED
    })
}

pub unsafe extern "C" fn trace_release_prolonged_context(context: *const u64) {
    if !context.is_null() {
        drop(TraceRef::from_leaked_prolonged());
    }
}

pub unsafe extern "C" fn trace_context_snapshot_buffer_header_internal(
    _context: *const u64,
    header: *mut [u64; HEADER_BYTES / 8],
) {
    // Zeros without a trace, which a caller that has acquired one does not see.
    let words = engine::header_now().unwrap_or([0; HEADER_BYTES / 8]);
    // SAFETY: C1.
    unsafe { abi::put(header, words) };
}

pub unsafe extern "C" fn trace_engine_flush_category_cache() -> Status {
    // What sites remember is of a run: there is nothing to forget.
    match engine::state() {
        State::Idle | State::Initialized | State::Stopped => OK,
        State::Started | State::Stopping | State::Changing => ERR_BAD_STATE,
    }
}
