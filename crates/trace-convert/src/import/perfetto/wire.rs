//! Protobuf as bytes: the fields of a message, the memory of its decoded form, and texts in it that are not
//! UTF-8.

use super::MAX_DECODED_BYTES;
use crate::export::perfetto::messages as message;
use prost::bytes::Buf;
use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field,
};
use prost::{DecodeError, Message};
use std::mem::size_of;

/// Maximum depth of nested messages that are decoded.
const MAX_DEPTH: usize = 100;

/// The bytes of a varint of which each has seven bits.
const MAX_USUAL_VARINT_BYTES: usize = 9;

/// A field: its number, and its payload if it has a length.
pub(super) type Field<'a> = (u32, Option<&'a [u8]>);

/// The fields of a message, up to the first that is malformed.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub const fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// The bytes after the last field.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    #[inline]
    fn next(&mut self) -> Option<Field<'a>> {
        if let Some((field, rest)) = usual_field(self.0) {
            self.0 = rest;
            return Some(field);
        }
        self.any_field()
    }
}

/// A field whose key and length are a byte each, and what is behind it.
#[inline]
fn usual_field(message: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (key, rest) = message.split_first()?;
    if !(8..0x80).contains(key) {
        return None;
    }
    let number = u32::from(key >> 3);
    match key & 7 {
        0 => {
            let end = rest.iter().take(MAX_USUAL_VARINT_BYTES).position(|byte| *byte < 0x80)?;
            Some(((number, None), rest.get(end + 1..)?))
        }
        1 => Some(((number, None), rest.get(8..)?)),
        2 => {
            let (length, rest) = rest.split_first().filter(|(length, _)| **length < 0x80)?;
            let (payload, rest) = rest.split_at_checked(usize::from(*length))?;
            Some(((number, Some(payload)), rest))
        }
        5 => Some(((number, None), rest.get(4..)?)),
        _ => None,
    }
}

impl<'a> Fields<'a> {
    #[inline(never)]
    fn any_field(&mut self) -> Option<Field<'a>> {
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

/// The decoded form of a field.
enum Kind {
    Text,
    Bytes,
    /// Numbers of up to 64 bits, alone or packed.
    Numbers,
    /// A message of a size, with fields.
    Message(usize, Kinds),
}

/// The fields of a message that have texts, or that may be repeated many times.
type Kinds = &'static [(u32, Kind)];

const INTERNED: Kind = Kind::Message(size_of::<message::InternedString>(), &[(2, Kind::Text)]);
const INTERNED_BYTES: Kind = Kind::Message(size_of::<message::InternedString>(), &[(2, Kind::Bytes)]);
const PROCESS: Kind = Kind::Message(0, &[(6, Kind::Text)]);
const THREAD: Kind = Kind::Message(0, &[(5, Kind::Text)]);
const TRIGGER: Kind = Kind::Message(0, &[(1, Kind::Text), (2, Kind::Text)]);

static ANNOTATION: [(u32, Kind); 5] = [
    (6, Kind::Text),
    (9, Kind::Text),
    (10, Kind::Text),
    (11, Kind::Message(size_of::<message::DebugAnnotation>(), &ANNOTATION)),
    (12, Kind::Message(size_of::<message::DebugAnnotation>(), &ANNOTATION)),
];

static PROCESS_TREE: [(u32, Kind); 2] = [
    (1, Kind::Message(size_of::<message::Process>(), &[(3, Kind::Text)])),
    (2, Kind::Message(size_of::<message::TreeThread>(), &[(2, Kind::Text)])),
];

static TRACK_EVENT: [(u32, Kind); 13] = [
    (3, Kind::Numbers),
    (4, Kind::Message(size_of::<message::DebugAnnotation>(), &ANNOTATION)),
    (6, Kind::Message(0, &[(7, Kind::Text)])),
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
];

static INTERNED_DATA: [(u32, Kind); 10] = [
    (1, INTERNED),
    (2, INTERNED),
    (3, INTERNED),
    (5, INTERNED_BYTES),
    (6, Kind::Message(size_of::<message::Frame>(), &[])),
    (7, Kind::Message(size_of::<message::Callstack>(), &[(2, Kind::Numbers)])),
    (16, INTERNED_BYTES),
    (17, INTERNED_BYTES),
    (19, Kind::Message(size_of::<message::Mapping>(), &[(7, Kind::Numbers)])),
    (29, INTERNED),
];

static PACKET: [(u32, Kind); 13] = [
    (2, Kind::Message(0, &PROCESS_TREE)),
    (6, Kind::Message(0, &[(1, Kind::Message(size_of::<message::Clock>(), &[]))])),
    (11, Kind::Message(0, &TRACK_EVENT)),
    (12, Kind::Message(0, &INTERNED_DATA)),
    (
        39,
        Kind::Message(
            0,
            &[(1, Kind::Message(size_of::<message::LogEvent>(), &[(6, Kind::Text), (8, Kind::Text)]))],
        ),
    ),
    (43, PROCESS),
    (44, THREAD),
    (46, TRIGGER),
    (50, Kind::Bytes),
    (59, Kind::Message(0, &[(11, Kind::Message(0, &[(31, Kind::Numbers), (45, Kind::Numbers)]))])),
    (60, Kind::Message(0, &[(2, Kind::Text), (3, PROCESS), (4, THREAD), (10, Kind::Text)])),
    (66, Kind::Message(0, &[])),
    (113, TRIGGER),
];

/// A bundle without its events: the columns of context switches and wakeups.
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

/// One of the kernel's events.
static EVENT: [(u32, Kind); 8] = [
    (3, Kind::Message(0, &[(2, Kind::Text)])),
    (4, Kind::Message(0, &[(1, Kind::Text), (5, Kind::Text)])),
    (17, Kind::Message(0, &[(1, Kind::Text)])),
    (20, Kind::Message(0, &[(1, Kind::Text)])),
    (36, Kind::Message(0, &[(2, Kind::Text)])),
    (114, Kind::Message(0, &[(1, Kind::Text)])),
    (235, Kind::Message(0, &[(2, Kind::Text)])),
    (236, Kind::Message(0, &[(3, Kind::Text)])),
];

/// A message, and the number of its texts that are not UTF-8: those have replacement characters.
//= docs/import.md#perfetto
pub(super) type Decoded<M> = Result<(M, u64), DecodeError>;

/// Decodes a packet without the kernel's events in place of another: it is large. Returns the number of its
/// texts that are not UTF-8.
pub(super) fn packet(bytes: &[u8], packet: &mut message::TracePacket) -> Result<u64, DecodeError> {
    packet.clear();
    if packet.merge(bytes).is_ok() {
        return Ok(0);
    }
    let (decoded, texts) = decode(bytes, &PACKET)?;
    *packet = decoded;
    Ok(texts)
}

/// A bundle without its events.
pub(super) fn bundle(bytes: &[u8]) -> Decoded<message::FtraceBundleHead> {
    decode(bytes, &BUNDLE)
}

/// One of a bundle's events.
pub(super) fn event(bytes: &[u8]) -> Decoded<message::FtraceEvent> {
    decode(bytes, &EVENT)
}

fn decode<M: Message + Default>(bytes: &[u8], kinds: Kinds) -> Decoded<M> {
    let error = match M::decode(bytes) {
        Ok(message) => return Ok((message, 0)),
        Err(error) => error,
    };
    let mut mended = Vec::with_capacity(bytes.len());
    let texts = mend(bytes, kinds, MAX_DEPTH, &mut mended);
    if texts == 0 || decoded_bytes(&mended, kinds, MAX_DEPTH) > MAX_DECODED_BYTES {
        return Err(error);
    }
    M::decode(&*mended).map(|message| (message, texts))
}

/// Copies a message with replacement characters in its texts, and counts the texts that need them.
fn mend(message: &[u8], kinds: Kinds, depth: usize, mended: &mut Vec<u8>) -> u64 {
    let mut texts = 0;
    let mut fields = Fields::of(message);
    loop {
        let before = fields.rest();
        let Some((number, payload)) = fields.next() else {
            mended.extend_from_slice(before);
            return texts;
        };
        let kind = kinds.iter().find(|(known, _)| *known == number).map(|(_, kind)| kind);
        match (kind, payload) {
            (Some(Kind::Text), Some(payload)) if str::from_utf8(payload).is_err() => {
                texts += 1;
                put(number, String::from_utf8_lossy(payload).as_bytes(), mended);
            }
            (Some(Kind::Message(_, kinds)), Some(payload)) if depth > 0 => {
                let mut inner = Vec::with_capacity(payload.len());
                texts += mend(payload, kinds, depth - 1, &mut inner);
                put(number, &inner, mended);
            }
            _ => mended.extend_from_slice(&before[..before.len() - fields.rest().len()]),
        }
    }
}

/// Writes a field that has a length.
fn put(number: u32, payload: &[u8], to: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, to);
    encode_varint(payload.len() as u64, to);
    to.extend_from_slice(payload);
}

/// Whether a packet's decoded form is, as far as can be said before, not too large.
pub(super) fn is_packet_decodable(packet: &[u8]) -> bool {
    packet.len() <= SMALL_BYTES || decoded_bytes(packet, &PACKET, MAX_DEPTH) <= MAX_DECODED_BYTES
}

/// The decoded form of a packet of this size is never too large: a part takes at least two bytes, and its
/// decoded form at most 512.
const SMALL_BYTES: usize = MAX_DECODED_BYTES / 256;
const _: () =
    assert!(size_of::<message::DebugAnnotation>() <= 512 && size_of::<message::InternedString>() <= 512);

/// The same for the other fields of a bundle of the kernel's events.
pub(super) fn bundle_bytes(bundle: &[u8]) -> usize {
    decoded_bytes(bundle, &BUNDLE, MAX_DEPTH)
}

fn decoded_bytes(message: &[u8], kinds: Kinds, depth: usize) -> usize {
    let sizes = Fields::of(message).map(|(number, payload)| {
        let kind = kinds.iter().find(|(known, _)| *known == number).map(|(_, kind)| kind);
        match (kind, payload) {
            (None, _) => 0,
            (Some(Kind::Text | Kind::Bytes), payload) => size_of::<String>() + payload.map_or(0, <[u8]>::len),
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
mod tests;
