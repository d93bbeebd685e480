//! What the macros call: everything of an event that is not compiled into the program.
//!
//! Invariant **S1**: a call, its site, the memory for the names of arguments and all texts are statics or
//! literals of one executable or library, whose handle is the call's module. They stay until it is unloaded,
//! which it is not while one of its threads is in a function here. A call that only describes copied strings
//! has no site.
#![allow(unsafe_code)]

use crate::abi::{ArgValue, ArrayPtr, CStrRef};
use crate::{instrumentation, layout, records, zircon};
use core::ffi::{c_int, c_void};
use trace_engine::ffi::{self, GivenValues, MAX_ARGUMENTS, Registration, SiteText};
use trace_engine::{ArgName, Event, EventType, Koid, Site, VirtualName};
use trace_format::argument::ArgumentValue;

/// `trace_internal_call_t` (S1).
#[repr(C)]
pub struct Call<'a> {
    site: *mut Site,
    category: CStrRef<'a>,
    name: CStrRef<'a>,
    names: ArrayPtr<'a, CStrRef<'a>>,
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
    ffi::unregister_module(module.addr());
}

/// The names of arguments.
struct Names<'a> {
    names: [&'a [u8]; MAX_ARGUMENTS],
    count: usize,
}

impl<'a> Names<'a> {
    /// The first `count` names; those that are not given are empty.
    fn new(given: &[CStrRef<'a>], count: usize) -> Self {
        let mut names: [&[u8]; MAX_ARGUMENTS] = [&[]; MAX_ARGUMENTS];
        for (name, text) in names.iter_mut().zip(given) {
            *name = text.bytes();
        }
        Self { names, count: count.min(MAX_ARGUMENTS) }
    }

    fn get(&self) -> &[&'a [u8]] {
        &self.names[..self.count]
    }
}

/// A call, as slices.
pub struct Described<'a> {
    call: &'a Call<'a>,
    pub text: SiteText<'a>,
    names: Names<'a>,
}

impl<'a> Described<'a> {
    /// # Safety
    /// The macro has given the call `count` names (C1).
    pub unsafe fn new(call: &'a Call<'a>, count: usize) -> Self {
        // SAFETY: the caller's promise.
        let names = Names::new(unsafe { call.names.take(count) }, count);
        Self { call, text: SiteText { category: call.category.bytes(), name: call.name.bytes() }, names }
    }

    pub fn names(&self) -> &[&'a [u8]] {
        self.names.get()
    }

    /// Enlists the site if it is new. Not for a call that has no site.
    fn enlist(&self) -> Option<&'a Site> {
        layout::set_up();
        let Call { site, storage, module, .. } = *self.call;
        let handle = module.addr();
        // SAFETY: a site of this layout, texts and names, and storage for as many as the macro has given
        // names: all stay until the module is unloaded (S1), and `on_unload` unregisters it then.
        let registration = unsafe { ffi::register_site(site, self.text, self.names(), storage, handle) };
        if registration == (Registration::Listed { watch_module: true }) {
            // SAFETY: the function stays loaded for as long as the process lives, or as this library, which
            // those that use it keep loaded. It only compares its argument.
            unsafe { __cxa_atexit(on_unload, module, module) };
        }
        // SAFETY: a listed site is initialized, all its fields are atomic or constant from then on, and it
        // stays for longer than this call (S1).
        matches!(registration, Registration::Listed { .. }).then(|| unsafe { &*site })
    }

    /// Whether the site is on no list yet: another thread may be about to enlist it, with its names, which
    /// are not known here.
    fn is_new(&self) -> bool {
        // SAFETY: the site stays until its module is unloaded (S1), and its word is an atomic.
        unsafe { ffi::is_new_site(self.call.site) }
    }

    /// Calls a function with a site in the place of the call's. Not if the category is not wanted.
    fn with_unlisted_site(&self, call: impl FnOnce(&Site)) {
        if ffi::is_category_wanted(self.text.category) {
            ffi::with_unlisted(self.text, &[], call);
        }
    }

    /// Calls a function with the site of the call, or one in its place: where the site is on no list, or was
    /// listed with another category or name. Not if the category is not wanted.
    fn with_named_site(&self, call: impl FnOnce(&Site)) {
        let SiteText { category, name } = self.text;
        match self.enlist() {
            Some(site) if site.category() == category && site.name() == name => call(site),
            _ if !ffi::is_category_wanted(category) => {}
            Some(site) => ffi::with_unlisted_of(site, self.text, &[], call),
            None => ffi::with_unlisted(self.text, &[], call),
        }
    }

    /// Calls a function with the site of the call, or one in its place: where the site is on no list, or was
    /// listed with other strings. Not if that is off.
    fn with_site(&self, write: impl FnOnce(&Site)) {
        match self.enlist() {
            Some(site) if ffi::is_described_by(site, self.text, self.names()) => {
                if site.is_on() {
                    write(site);
                }
            }
            _ if !ffi::is_category_wanted(self.text.category) => {}
            Some(site) => ffi::with_unlisted_of(site, self.text, self.names(), write),
            // Of a site that was never listed nothing is known.
            None => ffi::with_unlisted(self.text, self.names(), write),
        }
    }
}

/// Calls a function with `count` values as the engine takes them; those that are not given are null.
pub fn with_values(values: &[ArgValue<'_>], count: usize, use_values: impl FnOnce(GivenValues<'_>)) {
    let mut converted = [ArgumentValue::Null; MAX_ARGUMENTS];
    let mut literals = 0;
    for (number, (converted, value)) in converted.iter_mut().zip(values).enumerate() {
        *converted = value.value();
        literals |= u16::from(value.is_literal()) << number;
    }
    use_values(GivenValues { values: &converted[..count.min(MAX_ARGUMENTS)], literals });
}

pub extern "C" fn trace_internal_stamp() -> u64 {
    trace_engine::now().0
}

pub extern "C" fn trace_internal_begin_scope(name: CStrRef<'_>) -> u64 {
    trace_engine::begin_scope(name.bytes()).0
}

pub extern "C" fn trace_internal_open_scope(call: Option<&Call<'_>>, start: u64) -> u64 {
    let mut scope = 0;
    if let Some(call) = call
        && ffi::may_open_scope()
    {
        // SAFETY: no names are read.
        let described = unsafe { Described::new(call, 0) };
        let open = |site: &Site| scope = ffi::open_scope(site, start);
        if described.is_new() {
            described.with_unlisted_site(open);
        } else {
            described.with_named_site(open);
        }
    }
    scope
}

pub extern "C" fn trace_internal_close_scope(scope: u64) {
    ffi::close_scope(scope);
}

pub extern "C" fn trace_internal_is_on(call: Option<&Call<'_>>, count: usize) -> bool {
    let Some(call) = call else {
        return false;
    };
    // SAFETY: the macro has given the call `count` names (C1).
    let described = unsafe { Described::new(call, count) };
    match described.enlist() {
        Some(site) => site.is_on(),
        None => ffi::is_category_wanted(described.text.category),
    }
}

pub extern "C" fn trace_internal_write_event(
    call: Option<&Call<'_>>,
    event: Option<&RawEvent>,
    values: ArrayPtr<'_, ArgValue<'_>>,
    count: usize,
) {
    let Some((event, at)) = event.and_then(RawEvent::get) else {
        return;
    };
    if let Some(call) = call {
        // SAFETY: the macro passes as many names, in the call, and values as `count` says (C1).
        let (described, values) = unsafe { (Described::new(call, count), values.take(count)) };
        described.with_site(|site| {
            with_values(values, count, |values| trace_engine::write_event_at(site, event, &values, at));
        });
    }
    // A thread may have got its block before this library was loaded.
    trace_engine::ffi::update_mirror();
}

pub extern "C" fn trace_internal_write_blob_event(
    call: Option<&Call<'_>>,
    blob: ArrayPtr<'_, u8>,
    size: usize,
    count: usize,
    values: ArrayPtr<'_, ArgValue<'_>>,
) {
    let Some(call) = call else {
        return;
    };
    // SAFETY: the macro passes as many names, in the call, and values as `count` says (C1).
    let (described, values) = unsafe { (Described::new(call, count), values.take(count)) };
    // SAFETY: the macro asks for `size` bytes at `blob` (C1).
    let blob = unsafe { blob.take(size) };
    described.with_site(|site| {
        with_values(values, count, |values| trace_engine::write_large_blob(site, blob, &values));
    });
}

pub extern "C" fn trace_internal_write_blob_attachment(
    call: Option<&Call<'_>>,
    blob: ArrayPtr<'_, u8>,
    size: usize,
    _count: usize,
    _values: ArrayPtr<'_, ArgValue<'_>>,
) {
    let Some(call) = call else {
        return;
    };
    // SAFETY: no names are read; the macro asks for `size` bytes at `blob` (C1).
    let (described, blob) = unsafe { (Described::new(call, 0), blob.take(size)) };
    described.with_site(|site| trace_engine::write_attachment(site, blob));
}

pub extern "C" fn trace_internal_send_alert(
    call: Option<&Call<'_>>,
    _count: usize,
    _values: ArrayPtr<'_, ArgValue<'_>>,
) {
    let Some(call) = call else {
        return;
    };
    // SAFETY: no names are read.
    let described = unsafe { Described::new(call, 0) };
    let name = String::from_utf8_lossy(described.text.name);
    // Whether it is a constant is not known.
    described.with_site(|site| trace_engine::send_alert(site, &name));
}

pub extern "C" fn trace_internal_write_vthread_event(
    call: Option<&Call<'_>>,
    vthread_name: CStrRef<'_>,
    vthread_id: u64,
    event_type: u32,
    has_extra: bool,
    extra: u64,
    timestamp: i64,
    count: usize,
    values: ArrayPtr<'_, ArgValue<'_>>,
) {
    let (Some(call), Some(event_type)) = (call, EventType::from_raw(event_type as u8)) else {
        return;
    };
    let event = Event { event_type, start: None, extra: has_extra.then_some(extra) };
    // SAFETY: the macro passes as many names, in the call, and values as `count` says (C1).
    let (described, values) = unsafe { (Described::new(call, count), values.take(count)) };
    let name = String::from_utf8_lossy(vthread_name.bytes());
    described.with_site(|site| {
        with_values(values, count, |values| {
            let thread = (VirtualName { text: &name, is_literal: false }, vthread_id);
            trace_engine::write_virtual_at(site, thread, event, &values, Some(timestamp as u64));
        });
    });
}

pub extern "C" fn trace_internal_write_blob(
    blob_type: u32,
    name: CStrRef<'_>,
    blob: ArrayPtr<'_, u8>,
    size: usize,
) {
    // SAFETY: the macro asks for `size` bytes at `blob` (C1).
    let blob = unsafe { blob.take(size) };
    let Ok(blob_type) = u8::try_from(blob_type) else {
        return;
    };
    let text = SiteText { category: b"", name: name.bytes() };
    // There is no site that would know whether the name is a constant.
    ffi::with_unlisted(text, &[], |site| trace_engine::write_blob(site, blob_type, blob));
}

pub extern "C" fn trace_internal_write_kernel_object(
    handle: u32,
    names: ArrayPtr<'_, CStrRef<'_>>,
    count: usize,
    values: ArrayPtr<'_, ArgValue<'_>>,
) {
    let Some(object) = zircon::describe(handle) else {
        return;
    };
    if records::write_own(&object) {
        return;
    }
    // SAFETY: the macro passes `count` names and values (C1).
    let (names, values) = unsafe { (names.take(count), values.take(count)) };
    let names = Names::new(names, count);
    let text = SiteText { category: b"", name: b"" };
    // There is no site that would know whether the names are constants.
    ffi::with_unlisted(text, names.get(), |site| {
        with_values(values, count, |values| {
            let koid = Koid(object.koid);
            trace_engine::write_kernel_object(site, object.object_type, koid, &object.name, &values);
        });
    });
}

pub extern "C" fn trace_internal_time_based_id() -> u64 {
    let thread = u64::from(zircon::thread_koid() as u8);
    instrumentation::nonce() & !0xff00 | thread << 8
}
