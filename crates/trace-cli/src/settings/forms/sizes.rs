//! Sizes and times of other tools in the units of options.

use crate::args::values::{BufferSize, FileSize, MAX_BUFFER_MIB, Span};
use std::time::Duration;
use trace_config::tree::Wrong;

/// A buffer of so many kibibytes, in whole mebibytes; what is larger than possible is reduced, with a
/// message.
pub fn buffer(at: usize, kibibytes: u64, notes: &mut Vec<Wrong>) -> BufferSize {
    let mebibytes = kibibytes.div_ceil(1024).max(1);
    let size = u32::try_from(mebibytes).unwrap_or(u32::MAX).min(MAX_BUFFER_MIB);
    if u64::from(size) < mebibytes {
        let message =
            format!("a buffer of {mebibytes} MiB is reduced to {MAX_BUFFER_MIB} MiB, the largest size");
        notes.push(Wrong::new(at, message));
    }
    BufferSize(size)
}

/// A file of at most so many bytes, in a unit that an option has.
pub fn file(bytes: u64) -> FileSize {
    let is_whole = bytes.is_multiple_of(1000) || bytes.is_multiple_of(1024);
    FileSize(if is_whole { bytes } else { (bytes / 1024 * 1024).max(1024) })
}

/// So many milliseconds.
pub const fn span(milliseconds: u64) -> Span {
    Span(Duration::from_millis(milliseconds))
}
