//! Memory dumps: reports of programs on what they use memory for, all at one moment.

use crate::strict_enum::strict_enum;

strict_enum! {
    /// The level of detail of a memory dump.
    MemoryDumpLevel {
        /// Sums, which cost little to find out.
        Light = 1,
        /// Everything that is known.
        Detailed = 2,
    }
}

impl MemoryDumpLevel {
    /// A word for people, and for archives.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Detailed => "detailed",
        }
    }
}

/// Periodic memory dumps of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryDumps {
    /// Interval between dumps; the first is taken when recording begins. At least 1.
    pub interval_milliseconds: u64,
    /// The level of detail of the dumps.
    pub level: MemoryDumpLevel,
}

/// A dump that was requested from programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryDump {
    /// Its number, the same in all programs, and never used again by this manager.
    pub id: u64,
    /// How many programs received the request.
    pub providers: u32,
    /// How many of them have written their values within a second. None if one of them cannot report that.
    pub written: Option<u32>,
}
