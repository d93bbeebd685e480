//! The structures of `trace-json/c_api.h`, field by field, and what they say.
//!
//! Invariant **J1**, which the header asks of callers: a pointer is valid for as long as the call takes, for
//! as many bytes or elements as the number beside it says; it may be null where that is 0. The value of an
//! argument is the one that its type names. A text of the type `const char*` ends in a NUL.
#![allow(unsafe_code)]

use core::ffi::{c_char, c_void};
use core::slice;
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::{Event, EventKind, EventType, Scope};
use trace_format::refs::{MAX_STRING_BYTES, StringRef, ThreadRef};
use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};

/// `trace_json_text_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    data: *const u8,
    length: usize,
}

impl Text {
    /// How it stands in a record, cut to the longest text of one.
    ///
    /// # Safety
    /// J1
    unsafe fn get<'a>(self) -> StringRef<'a> {
        if self.length == 0 || self.data.is_null() {
            return StringRef::Empty;
        }
        // SAFETY: J1
        StringRef::Inline(unsafe { slice::from_raw_parts(self.data, self.length.min(MAX_STRING_BYTES)) })
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
union Value {
    number: u64,
    real: f64,
    text: Text,
}

/// `trace_json_argument_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawArgument {
    name: Text,
    value_type: u32,
    value: Value,
}

impl RawArgument {
    /// # Safety
    /// J1
    unsafe fn get<'a>(self) -> Argument<'a> {
        // SAFETY: J1; all bytes of a number are given for each type.
        let (name, number) = unsafe { (self.name.get(), self.value.number) };
        let value = match self.value_type {
            1 => ArgumentValue::Int32(number as i32),
            2 => ArgumentValue::Uint32(number as u32),
            3 => ArgumentValue::Int64(number as i64),
            4 => ArgumentValue::Uint64(number),
            // SAFETY: J1
            5 => ArgumentValue::Double(unsafe { self.value.real }),
            // SAFETY: J1
            6 => ArgumentValue::String(unsafe { self.value.text.get() }),
            7 => ArgumentValue::Pointer(number),
            8 => ArgumentValue::Koid(Koid(number)),
            9 => ArgumentValue::Bool(number != 0),
            _ => ArgumentValue::Null,
        };
        Argument { name, value }
    }
}

/// `trace_json_event_t`.
#[repr(C)]
pub struct RawEvent {
    event_type: u32,
    scope: u32,
    timestamp: i64,
    end: i64,
    pub ticks_per_second: i64,
    id: u64,
    process: u64,
    thread: u64,
    category: Text,
    name: Text,
    arguments: *const RawArgument,
    argument_count: usize,
}

impl RawEvent {
    /// The arguments.
    ///
    /// # Safety
    /// J1
    pub unsafe fn arguments<'a>(&self) -> Vec<Argument<'a>> {
        if self.arguments.is_null() {
            return Vec::new();
        }
        let count = self.argument_count.min(trace_format::argument::MAX_ARGUMENTS);
        // SAFETY: J1
        let given = unsafe { slice::from_raw_parts(self.arguments, count) };
        // SAFETY: J1
        given.iter().map(|argument| unsafe { argument.get() }).collect()
    }

    /// The event without arguments; none if its type is of a newer version.
    ///
    /// # Safety
    /// J1
    pub unsafe fn get<'a>(&self) -> Option<Event<'a>> {
        let id = self.id;
        let kind = match EventType::from_raw(u8::try_from(self.event_type).ok()?)? {
            EventType::Instant => EventKind::Instant { scope: Scope::from_raw(u64::from(self.scope)) },
            EventType::Counter => EventKind::Counter { id },
            EventType::DurationBegin => EventKind::DurationBegin,
            EventType::DurationEnd => EventKind::DurationEnd,
            EventType::DurationComplete => EventKind::DurationComplete { end: Ticks(self.end as u64) },
            EventType::AsyncBegin => EventKind::AsyncBegin { id },
            EventType::AsyncInstant => EventKind::AsyncInstant { id },
            EventType::AsyncEnd => EventKind::AsyncEnd { id },
            EventType::FlowBegin => EventKind::FlowBegin { id },
            EventType::FlowStep => EventKind::FlowStep { id },
            EventType::FlowEnd => EventKind::FlowEnd { id },
        };
        // SAFETY: J1
        let (category, name) = unsafe { (self.category.get(), self.name.get()) };
        Some(Event {
            timestamp: Ticks(self.timestamp as u64),
            thread: ThreadRef::Inline {
                process: ProcessKoid(Koid(self.process)),
                thread: ThreadKoid(Koid(self.thread)),
            },
            category,
            name,
            kind,
            arguments: trace_format::argument::Arguments::from_slice(&[]),
        })
    }
}

/// `trace_json_deliver_t`.
pub type Deliver =
    unsafe extern "C" fn(context: *mut c_void, text: *const c_char, length: usize, is_last: bool);

/// `trace_json_predicate_t`.
pub type Predicate = unsafe extern "C" fn(
    context: *mut c_void,
    category: *const c_char,
    name: *const c_char,
    argument: *const c_char,
) -> bool;

/// `trace_json_config_t`.
#[repr(C)]
pub struct RawConfig {
    pub categories: *const c_char,
    pub mode: u32,
    pub kibibytes: u64,
    pub is_printed: bool,
}

const _: () = assert!(size_of::<RawEvent>() == 104 && size_of::<RawArgument>() == 40);
