//! The types of the headers, as they come from a stranger: no field is trusted to be one of an enumeration.
//!
//! Invariant **C1**: pointers are null where the header allows it, else valid for as long as the call takes
//! and for as many elements or bytes as the call says; strings without a length end in a NUL.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_void};
use trace_engine::ffi::ThreadPlace;
use trace_format::argument::ArgumentValue;
use trace_format::refs::{self, MAX_STRING_BYTES};
use trace_format::units::{Koid, ProcessKoid, StringIndex, ThreadIndex, ThreadKoid};

/// `zx_status_t`.
pub type Status = i32;
pub const OK: Status = 0;
pub const ERR_INTERNAL: Status = -1;
pub const ERR_NO_MEMORY: Status = -4;
pub const ERR_INVALID_ARGS: Status = -10;
pub const ERR_BAD_HANDLE: Status = -11;
pub const ERR_WRONG_TYPE: Status = -12;
pub const ERR_BAD_STATE: Status = -20;
pub const ERR_TIMED_OUT: Status = -21;
pub const ERR_CANCELED: Status = -23;
pub const ERR_NOT_FOUND: Status = -25;

/// `trace_string_ref_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StringRef {
    pub encoded_value: u16,
    pub inline_string: *const c_char,
}

const INLINE: u16 = 0x8000;

impl StringRef {
    pub const EMPTY: Self = Self { encoded_value: 0, inline_string: core::ptr::null() };

    /// The reference of a text, which has an index or is written inline.
    pub fn new(index: Option<u16>, text: &[u8]) -> Self {
        match index {
            Some(index) => Self { encoded_value: index, inline_string: core::ptr::null() },
            None => Self { encoded_value: INLINE | text.len() as u16, inline_string: text.as_ptr().cast() },
        }
    }

    /// The bytes of an inline reference.
    ///
    /// # Safety
    /// C1.
    pub unsafe fn inline<'a>(self) -> Option<&'a [u8]> {
        if self.encoded_value & INLINE == 0 || self.inline_string.is_null() {
            return None;
        }
        let length = usize::from(self.encoded_value & !INLINE).min(MAX_STRING_BYTES);
        // SAFETY: C1.
        Some(unsafe { core::slice::from_raw_parts(self.inline_string.cast(), length) })
    }

    /// How it stands in a record.
    ///
    /// # Safety
    /// C1.
    pub unsafe fn place<'a>(self) -> refs::StringRef<'a> {
        // SAFETY: C1.
        match unsafe { self.inline() } {
            Some([]) => refs::StringRef::Empty,
            Some(text) => refs::StringRef::Inline(text),
            None => StringIndex::new(self.encoded_value & !INLINE)
                .map_or(refs::StringRef::Empty, refs::StringRef::Index),
        }
    }
}

/// `trace_thread_ref_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ThreadRef {
    pub encoded_value: u32,
    pub process: u64,
    pub thread: u64,
}

impl ThreadRef {
    /// An inline reference.
    pub const fn inline(process: u64, thread: u64) -> Self {
        Self { encoded_value: 0, process, thread }
    }

    /// How it stands in a record.
    pub fn place(self) -> refs::ThreadRef {
        let index = u8::try_from(self.encoded_value).ok().and_then(ThreadIndex::new);
        let (process, thread) = (ProcessKoid(Koid(self.process)), ThreadKoid(Koid(self.thread)));
        index.map_or(refs::ThreadRef::Inline { process, thread }, refs::ThreadRef::Index)
    }
}

impl From<ThreadPlace> for ThreadRef {
    fn from(place: ThreadPlace) -> Self {
        match place {
            ThreadPlace::Index(index) => Self { encoded_value: u32::from(index), process: 0, thread: 0 },
            ThreadPlace::Inline(ProcessKoid(Koid(process)), ThreadKoid(Koid(thread))) => {
                Self::inline(process, thread)
            }
        }
    }
}

/// The untagged part of `trace_arg_value_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub union ArgPayload {
    pub int32: i32,
    pub uint32: u32,
    pub int64: i64,
    pub uint64: u64,
    pub double: f64,
    pub string: StringRef,
    pub bool_byte: u8,
    pub reserved: [usize; 2],
}

/// `trace_arg_value_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ArgValue {
    pub arg_type: u32,
    pub payload: ArgPayload,
}

impl ArgValue {
    /// The value in a record; null for a type that there is not.
    ///
    /// # Safety
    /// C1; the payload is what the type says.
    pub unsafe fn value<'a>(&self) -> ArgumentValue<'a> {
        let payload = &self.payload;
        // SAFETY: the field that the type stands for, all of whose bit patterns are values.
        unsafe {
            match self.arg_type {
                1 => ArgumentValue::Int32(payload.int32),
                2 => ArgumentValue::Uint32(payload.uint32),
                3 => ArgumentValue::Int64(payload.int64),
                4 => ArgumentValue::Uint64(payload.uint64),
                5 => ArgumentValue::Double(payload.double),
                6 => ArgumentValue::String(payload.string.place()),
                7 => ArgumentValue::Pointer(payload.uint64),
                8 => ArgumentValue::Koid(Koid(payload.uint64)),
                9 => ArgumentValue::Bool(payload.bool_byte != 0),
                _ => ArgumentValue::Null,
            }
        }
    }
}

/// `trace_arg_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Arg {
    pub name: StringRef,
    pub value: ArgValue,
}

const _: () = {
    assert!(size_of::<StringRef>() == 16 && core::mem::offset_of!(StringRef, inline_string) == 8);
    assert!(size_of::<ThreadRef>() == 24 && core::mem::offset_of!(ThreadRef, thread) == 16);
    assert!(size_of::<ArgValue>() == 24 && core::mem::offset_of!(ArgValue, payload) == 8);
    assert!(size_of::<Arg>() == 40 && core::mem::offset_of!(Arg, value) == 16);
};

/// The bytes of a C string, cut to what a string in a trace may have; empty for null.
///
/// # Safety
/// C1.
pub unsafe fn text<'a>(string: *const c_char) -> &'a [u8] {
    if string.is_null() {
        return &[];
    }
    // SAFETY: C1.
    let bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
    &bytes[..bytes.len().min(MAX_STRING_BYTES)]
}

/// So many bytes, cut to what a string in a trace may have.
///
/// # Safety
/// C1.
pub unsafe fn bytes<'a>(string: *const u8, length: usize) -> &'a [u8] {
    // SAFETY: C1.
    unsafe { slice(string, length.min(MAX_STRING_BYTES)) }
}

/// A list of the caller's; empty for null.
///
/// # Safety
/// C1.
pub unsafe fn slice<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: C1.
    unsafe { core::slice::from_raw_parts(first, count) }
}

/// So many bytes of a blob, however large.
///
/// # Safety
/// C1.
pub unsafe fn blob<'a>(blob: *const c_void, size: usize) -> &'a [u8] {
    // SAFETY: C1.
    unsafe { slice(blob.cast(), size) }
}

/// What stands at a pointer of the caller's, if it points anywhere.
///
/// # Safety
/// C1.
pub unsafe fn get<T: Copy>(pointer: *const T) -> Option<T> {
    // SAFETY: C1.
    unsafe { pointer.as_ref() }.copied()
}

/// Stores something for the caller, if there is a place for it.
///
/// # Safety
/// C1.
pub unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: C1; what was there is not read.
        unsafe { place.write(value) };
    }
}
