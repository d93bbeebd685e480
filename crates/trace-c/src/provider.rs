//! Joining the trace manager.
//!
//! A process has one provider, however often it is asked for: whoever comes later gets the same, until the
//! last has given it back.
//!
//! Invariant **V1**: a `trace_provider_t*` is from one of the functions here, and is given back once.
#![allow(unsafe_code)]

use crate::abi::{self, ERR_INVALID_ARGS, OK, Status};
use crate::{layout, library_election, zircon};
use core::ffi::{c_char, c_void};
use core::ptr;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use trace_provider::{Registration, TraceProvider};

/// `trace_provider_t`.
pub struct Provider(Arc<TraceProvider>);

/// The one of the process, and the process: a forked child has none yet.
static SHARED: Mutex<(u32, Weak<TraceProvider>)> = Mutex::new((0, Weak::new()));

/// How a provider is made.
enum Way {
    Background,
    Synchronously,
}

/// Gives out the process's provider, and whether a trace was running when it registered.
fn get(name: &[u8], way: &Way) -> (Arc<TraceProvider>, bool) {
    layout::set_up();
    library_election::stay();
    let mut shared = SHARED.lock();
    let pid = std::process::id();
    if shared.0 == pid
        && let Some(provider) = shared.1.upgrade()
    {
        return (provider, trace_provider::is_enabled());
    }
    let name = String::from_utf8_lossy(name);
    let (provider, registration) = match way {
        Way::Background => (TraceProvider::new(&name), Registration::NoManager),
        Way::Synchronously => TraceProvider::new_synchronously(&name),
    };
    let provider = Arc::new(provider);
    *shared = (pid, Arc::downgrade(&provider));
    (provider, registration == Registration::Registered { already_started: true })
}

/// # Safety
/// C1.
unsafe fn create(name: *const c_char, way: &Way, out_already_started: *mut bool) -> *mut Provider {
    // SAFETY: C1.
    let (provider, already_started) = get(unsafe { abi::text(name) }, way);
    // SAFETY: C1.
    unsafe { abi::put(out_already_started, already_started) };
    Box::into_raw(Box::new(Provider(provider)))
}

/// Uses up the way to the manager that a program has brought; without one there is no provider.
fn is_connection(to_service: u32) -> bool {
    zircon::consume_connection(to_service)
}

pub unsafe extern "C" fn trace_provider_create(to_service: u32, _: *mut c_void) -> *mut Provider {
    if !is_connection(to_service) {
        return ptr::null_mut();
    }
    // SAFETY: no pointers.
    unsafe { create(ptr::null(), &Way::Background, ptr::null_mut()) }
}

pub unsafe extern "C" fn trace_provider_create_with_name(
    to_service: u32,
    _: *mut c_void,
    name: *const c_char,
) -> *mut Provider {
    if !is_connection(to_service) {
        return ptr::null_mut();
    }
    // SAFETY: C1.
    unsafe { create(name, &Way::Background, ptr::null_mut()) }
}

pub unsafe extern "C" fn trace_provider_create_synchronously(
    to_service: u32,
    _: *mut c_void,
    name: *const c_char,
    out_already_started: *mut bool,
) -> *mut Provider {
    if !is_connection(to_service) {
        return ptr::null_mut();
    }
    // SAFETY: C1.
    unsafe { create(name, &Way::Synchronously, out_already_started) }
}

pub unsafe extern "C" fn trace_provider_create_with_fdio(_: *mut c_void) -> *mut Provider {
    // SAFETY: no pointers.
    unsafe { create(ptr::null(), &Way::Background, ptr::null_mut()) }
}

pub unsafe extern "C" fn trace_provider_create_with_name_fdio(
    _: *mut c_void,
    name: *const c_char,
) -> *mut Provider {
    // SAFETY: C1.
    unsafe { create(name, &Way::Background, ptr::null_mut()) }
}

pub unsafe extern "C" fn trace_provider_create_synchronously_with_fdio(
    _: *mut c_void,
    name: *const c_char,
    out_already_started: *mut bool,
) -> *mut Provider {
    // SAFETY: C1.
    unsafe { create(name, &Way::Synchronously, out_already_started) }
}

pub unsafe extern "C" fn trace_provider_destroy(provider: *mut Provider) {
    if !provider.is_null() {
        // SAFETY: V1.
        let Provider(provider) = *unsafe { Box::from_raw(provider) };
        // Not while somebody asks for it: the last one waits for its thread to end.
        let shared = SHARED.lock();
        drop(provider);
        drop(shared);
    }
}

pub unsafe extern "C" fn trace_provider_start() {
    let (provider, _) = get(b"", &Way::Background);
    // For as long as the process lives.
    core::mem::forget(provider);
}

pub unsafe extern "C" fn trace_provider_connect_with_fdio(out: *mut u32) -> Status {
    if out.is_null() {
        return ERR_INVALID_ARGS;
    }
    // SAFETY: C1.
    unsafe { abi::put(out, zircon::new_connection()) };
    OK
}

/// Takes a name and a description.
pub type AddCategory = extern "C" fn(sink: *mut c_void, name: *const c_char, description: *const c_char);

/// Tells the categories of a program.
pub type DescribeCategories = unsafe extern "C" fn(data: *mut c_void, add: AddCategory, sink: *mut c_void);

/// A function of the program's, and what it is called with.
#[derive(Clone, Copy)]
struct Describe {
    call: DescribeCategories,
    data: *mut c_void,
}

// SAFETY: the program lends both to any thread.
unsafe impl Send for Describe {}
// SAFETY: as above.
unsafe impl Sync for Describe {}

extern "C" fn add_category(sink: *mut c_void, name: *const c_char, description: *const c_char) {
    // SAFETY: the sink is the list below, which is nobody else's meanwhile; C1.
    unsafe {
        let Some(list) = sink.cast::<Vec<trace_provider::Category>>().as_mut() else {
            return;
        };
        let owned = |text| String::from_utf8_lossy(abi::text(text)).into_owned();
        list.push((owned(name), owned(description)));
    }
}

impl Describe {
    fn categories(self) -> Vec<trace_provider::Category> {
        let mut list = Vec::new();
        // SAFETY: the program's own function, with what it was registered with.
        unsafe { (self.call)(self.data, add_category, (&raw mut list).cast()) };
        list
    }
}

pub unsafe extern "C" fn trace_internal_provider_describe_categories(
    provider: *mut Provider,
    call: Option<DescribeCategories>,
    data: *mut c_void,
) {
    // SAFETY: V1.
    if let (Some(Provider(provider)), Some(call)) = (unsafe { provider.as_ref() }, call) {
        let describe = Describe { call, data };
        provider.describe_categories(move || describe.categories());
    }
}

pub unsafe extern "C" fn trace_internal_provider_get_config(
    provider: *mut Provider,
    out_mode: *mut u32,
    add: Option<AddCategory>,
    sink: *mut c_void,
) {
    // SAFETY: V1.
    let Some(config) = (unsafe { provider.as_ref() }).and_then(|Provider(provider)| provider.config()) else {
        return;
    };
    // SAFETY: C1.
    unsafe { abi::put(out_mode, config.mode as u32) };
    for category in config.categories {
        if let (Some(add), Ok(category)) = (add, std::ffi::CString::new(category)) {
            add(sink, category.as_ptr(), c"".as_ptr());
        }
    }
}
