//! Protobuf as bytes: the fields of a message, and how much memory its decoded form takes.

use crate::perfetto::messages as message;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use std::mem::size_of;

/// Messages within messages, as deep as they are decoded.
const MAX_DEPTH: usize = 100;

/// A field: its number, and its payload if it has a length.
pub(super) type Field<'a> = (u32, Option<&'a [u8]>);

/// The fields of a message, up to the first that is malformed.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub const fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// What comes after the last field.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let mut rest = self.0;
        let (number, wire) = decode_key(&mut rest).ok()?;
        let mut payload = None;
        if wire == WireType::LengthDelimited {
            let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
            payload = Some(rest.get(..length)?);
            rest.advance(length);
        } else {
            skip_field(wire, number, &mut rest, DecodeContext::default()).ok()?;
        }
        self.0 = rest;
        Some((number, payload))
    }
}

/// What a field becomes when it is decoded.
enum Kind {
    /// Text or bytes.
    Text,
    /// Numbers of up to 64 bits, alone or packed.
    Numbers,
    /// A message of a size, with fields.
    Message(usize, &'static [(u32, Kind)]),
}

const INTERNED: Kind = Kind::Message(size_of::<message::InternedString>(), &[(2, Kind::Text)]);

static ANNOTATION: [(u32, Kind); 5] = [
    (6, Kind::Text),
    (9, Kind::Text),
    (10, Kind::Text),
    (11, Kind::Message(size_of::<message::DebugAnnotation>(), &ANNOTATION)),
    (12, Kind::Message(size_of::<message::DebugAnnotation>(), &ANNOTATION)),
];

/// The fields of a packet of which there may be many.
static PACKET: [(u32, Kind); 10] = [
    (
        2,
        Kind::Message(
            0,
            &[
                (1, Kind::Message(size_of::<message::Process>(), &[(3, Kind::Text)])),
                (2, Kind::Message(size_of::<message::TreeThread>(), &[(2, Kind::Text)])),
            ],
        ),
    ),
    (6, Kind::Message(0, &[(1, Kind::Message(size_of::<message::Clock>(), &[]))])),
    (
        11,
        Kind::Message(
            0,
            &[
                (3, Kind::Numbers),
                (4, Kind::Message(size_of::<message::DebugAnnotation>(), &ANNOTATION)),
                (12, Kind::Numbers),
                (22, Kind::Text),
                (23, Kind::Text),
                (31, Kind::Numbers),
                (36, Kind::Numbers),
                (42, Kind::Numbers),
                (45, Kind::Numbers),
                (46, Kind::Numbers),
                (47, Kind::Numbers),
                (48, Kind::Numbers),
            ],
        ),
    ),
    (
        12,
        Kind::Message(
            0,
            &[
                (1, INTERNED),
                (2, INTERNED),
                (3, INTERNED),
                (5, INTERNED),
                (6, Kind::Message(size_of::<message::Frame>(), &[])),
                (7, Kind::Message(size_of::<message::Callstack>(), &[(2, Kind::Numbers)])),
                (16, INTERNED),
                (17, INTERNED),
                (19, Kind::Message(size_of::<message::Mapping>(), &[(7, Kind::Numbers)])),
                (29, INTERNED),
            ],
        ),
    ),
    (
        39,
        Kind::Message(
            0,
            &[(1, Kind::Message(size_of::<message::LogEvent>(), &[(6, Kind::Text), (8, Kind::Text)]))],
        ),
    ),
    (43, Kind::Message(0, &[(6, Kind::Text)])),
    (44, Kind::Message(0, &[(5, Kind::Text)])),
    (59, Kind::Message(0, &[(11, Kind::Message(0, &[(31, Kind::Numbers), (45, Kind::Numbers)]))])),
    (60, Kind::Message(0, &[(2, Kind::Text), (10, Kind::Text)])),
    (66, Kind::Message(0, &[])),
];

/// The columns of context switches and wakeups.
static BUNDLE: [(u32, Kind); 1] = [(
    4,
    Kind::Message(
        0,
        &[
            (1, Kind::Numbers),
            (2, Kind::Numbers),
            (3, Kind::Numbers),
            (4, Kind::Numbers),
            (5, Kind::Text),
            (6, Kind::Numbers),
            (7, Kind::Numbers),
            (8, Kind::Numbers),
            (9, Kind::Numbers),
            (10, Kind::Numbers),
            (11, Kind::Numbers),
            (12, Kind::Numbers),
        ],
    ),
)];

/// At least as many bytes as a packet takes when it is decoded.
pub(super) fn packet_bytes(packet: &[u8]) -> usize {
    decoded_bytes(packet, &PACKET, MAX_DEPTH)
}

/// The same of what stands beside the kernel's events of a bundle.
pub(super) fn bundle_bytes(bundle: &[u8]) -> usize {
    decoded_bytes(bundle, &BUNDLE, MAX_DEPTH)
}

fn decoded_bytes(message: &[u8], kinds: &[(u32, Kind)], depth: usize) -> usize {
    let sizes = Fields::of(message).map(|(number, payload)| {
        let kind = kinds.iter().find(|(known, _)| *known == number).map(|(_, kind)| kind);
        match (kind, payload) {
            (None, _) => 0,
            (Some(Kind::Text), payload) => size_of::<String>() + payload.map_or(0, <[u8]>::len),
            // A number takes at least a byte.
            (Some(Kind::Numbers), payload) => size_of::<u64>() * payload.map_or(1, <[u8]>::len),
            (Some(Kind::Message(size, kinds)), payload) if depth > 0 => {
                size + payload.map_or(0, |payload| decoded_bytes(payload, kinds, depth - 1))
            }
            (Some(Kind::Message(size, _)), _) => *size,
        }
    });
    sizes.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use message::{DebugAnnotation, InternedName, InternedText, TracePacket, TrackEvent};
    use prost::Message;

    #[test]
    fn the_decoded_size_counts_what_is_small_on_the_wire() {
        assert!(size_of::<InternedName>() <= size_of::<message::InternedString>());
        assert!(size_of::<InternedText>() <= size_of::<message::InternedString>());
        let annotation = |dict_entries| DebugAnnotation { dict_entries, ..DebugAnnotation::default() };
        let event = TrackEvent {
            debug_annotations: vec![annotation(vec![annotation(Vec::new()); 10]); 3],
            categories: vec!["ab".to_owned(); 7],
            flow_ids: vec![1, 2],
            ..TrackEvent::default()
        };
        let packet = TracePacket { track_event: Some(event), ..TracePacket::default() };
        let bytes = packet.encode_to_vec();
        let expected = 33 * size_of::<DebugAnnotation>() + 7 * (size_of::<String>() + 2) + 2 * 8;
        assert_eq!(packet_bytes(&bytes), expected);
        // What nothing reads takes nothing: field 5 with three bytes.
        assert_eq!(packet_bytes(&[0x2a, 3, 1, 2, 3]), 0);
    }

    #[test]
    fn fields_end_at_the_first_that_is_malformed() {
        let bytes = [0x0a, 2, 7, 8, 0x10, 0x80, 0x01, 0x1a, 9, 1];
        assert_eq!(Fields::of(&bytes).collect::<Vec<_>>(), [(1, Some(&[7_u8, 8][..])), (2, None)]);
    }
}
