//! Fast parser for an event of the usual form.
//!
//! All other forms, incomplete events and invalid JSON are left to `serde_json`, which also reports errors.

use super::entry::Entry;
use std::borrow::Cow;
use std::ops::Range;

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
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
            let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
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
    fn members(&mut self, take: &mut dyn FnMut(&mut Self, Range<usize>) -> Option<()>) -> Option<()> {
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

/// An event at the beginning of some bytes, and its length.
pub(super) fn event(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let mut cursor = Cursor { bytes, at: 0 };
    let mut members: [Option<Range<usize>>; MEMBERS.len()] = [const { None }; MEMBERS.len()];
    let mut arguments = Vec::new();
    cursor.members(&mut |cursor, key| {
        let name = &bytes[key.start + 1..key.end - 1];
        if name == b"args" && cursor.peek()? == b'{' {
            arguments.clear();
            return cursor.members(&mut |cursor, key| {
                arguments.push((key, cursor.value()?));
                Some(())
            });
        }
        let value = cursor.value()?;
        if let Some(place) = MEMBERS.iter().position(|member| member.as_bytes() == name) {
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
        args: arguments
            .into_iter()
            .map(|(key, value)| {
                let name = text.get(key.start + 1..key.end - 1).unwrap_or_default();
                (Cow::Borrowed(name), text.get(value).unwrap_or_default())
            })
            .collect(),
    };
    Some((entry, cursor.at))
}

/// In the order in which they are taken above.
const MEMBERS: [&str; 16] = [
    "ph", "name", "cat", "ts", "dur", "pid", "tid", "id", "id2", "s", "bp", "bind_id", "flow_in", "flow_out",
    "tts", "tdur",
];
