//! The usual ends of slices, written without the library's messages.
//!
//! All other packets go the way of those that the library decodes, with the same result.
//= docs/import.md#track-events

use super::lanes::waiting;
use super::sequence::{Name, Names};
use super::tracks::TrackScope;
use super::usual::Usual;
use super::{Importer, NO_RELATION};
use crate::export::perfetto::messages::{
    SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE, TYPE_SLICE_BEGIN, TYPE_SLICE_END,
};
use crate::import::writer::Writer;
use smallvec::SmallVec;
use std::io::Write;
use trace_format::argument::{Argument, ArgumentValue, MAX_ARGUMENTS};
use trace_format::event::EventKind;
use trace_format::refs::StringRef;
use trace_linux::Records;

impl<W: Write> Importer<W> {
    /// A usual packet.
    pub(super) fn usual(&mut self, offset: u64, usual: Usual<'_>) {
        let time = match self.slice_time(usual) {
            Some(Ok(time)) if self.slice(usual, time).is_some() => return,
            Some(Err(why)) => return self.kernel.writer.skip(why),
            Some(Ok(time)) => Some(time),
            None => None,
        };
        let mut packet = self.usual.take().unwrap_or_default();
        usual.fill(&mut packet);
        self.decoded(offset, &packet, &[], (None, time));
        self.usual = Some(packet);
    }

    /// The time of a beginning or an end of a slice, or why it has none; none if it is something else.
    fn slice_time(&mut self, usual: Usual<'_>) -> Option<Result<u64, &'static str>> {
        let packet = usual.packet;
        let flags = packet.flags.unwrap_or(0);
        let id = packet.sequence.unwrap_or(0);
        let sequence = self.sequences.get(&id)?;
        if !matches!(packet.kind, Some(TYPE_SLICE_BEGIN | TYPE_SLICE_END)) {
            return None;
        }
        let has_flows = !usual.flows().is_empty() || !usual.terminating_flows().is_empty();
        let has_counter = packet.counter_value.is_some() || packet.double_counter_value.is_some();
        let is_lost = flags & SEQ_NEEDS_INCREMENTAL_STATE != 0 && !sequence.is_valid;
        let is_special = has_flows || has_counter || is_lost || flags & SEQ_INCREMENTAL_STATE_CLEARED != 0;
        if is_special || usual.argument_count() > MAX_ARGUMENTS || usual.categories().len() > 1 {
            return None;
        }
        let clock = packet.clock.or(sequence.clock);
        Some(self.clocks.trace_time(id, clock, packet.timestamp?).ok_or(NO_RELATION))
    }

    /// Writes such a slice; none, and nothing but some of its strings, if one of its names has no place in
    /// the table.
    fn slice(&mut self, usual: Usual<'_>, at: u64) -> Option<()> {
        let packet = usual.packet;
        let sequence = self.sequences.get_mut(&packet.sequence.unwrap_or(0))?;
        let is_begin = packet.kind == Some(TYPE_SLICE_BEGIN);
        let uuid = packet.track.or(sequence.track).unwrap_or(0);
        let place = match sequence.thread.filter(|_| uuid == 0 && packet.track.is_none()) {
            Some(thread) => TrackScope::Thread(thread),
            None => self.tracks.place(uuid),
        };
        let writer = &mut self.kernel.writer;
        // In the order in which the other way puts strings into the table.
        let mut arguments: SmallVec<[Argument<'_>; 6]> = SmallVec::new();
        for (iid, value) in usual.arguments() {
            let value = match value {
                ArgumentValue::String(StringRef::Inline(text)) => ArgumentValue::String(writer.string(text)),
                other => other,
            };
            arguments.push(Argument { name: reference(&mut sequence.argument_names, iid, writer)?, value });
        }
        let category = reference(&mut sequence.categories, usual.categories().first().copied(), writer)?;
        let name = reference(&mut sequence.names, packet.name, writer)?;
        let kind = if is_begin { EventKind::DurationBegin } else { EventKind::DurationEnd };
        let thread = if place.waits() { waiting(uuid) } else { place.thread() };
        writer.event_of(at, thread, (category, name), kind, &arguments);
        if is_begin {
            for end in self.waiting.take(thread, at) {
                self.flow_end(thread, at, &end);
            }
        }
        Some(())
    }
}

/// A reference to a name of a sequence; none if it has no place in the table.
#[inline]
fn reference<W: Write>(
    names: &mut Names,
    iid: Option<u64>,
    writer: &mut Writer<W>,
) -> Option<StringRef<'static>> {
    let Some(name) = iid.and_then(|iid| names.get_mut(&iid)) else { return Some(StringRef::Empty) };
    match name.index {
        Some(index) => Some(StringRef::Index(index)),
        None => first_reference(name, writer),
    }
}

#[cold]
fn first_reference<W: Write>(name: &mut Name, writer: &mut Writer<W>) -> Option<StringRef<'static>> {
    match writer.string(name.text.as_bytes()) {
        StringRef::Index(index) => {
            name.index = Some(index);
            Some(StringRef::Index(index))
        }
        StringRef::Empty => Some(StringRef::Empty),
        StringRef::Inline(_) => None,
    }
}
