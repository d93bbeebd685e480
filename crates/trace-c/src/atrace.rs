//! Android's markers.
//= docs/kernel.md#markers
#![allow(non_snake_case, reason = "names that Android has given")]

use crate::abi::CStrRef;
use trace_provider::atrace;
use trace_provider::atrace::tag::APP;

/// Calls a function with the name, if markers of the tag are written; does nothing for a null one.
fn with_name(tag: u64, name: CStrRef<'_>, call: impl FnOnce(&str)) {
    if atrace::enabled_tags(tag) == 0 {
        return;
    }
    if let Some(name) = name.to_string_lossy() {
        call(&name);
    }
}

pub extern "C" fn ATrace_isEnabled() -> bool {
    atrace::is_enabled()
}

pub extern "C" fn ATrace_beginSection(name: CStrRef<'_>) {
    trace_internal_atrace_begin(APP, name);
}

pub extern "C" fn ATrace_endSection() {
    atrace::end_section();
}

pub extern "C" fn ATrace_beginAsyncSection(name: CStrRef<'_>, cookie: i32) {
    trace_internal_atrace_async_begin(APP, name, cookie);
}

pub extern "C" fn ATrace_endAsyncSection(name: CStrRef<'_>, cookie: i32) {
    trace_internal_atrace_async_end(APP, name, cookie);
}

pub extern "C" fn ATrace_setCounter(name: CStrRef<'_>, value: i64) {
    trace_internal_atrace_counter(APP, name, value);
}

pub extern "C" fn trace_internal_atrace_enabled(tags: u64) -> u64 {
    atrace::enabled_tags(tags)
}

pub extern "C" fn trace_internal_atrace_begin(tag: u64, name: CStrRef<'_>) {
    with_name(tag, name, |name| atrace::begin(tag, name));
}

pub extern "C" fn trace_internal_atrace_end(tag: u64) {
    atrace::end(tag);
}

pub extern "C" fn trace_internal_atrace_async_begin(tag: u64, name: CStrRef<'_>, cookie: i32) {
    with_name(tag, name, |name| atrace::begin_async(tag, name, cookie));
}

pub extern "C" fn trace_internal_atrace_async_end(tag: u64, name: CStrRef<'_>, cookie: i32) {
    with_name(tag, name, |name| atrace::end_async(tag, name, cookie));
}

pub extern "C" fn trace_internal_atrace_instant(tag: u64, name: CStrRef<'_>) {
    with_name(tag, name, |name| atrace::instant_of(tag, name));
}

pub extern "C" fn trace_internal_atrace_counter(tag: u64, name: CStrRef<'_>, value: i64) {
    with_name(tag, name, |name| atrace::counter(tag, name, value));
}
