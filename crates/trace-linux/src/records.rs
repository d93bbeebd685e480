//! Output of records.

use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::EventKind;
use trace_format::kernel_object::{PROCESS_ARGUMENT, TYPE_PROCESS, TYPE_THREAD};
use trace_format::record::Record;
use trace_format::refs::{MAX_STRING_BYTES, StringRef};
use trace_format::units::{Koid, Thread};

/// Writes records of one provider, and knows which strings have an index.
pub trait Records {
    /// A reference to a string that is likely to repeat.
    fn string<'a>(&mut self, text: &'a [u8]) -> StringRef<'a>;

    /// A reference to a text that is no text of a program's: the name of a kind of event or of an argument.
    /// Private recordings have these alone.
    fn constant<'a>(&mut self, text: &'a [u8]) -> StringRef<'a> {
        self.string(text)
    }

    /// Whether records come in the order of their times, so that an end follows its begin. If they do not,
    /// the recipient of the records has to pair them.
    fn is_in_order(&self) -> bool {
        true
    }

    /// Writes a record that has a time; false if it is larger than the format allows.
    fn at(&mut self, at: u64, record: &Record<'_>) -> bool;

    /// Writes an event.
    fn event(
        &mut self,
        at: u64,
        thread: Thread,
        category: &[u8],
        name: &[u8],
        kind: EventKind,
        arguments: &[Argument<'_>],
    );

    /// Writes the name of a koid's object.
    fn object(&mut self, object_type: u8, koid: Koid, name: &[u8], arguments: &[Argument<'_>]);

    /// Writes the name of a process.
    fn name_process(&mut self, process: Koid, name: &[u8]) {
        self.object(TYPE_PROCESS, process, name, &[]);
    }

    /// Writes the name of a thread, and the process that it belongs to.
    fn name_thread(&mut self, thread: Thread, name: &[u8]) {
        let process = Argument {
            name: self.constant(PROCESS_ARGUMENT.as_bytes()),
            value: ArgumentValue::Koid(thread.process),
        };
        self.object(TYPE_THREAD, thread.thread, name, &[process]);
    }

    /// Counts something that is skipped; does nothing where nothing counts it.
    fn leave_out(&mut self, _what: &str) {}

    /// Adds a warning for people.
    fn warn(&mut self, what: String);
}

impl<R: Records> Records for &mut R {
    fn string<'a>(&mut self, text: &'a [u8]) -> StringRef<'a> {
        (**self).string(text)
    }

    fn constant<'a>(&mut self, text: &'a [u8]) -> StringRef<'a> {
        (**self).constant(text)
    }

    fn is_in_order(&self) -> bool {
        (**self).is_in_order()
    }

    fn at(&mut self, at: u64, record: &Record<'_>) -> bool {
        (**self).at(at, record)
    }

    fn event(
        &mut self,
        at: u64,
        thread: Thread,
        category: &[u8],
        name: &[u8],
        kind: EventKind,
        arguments: &[Argument<'_>],
    ) {
        (**self).event(at, thread, category, name, kind, arguments);
    }

    fn object(&mut self, object_type: u8, koid: Koid, name: &[u8], arguments: &[Argument<'_>]) {
        (**self).object(object_type, koid, name, arguments);
    }

    fn leave_out(&mut self, what: &str) {
        (**self).leave_out(what);
    }

    fn warn(&mut self, what: String) {
        (**self).warn(what);
    }
}

/// A string as it is, cut at the format's limit.
#[must_use]
pub fn inline(text: &[u8]) -> StringRef<'_> {
    if text.is_empty() {
        return StringRef::Empty;
    }
    let limit = text.len().min(MAX_STRING_BYTES);
    let is_within = |end: usize| text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80);
    // At the beginning of a character, which has at most four bytes, if it is UTF-8.
    let end = (0..4).map_while(|back| limit.checked_sub(back)).find(|end| !is_within(*end));
    StringRef::Inline(&text[..end.unwrap_or(limit)])
}

/// The part of a text that the format has room for.
#[must_use]
pub fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_STRING_BYTES)]
}

/// FNV-1a: the same on every machine and in every release.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
