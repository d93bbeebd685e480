//! Records written by hand into an acquired trace.
#![allow(unsafe_code)]

use crate::abi::{Arg, ArrayPtr, GivenString, ThreadRef};
use crate::context::TraceContext;
use crate::zircon;
use trace_engine::ffi::{self, MAX_ARGUMENTS};
use trace_engine::{Scope, ThreadState};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::blob::Blob;
use trace_format::error::EncodeError;
use trace_format::event::{Event, EventKind};
use trace_format::initialization::Initialization;
use trace_format::kernel_object::{self, KernelObject};
use trace_format::large::{LargeBlob, LargeBlobEvent};
use trace_format::log::Log;
use trace_format::record::Record;
use trace_format::refs;
use trace_format::scheduling::Scheduling;
use trace_format::sink::Sink;
use trace_format::string::StringRecord;
use trace_format::thread::ThreadRecord;
use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks, TicksPerSecond};

/// A record as words.
#[derive(Default)]
pub struct Words(Vec<u64>);

impl Sink for Words {
    fn word(&mut self, word: u64) {
        self.0.push(word);
    }
}

/// The words of a record; none, and it counts as lost, if it is larger than one may be.
pub fn encode(record: impl FnOnce(&mut Words) -> Result<(), EncodeError>) -> Option<Vec<u64>> {
    let mut words = Words::default();
    let encoded = record(&mut words);
    if encoded.is_err() {
        ffi::count_too_large();
    }
    encoded.is_ok().then_some(words.0)
}

pub fn write(record: &Record<'_>) {
    if let Some(words) = encode(|sink| record.encode(sink)) {
        ffi::write_record(&words);
    }
}

/// Where nothing overwrites it.
pub fn define(record: &Record<'_>) {
    if let Some(words) = encode(|sink| record.encode(sink)) {
        ffi::write_durable_record(&words);
    }
}

fn write_large(blob: &LargeBlob<'_>) {
    if let Some(words) = encode(|sink| blob.encode(sink)) {
        ffi::write_record(&words);
    }
}

/// A string of the caller's as it stands in a record; none is the empty one.
pub fn string<'a>(reference: Option<&GivenString<'a>>) -> refs::StringRef<'a> {
    reference.copied().unwrap_or(GivenString::EMPTY).in_record()
}

/// A thread of the caller's as it stands in a record; none is an unknown one.
pub fn thread(reference: Option<&ThreadRef>) -> refs::ThreadRef {
    reference.copied().unwrap_or(ThreadRef::inline(0, 0)).in_record()
}

/// Calls a function with the caller's arguments.
fn with_arguments(args: &[Arg<'_>], use_arguments: impl FnOnce(Arguments<'_>)) {
    const NONE: Argument<'_> = Argument { name: refs::StringRef::Empty, value: ArgumentValue::Null };
    let mut arguments = [NONE; MAX_ARGUMENTS];
    let is_private = !args.is_empty() && ffi::is_private();
    for (argument, given) in arguments.iter_mut().zip(args) {
        *argument = Argument { name: given.name.in_record(), value: given.value.recorded(is_private) };
    }
    use_arguments(Arguments::from_slice(&arguments[..args.len().min(MAX_ARGUMENTS)]));
}

/// What events have in common, as the caller gives it.
struct Given<'a> {
    time: i64,
    thread: Option<&'a ThreadRef>,
    category: Option<&'a GivenString<'a>>,
    name: Option<&'a GivenString<'a>>,
    args: &'a [Arg<'a>],
}

impl Given<'_> {
    fn write(self, kind: EventKind) {
        let (category, name) = (string(self.category), string(self.name));
        let (thread, timestamp) = (thread(self.thread), Ticks(self.time as u64));
        with_arguments(self.args, |arguments| {
            write(&Record::Event(Event { timestamp, thread, category, name, kind, arguments }));
        });
    }
}

pub extern "C" fn trace_context_write_blob_record(
    _: *mut TraceContext,
    blob_type: u32,
    name: Option<&GivenString<'_>>,
    payload: ArrayPtr<'_, u8>,
    size: usize,
) {
    // SAFETY: the header asks for `size` bytes at `payload` (C1).
    let (name, payload) = (string(name), unsafe { payload.take(size) });
    if let Ok(blob_type) = u8::try_from(blob_type) {
        write(&Record::Blob(Blob { blob_type, name, payload }));
    }
}

pub extern "C" fn trace_context_write_kernel_object_record_for_handle(
    _: *mut TraceContext,
    handle: u32,
    args: ArrayPtr<'_, Arg<'_>>,
    count: usize,
) {
    let Some(object) = zircon::describe(handle) else {
        return;
    };
    if write_own(&object) {
        return;
    }
    let (object_type, koid) = (object.object_type, Koid(object.koid));
    // SAFETY: the header asks for `count` arguments at `args` (C1).
    with_arguments(unsafe { args.take(count) }, |arguments| {
        let name = refs::StringRef::Empty;
        write(&Record::KernelObject(KernelObject { object_type, koid, name, arguments }));
    });
}

/// Names this process or the calling thread, if an object is one of these.
pub fn write_own(object: &zircon::Description) -> bool {
    let name = inline(object.name.as_bytes());
    match object.object_type {
        kernel_object::TYPE_PROCESS => write_process_info(object.koid, name),
        kernel_object::TYPE_THREAD => write_thread_info(ffi::current_process(), object.koid, name),
        _ => return false,
    }
    true
}

/// A text that stands in the record.
pub fn inline(text: &[u8]) -> refs::StringRef<'_> {
    if text.is_empty() { refs::StringRef::Empty } else { refs::StringRef::Inline(text) }
}

fn write_process_info(koid: u64, name: refs::StringRef<'_>) {
    let object_type = kernel_object::TYPE_PROCESS;
    let arguments = Arguments::default();
    define(&Record::KernelObject(KernelObject { object_type, koid: Koid(koid), name, arguments }));
}

pub fn write_thread_info(process: u64, koid: u64, name: refs::StringRef<'_>) {
    let process = [Argument {
        name: refs::StringRef::inline(kernel_object::PROCESS_ARGUMENT),
        value: ArgumentValue::Koid(Koid(process)),
    }];
    let object_type = kernel_object::TYPE_THREAD;
    let arguments = Arguments::new(&process);
    define(&Record::KernelObject(KernelObject { object_type, koid: Koid(koid), name, arguments }));
}

pub extern "C" fn trace_context_write_process_info_record(
    _: *mut TraceContext,
    koid: u64,
    name: Option<&GivenString<'_>>,
) {
    write_process_info(koid, string(name));
}

pub extern "C" fn trace_context_write_thread_info_record(
    _: *mut TraceContext,
    process: u64,
    koid: u64,
    name: Option<&GivenString<'_>>,
) {
    write_thread_info(process, koid, string(name));
}

pub extern "C" fn trace_context_write_context_switch_record(
    _: *mut TraceContext,
    time: i64,
    cpu: u32,
    outgoing_state: u32,
    outgoing: Option<&ThreadRef>,
    incoming: Option<&ThreadRef>,
    outgoing_priority: u32,
    incoming_priority: u32,
) {
    let (outgoing, incoming) = (thread(outgoing), thread(incoming));
    // The older of the two kinds of records: threads by reference, and with priorities. What its fields
    // cannot hold is cut.
    write(&Record::Scheduling(Scheduling::LegacyContextSwitch {
        timestamp: Ticks(time as u64),
        cpu: cpu as u8,
        outgoing_state: ThreadState(outgoing_state as u8 & 15),
        outgoing,
        incoming,
        outgoing_priority: outgoing_priority as u8,
        incoming_priority: incoming_priority as u8,
    }));
}

pub extern "C" fn trace_context_write_log_record(
    _: *mut TraceContext,
    time: i64,
    thread_ref: Option<&ThreadRef>,
    message: ArrayPtr<'_, u8>,
    length: usize,
) {
    // SAFETY: the header asks for `length` bytes at `message` (C1).
    let (thread, message) = (thread(thread_ref), unsafe { message.text(length) });
    write(&Record::Log(Log { timestamp: Ticks(time as u64), thread, message }));
}

pub extern "C" fn trace_context_write_instant_event_record(
    _: *mut TraceContext,
    time: i64,
    thread: Option<&ThreadRef>,
    category: Option<&GivenString<'_>>,
    name: Option<&GivenString<'_>>,
    scope: u32,
    args: ArrayPtr<'_, Arg<'_>>,
    count: usize,
) {
    let kind = EventKind::Instant { scope: Scope::from_raw(u64::from(scope)) };
    // SAFETY: the header asks for `count` arguments at `args` (C1).
    let args = unsafe { args.take(count) };
    Given { time, thread, category, name, args }.write(kind);
}

pub extern "C" fn trace_context_write_duration_event_record(
    _: *mut TraceContext,
    time: i64,
    end: i64,
    thread: Option<&ThreadRef>,
    category: Option<&GivenString<'_>>,
    name: Option<&GivenString<'_>>,
    args: ArrayPtr<'_, Arg<'_>>,
    count: usize,
) {
    let kind = EventKind::DurationComplete { end: Ticks(end as u64) };
    // SAFETY: the header asks for `count` arguments at `args` (C1).
    let args = unsafe { args.take(count) };
    Given { time, thread, category, name, args }.write(kind);
}

macro_rules! plain_events {
    ($($function:ident: $type:ident;)*) => {
        $(pub extern "C" fn $function(
            _: *mut TraceContext,
            time: i64,
            thread: Option<&ThreadRef>,
            category: Option<&GivenString<'_>>,
            name: Option<&GivenString<'_>>,
            args: ArrayPtr<'_, Arg<'_>>,
            count: usize,
        ) {
            // SAFETY: the header asks for `count` arguments at `args` (C1).
            let args = unsafe { args.take(count) };
            Given { time, thread, category, name, args }.write(EventKind::$type);
        })*
    };
}

plain_events! {
    trace_context_write_duration_begin_event_record: DurationBegin;
    trace_context_write_duration_end_event_record: DurationEnd;
}

macro_rules! events_with_id {
    ($($function:ident: $type:ident;)*) => {
        $(pub extern "C" fn $function(
            _: *mut TraceContext,
            time: i64,
            thread: Option<&ThreadRef>,
            category: Option<&GivenString<'_>>,
            name: Option<&GivenString<'_>>,
            id: u64,
            args: ArrayPtr<'_, Arg<'_>>,
            count: usize,
        ) {
            // SAFETY: the header asks for `count` arguments at `args` (C1).
            let args = unsafe { args.take(count) };
            Given { time, thread, category, name, args }.write(EventKind::$type { id });
        })*
    };
}

events_with_id! {
    trace_context_write_counter_event_record: Counter;
    trace_context_write_async_begin_event_record: AsyncBegin;
    trace_context_write_async_instant_event_record: AsyncInstant;
    trace_context_write_async_end_event_record: AsyncEnd;
    trace_context_write_flow_begin_event_record: FlowBegin;
    trace_context_write_flow_step_event_record: FlowStep;
    trace_context_write_flow_end_event_record: FlowEnd;
}

pub extern "C" fn trace_context_write_blob_event_record(
    _: *mut TraceContext,
    time: i64,
    thread_ref: Option<&ThreadRef>,
    category: Option<&GivenString<'_>>,
    name: Option<&GivenString<'_>>,
    payload: ArrayPtr<'_, u8>,
    size: usize,
    args: ArrayPtr<'_, Arg<'_>>,
    count: usize,
) {
    // SAFETY: the header asks for `size` bytes at `blob`, which is `payload` here, and for `count` arguments
    // at `args` (C1).
    let (payload, args) = unsafe { (payload.take(size), args.take(count)) };
    let (category, name) = (string(category), string(name));
    let (timestamp, thread) = (Ticks(time as u64), thread(thread_ref));
    with_arguments(args, |arguments| {
        let event = Some(LargeBlobEvent { timestamp, thread, arguments });
        write_large(&LargeBlob { category, name, event, payload });
    });
}

pub extern "C" fn trace_context_write_blob_attachment_record(
    _: *mut TraceContext,
    category: Option<&GivenString<'_>>,
    name: Option<&GivenString<'_>>,
    payload: ArrayPtr<'_, u8>,
    size: usize,
) {
    // SAFETY: the header asks for `size` bytes at `blob`, which is `payload` here (C1).
    let payload = unsafe { payload.take(size) };
    let (category, name) = (string(category), string(name));
    write_large(&LargeBlob { category, name, event: None, payload });
}

pub extern "C" fn trace_context_write_initialization_record(_: *mut TraceContext, ticks_per_second: i64) {
    if let Some(ticks_per_second) = TicksPerSecond::new(ticks_per_second as u64) {
        define(&Record::Initialization(Initialization { ticks_per_second }));
    }
}

pub extern "C" fn trace_context_write_string_record(
    _: *mut TraceContext,
    index: u16,
    text: ArrayPtr<'_, u8>,
    length: usize,
) {
    // SAFETY: the header asks for `length` bytes at `text` (C1).
    let value = unsafe { text.text(length) };
    if index != 0 {
        // Durable, so that every later event can be resolved.
        define(&Record::String(StringRecord { index, value }));
    }
}

pub extern "C" fn trace_context_write_thread_record(
    _: *mut TraceContext,
    index: u32,
    process: u64,
    thread: u64,
) {
    if let Ok(index @ 1..) = u8::try_from(index) {
        let (process, thread) = (ProcessKoid(Koid(process)), ThreadKoid(Koid(thread)));
        define(&Record::Thread(ThreadRecord { index, process, thread }));
    }
}
