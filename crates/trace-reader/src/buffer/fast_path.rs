//! The common case of validation: an event whose thread and strings are all defined indices.
//!
//! Most recorded events are of this form, which a few words show. All other records are left to full
//! validation.

const EVENT: u64 = 4;
const INLINE: u64 = 0x8000;
/// Words of the set of defined strings.
pub(super) const STRING_WORDS: usize = INLINE as usize / 64;

/// The definitions that a record may refer to, as bits.
#[derive(Clone, Copy)]
pub(super) struct Defined<'a> {
    /// With the empty string, 0.
    pub strings: &'a [u64; STRING_WORDS],
    /// Without 0, which stands for an inline thread.
    pub threads: &'a [u64; 4],
}

impl Defined<'_> {
    /// Whether a reference is the empty string or a defined index.
    #[inline(always)]
    fn has_string(self, reference: u64) -> bool {
        // There are no bits for inline ones.
        has_bit(self.strings, reference)
    }

    #[inline(always)]
    fn has_thread(self, thread: u64) -> bool {
        has_bit(self.threads, thread)
    }
}

#[inline(always)]
fn has_bit(bits: &[u64], number: u64) -> bool {
    bits.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 != 0)
}

/// An event that needs no full validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Common {
    /// Size of its record.
    pub words: usize,
    pub timestamp: u64,
    /// When it was emitted: a complete duration at its end.
    pub emitted_at: u64,
}

/// Words of an argument by the bits of its type; 0 where there is more to look at.
const ARGUMENT_WORDS: [u8; 16] = [1, 1, 1, 2, 2, 2, 0, 2, 2, 1, 0, 0, 0, 0, 0, 0];
/// Words behind the arguments by the bits of the event's type; those of an instant have a scope or not.
const TAIL_WORDS: [u8; 16] = [0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, NO_TAIL, NO_TAIL, NO_TAIL, NO_TAIL, NO_TAIL];
/// The last scope of an instant.
const MAX_SCOPE: u64 = 2;
/// Of a type that needs full validation.
const NO_TAIL: u8 = u8::MAX;

/// The event at the beginning of some words; none if it is something else or needs full validation.
//= docs/format.md#event-record
#[inline(always)]
pub(super) fn common(words: &[[u8; 8]], defined: Defined<'_>) -> Option<Common> {
    let header = u64::from_le_bytes(*words.first()?);
    let is_common = header & 0xf == EVENT
        && defined.has_thread(header >> 24 & 0xff)
        && defined.has_string(header >> 32 & 0xffff)
        && defined.has_string(header >> 48);
    if !is_common {
        return None;
    }
    let size = (header >> 4 & 0xfff) as usize;
    let record = words.get(..size)?;
    let timestamp = u64::from_le_bytes(*record.get(1)?);
    let mut at = 2;
    for _ in 0..header >> 20 & 0xf {
        let argument = u64::from_le_bytes(*record.get(at)?);
        if !defined.has_string(argument >> 16 & 0xffff) {
            return None;
        }
        let expected = match ARGUMENT_WORDS[(argument & 0xf) as usize] {
            0 => string_words(argument, defined)?,
            words => u64::from(words),
        };
        if argument >> 4 & 0xfff != expected {
            return None;
        }
        at += expected as usize;
    }
    let kind = header >> 16 & 0xf;
    let tail = size.checked_sub(at)?;
    // What is no scope may be anything.
    let has_scope = || record.last().is_some_and(|word| u64::from_le_bytes(*word) <= MAX_SCOPE);
    let is_whole = tail == usize::from(TAIL_WORDS[kind as usize]) || kind == 0 && tail == 1 && has_scope();
    if !is_whole {
        return None;
    }
    let emitted_at = if kind == 4 { u64::from_le_bytes(*record.last()?) } else { timestamp };
    Some(Common { words: size, timestamp, emitted_at })
}

/// Words of an argument that is a string; none if it is another that needs full validation.
#[inline(always)]
fn string_words(argument: u64, defined: Defined<'_>) -> Option<u64> {
    match argument >> 32 & 0xffff {
        _ if argument & 0xf != 6 => None,
        inline if inline > INLINE => Some(1 + (inline - INLINE).div_ceil(8)),
        reference => defined.has_string(reference).then_some(1),
    }
}
