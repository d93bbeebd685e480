//! Joining the trace manager.
//!
//! A process has one provider, however often the program creates one: each call returns the same provider,
//! until the last of its owners has destroyed it.
//!
//! Invariants:
//!
//! * **V1** A `trace_provider_t*` is from one of the functions here, and is destroyed once, when no thread
//!   uses it any more. So it is a `Box` to its creator, and to its destroyer, and a reference in between.
//! * **V2** The function that describes categories, and its data, stay for the rest of the process's life,
//!   and may be used on any thread.
#![allow(unsafe_code)]

use crate::abi::{ArrayPtr, CStrRef, ERR_INVALID_ARGS, OK, Out, Status};
use crate::fork_lock::ForkLock;
use crate::{layout, library_election, zircon};
use core::ffi::c_void;
use std::sync::{Arc, Weak};
use std::time::Duration;
use trace_engine::engine;
use trace_provider::{Registration, TraceProvider, startup};
use zx_sim::debuglog;

/// `trace_provider_t`.
pub struct Provider(Arc<TraceProvider>);

/// The provider and the process that it belongs to: a forked child has none yet.
struct Shared {
    process: u32,
    provider: Weak<TraceProvider>,
    /// The process of which a thread makes a provider or ends one; 0 if none does.
    busy: u32,
}

static SHARED: ForkLock<Shared> = ForkLock::new(Shared { process: 0, provider: Weak::new(), busy: 0 });

/// As long as it lives, no other thread of this process makes a provider or ends one, which takes seconds
/// where a manager is slow. A child that is forked meanwhile does not wait for its parent.
struct Busy(u32);

impl Busy {
    const INTERVAL: Duration = Duration::from_micros(100);

    fn new() -> Self {
        let process = engine::generation();
        while !SHARED.with(|shared| core::mem::replace(&mut shared.busy, process) != process) {
            std::thread::sleep(Self::INTERVAL);
        }
        Self(process)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        SHARED.with(|shared| {
            if shared.busy == self.0 {
                shared.busy = 0;
            }
        });
    }
}

/// How a provider registers.
enum Way {
    Background,
    Synchronously,
}

/// Gives out the process's provider, and whether a trace was running when it registered.
fn get(name: &[u8], way: &Way) -> (Arc<TraceProvider>, bool) {
    layout::set_up();
    library_election::stay_loaded();
    let busy = Busy::new();
    let found = SHARED.with(|shared| (shared.process == busy.0).then(|| shared.provider.upgrade()));
    if let Some(provider) = found.flatten() {
        return (provider, trace_provider::is_enabled());
    }
    let name = String::from_utf8_lossy(name);
    let (provider, registration) = match way {
        Way::Background => (TraceProvider::new(&name), Registration::NoManager),
        Way::Synchronously => TraceProvider::new_synchronously(&name),
    };
    let provider = Arc::new(provider);
    SHARED.with(|shared| (shared.process, shared.provider) = (busy.0, Arc::downgrade(&provider)));
    (provider, registration == Registration::Registered { already_started: true })
}

fn create(name: CStrRef<'_>, way: &Way, out_already_started: Out<'_, bool>) -> Box<Provider> {
    let (provider, already_started) = get(name.bytes(), way);
    out_already_started.write(already_started);
    Box::new(Provider(provider))
}

/// Uses up the connection to the manager that a program has passed; without one there is no provider.
fn is_connection(to_service: u32) -> bool {
    zircon::consume_connection(to_service)
}

pub extern "C" fn trace_provider_create(to_service: u32, _: *mut c_void) -> Option<Box<Provider>> {
    if !is_connection(to_service) {
        return None;
    }
    Some(create(CStrRef::NULL, &Way::Background, Out::NONE))
}

pub extern "C" fn trace_provider_create_with_name(
    to_service: u32,
    _: *mut c_void,
    name: CStrRef<'_>,
) -> Option<Box<Provider>> {
    if !is_connection(to_service) {
        return None;
    }
    Some(create(name, &Way::Background, Out::NONE))
}

pub extern "C" fn trace_provider_create_synchronously(
    to_service: u32,
    _: *mut c_void,
    name: CStrRef<'_>,
    out_already_started: Out<'_, bool>,
) -> Option<Box<Provider>> {
    if !is_connection(to_service) {
        return None;
    }
    Some(create(name, &Way::Synchronously, out_already_started))
}

pub extern "C" fn trace_provider_create_with_fdio(_: *mut c_void) -> Option<Box<Provider>> {
    Some(create(CStrRef::NULL, &Way::Background, Out::NONE))
}

pub extern "C" fn trace_provider_create_with_name_fdio(
    _: *mut c_void,
    name: CStrRef<'_>,
) -> Option<Box<Provider>> {
    Some(create(name, &Way::Background, Out::NONE))
}

pub extern "C" fn trace_provider_create_synchronously_with_fdio(
    _: *mut c_void,
    name: CStrRef<'_>,
    out_already_started: Out<'_, bool>,
) -> Option<Box<Provider>> {
    Some(create(name, &Way::Synchronously, out_already_started))
}

pub extern "C" fn trace_provider_destroy(provider: Option<Box<Provider>>) {
    if let Some(provider) = provider {
        let Provider(provider) = *provider;
        // Not while another thread creates one: the last owner waits for the provider's thread to end.
        let busy = Busy::new();
        drop(provider);
        drop(busy);
    }
}

pub extern "C" fn trace_provider_start() {
    let (provider, _) = get(b"", &Way::Background);
    // Kept for as long as the process lives.
    core::mem::forget(provider);
}

/// Begins to record into a buffer of the program's own. Says on stderr why that is not possible.
fn begin_startup(categories: &str) -> bool {
    layout::set_up();
    let begun = startup::begin(&startup::Options::of(categories));
    let say = |reason: &std::io::Error| {
        debuglog::write_for_process(&format!("trace: not recorded from the start: {reason}"));
    };
    begun.inspect_err(say).is_ok()
}

pub extern "C" fn trace_startup_begin(categories: CStrRef<'_>) -> bool {
    begin_startup(&String::from_utf8_lossy(categories.bytes()))
}

pub extern "C" fn trace_startup_begin_by_arguments(count: i32, arguments: ArrayPtr<'_, CStrRef<'_>>) -> bool {
    // SAFETY: the header asks for so many arguments (C1).
    let arguments = unsafe { arguments.take(usize::try_from(count).unwrap_or(0)) };
    arguments.iter().any(|argument| {
        let argument = String::from_utf8_lossy(argument.bytes());
        startup::categories_of(&argument).is_some_and(begin_startup)
    })
}

pub extern "C" fn trace_provider_connect_with_fdio(out: Out<'_, u32>) -> Status {
    if out.is_null() {
        return ERR_INVALID_ARGS;
    }
    out.write(zircon::new_connection());
    OK
}

/// Takes a name and a description.
pub type AddCategory = extern "C" fn(sink: *mut c_void, name: CStrRef<'_>, description: CStrRef<'_>);

type Categories = Vec<trace_provider::Category>;

/// Describes the categories of a program, by calling [`add_category`] with the list.
pub type DescribeCategories = unsafe extern "C" fn(
    data: *mut c_void,
    add: extern "C" fn(sink: &mut Categories, name: CStrRef<'_>, description: CStrRef<'_>),
    sink: &mut Categories,
);

/// A function of the program's, and what it is called with.
#[derive(Clone, Copy)]
struct Describe {
    call: DescribeCategories,
    data: *mut c_void,
}

// SAFETY: the program lends function and data to any thread (V2).
unsafe impl Send for Describe {}
// SAFETY: the program lends them to several threads at once (V2).
unsafe impl Sync for Describe {}

extern "C" fn add_category(sink: &mut Categories, name: CStrRef<'_>, description: CStrRef<'_>) {
    let owned = |text: CStrRef<'_>| String::from_utf8_lossy(text.bytes()).into_owned();
    sink.push((owned(name), owned(description)));
}

impl Describe {
    fn categories(self) -> Categories {
        let mut list = Vec::new();
        // SAFETY: the function and the data that it was registered with, neither of which ever goes (V2). It
        // passes the list on to `add_category`, and does not keep it.
        unsafe { (self.call)(self.data, add_category, &mut list) };
        list
    }
}

pub extern "C" fn trace_internal_provider_describe_categories(
    provider: Option<&Provider>,
    call: Option<DescribeCategories>,
    data: *mut c_void,
) {
    if let (Some(Provider(provider)), Some(call)) = (provider, call) {
        let describe = Describe { call, data };
        provider.describe_categories(move || describe.categories());
    }
}

pub extern "C" fn trace_internal_provider_get_config(
    provider: Option<&Provider>,
    out_mode: Out<'_, u32>,
    add: Option<AddCategory>,
    sink: *mut c_void,
) {
    let Some(config) = provider.and_then(|Provider(provider)| provider.config()) else {
        return;
    };
    out_mode.write(config.mode as u32);
    for category in config.categories {
        if let (Some(add), Ok(category)) = (add, std::ffi::CString::new(category)) {
            add(sink, category.as_c_str().into(), c"".into());
        }
    }
}
