//! Arguments: the named values of events and kernel objects.
//!
//! ```text
//!  63                              32 31           16 15         4 3    0
//! +----------------------------------+---------------+------------+------+
//! |        depends on the type       |      name     | size words | type |
//! +----------------------------------+---------------+------------+------+
//! | name, if inline ...                                                  |
//! | value, if it does not fit in the header ...                          |
//! ```

use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::refs::{INLINE, StringRef};
use crate::sink::Sink;
use crate::units::{Koid, StringIndex, Words};

mod list;
#[cfg(test)]
mod tests;

pub use list::{Arguments, ArgumentsIter, MAX_ARGUMENTS};

/// The types of an argument's value, with their numbers in the format.
//= docs/format.md#arguments
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ArgumentType {
    /// No value.
    Null = 0,
    /// Signed 32 bits.
    Int32 = 1,
    /// Unsigned 32 bits.
    Uint32 = 2,
    /// Signed 64 bits.
    Int64 = 3,
    /// Unsigned 64 bits.
    Uint64 = 4,
    /// IEEE 754, 64 bits.
    Double = 5,
    /// Text.
    String = 6,
    /// An address.
    Pointer = 7,
    /// Number of an object of the system.
    Koid = 8,
    /// True or false.
    Bool = 9,
    /// Bytes.
    Blob = 10,
}

impl ArgumentType {
    /// The type with this number; `None` for one of a newer version.
    #[inline]
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            0 => Self::Null,
            1 => Self::Int32,
            2 => Self::Uint32,
            3 => Self::Int64,
            4 => Self::Uint64,
            5 => Self::Double,
            6 => Self::String,
            7 => Self::Pointer,
            8 => Self::Koid,
            9 => Self::Bool,
            10 => Self::Blob,
            _ => return None,
        })
    }
}

/// The header of an argument of `size_words` words, name and value included.
///
/// `upper` holds the part of the value that its type keeps in the header: a 32-bit number, 0 or 1 for a
/// boolean, the string reference of a text, the length in bytes of a blob.
//= docs/format.md#arguments
#[must_use]
#[inline(always)]
pub const fn header(argument_type: ArgumentType, size_words: u64, name_ref: u16, upper: u32) -> u64 {
    argument_type as u64 | (size_words << 4) | ((name_ref as u64) << 16) | ((upper as u64) << 32)
}

/// The first word of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentHeader(pub u64);

impl ArgumentHeader {
    /// Type of the value; `None` for one of a newer version.
    #[inline]
    #[must_use]
    pub const fn argument_type(self) -> Option<ArgumentType> {
        ArgumentType::from_raw(field(self.0, 0, 4) as u8)
    }

    /// Size of the argument, this word included.
    #[inline]
    #[must_use]
    pub const fn size(self) -> Words {
        Words(field(self.0, 4, 12) as usize)
    }

    /// Index of the name, if it is registered.
    #[inline]
    #[must_use]
    pub const fn name_index(self) -> Option<StringIndex> {
        StringIndex::new(field(self.0, 16, 16) as u16)
    }

    /// Index of the value, if that is a registered text.
    #[inline]
    #[must_use]
    pub const fn value_index(self) -> Option<StringIndex> {
        match self.argument_type() {
            Some(ArgumentType::String) => StringIndex::new(field(self.0, 32, 16) as u16),
            _ => None,
        }
    }
}

/// A named value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Argument<'a> {
    /// Its name.
    pub name: StringRef<'a>,
    /// Its value.
    pub value: ArgumentValue<'a>,
}

/// The value of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgumentValue<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// Signed 32 bits.
    Int32(i32),
    /// Unsigned 32 bits.
    Uint32(u32),
    /// Signed 64 bits.
    Int64(i64),
    /// Unsigned 64 bits.
    Uint64(u64),
    /// A number whose bit pattern is kept, that of a NaN too.
    Double(f64),
    /// Text.
    String(StringRef<'a>),
    /// An address.
    Pointer(u64),
    /// Number of an object of the system.
    Koid(Koid),
    /// Bytes.
    Blob(&'a [u8]),
    /// A value of a newer version; it can be skipped, not read.
    Unknown {
        /// Its type, 11 to 15.
        raw: u8,
    },
}

impl<'a> Argument<'a> {
    /// Size of the argument, its header included; an unknown value has size 0.
    #[must_use]
    #[inline(always)]
    pub const fn words(&self) -> Words {
        Words(1).plus(self.name.words()).plus(self.value.words())
    }

    //= docs/format.md#arguments
    #[inline]
    fn decode(cursor: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let header = ArgumentHeader({ *cursor }.word("argument header")?);
        let size = header.size();
        if size == Words(0) {
            return Err(DecodeError::ArgumentSize { expected: Words(1), found: size });
        }
        // From here on the argument's own size is the limit, so that decoding cannot read into the next.
        let mut own = Cursor::new(cursor.words(size, "argument")?);
        own.word("argument header")?;
        let name = own.string(field(header.0, 16, 16) as u16, "argument name")?;
        let value = ArgumentValue::decode(header.0, &mut own)?;
        Ok(Self { name, value })
    }

    /// The first argument of some, and the bytes behind it, in the common case: its name and a text value are
    /// no inline strings, and it has the size that its type should have. None for anything else.
    #[inline(always)]
    fn of_common(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (word, behind) = bytes.split_first_chunk::<8>()?;
        let header = u64::from_le_bytes(*word);
        let (name, upper) = (field(header, 16, 16) as u16, field(header, 32, 32) as u32);
        let string = |bits: u16| StringIndex::new(bits).map_or(StringRef::Empty, StringRef::Index);
        let is_inline = |bits: u16| bits & INLINE != 0;
        let raw = field(header, 0, 4);
        let size = field(header, 4, 12);
        if is_inline(name) || size != 1 + u64::from(matches!(raw, 3 | 4 | 5 | 7 | 8)) {
            return None;
        }
        if size == 2 {
            let (word, rest) = behind.split_first_chunk::<8>()?;
            let word = u64::from_le_bytes(*word);
            let value = match raw {
                3 => ArgumentValue::Int64(word as i64),
                4 => ArgumentValue::Uint64(word),
                5 => ArgumentValue::Double(f64::from_bits(word)),
                7 => ArgumentValue::Pointer(word),
                _ => ArgumentValue::Koid(Koid(word)),
            };
            return Some((Self { name: string(name), value }, rest));
        }
        let value = match raw {
            0 => ArgumentValue::Null,
            1 => ArgumentValue::Int32(upper as i32),
            2 => ArgumentValue::Uint32(upper),
            6 if !is_inline(upper as u16) => ArgumentValue::String(string(upper as u16)),
            9 => ArgumentValue::Bool(upper & 1 == 1),
            _ => return None,
        };
        Some((Self { name: string(name), value }, behind))
    }

    #[inline(always)]
    fn check(&self) -> Result<(), EncodeError> {
        self.name.check("argument name")?;
        match &self.value {
            ArgumentValue::String(text) => text.check("argument value"),
            ArgumentValue::Unknown { .. } => Err(EncodeError::UnknownType { what: "argument" }),
            _ => Ok(()),
        }
    }

    /// The first word as it is written; that of an unknown value stands for a null.
    #[inline(always)]
    const fn header(&self) -> ArgumentHeader {
        use ArgumentType as Type;
        use ArgumentValue as Value;

        let (argument_type, upper) = match self.value {
            Value::Null | Value::Unknown { .. } => (Type::Null, 0),
            Value::Bool(value) => (Type::Bool, value as u32),
            Value::Int32(value) => (Type::Int32, value as u32),
            Value::Uint32(value) => (Type::Uint32, value),
            Value::Int64(_) => (Type::Int64, 0),
            Value::Uint64(_) => (Type::Uint64, 0),
            Value::Double(_) => (Type::Double, 0),
            Value::String(value) => (Type::String, value.bits() as u32),
            Value::Pointer(_) => (Type::Pointer, 0),
            Value::Koid(_) => (Type::Koid, 0),
            Value::Blob(value) => (Type::Blob, value.len() as u32),
        };
        ArgumentHeader(header(argument_type, self.words().0 as u64, self.name.bits(), upper))
    }

    /// Writes the argument, whose strings and blob must be within their limits; an unknown value is written
    /// as null.
    #[inline(always)]
    pub fn write(&self, sink: &mut impl Sink) {
        use ArgumentValue as Value;

        sink.word(self.header().0);
        self.name.write(sink);
        match self.value {
            Value::Null | Value::Unknown { .. } | Value::Bool(_) | Value::Int32(_) | Value::Uint32(_) => {}
            Value::Int64(value) => sink.word(value as u64),
            Value::Uint64(value) | Value::Pointer(value) => sink.word(value),
            Value::Double(value) => sink.word(value.to_bits()),
            Value::Koid(value) => sink.word(value.0),
            Value::String(value) => value.write(sink),
            Value::Blob(value) => sink.bytes(value),
        }
    }
}

impl<'a> ArgumentValue<'a> {
    /// Words of the value behind the header and the name.
    #[inline(always)]
    const fn words(&self) -> Words {
        match self {
            Self::Null | Self::Bool(_) | Self::Int32(_) | Self::Uint32(_) | Self::Unknown { .. } => Words(0),
            Self::Int64(_) | Self::Uint64(_) | Self::Double(_) | Self::Pointer(_) | Self::Koid(_) => Words(1),
            Self::String(text) => text.words(),
            Self::Blob(bytes) => Words::for_bytes(bytes.len()),
        }
    }

    //= docs/format.md#arguments
    #[inline]
    pub(crate) fn decode(header: u64, own: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        const WHAT: &str = "argument value";

        let raw = field(header, 0, 4) as u8;
        let upper = field(header, 32, 32) as u32;
        let Some(argument_type) = ArgumentType::from_raw(raw) else {
            return Ok(Self::Unknown { raw });
        };
        Ok(match argument_type {
            ArgumentType::Null => Self::Null,
            ArgumentType::Int32 => Self::Int32(upper as i32),
            ArgumentType::Uint32 => Self::Uint32(upper),
            ArgumentType::Int64 => Self::Int64(own.word(WHAT)? as i64),
            ArgumentType::Uint64 => Self::Uint64(own.word(WHAT)?),
            ArgumentType::Double => Self::Double(f64::from_bits(own.word(WHAT)?)),
            ArgumentType::String => Self::String(own.string(upper as u16, WHAT)?),
            ArgumentType::Pointer => Self::Pointer(own.word(WHAT)?),
            ArgumentType::Koid => Self::Koid(Koid(own.word(WHAT)?)),
            ArgumentType::Bool => Self::Bool(upper & 1 == 1),
            ArgumentType::Blob => Self::Blob(own.stream(upper as usize, WHAT)?),
        })
    }
}
