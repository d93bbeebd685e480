//! Finds the values of a JSON text one after the other, in bounded memory, and tracks the line.

use super::ImportError;
use memchr::{memchr_iter, memmem, memrchr};
use std::io::Read;
use std::sync::Arc;

const CHUNK_BYTES: usize = 256 << 10;
/// Maximum size of a value: an event, not a list of them.
const MAX_VALUE_BYTES: usize = 64 << 20;
/// How many buffers are kept that batches may still have.
const MAX_BUFFERS: usize = 4;
/// A value without an end in so many bytes may have lost it.
const DOUBTFUL_BYTES: usize = 1 << 20;
/// How much is examined of the beginning of a document.
const BEGINNING_BYTES: usize = 64 << 10;
/// How much is examined of each place where the next value may begin.
const CANDIDATE_BYTES: usize = 16 << 10;
/// How much is examined in search of such places, beside a multiple of what comes before them.
const MAX_EXAMINED_BYTES: usize = 1 << 30;
const EXAMINED_PER_BYTE: usize = 8;
/// Some programs begin UTF-8 text with it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A position, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourcePosition {
    pub line: u64,
    pub column: u64,
}

impl Default for SourcePosition {
    /// The beginning of a file.
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

impl SourcePosition {
    /// The position behind some text.
    pub fn after(self, text: &[u8]) -> Self {
        let length = text.len() as u64;
        match memrchr(b'\n', text) {
            None => Self { column: self.column + length, ..self },
            Some(last) => Self {
                line: self.line + memchr_iter(b'\n', text).count() as u64,
                column: length - last as u64,
            },
        }
    }
}

pub(super) struct Scanner<R> {
    input: R,
    /// What was read, and room behind it, which has any contents. Batches may have it, too.
    buffer: Arc<Vec<u8>>,
    /// Earlier ones, as long as batches have them, and then for the next ones.
    earlier: Vec<Arc<Vec<u8>>>,
    /// Bytes before it have been processed.
    start: usize,
    /// Bytes before it have been read.
    end: usize,
    is_at_end: bool,
    /// The place of a byte that was processed before.
    place: SourcePosition,
    /// Which byte of the buffer that is.
    placed: usize,
    /// How many bytes may still be examined in search of a next value.
    unexamined: usize,
    /// Why no more can be read, for the one who needs more.
    failed: Option<ImportError>,
}

/// A value that may be too large.
pub(super) enum Size<'a> {
    Small(&'a [u8]),
    /// It was skipped.
    Large,
    /// The text ends inside it, or cannot be read; what there is of it, if that is small.
    Cut(&'a [u8], Option<ImportError>),
}

/// The extent of a value.
enum Extent {
    Whole(usize),
    /// The text ends inside it.
    Cut,
}

impl<R: Read> Scanner<R> {
    pub fn new(input: R) -> Self {
        let place = SourcePosition::default();
        let (buffer, earlier) = (Arc::default(), Vec::new());
        let unexamined = MAX_EXAMINED_BYTES;
        let failed = None;
        Self {
            input,
            buffer,
            earlier,
            start: 0,
            end: 0,
            is_at_end: false,
            place,
            placed: 0,
            unexamined,
            failed,
        }
    }

    pub fn error(&mut self, problem: impl Into<String>) -> ImportError {
        let SourcePosition { line, column } = self.place();
        ImportError::Syntax { line, column, problem: problem.into() }
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> Result<bool, ImportError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.is_at_end {
            return Ok(false);
        }
        self.place();
        self.begin_again();
        let room = self.end + CHUNK_BYTES;
        // It is the scanner's own.
        let buffer = Arc::make_mut(&mut self.buffer);
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        let read = loop {
            match self.input.read(&mut buffer[self.end..room]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let length = read.map_err(ImportError::Read)?;
        self.end += length;
        self.is_at_end = length == 0;
        Ok(length > 0)
    }

    /// Moves what is left to the beginning of the buffer, or of another one if a batch has this one.
    fn begin_again(&mut self) {
        if let Some(buffer) = Arc::get_mut(&mut self.buffer) {
            buffer.copy_within(self.start..self.end, 0);
        } else {
            let free = self.earlier.iter_mut().position(|buffer| Arc::get_mut(buffer).is_some());
            let mut next = free.map(|place| self.earlier.swap_remove(place)).unwrap_or_default();
            let room = Arc::make_mut(&mut next);
            // One that had to be larger for a value is not kept.
            if room.len() > 2 * CHUNK_BYTES {
                *room = Vec::new();
            }
            let rest = &self.buffer[self.start..self.end];
            if room.len() < rest.len() {
                room.resize(rest.len(), 0);
            }
            room[..rest.len()].copy_from_slice(rest);
            if self.earlier.len() == MAX_BUFFERS {
                self.earlier.remove(0);
            }
            self.earlier.push(std::mem::replace(&mut self.buffer, next));
        }
        self.end -= self.start;
        (self.start, self.placed) = (0, 0);
    }

    /// The position of the next byte.
    pub fn place(&mut self) -> SourcePosition {
        self.place = self.place.after(&self.buffer[self.placed..self.start]);
        self.placed = self.start;
        self.place
    }

    /// The buffer, whose contents stay as they are as long as a batch has it.
    pub fn buffer(&self) -> &Arc<Vec<u8>> {
        &self.buffer
    }

    /// Where the next byte is in it.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes that were read and not consumed.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Consumes the given number of these bytes.
    #[inline]
    pub fn pass(&mut self, length: usize) {
        self.start = (self.start + length).min(self.end);
    }

    /// Skips a byte order mark at the beginning.
    pub fn pass_byte_order_mark(&mut self) -> Result<(), ImportError> {
        while self.buffered().len() < BYTE_ORDER_MARK.len() && self.fill()? {}
        if self.buffered().starts_with(BYTE_ORDER_MARK) {
            self.start += BYTE_ORDER_MARK.len();
            self.placed = self.start;
        }
        Ok(())
    }

    /// The next byte that is neither white space nor in a comment; it is not consumed; none at the end.
    pub fn peek(&mut self) -> Result<Option<u8>, ImportError> {
        loop {
            let rest = self.buffered();
            match rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
                Some(at) => {
                    self.pass(at);
                    let next = self.buffered().first().copied();
                    if next != Some(b'/') || !self.pass_comment()? {
                        return Ok(next);
                    }
                }
                None => {
                    self.pass(rest.len());
                    if !self.fill()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Consumes a comment, if one comes next.
    fn pass_comment(&mut self) -> Result<bool, ImportError> {
        while self.buffered().len() < 2 && self.fill()? {}
        let Some(end) = end_of_comment(self.buffered()) else { return Ok(false) };
        self.pass(2);
        loop {
            let rest = self.buffered();
            if let Some(at) = memmem::find(rest, end) {
                self.pass(at + end.len());
                return Ok(true);
            }
            self.pass(rest.len().saturating_sub(end.len() - 1));
            if !self.fill()? {
                self.pass(self.buffered().len());
                return Ok(true);
            }
        }
    }

    /// Consumes a byte if it comes next.
    pub fn take(&mut self, wanted: u8) -> Result<bool, ImportError> {
        let is_next = self.peek()? == Some(wanted);
        if is_next {
            self.pass(1);
        }
        Ok(is_next)
    }

    /// The next value as text, with its position; none if the text ends before the value does.
    pub fn value(&mut self) -> Result<Option<(SourcePosition, &[u8])>, ImportError> {
        if self.peek()?.is_none() {
            return Ok(None);
        }
        let place = self.place();
        let mut state = State::default();
        let length = loop {
            match state.go_on(self.buffered(), self.is_at_end) {
                Some(Extent::Whole(length)) => break length,
                Some(Extent::Cut) => return Ok(None),
                None => self.fill_value()?,
            }
        };
        let start = self.start;
        self.pass(length);
        Ok(Some((place, &self.buffer[start..start + length])))
    }

    /// The next value of a list. If it is not sound, or the text ends within it, it is what is before the
    /// next value that the function accepts, if there is one: then it has lost its end.
    pub fn value_of_list(
        &mut self,
        is_value: impl Fn(&[u8]) -> bool,
        is_sound: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<(SourcePosition, &[u8])>, ImportError> {
        if self.peek()?.is_none() {
            return Ok(None);
        }
        let place = self.place();
        let mut state = State::default();
        let mut is_tried = false;
        let mut unexamined = self.unexamined;
        let length = loop {
            let bytes = self.buffered();
            match state.go_on(bytes, self.is_at_end) {
                Some(Extent::Whole(length)) => {
                    // Few values have anything in them that looks like another one.
                    let value = &bytes[..length];
                    let next = next_of_list(value, &is_value, &mut unexamined);
                    break next.filter(|_| !is_sound(value)).unwrap_or(length);
                }
                Some(Extent::Cut) => match next_of_list(bytes, &is_value, &mut unexamined) {
                    Some(length) => break length,
                    None => return Ok(None),
                },
                None => {
                    if bytes.len() > DOUBTFUL_BYTES
                        && !std::mem::replace(&mut is_tried, true)
                        && let Some(length) =
                            next_of_list(&bytes[..DOUBTFUL_BYTES], &is_value, &mut unexamined)
                    {
                        break length;
                    }
                    match self.fill_value() {
                        Err(error @ ImportError::Read(_)) => {
                            let next = next_of_list(self.buffered(), &is_value, &mut unexamined);
                            let Some(length) = next else { return Err(error) };
                            self.failed = Some(error);
                            break length;
                        }
                        filled => filled?,
                    }
                }
            }
        };
        let in_vain = state.at.saturating_sub(length);
        let gained = (unexamined + EXAMINED_PER_BYTE * length).min(MAX_EXAMINED_BYTES);
        self.unexamined = gained.saturating_sub(in_vain);
        let start = self.start;
        self.pass(length);
        Ok(Some((place, &self.buffer[start..start + length])))
    }

    /// Where another value of a list begins, after a comma, if that is near.
    pub fn next_of_list(&mut self, is_value: impl Fn(&[u8]) -> bool) -> Option<usize> {
        let mut unexamined = self.unexamined;
        let next = next_of_list(self.ahead(DOUBTFUL_BYTES), is_value, &mut unexamined);
        self.unexamined = unexamined;
        next
    }

    /// The beginning of the rest.
    pub fn beginning(&mut self) -> &[u8] {
        self.ahead(BEGINNING_BYTES)
    }

    /// So many bytes, if there are; an error is for the one who needs more.
    fn ahead(&mut self, wanted: usize) -> &[u8] {
        while self.failed.is_none() && self.buffered().len() < wanted {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => self.failed = Some(error),
            }
        }
        let bytes = self.buffered();
        &bytes[..bytes.len().min(wanted)]
    }

    /// The next value, which is skipped if it is larger than values may be.
    pub fn value_if_small(&mut self) -> Result<Size<'_>, ImportError> {
        let mut state = State::default();
        loop {
            match state.go_on(self.buffered(), self.is_at_end) {
                Some(Extent::Whole(length)) => {
                    let start = self.start;
                    self.pass(length);
                    return Ok(Size::Small(&self.buffer[start..start + length]));
                }
                Some(Extent::Cut) => return Ok(Size::Cut(self.buffered(), None)),
                None if self.buffered().len() > MAX_VALUE_BYTES => break,
                None => {
                    if let Err(error) = self.fill() {
                        return Ok(Size::Cut(self.buffered(), Some(error)));
                    }
                }
            }
        }
        Ok(if self.pass_value()? { Size::Large } else { Size::Cut(&[], None) })
    }

    /// Skips the next value, of any size; false if the text ends before the value does.
    pub fn pass_value(&mut self) -> Result<bool, ImportError> {
        if self.peek()?.is_none() {
            return Ok(false);
        }
        let mut state = State::default();
        loop {
            match state.go_on(self.buffered(), self.is_at_end) {
                Some(Extent::Whole(length)) => {
                    self.pass(length);
                    return Ok(true);
                }
                Some(Extent::Cut) => return Ok(false),
                None => {
                    if state.is_within() {
                        self.pass(std::mem::take(&mut state.at));
                    }
                    self.fill_value()?;
                }
            }
        }
    }

    /// Reads more of a value.
    fn fill_value(&mut self) -> Result<(), ImportError> {
        if self.buffered().len() > MAX_VALUE_BYTES {
            return Err(self.error("a value of more than 64 MiB"));
        }
        self.fill().map(|_| ())
    }
}

/// The length of white space and comments at the beginning of a text.
pub(super) fn pass_space(text: &[u8]) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        let Some(end) = end_of_comment(rest) else { return text.len() - rest.len() };
        rest = memmem::find(&rest[2..], end).map_or(&[], |at| &rest[2 + at + end.len()..]);
    }
}

/// The length of the value that a text begins with, if it is whole.
pub(super) fn value_length(text: &[u8]) -> Option<usize> {
    match State::default().go_on(text, false) {
        Some(Extent::Whole(length)) => Some(length),
        _ => None,
    }
}

/// What ends the comment that a text begins with.
fn end_of_comment(text: &[u8]) -> Option<&'static [u8]> {
    match text {
        [b'/', b'/', ..] => Some(b"\n"),
        [b'/', b'*', ..] => Some(b"*/"),
        _ => None,
    }
}

/// Where another value of a list begins, after a comma, or at the beginning of a line, if that is found
/// before so many bytes have been examined.
fn next_of_list(bytes: &[u8], is_value: impl Fn(&[u8]) -> bool, unexamined: &mut usize) -> Option<usize> {
    let is_after_comma = |at: &usize| {
        let before = &bytes[..*at];
        before.ends_with(b"\n") || before.trim_ascii_end().ends_with(b",")
    };
    memchr_iter(b'{', bytes)
        .filter(is_after_comma)
        .map_while(|at| {
            let part = &bytes[at..bytes.len().min(at + CANDIDATE_BYTES)];
            let length = value_length(part);
            *unexamined = unexamined.checked_sub(length.unwrap_or(part.len()))?;
            Some((at, length.is_some_and(|length| is_value(&part[..length]))))
        })
        .find_map(|(at, is_next)| is_next.then_some(at))
}

/// The state of scanning a value.
#[derive(Default)]
struct State {
    at: usize,
    depth: usize,
    is_in_string: bool,
    /// What ends the comment that it is in.
    end_of_comment: Option<&'static [u8]>,
}

impl State {
    /// The end of the value is still to come.
    fn is_within(&self) -> bool {
        self.depth > 0 || self.is_in_string
    }

    /// None if more has to be read.
    fn go_on(&mut self, bytes: &[u8], is_at_end: bool) -> Option<Extent> {
        while let Some(byte) = bytes.get(self.at).copied() {
            if self.is_in_string {
                let rest = &bytes[self.at..];
                match rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
                    Some(at) if rest[at] == b'"' => {
                        self.at += at + 1;
                        self.is_in_string = false;
                        if self.depth == 0 {
                            return Some(Extent::Whole(self.at));
                        }
                    }
                    Some(at) if at + 1 < rest.len() => self.at += at + 2,
                    Some(at) => {
                        self.at += at;
                        break;
                    }
                    None => self.at = bytes.len(),
                }
                continue;
            }
            if let Some(end) = self.end_of_comment {
                let rest = &bytes[self.at..];
                let Some(at) = memmem::find(rest, end) else {
                    self.at += rest.len().saturating_sub(end.len() - 1);
                    break;
                };
                self.at += at + end.len();
                self.end_of_comment = None;
                continue;
            }
            match byte {
                b'"' => self.is_in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'/' if self.depth > 0 => {
                    if self.at + 1 == bytes.len() && !is_at_end {
                        break;
                    }
                    self.end_of_comment = end_of_comment(&bytes[self.at..]);
                    self.at += usize::from(self.end_of_comment.is_some());
                }
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(Extent::Whole(self.at + 1));
                    }
                }
                b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => {
                    return Some(Extent::Whole(self.at.max(1)));
                }
                _ => {}
            }
            self.at += 1;
        }
        match is_at_end {
            // A number or a word may end the text.
            true if !self.is_within() && self.at > 0 => Some(Extent::Whole(self.at)),
            true => Some(Extent::Cut),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte at a time.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            to[0] = *first;
            self.0 = rest;
            Ok(1)
        }
    }

    #[test]
    fn values_are_found_however_they_come() {
        let text = b"  {\"a\":\"}\\\"]\",\"b\":[1,{}]}\n ,\"x\\\\\" 12.5e3,null";
        let mut scanner = Scanner::new(Trickle(text));
        let next = |scanner: &mut Scanner<Trickle<'_>>| {
            let (place, value) = scanner.value().unwrap().unwrap();
            (place.line, place.column, String::from_utf8(value.to_vec()).unwrap())
        };
        assert_eq!(next(&mut scanner), (1, 3, "{\"a\":\"}\\\"]\",\"b\":[1,{}]}".to_owned()));
        assert!(scanner.take(b',').unwrap());
        assert_eq!(next(&mut scanner), (2, 3, "\"x\\\\\"".to_owned()));
        assert_eq!(next(&mut scanner), (2, 9, "12.5e3".to_owned()));
        assert!(scanner.take(b',').unwrap());
        assert_eq!(next(&mut scanner).2, "null");
        assert!(scanner.value().unwrap().is_none());
    }

    #[test]
    fn what_is_cut_off_is_no_value() {
        for text in ["{\"a\":1", "[1,2", "\"abc", "\"abc\\", "{\"a\":\"}"] {
            assert!(Scanner::new(text.as_bytes()).value().unwrap().is_none(), "{text}");
            assert!(!Scanner::new(text.as_bytes()).pass_value().unwrap(), "{text}");
            assert!(!Scanner::new(Trickle(text.as_bytes())).pass_value().unwrap(), "{text}");
        }
    }

    #[test]
    fn values_that_do_not_count_are_passed_however_large_they_are() {
        for value in ["{\"a\":\"}\\\"]\",\"b\":[1,{}]}", "\"x\\\\,\"", "-12.5e3", "null", "[]"] {
            let text = format!("\n {value},7");
            let mut scanner = Scanner::new(Trickle(text.as_bytes()));
            assert!(scanner.pass_value().unwrap(), "{value}");
            assert_eq!(scanner.place(), SourcePosition { line: 2, column: 2 + value.len() as u64 });
            assert!(scanner.take(b',').unwrap(), "{value}");
        }
        let bytes = MAX_VALUE_BYTES + 2 * CHUNK_BYTES;
        let mut scanner =
            Scanner::new(b"\"".chain(std::io::repeat(b'x').take(bytes as u64)).chain(&b"\",7"[..]));
        assert!(scanner.pass_value().unwrap());
        assert!(scanner.buffer.len() < 4 * CHUNK_BYTES);
        assert_eq!(scanner.peek().unwrap(), Some(b','));
    }
}
