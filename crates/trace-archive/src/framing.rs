//! The framing records of an archive, which the manager writes around the data of providers.
//!
//! Each part of a provider begins with the magic number record, legal anywhere, as a point where a reader of
//! a damaged file can start again.

use trace_format::loss::{LedgerRecord, LossCode, LossRecord};
use trace_format::metadata::{EVENT_BUFFER_FULL, MAGIC_WORD, Metadata};
use trace_format::sink::Sink;
use trace_format::slab::Loss;
use trace_format::units::{ProviderId, Ticks};

/// Appends records to bytes.
pub struct ByteSink<'a>(pub &'a mut Vec<u8>);

impl Sink for ByteSink<'_> {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

/// Begins an archive, or a part of it.
pub fn magic(out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC_WORD.to_le_bytes());
}

/// Begins a provider's first part.
pub fn provider_info(id: ProviderId, name: &str, out: &mut Vec<u8>) {
    magic(out);
    // A registered name has at most 100 bytes; the record takes 255.
    metadata(&Metadata::ProviderInfo { id, name: name.as_bytes() }, out);
}

/// Reports that records of a provider are missing, without their number.
pub fn lost_without_number(id: ProviderId, name: &str, out: &mut Vec<u8>) {
    provider_info(id, name, out);
    loss(id, LossCode::DAMAGED_COUNTERS, Loss { count: 1, ..Loss::default() }, out);
}

/// Begins a further part of a provider.
pub fn provider_section(id: ProviderId, out: &mut Vec<u8>) {
    magic(out);
    metadata(&Metadata::ProviderSection { id }, out);
}

/// Remarks that a provider's buffer filled up.
pub fn buffer_filled_up(id: ProviderId, out: &mut Vec<u8>) {
    metadata(&Metadata::ProviderEvent { id, event: EVENT_BUFFER_FULL }, out);
}

/// Writes how a provider's records add up.
pub fn ledger(record: LedgerRecord, out: &mut Vec<u8>) {
    let start = out.len();
    if LedgerRecord::blob(&record.to_bytes()).encode(&mut ByteSink(out)).is_err() {
        debug_assert!(false, "a ledger is within the limits");
        out.truncate(start);
    }
}

/// Reports lost records of a provider.
pub fn loss(provider: ProviderId, reason: LossCode, lost: Loss, out: &mut Vec<u8>) {
    let record =
        LossRecord { provider, reason, count: lost.count, first: Ticks(lost.first), last: Ticks(lost.last) };
    let start = out.len();
    if LossRecord::blob(&record.to_bytes()).encode(&mut ByteSink(out)).is_err() {
        debug_assert!(false, "a loss blob is within the limits");
        out.truncate(start);
    }
}

fn metadata(record: &Metadata<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    if record.encode(&mut ByteSink(out)).is_err() {
        debug_assert!(false, "names are within the limits");
        out.truncate(start);
    }
}
