//! The messages between trace manager, providers and clients: everything here is bytes ↔ value.
//!
//! Three protocols travel over channels: [`registry`] (provider → manager), [`provider`] (manager → provider)
//! and [`controller`] (client → manager). Beside them a FIFO carries the 16-byte packets of [`fifo`]. This
//! crate performs no I/O; handles are a type parameter `H` and travel beside the bytes, in the order each
//! message documents.
//!
//! # One message
//!
//! ```text
//!  offset 0        2         4              8
//!         | version | ordinal | transaction | body: a table              |
//!         |   u16   |   u16   |     u32     | (ordinal, value bytes) ... |
//! ```
//!
//! The three header fields are little endian. A body is a *table*: fields in ascending order of their
//! ordinals, each with its own length. Unknown ordinals are skipped, so a newer peer may add fields; a
//! missing field takes the documented default, or is an error that names it. Limits ([`limits`]) are checked
//! when encoding and when decoding.
//!
//! A message of more than [`limits::MAX_MESSAGE_BYTES`] travels in a VMO: see [`message::Encoded::spill`].

#![forbid(unsafe_code)]

pub mod buffering;
pub mod categories;
mod codec;
#[cfg(feature = "controller")]
pub mod controller;
pub mod error;
pub mod fifo;
pub mod limits;
pub mod memory;
pub mod message;
pub mod names;
pub mod provider;
pub mod registry;
mod strict_enum;
mod table;
pub mod version;

pub use buffering::{BufferDisposition, BufferingMode};
pub use categories::{KnownCategories, KnownCategory};
pub use error::ProtocolError;
pub use fifo::{FifoRequest, Packet, PacketError};
pub use message::{Encoded, Header, Message, Txid};
pub use version::{OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, VersionRange};
