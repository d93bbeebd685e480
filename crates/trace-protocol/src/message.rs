//! The header of every message, and messages too long for a channel.

use crate::error::ProtocolError;
use crate::limits::{MAX_MESSAGE_BYTES, MAX_SPILLED_BYTES};
use crate::version::{OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION};
use std::fmt;

/// Set in the ordinal of a message whose bytes are in a VMO.
const SPILLED: u16 = 0x8000;
/// Bytes of the stub that stands in the channel for a message in a VMO: header and `u64` length.
const STUB_BYTES: usize = Header::BYTES + 8;

/// Joins an answer to its request. Zero marks a one-way message or an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Txid(pub u32);

impl Txid {
    /// The id of one-way messages and events.
    pub const ONE_WAY: Txid = Txid(0);
}

/// The first 8 bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Protocol version of the sender.
    pub version: u16,
    /// Which message it is.
    pub ordinal: u16,
    /// Which request it belongs to.
    pub txid: Txid,
}

impl Header {
    /// Size of a header, in bytes.
    pub const BYTES: usize = 8;

    /// Splits a message into header and body. The version is not judged.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::TooShort`] when the bytes end inside the header.
    pub fn decode(bytes: &[u8]) -> Result<(Header, &[u8]), ProtocolError> {
        let Some((&[v0, v1, o0, o1, t0, t1, t2, t3], body)) = bytes.split_first_chunk() else {
            return Err(ProtocolError::TooShort { expected: Header::BYTES, found: bytes.len() });
        };
        let header = Header {
            version: u16::from_le_bytes([v0, v1]),
            ordinal: u16::from_le_bytes([o0, o1]),
            txid: Txid(u32::from_le_bytes([t0, t1, t2, t3])),
        };
        Ok((header, body))
    }

    /// The bytes of this header.
    #[must_use]
    pub fn encode(self) -> [u8; Header::BYTES] {
        let [v0, v1] = self.version.to_le_bytes();
        let [o0, o1] = self.ordinal.to_le_bytes();
        let [t0, t1, t2, t3] = self.txid.0.to_le_bytes();
        [v0, v1, o0, o1, t0, t1, t2, t3]
    }

    /// Refuses a version that is not served.
    pub(crate) fn check_version(self) -> Result<(), ProtocolError> {
        if !(OLDEST_PROTOCOL_VERSION..=PROTOCOL_VERSION).contains(&self.version) {
            return Err(ProtocolError::Version {
                oldest: OLDEST_PROTOCOL_VERSION,
                newest: PROTOCOL_VERSION,
                found: self.version,
            });
        }
        Ok(())
    }
}

/// A message ready to travel: its bytes and, beside them, its handles in the order the message documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded<H> {
    /// Header and body, at most [`MAX_SPILLED_BYTES`]; a channel takes [`MAX_MESSAGE_BYTES`], see
    /// [`Encoded::spill`].
    pub bytes: Vec<u8>,
    /// The handles that travel with the bytes.
    pub handles: Vec<H>,
}

impl<H> Encoded<H> {
    /// Makes the message fit into a channel: bytes beyond [`MAX_MESSAGE_BYTES`] go into a VMO that `store`
    /// makes of them, which travels as the last handle; a stub of 16 bytes takes their place. Shorter
    /// messages are unchanged.
    ///
    /// # Errors
    ///
    /// Whatever `store` reports.
    pub fn spill<E>(self, store: impl FnOnce(&[u8]) -> Result<H, E>) -> Result<Encoded<H>, E> {
        let Encoded { bytes, mut handles } = self;
        if bytes.len() <= MAX_MESSAGE_BYTES {
            return Ok(Encoded { bytes, handles });
        }
        let mut stub = bytes.get(..Header::BYTES).unwrap_or_default().to_vec();
        if let Some(high) = stub.get_mut(3) {
            *high |= (SPILLED >> 8) as u8;
        }
        stub.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        handles.push(store(&bytes)?);
        Ok(Encoded { bytes: stub, handles })
    }

    /// Undoes [`Encoded::spill`] on what a channel delivered: `load` reads the given number of bytes from the
    /// VMO. Other messages are unchanged.
    ///
    /// # Errors
    ///
    /// A [`ProtocolError`] for a stub that is malformed, lacks its handle, announces more than
    /// [`MAX_SPILLED_BYTES`], is not the header of what was loaded, or cannot be loaded.
    pub fn unspill<E: fmt::Display>(
        self,
        load: impl FnOnce(H, usize) -> Result<Vec<u8>, E>,
    ) -> Result<Encoded<H>, ProtocolError> {
        let Encoded { bytes, mut handles } = self;
        let (mut header, body) = Header::decode(&bytes)?;
        if header.ordinal & SPILLED == 0 {
            return Ok(Encoded { bytes, handles });
        }
        let Ok(length) = <[u8; 8]>::try_from(body) else {
            return Err(ProtocolError::TooShort { expected: STUB_BYTES, found: bytes.len() });
        };
        let announced = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
        if announced > MAX_SPILLED_BYTES {
            return Err(ProtocolError::TooLong { limit: MAX_SPILLED_BYTES, found: announced });
        }
        let Some(vmo) = handles.pop() else {
            return Err(ProtocolError::HandleCount { method: "message in a vmo", expected: 1, found: 0 });
        };
        let unloadable = |error: E| ProtocolError::Unloadable { reason: error.to_string() };
        let loaded = load(vmo, announced).map_err(unloadable)?;
        header.ordinal &= !SPILLED;
        if loaded.len() != announced || !loaded.starts_with(&header.encode()) {
            return Err(ProtocolError::SpilledMismatch { expected: announced, found: loaded.len() });
        }
        Ok(Encoded { bytes: loaded, handles })
    }
}

/// A value that travels over a channel, with handles of type `H` beside it.
pub trait Message<H>: Sized {
    /// The message's bytes and handles. `txid` is [`Txid::ONE_WAY`] for one-way messages and events.
    ///
    /// # Errors
    ///
    /// [`ProtocolError::Transaction`] if `txid` does not fit the message, [`ProtocolError::Limit`] for a
    /// value beyond its limit, [`ProtocolError::TooLong`] beyond [`MAX_SPILLED_BYTES`].
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError>;

    /// The message in `bytes`, whose handles are `handles`. On an error all handles are dropped.
    ///
    /// # Errors
    ///
    /// A [`ProtocolError`] that says what was expected and what was found.
    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError>;
}

/// Whether a message belongs to a request with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    OneWay,
    TwoWay,
}

/// Properties that the codecs of one message share: its name for errors, its ordinal, its direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Method {
    pub name: &'static str,
    pub ordinal: u16,
    pub direction: Direction,
}

impl Method {
    pub(crate) const fn one_way(name: &'static str, ordinal: u16) -> Method {
        Method { name, ordinal, direction: Direction::OneWay }
    }

    pub(crate) const fn two_way(name: &'static str, ordinal: u16) -> Method {
        Method { name, ordinal, direction: Direction::TwoWay }
    }

    /// Refuses a transaction id that does not fit the direction.
    pub(crate) fn check_txid(self, txid: Txid) -> Result<(), ProtocolError> {
        let two_way = self.direction == Direction::TwoWay;
        if two_way == (txid == Txid::ONE_WAY) {
            return Err(ProtocolError::Transaction { method: self.name, two_way, found: txid.0 });
        }
        Ok(())
    }

    /// Header and body as one message.
    pub(crate) fn encode<H>(
        self,
        txid: Txid,
        body: Vec<u8>,
        handles: Vec<H>,
    ) -> Result<Encoded<H>, ProtocolError> {
        self.check_txid(txid)?;
        let header = Header { version: PROTOCOL_VERSION, ordinal: self.ordinal, txid };
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(&body);
        if bytes.len() > MAX_SPILLED_BYTES {
            return Err(ProtocolError::TooLong { limit: MAX_SPILLED_BYTES, found: bytes.len() });
        }
        Ok(Encoded { bytes, handles })
    }

    /// Takes exactly `N` handles.
    pub(crate) fn take_handles<H, const N: usize>(self, handles: Vec<H>) -> Result<[H; N], ProtocolError> {
        <[H; N]>::try_from(handles).map_err(|handles| ProtocolError::HandleCount {
            method: self.name,
            expected: N,
            found: handles.len(),
        })
    }
}

/// Splits off the header of a message that must be of a served version, and finds its method.
pub(crate) fn decode_header<'a>(
    bytes: &'a [u8],
    protocol: &'static str,
    methods: &[Method],
) -> Result<(Txid, Method, &'a [u8]), ProtocolError> {
    let (header, _) = Header::decode(bytes)?;
    header.check_version()?;
    decode_header_any_version(bytes, protocol, methods)
}

/// As [`decode_header`], for messages whose fields are the same in all versions.
pub(crate) fn decode_header_any_version<'a>(
    bytes: &'a [u8],
    protocol: &'static str,
    methods: &[Method],
) -> Result<(Txid, Method, &'a [u8]), ProtocolError> {
    let (header, body) = Header::decode(bytes)?;
    if bytes.len() > MAX_SPILLED_BYTES {
        return Err(ProtocolError::TooLong { limit: MAX_SPILLED_BYTES, found: bytes.len() });
    }
    let Some(method) = methods.iter().find(|method| method.ordinal == header.ordinal) else {
        return Err(ProtocolError::UnknownMethod { protocol, ordinal: header.ordinal });
    };
    method.check_txid(header.txid)?;
    Ok((header.txid, *method, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_message_is_sent_and_received_and_no_longer_one() {
        const METHOD: Method = Method::one_way("test", 7);
        let encode =
            |length| METHOD.encode::<Vec<u8>>(Txid::ONE_WAY, vec![0; length - Header::BYTES], Vec::new());
        let longest = encode(MAX_SPILLED_BYTES).unwrap();
        let found = MAX_SPILLED_BYTES + 1;
        let too_long = ProtocolError::TooLong { limit: MAX_SPILLED_BYTES, found };
        assert_eq!(encode(found), Err(too_long.clone()));
        let decode = |bytes: &[u8]| decode_header(bytes, "tests", &[METHOD]).map(|(_, _, body)| body.len());
        assert_eq!(decode(&longest.bytes), Ok(MAX_SPILLED_BYTES - Header::BYTES));
        assert_eq!(decode(&[&longest.bytes[..], &[0]].concat()), Err(too_long));
        let spilled = longest.clone().spill(|bytes| Ok::<_, ProtocolError>(bytes.to_vec())).unwrap();
        let load = |vmo: Vec<u8>, length| {
            assert_eq!(length, MAX_SPILLED_BYTES);
            Ok::<_, ProtocolError>(vmo)
        };
        assert_eq!(spilled.unspill(load), Ok(longest));
    }
}
