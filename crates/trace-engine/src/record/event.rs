//! The fixed part of an event, which both paths write.

use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::{Names, Values};
use crate::record::site_strings::SiteStrings;
use trace_format::event::{EventType, Scope};

/// The fixed part of an event, before it is known where it goes.
#[derive(Clone, Copy)]
pub struct Event {
    /// What happens.
    pub event_type: EventType,
    /// Start of a complete duration in ticks; its end is the time of writing.
    pub start: Option<u64>,
    /// The id or scope behind the arguments.
    pub extra: Option<u64>,
}

impl Event {
    /// Words of the record, without inline thread, strings and argument names.
    #[inline(always)]
    pub(crate) fn words(&self, values: &impl Values) -> usize {
        self.fixed_words() + values.words()
    }

    /// Words of the record, without arguments, inline thread and strings.
    #[inline(always)]
    pub(crate) fn fixed_words(&self) -> usize {
        2 + usize::from(self.start.is_some()) + usize::from(self.extra.is_some())
    }

    #[inline(always)]
    pub(crate) fn write_timestamp(&self, now: u64, record: &mut RecordWriter) {
        record.word(self.start.unwrap_or(now));
    }

    /// Stores the arguments with their names as they stand in the record, and what is behind them.
    pub(crate) fn write_tail_of(
        &self,
        strings: &SiteStrings<'_>,
        now: u64,
        values: &impl Values,
        record: &mut RecordWriter,
    ) {
        strings.write_arguments(values, record);
        self.write_end(now, record);
    }

    #[inline(always)]
    pub(super) fn write_tail(
        &self,
        now: u64,
        values: &impl Values,
        names: &impl Names,
        record: &mut RecordWriter,
    ) {
        values.write(0, names, record);
        self.write_end(now, record);
    }

    #[inline(always)]
    pub(super) fn write_end(&self, now: u64, record: &mut RecordWriter) {
        if self.start.is_some() {
            record.word(now);
        }
        if let Some(extra) = self.extra {
            record.word(extra);
        }
    }
}

/// The word behind an instant's arguments: none for the thread, which readers assume.
#[doc(hidden)]
#[inline(always)]
#[must_use]
pub const fn scope_word(scope: Scope) -> Option<u64> {
    match scope {
        Scope::Thread => None,
        Scope::Process => Some(1),
        Scope::Global => Some(2),
    }
}
