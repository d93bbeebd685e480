//! Whether a trace runs, and acquiring it.
#![allow(unsafe_code)]

use crate::abi::{ArrayPtr, CStrRef, ERR_BAD_STATE, OK, Out, Status, StringRef};
use crate::context::TraceContext;
use core::ptr;
use trace_engine::engine::{self, State};
use trace_engine::ffi::{self, TraceRef};
use trace_format::buffer::HEADER_BYTES;

const STOPPED: u32 = 0;
const STARTED: u32 = 1;
const STOPPING: u32 = 2;

/// `trace_site_t`: 0 or of an earlier run while nothing is known, else the category is not wanted.
#[repr(C)]
pub struct RawSite {
    state: core::sync::atomic::AtomicUsize,
}

/// Handed out for prolonged references, which are only counted.
static PROLONGED: u64 = 0;

pub fn nonce() -> u64 {
    trace_engine::nonce()
}

pub extern "C" fn trace_generate_nonce() -> u64 {
    nonce()
}

pub extern "C" fn trace_state() -> u32 {
    match engine::state() {
        State::Started => STARTED,
        State::Stopping => STOPPING,
        State::Idle | State::Initialized | State::Stopped | State::Changing => STOPPED,
    }
}

pub extern "C" fn trace_is_category_enabled(category: CStrRef<'_>) -> bool {
    ffi::is_category_wanted(category.bytes())
}

pub extern "C" fn trace_is_category_bytestring_enabled(bytes: ArrayPtr<'_, u8>, length: usize) -> bool {
    // SAFETY: the header asks for `length` bytes at `bytes` (C1).
    ffi::is_category_wanted(unsafe { bytes.text(length) })
}

pub extern "C" fn trace_acquire_context() -> Option<Box<TraceContext>> {
    TraceRef::acquire().map(TraceContext::new)
}

/// Acquires the trace for a category, and stores its reference.
fn acquire_for(category: &[u8], is_literal: bool, out: Out<'_, StringRef>) -> Option<Box<TraceContext>> {
    let trace = TraceRef::acquire().filter(|_| ffi::is_category_wanted(category))?;
    let index = if is_literal { ffi::literal_index(category) } else { ffi::string_index(category) };
    out.write(StringRef::new(index, category));
    Some(TraceContext::new(trace))
}

/// As [`acquire_for`], with a cache for categories that are not wanted.
fn acquire_cached(
    category: &[u8],
    is_literal: bool,
    site: Option<&RawSite>,
    out: Out<'_, StringRef>,
) -> Option<Box<TraceContext>> {
    use core::sync::atomic::Ordering;
    // Read before the category is checked, so that the cached state is never too new.
    let unwanted = (engine::epoch() as usize) << 2 | 1;
    if site.is_some_and(|site| site.state.load(Ordering::Relaxed) == unwanted) {
        return None;
    }
    let context = acquire_for(category, is_literal, out);
    if context.is_none()
        && let Some(site) = site
    {
        site.state.store(unwanted, Ordering::Relaxed);
    }
    context
}

pub extern "C" fn trace_acquire_context_for_category(
    category: CStrRef<'_>,
    out: Out<'_, StringRef>,
) -> Option<Box<TraceContext>> {
    acquire_for(category.bytes(), true, out)
}

pub extern "C" fn trace_acquire_context_for_category_cached(
    category: CStrRef<'_>,
    site: Option<&RawSite>,
    out: Out<'_, StringRef>,
) -> Option<Box<TraceContext>> {
    acquire_cached(category.bytes(), true, site, out)
}

pub extern "C" fn trace_acquire_context_for_category_bytestring(
    bytes: ArrayPtr<'_, u8>,
    length: usize,
    out: Out<'_, StringRef>,
) -> Option<Box<TraceContext>> {
    // SAFETY: the header asks for `length` bytes at `bytes` (C1).
    acquire_for(unsafe { bytes.text(length) }, false, out)
}

pub extern "C" fn trace_acquire_context_for_category_bytestring_cached(
    bytes: ArrayPtr<'_, u8>,
    length: usize,
    site: Option<&RawSite>,
    out: Out<'_, StringRef>,
) -> Option<Box<TraceContext>> {
    // SAFETY: the header asks for `length` bytes at `bytes` (C1).
    acquire_cached(unsafe { bytes.text(length) }, false, site, out)
}

pub extern "C" fn trace_release_context(context: Option<Box<TraceContext>>) {
    if let Some(context) = context {
        context.finish();
    }
}

pub extern "C" fn trace_acquire_prolonged_context() -> *const u64 {
    TraceRef::acquire_prolonged().map_or(ptr::null(), |trace| {
        trace.leak();
        &raw const PROLONGED
    })
}

pub extern "C" fn trace_release_prolonged_context(context: *const u64) {
    if !context.is_null() {
        drop(TraceRef::from_leaked_prolonged());
    }
}

pub extern "C" fn trace_context_snapshot_buffer_header_internal(
    _context: *const u64,
    header: Out<'_, [u64; HEADER_BYTES / 8]>,
) {
    // Zeros without a trace, which a caller that has acquired one does not see.
    let words = engine::header_now().unwrap_or([0; HEADER_BYTES / 8]);
    header.write(words);
}

pub extern "C" fn trace_engine_flush_category_cache() -> Status {
    // A site's cache is only valid for one run, so that there is nothing to flush.
    match engine::state() {
        State::Idle | State::Initialized | State::Stopped => OK,
        State::Started | State::Stopping | State::Changing => ERR_BAD_STATE,
    }
}
