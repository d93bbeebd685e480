//! The types of the headers, as C passes them. The functions behind the headers name them in their
//! signatures: each has the layout of the pointer or structure in C, carries the header's contract in its
//! type, and is converted by a safe function. An enumeration may have any value.
//!
//! Invariants, which the headers ask of their callers. Only C makes a value of these types that has a pointer
//! to follow, except through the safe constructors here.
//!
//! * **C1** A pointer is null where the header allows it; else it is aligned and valid, for as long as the
//!   call takes, for as many elements or bytes as the call says. No thread changes the memory during the
//!   call.
//! * **C2** A text without a length ends in a NUL.
//! * **C3** A pointer for a result is null or has room for one value, which no other thread accesses during
//!   the call. Its contents may be uninitialized.
//! * **C4** The payload of an argument is the one that its type names.
//!
//! `&T`, `Option<&T>` and `Option<Box<T>>` in a signature are pointers in C, under C1 and the invariant that
//! the module of `T` states.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_char};
use core::marker::PhantomData;
use core::ptr;
use std::borrow::Cow;
use trace_engine::ffi;
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

/// `const char*`: a text that ends in a NUL, or null. It is valid for `'a` (C1, C2).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct CStrRef<'a> {
    first: *const c_char,
    lent: PhantomData<&'a CStr>,
}

impl<'a> CStrRef<'a> {
    pub const NULL: Self = Self { first: ptr::null(), lent: PhantomData };

    fn whole(self) -> Option<&'a CStr> {
        // SAFETY: not null here; the text ends in a NUL (C2) and stays unchanged for `'a`, which is no longer
        // than the call (C1) or the borrow that `from` has taken.
        (!self.first.is_null()).then(|| unsafe { CStr::from_ptr(self.first) })
    }

    /// Its bytes, cut to the maximum of a string in a trace; empty for null.
    pub fn bytes(self) -> &'a [u8] {
        let bytes = self.whole().map_or(&[][..], CStr::to_bytes);
        &bytes[..bytes.len().min(MAX_STRING_BYTES)]
    }

    /// Its bytes; empty for null.
    pub fn whole_bytes(self) -> &'a [u8] {
        self.whole().map_or(&[][..], CStr::to_bytes)
    }

    /// The whole text, with replacement characters for what is not UTF-8. None for null.
    pub fn to_string_lossy(self) -> Option<Cow<'a, str>> {
        self.whole().map(CStr::to_string_lossy)
    }
}

impl<'a> From<&'a CStr> for CStrRef<'a> {
    fn from(text: &'a CStr) -> Self {
        Self { first: text.as_ptr(), lent: PhantomData }
    }
}

/// `const T*`: the first of several elements, whose number is another argument; or null.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct ArrayPtr<'a, T> {
    first: *const T,
    lent: PhantomData<&'a [T]>,
}

impl<'a, T> ArrayPtr<'a, T> {
    /// The elements; none for null.
    ///
    /// # Safety
    /// The caller in C has passed at least `count` elements (C1).
    pub unsafe fn take(self, count: usize) -> &'a [T] {
        if self.first.is_null() {
            return &[];
        }
        // SAFETY: aligned and unchanged for `'a` (C1), and of this length, as the caller promises.
        unsafe { core::slice::from_raw_parts(self.first, count) }
    }
}

impl<'a> ArrayPtr<'a, u8> {
    /// The bytes of a text, cut to the maximum of a string in a trace; empty for null.
    ///
    /// # Safety
    /// As [`ArrayPtr::take`].
    pub unsafe fn text(self, length: usize) -> &'a [u8] {
        // SAFETY: the caller's promise, for no more bytes than it is given for.
        unsafe { self.take(length.min(MAX_STRING_BYTES)) }
    }
}

/// `T*`: where a function stores a result; null if the caller does not want it.
#[repr(transparent)]
pub struct Out<'a, T> {
    place: *mut T,
    lent: PhantomData<&'a mut T>,
}

impl<T> Out<'_, T> {
    /// For a result that is not wanted.
    pub const NONE: Self = Self { place: ptr::null_mut(), lent: PhantomData };

    pub const fn is_null(&self) -> bool {
        self.place.is_null()
    }

    /// Stores the result, unless the pointer is null.
    pub fn write(self, value: T) {
        if !self.place.is_null() {
            // SAFETY: aligned, and room for one `T` that no other thread accesses (C3). What was there is
            // neither read nor dropped, so that it may be uninitialized.
            unsafe { self.place.write(value) };
        }
    }
}

/// `trace_string_ref_t`, as a function stores it for its caller.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StringRef {
    encoded_value: u16,
    inline_string: *const c_char,
}

const INLINE: u16 = 0x8000;

impl StringRef {
    /// The reference of a text, which has an index or is written inline.
    pub fn new(index: Option<u16>, text: &[u8]) -> Self {
        match index {
            Some(index) => Self { encoded_value: index, inline_string: ptr::null() },
            None => Self { encoded_value: INLINE | text.len() as u16, inline_string: text.as_ptr().cast() },
        }
    }
}

/// `trace_string_ref_t`, as C passes it: an inline text is valid for `'a`, and for the length in the encoded
/// value (C1).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct GivenString<'a> {
    reference: StringRef,
    lent: PhantomData<&'a [u8]>,
}

impl<'a> GivenString<'a> {
    pub const EMPTY: Self =
        Self { reference: StringRef { encoded_value: 0, inline_string: ptr::null() }, lent: PhantomData };

    /// The bytes of an inline reference.
    pub fn inline(self) -> Option<&'a [u8]> {
        let StringRef { encoded_value, inline_string } = self.reference;
        if encoded_value & INLINE == 0 || inline_string.is_null() {
            return None;
        }
        let length = usize::from(encoded_value & !INLINE).min(MAX_STRING_BYTES);
        // SAFETY: not null, and the type's invariant for the bytes and their number (C1); bytes need no
        // alignment.
        Some(unsafe { core::slice::from_raw_parts(inline_string.cast(), length) })
    }

    /// How it stands in a record.
    pub fn in_record(self) -> refs::StringRef<'a> {
        match self.inline() {
            Some([]) => refs::StringRef::Empty,
            Some(text) => refs::StringRef::Inline(text),
            None => StringIndex::new(self.reference.encoded_value & !INLINE)
                .map_or(refs::StringRef::Empty, refs::StringRef::Index),
        }
    }
}

impl<'a> From<refs::StringRef<'a>> for GivenString<'a> {
    /// What has an index stands for nothing here.
    fn from(text: refs::StringRef<'a>) -> Self {
        match text {
            refs::StringRef::Inline(text) => {
                Self { reference: StringRef::new(None, text), lent: PhantomData }
            }
            refs::StringRef::Empty | refs::StringRef::Index(_) => Self::EMPTY,
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
    pub fn in_record(self) -> refs::ThreadRef {
        let index = u8::try_from(self.encoded_value).ok().and_then(ThreadIndex::new);
        let (process, thread) = (ProcessKoid(Koid(self.process)), ThreadKoid(Koid(self.thread)));
        index.map_or(refs::ThreadRef::Inline { process, thread }, refs::ThreadRef::Index)
    }
}

impl From<refs::ThreadRef> for ThreadRef {
    fn from(thread: refs::ThreadRef) -> Self {
        match thread {
            refs::ThreadRef::Index(index) => {
                Self { encoded_value: u32::from(index.get()), process: 0, thread: 0 }
            }
            refs::ThreadRef::Inline { process, thread } => Self::inline(process.0.0, thread.0.0),
        }
    }
}

/// The untagged part of `trace_arg_value_t`.
#[derive(Clone, Copy)]
#[repr(C)]
union ArgPayload<'a> {
    int32: i32,
    uint32: u32,
    int64: i64,
    uint64: u64,
    double: f64,
    string: GivenString<'a>,
    bool_byte: u8,
    reserved: [usize; 2],
}

/// `TRACE_INTERNAL_LITERAL`.
const LITERAL: u32 = 0x4c49_5445;

/// `trace_arg_value_t` (C4).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ArgValue<'a> {
    arg_type: u32,
    payload: ArgPayload<'a>,
}

impl<'a> ArgValue<'a> {
    /// The value in a record. In a private one a literal has an index, unlike other texts.
    pub fn recorded(&self, is_private: bool) -> ArgumentValue<'a> {
        let value = self.value();
        match value {
            ArgumentValue::String(refs::StringRef::Inline(text)) if is_private && self.is_literal() => {
                let index = ffi::literal_index(text).and_then(StringIndex::new);
                ArgumentValue::String(index.map_or(refs::StringRef::Inline(text), refs::StringRef::Index))
            }
            value => value,
        }
    }

    /// Whether a text is marked as a literal.
    pub fn is_literal(&self) -> bool {
        // SAFETY: whole words, as the macros store them. Where C has stored a reference alone, its padding is
        // that of another text, or of none: the mark is one of the text's address.
        let [word, address] = unsafe { self.payload.reserved };
        word as u64 >> 32 == u64::from(address as u32 ^ LITERAL)
    }

    /// The value in a record; null for an unknown type.
    pub fn value(&self) -> ArgumentValue<'a> {
        let payload = &self.payload;
        // SAFETY: C has stored the field that the type names (C4). Each bit pattern is a value of the
        // numbers; a string has the invariant of its type.
        unsafe {
            match self.arg_type {
                1 => ArgumentValue::Int32(payload.int32),
                2 => ArgumentValue::Uint32(payload.uint32),
                3 => ArgumentValue::Int64(payload.int64),
                4 => ArgumentValue::Uint64(payload.uint64),
                5 => ArgumentValue::Double(payload.double),
                6 => ArgumentValue::String(payload.string.in_record()),
                7 => ArgumentValue::Pointer(payload.uint64),
                8 => ArgumentValue::Koid(Koid(payload.uint64)),
                9 => ArgumentValue::Bool(payload.bool_byte != 0),
                _ => ArgumentValue::Null,
            }
        }
    }
}

impl<'a> From<ArgumentValue<'a>> for ArgValue<'a> {
    /// A blob, for which C has no field, is null; so is a text that stands elsewhere.
    fn from(value: ArgumentValue<'a>) -> Self {
        let word =
            |arg_type, word: u64| Self { arg_type, payload: ArgPayload { reserved: [word as usize, 0] } };
        match value {
            ArgumentValue::Int32(value) => word(1, u64::from(value as u32)),
            ArgumentValue::Uint32(value) => word(2, u64::from(value)),
            ArgumentValue::Int64(value) => word(3, value as u64),
            ArgumentValue::Uint64(value) => word(4, value),
            ArgumentValue::Double(value) => word(5, value.to_bits()),
            ArgumentValue::String(text) => {
                let mut payload = ArgPayload { reserved: [0; 2] };
                payload.string = text.into();
                Self { arg_type: 6, payload }
            }
            ArgumentValue::Pointer(value) => word(7, value),
            ArgumentValue::Koid(value) => word(8, value.0),
            ArgumentValue::Bool(value) => word(9, u64::from(value)),
            ArgumentValue::Null | ArgumentValue::Blob(_) | ArgumentValue::Unknown { .. } => word(0, 0),
        }
    }
}

/// `trace_arg_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Arg<'a> {
    pub name: GivenString<'a>,
    pub value: ArgValue<'a>,
}

/// `trace_arg_t` whose name has no reference yet: its text is where that of an inline reference is, but ends
/// in a NUL (C2).
#[repr(C)]
pub struct UnregisteredArg<'a> {
    name: StringRef,
    value: ArgValue<'a>,
}

impl<'a> UnregisteredArg<'a> {
    pub fn name(&self) -> CStrRef<'a> {
        CStrRef { first: self.name.inline_string, lent: PhantomData }
    }

    pub const fn set_name(&mut self, reference: StringRef) {
        self.name = reference;
    }
}

const _: () = {
    assert!(size_of::<StringRef>() == 16 && core::mem::offset_of!(StringRef, inline_string) == 8);
    assert!(size_of::<ThreadRef>() == 24 && core::mem::offset_of!(ThreadRef, thread) == 16);
    assert!(size_of::<ArgValue<'_>>() == 24 && core::mem::offset_of!(ArgValue<'_>, payload) == 8);
    assert!(size_of::<Arg<'_>>() == 40 && core::mem::offset_of!(Arg<'_>, value) == 16);
    assert!(size_of::<UnregisteredArg<'_>>() == 40);
    assert!(core::mem::offset_of!(UnregisteredArg<'_>, value) == 16);
    assert!(size_of::<CStrRef<'_>>() == size_of::<*const c_char>());
    assert!(size_of::<Out<'_, u64>>() == size_of::<*mut u64>());
};
