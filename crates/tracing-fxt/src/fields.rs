//! Fields of spans and events as arguments.

use crate::callsites::Callsite;
use core::fmt::{self, Debug, Write};
use core::sync::atomic::{AtomicU64, Ordering};
use std::error::Error;
use trace_engine::trace_format::operation::{FIRST_POLL, PARENT_OPERATION, POLL_OF};
use trace_engine::{ArgumentBuffer, Number};
use tracing_core::field::Visit;
use tracing_core::{Field as TracingField, Metadata};

/// Fields of a callsite at most, by `tracing`.
const MAX_FIELDS: usize = 32;
/// Arguments for fields of a span. Three more may be added: what says that a begin is another part of it, and
/// of which operation; or what is known of that operation.
const MAX_NAMES: usize = 12;
/// The same of an event, to which its message may be added.
const MAX_NAMES_OF_EVENT: usize = 14;
/// Bytes of a message that are kept: no event has room for more.
pub const MAX_MESSAGE_BYTES: usize = 4096;
/// The argument of an event whose message is not its name.
const MESSAGE: &str = "message";
/// The argument of a span's part that was begun anew, as a span outside of it has ended first.
const RESUMED: &str = "resumed";
/// The argument of a span as an operation that had begun before the recording.
const BEGAN_BEFORE: &str = "began-before";
/// The prefix of fields that are counters.
const COUNTER: &str = "counter.";

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Fields that were not recorded.
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Counts fields that are not recorded.
#[cold]
pub fn count_dropped(fields: usize) {
    DROPPED.fetch_add(fields as u64, Ordering::Relaxed);
}

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// An argument, by the number of its name.
    Argument(u8),
    /// The event's message.
    Message,
    /// A counter, by its number.
    Counter(u8),
    /// It has no room.
    Dropped,
}

/// What becomes of each field of a callsite.
#[derive(Debug)]
pub struct FieldMap {
    fields: [Field; MAX_FIELDS],
    names: Vec<&'static str>,
    pub counters: Vec<&'static str>,
    is_event: bool,
}

impl FieldMap {
    pub fn new(metadata: &'static Metadata<'static>) -> Self {
        let mut map = Self {
            fields: [Field::Dropped; MAX_FIELDS],
            names: Vec::new(),
            counters: Vec::new(),
            is_event: metadata.is_event(),
        };
        let max_names = if map.is_event { MAX_NAMES_OF_EVENT } else { MAX_NAMES };
        for field in metadata.fields() {
            let name = field.name();
            let becomes = match (map.is_event, name.strip_prefix(COUNTER)) {
                (true, None) if name == MESSAGE => Field::Message,
                (true, Some(counter)) => {
                    map.counters.push(counter);
                    Field::Counter(map.counters.len() as u8 - 1)
                }
                _ if map.names.len() < max_names => {
                    map.names.push(name);
                    Field::Argument(map.names.len() as u8 - 1)
                }
                _ => Field::Dropped,
            };
            if let Some(place) = map.fields.get_mut(field.index()) {
                *place = becomes;
            }
        }
        map
    }

    /// Names of the arguments: those of fields, and those that are added.
    pub fn names(&self) -> Vec<&'static str> {
        let added: &[&str] = if self.is_event { &[MESSAGE] } else { &[RESUMED, POLL_OF] };
        self.names.iter().chain(added).copied().collect()
    }

    /// Names of the arguments of an operation: those of fields, and those that are added.
    pub fn names_of_operation(&self) -> Vec<&'static str> {
        self.names.iter().chain(&[FIRST_POLL, PARENT_OPERATION, BEGAN_BEFORE]).copied().collect()
    }

    /// The number of the first argument that is added.
    pub fn added(&self) -> u8 {
        self.names.len() as u8
    }

    pub fn has_message(&self) -> bool {
        self.fields.contains(&Field::Message)
    }

    /// Whether an event is more than samples of counters.
    pub fn is_more_than_counters(&self) -> bool {
        self.counters.is_empty() || self.has_message() || !self.names.is_empty()
    }

    #[inline]
    pub fn of(&self, index: usize) -> Field {
        self.fields.get(index).copied().unwrap_or(Field::Dropped)
    }
}

/// What an event's message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageIs {
    /// There is none.
    Missing,
    /// The one that the callsite always had.
    Known,
    /// It is in the buffer.
    Other {
        /// It was written in one piece: it may be a text of the program.
        in_one_piece: bool,
    },
}

/// Takes the values of fields.
pub struct Visitor<'a> {
    callsite: &'a Callsite,
    arguments: &'a mut ArgumentBuffer,
    text: &'a mut String,
    pub message: MessageIs,
    /// Is called with the number of a counter and its value.
    sample: &'a mut dyn FnMut(u8, Number),
    dropped: usize,
}

impl<'a> Visitor<'a> {
    pub fn new(
        callsite: &'a Callsite,
        arguments: &'a mut ArgumentBuffer,
        text: &'a mut String,
        sample: &'a mut dyn FnMut(u8, Number),
    ) -> Self {
        Self { callsite, arguments, text, message: MessageIs::Missing, sample, dropped: 0 }
    }

    #[inline]
    fn number(&mut self, field: &TracingField, number: Number) {
        match self.callsite.field(field) {
            Field::Argument(name) => {
                let is_kept = self.arguments.push(name, number);
                self.dropped += usize::from(!is_kept);
            }
            Field::Counter(counter) => (self.sample)(counter, number),
            Field::Message | Field::Dropped => self.dropped += 1,
        }
    }

    fn formatted(&mut self, field: &TracingField, value: fmt::Arguments<'_>) {
        match self.callsite.field(field) {
            Field::Argument(name) => {
                let is_kept = self.arguments.push_formatted(name, |text| text.write_fmt(value));
                self.dropped += usize::from(!is_kept);
            }
            Field::Message => self.set_message(value),
            Field::Counter(_) | Field::Dropped => self.dropped += 1,
        }
    }

    fn set_message(&mut self, value: fmt::Arguments<'_>) {
        if let Some(known) = self.callsite.only_message() {
            let mut compared = Compared(Some(known.text));
            if compared.write_fmt(value).is_ok() && compared.0 == Some("") {
                self.message = MessageIs::Known;
                return;
            }
        }
        self.text.clear();
        let mut pieces = Pieces { text: self.text, pieces: 0 };
        // An error is the value's own: what it has written before stays.
        let _ = pieces.write_fmt(value);
        self.message = MessageIs::Other { in_one_piece: pieces.pieces <= 1 };
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        if self.dropped > 0 {
            count_dropped(self.dropped);
        }
    }
}

impl Visit for Visitor<'_> {
    fn record_f64(&mut self, field: &TracingField, value: f64) {
        self.number(field, Number::Double(value));
    }

    fn record_i64(&mut self, field: &TracingField, value: i64) {
        self.number(field, Number::Int64(value));
    }

    fn record_u64(&mut self, field: &TracingField, value: u64) {
        self.number(field, Number::Uint64(value));
    }

    fn record_bool(&mut self, field: &TracingField, value: bool) {
        self.number(field, Number::Bool(value));
    }

    fn record_str(&mut self, field: &TracingField, value: &str) {
        match self.callsite.field(field) {
            Field::Argument(name) => {
                let is_kept = self.arguments.push_text(name, value);
                self.dropped += usize::from(!is_kept);
            }
            _ => self.formatted(field, format_args!("{value}")),
        }
    }

    fn record_error(&mut self, field: &TracingField, value: &(dyn Error + 'static)) {
        self.formatted(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &TracingField, value: &dyn Debug) {
        self.formatted(field, format_args!("{value:?}"));
    }
}

/// Compares what is written with a text: what is left of it, or none where it differs.
struct Compared<'a>(Option<&'a str>);

impl Write for Compared<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.and_then(|left| left.strip_prefix(text));
        if self.0.is_some() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// Keeps the beginning of a text, and counts the pieces in which it is written.
struct Pieces<'a> {
    text: &'a mut String,
    pieces: usize,
}

impl Write for Pieces<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.pieces += 1;
        push_fitting(self.text, text, MAX_MESSAGE_BYTES);
        Ok(())
    }
}

/// Appends as much of a text as there is room for below a length, up to the end of a character. Whether that
/// is all of it.
pub fn push_fitting(to: &mut String, text: &str, max_bytes: usize) -> bool {
    let mut end = max_bytes.saturating_sub(to.len()).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    to.push_str(&text[..end]);
    end == text.len()
}
