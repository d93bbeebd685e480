//! How slices are recorded, and which durations are polls of an operation.

use trace_reader::item::KnownArgument;
use trace_reader::{Event, Value};

/// How a slice was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As one event of a thread.
    Complete,
    /// As a begin and an end of a thread.
    Pair,
    /// As a begin and an end of an asynchronous operation.
    Operation,
    /// As a duration of a thread that works on an operation: one of its polls.
    Poll,
}

/// The id of the operation in which one began.
//= docs/meaning.md#polls
#[must_use]
pub fn parent_operation_of(event: &Event<'_>) -> Option<u64> {
    if event.arguments.is_empty() {
        None
    } else {
        id(event.arguments.find_known(KnownArgument::ParentOperation)?)
    }
}

/// The id of the operation of which a duration that begins here is a poll. None if it is a duration of its
/// own.
//= docs/meaning.md#polls
#[inline]
#[must_use]
pub fn poll_of(event: &Event<'_>) -> Option<u64> {
    if event.arguments.is_empty() {
        return None;
    }
    id(event.arguments.find_known(KnownArgument::PollOf)?)
}

fn id(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Uint64(id) => Some(id),
        Value::Uint32(id) => Some(id.into()),
        Value::Int64(id) => u64::try_from(id).ok(),
        Value::Int32(id) => u64::try_from(id).ok(),
        _ => None,
    }
}
