//! Events: what their packets depend on besides their records, and the packets themselves.
//= docs/perfetto.md#events

use super::Exporter;
use super::interned::Interned;
use super::messages::{TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END};
use super::track_event::{End, Fields, Known, sample, write};
use crate::export::flows::{Begin, Part};
use crate::export::odd::OddSlices;
use crate::output::Output;
use std::io::Write;
use trace_format::event::EventKind;
use trace_reader::{Event, Names, Resolved, Text, TextKey};

/// The strings of an event get their numbers while its packets are written.
pub(super) struct Own<'a> {
    pub interned: &'a mut Interned,
    track: u64,
    named: (Text<'a>, Text<'a>),
    keys: (TextKey, TextKey),
    flow: u64,
}

impl End for Own<'_> {
    #[inline]
    fn end(&mut self, output: &mut Output) -> u32 {
        match self.interned.flags_alone() {
            Some(flags) => flags,
            None => self.interned.ending().end(output),
        }
    }
}

impl Known for Own<'_> {
    #[inline]
    fn track(&mut self) -> u64 {
        self.track
    }

    #[inline]
    fn named(&mut self) -> (u64, u64) {
        (self.interned.category(self.named.0, self.keys.0), self.interned.name(self.named.1, self.keys.1))
    }

    #[inline]
    fn argument(&mut self, name: Text<'_>, key: TextKey) -> u64 {
        self.interned.argument(name, key)
    }

    fn flow(&mut self) -> u64 {
        self.flow
    }
}

impl<W: Write> Exporter<W> {
    pub(super) fn event(&mut self, event: &Event<'_>, record: &Resolved<'_>) {
        let is_instant = matches!(event.kind, EventKind::Instant { .. });
        let is_odd =
            self.odd.as_ref().is_some_and(|odd| odd.has(event) || is_instant && odd.has_thread(event.thread));
        let is_kept = if is_odd { self.selection.keeps_itself(event) } else { self.selection.keeps(event) };
        let is_undecided = is_odd && OddSlices::depends_on_begin(event.kind);
        if !(is_kept || is_undecided) {
            return;
        }
        self.pass(event.time.nanos().0);
        if let EventKind::Unknown { .. } = event.kind {
            return self.skip("events of unknown type");
        }
        self.events += u64::from(is_kept);
        let names = record.names;
        let mut track = self.thread_track(event.thread, names);
        if is_odd {
            return self.keep_odd(event, names, is_kept);
        }
        let mut part = None;
        match event.kind {
            EventKind::Counter { id } => return self.counter(event, id, record),
            EventKind::AsyncBegin { id } => track = self.operation(event, id, TYPE_SLICE_BEGIN),
            EventKind::AsyncInstant { id } => track = self.operation(event, id, TYPE_INSTANT),
            EventKind::AsyncEnd { id } => track = self.operation(event, id, TYPE_SLICE_END),
            EventKind::FlowBegin { id } | EventKind::FlowStep { id } | EventKind::FlowEnd { id } => {
                part = Some(self.flow_part(event, id, names));
            }
            _ => {}
        }
        let begun = part.as_ref().and_then(|part| part.names.as_deref());
        let (named, keys) = match begun {
            Some(begun) => ((begun.category(), begun.name()), <_>::default()),
            None => ((event.category, event.name), event.keys),
        };
        let flow = part.as_ref().map_or(0, |part| part.number);
        let mut own = Own { interned: &mut self.interned, track, named, keys, flow };
        if let Some(sharing) = &mut self.sharing
            && sharing.event(event, record, &mut own, &mut self.bytes)
        {
            return;
        }
        write(&mut self.bytes, event, &mut own);
    }

    /// The track of an asynchronous operation.
    fn operation(&mut self, event: &Event<'_>, id: u64, kind: i32) -> u64 {
        let new = self.tracks.operation(event, id, kind);
        self.described(new)
    }

    /// The flow that an event is part of. If it ends once more, another arrow begins.
    //= docs/perfetto.md#flows
    pub(super) fn flow_part(&mut self, event: &Event<'_>, id: u64, names: &Names) -> Part {
        let mut part = self.flows.part(event, id);
        if let Some(Begin { thread, time }) = part.again.take() {
            let track = self.thread_track(thread, names);
            let (category, name) = part.named(event);
            if self.odd.as_ref().is_some_and(|odd| odd.has_thread(thread)) {
                let begin = Event { thread, time, arguments: event.arguments.none(), ..*event };
                self.keep_flow(&begin, (category, name), b's', part.number);
                return part;
            }
            self.begin(None, track, category, name);
            Fields(&mut self.event).flow(b's', part.number);
            self.track_event(time.nanos().0);
        }
        part
    }

    /// A sample for each argument that is a number.
    fn counter(&mut self, event: &Event<'_>, id: u64, record: &Resolved<'_>) {
        let group = self.counter_group(event, id);
        let others = event.arguments.iter().filter(|(_, value)| !value.is_number()).count();
        (0..others).for_each(|_| self.skip("counter arguments that are no numbers"));
        if let Some(sharing) = &mut self.sharing {
            let track = |name: Text<'_>, key| self.tracks.known_counter(event, (name, key), id);
            if sharing.samples(event, record, track, &mut self.interned, &mut self.bytes) {
                return;
            }
        }
        for (name, value, [key, _]) in event.arguments.keyed().filter(|(_, value, _)| value.is_number()) {
            let track = match self.tracks.known_counter(event, (name, key), id) {
                Some(track) => track,
                None => {
                    let descriptor = self.tracks.counter(event, name, id, group);
                    self.describe(descriptor)
                }
            };
            let (named, keys) = ((event.category, event.name), event.keys);
            let mut own = Own { interned: &mut self.interned, track, named, keys, flow: 0 };
            sample(&mut self.bytes, event.time.nanos().0, &value, &mut own);
        }
    }

    /// The track that the samples of a counter with several series, or with an id, are below.
    //= docs/perfetto.md#tracks
    fn counter_group(&mut self, event: &Event<'_>, id: u64) -> Option<u64> {
        if id == 0 && event.arguments.len() < 2 {
            return None;
        }
        let new = self.tracks.counter_group(event);
        Some(self.described(new))
    }
}
