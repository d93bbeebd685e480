//! Helpers shared by the tests of all kinds of record.

use std::vec::Vec;

use crate::error::{DecodeError, EncodeError};
use crate::metadata::Metadata;
use crate::record::{Record, RecordHeader};
use crate::sink::Sink;

/// Collects words.
#[derive(Default)]
pub(crate) struct WordSink(pub Vec<u64>);

impl Sink for WordSink {
    fn word(&mut self, word: u64) {
        self.0.push(word);
    }
}

/// The words as they stand in a file.
pub(crate) fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The words of an encoded record.
pub(crate) fn encode(record: &Record<'_>) -> Result<Vec<u64>, EncodeError> {
    let mut sink = WordSink::default();
    let result = record.encode(&mut sink);
    if result.is_err() {
        assert_eq!(sink.0, [], "a refused record leaves nothing behind");
    }
    result.map(|()| sink.0)
}

/// The words, with a header that announces as many as there are.
pub(crate) fn sized(words: &[u64]) -> Vec<u64> {
    let mut sized = words.to_vec();
    sized[0] = sized[0] & !0xfff0 | (words.len() as u64) << 4;
    sized
}

/// Decodes words that must not be a record.
pub(crate) fn decode_error(words: &[u64]) -> DecodeError {
    Record::decode(&bytes(words)).unwrap_err()
}

/// An error about a part that needs some words and finds fewer.
pub(crate) fn past_end(what: &'static str, expected: usize, found: usize) -> DecodeError {
    use crate::units::Words;
    DecodeError::PastEnd { what, expected: Words(expected), found: Words(found) }
}

/// Checks an example in both directions, and properties of every record.
#[track_caller]
pub(crate) fn check_golden(words: &[u64], record: Record<'_>) {
    let encoded = encode(&record).unwrap();
    assert_eq!(encoded, words, "encoded {encoded:#018x?}, expected {words:#018x?}");
    check_decode(words, record);
}

/// Checks an example that is read but not written like this.
#[track_caller]
pub(crate) fn check_decode(words: &[u64], record: Record<'_>) {
    // Bytes after the record must be ignored.
    let mut whole = bytes(words);
    let length = whole.len();
    whole.extend([0xff; 64]);
    let decoded = Record::decode(&whole[..length]);
    assert_eq!(decoded, Ok(record));
    // A decoded record is written with the same meaning.
    if let Ok(again) = encode(&decoded.unwrap()) {
        assert_eq!(Record::decode(&bytes(&again)), Ok(record));
    }

    let header = RecordHeader(words[0]);
    assert_eq!(header.size().0, words.len());
    for cut in 0..length {
        let error = Record::decode(&whole[..cut]).unwrap_err();
        assert!(matches!(error, DecodeError::Size { found, .. } if found == cut), "{error}");
    }
    let is_magic = record == Record::Metadata(Metadata::TraceInfoMagic);
    let is_unknown = matches!(record, Record::Unknown { .. });
    if !is_magic && !is_unknown {
        // A later version of the format appends words.
        let mut extended = words.to_vec();
        extended.extend([0, 0]);
        assert_eq!(Record::decode(&bytes(&sized(&extended))), Ok(record));
        for shorter in 1..words.len() {
            let _ = Record::decode(&bytes(&sized(&words[..shorter])));
        }
    }
}
