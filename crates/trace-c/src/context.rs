//! An acquired trace, and what is registered in it. What is written into it is in `records`.
//!
//! Invariant **D1**: a `trace_context_t*` is from a function that acquires a trace, and is released once,
//! when no thread uses it any more. So it is a `Box` to the function that returns it and to the one that
//! releases it, and a reference in between.
#![allow(unsafe_code)]

use crate::abi::{ArrayPtr, CStrRef, GivenString, Out, StringRef, ThreadRef, UnregisteredArg};
use crate::records::{encode, inline, string, write_thread_info};
use core::ffi::c_void;
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
/// The bit that distinguishes the koids of virtual threads.
const VIRTUAL: u64 = 1 << 63;

/// `trace_context_t`: an acquired trace.
pub struct TraceContext {
    /// Released after what is pending was written.
    _trace: TraceRef,
    /// Records that the caller fills before it releases the trace.
    pending: Mutex<Vec<Pending>>,
    /// Texts that have no index. References to them are valid until the trace is released.
    copies: Mutex<Vec<Box<[u8]>>>,
}

struct Pending {
    words: Box<[u64]>,
    is_durable: bool,
}

impl TraceContext {
    pub fn new(trace: TraceRef) -> Box<Self> {
        let (pending, copies) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        Box::new(Self { _trace: trace, pending, copies })
    }

    /// Writes what the caller has filled, and releases the trace.
    pub fn finish(self) {
        for pending in std::mem::take(&mut *self.pending.lock()) {
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

pub extern "C" fn trace_context_is_category_enabled(_: *mut TraceContext, category: CStrRef<'_>) -> bool {
    ffi::is_category_wanted(category.bytes())
}

pub extern "C" fn trace_context_is_category_bytestring_enabled(
    _: *mut TraceContext,
    bytes: ArrayPtr<'_, u8>,
    length: usize,
) -> bool {
    // SAFETY: the header asks for `length` bytes at `bytes` (C1).
    ffi::is_category_wanted(unsafe { bytes.text(length) })
}

/// A constant of the program.
fn register(text: &[u8], out: Out<'_, StringRef>) {
    out.write(StringRef::new(ffi::literal_index(text), text));
}

pub extern "C" fn trace_context_register_string_copy(
    context: &TraceContext,
    bytes: ArrayPtr<'_, u8>,
    length: usize,
    out: Out<'_, StringRef>,
) {
    // SAFETY: the header asks for `length` bytes at `string`, which are `bytes` here (C1).
    out.write(context.register_copy(unsafe { bytes.text(length) }));
}

pub extern "C" fn trace_context_register_string_literal(
    _: *mut TraceContext,
    string: CStrRef<'_>,
    out: Out<'_, StringRef>,
) {
    register(string.bytes(), out);
}

pub extern "C" fn trace_context_register_bytestring(
    context: &TraceContext,
    bytes: ArrayPtr<'_, u8>,
    length: usize,
    out: Out<'_, StringRef>,
) {
    // SAFETY: the header asks for `length` bytes at `bytes` (C1).
    out.write(context.register_copy(unsafe { bytes.text(length) }));
}

fn register_category(text: &[u8], is_literal: bool, out: Out<'_, StringRef>) -> bool {
    let is_wanted = ffi::is_category_wanted(text);
    match (is_wanted, is_literal) {
        (true, true) => register(text, out),
        (true, false) => out.write(StringRef::new(ffi::string_index(text), text)),
        (false, _) => {}
    }
    is_wanted
}

pub extern "C" fn trace_context_register_category_literal(
    _: *mut TraceContext,
    category: CStrRef<'_>,
    out: Out<'_, StringRef>,
) -> bool {
    register_category(category.bytes(), true, out)
}

pub extern "C" fn trace_context_register_category_bytestring(
    _: *mut TraceContext,
    bytes: ArrayPtr<'_, u8>,
    length: usize,
    out: Out<'_, StringRef>,
) -> bool {
    // SAFETY: the header asks for `length` bytes at `bytes` (C1).
    register_category(unsafe { bytes.text(length) }, false, out)
}

pub extern "C" fn trace_context_register_current_thread(_: *mut TraceContext, out: Out<'_, ThreadRef>) {
    let place = ffi::current_thread().map_or(ThreadRef::inline(0, 0), ThreadRef::from);
    out.write(place);
}

fn register_vthread(process: u64, name: &[u8], id: u64, out: Out<'_, ThreadRef>) {
    let place = if process == 0 || process == ffi::current_process() {
        ffi::virtual_thread(id, &String::from_utf8_lossy(name)).map(ThreadRef::from)
    } else {
        write_thread_info(process, id | VIRTUAL, inline(name));
        None
    };
    out.write(place.unwrap_or(ThreadRef::inline(process, id | VIRTUAL)));
}

pub extern "C" fn trace_context_register_vthread(
    _: *mut TraceContext,
    process: u64,
    name: CStrRef<'_>,
    id: u64,
    out: Out<'_, ThreadRef>,
) {
    register_vthread(process, name.bytes(), id, out);
}

pub extern "C" fn trace_context_register_vthread_by_ref(
    _: *mut TraceContext,
    process: u64,
    name: Option<&GivenString<'_>>,
    id: u64,
    out: Out<'_, ThreadRef>,
) {
    let name = name.copied().unwrap_or(GivenString::EMPTY);
    match name.inline() {
        Some(text) => register_vthread(process, text, id, out),
        None => {
            let process = if process == 0 { ffi::current_process() } else { process };
            write_thread_info(process, id | VIRTUAL, name.in_record());
            out.write(ThreadRef::inline(process, id | VIRTUAL));
        }
    }
}

pub extern "C" fn trace_context_register_thread(
    _: *mut TraceContext,
    process: u64,
    thread: u64,
    out: Out<'_, ThreadRef>,
) {
    out.write(ThreadRef::inline(process, thread));
}

pub extern "C" fn trace_context_begin_write_blob_record(
    context: Option<&TraceContext>,
    blob_type: u32,
    name: Option<&GivenString<'_>>,
    size: usize,
) -> *mut c_void {
    let name = string(name);
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
    // The payload is behind header and name, in the words that were just encoded.
    first.wrapping_add(1 + name.words().0).cast()
}

fn send_alert(name: &[u8]) {
    ffi::send_alert(&String::from_utf8_lossy(name));
}

pub extern "C" fn trace_context_send_alert(_: *mut TraceContext, name: CStrRef<'_>) {
    send_alert(name.bytes());
}

pub extern "C" fn trace_context_send_alert_bytestring(
    _: *mut TraceContext,
    name: ArrayPtr<'_, u8>,
    length: usize,
) {
    // SAFETY: the header asks for `length` bytes at `name` (C1).
    send_alert(unsafe { name.text(length) });
}

fn allocate(context: Option<&TraceContext>, bytes: usize, is_durable: bool) -> *mut c_void {
    match context {
        Some(context) if bytes != 0 && bytes.is_multiple_of(8) && bytes <= MAX_LARGE_BYTES => {
            context.keep(vec![0; bytes / 8].into_boxed_slice(), is_durable).cast()
        }
        _ => ptr::null_mut(),
    }
}

pub extern "C" fn trace_context_alloc_record(context: Option<&TraceContext>, bytes: usize) -> *mut c_void {
    allocate(context, bytes, false)
}

pub extern "C" fn trace_context_alloc_durable_record(
    context: Option<&TraceContext>,
    bytes: usize,
) -> *mut c_void {
    allocate(context, bytes, true)
}

pub extern "C" fn trace_context_get_buffering_mode(_: *const TraceContext) -> u32 {
    match engine::mode() {
        None | Some(BufferMode::Oneshot) => 0,
        Some(BufferMode::Circular) => 1,
        Some(BufferMode::Streaming) => 2,
    }
}

pub unsafe extern "C" fn trace_internal_complete_args(
    _: *mut TraceContext,
    args: *mut UnregisteredArg<'_>,
    count: usize,
) {
    if args.is_null() {
        return;
    }
    // SAFETY: a local array of the macro's that calls this, of `count` arguments (C1), which no other thread
    // knows; so the reference is the only one.
    let args = unsafe { core::slice::from_raw_parts_mut(args, count.min(MAX_ARGUMENTS)) };
    for argument in args {
        let name = argument.name().bytes();
        argument.set_name(StringRef::new(ffi::literal_index(name), name));
    }
}
