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

/// Reports that the rest of a provider's records is missing.
pub fn rest_missing(id: ProviderId, name: &str, out: &mut Vec<u8>) {
    provider_info(id, name, out);
    loss(id, LossCode::REST_MISSING, Loss { count: 1, ..Loss::default() }, out);
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

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ProviderId = ProviderId(3);
    const INFO: [u64; 2] = [0x0030_0000_0031_0020, u64::from_le_bytes(*b"app\0\0\0\0\0")];
    /// A blob named `trace:loss`, and one named `trace:ledger`.
    const LOSS: [u64; 3] = [0x0001_0020_800a_0075, u64::from_le_bytes(*b"trace:lo"), 0x7373];
    const LEDGER: [u64; 3] = [0x0001_0028_800c_0085, u64::from_le_bytes(*b"trace:le"), 0x7265_6764];

    fn words(write: impl Fn(&mut Vec<u8>)) -> Vec<u64> {
        let mut out = Vec::new();
        write(&mut out);
        let (words, rest) = out.as_chunks::<8>();
        assert!(rest.is_empty());
        words.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    //= docs/format.md#loss-blob
    //= docs/format.md#ledger-blob
    #[test]
    fn framing_records_have_these_words() {
        assert_eq!(words(magic), [MAGIC_WORD]);
        assert_eq!(words(|out| provider_info(ID, "app", out)), [&[MAGIC_WORD][..], &INFO].concat());
        assert_eq!(words(|out| provider_section(ID, out)), [MAGIC_WORD, 0x32_0010]);
        assert_eq!(words(|out| buffer_filled_up(ID, out)), [0x33_0010]);
        let reported = [0x3_0005_0001, 7, 20, 30];
        let lost = Loss { count: 7, first: 20, last: 30 };
        assert_eq!(words(|out| loss(ID, LossCode(5), lost, out)), [&LOSS[..], &reported].concat());
        let unknown = [0x3_0026_0001, 1, 0, 0];
        assert_eq!(
            words(|out| rest_missing(ID, "app", out)),
            [&[MAGIC_WORD][..], &INFO, &LOSS, &unknown].concat()
        );
        let record = LedgerRecord { provider: ID, generated: 9, archived: 8, records: 10, uncertain: 1 };
        assert_eq!(words(|out| ledger(record, out)), [&LEDGER[..], &[0x3_0000_0001, 9, 8, 10, 1]].concat());
    }
}
