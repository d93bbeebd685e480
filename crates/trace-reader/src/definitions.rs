//! What events need to be resolved away from their reader: on another thread, while it reads on.

use crate::item::{Arguments, Event, FurtherArguments, Item, Resolved, Thread, resolve_keyed};
use crate::tables::Provider;
use std::sync::Arc;
use trace_format::event;
use trace_format::log::Log;
use trace_format::record::{Record, RecordHeader, RecordType};
use trace_format::refs::ThreadRef;

/// What the provider of a record has defined up to there. It shares its contents with the reader until that
/// meets another definition, for which the reader then copies its tables.
#[derive(Clone, Debug)]
pub struct Definitions(Arc<Provider>);

impl<'a> Resolved<'a> {
    /// What its provider has defined, for [`Definitions::item`].
    #[must_use]
    pub fn definitions(&self) -> Definitions {
        Definitions(self.definitions.clone())
    }
}

impl Definitions {
    /// Whether this is all that a record's provider has defined.
    #[inline]
    #[must_use]
    pub fn are_of(&self, record: &Resolved<'_>) -> bool {
        Arc::ptr_eq(&self.0, record.definitions)
    }

    /// How many entries the reader copies at its next definition, because of these.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.0.entries()
    }

    /// The contents of an event or a log record that the reader has resolved with these definitions, from
    /// the bytes of the record, and the event's further arguments. None for other records.
    #[inline]
    #[must_use]
    pub fn item<'a>(&'a self, bytes: &'a [u8], further: FurtherArguments<'a>) -> Option<Item<'a>> {
        let provider = &*self.0;
        let resolved = |event| Item::Event(resolved(provider, event, further));
        if let Some(event) = event::Event::of_common_record(bytes, |_| true) {
            return Some(resolved(event));
        }
        match event::Event::of_record(bytes) {
            Some(event) => event.ok().map(resolved),
            None => log(provider, bytes),
        }
    }
}

#[inline]
fn resolved<'a>(provider: &'a Provider, event: event::Event<'a>, further: FurtherArguments<'a>) -> Event<'a> {
    let (category, category_key) = resolve_keyed(provider, event.category);
    let (name, name_key) = resolve_keyed(provider, event.name);
    Event {
        time: provider.time(event.timestamp),
        thread: thread(provider, event.thread),
        category,
        name,
        kind: event.kind,
        arguments: Arguments { encoded: event.arguments, further, provider },
        keys: (category_key, name_key),
    }
}

#[inline]
fn thread(provider: &Provider, thread: ThreadRef) -> Thread {
    match thread {
        ThreadRef::Inline { process, thread } => Thread { process: process.0, thread: thread.0 },
        ThreadRef::Index(index) => provider.thread(index).unwrap_or_default(),
    }
}

#[cold]
fn log<'a>(provider: &Provider, bytes: &'a [u8]) -> Option<Item<'a>> {
    let header = RecordHeader(u64::from_le_bytes(*bytes.first_chunk()?));
    if header.record_type_bits() != RecordType::Log as u8 {
        return None;
    }
    let Ok(Record::Log(Log { timestamp, thread: of, message })) = Record::decode(bytes) else { return None };
    Some(Item::Log {
        time: provider.time(timestamp),
        thread: thread(provider, of),
        message: crate::Text(message),
    })
}
