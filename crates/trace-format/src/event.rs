//! Event records: the name, time and thread of something that happened.
//!
//! ```text
//!  63        48 47        32 31      24 23    20 19      16 15         4 3  0
//! +------------+------------+----------+--------+----------+------------+----+
//! |    name    |  category  |  thread  |  args  |event type| size words |  4 |
//! +------------+------------+----------+--------+----------+------------+----+
//! | timestamp                                                                |
//! | process koid, thread koid, if the thread is inline                       |
//! | category, if inline ...                                                  |
//! | name, if inline ...                                                      |
//! | arguments ...                                                            |
//! | scope, id or end, as the event type has it                               |
//! ```

use crate::argument::Arguments;
use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType, check_size};
use crate::refs::{StringRef, ThreadRef};
use crate::sink::Sink;
use crate::units::{Ticks, Words};

mod indexed;
#[cfg(test)]
mod tests;

/// The types of event, with their numbers in the format.
//= docs/format.md#event-record
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EventType {
    /// A moment.
    Instant = 0,
    /// Samples of numbers.
    Counter = 1,
    /// A duration begins.
    DurationBegin = 2,
    /// The innermost duration of the thread ends.
    DurationEnd = 3,
    /// A duration, begin and end in one.
    DurationComplete = 4,
    /// A span that may cross threads begins.
    AsyncBegin = 5,
    /// A moment of such a span.
    AsyncInstant = 6,
    /// Such a span ends.
    AsyncEnd = 7,
    /// A flow from duration to duration begins.
    FlowBegin = 8,
    /// A flow comes through.
    FlowStep = 9,
    /// A flow ends.
    FlowEnd = 10,
}

impl EventType {
    /// The type with this number; `None` for one of a newer version.
    #[inline]
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            0 => Self::Instant,
            1 => Self::Counter,
            2 => Self::DurationBegin,
            3 => Self::DurationEnd,
            4 => Self::DurationComplete,
            5 => Self::AsyncBegin,
            6 => Self::AsyncInstant,
            7 => Self::AsyncEnd,
            8 => Self::FlowBegin,
            9 => Self::FlowStep,
            10 => Self::FlowEnd,
            _ => return None,
        })
    }
}

/// The scope of an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Scope {
    /// Its thread.
    #[default]
    Thread = 0,
    /// Its process.
    Process = 1,
    /// The whole system.
    Global = 2,
}

impl Scope {
    /// The scope of this word; one of a newer version is taken as that of the thread.
    #[inline]
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        match raw {
            1 => Self::Process,
            2 => Self::Global,
            _ => Self::Thread,
        }
    }
}

/// The header of an event record of `size_words` words.
//= docs/format.md#event-record
#[inline]
#[must_use]
pub const fn header(
    event_type: EventType,
    size_words: u64,
    argument_count: u64,
    thread_ref: u8,
    category_ref: u16,
    name_ref: u16,
) -> u64 {
    RecordType::Event as u64
        | (size_words << 4)
        | ((event_type as u64) << 16)
        | (argument_count << 20)
        | ((thread_ref as u64) << 24)
        | ((category_ref as u64) << 32)
        | ((name_ref as u64) << 48)
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// Its time; the begin of a complete duration.
    pub timestamp: Ticks,
    /// The thread on which it happened.
    pub thread: ThreadRef,
    /// The category that enables it.
    pub category: StringRef<'a>,
    /// Its name.
    pub name: StringRef<'a>,
    /// The kind of event, with the fields that only this kind has.
    pub kind: EventKind,
    /// Its arguments.
    pub arguments: Arguments<'a>,
}

/// The kinds of event, each with its own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A moment.
    Instant {
        /// Its scope.
        scope: Scope,
    },
    /// Samples, one per numeric argument.
    Counter {
        /// Distinguishes counters with the same name.
        id: u64,
    },
    /// A duration begins.
    DurationBegin,
    /// The innermost duration of the thread ends.
    DurationEnd,
    /// A duration that began at the event's timestamp.
    DurationComplete {
        /// The time of its end.
        end: Ticks,
    },
    /// A span that may cross threads begins.
    AsyncBegin {
        /// Joins the parts of the span.
        id: u64,
    },
    /// A moment of such a span.
    AsyncInstant {
        /// Joins the parts of the span.
        id: u64,
    },
    /// Such a span ends.
    AsyncEnd {
        /// Joins the parts of the span.
        id: u64,
    },
    /// A flow begins in the duration around it.
    FlowBegin {
        /// Joins the parts of the flow.
        id: u64,
    },
    /// A flow comes through the duration around it.
    FlowStep {
        /// Joins the parts of the flow.
        id: u64,
    },
    /// A flow ends in the duration around it.
    FlowEnd {
        /// Joins the parts of the flow.
        id: u64,
    },
    /// An event of a newer version, of which only the common part can be read.
    Unknown {
        /// Its type, 11 to 15.
        raw: u8,
    },
}

impl EventKind {
    /// A kind of event with the field that it has: the end of a complete duration, or the scope or the id of
    /// another; what is not given is 0.
    #[must_use]
    pub const fn new(event_type: EventType, word: Option<u64>) -> Self {
        let word = match word {
            Some(word) => word,
            None => 0,
        };
        match event_type {
            EventType::Instant => Self::Instant { scope: Scope::from_raw(word) },
            EventType::Counter => Self::Counter { id: word },
            EventType::DurationBegin => Self::DurationBegin,
            EventType::DurationEnd => Self::DurationEnd,
            EventType::DurationComplete => Self::DurationComplete { end: Ticks(word) },
            EventType::AsyncBegin => Self::AsyncBegin { id: word },
            EventType::AsyncInstant => Self::AsyncInstant { id: word },
            EventType::AsyncEnd => Self::AsyncEnd { id: word },
            EventType::FlowBegin => Self::FlowBegin { id: word },
            EventType::FlowStep => Self::FlowStep { id: word },
            EventType::FlowEnd => Self::FlowEnd { id: word },
        }
    }

    /// The type of the event; `None` for one of a newer version.
    #[must_use]
    #[inline(always)]
    pub const fn event_type(&self) -> Option<EventType> {
        Some(match self {
            Self::Instant { .. } => EventType::Instant,
            Self::Counter { .. } => EventType::Counter,
            Self::DurationBegin => EventType::DurationBegin,
            Self::DurationEnd => EventType::DurationEnd,
            Self::DurationComplete { .. } => EventType::DurationComplete,
            Self::AsyncBegin { .. } => EventType::AsyncBegin,
            Self::AsyncInstant { .. } => EventType::AsyncInstant,
            Self::AsyncEnd { .. } => EventType::AsyncEnd,
            Self::FlowBegin { .. } => EventType::FlowBegin,
            Self::FlowStep { .. } => EventType::FlowStep,
            Self::FlowEnd { .. } => EventType::FlowEnd,
            Self::Unknown { .. } => return None,
        })
    }

    /// The word behind the arguments, if the kind has one.
    #[inline(always)]
    const fn trailing_word(&self) -> Option<u64> {
        match *self {
            // Readers assume the thread, so the most common instant omits it.
            Self::Instant { scope: Scope::Thread } => None,
            Self::Instant { scope } => Some(scope as u64),
            Self::DurationComplete { end } => Some(end.0),
            Self::Counter { id }
            | Self::AsyncBegin { id }
            | Self::AsyncInstant { id }
            | Self::AsyncEnd { id }
            | Self::FlowBegin { id }
            | Self::FlowStep { id }
            | Self::FlowEnd { id } => Some(id),
            Self::DurationBegin | Self::DurationEnd | Self::Unknown { .. } => None,
        }
    }

    //= docs/format.md#event-record
    #[inline]
    fn decode(raw: u8, mut cursor: Cursor<'_>) -> Result<Self, DecodeError> {
        let Some(event_type) = EventType::from_raw(raw) else {
            return Ok(Self::Unknown { raw });
        };
        Ok(match event_type {
            // Not every writer has a scope word; the tests decode both forms.
            EventType::Instant => {
                Self::Instant { scope: cursor.word("scope").map_or(Scope::Thread, Scope::from_raw) }
            }
            EventType::Counter => Self::Counter { id: cursor.word("counter id")? },
            EventType::DurationBegin => Self::DurationBegin,
            EventType::DurationEnd => Self::DurationEnd,
            EventType::DurationComplete => {
                Self::DurationComplete { end: Ticks(cursor.word("end timestamp")?) }
            }
            EventType::AsyncBegin => Self::AsyncBegin { id: cursor.word("async id")? },
            EventType::AsyncInstant => Self::AsyncInstant { id: cursor.word("async id")? },
            EventType::AsyncEnd => Self::AsyncEnd { id: cursor.word("async id")? },
            EventType::FlowBegin => Self::FlowBegin { id: cursor.word("flow id")? },
            EventType::FlowStep => Self::FlowStep { id: cursor.word("flow id")? },
            EventType::FlowEnd => Self::FlowEnd { id: cursor.word("flow id")? },
        })
    }
}

impl<'a> Event<'a> {
    //= docs/format.md#event-record
    #[inline]
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'a>) -> Result<Self, DecodeError> {
        let timestamp = Ticks(cursor.word("timestamp")?);
        let thread = cursor.thread(field(header.0, 24, 8) as u8)?;
        let category = cursor.string(field(header.0, 32, 16) as u16, "category")?;
        let name = cursor.string(field(header.0, 48, 16) as u16, "event name")?;
        let arguments = Arguments::decode(field(header.0, 20, 4), &mut cursor)?;
        let kind = EventKind::decode(field(header.0, 16, 4) as u8, cursor)?;
        Ok(Self { timestamp, thread, category, name, kind, arguments })
    }

    /// Decodes a record if it is an event, as [`Record::decode`](crate::record::Record::decode) does; none if
    /// it is of another type. For readers that only need events, fast.
    ///
    /// # Errors
    ///
    /// Those of `Record::decode`.
    #[inline]
    pub fn of_record(bytes: &'a [u8]) -> Option<Result<Self, DecodeError>> {
        let mut cursor = Cursor::new(bytes);
        let header = RecordHeader(cursor.word("record header").ok()?);
        let is_event = header.record_type_bits() == RecordType::Event as u8;
        let is_whole = header.size().bytes() == bytes.len();
        (is_event && is_whole).then(|| Self::decode(header, cursor))
    }

    /// Size of the record.
    #[must_use]
    #[inline(always)]
    pub const fn words(&self) -> Words {
        Words(2 + self.kind.trailing_word().is_some() as usize)
            .plus(self.thread.words())
            .plus(self.category.words())
            .plus(self.name.words())
            .plus(self.arguments.words())
    }

    /// Writes the record; an instant with its scope unless that is the thread, which readers assume.
    ///
    /// # Errors
    ///
    /// [`EncodeError::TooLong`] for a string, [`EncodeError::TooManyArguments`],
    /// [`EncodeError::UnknownType`] for the event or an argument, [`EncodeError::TooLarge`].
    //= docs/format.md#event-record
    #[inline(always)]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        let Some(event_type) = self.kind.event_type() else {
            return Err(EncodeError::UnknownType { what: "event" });
        };
        self.category.check("category")?;
        self.name.check("event name")?;
        self.arguments.check()?;
        let size_words = check_size(self.words())?;
        sink.word(header(
            event_type,
            size_words,
            self.arguments.len() as u64,
            self.thread.bits(),
            self.category.bits(),
            self.name.bits(),
        ));
        sink.word(self.timestamp.0);
        self.thread.write(sink);
        self.category.write(sink);
        self.name.write(sink);
        self.arguments.write(sink);
        if let Some(word) = self.kind.trailing_word() {
            sink.word(word);
        }
        Ok(())
    }
}
