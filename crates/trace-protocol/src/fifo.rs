//! The 16-byte packets of the FIFO between manager and provider.
//!
//! ```text
//!  offset 0         2        4        8               16
//!         | request | data16 | data32 |    data64      |     all little endian, unused fields zero
//!         |   u16   |   u16  |  u32   |     u64        |
//!
//!  ALERT: | 0x0004  | 14 bytes of name, padded with zeros |
//! ```

use crate::limits::MAX_ALERT_NAME_BYTES;
use std::fmt;

/// Size of one packet, in bytes.
pub const PACKET_BYTES: usize = 16;
/// Packets a FIFO holds in each direction.
pub const FIFO_DEPTH: usize = 4;
/// Version of the packets, in STARTED.
pub const FIFO_VERSION: u32 = 1;

const STARTED: u16 = 0x0001;
const SAVE_BUFFER: u16 = 0x0002;
const STOPPED: u16 = 0x0003;
const ALERT: u16 = 0x0004;
const BUFFER_SAVED: u16 = 0x0100;

/// One packet as it travels.
pub type Packet = [u8; PACKET_BYTES];

/// What a packet says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FifoRequest {
    /// Provider → manager: recording has begun.
    Started {
        /// Version of the packets, [`FIFO_VERSION`].
        version: u32,
    },
    /// Provider → manager, streaming: a rolling half is full and quiet.
    SaveBuffer {
        /// Wrapped count before the switch; the half is `wrapped_count & 1`.
        wrapped_count: u32,
        /// Durable bytes that may be copied, from the start of the durable region.
        durable_data_end: u64,
    },
    /// Provider → manager: no writer is left, and the header of the buffer is final.
    Stopped,
    /// Provider → manager: something a client may be waiting for has happened.
    Alert {
        /// At most [`MAX_ALERT_NAME_BYTES`], without a zero byte.
        name: String,
    },
    /// Manager → provider, streaming: the half is out of the manager's hands.
    BufferSaved {
        /// As in the [`FifoRequest::SaveBuffer`] it answers.
        wrapped_count: u32,
        /// As in the [`FifoRequest::SaveBuffer`] it answers; not required.
        durable_data_end: u64,
    },
}

/// Why a packet is refused. The sender of such a packet is asked to terminate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketError {
    /// The reserved field is not zero.
    Data16 {
        /// Code of the packet.
        request: u16,
        /// Value found.
        found: u16,
    },
    /// STARTED names a version of the packets that is not served.
    Version {
        /// Version found.
        found: u32,
    },
    /// A field the packet does not use is not zero.
    Unused {
        /// Code of the packet.
        request: u16,
        /// Name of the field.
        field: &'static str,
        /// Value found.
        found: u64,
    },
    /// No packet from this side has that code.
    Unknown {
        /// Code found.
        request: u16,
    },
    /// An alert's name does not fit, or holds a zero byte.
    AlertName {
        /// Bytes of the name.
        found: usize,
    },
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data16 { request, found } => {
                write!(f, "fifo packet {request:#06x}: expected data16 0, found {found:#06x}")
            }
            Self::Version { found } => {
                write!(f, "fifo packet started: expected version {FIFO_VERSION}, found {found}")
            }
            Self::Unused { request, field, found } => {
                write!(f, "fifo packet {request:#06x}: expected {field} 0, found {found:#x}")
            }
            Self::Unknown { request } => {
                write!(f, "fifo packet {request:#06x}: no such request from this side")
            }
            Self::AlertName { found } => write!(
                f,
                "alert name: expected at most {MAX_ALERT_NAME_BYTES} bytes without zero, found {found}"
            ),
        }
    }
}

impl std::error::Error for PacketError {}

impl FifoRequest {
    /// The packet that says this.
    ///
    /// # Errors
    ///
    /// [`PacketError::AlertName`] for a name that does not fit.
    pub fn encode(&self) -> Result<Packet, PacketError> {
        Ok(match self {
            FifoRequest::Started { version } => fields(STARTED, *version, 0),
            FifoRequest::SaveBuffer { wrapped_count, durable_data_end } => {
                fields(SAVE_BUFFER, *wrapped_count, *durable_data_end)
            }
            FifoRequest::Stopped => fields(STOPPED, 0, 0),
            FifoRequest::Alert { name } => alert(name)?,
            FifoRequest::BufferSaved { wrapped_count, durable_data_end } => {
                fields(BUFFER_SAVED, *wrapped_count, *durable_data_end)
            }
        })
    }

    /// What a provider's packet says: the manager's side.
    ///
    /// # Errors
    ///
    /// A [`PacketError`] for a packet after which the provider is asked to terminate.
    pub fn from_provider(packet: &Packet) -> Result<FifoRequest, PacketError> {
        let raw = Raw::split(packet);
        if raw.request == ALERT {
            return Ok(FifoRequest::Alert { name: alert_name(packet) });
        }
        raw.expect_data16_zero()?;
        match raw.request {
            STARTED => {
                if raw.data32 != FIFO_VERSION {
                    return Err(PacketError::Version { found: raw.data32 });
                }
                raw.expect_data64_zero()?;
                Ok(FifoRequest::Started { version: raw.data32 })
            }
            SAVE_BUFFER => {
                Ok(FifoRequest::SaveBuffer { wrapped_count: raw.data32, durable_data_end: raw.data64 })
            }
            STOPPED => {
                if raw.data32 != 0 {
                    return Err(PacketError::Unused {
                        request: STOPPED,
                        field: "data32",
                        found: u64::from(raw.data32),
                    });
                }
                raw.expect_data64_zero()?;
                Ok(FifoRequest::Stopped)
            }
            request => Err(PacketError::Unknown { request }),
        }
    }

    /// What the manager's packet says: the provider's side.
    ///
    /// # Errors
    ///
    /// A [`PacketError`] for a packet after which the provider ends its session.
    pub fn from_manager(packet: &Packet) -> Result<FifoRequest, PacketError> {
        let raw = Raw::split(packet);
        raw.expect_data16_zero()?;
        match raw.request {
            BUFFER_SAVED => {
                Ok(FifoRequest::BufferSaved { wrapped_count: raw.data32, durable_data_end: raw.data64 })
            }
            request => Err(PacketError::Unknown { request }),
        }
    }
}

/// The four fields of a packet.
struct Raw {
    request: u16,
    data16: u16,
    data32: u32,
    data64: u64,
}

impl Raw {
    fn split(packet: &Packet) -> Raw {
        let [r0, r1, a0, a1, b0, b1, b2, b3, c0, c1, c2, c3, c4, c5, c6, c7] = *packet;
        Raw {
            request: u16::from_le_bytes([r0, r1]),
            data16: u16::from_le_bytes([a0, a1]),
            data32: u32::from_le_bytes([b0, b1, b2, b3]),
            data64: u64::from_le_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
        }
    }

    fn expect_data16_zero(&self) -> Result<(), PacketError> {
        if self.data16 != 0 {
            return Err(PacketError::Data16 { request: self.request, found: self.data16 });
        }
        Ok(())
    }

    fn expect_data64_zero(&self) -> Result<(), PacketError> {
        if self.data64 != 0 {
            return Err(PacketError::Unused { request: self.request, field: "data64", found: self.data64 });
        }
        Ok(())
    }
}

fn fields(request: u16, data32: u32, data64: u64) -> Packet {
    let [r0, r1] = request.to_le_bytes();
    let [b0, b1, b2, b3] = data32.to_le_bytes();
    let [c0, c1, c2, c3, c4, c5, c6, c7] = data64.to_le_bytes();
    [r0, r1, 0, 0, b0, b1, b2, b3, c0, c1, c2, c3, c4, c5, c6, c7]
}

fn alert(name: &str) -> Result<Packet, PacketError> {
    let refused = PacketError::AlertName { found: name.len() };
    if name.bytes().any(|byte| byte == 0) {
        return Err(refused);
    }
    let mut packet = fields(ALERT, 0, 0);
    packet
        .get_mut(2..)
        .and_then(|space| space.get_mut(..name.len()))
        .ok_or(refused)?
        .copy_from_slice(name.as_bytes());
    Ok(packet)
}

/// The name in an ALERT packet: what precedes the first zero byte. Bytes that are not UTF-8 become `?` one by
/// one, so that the name keeps its length.
fn alert_name(packet: &Packet) -> String {
    let field = packet.get(2..).unwrap_or_default();
    let name = field.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

#[cfg(test)]
mod tests;
