//! What a text begins with: JSON, a trace in JSON, events one in each line.

use super::entry::is_event;
use crate::import::scanner::{pass_space, value_length};
use memchr::memmem;
use serde::de::IgnoredAny;

/// Some programs begin UTF-8 text with it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// What every document but a list has.
const EVENTS: &[u8] = b"\"traceEvents\"";
const SYSTEM_EVENTS: &[u8] = b"\"systemTraceEvents\"";
const PHASE: &[u8] = b"\"ph\"";

/// The text without white space and comments at its beginning.
fn trimmed(start: &[u8]) -> &[u8] {
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    &text[pass_space(text)..]
}

/// Whether a file begins like JSON.
#[must_use]
pub fn is_json(start: &[u8]) -> bool {
    matches!(trimmed(start).first(), Some(b'[' | b'{'))
}

/// Whether a file begins with events that are in no list: with a whole one, or with something else before a
/// line that is one.
//= docs/import.md#json
#[must_use]
pub fn is_lines(start: &[u8]) -> bool {
    let text = trimmed(start);
    text.starts_with(b"{") && (begins_with_event(text) || has_line_of_event(text))
}

/// Whether a text begins with a whole event.
pub(super) fn begins_with_event(text: &[u8]) -> bool {
    value_length(text).is_some_and(|length| is_event(&text[..length]))
}

/// Whether a line is an event, and what is before it is no document with events.
fn has_line_of_event(text: &[u8]) -> bool {
    let is_document =
        |line: &&[u8]| memmem::find(line, EVENTS).or(memmem::find(line, SYSTEM_EVENTS)).is_some();
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut lines = lines.filter(|line| !line.is_empty());
    let mut before = lines.next().filter(|line| !is_document(line));
    lines.any(|line| {
        let goes_on = matches!(before.and_then(<[u8]>::last), None | Some(b'[' | b'{' | b',' | b':'));
        before = before.filter(|_| !is_document(&line)).map(|_| line);
        !goes_on && line.starts_with(b"{") && value_length(line) == Some(line.len()) && is_event(line)
    })
}

/// Whether it begins with what is no list of JSON, such as the time of a line of a log.
pub(in crate::import) fn is_odd_list(start: &[u8]) -> bool {
    let Some(inside) = trimmed(start).strip_prefix(b"[").map(trimmed) else { return false };
    if matches!(inside.first(), None | Some(b'{' | b']' | b',')) {
        return false;
    }
    let Some((value, rest)) = value_length(inside).map(|length| inside.split_at(length)) else { return true };
    !trimmed(rest).starts_with(b",") || serde_json::from_slice::<IgnoredAny>(value).is_err()
}

/// Whether a file begins with JSON that is a trace for certain.
pub(in crate::import) fn has_trace(start: &[u8]) -> bool {
    begins_trace(trimmed(start))
}

/// Whether a text begins with the list of events of a trace, an object that has it, or an event.
pub(in crate::import) fn begins_trace(text: &[u8]) -> bool {
    let (object, mark) = match text.strip_prefix(b"[").map(trimmed) {
        Some(inside) => (inside, PHASE),
        None => (text, EVENTS),
    };
    if !object.strip_prefix(b"{").map(trimmed).is_some_and(|inside| inside.starts_with(b"\"")) {
        return false;
    }
    match value_length(object).map(|length| &object[..length]) {
        Some(whole) => is_event(whole) || mark == EVENTS && memmem::find(whole, EVENTS).is_some(),
        None => memmem::find(object, mark).is_some(),
    }
}
