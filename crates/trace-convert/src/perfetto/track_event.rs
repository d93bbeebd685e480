//! Track events, encoded directly: a tree of messages for each would cost more than the rest of the
//! conversion.
//!
//! Numbers of fields are those of [`TrackEvent`](super::messages::TrackEvent), which the tests decode what is
//! written here as.
//= docs/perfetto.md#events

use prost::encoding::encoded_len_varint;
use trace_reader::Value;

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const LENGTH_DELIMITED: u8 = 2;

/// The key of a field below 16.
const fn key(field: u8, wire: u8) -> u8 {
    field << 3 | wire
}

/// Fields of one message.
#[derive(Default)]
pub(super) struct Fields {
    bytes: Vec<u8>,
}

impl Fields {
    #[inline]
    fn varint(&mut self, field: u8, value: u64) {
        self.bytes.push(key(field, VARINT));
        varint(&mut self.bytes, value);
    }

    /// A field from 16 on.
    fn far_varint(&mut self, field: u32, value: u64) {
        varint(&mut self.bytes, u64::from(field << 3 | u32::from(VARINT)));
        varint(&mut self.bytes, value);
    }

    fn message(&mut self, field: u8, message: &Self) {
        self.bytes.push(key(field, LENGTH_DELIMITED));
        varint(&mut self.bytes, message.bytes.len() as u64);
        self.bytes.extend_from_slice(&message.bytes);
    }

    fn text(&mut self, field: u8, text: &str) {
        self.bytes.push(key(field, LENGTH_DELIMITED));
        varint(&mut self.bytes, text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// Most bytes of a varint.
const VARINT_BYTES: usize = 10;

#[inline]
fn varint(bytes: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        return bytes.push(value as u8);
    }
    let mut room = [0; VARINT_BYTES];
    let (mut length, mut rest) = (0, value);
    for byte in &mut room {
        length += 1;
        if rest < 0x80 {
            *byte = rest as u8;
            break;
        }
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    // Constant length is faster.
    bytes.extend_from_slice(&room);
    bytes.truncate(bytes.len() - (VARINT_BYTES - length));
}

/// Encodes one event after the other.
#[derive(Default)]
pub(super) struct Encoder {
    event: Fields,
    inner: Fields,
}

impl Encoder {
    pub fn begin(&mut self, kind: Option<i32>, track: u64) {
        self.event.bytes.clear();
        if let Some(kind) = kind {
            self.event.varint(9, kind as u64);
        }
        self.event.varint(11, track);
    }

    pub fn named(&mut self, category: u64, name: u64) {
        self.event.varint(3, category);
        self.event.varint(10, name);
    }

    /// An argument.
    //= docs/perfetto.md#arguments
    pub fn annotation(&mut self, name: u64, value: &Value<'_>, base64: impl Fn(&[u8]) -> String) {
        let inner = &mut self.inner;
        inner.bytes.clear();
        inner.varint(1, name);
        match value {
            Value::Bool(value) => inner.varint(2, u64::from(*value)),
            Value::Int32(value) => inner.varint(4, i64::from(*value) as u64),
            Value::Int64(value) => inner.varint(4, *value as u64),
            Value::Uint32(value) => inner.varint(3, u64::from(*value)),
            Value::Uint64(value) => inner.varint(3, *value),
            Value::Double(value) => {
                inner.bytes.push(key(5, FIXED_64));
                inner.bytes.extend_from_slice(&value.to_le_bytes());
            }
            Value::String(value) => inner.text(6, &value.to_str()),
            Value::Pointer(value) => inner.varint(7, *value),
            Value::Koid(koid) => inner.varint(3, koid.0),
            Value::Blob(bytes) => inner.text(6, &base64(bytes)),
            Value::Null | Value::Unknown => inner.text(6, "null"),
        }
        self.event.message(4, &self.inner);
    }

    /// An older event of a phase, with its length in microseconds.
    pub fn complete(&mut self, micros: u64) {
        self.inner.bytes.clear();
        self.inner.varint(2, u64::from(b'X'));
        self.inner.varint(3, micros);
        self.event.message(6, &self.inner);
    }

    /// The same for a part of a flow.
    pub fn flow(&mut self, phase: u8, id: u64) {
        self.inner.bytes.clear();
        self.inner.varint(2, u64::from(phase));
        self.inner.varint(6, id);
        if phase == b'f' {
            self.inner.varint(12, 1);
        }
        self.event.message(6, &self.inner);
    }

    pub fn count(&mut self, value: i64) {
        self.event.far_varint(30, value as u64);
    }

    pub fn count_double(&mut self, value: f64) {
        varint(&mut self.event.bytes, u64::from(44_u32 << 3 | u32::from(FIXED_64)));
        self.event.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// The event as it is encoded so far.
    pub fn event(&self) -> &[u8] {
        &self.event.bytes
    }
}

/// The contents of a packet besides its time: an event and its interned data, both encoded already.
pub(super) struct Packet<'a> {
    pub sequence: u32,
    pub flags: u32,
    pub event: &'a [u8],
    pub interned: &'a [u8],
}

impl Packet<'_> {
    /// Writes the packet of an event with this time.
    pub fn write(&self, output: &mut Vec<u8>, timestamp: u64) {
        let Self { sequence, flags, event, interned } = *self;
        let embedded = |bytes: &[u8]| 1 + encoded_len_varint(bytes.len() as u64) + bytes.len();
        let length = 1
            + encoded_len_varint(timestamp)
            + 1
            + encoded_len_varint(sequence.into())
            + embedded(event)
            + if interned.is_empty() { 0 } else { embedded(interned) }
            + 1
            + encoded_len_varint(flags.into());
        output.push(super::PACKET_TAG);
        varint(output, length as u64);
        output.push(key(8, VARINT));
        varint(output, timestamp);
        output.push(key(10, VARINT));
        varint(output, sequence.into());
        output.push(key(11, LENGTH_DELIMITED));
        varint(output, event.len() as u64);
        output.extend_from_slice(event);
        if !interned.is_empty() {
            output.push(key(12, LENGTH_DELIMITED));
            varint(output, interned.len() as u64);
            output.extend_from_slice(interned);
        }
        output.push(key(13, VARINT));
        varint(output, flags.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_those_of_prost() {
        let edges = (0..64).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, (1 << bits) + 1]);
        for value in edges.chain([u64::MAX]) {
            let (mut own, mut expected) = (vec![7], vec![7]);
            varint(&mut own, value);
            prost::encoding::encode_varint(value, &mut expected);
            assert_eq!(own, expected, "{value}");
        }
    }
}
