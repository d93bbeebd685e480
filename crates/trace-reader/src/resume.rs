//! Where reading can go on after damage: a record that says whose records follow, with sound ones behind it.

use trace_format::large::LargeBlobStart;
use trace_format::metadata::{MAGIC_WORD, Metadata};
use trace_format::record::{MAX_RECORD_WORDS, Record, RecordHeader};
use trace_format::units::Words;

/// So many records must be sound before reading is resumed at a place; fewer at the end of the input.
const SOUND_RECORDS: usize = 4;
/// So many bytes from a place on are enough to judge it.
pub(crate) const JUDGED_BYTES: usize = SOUND_RECORDS * Words(MAX_RECORD_WORDS).bytes();

/// So many bytes of records are looked at, if so many are at hand and the next one goes beyond them.
const SEEN_BYTES: usize = JUDGED_BYTES - Words(MAX_RECORD_WORDS).bytes();

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Reading can go on here.
    Found(usize),
    /// Not before here; from here on, more bytes are needed to decide.
    Unknown(usize),
}

/// Looks for a place from `from` on. The magic number may stand anywhere, because bytes may have got lost;
/// other records, whose first word is less telling, only whole words behind the start of `bytes`.
//= docs/format.md#damage
pub(crate) fn search(bytes: &[u8], from: usize, is_end: bool) -> Search {
    let mut place = from;
    while let Some(word) = bytes.get(place..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*word);
        let is_candidate = word == MAGIC_WORD || place.is_multiple_of(8) && is_provider(word);
        if is_candidate {
            match is_sound(bytes.get(place..).unwrap_or_default(), is_end) {
                Some(true) => return Search::Found(place),
                Some(false) => {}
                None => return Search::Unknown(place),
            }
        }
        place += 1;
    }
    Search::Unknown(place.min(bytes.len()))
}

/// Whether going from record to record leads from `start` to a place, and not past it.
pub(crate) fn leads_to(bytes: &[u8], start: usize, place: usize) -> bool {
    let mut at = start;
    while at < place {
        let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) else { return false };
        let header = RecordHeader(u64::from_le_bytes(*word));
        match header.size() {
            Words(0) if header.0 == 0 => at += 8,
            Words(0) => return false,
            size => at = at.saturating_add(size.bytes()),
        }
    }
    at == place
}

/// Whether a sound record that readers do not know whole could be taken for damage, because of what it
/// contains: then a program could write records of another one. Only places at whole words count: readers
/// ignore other places inside a sound record.
pub(crate) fn may_be_inside(record: &[u8]) -> bool {
    match search(record, size_of::<u64>(), false) {
        Search::Found(_) => true,
        Search::Unknown(place) => place + size_of::<u64>() <= record.len(),
    }
}

/// Whether records go on from `start`, so that the position cannot have been lost before it: as many sound
/// ones as a place to resume at has. Records of later versions among them say nothing.
//= docs/format.md#damage
pub(crate) fn goes_on(bytes: &[u8], start: usize, is_end: bool) -> bool {
    let (mut at, mut sound) = (start, 0);
    while sound < SOUND_RECORDS {
        let rest = bytes.get(at..).unwrap_or_default();
        // As far as can be seen: at the end of the input, in a large blob, or behind many records of later
        // versions.
        let as_far = || match is_end {
            true => sound > 1 || rest.is_empty() && at <= bytes.len(),
            false => at >= start + SEEN_BYTES || matches!(LargeBlobStart::decode(rest), Ok(Some(_))),
        };
        let Some(word) = rest.first_chunk::<8>() else { return as_far() };
        let size = RecordHeader(u64::from_le_bytes(*word)).size().bytes();
        let Some(record) = rest.get(..size) else { return as_far() };
        match Record::decode(record) {
            Ok(Record::Unknown { .. } | Record::Metadata(Metadata::Unknown)) => {}
            Ok(_) => sound += 1,
            Err(_) => return false,
        }
        at += size;
    }
    true
}

/// A provider info or a provider section, as they are written: no bit is set where there must be none.
fn is_provider(word: u64) -> bool {
    let (size, name_bytes) = (RecordHeader(word).size(), (word >> 52) as usize);
    match word & 0xf_000f {
        0x1_0000 => name_bytes < 256 && size == Words(1).plus(Words::for_bytes(name_bytes)),
        0x2_0000 => name_bytes == 0 && size == Words(1),
        _ => false,
    }
}

/// Whether several well-formed records follow from here on; none if more bytes are needed to decide.
fn is_sound(bytes: &[u8], is_end: bool) -> Option<bool> {
    let mut rest = bytes;
    for number in 0..SOUND_RECORDS {
        // What the end of the input cuts off says nothing.
        let at_end = || is_end.then_some(number > 1 || rest.is_empty());
        let Some(word) = rest.first_chunk::<8>() else { return at_end() };
        let size = RecordHeader(u64::from_le_bytes(*word)).size();
        if size > Words(MAX_RECORD_WORDS) {
            return Some(false);
        }
        let Some((record, behind)) = rest.split_at_checked(size.bytes()) else { return at_end() };
        if matches!(
            Record::decode(record),
            Ok(Record::Unknown { .. } | Record::Metadata(Metadata::Unknown)) | Err(_)
        ) {
            return Some(false);
        }
        rest = behind;
    }
    Some(true)
}

#[cfg(test)]
mod tests;
