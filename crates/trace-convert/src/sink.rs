//! The bytes of records that are encoded.

use trace_format::sink::Sink;

/// Encoded records that are not written yet.
pub(crate) struct Bytes(pub Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}
