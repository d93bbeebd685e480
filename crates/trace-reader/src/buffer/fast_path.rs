//! The common case of validation: an event whose thread and strings are all defined indices.
//!
//! Most recorded events are of this form, which a few words show. All other records are left to full
//! validation.

use super::validate::is_defined;

const EVENT: u64 = 4;
const INLINE: u64 = 0x8000;

/// The definitions that a record may refer to, as bits.
#[derive(Clone, Copy)]
pub(super) struct Defined<'a> {
    pub strings: &'a [u64],
    pub threads: &'a [u64],
}

impl Defined<'_> {
    /// Whether a reference is the empty string or a defined index.
    #[inline(always)]
    fn has_string(self, reference: u64) -> bool {
        reference < INLINE && (reference == 0 || is_defined(self.strings, reference as u16))
    }
}

/// The time at which a record's event was emitted; none if that needs full validation.
//= docs/format.md#event-record
#[inline]
pub(super) fn emitted_at(record: &[u8], defined: Defined<'_>) -> Option<u64> {
    let (words, []) = record.as_chunks::<8>() else {
        return None;
    };
    let [header, timestamp, ..] = words else {
        return None;
    };
    let header = u64::from_le_bytes(*header);
    let thread = header >> 24 & 0xff;
    let is_common = header & 0xf == EVENT
        && (header >> 4 & 0xfff) as usize == words.len()
        && thread != 0
        && is_defined(defined.threads, thread as u16)
        && defined.has_string(header >> 32 & 0xffff)
        && defined.has_string(header >> 48);
    if !is_common {
        return None;
    }
    let mut rest = &words[2..];
    for _ in 0..header >> 20 & 0xf {
        let argument = u64::from_le_bytes(*rest.first()?);
        if !defined.has_string(argument >> 16 & 0xffff) {
            return None;
        }
        let size = argument >> 4 & 0xfff;
        let expected = match argument & 0xf {
            // Null, 32 bits and booleans are in the header.
            0 | 1 | 2 | 9 => 1,
            // 64 bits, doubles, pointers and koids.
            3 | 4 | 5 | 7 | 8 => 2,
            6 => match argument >> 32 & 0xffff {
                inline if inline > INLINE => 1 + (inline - INLINE).div_ceil(8),
                reference if defined.has_string(reference) => 1,
                _ => return None,
            },
            _ => return None,
        };
        if size != expected {
            return None;
        }
        rest = rest.get(size as usize..)?;
    }
    let timestamp = u64::from_le_bytes(*timestamp);
    match (header >> 16 & 0xf, rest) {
        // An instant has a scope or not.
        (0, [] | [_]) | (2 | 3, []) | (1 | 5..=10, [_]) => Some(timestamp),
        (4, [end]) => Some(u64::from_le_bytes(*end)),
        _ => None,
    }
}
