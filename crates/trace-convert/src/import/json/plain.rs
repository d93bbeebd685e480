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

    fn digits(&mut self) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?;
        let count = rest.iter().position(|byte| !byte.is_ascii_digit())?;
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

    /// The members of an object without objects in it, except one whose name the function accepts.
    #[inline]
    fn members(&mut self, mut take: impl FnMut(&mut Self, Range<usize>) -> Option<()>) -> Option<()> {
        self.take(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.peek()?;
            let (key, has_escapes) = self.string()?;
            if has_escapes {
                return None;
            }
            self.take(b':')?;
            take(self, key)?;
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
}

/// The number of members that are taken.
const MEMBERS: usize = 16;

/// In the order in which they are taken below.
#[inline]
const fn place_of(member: &[u8]) -> Option<usize> {
    Some(match member {
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
        _ => return None,
    })
}

/// Places of the names and values of arguments, with their quotes.
pub(super) type Places = Vec<(Range<usize>, Range<usize>)>;

/// An event at the beginning of some bytes, and its length. The places of its arguments are put into a list,
/// which may have had others.
pub(super) fn event<'a>(bytes: &'a [u8], arguments: &'a mut Places) -> Option<(Entry<'a>, usize)> {
    let mut cursor = Cursor { bytes, at: 0 };
    let mut members: [Option<Range<usize>>; MEMBERS] = [const { None }; MEMBERS];
    arguments.clear();
    cursor.members(|cursor, key| {
        let name = &bytes[key.start + 1..key.end - 1];
        if name == b"args" && cursor.peek()? == b'{' {
            arguments.clear();
            return cursor.members(|cursor, key| {
                arguments.push((key, cursor.value()?));
                Some(())
            });
        }
        let value = cursor.value()?;
        if let Some(place) = place_of(name) {
            // serde_json reports duplicate members.
            if members[place].replace(value).is_some() {
                return None;
            }
        }
        Some(())
    })?;
    let text = std::str::from_utf8(&bytes[..cursor.at]).ok()?;
    let raw = |place: usize| text.get(members[place].clone()?);
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
    let entry = Entry {
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
        args: Args::Plain { text, places: arguments },
    };
    Some((entry, cursor.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(bytes in prop::collection::vec(prop_oneof![
            any::<u8>(), 0x18..0x28_u8, 0x58..0x60_u8, Just(0x80_u8), Just(0xa2_u8), Just(0xdc_u8)
        ], 0..40)) {
            let expected = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            prop_assert_eq!(first_special(&bytes), expected);
        }
    }
}
