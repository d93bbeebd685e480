//! State of a writer's packet sequence: values that later packets omit because an earlier one had them.

use crate::export::perfetto::messages::{
    InternedData, InternedName, ThreadDescriptor, TracePacketDefaults, TrackEvent,
};
use crate::import::room::{ENTRY_BYTES, Room};
use foldhash::HashMap;
use std::collections::hash_map::Entry;
use std::mem::size_of;
use trace_format::units::StringIndex;
use trace_linux::cut;
use trace_reader::Thread;

pub(super) type Names = HashMap<u64, Name>;

/// A text, and its index in the archive's table of strings if it is known.
pub(super) struct Name {
    pub text: Box<str>,
    pub index: Option<StringIndex>,
}

/// Sums of differences, by track.
#[derive(Default)]
pub(super) struct Sums(HashMap<u64, i64>);

impl Sums {
    /// The value of a counter after a difference; the difference itself if there is no room for its sum.
    pub fn add(&mut self, room: &mut Room, uuid: u64, difference: i64) -> i64 {
        if let Some(sum) = self.0.get_mut(&uuid) {
            *sum = sum.saturating_add(difference);
            return *sum;
        }
        if room.take(ENTRY_BYTES) {
            self.0.insert(uuid, difference);
        }
        difference
    }
}

#[derive(Default)]
pub(super) struct Sequence {
    /// The sequence is known from some beginning on.
    pub is_valid: bool,
    pub categories: Names,
    pub names: Names,
    pub argument_names: Names,
    pub argument_texts: Names,
    pub clock: Option<u32>,
    pub track: Option<u64>,
    pub counters: Vec<u64>,
    pub double_counters: Vec<u64>,
    /// The thread that owns events without a track.
    pub thread: Option<Thread>,
    /// Microseconds, for the older kind of times.
    time_us: Option<i64>,
    thread_time_us: i64,
    thread_instructions: i64,
    /// Values of counters that are recorded as differences.
    pub sums: Sums,
    /// The part of the room for tables that this sequence takes.
    taken_bytes: usize,
}

/// A sequence, if there is room for it.
pub(super) fn sequence<'a>(
    sequences: &'a mut HashMap<u32, Sequence>,
    room: &mut Room,
    id: u32,
) -> Option<&'a mut Sequence> {
    match sequences.entry(id) {
        Entry::Occupied(known) => Some(known.into_mut()),
        Entry::Vacant(new) => {
            room.take(size_of::<Sequence>() + ENTRY_BYTES).then(|| new.insert(Sequence::default()))
        }
    }
}

/// Reserves room for a text and remembers it, or does neither.
fn intern(names: &mut Names, taken_bytes: &mut usize, room: &mut Room, iid: u64, text: &str) {
    let text = cut(text);
    let bytes = text.len() + ENTRY_BYTES;
    if !room.take(bytes) {
        return;
    }
    *taken_bytes += bytes;
    if let Some(old) = names.insert(iid, Name { text: text.into(), index: None }) {
        room.give_back(old.text.len() + ENTRY_BYTES);
        *taken_bytes -= old.text.len() + ENTRY_BYTES;
    }
}

fn intern_all(names: &mut Names, taken_bytes: &mut usize, room: &mut Room, new: &[InternedName]) {
    for name in new {
        if let (Some(iid), Some(name)) = (name.iid, &name.name) {
            intern(names, taken_bytes, room, iid, name);
        }
    }
}

impl Sequence {
    /// Forgets everything except the thread that owns the events.
    pub fn clear(&mut self, room: &mut Room) {
        room.give_back(self.taken_bytes + self.sums.0.len() * ENTRY_BYTES);
        *self = Self { is_valid: true, thread: self.thread, ..Self::default() };
    }

    /// Packets are missing: later references may be to their definitions.
    pub fn lose(&mut self) {
        self.is_valid = false;
        self.time_us = None;
    }

    pub fn set_defaults(&mut self, room: &mut Room, defaults: &TracePacketDefaults) {
        self.clock = defaults.timestamp_clock_id;
        let Some(event) = &defaults.track_event_defaults else { return };
        self.track = event.track_uuid;
        let old = (self.counters.len() + self.double_counters.len()) * size_of::<u64>();
        room.give_back(old);
        self.taken_bytes -= old;
        let (counters, doubles) = (&event.extra_counter_track_uuids, &event.extra_double_counter_track_uuids);
        let new = (counters.len() + doubles.len()) * size_of::<u64>();
        if room.take(new) {
            self.taken_bytes += new;
            (self.counters, self.double_counters) = (counters.clone(), doubles.clone());
        } else {
            (self.counters, self.double_counters) = (Vec::new(), Vec::new());
        }
    }

    pub fn intern(&mut self, room: &mut Room, data: &InternedData) {
        let taken = &mut self.taken_bytes;
        intern_all(&mut self.categories, taken, room, &data.event_categories);
        intern_all(&mut self.names, taken, room, &data.event_names);
        intern_all(&mut self.argument_names, taken, room, &data.debug_annotation_names);
        for text in &data.debug_annotation_string_values {
            if let (Some(iid), Some(text)) = (text.iid, &text.str) {
                intern(&mut self.argument_texts, taken, room, iid, text);
            }
        }
    }

    pub fn set_thread(&mut self, descriptor: &ThreadDescriptor) {
        let process = super::koid(descriptor.pid.unwrap_or(0));
        self.thread = Some(Thread { process, thread: super::koid(descriptor.tid.unwrap_or(0) as i32) });
        self.time_us = descriptor.reference_timestamp_us.or(self.time_us);
        self.thread_time_us = descriptor.reference_thread_time_us.unwrap_or(self.thread_time_us);
        self.thread_instructions =
            descriptor.reference_thread_instruction_count.unwrap_or(self.thread_instructions);
    }

    /// The older kind of an event's time, in nanoseconds of the monotonic clock.
    pub fn event_time(&mut self, event: &TrackEvent) -> Option<u64> {
        let micros = match (event.timestamp_absolute_us, event.timestamp_delta_us) {
            (Some(absolute), _) => absolute,
            (None, Some(delta)) => {
                let now = self.time_us?.saturating_add(delta);
                self.time_us = Some(now);
                now
            }
            (None, None) => return None,
        };
        u64::try_from(micros).ok()?.checked_mul(1000)
    }

    /// The CPU time that the thread has used, in nanoseconds, and its instructions.
    pub fn thread_counters(&mut self, event: &TrackEvent) -> (Option<i64>, Option<i64>) {
        if let Some(delta) = event.thread_time_delta_us {
            self.thread_time_us = self.thread_time_us.saturating_add(delta);
        }
        if let Some(delta) = event.thread_instruction_count_delta {
            self.thread_instructions = self.thread_instructions.saturating_add(delta);
        }
        let time = event.thread_time_delta_us.map(|_| self.thread_time_us);
        let instructions = event.thread_instruction_count_delta.map(|_| self.thread_instructions);
        let micros = event.thread_time_absolute_us.or(time);
        (
            micros.map(|micros| micros.saturating_mul(1000)),
            event.thread_instruction_count_absolute.or(instructions),
        )
    }
}
