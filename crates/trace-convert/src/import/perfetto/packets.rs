//! The packets of a trace: length-delimited fields, one after the other.

use super::wire::Fields;
use crate::import::ImportError;
use prost::bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, skip_field};
use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

const READ_BYTES: usize = 256 << 10;
/// The only field of a trace.
const PACKET: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
/// Both as they usually stand there.
const USUAL_KEY: u8 = (PACKET << 3 | LENGTH_DELIMITED) as u8;
/// No writer makes larger ones.
const MAX_PACKET_BYTES: u64 = 64 << 20;
const MAX_VARINT_BYTES: usize = 10;
/// A packet's field with the kernel's events.
const FTRACE_EVENTS: u32 = 1;
/// Fields of a packet with packets.
const COMPRESSED_PACKETS: u32 = 50;
const ZSTD_COMPRESSED_PACKETS: u32 = 133;

/// So many packets make a trace of what is damaged behind them.
const ENOUGH_PACKETS: u32 = 3;

/// Whether a file begins with packets.
#[must_use]
pub fn is_perfetto(start: &[u8], is_whole: bool) -> bool {
    let mut packets = Packets::new(start);
    let mut count = 0;
    loop {
        match packets.advance() {
            Ok(Packet::Whole { bytes, .. }) if is_message(bytes) => count += 1,
            Ok(Packet::Whole { .. }) | Err(_) => return count >= ENOUGH_PACKETS,
            Ok(Packet::CutOff) => return count > 0 || !is_whole && first_field_fits(start),
            Ok(Packet::End) => return count > 0,
        }
    }
}

/// For a packet that is larger than its available part.
fn first_field_fits(start: &[u8]) -> bool {
    let Some((length, rest)) = start.split_first().and_then(|(_, rest)| varint(rest)) else {
        return false;
    };
    let mut rest = rest;
    length > rest.len() as u64
        && start[0] == 0x0a
        && decode_key(&mut rest).is_ok_and(|(field, _)| field < 1000)
}

fn varint(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let value = prost::encoding::decode_varint(&mut bytes).ok()?;
    Some((value, bytes))
}

/// Whether bytes are fields, one after the other.
fn is_message(mut bytes: &[u8]) -> bool {
    while bytes.has_remaining() {
        let Ok((field, wire)) = decode_key(&mut bytes) else {
            return false;
        };
        let is_group = matches!(wire, WireType::StartGroup | WireType::EndGroup);
        if is_group || skip_field(wire, field, &mut bytes, DecodeContext::default()).is_err() {
            return false;
        }
    }
    true
}

/// Packets within a packet.
#[derive(Clone, Copy)]
pub(super) enum Compressed<'a> {
    Zlib(&'a [u8]),
    Zstd(&'a [u8]),
}

/// What a packet is.
pub(super) enum Contents<'a> {
    /// Other packets.
    Compressed(Compressed<'a>),
    /// Fields other than the kernel's events, and those: there may be too many to decode them at once.
    Plain(Cow<'a, [u8]>, Option<Vec<u8>>),
}

/// Looks for packets within a packet, and for the kernel's events.
pub(super) fn contents(packet: &[u8]) -> Contents<'_> {
    let (mut has_ftrace, mut within) = (false, None);
    for (number, payload) in Fields::of(packet) {
        match (number, payload) {
            (FTRACE_EVENTS, _) => has_ftrace = true,
            (COMPRESSED_PACKETS, Some(payload)) => within = Some(Compressed::Zlib(payload)),
            (ZSTD_COMPRESSED_PACKETS, Some(payload)) => within = Some(Compressed::Zstd(payload)),
            _ => {}
        }
    }
    if let Some(within) = within {
        return Contents::Compressed(within);
    }
    if !has_ftrace {
        return Contents::Plain(Cow::Borrowed(packet), None);
    }
    let (mut others, mut events) = (Vec::new(), Vec::new());
    let mut fields = Fields::of(packet);
    loop {
        let before = fields.rest();
        match fields.next() {
            // Fields with the same number form one message.
            Some((FTRACE_EVENTS, Some(payload))) => events.extend_from_slice(payload),
            Some(_) => others.extend_from_slice(&before[..before.len() - fields.rest().len()]),
            None => {
                // A malformed packet stays, so that it is reported.
                others.extend_from_slice(before);
                return Contents::Plain(Cow::Owned(others), Some(events));
            }
        }
    }
}

pub(super) enum Packet<'a> {
    Whole {
        /// The position of the packet in the file.
        offset: u64,
        bytes: &'a [u8],
    },
    /// The file ends within a packet.
    CutOff,
    End,
}

pub(super) struct Packets<R> {
    input: BufReader<R>,
    offset: u64,
    /// A packet that is not as a whole in the buffer.
    bytes: Vec<u8>,
    /// Bytes of the last packet in the buffer.
    passed: usize,
}

impl<R: Read> Packets<R> {
    pub fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(READ_BYTES, input), offset: 0, bytes: Vec::new(), passed: 0 }
    }

    /// The source of the packets.
    pub fn input(&self) -> &R {
        self.input.get_ref()
    }

    /// The next packet; other fields are skipped.
    pub fn advance(&mut self) -> Result<Packet<'_>, ImportError> {
        self.input.consume(std::mem::take(&mut self.passed));
        if let Some((head, length)) = usual_head(self.input.buffer()) {
            let (offset, end) = (self.offset, head + length);
            self.passed = end;
            self.offset += end as u64;
            return Ok(Packet::Whole { offset, bytes: &self.input.buffer()[head..end] });
        }
        loop {
            let offset = self.offset;
            let malformed = |problem: &str| ImportError::Malformed { offset, problem: problem.to_owned() };
            let key = match self.varint()? {
                Varint::Value(key) => key,
                Varint::None => return Ok(Packet::End),
                Varint::CutOff => return Ok(Packet::CutOff),
                Varint::TooLong => return Err(malformed("expected a packet")),
            };
            if key & 7 != LENGTH_DELIMITED || key >> 3 == 0 {
                return Err(malformed("expected a packet"));
            }
            let length = match self.varint()? {
                Varint::Value(length) => length,
                Varint::None | Varint::CutOff => return Ok(Packet::CutOff),
                Varint::TooLong => return Err(malformed("a packet whose length is no number")),
            };
            if length > MAX_PACKET_BYTES {
                return Err(malformed("a packet of more than 64 MiB"));
            }
            self.bytes.clear();
            let read = self.input.by_ref().take(length).read_to_end(&mut self.bytes);
            let read = read.map_err(ImportError::Read)? as u64;
            self.offset += read;
            if read < length {
                return Ok(Packet::CutOff);
            }
            if key >> 3 == PACKET {
                return Ok(Packet::Whole { offset, bytes: &self.bytes });
            }
        }
    }

    fn varint(&mut self) -> Result<Varint, ImportError> {
        let mut value = 0_u64;
        for place in 0..MAX_VARINT_BYTES {
            let mut byte = [0];
            if self.input.read(&mut byte).map_err(ImportError::Read)? == 0 {
                return Ok(if place == 0 { Varint::None } else { Varint::CutOff });
            }
            self.offset += 1;
            value |= u64::from(byte[0] & 0x7f) << (7 * place);
            if byte[0] & 0x80 == 0 {
                return Ok(Varint::Value(value));
            }
        }
        Ok(Varint::TooLong)
    }
}

/// The lengths of a packet's key and length, and of the packet, if all of it is there.
#[inline]
fn usual_head(bytes: &[u8]) -> Option<(usize, usize)> {
    let (head, length) = match bytes {
        [USUAL_KEY, length @ ..0x80, ..] => (2, usize::from(*length)),
        [USUAL_KEY, low, high @ ..0x80, ..] => (3, usize::from(low & 0x7f) | usize::from(*high) << 7),
        _ => return None,
    };
    (bytes.len() >= head + length).then_some((head, length))
}

enum Varint {
    Value(u64),
    /// The file ended before the packet, or within it.
    None,
    CutOff,
    TooLong,
}
