//! The program's function that sees each event.
//!
//! Invariant **F1**: function and context are used on any thread from when they are set until a call that
//! sets others, or none, has returned.
//= docs/c.md#a-hook-for-each-event
#![allow(unsafe_code)]

use crate::abi::{Arg, GivenString};
use core::ffi::c_void;
use trace_engine::ffi::MAX_ARGUMENTS;
use trace_engine::{EventHook, set_event_hook};
use trace_format::argument::ArgumentValue;
use trace_format::event::{Event, EventKind};
use trace_format::refs::ThreadRef;

/// `trace_event_hook_t`.
pub type Hook = unsafe extern "C" fn(context: *mut c_void, event: &HookEvent<'_>) -> bool;

/// `trace_hook_event_t`.
#[repr(C)]
pub struct HookEvent<'a> {
    event_type: u32,
    scope: u32,
    timestamp: i64,
    end: i64,
    id: u64,
    process: u64,
    thread: u64,
    category: GivenString<'a>,
    name: GivenString<'a>,
    args: *const Arg<'a>,
    arg_count: usize,
}

/// The program's function.
struct Given {
    call: Hook,
    context: *mut c_void,
}

// SAFETY: the program lends function and context to the threads of events (F1).
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}

/// Shows an event to the program's function.
fn show(event: &Event<'_>, given: &Given) -> bool {
    let none = || Arg { name: GivenString::EMPTY, value: ArgumentValue::Null.into() };
    let mut arguments: [Arg<'_>; MAX_ARGUMENTS] = core::array::from_fn(|_| none());
    let mut arg_count = 0;
    for (to, argument) in arguments.iter_mut().zip(event.arguments.iter().map_while(Result::ok)) {
        *to = Arg { name: argument.name.into(), value: argument.value.into() };
        arg_count += 1;
    }
    let timestamp = event.timestamp.0 as i64;
    let (mut scope, mut end, mut id) = (0, timestamp, 0);
    match event.kind {
        EventKind::Instant { scope: given } => scope = given as u32,
        EventKind::DurationComplete { end: given } => end = given.0 as i64,
        EventKind::Counter { id: given }
        | EventKind::AsyncBegin { id: given }
        | EventKind::AsyncInstant { id: given }
        | EventKind::AsyncEnd { id: given }
        | EventKind::FlowBegin { id: given }
        | EventKind::FlowStep { id: given }
        | EventKind::FlowEnd { id: given } => id = given,
        EventKind::DurationBegin | EventKind::DurationEnd | EventKind::Unknown { .. } => {}
    }
    let (process, thread) = match event.thread {
        ThreadRef::Inline { process, thread } => (process.0.0, thread.0.0),
        ThreadRef::Index(_) => (0, 0),
    };
    let event = HookEvent {
        event_type: event.kind.event_type().map_or(u32::MAX, |event_type| event_type as u32),
        scope,
        timestamp,
        end,
        id,
        process,
        thread,
        category: event.category.into(),
        name: event.name.into(),
        args: arguments.as_ptr(),
        arg_count,
    };
    // SAFETY: the engine is in a call of its hook, so that no call that sets another has returned (F1).
    unsafe { (given.call)(given.context, &event) }
}

pub extern "C" fn trace_set_event_hook(call: Option<Hook>, context: *mut c_void) {
    let given = call.map(|call| Given { call, context });
    set_event_hook(given.map(|given| -> Box<EventHook> { Box::new(move |event| show(event, &given)) }));
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<HookEvent<'_>>() == 96 && offset_of!(HookEvent<'_>, category) == 48);
    assert!(offset_of!(HookEvent<'_>, args) == 80);
};
