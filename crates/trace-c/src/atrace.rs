//! Android's markers.
//= docs/kernel.md#markers
#![allow(unsafe_code, non_snake_case)]

use core::ffi::{CStr, c_char};
use trace_provider::atrace;

/// Calls with a name; nothing for a null one.
///
/// # Safety
/// Null, or a string that ends with a zero.
unsafe fn with_name(name: *const c_char, call: impl FnOnce(&str)) {
    if !name.is_null() {
        // SAFETY: as said above.
        call(&unsafe { CStr::from_ptr(name) }.to_string_lossy());
    }
}

pub unsafe extern "C" fn ATrace_isEnabled() -> bool {
    atrace::is_enabled()
}

pub unsafe extern "C" fn ATrace_beginSection(name: *const c_char) {
    // SAFETY: the header asks for it.
    unsafe { with_name(name, atrace::begin_section) }
}

pub unsafe extern "C" fn ATrace_endSection() {
    atrace::end_section();
}

pub unsafe extern "C" fn ATrace_beginAsyncSection(name: *const c_char, cookie: i32) {
    // SAFETY: the header asks for it.
    unsafe { with_name(name, |name| atrace::begin_async_section(name, cookie)) }
}

pub unsafe extern "C" fn ATrace_endAsyncSection(name: *const c_char, cookie: i32) {
    // SAFETY: the header asks for it.
    unsafe { with_name(name, |name| atrace::end_async_section(name, cookie)) }
}

pub unsafe extern "C" fn ATrace_setCounter(name: *const c_char, value: i64) {
    // SAFETY: the header asks for it.
    unsafe { with_name(name, |name| atrace::set_counter(name, value)) }
}
