//! What the packets of one writer leave out because an earlier one told it.

use crate::perfetto::messages::{
    InternedData, InternedName, ThreadDescriptor, TracePacketDefaults, TrackEvent,
};
use std::collections::HashMap;
use trace_reader::Thread;

pub(super) type Names = HashMap<u64, Box<str>>;

#[derive(Default)]
pub(super) struct Sequence {
    /// It has been told from some beginning.
    pub is_valid: bool,
    pub categories: Names,
    pub names: Names,
    pub argument_names: Names,
    pub argument_texts: Names,
    pub clock: Option<u32>,
    pub track: Option<u64>,
    pub counters: Vec<u64>,
    pub double_counters: Vec<u64>,
    /// Whose events those without a track are.
    pub thread: Option<Thread>,
    /// Microseconds, of the older kind of times.
    time_us: Option<i64>,
    thread_time_us: i64,
    thread_instructions: i64,
    /// Values of counters that are told as differences.
    pub sums: HashMap<u64, i64>,
}

fn intern(names: &mut Names, new: &[InternedName]) {
    for name in new {
        if let (Some(iid), Some(name)) = (name.iid, &name.name) {
            names.insert(iid, name.as_str().into());
        }
    }
}

impl Sequence {
    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self { is_valid: true, ..Self::default() };
    }

    pub fn set_defaults(&mut self, defaults: &TracePacketDefaults) {
        self.clock = defaults.timestamp_clock_id;
        let Some(event) = &defaults.track_event_defaults else { return };
        self.track = event.track_uuid;
        self.counters = event.extra_counter_track_uuids.clone();
        self.double_counters = event.extra_double_counter_track_uuids.clone();
    }

    pub fn intern(&mut self, data: &InternedData) {
        intern(&mut self.categories, &data.event_categories);
        intern(&mut self.names, &data.event_names);
        intern(&mut self.argument_names, &data.debug_annotation_names);
        for text in &data.debug_annotation_string_values {
            if let (Some(iid), Some(text)) = (text.iid, &text.text) {
                self.argument_texts.insert(iid, String::from_utf8_lossy(text).into());
            }
        }
    }

    pub fn set_thread(&mut self, descriptor: &ThreadDescriptor) {
        self.is_valid = true;
        let process = super::koid(descriptor.pid.unwrap_or(0));
        self.thread = Some(Thread { process, thread: super::koid(descriptor.tid.unwrap_or(0) as i32) });
        self.time_us = descriptor.reference_timestamp_us.or(self.time_us);
        self.thread_time_us = descriptor.reference_thread_time_us.unwrap_or(self.thread_time_us);
        self.thread_instructions =
            descriptor.reference_thread_instruction_count.unwrap_or(self.thread_instructions);
    }

    /// The time of an event whose packet has none, in nanoseconds.
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

    /// What the thread has used of its CPU, in nanoseconds, and its instructions.
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
