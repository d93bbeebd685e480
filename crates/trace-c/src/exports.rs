//! All functions that C sees, by name and type. Programs are linked against these: the list only grows.
//!
//! A process may have several copies of this library, such as one in each of two plugins that were linked
//! with it statically. They [elect](crate::library_election) one that works for all: every function goes
//! through the table of that copy.
//!
//! The types of arguments carry the contract of the headers: see [`crate::abi`].
#![allow(unsafe_code)]
#![allow(non_snake_case, reason = "names that Android has given")]

use crate::abi::{
    Arg, ArgValue, ArrayPtr, CStrRef, GivenString, Out, Status, StringRef, ThreadRef, UnregisteredArg,
};
use crate::context::TraceContext;
use crate::dispatcher::{Config, Loop};
use crate::events::{Call, RawEvent};
use crate::handler::Host;
use crate::instrumentation::RawSite;
use crate::library_election;
use crate::observers::Callback;
use crate::provider::Provider;
use core::ffi::c_void;
use trace_format::buffer::HEADER_BYTES;
use trace_provider::MemoryDump;

/// Declares the table and, in front of it, the functions with their names in C.
macro_rules! exports {
    ($($module:ident {
        $(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*
    })*) => {
        /// The functions of one copy of the library.
        #[repr(C)]
        pub struct Table {
            $($($name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*)*
        }

        /// The functions of this copy.
        pub static TABLE: Table = Table { $($($name: crate::$module::$name,)*)* };

        $($(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: the function of the same name and type, in a copy that stays loaded. The caller
                // meets the contract of the header, which is that of the function's arguments.
                unsafe { (library_election::table().$name)($($argument),*) }
            }
        )*)*
    };
}

type Id = u64;

exports! {
    instrumentation {
        fn trace_generate_nonce() -> u64;
        fn trace_state() -> u32;
        fn trace_is_category_enabled(category: CStrRef<'_>) -> bool;
        fn trace_is_category_bytestring_enabled(bytes: ArrayPtr<'_, u8>, length: usize) -> bool;
        fn trace_acquire_context() -> Option<Box<TraceContext>>;
        fn trace_acquire_context_for_category(category: CStrRef<'_>, out: Out<'_, StringRef>) -> Option<Box<TraceContext>>;
        fn trace_acquire_context_for_category_cached(category: CStrRef<'_>, site: Option<&RawSite>, out: Out<'_, StringRef>) -> Option<Box<TraceContext>>;
        fn trace_acquire_context_for_category_bytestring(bytes: ArrayPtr<'_, u8>, length: usize, out: Out<'_, StringRef>) -> Option<Box<TraceContext>>;
        fn trace_acquire_context_for_category_bytestring_cached(bytes: ArrayPtr<'_, u8>, length: usize, site: Option<&RawSite>, out: Out<'_, StringRef>) -> Option<Box<TraceContext>>;
        fn trace_release_context(context: Option<Box<TraceContext>>);
        fn trace_acquire_prolonged_context() -> *const u64;
        fn trace_release_prolonged_context(context: *const u64);
        fn trace_engine_flush_category_cache() -> Status;
        fn trace_context_snapshot_buffer_header_internal(context: *const u64, header: Out<'_, [u64; HEADER_BYTES / 8]>);
    }
    observers {
        fn trace_register_observer(event: u32) -> Status;
        fn trace_unregister_observer(event: u32) -> Status;
        fn trace_notify_observer_updated(event: u32);
        fn trace_internal_start_observer(dispatcher: Option<&Loop>, call: Option<unsafe extern "C" fn(*mut c_void)>, data: *mut c_void) -> *const Callback;
        fn trace_internal_stop_observer(observer: *const Callback);
    }
    events {
        fn trace_internal_stamp() -> u64;
        fn trace_internal_begin_scope(name: CStrRef<'_>) -> u64;
        fn trace_internal_open_scope(call: Option<&Call<'_>>, start: u64) -> u64;
        fn trace_internal_close_scope(scope: u64);
        fn trace_internal_is_on(call: Option<&Call<'_>>, count: usize) -> bool;
        fn trace_internal_write_event(call: Option<&Call<'_>>, event: Option<&RawEvent>, values: ArrayPtr<'_, ArgValue<'_>>, count: usize);
        fn trace_internal_write_blob_event(call: Option<&Call<'_>>, blob: ArrayPtr<'_, u8>, size: usize, count: usize, values: ArrayPtr<'_, ArgValue<'_>>);
        fn trace_internal_write_blob_attachment(call: Option<&Call<'_>>, blob: ArrayPtr<'_, u8>, size: usize, count: usize, values: ArrayPtr<'_, ArgValue<'_>>);
        fn trace_internal_send_alert(call: Option<&Call<'_>>, count: usize, values: ArrayPtr<'_, ArgValue<'_>>);
        fn trace_internal_write_vthread_event(call: Option<&Call<'_>>, name: CStrRef<'_>, id: u64, event_type: u32, has_extra: bool, extra: u64, timestamp: i64, count: usize, values: ArrayPtr<'_, ArgValue<'_>>);
        fn trace_internal_write_blob(blob_type: u32, name: CStrRef<'_>, blob: ArrayPtr<'_, u8>, size: usize);
        fn trace_internal_write_kernel_object(handle: u32, names: ArrayPtr<'_, CStrRef<'_>>, count: usize, values: ArrayPtr<'_, ArgValue<'_>>);
        fn trace_internal_time_based_id() -> u64;
    }
    chromium {
        fn trace_internal_write_copied_event(call: Option<&Call<'_>>, event: Option<&RawEvent>, thread: u64, values: ArrayPtr<'_, ArgValue<'_>>, count: usize);
        fn trace_internal_ticks_at(monotonic_ns: i64) -> u64;
        fn trace_internal_run_number() -> u32;
    }
    context {
        fn trace_context_is_category_enabled(context: *mut TraceContext, category: CStrRef<'_>) -> bool;
        fn trace_context_is_category_bytestring_enabled(context: *mut TraceContext, bytes: ArrayPtr<'_, u8>, length: usize) -> bool;
        fn trace_context_register_string_copy(context: &TraceContext, string: ArrayPtr<'_, u8>, length: usize, out: Out<'_, StringRef>);
        fn trace_context_register_string_literal(context: *mut TraceContext, string: CStrRef<'_>, out: Out<'_, StringRef>);
        fn trace_context_register_bytestring(context: &TraceContext, bytes: ArrayPtr<'_, u8>, length: usize, out: Out<'_, StringRef>);
        fn trace_context_register_category_literal(context: *mut TraceContext, category: CStrRef<'_>, out: Out<'_, StringRef>) -> bool;
        fn trace_context_register_category_bytestring(context: *mut TraceContext, bytes: ArrayPtr<'_, u8>, length: usize, out: Out<'_, StringRef>) -> bool;
        fn trace_context_register_current_thread(context: *mut TraceContext, out: Out<'_, ThreadRef>);
        fn trace_context_register_vthread(context: *mut TraceContext, process: u64, name: CStrRef<'_>, id: u64, out: Out<'_, ThreadRef>);
        fn trace_context_register_vthread_by_ref(context: *mut TraceContext, process: u64, name: Option<&GivenString<'_>>, id: u64, out: Out<'_, ThreadRef>);
        fn trace_context_register_thread(context: *mut TraceContext, process: u64, thread: u64, out: Out<'_, ThreadRef>);
        fn trace_context_begin_write_blob_record(context: Option<&TraceContext>, blob_type: u32, name: Option<&GivenString<'_>>, size: usize) -> *mut c_void;
        fn trace_context_send_alert(context: *mut TraceContext, name: CStrRef<'_>);
        fn trace_context_send_alert_bytestring(context: *mut TraceContext, name: ArrayPtr<'_, u8>, length: usize);
        fn trace_context_alloc_record(context: Option<&TraceContext>, bytes: usize) -> *mut c_void;
        fn trace_context_alloc_durable_record(context: Option<&TraceContext>, bytes: usize) -> *mut c_void;
        fn trace_context_get_buffering_mode(context: *const TraceContext) -> u32;
        fn trace_internal_complete_args(context: *mut TraceContext, args: *mut UnregisteredArg<'_>, count: usize);
    }
    records {
        fn trace_context_write_blob_record(context: *mut TraceContext, blob_type: u32, name: Option<&GivenString<'_>>, blob: ArrayPtr<'_, u8>, size: usize);
        fn trace_context_write_kernel_object_record_for_handle(context: *mut TraceContext, handle: u32, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_process_info_record(context: *mut TraceContext, koid: u64, name: Option<&GivenString<'_>>);
        fn trace_context_write_thread_info_record(context: *mut TraceContext, process: u64, koid: u64, name: Option<&GivenString<'_>>);
        fn trace_context_write_context_switch_record(context: *mut TraceContext, time: i64, cpu: u32, state: u32, outgoing: Option<&ThreadRef>, incoming: Option<&ThreadRef>, outgoing_priority: u32, incoming_priority: u32);
        fn trace_context_write_log_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, message: ArrayPtr<'_, u8>, length: usize);
        fn trace_context_write_instant_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, scope: u32, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_counter_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, id: Id, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_duration_event_record(context: *mut TraceContext, start: i64, end: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_duration_begin_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_duration_end_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_async_begin_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, id: Id, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_async_instant_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, id: Id, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_async_end_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, id: Id, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_flow_begin_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, id: Id, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_flow_step_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, id: Id, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_flow_end_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, id: Id, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_blob_event_record(context: *mut TraceContext, time: i64, thread: Option<&ThreadRef>, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, blob: ArrayPtr<'_, u8>, size: usize, args: ArrayPtr<'_, Arg<'_>>, count: usize);
        fn trace_context_write_blob_attachment_record(context: *mut TraceContext, category: Option<&GivenString<'_>>, name: Option<&GivenString<'_>>, blob: ArrayPtr<'_, u8>, size: usize);
        fn trace_context_write_initialization_record(context: *mut TraceContext, rate: i64);
        fn trace_context_write_string_record(context: *mut TraceContext, index: u16, string: ArrayPtr<'_, u8>, length: usize);
        fn trace_context_write_thread_record(context: *mut TraceContext, index: u32, process: u64, thread: u64);
    }
    handler {
        fn trace_engine_initialize(dispatcher: Option<&Loop>, handler: Option<Host>, mode: u32, buffer: *mut u8, bytes: usize) -> Status;
        fn trace_engine_start(mode: u32) -> Status;
        fn trace_engine_stop(disposition: Status);
        fn trace_engine_terminate();
        fn trace_engine_mark_buffer_saved(wrapped_count: u32, durable_bytes: u64) -> Status;
        fn trace_engine_flush_buffer() -> Status;
    }
    provider {
        fn trace_provider_create(to_service: u32, dispatcher: *mut c_void) -> Option<Box<Provider>>;
        fn trace_provider_create_with_name(to_service: u32, dispatcher: *mut c_void, name: CStrRef<'_>) -> Option<Box<Provider>>;
        fn trace_provider_create_synchronously(to_service: u32, dispatcher: *mut c_void, name: CStrRef<'_>, started: Out<'_, bool>) -> Option<Box<Provider>>;
        fn trace_provider_create_with_fdio(dispatcher: *mut c_void) -> Option<Box<Provider>>;
        fn trace_provider_create_with_name_fdio(dispatcher: *mut c_void, name: CStrRef<'_>) -> Option<Box<Provider>>;
        fn trace_provider_create_synchronously_with_fdio(dispatcher: *mut c_void, name: CStrRef<'_>, started: Out<'_, bool>) -> Option<Box<Provider>>;
        fn trace_provider_destroy(provider: Option<Box<Provider>>);
        fn trace_provider_start();
        fn trace_startup_begin(categories: CStrRef<'_>) -> bool;
        fn trace_startup_begin_by_arguments(count: i32, arguments: ArrayPtr<'_, CStrRef<'_>>) -> bool;
        fn trace_provider_connect_with_fdio(out: Out<'_, u32>) -> Status;
        fn trace_internal_provider_describe_categories(provider: Option<&Provider>, call: Option<crate::provider::DescribeCategories>, data: *mut c_void);
        fn trace_internal_provider_get_config(provider: Option<&Provider>, mode: Out<'_, u32>, add: Option<crate::provider::AddCategory>, sink: *mut c_void);
    }
    local {
        fn trace_local_start(categories: CStrRef<'_>, mode: u32, mebibytes: u32) -> bool;
        fn trace_local_start_with(options: Option<&crate::local::COptions<'_>>) -> bool;
        fn trace_local_get_summary(out: Out<'_, crate::local::CSummary>) -> bool;
        fn trace_local_is_recording() -> bool;
        fn trace_local_stop() -> bool;
        fn trace_local_flush(deliver: Option<crate::local::Deliver>, context: *mut c_void, out: Out<'_, crate::local::CSummary>) -> bool;
        fn trace_local_flush_to_file(path: CStrRef<'_>, out: Out<'_, crate::local::CSummary>) -> bool;
        fn trace_local_snapshot_to_file(path: CStrRef<'_>, last_ms: u64, out: Out<'_, crate::local::CSummary>) -> bool;
        fn trace_local_prepare_snapshot(path: CStrRef<'_>, last_ms: u64);
        fn trace_local_request_snapshot();
        fn trace_local_wait_for_snapshot(timeout_ms: u64) -> bool;
    }
    hook {
        fn trace_set_event_hook(call: Option<crate::hook::Hook>, context: *mut c_void);
    }
    dispatcher {
        fn async_loop_create(config: Option<&Config>, out: Out<'_, *mut Loop>) -> Status;
        fn async_loop_get_dispatcher(owner: *mut Loop) -> *mut Loop;
        fn async_loop_from_dispatcher(dispatcher: *mut Loop) -> *mut Loop;
        fn async_loop_shutdown(owner: Option<&Loop>);
        fn async_loop_destroy(owner: *mut Loop);
        fn async_loop_run(owner: &Loop, deadline: i64, once: bool) -> Status;
        fn async_loop_run_until_idle(owner: &Loop) -> Status;
        fn async_loop_quit(owner: &Loop);
        fn async_loop_reset_quit(owner: &Loop) -> Status;
        fn async_loop_get_state(owner: &Loop) -> u32;
        fn async_loop_start_thread(owner: &Loop, name: CStrRef<'_>, out: Out<'_, libc::pthread_t>) -> Status;
        fn async_loop_join_threads(owner: Option<&Loop>);
        fn async_get_default_dispatcher() -> *const Loop;
        fn async_set_default_dispatcher(dispatcher: *const Loop);
    }
    memory_dump {
        fn trace_on_memory_dump(call: Option<crate::memory_dump::Call>, data: *mut c_void);
        fn trace_memory_dump_get_id(dump: Option<&MemoryDump>) -> u64;
        fn trace_memory_dump_is_detailed(dump: Option<&MemoryDump>) -> bool;
        fn trace_memory_dump_add(dump: Option<&mut MemoryDump>, name: CStrRef<'_>, bytes: u64);
    }
    atrace {
        fn ATrace_isEnabled() -> bool;
        fn ATrace_beginSection(name: CStrRef<'_>);
        fn ATrace_endSection();
        fn ATrace_beginAsyncSection(name: CStrRef<'_>, cookie: i32);
        fn ATrace_endAsyncSection(name: CStrRef<'_>, cookie: i32);
        fn ATrace_setCounter(name: CStrRef<'_>, value: i64);
        fn trace_internal_atrace_enabled(tags: u64) -> u64;
        fn trace_internal_atrace_begin(tag: u64, name: CStrRef<'_>);
        fn trace_internal_atrace_end(tag: u64);
        fn trace_internal_atrace_async_begin(tag: u64, name: CStrRef<'_>, cookie: i32);
        fn trace_internal_atrace_async_end(tag: u64, name: CStrRef<'_>, cookie: i32);
        fn trace_internal_atrace_instant(tag: u64, name: CStrRef<'_>);
        fn trace_internal_atrace_counter(tag: u64, name: CStrRef<'_>, value: i64);
    }
    zircon {
        fn zx_process_self() -> u32;
        fn zx_thread_self() -> u32;
        fn zx_ticks_get() -> i64;
        fn zx_ticks_get_boot() -> i64;
        fn zx_ticks_per_second() -> i64;
        fn zx_clock_get_monotonic() -> i64;
        fn zx_deadline_after(duration: i64) -> i64;
        fn zx_nanosleep(deadline: i64) -> Status;
        fn zx_event_create(options: u32, out: Out<'_, u32>) -> Status;
        fn zx_handle_close(handle: u32) -> Status;
        fn zx_object_signal(handle: u32, clear: u32, set: u32) -> Status;
        fn zx_object_wait_one(handle: u32, signals: u32, deadline: i64, observed: Out<'_, u32>) -> Status;
        fn zx_status_get_string(status: Status) -> CStrRef<'static>;
    }
}
