//! Track events and their packets, encoded directly: a tree of messages for each would cost more than the
//! rest of the conversion.
//!
//! A message is written behind one byte of room for its length, which nearly all fit in; a longer one is
//! moved. Numbers of fields are those of [`TrackEvent`](super::messages::TrackEvent), which the tests decode
//! what is written here as.
//= docs/perfetto.md#events

use super::messages::{
    SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE, TYPE_COUNTER, TYPE_INSTANT, TYPE_SLICE_BEGIN,
    TYPE_SLICE_END,
};
use super::{PACKET, SEQUENCE};
use crate::output::Output;
use trace_format::event::EventKind;
use trace_model::has_whole_slices;
use trace_reader::{Event, Text, TextKey, Time, Value};

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const LENGTH_DELIMITED: u8 = 2;

/// The key of a field below 16.
pub(super) const fn key(field: u8, wire: u8) -> u8 {
    field << 3 | wire
}

pub(super) const fn message_key(field: u8) -> u8 {
    key(field, LENGTH_DELIMITED)
}

/// A text of fewer bytes is written at once.
const SHORT_TEXT: usize = 0x7a;
/// Most bytes of a varint.
const VARINT_BYTES: usize = 10;
/// Most bits of one that has eight bytes.
const EIGHT_BYTES_BITS: u32 = 8 * 7;

/// A varint of up to eight bytes, and its length.
#[inline]
const fn spread(value: u64) -> ([u8; 8], usize) {
    // Groups of 28 bits, of 14, of 7.
    let halves = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let quarters = halves & 0x0000_3fff_0000_3fff | (halves & 0x0fff_c000_0fff_c000) << 2;
    let groups = quarters & 0x007f_007f_007f_007f | (quarters & 0x3f80_3f80_3f80_3f80) << 1;
    let last = (63 - (groups | 1).leading_zeros()) / 8;
    let more = 0x8080_8080_8080_8080 & ((1 << (8 * last)) - 1);
    ((groups | more).to_le_bytes(), last as usize + 1)
}

/// The fields of Protobuf's messages.
impl Output {
    #[inline]
    pub(super) fn varint(&mut self, value: u64) {
        match value {
            0..0x80 => self.piece([value as u8], 1),
            _ if value >> EIGHT_BYTES_BITS == 0 => {
                let (bytes, length) = spread(value);
                self.piece(bytes, length);
            }
            _ => self.long_varint(value),
        }
    }

    #[cold]
    fn long_varint(&mut self, value: u64) {
        let (mut bytes, mut length, mut rest) = ([0; VARINT_BYTES], 0, value);
        for byte in &mut bytes {
            length += 1;
            *byte = rest as u8 | 0x80;
            rest >>= 7;
            if rest == 0 {
                *byte &= 0x7f;
                break;
            }
        }
        self.piece(bytes, length);
    }

    #[inline]
    pub(super) fn varint_field(&mut self, field: u8, value: u64) {
        let key = key(field, VARINT);
        if value < 0x80 {
            return self.piece([key, value as u8], 2);
        }
        self.piece([key], 1);
        self.varint(value);
    }

    /// A field of at least 16.
    #[inline]
    fn far_key(&mut self, field: u32, wire: u8) {
        self.varint(u64::from(field << 3 | u32::from(wire)));
    }

    #[inline]
    pub(super) fn bytes_field(&mut self, field: u8, bytes: &[u8]) {
        self.piece([message_key(field)], 1);
        self.varint(bytes.len() as u64);
        self.slice(bytes);
    }

    /// Closes a message that begins at a place, with one byte for its length in front of it.
    #[inline]
    pub(super) fn close(&mut self, start: usize) {
        let length = self.len() - start;
        match length {
            0..0x80 => self.set(start - 1, length as u8),
            _ => self.close_long(start),
        }
    }

    #[inline(never)]
    fn close_long(&mut self, start: usize) {
        let (bytes, length) = spread((self.len() - start) as u64);
        self.insert(start, length - 1);
        for (at, byte) in (start - 1..).zip(bytes.into_iter().take(length)) {
            self.set(at, byte);
        }
    }

    /// Opens a message, and returns where it begins.
    #[inline]
    pub(super) fn open(&mut self, key: u8) -> usize {
        self.piece([key, 0], 2);
        self.len()
    }
}

/// The fields of an event, at the end of some bytes.
pub(super) struct Fields<'a>(pub &'a mut Output);

impl Fields<'_> {
    #[inline]
    pub fn begin(&mut self, kind: Option<i32>, track: u64) {
        if let Some(kind) = kind {
            self.0.piece([key(9, VARINT), kind as u8], 2);
        }
        self.0.varint_field(11, track);
    }

    #[inline]
    pub fn named(&mut self, category: u64, name: u64) {
        if category.max(name) < 0x80 {
            return self.0.piece([key(3, VARINT), category as u8, key(10, VARINT), name as u8], 4);
        }
        self.0.varint_field(3, category);
        self.0.varint_field(10, name);
    }

    /// An argument.
    //= docs/perfetto.md#arguments
    #[inline]
    pub fn annotation(&mut self, name: u64, value: &Value<'_>) {
        if name >= 0x80 {
            return self.any_annotation(name, value);
        }
        // Nearly all are of these types, and short.
        let (field, number) = match value {
            Value::Int32(value) => (4, i64::from(*value) as u64),
            Value::Int64(value) => (4, *value as u64),
            Value::Uint32(value) => (3, u64::from(*value)),
            Value::Uint64(value) => (3, *value),
            Value::String(text) if text.as_bytes().len() < SHORT_TEXT => return self.short_text(name, *text),
            _ => return self.any_annotation(name, value),
        };
        if number >> EIGHT_BYTES_BITS != 0 {
            return self.any_annotation(name, value);
        }
        let ([a, b, c, d, e, f, g, h], length) = spread(number);
        let (length, keys) = (length + 3, [message_key(4), key(1, VARINT), key(field, VARINT)]);
        let [message, named, valued] = keys;
        let name = name as u8;
        self.0.piece([message, length as u8, named, name, valued, a, b, c, d, e, f, g, h], length + 2);
    }

    /// One with a text whose length and message's have one byte.
    #[inline]
    fn short_text(&mut self, name: u64, text: Text<'_>) {
        let text = text.to_str();
        let bytes = text.as_bytes();
        let Ok(length @ 0..0x7a) = u8::try_from(bytes.len()) else {
            return self.any_annotation(name, &Value::String(Text(bytes)));
        };
        let head = [message_key(4), length + 4, key(1, VARINT), name as u8, message_key(6), length];
        self.0.piece(head, 6);
        self.0.slice(bytes);
    }

    #[inline(never)]
    fn any_annotation(&mut self, name: u64, value: &Value<'_>) {
        let start = self.0.open(message_key(4));
        self.0.varint_field(1, name);
        self.value(value);
        self.0.close(start);
    }

    /// An argument whose name is written out.
    pub fn spelled_annotation(&mut self, name: Text<'_>, value: &Value<'_>) {
        let start = self.0.open(message_key(4));
        self.0.bytes_field(10, name.to_str().as_bytes());
        self.value(value);
        self.0.close(start);
    }

    /// Category and name, written out.
    pub fn spelled(&mut self, category: Text<'_>, name: Text<'_>) {
        for (field, text) in [(22, category), (23, name)] {
            self.0.far_key(field, LENGTH_DELIMITED);
            let text = text.to_str();
            self.0.varint(text.len() as u64);
            self.0.slice(text.as_bytes());
        }
    }

    fn value(&mut self, value: &Value<'_>) {
        let output = &mut *self.0;
        match value {
            Value::Bool(value) => output.varint_field(2, u64::from(*value)),
            Value::Int32(value) => output.varint_field(4, i64::from(*value) as u64),
            Value::Int64(value) => output.varint_field(4, *value as u64),
            Value::Uint32(value) => output.varint_field(3, u64::from(*value)),
            Value::Uint64(value) => output.varint_field(3, *value),
            Value::Double(value) => {
                output.piece([key(5, FIXED_64)], 1);
                output.piece(value.to_le_bytes(), 8);
            }
            Value::String(value) => output.bytes_field(6, value.to_str().as_bytes()),
            Value::Pointer(value) => output.varint_field(7, *value),
            Value::Koid(koid) => output.varint_field(3, koid.0),
            Value::Blob(bytes) => {
                output.piece([message_key(6)], 1);
                output.varint(Output::base64_length(bytes) as u64);
                output.base64(bytes);
            }
            Value::Null | Value::Unknown => output.bytes_field(6, b"null"),
        }
    }

    /// An older event of a phase, with its length in microseconds.
    fn complete(&mut self, micros: u64) {
        let start = self.0.open(message_key(6));
        self.0.varint_field(2, u64::from(b'X'));
        self.0.varint_field(3, micros);
        self.0.close(start);
    }

    /// The same for a part of a flow.
    pub fn flow(&mut self, phase: u8, id: u64) {
        let start = self.0.open(message_key(6));
        self.0.varint_field(2, u64::from(phase));
        self.0.varint_field(6, id);
        if phase == b'f' {
            self.0.varint_field(12, 1);
        }
        self.0.close(start);
    }

    /// A sample of a counter, if the value is a number.
    fn sample(&mut self, value: &Value<'_>) {
        if let Some(whole) = value.integer() {
            self.0.far_key(30, VARINT);
            self.0.varint(whole as u64);
        } else if let Some(double) = value.number() {
            self.0.far_key(44, FIXED_64);
            self.0.piece(double.to_le_bytes(), 8);
        }
    }
}

/// Flags of a packet that refers to interned data; the first such one has the reader forget what it knows.
#[inline]
pub(super) const fn flags(is_fresh: bool) -> u32 {
    SEQ_NEEDS_INCREMENTAL_STATE | if is_fresh { SEQ_INCREMENTAL_STATE_CLEARED } else { 0 }
}

/// Ends packets.
pub(super) trait End {
    /// With interned data that the packet is the first to need, if there is any. Returns its flags.
    fn end(&mut self, output: &mut Output) -> u32;
}

/// What the packets of an event contain besides its record.
pub(super) trait Known: End {
    /// The track; of a counter, that of the next series.
    fn track(&mut self) -> u64;
    /// Numbers of the category and of the name.
    fn named(&mut self) -> (u64, u64);
    /// The number of the next argument's name.
    fn argument(&mut self, name: Text<'_>, key: TextKey) -> u64;
    /// The number of the flow.
    fn flow(&mut self) -> u64;
}

/// Writes a packet with an event.
#[inline]
pub(super) fn packet<K: End>(
    output: &mut Output,
    timestamp: u64,
    end: &mut K,
    fields: impl FnOnce(Fields<'_>, &mut K),
) {
    let packet = output.len() + 2;
    if timestamp >> EIGHT_BYTES_BITS == 0 {
        let ([a, b, c, d, e, f, g, h], length) = spread(timestamp);
        output.piece([message_key(PACKET), 0, key(8, VARINT), a, b, c, d, e, f, g, h], length + 3);
    } else {
        output.open(message_key(PACKET));
        output.varint_field(8, timestamp);
    }
    output.piece([key(10, VARINT), SEQUENCE, message_key(11), 0], 4);
    let event = output.len();
    fields(Fields(output), end);
    output.close(event);
    let flags = end.end(output);
    output.piece([key(13, VARINT), flags as u8], 2);
    output.close(packet);
}

/// The phase of a part of a flow.
pub(super) const fn flow_phase(kind: EventKind) -> u8 {
    match kind {
        EventKind::FlowBegin { .. } => b's',
        EventKind::FlowStep { .. } => b't',
        _ => b'f',
    }
}

/// Writes the packets of an event.
#[inline]
pub(super) fn write<K: Known>(output: &mut Output, event: &Event<'_>, known: &mut K) {
    let at = event.time.nanos().0;
    let mut until = None;
    let (mut micros, mut phase) = (None, None);
    let kind = match event.kind {
        EventKind::DurationBegin | EventKind::AsyncBegin { .. } => Some(TYPE_SLICE_BEGIN),
        EventKind::DurationEnd | EventKind::AsyncEnd { .. } => Some(TYPE_SLICE_END),
        EventKind::Instant { .. } | EventKind::AsyncInstant { .. } => Some(TYPE_INSTANT),
        EventKind::DurationComplete { end } => {
            let end = Time { ticks: end, ..event.time }.nanos().0.max(at);
            // Whole microseconds have a more compact event. One without length would stay open.
            let is_whole = has_whole_slices(event.time) && end > at && (end - at).is_multiple_of(1000);
            (micros, until) = if is_whole { (Some((end - at) / 1000), None) } else { (None, Some(end)) };
            (!is_whole).then_some(TYPE_SLICE_BEGIN)
        }
        EventKind::FlowBegin { .. } | EventKind::FlowStep { .. } | EventKind::FlowEnd { .. } => {
            phase = Some(flow_phase(event.kind));
            None
        }
        EventKind::Counter { .. } => {
            // A sample for each argument that is a number.
            let values = event.arguments.iter().filter(|(_, value)| value.is_number());
            return values.for_each(|(_, value)| sample(output, at, &value, known));
        }
        EventKind::Unknown { .. } => return,
    };
    let track = known.track();
    packet(output, at, known, |mut fields, known| {
        fields.begin(kind, track);
        // An end without a name ends the innermost slice.
        if kind != Some(TYPE_SLICE_END) {
            let (category, name) = known.named();
            fields.named(category, name);
        }
        for (name, value, [key, _]) in event.arguments.keyed() {
            let name = known.argument(name, key);
            fields.annotation(name, &value);
        }
        if let Some(micros) = micros {
            fields.complete(micros);
        }
        if let Some(phase) = phase {
            let number = known.flow();
            fields.flow(phase, number);
        }
    });
    if let Some(end) = until {
        packet(output, end, known, |mut fields, _| fields.begin(Some(TYPE_SLICE_END), track));
    }
}

/// A sample of a series.
pub(super) fn sample<K: Known>(output: &mut Output, at: u64, value: &Value<'_>, known: &mut K) {
    let track = known.track();
    packet(output, at, known, |mut fields, _| {
        fields.begin(Some(TYPE_COUNTER), track);
        fields.sample(value);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_those_of_prost() {
        let edges = (0..64).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        for value in edges.chain([u64::MAX]) {
            let (mut own, mut expected) = (Output::default(), vec![7]);
            own.piece([7], 1);
            own.varint(value);
            prost::encoding::encode_varint(value, &mut expected);
            assert_eq!(own.bytes(), expected, "{value}");
        }
    }

    #[test]
    fn messages_have_the_shortest_lengths() {
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 100_000, 2_097_152] {
            let text = vec![b'x'; length];
            let mut own = Output::default();
            own.piece(*b"before", 6);
            let start = own.open(message_key(1));
            own.slice(&text);
            own.close(start);
            let mut expected = b"before".to_vec();
            prost::encoding::bytes::encode(1, &text, &mut expected);
            assert_eq!(own.bytes(), expected, "{length}");
        }
    }
}
