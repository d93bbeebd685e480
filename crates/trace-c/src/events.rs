//! What the macros call: everything of an event that is not compiled into the program.
#![allow(unsafe_code)]

use crate::abi::{self, ArgValue};
use crate::{instrumentation, layout, records, zircon};
use core::ffi::{c_char, c_int, c_void};
use trace_engine::ffi::{self, MAX_ARGUMENTS, Registration, SiteText};
use trace_engine::{ArgName, Event, EventType, Koid, Site};
use trace_format::argument::ArgumentValue;
use trace_format::mutants;

/// `trace_internal_call_t`.
#[repr(C)]
pub struct Call {
    site: *mut Site,
    category: *const c_char,
    name: *const c_char,
    names: *const *const c_char,
    storage: *mut ArgName,
    module: *mut c_void,
}

/// `trace_internal_event_t`.
#[repr(C)]
pub struct RawEvent {
    event_type: u32,
    has_start: u8,
    has_extra: u8,
    has_time: u8,
    start: u64,
    extra: u64,
    time: u64,
}

impl RawEvent {
    /// The event, and its time if that is given. None of a type that does not exist.
    pub fn get(&self) -> Option<(Event, Option<u64>)> {
        let given = |has: u8, value| (has != 0).then_some(value);
        let event = Event {
            event_type: EventType::from_raw(self.event_type as u8)?,
            start: given(self.has_start, self.start),
            extra: given(self.has_extra, self.extra),
        };
        Some((event, given(self.has_time, self.time)))
    }
}

unsafe extern "C" {
    fn __cxa_atexit(call: extern "C" fn(*mut c_void), argument: *mut c_void, module: *mut c_void) -> c_int;
}

extern "C" fn on_unload(module: *mut c_void) {
    if !mutants::is_on("sites of an unloaded library stay") {
        ffi::unregister_module(module.addr());
    }
}

/// A call, as slices.
pub struct Described<'a> {
    pub text: SiteText<'a>,
    names: [&'a [u8]; MAX_ARGUMENTS],
    count: usize,
}

impl<'a> Described<'a> {
    /// # Safety
    /// C1, and `call` has so many names.
    pub unsafe fn new(call: &Call, count: usize) -> Self {
        let count = count.min(MAX_ARGUMENTS);
        let mut names: [&[u8]; MAX_ARGUMENTS] = [&[]; MAX_ARGUMENTS];
        // SAFETY: C1.
        unsafe {
            for (name, text) in names.iter_mut().zip(abi::slice(call.names, count)) {
                *name = abi::text(*text);
            }
            let text = SiteText { category: abi::text(call.category), name: abi::text(call.name) };
            Self { text, names, count }
        }
    }

    pub fn names(&self) -> &[&'a [u8]] {
        &self.names[..self.count]
    }
}

/// Enlists the site if it is new.
///
/// # Safety
/// C1, and the site and what it is described by stay until its module is unloaded.
unsafe fn enlist(call: &Call, described: &Described<'_>) -> Registration {
    layout::set_up();
    let module = call.module.addr();
    // SAFETY: a static of the caller's, of this layout.
    let enlisting =
        unsafe { ffi::register_site(call.site, described.text, described.names(), call.storage, module) };
    if enlisting == (Registration::Listed { watch_module: true }) {
        // SAFETY: the function lives as long as the process, or as this library, which those that use it keep
        // loaded.
        unsafe { __cxa_atexit(on_unload, call.module, call.module) };
    }
    enlisting
}

/// Calls a function with the site of a call, or one in its place: where the site is on no list, or was listed
/// with other strings. Not if that is off.
///
/// # Safety
/// As [`enlist`].
unsafe fn with_site(call: *const Call, count: usize, write: impl FnOnce(&Site)) {
    // SAFETY: C1.
    let Some(call) = (unsafe { call.as_ref() }) else {
        return;
    };
    // SAFETY: C1.
    let described = unsafe { Described::new(call, count) };
    // SAFETY: the caller's.
    if let Registration::Listed { .. } = unsafe { enlist(call, &described) } {
        // SAFETY: it is complete, and stays until its module is unloaded, which it is not during a call.
        let site = unsafe { &*call.site };
        if ffi::is_described_by(site, described.text, described.names()) {
            if site.is_on() {
                write(site);
            }
            return;
        }
    }
    if ffi::is_category_wanted(described.text.category) {
        ffi::with_unlisted(described.text, described.names(), write);
    }
}

/// Calls a function with values as the engine takes them.
///
/// # Safety
/// C1.
pub unsafe fn with_values(
    values: *const ArgValue,
    count: usize,
    use_values: impl FnOnce(&[ArgumentValue<'_>]),
) {
    let count = count.min(MAX_ARGUMENTS);
    let mut converted = [ArgumentValue::Null; MAX_ARGUMENTS];
    // SAFETY: C1.
    unsafe {
        for (converted, value) in converted.iter_mut().zip(abi::slice(values, count)) {
            *converted = value.value();
        }
    }
    use_values(&converted[..count]);
}

pub unsafe extern "C" fn trace_internal_stamp() -> u64 {
    trace_engine::now().0
}

pub unsafe extern "C" fn trace_internal_is_on(call: *const Call, count: usize) -> bool {
    // SAFETY: C1.
    let Some(call) = (unsafe { call.as_ref() }) else {
        return false;
    };
    // SAFETY: C1.
    let described = unsafe { Described::new(call, count) };
    // SAFETY: C1; the macro's static.
    match unsafe { enlist(call, &described) } {
        // SAFETY: it is complete.
        Registration::Listed { .. } => unsafe { &*call.site }.is_on(),
        Registration::Unlisted => ffi::is_category_wanted(described.text.category),
    }
}

pub unsafe extern "C" fn trace_internal_write_event(
    call: *const Call,
    event: *const RawEvent,
    values: *const ArgValue,
    count: usize,
) {
    // SAFETY: C1.
    let Some((event, at)) = (unsafe { event.as_ref() }).and_then(RawEvent::get) else {
        return;
    };
    // SAFETY: C1; the macro's static.
    unsafe {
        with_site(call, count, |site| {
            with_values(values, count, |values| trace_engine::write_event_at(site, event, &values, at));
        });
    }
    // A thread that had its block before this library was there.
    trace_engine::ffi::update_mirror();
}

pub unsafe extern "C" fn trace_internal_write_blob_event(
    call: *const Call,
    blob: *const c_void,
    size: usize,
    count: usize,
    values: *const ArgValue,
) {
    // SAFETY: C1; the macro's static.
    unsafe {
        let blob = abi::blob(blob, size);
        with_site(call, count, |site| {
            with_values(values, count, |values| trace_engine::write_large_blob(site, blob, &values));
        });
    }
}

pub unsafe extern "C" fn trace_internal_write_blob_attachment(
    call: *const Call,
    blob: *const c_void,
    size: usize,
    _count: usize,
    _values: *const ArgValue,
) {
    // SAFETY: C1; the macro's static.
    unsafe {
        let blob = abi::blob(blob, size);
        with_site(call, 0, |site| trace_engine::write_attachment(site, blob));
    }
}

pub unsafe extern "C" fn trace_internal_send_alert(
    call: *const Call,
    _count: usize,
    _values: *const ArgValue,
) {
    // SAFETY: C1; the macro's static.
    unsafe {
        let Some(name) = call.as_ref().map(|call| abi::text(call.name)) else {
            return;
        };
        let name = String::from_utf8_lossy(name);
        with_site(call, 0, |site| trace_engine::send_alert(site, &name));
    }
}

pub unsafe extern "C" fn trace_internal_write_vthread_event(
    call: *const Call,
    vthread_name: *const c_char,
    vthread_id: u64,
    event_type: u32,
    has_extra: bool,
    extra: u64,
    timestamp: i64,
    count: usize,
    values: *const ArgValue,
) {
    let Some(event_type) = EventType::from_raw(event_type as u8) else {
        return;
    };
    let event = Event { event_type, start: None, extra: has_extra.then_some(extra) };
    // SAFETY: C1; the macro's static.
    unsafe {
        let name = String::from_utf8_lossy(abi::text(vthread_name));
        with_site(call, count, |site| {
            with_values(values, count, |values| {
                let thread = (&*name, vthread_id);
                trace_engine::write_virtual_at(site, thread, event, &values, Some(timestamp as u64));
            });
        });
    }
}

pub unsafe extern "C" fn trace_internal_write_blob(
    blob_type: u32,
    name: *const c_char,
    blob: *const c_void,
    size: usize,
) {
    // SAFETY: C1.
    unsafe {
        let (name, blob) = (abi::text(name), abi::blob(blob, size));
        let Ok(blob_type) = u8::try_from(blob_type) else {
            return;
        };
        let text = SiteText { category: b"", name };
        ffi::with_unlisted(text, &[], |site| trace_engine::write_blob(site, blob_type, blob));
    }
}

pub unsafe extern "C" fn trace_internal_write_kernel_object(
    handle: u32,
    names: *const *const c_char,
    count: usize,
    values: *const ArgValue,
) {
    let Some(object) = zircon::describe(handle) else {
        return;
    };
    if records::write_own(&object) {
        return;
    }
    let call = Call {
        site: core::ptr::null_mut(),
        category: core::ptr::null(),
        name: core::ptr::null(),
        names,
        storage: core::ptr::null_mut(),
        module: core::ptr::null_mut(),
    };
    // SAFETY: C1; nothing but the names of the call is looked at.
    unsafe {
        let described = Described::new(&call, count);
        ffi::with_unlisted(described.text, described.names(), |site| {
            with_values(values, described.count, |values| {
                let koid = Koid(object.koid);
                trace_engine::write_kernel_object(site, object.object_type, koid, &object.name, &values);
            });
        });
    }
}

pub unsafe extern "C" fn trace_internal_time_based_id() -> u64 {
    let thread = u64::from(zircon::thread_koid() as u8);
    instrumentation::nonce() & !0xff00 | thread << 8
}
