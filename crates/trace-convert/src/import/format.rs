//! Which format a text or a file has, by its first bytes.

use super::{ImportError, ftrace, json, perfetto};
use crate::Summary;
use std::io::{Read, Write};
use trace_format::metadata::MAGIC_WORD;

/// Formats that are imported into archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Chrome's or Fuchsia's JSON.
    Json,
    /// Text of Linux's ftrace.
    Ftrace,
    /// Perfetto's packets.
    Perfetto,
}

impl Format {
    /// The format of a file, by its first bytes, which may be all of it; none if it is an archive or
    /// something else.
    #[must_use]
    pub fn of(start: &[u8], is_whole: bool) -> Option<Self> {
        if is_archive(start) {
            return None;
        }
        // A line feed may begin JSON as well as a packet.
        if perfetto::is_perfetto(start, is_whole) {
            return Some(Self::Perfetto);
        }
        // Lines may begin with a name, or a loss, in brackets.
        match json::is_json(start) && !(json::is_odd_list(start) && ftrace::is_ftrace(start)) {
            true => Some(Self::Json),
            false => ftrace::is_ftrace(start).then_some(Self::Ftrace),
        }
    }

    /// Whether the imported events are in the order of their times.
    #[must_use]
    pub const fn is_sorted(self) -> bool {
        matches!(self, Self::Ftrace | Self::Perfetto)
    }

    /// Converts a trace of this format into an archive.
    ///
    /// # Errors
    /// The input cannot be read or is no such trace, or the archive cannot be written.
    pub fn import(self, input: impl Read, output: impl Write + Send) -> Result<Summary, ImportError> {
        match self {
            Self::Json => json::import(input, output),
            Self::Ftrace => ftrace::import(input, output),
            Self::Perfetto => perfetto::import(input, output),
        }
    }
}

/// Whether a file begins like an archive.
pub(super) fn is_archive(start: &[u8]) -> bool {
    start.starts_with(&MAGIC_WORD.to_le_bytes())
}
