//! Arguments that are put together at run time, as they stand in a record but for their names.

use crate::buffer::record_writer::RecordWriter;
use crate::record::arguments::{MAX_STRING_BYTES, Names, Values, sealed};
use crate::record::privacy::{self, REDACTED};
use crate::site::{ArgName, MAX_ARGUMENTS};
use core::fmt::{self, Write};
use trace_format::argument::{self, ArgumentHeader, ArgumentType};
use trace_format::refs::{inline_string_ref, truncate};

/// Bytes of a buffer at most.
pub const MAX_BUFFER_BYTES: usize = 4096;
const WORD: usize = size_of::<u64>();

/// Some of a site's arguments, in any order, with values whose types are known only when they are written.
///
/// It keeps its memory when it is cleared: one that is used again does not allocate.
#[derive(Debug, Default)]
pub struct ArgumentBuffer {
    /// Whole arguments. Instead of a name's reference, the header has the name's number.
    bytes: Vec<u8>,
    count: usize,
}

/// A value of a number, or of nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// True or false.
    Bool(bool),
    /// Signed.
    Int64(i64),
    /// Unsigned.
    Uint64(u64),
    /// Floating point.
    Double(f64),
}

impl ArgumentBuffer {
    /// An empty one, without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), count: 0 }
    }

    /// Removes all arguments.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Number of arguments.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Adds arguments that [`ArgumentBuffer::each`] gave, one behind the other; false if they are not sound
    /// or do not fit.
    pub fn restore(&mut self, bytes: &[u8]) -> bool {
        let Some(count) = count_of(bytes) else {
            return false;
        };
        let fits = self.count + count <= MAX_ARGUMENTS && self.bytes.len() + bytes.len() <= MAX_BUFFER_BYTES;
        if fits {
            self.bytes.extend_from_slice(bytes);
            self.count += count;
        }
        fits
    }

    /// Adds a number under the name numbered `name`; false if there is no room.
    pub fn push(&mut self, name: u8, number: Number) -> bool {
        let (kind, upper, word) = match number {
            Number::Bool(value) => (ArgumentType::Bool, u32::from(value), None),
            Number::Int64(value) => (ArgumentType::Int64, 0, Some(value as u64)),
            Number::Uint64(value) => (ArgumentType::Uint64, 0, Some(value)),
            Number::Double(value) => (ArgumentType::Double, 0, Some(value.to_bits())),
        };
        if !self.has_room(2 * WORD) {
            return false;
        }
        let words = 1 + usize::from(word.is_some());
        let header = argument::header(kind, words as u64, u16::from(name), upper);
        let argument = [header.to_le_bytes(), word.unwrap_or_default().to_le_bytes()];
        // Appended at once, which takes fewer instructions than one after the other.
        self.bytes.extend_from_slice(argument.as_flattened());
        self.bytes.truncate(self.bytes.len() - (2 - words) * WORD);
        self.count += 1;
        true
    }

    /// Adds a text, cut at a character where it does not fit; false if there is no room at all.
    pub fn push_text(&mut self, name: u8, text: &str) -> bool {
        if !self.has_room(2 * WORD) {
            return false;
        }
        let start = self.bytes.len();
        let text = truncate(text, (MAX_BUFFER_BYTES - start - WORD).min(MAX_STRING_BYTES));
        let words = 1 + text.len().div_ceil(WORD);
        let upper = u32::from(inline_string_ref(text.len()));
        let header = argument::header(ArgumentType::String, words as u64, u16::from(name), upper);
        self.bytes.resize(start + words * WORD, 0);
        if let Some((first, behind)) = self.bytes[start..].split_first_chunk_mut() {
            *first = header.to_le_bytes();
            behind[..text.len()].copy_from_slice(text.as_bytes());
        }
        self.count += 1;
        true
    }

    /// Adds the text that a function writes, cut as by [`ArgumentBuffer::push_text`].
    pub fn push_formatted(
        &mut self,
        name: u8,
        format: impl FnOnce(&mut TextWriter<'_>) -> fmt::Result,
    ) -> bool {
        if !self.has_room(2 * WORD) {
            return false;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; WORD]);
        let end = MAX_BUFFER_BYTES.min(start + WORD + MAX_STRING_BYTES);
        // An error says that it is full.
        let _ = format(&mut TextWriter { bytes: &mut self.bytes, end, is_cut: false });
        let length = self.bytes.len() - start - WORD;
        self.bytes.resize(self.bytes.len().next_multiple_of(WORD), 0);
        let words = (self.bytes.len() - start) / WORD;
        let upper = u32::from(inline_string_ref(length));
        let header = argument::header(ArgumentType::String, words as u64, u16::from(name), upper);
        self.bytes[start..start + WORD].copy_from_slice(&header.to_le_bytes());
        self.count += 1;
        true
    }

    /// The bytes of each argument, to be stored elsewhere: what [`ArgumentBuffer::restore`] takes.
    pub fn each(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let header = ArgumentHeader(word_at(&self.bytes, at)?);
            let start = at;
            at += header.size().0 * WORD;
            self.bytes.get(start..at)
        })
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.count < MAX_ARGUMENTS && self.bytes.len() + bytes <= MAX_BUFFER_BYTES
    }

    /// The arguments: the number of the name, the header and what follows it.
    fn arguments(&self) -> impl Iterator<Item = (usize, ArgumentHeader, &[u8])> {
        arguments(&self.bytes)
    }
}

/// Appends a text to an argument.
#[derive(Debug)]
pub struct TextWriter<'a> {
    bytes: &'a mut Vec<u8>,
    end: usize,
    is_cut: bool,
}

impl Write for TextWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        let fitting = truncate(text, self.end - self.bytes.len());
        self.bytes.extend_from_slice(fitting.as_bytes());
        self.is_cut = fitting.len() < text.len();
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + WORD)?.try_into().ok().map(u64::from_le_bytes)
}

fn arguments(bytes: &[u8]) -> impl Iterator<Item = (usize, ArgumentHeader, &[u8])> {
    let mut rest = bytes;
    core::iter::from_fn(move || {
        let (header, behind) = rest.split_first_chunk()?;
        let header = ArgumentHeader(u64::from_le_bytes(*header));
        let (payload, behind) = behind.split_at_checked(header.size().0.checked_sub(1)? * WORD)?;
        rest = behind;
        // The reference's place holds the name's number.
        Some(((header.0 >> 16) as usize & 0xff, header, payload))
    })
}

/// Number of arguments in bytes that are nothing else.
fn count_of(bytes: &[u8]) -> Option<usize> {
    let add = |(count, covered): (usize, usize), (_, header, _): (usize, ArgumentHeader, &[u8])| {
        let needed = match header.argument_type() {
            Some(ArgumentType::Bool) => 1,
            Some(ArgumentType::Int64 | ArgumentType::Uint64 | ArgumentType::Double) => 2,
            Some(ArgumentType::String) => {
                let length = (header.0 >> 32) as usize & (MAX_STRING_BYTES.next_power_of_two() - 1);
                1 + length.div_ceil(WORD)
            }
            _ => return None,
        };
        (header.size().0 == needed).then_some((count + 1, covered + needed * WORD))
    };
    let (count, covered) = arguments(bytes).try_fold((0, 0), add)?;
    (covered == bytes.len()).then_some(count)
}

impl sealed::Sealed for ArgumentBuffer {}

impl Values for ArgumentBuffer {
    fn count(&self) -> usize {
        self.count
    }

    fn words(&self) -> usize {
        self.bytes.len() / WORD
    }

    fn name_words(&self, names: &[ArgName]) -> usize {
        let words = |number: usize| names.get(number).map_or(0, |name| name.text().len().div_ceil(WORD));
        self.arguments().map(|(number, ..)| words(number)).sum()
    }

    fn redacted_words(&self) -> usize {
        self.arguments().map(|(_, header, payload)| redacted(header, payload).0.size().0).sum()
    }

    fn write(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        self.write_as(|header, payload| (header, payload), first, names, record);
    }

    fn write_redacted(&self, first: usize, names: &impl Names, record: &mut RecordWriter) {
        self.write_as(redacted, first, names, record);
    }
}

/// An argument of a private recording.
fn redacted(header: ArgumentHeader, payload: &[u8]) -> (ArgumentHeader, &[u8]) {
    if header.argument_type() != Some(ArgumentType::String) {
        return (header, payload);
    }
    let words = 1 + privacy::replacement_words(ArgumentType::String);
    let upper = u32::from(inline_string_ref(REDACTED.len()));
    (ArgumentHeader(argument::header(ArgumentType::String, words as u64, 0, upper)), REDACTED.as_bytes())
}

impl ArgumentBuffer {
    fn write_as<'s>(
        &'s self,
        change: impl Fn(ArgumentHeader, &'s [u8]) -> (ArgumentHeader, &'s [u8]),
        first: usize,
        names: &impl Names,
        record: &mut RecordWriter,
    ) {
        for (number, header, payload) in self.arguments() {
            let (header, payload) = change(header, payload);
            let number = first + number;
            // Without such a name, the empty one.
            let (reference, inline) = if number < names.count() { names.name(number) } else { (0, &[][..]) };
            let words = header.size().0 + inline.len().div_ceil(WORD);
            // Size and reference of the name are replaced.
            let kept = header.0 & !0xffff_fff0;
            record.word(kept | (words as u64) << 4 | u64::from(reference) << 16);
            record.bytes(inline);
            record.bytes(payload);
        }
    }
}
