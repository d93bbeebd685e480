//! An acquired trace, and what is registered in it. What is written into it is in `records`.
//!
//! Invariant **D1**: a context comes from `TraceContext::leak` and is alive until `TraceContext::finish`.
#![allow(unsafe_code)]

use crate::abi::{self, Arg, StringRef, ThreadRef};
use crate::records::{encode, inline, string, write_thread_info};
use core::ffi::{c_char, c_void};
use core::ptr;
use parking_lot::Mutex;
use trace_engine::ffi::{self, MAX_ARGUMENTS, TraceRef};
use trace_engine::{BufferMode, engine};
use trace_format::blob::Blob;
use trace_format::record::{Record, RecordHeader, RecordType};

/// Bytes of a blob record's payload at most, which is also what begin-write hands out.
const MAX_BLOB_BYTES: usize = 32_000;
/// Bytes of a large record at most.
const MAX_LARGE_BYTES: usize = 1 << 18;
/// What tells the koids of virtual threads from others.
const VIRTUAL: u64 = 1 << 63;

/// `trace_context_t`: an acquired trace.
pub struct TraceContext {
    /// Released after what is pending was written.
    _trace: TraceRef,
    /// Records that the caller fills before it releases the trace.
    pending: Mutex<Vec<Pending>>,
    /// Texts that have no index, and that references to are good until the trace is released.
    copies: Mutex<Vec<Box<[u8]>>>,
}

struct Pending {
    words: Box<[u64]>,
    is_durable: bool,
}

impl TraceContext {
    pub fn leak(trace: TraceRef) -> *mut Self {
        let (pending, copies) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        Box::into_raw(Box::new(Self { _trace: trace, pending, copies }))
    }

    /// Writes what the caller has filled, and releases the trace.
    ///
    /// # Safety
    /// D1, and nobody uses the context any more.
    pub unsafe fn finish(context: *mut Self) {
        // SAFETY: D1.
        let context = unsafe { Box::from_raw(context) };
        for pending in std::mem::take(&mut *context.pending.lock()) {
            let is_whole = pending.words.first().is_some_and(|header| {
                let header = RecordHeader(*header);
                // The size of a large record stands elsewhere.
                header.record_type() == Some(RecordType::Large) || header.size().0 == pending.words.len()
            });
            match (is_whole, pending.is_durable) {
                (false, _) => {}
                (true, false) => ffi::write_record(&pending.words),
                (true, true) => drop(ffi::write_durable_record(&pending.words)),
            }
        }
    }

    /// The reference of a text that the caller may change or free at once.
    fn register_copy(&self, text: &[u8]) -> StringRef {
        let index = ffi::string_index(text);
        if index.is_some() {
            return StringRef::new(index, text);
        }
        let copy: Box<[u8]> = text.into();
        let reference = StringRef::new(None, &copy);
        self.copies.lock().push(copy);
        reference
    }

    /// Keeps words that the caller fills or changes until it releases the trace; where they are.
    fn keep(&self, mut words: Box<[u64]>, is_durable: bool) -> *mut u64 {
        let first = words.as_mut_ptr();
        self.pending.lock().push(Pending { words, is_durable });
        first
    }
}

pub unsafe extern "C" fn trace_context_is_category_enabled(
    _: *mut TraceContext,
    category: *const c_char,
) -> bool {
    // SAFETY: C1.
    ffi::is_category_wanted(unsafe { abi::text(category) })
}

pub unsafe extern "C" fn trace_context_is_category_bytestring_enabled(
    _: *mut TraceContext,
    bytes: *const u8,
    length: usize,
) -> bool {
    // SAFETY: C1.
    ffi::is_category_wanted(unsafe { abi::bytes(bytes, length) })
}

/// # Safety
/// C1.
unsafe fn register(text: &[u8], out: *mut StringRef) {
    // SAFETY: C1.
    unsafe { abi::put(out, StringRef::new(ffi::string_index(text), text)) };
}

/// # Safety
/// C1, D1.
unsafe fn register_copy(context: *const TraceContext, text: &[u8], out: *mut StringRef) {
    // SAFETY: D1; C1.
    unsafe { abi::put(out, (*context).register_copy(text)) };
}

pub unsafe extern "C" fn trace_context_register_string_copy(
    context: *mut TraceContext,
    string: *const c_char,
    length: usize,
    out: *mut StringRef,
) {
    // SAFETY: C1, D1.
    unsafe { register_copy(context, abi::bytes(string.cast(), length), out) };
}

pub unsafe extern "C" fn trace_context_register_string_literal(
    _: *mut TraceContext,
    string: *const c_char,
    out: *mut StringRef,
) {
    // SAFETY: C1.
    unsafe { register(abi::text(string), out) };
}

pub unsafe extern "C" fn trace_context_register_bytestring(
    context: *mut TraceContext,
    bytes: *const u8,
    length: usize,
    out: *mut StringRef,
) {
    // SAFETY: C1, D1.
    unsafe { register_copy(context, abi::bytes(bytes, length), out) };
}

/// # Safety
/// C1.
unsafe fn register_category(text: &[u8], out: *mut StringRef) -> bool {
    let is_wanted = ffi::is_category_wanted(text);
    if is_wanted {
        // SAFETY: C1.
        unsafe { register(text, out) };
    }
    is_wanted
}

pub unsafe extern "C" fn trace_context_register_category_literal(
    _: *mut TraceContext,
    category: *const c_char,
    out: *mut StringRef,
) -> bool {
    // SAFETY: C1.
    unsafe { register_category(abi::text(category), out) }
}

pub unsafe extern "C" fn trace_context_register_category_bytestring(
    _: *mut TraceContext,
    bytes: *const u8,
    length: usize,
    out: *mut StringRef,
) -> bool {
    // SAFETY: C1.
    unsafe { register_category(abi::bytes(bytes, length), out) }
}

pub unsafe extern "C" fn trace_context_register_current_thread(_: *mut TraceContext, out: *mut ThreadRef) {
    let place = ffi::current_thread().map_or(ThreadRef::inline(0, 0), ThreadRef::from);
    // SAFETY: C1.
    unsafe { abi::put(out, place) };
}

/// # Safety
/// C1.
unsafe fn register_vthread(process: u64, name: &[u8], id: u64, out: *mut ThreadRef) {
    let place = if process == 0 || process == zx_sim::process_koid() {
        ffi::virtual_thread(id, &String::from_utf8_lossy(name)).map(ThreadRef::from)
    } else {
        write_thread_info(process, id | VIRTUAL, inline(name));
        None
    };
    // SAFETY: C1.
    unsafe { abi::put(out, place.unwrap_or(ThreadRef::inline(process, id | VIRTUAL))) };
}

pub unsafe extern "C" fn trace_context_register_vthread(
    _: *mut TraceContext,
    process: u64,
    name: *const c_char,
    id: u64,
    out: *mut ThreadRef,
) {
    // SAFETY: C1.
    unsafe { register_vthread(process, abi::text(name), id, out) };
}

pub unsafe extern "C" fn trace_context_register_vthread_by_ref(
    _: *mut TraceContext,
    process: u64,
    name: *const StringRef,
    id: u64,
    out: *mut ThreadRef,
) {
    // SAFETY: C1.
    unsafe {
        let name = abi::get(name).unwrap_or(StringRef::EMPTY);
        match name.inline() {
            Some(text) => register_vthread(process, text, id, out),
            None => {
                let process = if process == 0 { zx_sim::process_koid() } else { process };
                write_thread_info(process, id | VIRTUAL, name.place());
                abi::put(out, ThreadRef::inline(process, id | VIRTUAL));
            }
        }
    }
}

pub unsafe extern "C" fn trace_context_register_thread(
    _: *mut TraceContext,
    process: u64,
    thread: u64,
    out: *mut ThreadRef,
) {
    // SAFETY: C1.
    unsafe { abi::put(out, ThreadRef::inline(process, thread)) };
}

pub unsafe extern "C" fn trace_context_begin_write_blob_record(
    context: *mut TraceContext,
    blob_type: u32,
    name: *const StringRef,
    size: usize,
) -> *mut c_void {
    // SAFETY: C1, D1.
    let (context, name) = unsafe { (context.as_ref(), string(name)) };
    let (Some(context), true, Ok(blob_type)) = (context, size <= MAX_BLOB_BYTES, u8::try_from(blob_type))
    else {
        return ptr::null_mut();
    };
    let payload = vec![0; size];
    let blob = Record::Blob(Blob { blob_type, name, payload: &payload });
    let Some(words) = encode(|sink| blob.encode(sink)) else {
        return ptr::null_mut();
    };
    let first = context.keep(words.into_boxed_slice(), false);
    // SAFETY: the payload is behind header and name in what was put together.
    unsafe { first.add(1 + name.words().0) }.cast()
}

fn send_alert(name: &[u8]) {
    ffi::send_alert(&String::from_utf8_lossy(name));
}

pub unsafe extern "C" fn trace_context_send_alert(_: *mut TraceContext, name: *const c_char) {
    // SAFETY: C1.
    send_alert(unsafe { abi::text(name) });
}

pub unsafe extern "C" fn trace_context_send_alert_bytestring(
    _: *mut TraceContext,
    name: *const u8,
    length: usize,
) {
    // SAFETY: C1.
    send_alert(unsafe { abi::bytes(name, length) });
}

/// # Safety
/// D1.
unsafe fn allocate(context: *mut TraceContext, bytes: usize, is_durable: bool) -> *mut c_void {
    // SAFETY: D1.
    match unsafe { context.as_ref() } {
        Some(context) if bytes != 0 && bytes.is_multiple_of(8) && bytes <= MAX_LARGE_BYTES => {
            context.keep(vec![0; bytes / 8].into_boxed_slice(), is_durable).cast()
        }
        _ => ptr::null_mut(),
    }
}

pub unsafe extern "C" fn trace_context_alloc_record(context: *mut TraceContext, bytes: usize) -> *mut c_void {
    // SAFETY: D1.
    unsafe { allocate(context, bytes, false) }
}

pub unsafe extern "C" fn trace_context_alloc_durable_record(
    context: *mut TraceContext,
    bytes: usize,
) -> *mut c_void {
    // SAFETY: D1.
    unsafe { allocate(context, bytes, true) }
}

pub unsafe extern "C" fn trace_context_get_buffering_mode(_: *const TraceContext) -> u32 {
    match engine::mode() {
        None | Some(BufferMode::Oneshot) => 0,
        Some(BufferMode::Circular) => 1,
        Some(BufferMode::Streaming) => 2,
    }
}

pub unsafe extern "C" fn trace_internal_complete_args(_: *mut TraceContext, args: *mut Arg, count: usize) {
    if args.is_null() {
        return;
    }
    for index in 0..count.min(MAX_ARGUMENTS) {
        // SAFETY: C1: an array of so many, which the caller has for itself.
        unsafe {
            let argument = &mut *args.add(index);
            let name = abi::text(argument.name.inline_string);
            argument.name = StringRef::new(ffi::string_index(name), name);
        }
    }
}
