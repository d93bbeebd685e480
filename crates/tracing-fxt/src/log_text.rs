//! Events as texts: the message, and the fields behind it.

use crate::callsites::Callsite;
use crate::fields::{Field, MAX_MESSAGE_BYTES, count_dropped, push_fitting};
use core::fmt::{self, Debug, Write};
use std::error::Error;
use trace_engine::Number;
use tracing_core::Field as TracingField;
use tracing_core::field::Visit;

/// Bytes of all fields of an event that are kept.
const MAX_FIELD_BYTES: usize = 4096;

/// Takes the values of fields.
pub struct LogVisitor<'a> {
    callsite: &'a Callsite,
    /// What stands in front of the message.
    prefix_bytes: usize,
    /// Prefix and message.
    text: &'a mut String,
    fields: &'a mut String,
    /// Is called with the number of a counter and its value.
    sample: &'a mut dyn FnMut(u8, Number),
    dropped: usize,
}

impl<'a> LogVisitor<'a> {
    /// With two empty texts.
    pub fn new(
        callsite: &'a Callsite,
        text: &'a mut String,
        fields: &'a mut String,
        sample: &'a mut dyn FnMut(u8, Number),
    ) -> Self {
        let metadata = callsite.metadata;
        text.clear();
        fields.clear();
        text.push_str(metadata.level().as_str());
        text.push(' ');
        text.push_str(metadata.target());
        text.push(':');
        Self { callsite, prefix_bytes: text.len(), text, fields, sample, dropped: 0 }
    }

    /// The whole text behind the last field. None if the event was only samples of counters.
    pub fn finish(self) -> Option<&'a str> {
        if self.dropped > 0 {
            count_dropped(self.dropped);
        }
        if self.text.len() == self.prefix_bytes {
            // The default name is the event's place.
            match self.callsite.metadata.name() {
                name if !name.starts_with("event ") => {
                    self.text.push(' ');
                    self.text.push_str(name);
                }
                _ if !self.callsite.fields.is_more_than_counters() => return None,
                _ => {}
            }
        }
        self.text.push_str(self.fields);
        Some(self.text)
    }

    fn number(&mut self, field: &TracingField, number: Number, shown: fmt::Arguments<'_>) {
        match self.callsite.field(field) {
            Field::Counter(counter) => (self.sample)(counter, number),
            _ => self.formatted(field, shown),
        }
    }

    fn formatted(&mut self, field: &TracingField, value: fmt::Arguments<'_>) {
        // An error is the value's own, or says that there is no more room: what was written before stays.
        match self.callsite.field(field) {
            Field::Message => {
                let max_bytes = self.prefix_bytes + 1 + MAX_MESSAGE_BYTES;
                self.text.push(' ');
                let _ = Fitting { text: self.text, max_bytes }.write_fmt(value);
            }
            Field::Counter(_) => self.dropped += 1,
            Field::Argument(_) | Field::Dropped => {
                // A name that is cut, or one without a value, would be misread.
                if self.fields.len() + field.name().len() + 3 > MAX_FIELD_BYTES {
                    self.dropped += 1;
                    return;
                }
                let mut fields = Fitting { text: self.fields, max_bytes: MAX_FIELD_BYTES };
                let _ = fields.write_fmt(format_args!(" {}={value}", field.name()));
            }
        }
    }
}

impl Visit for LogVisitor<'_> {
    fn record_f64(&mut self, field: &TracingField, value: f64) {
        self.number(field, Number::Double(value), format_args!("{value}"));
    }

    fn record_i64(&mut self, field: &TracingField, value: i64) {
        self.number(field, Number::Int64(value), format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &TracingField, value: u64) {
        self.number(field, Number::Uint64(value), format_args!("{value}"));
    }

    fn record_bool(&mut self, field: &TracingField, value: bool) {
        self.number(field, Number::Bool(value), format_args!("{value}"));
    }

    fn record_str(&mut self, field: &TracingField, value: &str) {
        self.formatted(field, format_args!("{value}"));
    }

    fn record_error(&mut self, field: &TracingField, value: &(dyn Error + 'static)) {
        self.formatted(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &TracingField, value: &dyn Debug) {
        self.formatted(field, format_args!("{value:?}"));
    }
}

/// Appends up to a length, and refuses what comes behind a cut.
struct Fitting<'a> {
    text: &'a mut String,
    max_bytes: usize,
}

impl Write for Fitting<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if push_fitting(self.text, text, self.max_bytes) {
            return Ok(());
        }
        self.max_bytes = 0;
        Err(fmt::Error)
    }
}
