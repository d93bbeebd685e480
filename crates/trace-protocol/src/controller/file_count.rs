//! What the manager reports of a file that it writes for a client.

/// Nothing more comes: the archive is complete.
const COMPLETE: u64 = 1 << 63;
/// The file cannot be written any more. With [`COMPLETE`], which no archive is long enough for.
const FAILED: u64 = 3 << 62;

/// A report, which is 8 bytes in the output socket, little endian.
//= docs/protocol.md#files-that-are-handed-over
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCount {
    /// So many bytes of the archive are written.
    Written(u64),
    /// So many bytes are written, and these are all.
    Complete(u64),
    /// The file cannot be written.
    Failed {
        /// The operating system's error, or 0.
        errno: u32,
    },
}

impl FileCount {
    /// The number that is sent.
    #[must_use]
    pub const fn value(self) -> u64 {
        match self {
            Self::Written(bytes) => bytes & !FAILED,
            Self::Complete(bytes) => COMPLETE | (bytes & !FAILED),
            Self::Failed { errno } => FAILED | errno as u64,
        }
    }

    /// The meaning of a number. There is none without a meaning.
    #[must_use]
    pub const fn from_value(value: u64) -> Self {
        match value & FAILED {
            FAILED => Self::Failed { errno: value as u32 },
            COMPLETE => Self::Complete(value & !FAILED),
            _ => Self::Written(value & !FAILED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/protocol.md#files-that-are-handed-over
    #[test]
    fn the_upper_two_bits_say_what_a_number_is() {
        for (count, value) in [
            (FileCount::Written(0), 0),
            (FileCount::Written(0x1234), 0x1234),
            (FileCount::Complete(0x1234), 0x8000_0000_0000_1234),
            (FileCount::Failed { errno: 28 }, 0xc000_0000_0000_001c),
        ] {
            assert_eq!((count.value(), FileCount::from_value(value)), (value, count));
        }
    }
}
