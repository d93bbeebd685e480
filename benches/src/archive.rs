//! Archives in memory.

use trace_format::refs::StringRef;
use trace_format::sink::Sink;
use trace_format::units::StringIndex;

/// Encoded records.
#[derive(Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }
}

/// A string of the table.
///
/// # Panics
/// The index is 0 or too large.
#[must_use]
pub fn index(index: u16) -> StringRef<'static> {
    StringRef::Index(StringIndex::new(index).expect("a valid index"))
}
