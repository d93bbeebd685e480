//! Text that is not quite what an import reads: in UTF-16, compressed by `atrace -z`, or with other text
//! before its JSON. Lines and columns stay what they are.

use super::super::json;
use std::io::{self, Read};

const CHUNK_BYTES: usize = 16 << 10;
/// The line behind which `atrace` writes what it has recorded.
const ATRACE_HEADER: &[u8] = b"TRACE:";
/// Before it there are at most a few lines about the progress.
const MAX_HEADER_BYTES: usize = 4 << 10;
/// How many places of a text are tried where JSON may begin.
const MAX_PLACES: usize = 1000;
/// What may be behind JSON that is the argument of a call, or assigned to something.
const CLOSING: &[u8] = b");";
/// How much of the end of a text is examined for it.
const CLOSING_BYTES: usize = 64;

/// Whether a file begins with the byte order mark of UTF-16, and in which order.
pub(super) fn utf16_order(start: &[u8]) -> Option<bool> {
    match start {
        // A file in UTF-32 begins with these bytes, too; no program writes traces in UTF-32.
        [0xff, 0xfe, rest @ ..] => (!rest.starts_with(&[0, 0])).then_some(false),
        [0xfe, 0xff, ..] => Some(true),
        _ => None,
    }
}

/// The size of the text before the compressed data of `atrace -z`.
pub(super) fn atrace_header(start: &[u8]) -> Option<usize> {
    let head = &start[..start.len().min(MAX_HEADER_BYTES)];
    let at = memchr::memmem::find(head, ATRACE_HEADER)?;
    let begins_line = at == 0 || head[at - 1] == b'\n';
    let behind = at + ATRACE_HEADER.len();
    let breaks = head[behind..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let data = behind + breaks;
    // Method 8, and a checksum of these two bytes.
    let is_zlib = match *start.get(data..data + 2)? {
        [method, flags] => method & 0xf == 8 && (u16::from(method) << 8 | u16::from(flags)) % 31 == 0,
        _ => false,
    };
    (begins_line && breaks > 0 && is_zlib).then_some(data)
}

/// The size of the text before the JSON of a trace, if there is any.
pub(super) fn prefix(start: &[u8]) -> Option<usize> {
    let places = memchr::memchr2_iter(b'{', b'[', start).take(MAX_PLACES);
    let found = places.filter(|at| *at > 0).find(|at| json::begins_trace(&start[*at..]))?;
    // Binary data is no text.
    let is_text = !start[..found].iter().any(|byte| matches!(byte, 0..=8 | 0xe..=0x1a));
    is_text.then_some(found)
}

/// UTF-16 as UTF-8.
pub(super) struct Utf16<R> {
    input: R,
    is_big_endian: bool,
    /// Bytes that are no whole character yet.
    rest: Vec<u8>,
    decoded: Vec<u8>,
    /// How much of it was given.
    given: usize,
}

impl<R: Read> Utf16<R> {
    pub fn new(input: R, is_big_endian: bool) -> Self {
        Self { input, is_big_endian, rest: Vec::new(), decoded: Vec::new(), given: 0 }
    }

    /// Decodes more; what is not UTF-16 becomes U+FFFD.
    fn fill(&mut self) -> io::Result<()> {
        self.decoded.clear();
        self.given = 0;
        let before = self.rest.len();
        self.input.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.rest)?;
        let is_end = self.rest.len() == before;
        let order = if self.is_big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
        let (units, odd) = self.rest.as_chunks::<2>();
        let mut units: Vec<u16> = units.iter().map(|unit| order(*unit)).collect();
        // The other half of the last character may be still to come.
        let is_half = !is_end && units.last().is_some_and(|unit| matches!(unit, 0xd800..0xdc00));
        let kept = odd.len() + if is_half { 2 } else { 0 };
        units.truncate(units.len() - usize::from(is_half));
        self.rest.drain(..self.rest.len() - if is_end { 0 } else { kept });
        if is_end {
            self.rest.clear();
        }
        for char in char::decode_utf16(units) {
            let char = char.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.decoded.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.given == self.decoded.len() {
            self.fill()?;
        }
        let length = to.len().min(self.decoded.len() - self.given);
        to[..length].copy_from_slice(&self.decoded[self.given..self.given + length]);
        self.given += length;
        Ok(length)
    }
}

/// JSON whose text before it becomes spaces, and whose closing brackets of a call and semicolons behind it
/// are removed.
pub(super) struct Prefixed<R> {
    input: R,
    /// How many bytes are before the JSON.
    text: usize,
    /// The end of what was read, which may be the end of all.
    held: Vec<u8>,
    is_at_end: bool,
}

impl<R: Read> Prefixed<R> {
    pub fn new(input: R, text: usize) -> Self {
        Self { input, text, held: Vec::new(), is_at_end: false }
    }

    fn fill(&mut self) -> io::Result<()> {
        let before = self.held.len();
        self.input.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.held)?;
        let blank = self.text.min(self.held.len() - before);
        self.text -= blank;
        let new = &mut self.held[before..before + blank];
        new.iter_mut().filter(|byte| !byte.is_ascii_whitespace()).for_each(|byte| *byte = b' ');
        if self.held.len() < before + CHUNK_BYTES {
            self.is_at_end = true;
            let is_closing = |byte: &u8| byte.is_ascii_whitespace() || CLOSING.contains(byte);
            let closing =
                self.held.iter().rev().take(CLOSING_BYTES).take_while(|byte| is_closing(byte)).count();
            self.held.truncate(self.held.len() - closing);
        }
        Ok(())
    }
}

impl<R: Read> Read for Prefixed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while !self.is_at_end && self.held.len() <= CLOSING_BYTES {
            self.fill()?;
        }
        let kept = if self.is_at_end { 0 } else { CLOSING_BYTES };
        let length = to.len().min(self.held.len() - kept);
        to[..length].copy_from_slice(&self.held[..length]);
        self.held.drain(..length);
        Ok(length)
    }
}
