//! The functions of `trace-reader/c_api.h`.
//!
//! Invariants, which the header asks of callers:
//!
//! * **R1** A reader is one that an opening function returned and that was not closed yet, or null where the
//!   header allows it; one thread at a time uses it.
//! * **R2** Other pointers are null where the header allows it, else valid for as long as the call takes (the
//!   bytes of `trace_reader_open_memory` until the reader is closed), for as many bytes as the call's size
//!   argument; paths end in a NUL.
#![allow(unsafe_code)]

use crate::abi::{CText, Record};
use crate::record::Filled;
use core::ffi::{CStr, c_char, c_void};
use core::{ptr, slice};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use trace_reader::item::{Koid, Thread};
use trace_reader::{Plain, ReadError, Reader, Stream};

/// `trace_reader_t`.
pub struct Handle {
    reader: Reader<Stream<Plain<Box<dyn Read>>>>,
    filled: Filled,
    error: Option<CString>,
    warnings: Vec<Warning>,
    /// The texts that the pointers of `warnings` lead to.
    messages: Vec<String>,
}

/// `trace_reader_warning_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Warning {
    offset: u64,
    provider: u32,
    kind: CText,
    message: CText,
}

/// `trace_reader_read_t`.
type ReadCallback = unsafe extern "C" fn(context: *mut c_void, to: *mut c_void, size: usize) -> isize;

struct Callback {
    read: ReadCallback,
    context: *mut c_void,
}

impl Read for Callback {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        // SAFETY: R2, and `to` has room for so many bytes.
        let read = unsafe { (self.read)(self.context, to.as_mut_ptr().cast(), to.len()) };
        match usize::try_from(read) {
            Ok(read) if read <= to.len() => Ok(read),
            Ok(read) => Err(io::Error::other(format!("{read} bytes were read, {} were asked for", to.len()))),
            Err(_) => Err(io::Error::other("the function that reads failed")),
        }
    }
}

/// An error with the operating system's message, in one line without a NUL.
fn text_of(error: &ReadError) -> CString {
    let text = match error {
        ReadError::Io { source, .. } => [error.to_string(), source.to_string()].join(": "),
        _ => error.to_string(),
    };
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Writes a text with a NUL behind it, as much of it as there is room for.
///
/// # Safety
/// R2
unsafe fn write_error(text: &CStr, error: *mut c_char, error_size: usize) {
    let Some(room) = error_size.checked_sub(1) else { return };
    if error.is_null() {
        return;
    }
    let bytes = text.to_bytes();
    let mut length = bytes.len().min(room);
    // Not inside a character.
    while length < bytes.len() && bytes[length] & 0xc0 == 0x80 {
        length -= 1;
    }
    // SAFETY: R2: there is room for `error_size` bytes, of which at most `room` and a NUL are written.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), error.cast(), length);
        *error.add(length) = 0;
    }
}

/// # Safety
/// R2
unsafe fn open(
    input: io::Result<Box<dyn Read>>,
    name: &str,
    error: *mut c_char,
    error_size: usize,
) -> *mut Handle {
    let reader = match input {
        Ok(input) => Reader::new(input).map_err(|why| text_of(&why)),
        Err(why) => Err(CString::new(why.to_string()).unwrap_or_default()),
    };
    match reader {
        Ok(reader) => Box::into_raw(Box::new(Handle {
            reader,
            filled: Filled::new(),
            error: None,
            warnings: Vec::new(),
            messages: Vec::new(),
        })),
        Err(why) => {
            let text = format!("{name}: {}", why.to_string_lossy());
            // SAFETY: R2
            unsafe { write_error(&CString::new(text).unwrap_or_default(), error, error_size) };
            ptr::null_mut()
        }
    }
}

/// Opens a file.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_open(
    path: *const c_char,
    error: *mut c_char,
    error_size: usize,
) -> *mut Handle {
    // SAFETY: R2
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
    let input = File::open(path).map(|file| Box::new(file) as Box<dyn Read>);
    // SAFETY: R2
    unsafe { open(input, &path.to_string_lossy(), error, error_size) }
}

/// Reads bytes that stay where they are.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_open_memory(
    data: *const c_void,
    size: usize,
    error: *mut c_char,
    error_size: usize,
) -> *mut Handle {
    let bytes: &'static [u8] = match size {
        0 => &[],
        // SAFETY: R2: valid until the reader is closed, after which the slice is not used.
        _ => unsafe { slice::from_raw_parts(data.cast(), size) },
    };
    // SAFETY: R2
    unsafe { open(Ok(Box::new(bytes)), "memory", error, error_size) }
}

/// Reads the data that a callback supplies.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_open_callback(
    read: ReadCallback,
    context: *mut c_void,
    error: *mut c_char,
    error_size: usize,
) -> *mut Handle {
    // SAFETY: R2
    unsafe { open(Ok(Box::new(Callback { read, context })), "input", error, error_size) }
}

/// The next record.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_next(handle: *mut Handle) -> *const Record {
    // SAFETY: R1
    let Handle { reader, filled, error, .. } = unsafe { &mut *handle };
    match reader.next_item() {
        Ok(Some(found)) => filled.fill(&found),
        Ok(None) => ptr::null(),
        Err(why) => {
            *error = Some(text_of(&why));
            ptr::null()
        }
    }
}

/// Why reading ended before the end, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_get_error(handle: *const Handle) -> *const c_char {
    // SAFETY: R1
    let handle = unsafe { &*handle };
    handle.error.as_deref().map_or(ptr::null(), CStr::as_ptr)
}

/// The number of warnings so far.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_count_warnings(handle: *const Handle) -> u64 {
    // SAFETY: R1
    unsafe { &*handle }.reader.warnings().count()
}

/// The first warnings of each kind.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_get_warnings(handle: *mut Handle, count: *mut usize) -> *const Warning {
    // SAFETY: R1
    let handle = unsafe { &mut *handle };
    let first = handle.reader.warnings().first();
    handle.messages = first.iter().map(|warning| warning.kind.to_string()).collect();
    handle.warnings = first
        .iter()
        .zip(&handle.messages)
        .map(|(warning, message)| Warning {
            offset: warning.offset.0,
            provider: warning.provider.0,
            kind: CText::of(warning.kind.name().as_bytes()),
            message: CText::of(message.as_bytes()),
        })
        .collect();
    // SAFETY: R2
    unsafe { *count = handle.warnings.len() };
    handle.warnings.as_ptr()
}

/// The name of a process.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_get_process_name(handle: *const Handle, process: u64) -> CText {
    // SAFETY: R1
    let names = unsafe { &*handle }.reader.names();
    names.process(Koid(process)).map_or(CText::EMPTY, CText::from)
}

/// The name of a thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_get_thread_name(handle: *const Handle, process: u64, thread: u64) -> CText {
    // SAFETY: R1
    let names = unsafe { &*handle }.reader.names();
    let thread = Thread { process: Koid(process), thread: Koid(thread) };
    names.thread(thread).map_or(CText::EMPTY, CText::from)
}

/// The name of the function at an address of a process, if the trace itself has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_get_function_name(
    handle: *const Handle,
    process: u64,
    address: u64,
) -> CText {
    // SAFETY: R1
    let names = unsafe { &*handle }.reader.names();
    names.function(Koid(process), address).map_or(CText::EMPTY, CText::from)
}

/// Frees a reader.
#[unsafe(no_mangle)]
unsafe extern "C" fn trace_reader_close(handle: *mut Handle) {
    if !handle.is_null() {
        // SAFETY: R1: it came from `Box::into_raw`, and is not used any more.
        drop(unsafe { Box::from_raw(handle) });
    }
}
