//! Fast parser for an event of the usual form.
//!
//! All other forms, incomplete events and invalid JSON are left to `serde_json`, which also reports errors.

use super::entry::{Args, Entry};
use std::borrow::Cow;
use std::ops::Range;

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A byte in each of eight.
const EACH: u64 = 0x0101_0101_0101_0101;
const HIGHEST: u64 = 0x80 * EACH;

/// The highest bit of the first of eight bytes that is a quote, a backslash or a control character. Bits of
/// later bytes may be set, too.
#[inline]
const fn special(eight: u64) -> u64 {
    let (quote, backslash) = (eight ^ (b'"' as u64 * EACH), eight ^ (b'\\' as u64 * EACH));
    let is_zero = quote.wrapping_sub(EACH) & !quote | backslash.wrapping_sub(EACH) & !backslash;
    (is_zero | eight.wrapping_sub(0x20 * EACH) & !eight) & HIGHEST
}

/// The place of the first quote, backslash or control character.
#[inline]
fn first_special(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let found = special(u64::from_le_bytes(*eight));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).map(|place| at + place)
}

/// How many digits there are before another byte.
#[inline]
fn digits(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let difference = u64::from_le_bytes(*eight) ^ (u64::from(b'0') * EACH);
        // A difference of more than 9 has its highest bit or gets it.
        let others = (difference | ((difference & !HIGHEST) + 0x76 * EACH)) & HIGHEST;
        if others != 0 {
            return Some(at + others.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|byte| !byte.is_ascii_digit()).map(|place| at + place)
}

impl Cursor<'_> {
    /// The next byte that is no white space; it is not consumed.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at)? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    #[inline]
    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// A string with its quotes, and whether it has escapes.
    #[inline]
    fn string(&mut self) -> Option<(Range<usize>, bool)> {
        let start = self.at;
        let mut has_escapes = false;
        self.take(b'"')?;
        loop {
            let rest = self.bytes.get(self.at..)?;
            let end = first_special(rest)?;
            match rest[end] {
                b'"' => {
                    self.at += end + 1;
                    return Some((start..self.at, has_escapes));
                }
                b'\\' => {
                    has_escapes = true;
                    self.at += end + 2;
                }
                _ => return None,
            }
        }
    }

    #[inline]
    fn digits(&mut self) -> Option<usize> {
        let count = digits(self.bytes.get(self.at..)?)?;
        self.at += count;
        Some(count)
    }

    /// Exactly JSON's syntax of numbers; a byte must follow.
    fn number(&mut self) -> Option<()> {
        self.at += usize::from(*self.bytes.get(self.at)? == b'-');
        let has_zero = *self.bytes.get(self.at)? == b'0';
        let whole = self.digits()?;
        if whole == 0 || has_zero && whole > 1 {
            return None;
        }
        if *self.bytes.get(self.at)? == b'.' {
            self.at += 1;
            (self.digits()? > 0).then_some(())?;
        }
        if matches!(self.bytes.get(self.at)?, b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at)?, b'+' | b'-'));
            (self.digits()? > 0).then_some(())?;
        }
        Some(())
    }

    /// A value without parts.
    #[inline]
    fn value(&mut self) -> Option<Range<usize>> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => {
                let (range, has_escapes) = self.string()?;
                // Escapes may be invalid.
                return (!has_escapes).then_some(range);
            }
            b'-' | b'0'..=b'9' => self.number()?,
            _ => {
                let rest = self.bytes.get(self.at..)?;
                let word =
                    ["true", "false", "null"].into_iter().find(|word| rest.starts_with(word.as_bytes()))?;
                self.at += word.len();
            }
        }
        Some(start..self.at)
    }

    /// The members of an object; the function takes each value. Their keys are where they were in the object
    /// before, or are looked for.
    #[inline]
    fn members(
        &mut self,
        keys: &mut Keys,
        mut take: impl FnMut(&mut Self, &mut Keys, Key) -> Option<()>,
    ) -> Option<()> {
        self.take(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let key = match keys.expected(&self.bytes[self.at..]) {
                Some((name, length)) => {
                    let key = Key { name: self.at + name.start..self.at + name.end, meaning: keys.meaning() };
                    self.at += length;
                    key
                }
                None => self.other_key(keys)?,
            };
            keys.next += 1;
            take(self, keys, key)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// A key that is not the expected one, which will be expected at this place in the next event.
    fn other_key(&mut self, keys: &mut Keys) -> Option<Key> {
        let start = self.at;
        self.peek()?;
        let (name, has_escapes) = self.string()?;
        if has_escapes {
            return None;
        }
        self.take(b':')?;
        self.peek()?;
        let meaning = meaning(&self.bytes[name.start + 1..name.end - 1]);
        keys.expect(&self.bytes[start..self.at], name.start - start..name.end - start, meaning);
        Some(Key { name, meaning })
    }
}

/// A member's name, with its quotes, and what it means at the top of an event.
struct Key {
    name: Range<usize>,
    meaning: usize,
}

/// Bytes of a key that are compared at once.
const KEY_BYTES: usize = 16;
/// So many members of an event are expected to have the keys that they had in the event before.
const MAX_KEYS: usize = 32;

/// The bytes from the end of the value before to the beginning of a value.
#[derive(Clone, Copy, Default)]
struct ExpectedKey {
    bytes: [u128; 2],
    /// Which of the bytes count.
    masks: [u128; 2],
    length: u8,
    /// The name, with its quotes.
    name: (u8, u8),
    meaning: u8,
}

/// Keys of the event before, by their places: events of a trace are alike.
#[derive(Default)]
pub(super) struct Keys {
    keys: [ExpectedKey; MAX_KEYS],
    next: usize,
}

impl Keys {
    /// Whether the expected key comes next: where in the bytes its name is, and where its value begins.
    #[inline]
    fn expected(&self, bytes: &[u8]) -> Option<(Range<usize>, usize)> {
        let key = self.keys.get(self.next).filter(|key| key.length > 0)?;
        let both: &[u8; 2 * KEY_BYTES] = bytes.first_chunk()?;
        let (first, second) = both.split_at(KEY_BYTES);
        let number = |bytes: &[u8]| bytes.try_into().map(u128::from_le_bytes);
        let is_first = number(first).is_ok_and(|bytes| bytes & key.masks[0] == key.bytes[0]);
        let is_second =
            key.masks[1] == 0 || number(second).is_ok_and(|bytes| bytes & key.masks[1] == key.bytes[1]);
        (is_first && is_second)
            .then(|| (usize::from(key.name.0)..usize::from(key.name.1), usize::from(key.length)))
    }

    #[inline]
    fn meaning(&self) -> usize {
        self.keys.get(self.next).map_or(OTHER, |key| usize::from(key.meaning))
    }

    /// Expects a key at this place, if it is not too long.
    fn expect(&mut self, bytes: &[u8], name: Range<usize>, meaning: usize) {
        let Some(key) = self.keys.get_mut(self.next) else { return };
        *key = ExpectedKey::default();
        let mut both = [0; 2 * KEY_BYTES];
        let Some(place) = both.get_mut(..bytes.len()) else { return };
        place.copy_from_slice(bytes);
        for (half, chunk) in both.chunks_exact(KEY_BYTES).enumerate() {
            let count = bytes.len().saturating_sub(half * KEY_BYTES).min(KEY_BYTES);
            key.bytes[half] = chunk.try_into().map_or(0, u128::from_le_bytes);
            key.masks[half] = if count == KEY_BYTES { u128::MAX } else { (1 << (8 * count)) - 1 };
        }
        (key.length, key.meaning) = (bytes.len() as u8, meaning as u8);
        key.name = (name.start as u8, name.end as u8);
    }
}

/// The number of members that are taken.
const MEMBERS: usize = 16;

/// What other members than those mean: the arguments, or nothing.
const ARGUMENTS: usize = MEMBERS;
const OTHER: usize = MEMBERS + 1;

/// The place of a member, in the order in which they are taken below.
const fn meaning(member: &[u8]) -> usize {
    match member {
        b"ph" => 0,
        b"name" => 1,
        b"cat" => 2,
        b"ts" => 3,
        b"dur" => 4,
        b"pid" => 5,
        b"tid" => 6,
        b"id" => 7,
        b"id2" => 8,
        b"s" => 9,
        b"bp" => 10,
        b"bind_id" => 11,
        b"flow_in" => 12,
        b"flow_out" => 13,
        b"tts" => 14,
        b"tdur" => 15,
        b"args" => ARGUMENTS,
        _ => OTHER,
    }
}

/// A part of a text of less than 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// None if it is beyond the limit.
    pub fn new(range: Range<usize>) -> Option<Self> {
        Some(Self { start: u32::try_from(range.start).ok()?, end: u32::try_from(range.end).ok()? })
    }

    #[inline]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    #[inline]
    const fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// An event of the usual form: where its members are.
#[derive(Debug)]
pub(super) struct PlainEvent {
    /// The event.
    pub text: Span,
    /// The values, relative to the event; empty ones are missing.
    members: [Span; MEMBERS],
    /// Which ones of the batch's arguments are its own.
    arguments: Span,
}

/// An event at the beginning of some bytes, which are at a place of a text. The names and values of its
/// arguments are added to a list.
pub(super) fn event(
    bytes: &[u8],
    place: usize,
    keys: &mut Keys,
    arguments: &mut Vec<(Span, Span)>,
) -> Option<PlainEvent> {
    let mut cursor = Cursor { bytes, at: 0 };
    let mut members = [Span::default(); MEMBERS];
    let first = arguments.len();
    keys.next = 0;
    let found = cursor.members(keys, |cursor, keys, key| {
        if key.meaning == ARGUMENTS && cursor.peek()? == b'{' {
            arguments.truncate(first);
            return cursor.members(keys, |cursor, _, key| {
                arguments.push((Span::new(key.name)?, Span::new(cursor.value()?)?));
                Some(())
            });
        }
        let value = cursor.value()?;
        if key.meaning == ARGUMENTS {
            return None;
        }
        if let Some(member) = members.get_mut(key.meaning) {
            // serde_json reports duplicate members.
            if !std::mem::replace(member, Span::new(value)?).is_empty() {
                return None;
            }
        }
        Some(())
    });
    let text = found.and_then(|()| Span::new(place..place + cursor.at));
    let own = Span::new(first..arguments.len());
    match (text, own) {
        (Some(text), Some(own)) => Some(PlainEvent { text, members, arguments: own }),
        _ => {
            arguments.truncate(first);
            None
        }
    }
}

impl PlainEvent {
    /// The event as `serde_json` would find it; none if that would report an error.
    pub fn entry<'a>(&self, bytes: &'a [u8], arguments: &'a [(Span, Span)]) -> Option<Entry<'a>> {
        let text = std::str::from_utf8(bytes).ok()?;
        let raw = |place: usize| {
            let span = self.members[place];
            if span.is_empty() { None } else { text.get(span.range()) }
        };
        let plain =
            |raw: &'_ str| raw.strip_prefix('"')?.strip_suffix('"').map(str::len).map(|length| 1..1 + length);
        let word = |place: usize| -> Option<Option<Cow<'_, str>>> {
            match raw(place) {
                None | Some("null") => Some(None),
                // Text, or else an error.
                Some(value) => Some(Some(Cow::Borrowed(value.get(plain(value)?)?))),
            }
        };
        let flag = |place: usize| match raw(place) {
            None | Some("false") => Some(false),
            Some("true") => Some(true),
            Some(_) => None,
        };
        // `null` counts as missing.
        let value = |place: usize| raw(place).filter(|raw| *raw != "null");
        Some(Entry {
            ph: word(0)?,
            name: value(1),
            cat: value(2),
            ts: value(3),
            dur: value(4),
            pid: value(5),
            tid: value(6),
            id: value(7),
            id2: value(8),
            s: word(9)?,
            bp: word(10)?,
            bind_id: value(11),
            flow_in: flag(12)?,
            flow_out: flag(13)?,
            tts: value(14),
            tdur: value(15),
            args: Args::Plain { text, places: arguments.get(self.arguments.range())? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn digits_are_counted(bytes in prop::collection::vec(prop_oneof![
            b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', any::<u8>(), Just(b'/'), Just(b':'), Just(0xb5_u8)
        ], 0..40)) {
            prop_assert_eq!(digits(&bytes), bytes.iter().position(|byte| !byte.is_ascii_digit()));
        }

        #[test]
        fn the_first_special_byte_is_found(bytes in prop::collection::vec(prop_oneof![
            any::<u8>(), 0x18..0x28_u8, 0x58..0x60_u8, Just(0x80_u8), Just(0xa2_u8), Just(0xdc_u8)
        ], 0..40)) {
            let expected = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            prop_assert_eq!(first_special(&bytes), expected);
        }
    }
}
