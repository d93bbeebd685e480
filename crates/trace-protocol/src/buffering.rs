//! How a buffer is used, and what happens to its content at a start.

use crate::strict_enum::strict_enum;
use std::fmt;
use trace_format::buffer::BufferMode;

strict_enum! {
    /// How a provider's buffer is used when it fills up.
    ///
    /// These are the numbers of the protocol, which count from 1. The header of the shared buffer counts the
    /// same modes from 0 ([`BufferMode`]); the two encodings are two types, converted with `From`.
    BufferingMode {
        /// Writing ends when the buffer is full.
        Oneshot = 1,
        /// The oldest records are overwritten.
        Circular = 2,
        /// Full halves are handed to the manager while writing goes on in the other.
        Streaming = 3,
    }
}

strict_enum! {
    /// What a provider does with the buffer's content when it starts.
    BufferDisposition {
        /// Forget everything, and write a new initialization record.
        ClearEntire = 1,
        /// Forget the rolling data, keep strings and threads.
        ClearNondurable = 2,
        /// Continue after the existing data.
        Retain = 3,
    }
}

impl From<BufferingMode> for BufferMode {
    fn from(mode: BufferingMode) -> Self {
        match mode {
            BufferingMode::Oneshot => Self::Oneshot,
            BufferingMode::Circular => Self::Circular,
            BufferingMode::Streaming => Self::Streaming,
        }
    }
}

impl From<BufferMode> for BufferingMode {
    fn from(mode: BufferMode) -> Self {
        match mode {
            BufferMode::Oneshot => Self::Oneshot,
            BufferMode::Circular => Self::Circular,
            BufferMode::Streaming => Self::Streaming,
        }
    }
}

impl fmt::Display for BufferingMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            BufferingMode::Oneshot => "oneshot",
            BufferingMode::Circular => "circular",
            BufferingMode::Streaming => "streaming",
        })
    }
}
