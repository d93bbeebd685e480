//! Fast decoder of usual packets: a track event with its time and sequence, and nothing else.
//!
//! All other packets, and all that are malformed, are left to the library's decoder. The message is the
//! library's, and keeps the memory of the packet before.

use crate::perfetto::messages::{DebugAnnotation, TracePacket, TrackEvent};

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
/// Larger packets are not usual. Decoded they may take a hundred times as much, which is kept.
const MAX_BYTES: usize = 4096;

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

/// A usual packet.
#[derive(Default)]
pub(super) struct Usual {
    /// Only the fields of usual packets are ever set.
    packet: TracePacket,
}

impl Usual {
    /// Decodes a packet in place of the one before, if it is a usual one.
    pub fn decode(&mut self, bytes: &[u8]) -> Option<&TracePacket> {
        if bytes.len() > MAX_BYTES {
            return None;
        }
        let packet = &mut self.packet;
        (packet.timestamp, packet.trusted_packet_sequence_id) = (None, None);
        (packet.sequence_flags, packet.timestamp_clock_id) = (None, None);
        let event = packet.track_event.get_or_insert_default();
        let mut has_event = false;
        let mut wire = Wire(bytes);
        while let Some(key) = wire.key()? {
            match key {
                key::TIMESTAMP => packet.timestamp = Some(wire.varint()?),
                key::SEQUENCE => packet.trusted_packet_sequence_id = Some(wire.varint()? as u32),
                key::FLAGS => packet.sequence_flags = Some(wire.varint()? as u32),
                key::CLOCK => packet.timestamp_clock_id = Some(wire.varint()? as u32),
                // A second one would be merged with the first.
                key::TRACK_EVENT if !has_event => {
                    has_event = true;
                    track_event(Wire(wire.bytes()?), event)?;
                }
                _ => return None,
            }
        }
        has_event.then_some(&self.packet)
    }
}

fn track_event(mut wire: Wire<'_>, event: &mut TrackEvent) -> Option<()> {
    (event.kind, event.name_iid, event.track_uuid) = (None, None, None);
    (event.counter_value, event.double_counter_value) = (None, None);
    event.category_iids.clear();
    event.flow_ids.clear();
    event.terminating_flow_ids.clear();
    let mut annotations = 0;
    while let Some(key) = wire.key()? {
        match key {
            key::CATEGORY => event.category_iids.push(wire.varint()?),
            key::KIND => event.kind = Some(wire.varint()? as i32),
            key::NAME => event.name_iid = Some(wire.varint()?),
            key::TRACK => event.track_uuid = Some(wire.varint()?),
            key::COUNTER_VALUE => event.counter_value = Some(wire.varint()? as i64),
            key::DOUBLE_COUNTER_VALUE => event.double_counter_value = Some(f64::from_bits(wire.fixed()?)),
            key::FLOW => event.flow_ids.push(wire.fixed()?),
            key::TERMINATING_FLOW => event.terminating_flow_ids.push(wire.fixed()?),
            key::ANNOTATION => {
                if event.debug_annotations.len() == annotations {
                    event.debug_annotations.push(DebugAnnotation::default());
                }
                debug_annotation(Wire(wire.bytes()?), event.debug_annotations.get_mut(annotations)?)?;
                annotations += 1;
            }
            _ => return None,
        }
    }
    event.debug_annotations.truncate(annotations);
    Some(())
}

fn debug_annotation(mut wire: Wire<'_>, annotation: &mut DebugAnnotation) -> Option<()> {
    (annotation.name_iid, annotation.bool_value) = (None, None);
    (annotation.uint_value, annotation.int_value, annotation.double_value) = (None, None, None);
    let mut memory = annotation.string_value.take();
    while let Some(key) = wire.key()? {
        match key {
            key::ARGUMENT_NAME => annotation.name_iid = Some(wire.varint()?),
            key::BOOL => annotation.bool_value = Some(wire.varint()? != 0),
            key::UINT => annotation.uint_value = Some(wire.varint()?),
            key::INT => annotation.int_value = Some(wire.varint()? as i64),
            key::DOUBLE => annotation.double_value = Some(f64::from_bits(wire.fixed()?)),
            key::STRING => {
                let text = std::str::from_utf8(wire.bytes()?).ok()?;
                let mut own = annotation.string_value.take().or_else(|| memory.take()).unwrap_or_default();
                own.clear();
                own.push_str(text);
                annotation.string_value = Some(own);
            }
            _ => return None,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
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

    proptest! {
        /// One after the other, so that nothing of a packet stays for the next.
        #[test]
        fn usual_packets_are_those_of_the_library(packets in prop::collection::vec(usual_packet(), 1..6)) {
            let mut usual = Usual::default();
            for packet in packets {
                let bytes = packet.encode_to_vec();
                prop_assert_eq!(usual.decode(&bytes), Some(&packet));
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
            let mut usual = Usual::default();
            if let Some(decoded) = usual.decode(&bytes) {
                let expected = TracePacket::decode(&*bytes);
                // A number may be none, which is not equal to itself.
                prop_assert_eq!(format!("{decoded:?}"), format!("{:?}", expected.unwrap()));
            }
        }
    }

    #[test]
    fn other_packets_are_left_to_the_library() {
        let mut usual = Usual::default();
        assert_eq!(usual.decode(&[]), None);
        assert_eq!(usual.decode(&[0x40, 1]), None);
        // An empty event; the same twice; with a legacy event; in a packet with a field 2.
        assert!(usual.decode(&[0x5a, 0]).is_some());
        assert_eq!(usual.decode(&[0x5a, 0, 0x5a, 0]), None);
        assert_eq!(usual.decode(&[0x5a, 2, 0x32, 0]), None);
        assert_eq!(usual.decode(&[0x12, 0, 0x5a, 0]), None);
        // More than a usual one.
        let large = TrackEvent { category_iids: vec![1; MAX_BYTES], ..TrackEvent::default() };
        let large = TracePacket { track_event: Some(large), ..TracePacket::default() };
        assert_eq!(usual.decode(&large.encode_to_vec()), None);
        // A text that is not UTF-8.
        assert_eq!(usual.decode(&[0x5a, 5, 0x22, 3, 0x32, 1, 0xff]), None);
    }
}
