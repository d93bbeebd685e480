//! Fast decoder of usual packets: a track event with its time and sequence, and nothing else.
//!
//! All other packets, and all that are malformed, are left to the library's decoder.

use crate::export::perfetto::messages::{DebugAnnotation, TracePacket};
use trace_format::argument::ArgumentValue;
use trace_format::refs::StringRef;

/// Keys: a field's number and its form on the wire.
mod key {
    const VARINT: u64 = 0;
    const FIXED_64: u64 = 1;
    const BYTES: u64 = 2;

    pub const TIMESTAMP: u64 = 8 << 3 | VARINT;
    pub const SEQUENCE: u64 = 10 << 3 | VARINT;
    pub const TRACK_EVENT: u64 = 11 << 3 | BYTES;
    pub const FLAGS: u64 = 13 << 3 | VARINT;
    pub const CLOCK: u64 = 58 << 3 | VARINT;

    pub const CATEGORY: u64 = 3 << 3 | VARINT;
    pub const ANNOTATION: u64 = 4 << 3 | BYTES;
    pub const KIND: u64 = 9 << 3 | VARINT;
    pub const NAME: u64 = 10 << 3 | VARINT;
    pub const TRACK: u64 = 11 << 3 | VARINT;
    pub const COUNTER_VALUE: u64 = 30 << 3 | VARINT;
    pub const DOUBLE_COUNTER_VALUE: u64 = 44 << 3 | FIXED_64;
    pub const FLOW: u64 = 47 << 3 | FIXED_64;
    pub const TERMINATING_FLOW: u64 = 48 << 3 | FIXED_64;

    pub const ARGUMENT_NAME: u64 = 1 << 3 | VARINT;
    pub const BOOL: u64 = 2 << 3 | VARINT;
    pub const UINT: u64 = 3 << 3 | VARINT;
    pub const INT: u64 = 4 << 3 | VARINT;
    pub const DOUBLE: u64 = 5 << 3 | FIXED_64;
    pub const STRING: u64 = 6 << 3 | BYTES;
}

const MAX_VARINT_BYTES: usize = 10;
/// Larger packets are not usual.
const MAX_BYTES: usize = 4096;

/// The bit in each of eight bytes that says that the number goes on.
const CONTINUED: u64 = 0x8080_8080_8080_8080;

/// The number whose parts of seven bits are in eight bytes, the lowest first.
#[inline]
const fn joined(bytes: u64) -> u64 {
    let bytes = bytes & !CONTINUED;
    let pairs = bytes & 0x007f_007f_007f_007f | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4
}

/// Bytes of a message that were not decoded yet.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    /// A number of 64 bits.
    #[inline]
    fn varint(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        if *first < 0x80 {
            self.0 = rest;
            return Some(u64::from(*first));
        }
        if let Some(eight) = self.0.first_chunk() {
            let eight = u64::from_le_bytes(*eight);
            let ends = !eight & CONTINUED;
            if ends != 0 {
                let bytes = ends.trailing_zeros() / 8 + 1;
                self.0 = self.0.get(bytes as usize..)?;
                return Some(joined(eight & u64::MAX >> (64 - 8 * bytes)));
            }
        }
        self.long_varint()
    }

    /// One of more than eight bytes, or near the end.
    fn long_varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for (place, byte) in self.0.iter().take(MAX_VARINT_BYTES).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * place);
            // The last one has the highest bit.
            if place == MAX_VARINT_BYTES - 1 && *byte > 1 {
                return None;
            }
            if *byte < 0x80 {
                self.0 = self.0.get(place + 1..)?;
                return Some(value);
            }
        }
        None
    }

    #[inline]
    fn fixed(&mut self) -> Option<u64> {
        let (eight, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*eight))
    }

    #[inline]
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// The next key; none at the end.
    #[inline]
    fn key(&mut self) -> Option<Option<u64>> {
        if self.0.is_empty() { Some(None) } else { self.varint().map(Some) }
    }
}

/// A part of a list.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    start: u32,
    end: u32,
}

impl Part {
    /// What was added to a list since it had so many entries.
    fn since(start: usize, end: usize) -> Self {
        // A batch has far fewer.
        Self { start: start as u32, end: end as u32 }
    }

    fn of<T>(self, list: &[T]) -> &[T] {
        list.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The value of an argument. Of several values, the first kind of these counts.
#[derive(Clone, Copy, Debug)]
enum Value {
    Bool(bool),
    Uint(u64),
    Int(i64),
    Double(f64),
    Text(Part),
    Missing,
}

impl Value {
    const fn rank(self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Uint(_) => 1,
            Self::Int(_) => 2,
            Self::Double(_) => 3,
            Self::Text(_) => 4,
            Self::Missing => 5,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct UsualArgument {
    name: Option<u64>,
    value: Value,
}

/// A usual packet without its lists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UsualPacket {
    pub timestamp: Option<u64>,
    pub sequence: Option<u32>,
    pub flags: Option<u32>,
    pub clock: Option<u32>,
    pub kind: Option<i32>,
    pub name: Option<u64>,
    pub track: Option<u64>,
    pub counter_value: Option<i64>,
    pub double_counter_value: Option<f64>,
    categories: Part,
    flows: Part,
    terminating_flows: Part,
    arguments: Part,
}

/// The lists of usual packets, each with those of one packet after those of another.
#[derive(Debug, Default)]
pub(super) struct UsualPackets {
    packets: Vec<UsualPacket>,
    categories: Vec<u64>,
    flows: Vec<u64>,
    terminating_flows: Vec<u64>,
    arguments: Vec<UsualArgument>,
    texts: String,
}

/// How long the lists are.
#[derive(Clone, Copy)]
struct Lengths {
    categories: usize,
    flows: usize,
    terminating_flows: usize,
    arguments: usize,
    texts: usize,
}

impl UsualPackets {
    /// Adds a packet; false if it is not a usual one.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > MAX_BYTES {
            return false;
        }
        let before = self.lengths();
        let mut packet = UsualPacket::default();
        if self.packet(bytes, &mut packet).is_none() {
            self.truncate(before);
            return false;
        }
        let after = self.lengths();
        packet.categories = Part::since(before.categories, after.categories);
        packet.flows = Part::since(before.flows, after.flows);
        packet.terminating_flows = Part::since(before.terminating_flows, after.terminating_flows);
        packet.arguments = Part::since(before.arguments, after.arguments);
        self.packets.push(packet);
        true
    }

    pub fn clear(&mut self) {
        self.packets.clear();
        self.truncate(Lengths { categories: 0, flows: 0, terminating_flows: 0, arguments: 0, texts: 0 });
    }

    pub fn iter(&self) -> impl Iterator<Item = Usual<'_>> {
        self.packets.iter().map(|packet| Usual { packet, lists: self })
    }

    fn lengths(&self) -> Lengths {
        Lengths {
            categories: self.categories.len(),
            flows: self.flows.len(),
            terminating_flows: self.terminating_flows.len(),
            arguments: self.arguments.len(),
            texts: self.texts.len(),
        }
    }

    fn truncate(&mut self, lengths: Lengths) {
        self.categories.truncate(lengths.categories);
        self.flows.truncate(lengths.flows);
        self.terminating_flows.truncate(lengths.terminating_flows);
        self.arguments.truncate(lengths.arguments);
        self.texts.truncate(lengths.texts);
    }

    fn packet(&mut self, bytes: &[u8], packet: &mut UsualPacket) -> Option<()> {
        let mut has_event = false;
        let mut wire = Wire(bytes);
        while let Some(key) = wire.key()? {
            match key {
                key::TIMESTAMP => packet.timestamp = Some(wire.varint()?),
                key::SEQUENCE => packet.sequence = Some(wire.varint()? as u32),
                key::FLAGS => packet.flags = Some(wire.varint()? as u32),
                key::CLOCK => packet.clock = Some(wire.varint()? as u32),
                // A second one would be merged with the first.
                key::TRACK_EVENT if !has_event => {
                    has_event = true;
                    self.track_event(Wire(wire.bytes()?), packet)?;
                }
                _ => return None,
            }
        }
        has_event.then_some(())
    }

    fn track_event(&mut self, mut wire: Wire<'_>, packet: &mut UsualPacket) -> Option<()> {
        while let Some(key) = wire.key()? {
            match key {
                key::CATEGORY => self.categories.push(wire.varint()?),
                key::KIND => packet.kind = Some(wire.varint()? as i32),
                key::NAME => packet.name = Some(wire.varint()?),
                key::TRACK => packet.track = Some(wire.varint()?),
                key::COUNTER_VALUE => packet.counter_value = Some(wire.varint()? as i64),
                key::DOUBLE_COUNTER_VALUE => {
                    packet.double_counter_value = Some(f64::from_bits(wire.fixed()?));
                }
                key::FLOW => self.flows.push(wire.fixed()?),
                key::TERMINATING_FLOW => self.terminating_flows.push(wire.fixed()?),
                key::ANNOTATION => self.argument(Wire(wire.bytes()?))?,
                _ => return None,
            }
        }
        Some(())
    }

    fn argument(&mut self, mut wire: Wire<'_>) -> Option<()> {
        let mut argument = UsualArgument { name: None, value: Value::Missing };
        while let Some(key) = wire.key()? {
            let value = match key {
                key::ARGUMENT_NAME => {
                    argument.name = Some(wire.varint()?);
                    continue;
                }
                key::BOOL => Value::Bool(wire.varint()? != 0),
                key::UINT => Value::Uint(wire.varint()?),
                key::INT => Value::Int(wire.varint()? as i64),
                key::DOUBLE => Value::Double(f64::from_bits(wire.fixed()?)),
                key::STRING => {
                    let text = std::str::from_utf8(wire.bytes()?).ok()?;
                    let start = self.texts.len();
                    self.texts.push_str(text);
                    Value::Text(Part::since(start, self.texts.len()))
                }
                _ => return None,
            };
            if value.rank() <= argument.value.rank() {
                argument.value = value;
            }
        }
        self.arguments.push(argument);
        Some(())
    }
}

/// A usual packet with its lists.
#[derive(Clone, Copy)]
pub(super) struct Usual<'a> {
    pub packet: &'a UsualPacket,
    lists: &'a UsualPackets,
}

impl<'a> Usual<'a> {
    pub fn categories(self) -> &'a [u64] {
        self.packet.categories.of(&self.lists.categories)
    }

    pub fn flows(self) -> &'a [u64] {
        self.packet.flows.of(&self.lists.flows)
    }

    pub fn terminating_flows(self) -> &'a [u64] {
        self.packet.terminating_flows.of(&self.lists.terminating_flows)
    }

    pub fn argument_count(self) -> usize {
        self.packet.arguments.of(&self.lists.arguments).len()
    }

    /// The number of each argument's name, and its value, whose text is still to be put into a table.
    pub fn arguments(self) -> impl Iterator<Item = (Option<u64>, ArgumentValue<'a>)> {
        let texts = &self.lists.texts;
        self.packet.arguments.of(&self.lists.arguments).iter().map(move |argument| {
            let value = match argument.value {
                Value::Bool(value) => ArgumentValue::Bool(value),
                Value::Uint(value) => ArgumentValue::Uint64(value),
                Value::Int(value) => ArgumentValue::Int64(value),
                Value::Double(value) => ArgumentValue::Double(value),
                Value::Text(text) => ArgumentValue::String(StringRef::Inline(text.of(texts.as_bytes()))),
                Value::Missing => ArgumentValue::Null,
            };
            (argument.name, value)
        })
    }

    /// Makes the library's message of it; the message has only ever been made here, and its memory is used
    /// again.
    pub fn fill(self, message: &mut TracePacket) {
        let packet = self.packet;
        (message.timestamp, message.trusted_packet_sequence_id) = (packet.timestamp, packet.sequence);
        (message.sequence_flags, message.timestamp_clock_id) = (packet.flags, packet.clock);
        let event = message.track_event.get_or_insert_default();
        (event.kind, event.name_iid, event.track_uuid) = (packet.kind, packet.name, packet.track);
        (event.counter_value, event.double_counter_value) =
            (packet.counter_value, packet.double_counter_value);
        for (list, own) in [
            (&mut event.category_iids, self.categories()),
            (&mut event.flow_ids, self.flows()),
            (&mut event.terminating_flow_ids, self.terminating_flows()),
        ] {
            list.clear();
            list.extend_from_slice(own);
        }
        event.debug_annotations.clear();
        event.debug_annotations.extend(self.packet.arguments.of(&self.lists.arguments).iter().map(
            |argument| {
                let mut annotation =
                    DebugAnnotation { name_iid: argument.name, ..DebugAnnotation::default() };
                match argument.value {
                    Value::Bool(value) => annotation.bool_value = Some(value),
                    Value::Uint(value) => annotation.uint_value = Some(value),
                    Value::Int(value) => annotation.int_value = Some(value),
                    Value::Double(value) => annotation.double_value = Some(value),
                    Value::Text(Part { start, end }) => {
                        let text = self.lists.texts.get(start as usize..end as usize);
                        annotation.string_value = text.map(str::to_owned);
                    }
                    Value::Missing => {}
                }
                annotation
            },
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::perfetto::messages::TrackEvent;
    use proptest::prelude::*;
    use prost::Message;

    fn annotation() -> impl Strategy<Value = DebugAnnotation> {
        let numbers = any::<(Option<u64>, Option<bool>, Option<u64>, Option<i64>)>();
        let texts = prop_oneof![Just(None), ".{0,12}".prop_map(Some)];
        (numbers, prop::option::of(-1e9..1e9), texts).prop_map(|(numbers, double_value, string_value)| {
            let (name_iid, bool_value, uint_value, int_value) = numbers;
            let mut annotation = DebugAnnotation::default();
            (annotation.name_iid, annotation.bool_value) = (name_iid, bool_value);
            (annotation.uint_value, annotation.int_value) = (uint_value, int_value);
            (annotation.double_value, annotation.string_value) = (double_value, string_value);
            annotation
        })
    }

    fn usual_packet() -> impl Strategy<Value = TracePacket> {
        let of_packet = any::<(Option<u64>, Option<u32>, Option<u32>, Option<u32>)>();
        let of_event = any::<(Option<i32>, Option<u64>, Option<u64>, Option<i64>)>();
        let lists = any::<[Vec<u64>; 3]>();
        let annotations = prop::collection::vec(annotation(), 0..4);
        (of_packet, of_event, lists, prop::option::of(-1e9..1e9), annotations).prop_map(
            |(of_packet, of_event, lists, double_counter_value, debug_annotations)| {
                let (kind, name_iid, track_uuid, counter_value) = of_event;
                let [category_iids, flow_ids, terminating_flow_ids] = lists;
                let mut event = TrackEvent::default();
                (event.kind, event.name_iid, event.track_uuid) = (kind, name_iid, track_uuid);
                (event.counter_value, event.double_counter_value) = (counter_value, double_counter_value);
                (event.category_iids, event.flow_ids) = (category_iids, flow_ids);
                (event.terminating_flow_ids, event.debug_annotations) =
                    (terminating_flow_ids, debug_annotations);
                let mut packet = TracePacket { track_event: Some(event), ..TracePacket::default() };
                (packet.timestamp, packet.trusted_packet_sequence_id) = (of_packet.0, of_packet.1);
                (packet.sequence_flags, packet.timestamp_clock_id) = (of_packet.2, of_packet.3);
                packet
            },
        )
    }

    /// A packet as it is decoded here, if it is usual.
    fn decoded(bytes: &[u8]) -> Option<TracePacket> {
        let mut usual = UsualPackets::default();
        usual.push(bytes).then(|| {
            let mut message = TracePacket::default();
            usual.iter().for_each(|packet| packet.fill(&mut message));
            message
        })
    }

    /// The same packet with one value for each argument: the one that counts.
    fn with_one_value(mut packet: TracePacket) -> TracePacket {
        for annotation in packet.track_event.iter_mut().flat_map(|event| &mut event.debug_annotations) {
            let mut has_one = annotation.bool_value.is_some();
            annotation.uint_value = annotation.uint_value.filter(|_| !has_one);
            has_one |= annotation.uint_value.is_some();
            annotation.int_value = annotation.int_value.filter(|_| !has_one);
            has_one |= annotation.int_value.is_some();
            annotation.double_value = annotation.double_value.filter(|_| !has_one);
            has_one |= annotation.double_value.is_some();
            annotation.string_value = annotation.string_value.take().filter(|_| !has_one);
        }
        packet
    }

    proptest! {
        /// However many bytes are behind them.
        #[test]
        fn numbers_are_those_of_the_library(number in any::<u64>(), shift in 0..64_u32, rest in 0..12_usize) {
            let mut bytes = Vec::new();
            prost::encoding::encode_varint(number >> shift, &mut bytes);
            let end = bytes.len();
            bytes.resize(end + rest, 0xff);
            let mut wire = Wire(&bytes);
            prop_assert_eq!(wire.varint(), Some(number >> shift));
            prop_assert_eq!(wire.0.len(), rest);
            let mut wire = Wire(&bytes[..end - 1]);
            prop_assert_eq!(wire.varint(), None);
        }

        /// One after the other, so that nothing of a packet stays for the next.
        #[test]
        fn usual_packets_are_those_of_the_library(packets in prop::collection::vec(usual_packet(), 1..6)) {
            let mut usual = UsualPackets::default();
            for packet in &packets {
                prop_assert!(usual.push(&packet.encode_to_vec()));
                // It leaves nothing behind.
                prop_assert!(!usual.push(&[&packet.encode_to_vec()[..], &[0x5a, 0]].concat()));
            }
            let mut message = TracePacket::default();
            prop_assert_eq!(usual.iter().count(), packets.len());
            for (usual, packet) in usual.iter().zip(packets) {
                usual.fill(&mut message);
                prop_assert_eq!(&message, &with_one_value(packet));
            }
        }

        /// What is damaged is refused, or means the same.
        #[test]
        fn damaged_packets_are_those_of_the_library(
            packet in usual_packet(),
            damage in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..3),
            length in any::<prop::sample::Index>(),
        ) {
            let mut bytes = packet.encode_to_vec();
            for (place, byte) in damage {
                if !bytes.is_empty() {
                    *place.get_mut(&mut bytes) = byte;
                }
            }
            bytes.truncate(length.index(bytes.len() + 1));
            if let Some(decoded) = decoded(&bytes) {
                let expected = with_one_value(TracePacket::decode(&*bytes).unwrap());
                // A number may be none, which is not equal to itself.
                prop_assert_eq!(format!("{decoded:?}"), format!("{expected:?}"));
            }
        }
    }

    #[test]
    fn other_packets_are_left_to_the_library() {
        let is_usual = |bytes: &[u8]| UsualPackets::default().push(bytes);
        assert!(!is_usual(&[]));
        assert!(!is_usual(&[0x40, 1]));
        // An empty event; the same twice; with a legacy event; in a packet with a field 2.
        assert!(is_usual(&[0x5a, 0]));
        assert!(!is_usual(&[0x5a, 0, 0x5a, 0]));
        assert!(!is_usual(&[0x5a, 2, 0x32, 0]));
        assert!(!is_usual(&[0x12, 0, 0x5a, 0]));
        // More than a usual one.
        let large = TrackEvent { category_iids: vec![1; MAX_BYTES], ..TrackEvent::default() };
        let large = TracePacket { track_event: Some(large), ..TracePacket::default() };
        assert!(!is_usual(&large.encode_to_vec()));
        // A text that is not UTF-8.
        assert!(!is_usual(&[0x5a, 5, 0x22, 3, 0x32, 1, 0xff]));
    }
}
