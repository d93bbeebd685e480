//! Arguments that have no room in the record of their event: the payload of blobs named `trace:arguments`,
//! which come right before the event. What is in the blobs of an event belongs together, without the first
//! words of each.
//!
//! ```text
//!  63                                           16 15            0
//! +-----------------------------------------------+---------------+
//! |     bytes of the arguments in all blobs       |    version    |   of each blob
//! | place of the first byte of this blob among all bytes          |
//! +-----------------------------------------------+---------------+
//! | 32 bits of the value, or its length  | name   |    0   | type |   of each argument
//! | name, if inline ...                                           |
//! | value ...                                                     |
//! ```
//!
//! Types, names and values are those of an argument in an event. Only a text differs: bit 63 says that it is
//! inline, and the 31 bits below are its length.

use crate::argument::{Argument, ArgumentType, ArgumentValue};
use crate::bits::field;
use crate::blob::{Blob, TYPE_DATA};
use crate::cursor::Cursor;
use crate::refs::StringRef;
use crate::sink::Sink;

/// Name of the blobs that have further arguments.
pub const ARGUMENTS_BLOB_NAME: &str = "trace:arguments";
/// The version of the payload that is written.
pub const ARGUMENTS_VERSION: u16 = 1;
/// How many bytes of arguments a blob has room for: whole words.
pub const MAX_PIECE_BYTES: usize = 32_000;
/// The first words of each blob.
const HEAD_BYTES: usize = 16;

const INLINE: u32 = 1 << 31;

/// A blob with so many bytes of arguments, whose payload has the head before them.
#[must_use]
pub fn blob(payload: &[u8]) -> Blob<'_> {
    Blob { blob_type: TYPE_DATA, name: StringRef::inline(ARGUMENTS_BLOB_NAME), payload }
}

/// The head of a blob's payload: how many bytes the arguments of its event have, and at which of them this
/// blob begins.
#[must_use]
pub fn head(total: u64, at: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    let words = [u64::from(ARGUMENTS_VERSION) | total << 16, at].map(u64::to_le_bytes);
    head.copy_from_slice(words.as_flattened());
    head
}

/// A part of the arguments of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// How many bytes all of them have.
    pub total: u64,
    /// Where this one begins.
    pub at: u64,
    /// The part.
    pub bytes: &'a [u8],
}

/// The part of the arguments in a blob's payload; none for one of another version.
#[must_use]
pub fn piece(payload: &[u8]) -> Option<Piece<'_>> {
    let mut cursor = Cursor::new(payload);
    let head = cursor.word("further arguments").ok()?;
    let at = cursor.word("place of further arguments").ok()?;
    let is_known = field(head, 0, 16) as u16 == ARGUMENTS_VERSION;
    is_known.then_some(Piece { total: field(head, 16, 48), at, bytes: cursor.rest() })
}

/// Writes an argument whose text or bytes may be as long as 2 147 483 647 bytes; an unknown value is written
/// as null. The name must be within the limit of strings.
//= docs/format.md#further-arguments
pub fn write(argument: &Argument<'_>, sink: &mut impl Sink) {
    let (of_type, upper, bytes) = match argument.value {
        ArgumentValue::String(StringRef::Inline(text)) => {
            (ArgumentType::String, INLINE | text.len() as u32, text)
        }
        ArgumentValue::Blob(bytes) => (ArgumentType::Blob, bytes.len() as u32, bytes),
        _ => return argument.write(sink),
    };
    sink.word(of_type as u64 | u64::from(argument.name.bits()) << 16 | u64::from(upper) << 32);
    argument.name.write(sink);
    sink.bytes(bytes);
}

/// Arguments that have no room in the record of their event.
//= docs/format.md#further-arguments
#[derive(Clone, Copy, Debug, Default)]
pub struct FurtherArguments<'a>(&'a [u8]);

impl<'a> FurtherArguments<'a> {
    /// Those in the pieces of an event, one behind the other. They end at the first that is malformed.
    #[inline]
    #[must_use]
    pub const fn new(pieces: &'a [u8]) -> Self {
        Self(pieces)
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of the bytes are arguments.
    #[must_use]
    pub fn is_sound(mut self) -> bool {
        while !self.is_empty() {
            if self.next().is_none() {
                return false;
            }
        }
        true
    }

    /// As they are encoded.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for FurtherArguments<'a> {
    type Item = Argument<'a>;

    #[inline]
    fn next(&mut self) -> Option<Argument<'a>> {
        if self.0.is_empty() { None } else { self.decode() }
    }
}

impl<'a> FurtherArguments<'a> {
    #[cold]
    fn decode(&mut self) -> Option<Argument<'a>> {
        let mut cursor = Cursor::new(core::mem::take(&mut self.0));
        let header = cursor.word("argument header").ok()?;
        let name = cursor.string(field(header, 16, 16) as u16, "argument name").ok()?;
        let upper = field(header, 32, 32) as u32;
        let is_text = ArgumentType::from_raw(field(header, 0, 4) as u8) == Some(ArgumentType::String);
        let value = if is_text && upper & INLINE != 0 {
            let text = cursor.stream((upper & !INLINE) as usize, "argument value").ok()?;
            ArgumentValue::String(if text.is_empty() { StringRef::Empty } else { StringRef::Inline(text) })
        } else {
            ArgumentValue::decode(header, &mut cursor).ok()?
        };
        self.0 = cursor.rest();
        Some(Argument { name, value })
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::units::{Koid, StringIndex};

    struct Bytes(Vec<u8>);

    impl Sink for Bytes {
        fn word(&mut self, word: u64) {
            self.0.extend(word.to_le_bytes());
        }

        fn bytes(&mut self, bytes: &[u8]) {
            self.0.extend(bytes);
            self.0.resize(self.0.len().next_multiple_of(8), 0);
        }
    }

    //= docs/format.md#further-arguments
    #[test]
    fn arguments_come_back() {
        let long = vec![b'x'; 100_001];
        let index = StringRef::Index(StringIndex::new(7).unwrap());
        let name = StringRef::inline("name");
        let values = [
            ArgumentValue::Null,
            ArgumentValue::Bool(true),
            ArgumentValue::Int32(-1),
            ArgumentValue::Uint32(u32::MAX),
            ArgumentValue::Int64(i64::MIN),
            ArgumentValue::Uint64(u64::MAX),
            ArgumentValue::Double(-0.5),
            ArgumentValue::String(index),
            ArgumentValue::String(StringRef::Empty),
            ArgumentValue::String(StringRef::Inline(&long)),
            ArgumentValue::Pointer(1),
            ArgumentValue::Koid(Koid(2)),
            ArgumentValue::Blob(b"bytes"),
        ];
        let mut bytes = Bytes(Vec::new());
        let names = [name, index, StringRef::Empty].into_iter().cycle();
        let arguments: Vec<_> = names.zip(values).map(|(name, value)| Argument { name, value }).collect();
        arguments.iter().for_each(|argument| write(argument, &mut bytes));
        assert_eq!(FurtherArguments::new(&bytes.0).collect::<Vec<_>>(), arguments);
        // Header: type 6, name 0x8004, length 5 and bit 63.
        let mut bytes = Bytes(Vec::new());
        write(&Argument { name, value: ArgumentValue::String(StringRef::inline("value")) }, &mut bytes);
        let words: Vec<u64> = bytes.0.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        assert_eq!(words, [0x8000_0005_8004_0006, 0x656d_616e, 0x65_756c_6176]);
        // Cut off anywhere: those before the cut remain.
        for cut in 0..bytes.0.len() {
            let found = FurtherArguments::new(&bytes.0[..cut]);
            assert_eq!((found.count(), found.is_sound()), (0, cut == 0));
        }
    }

    #[test]
    fn pieces_of_other_versions_are_not_read() {
        let payload = [head(700, 70).as_slice(), b"piece"].concat();
        assert_eq!(piece(&payload), Some(Piece { total: 700, at: 70, bytes: b"piece" }));
        assert_eq!(payload[..16], [1, 0, 0xbc, 2, 0, 0, 0, 0, 70, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(piece(&[&[2], &payload[1..]].concat()), None);
        assert_eq!(piece(&payload[..15]), None);
    }
}
