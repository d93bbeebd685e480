//! How a buffer is used, and what happens to its content at a start.

use crate::strict_enum::strict_enum;
use std::fmt;

strict_enum! {
    /// How a provider's buffer is used when it fills up.
    ///
    /// These are the numbers of the protocol, which count from 1. The header of the shared buffer counts the
    /// same modes from 0; the two encodings are two types and are converted by name.
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
        /// Go on behind what is there.
        Retain = 3,
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
