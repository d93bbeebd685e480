//! Android's markers.
//= docs/kernel.md#markers
#![allow(non_snake_case, reason = "names that Android has given")]

use crate::abi::CStrRef;
use trace_provider::atrace;

/// Calls a function with the name; does nothing for a null one.
fn with_name(name: CStrRef<'_>, call: impl FnOnce(&str)) {
    if let Some(name) = name.to_string_lossy() {
        call(&name);
    }
}

pub extern "C" fn ATrace_isEnabled() -> bool {
    atrace::is_enabled()
}

pub extern "C" fn ATrace_beginSection(name: CStrRef<'_>) {
    with_name(name, atrace::begin_section);
}

pub extern "C" fn ATrace_endSection() {
    atrace::end_section();
}

pub extern "C" fn ATrace_beginAsyncSection(name: CStrRef<'_>, cookie: i32) {
    with_name(name, |name| atrace::begin_async_section(name, cookie));
}

pub extern "C" fn ATrace_endAsyncSection(name: CStrRef<'_>, cookie: i32) {
    with_name(name, |name| atrace::end_async_section(name, cookie));
}

pub extern "C" fn ATrace_setCounter(name: CStrRef<'_>, value: i64) {
    with_name(name, |name| atrace::set_counter(name, value));
}
