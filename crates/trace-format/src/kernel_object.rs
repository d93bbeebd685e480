//! Kernel object records: names and properties of processes, threads and other objects of the system.
//!
//! ```text
//!  63            44 43    40 39        24 23      16 15         4 3  0
//! +----------------+--------+------------+----------+------------+----+
//! |       0        | args   |    name    |   type   | size words |  7 |
//! +----------------+--------+------------+----------+------------+----+
//! | koid                                                              |
//! | name, if inline ...                                               |
//! | arguments ...                                                     |
//! ```

use crate::argument::Arguments;
use crate::bits::field;
use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::{RecordHeader, RecordType, check_size};
use crate::refs::StringRef;
use crate::sink::Sink;
use crate::units::{Koid, Words};

/// Object type of a process.
pub const TYPE_PROCESS: u8 = 1;
/// Object type of a thread; its argument [`PROCESS_ARGUMENT`] names the process.
pub const TYPE_THREAD: u8 = 2;
/// Object type of a channel.
pub const TYPE_CHANNEL: u8 = 4;
/// Name of the koid argument that ties a thread to its process.
pub const PROCESS_ARGUMENT: &str = "process";

/// The header of a kernel object record of `size_words` words.
//= docs/format.md#kernel-object-record
#[inline]
#[must_use]
pub const fn header(size_words: u64, object_type: u8, name_ref: u16, argument_count: u64) -> u64 {
    RecordType::KernelObject as u64
        | (size_words << 4)
        | ((object_type as u64) << 16)
        | ((name_ref as u64) << 24)
        | (argument_count << 40)
}

/// Describes the object of a koid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelObject<'a> {
    /// Kind of object: [`TYPE_PROCESS`], [`TYPE_THREAD`] or another.
    pub object_type: u8,
    /// The object.
    pub koid: Koid,
    /// Its name, which need not be UTF-8.
    pub name: StringRef<'a>,
    /// Its properties.
    pub arguments: Arguments<'a>,
}

impl<'a> KernelObject<'a> {
    //= docs/format.md#kernel-object-record
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'a>) -> Result<Self, DecodeError> {
        let koid = Koid(cursor.word("koid")?);
        let name = cursor.string(field(header.0, 24, 16) as u16, "object name")?;
        let arguments = Arguments::decode(field(header.0, 40, 4), &mut cursor)?;
        Ok(Self { object_type: field(header.0, 16, 8) as u8, koid, name, arguments })
    }

    /// Size of the record.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        Words(2).plus(self.name.words()).plus(self.arguments.words())
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// [`EncodeError::TooLong`] for a string, [`EncodeError::TooManyArguments`],
    /// [`EncodeError::UnknownType`] for an argument, [`EncodeError::TooLarge`].
    //= docs/format.md#kernel-object-record
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        self.name.check("object name")?;
        self.arguments.check()?;
        let size_words = check_size(self.words())?;
        let argument_count = self.arguments.len() as u64;
        sink.word(header(size_words, self.object_type, self.name.bits(), argument_count));
        sink.word(self.koid.0);
        self.name.write(sink);
        self.arguments.write(sink);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    use crate::argument::{Argument, ArgumentValue};
    use crate::record::Record;
    use crate::testing::{check_decode, check_golden, decode_error, encode, past_end};
    use crate::units::StringIndex;

    #[test]
    //= docs/format.md#kernel-object-record
    fn examples() {
        // A channel: type 7, 5 words, object type 4, inline name, 1 argument.
        let arguments = [Argument { name: StringRef::Inline(b"arg"), value: ArgumentValue::Bool(false) }];
        check_golden(
            &[0x0000_0180_0404_0057, 0xdead_beef, 0x656d_616e, 0x8003_0029, 0x0067_7261],
            Record::KernelObject(KernelObject {
                object_type: 4,
                koid: Koid(0xdead_beef),
                name: StringRef::Inline(b"name"),
                arguments: Arguments::new(&arguments),
            }),
        );
        // A process.
        let process = Record::KernelObject(KernelObject {
            object_type: TYPE_PROCESS,
            koid: Koid(1234),
            name: StringRef::Inline(b"demo"),
            arguments: Arguments::default(),
        });
        check_golden(&[0x0000_0080_0401_0037, 0x4d2, 0x6f6d_6564], process);
        // Reserved bits set.
        check_decode(&[0xffff_f080_0401_0037, 0x4d2, 0x6f6d_6564], process);
        // A thread and its process.
        let arguments = [Argument {
            name: StringRef::Index(StringIndex::new(1).unwrap()),
            value: ArgumentValue::Koid(Koid(1234)),
        }];
        check_golden(
            &[0x0000_0180_0402_0057, 0x162e, 0x6e69_616d, 0x0001_0028, 0x4d2],
            Record::KernelObject(KernelObject {
                object_type: TYPE_THREAD,
                koid: Koid(5678),
                name: StringRef::Inline(b"main"),
                arguments: Arguments::new(&arguments),
            }),
        );
    }

    #[test]
    //= docs/format.md#kernel-object-record
    fn a_name_need_not_be_utf_8() {
        check_golden(
            &[0x0000_0080_0501_0037, 0x4d2, 0x0000_006f_6cff_6568],
            Record::KernelObject(KernelObject {
                object_type: TYPE_PROCESS,
                koid: Koid(1234),
                name: StringRef::Inline(b"he\xfflo"),
                arguments: Arguments::default(),
            }),
        );
    }

    #[test]
    //= docs/format.md#limits
    fn names_and_arguments_have_limits() {
        let name = vec![b'n'; 32_001];
        let null = [Argument { name: StringRef::Empty, value: ArgumentValue::Null }; 16];
        let object = |length, count| {
            Record::KernelObject(KernelObject {
                object_type: TYPE_PROCESS,
                koid: Koid(1),
                name: StringRef::Inline(&name[..length]),
                arguments: Arguments::from_slice(&null[..count]),
            })
        };
        assert_eq!(encode(&object(32_000, 15)).unwrap().len(), 2 + 4000 + 15);
        let error = EncodeError::TooLong { what: "object name", limit: 32_000, found: 32_001 };
        assert_eq!(encode(&object(32_001, 0)), Err(error));
        let error = EncodeError::TooManyArguments { limit: 15, found: 16 };
        assert_eq!(encode(&object(1, 16)), Err(error));
    }

    #[test]
    //= docs/format.md#malformed-input
    fn parts_past_the_end_are_malformed() {
        assert_eq!(decode_error(&[0x0001_0017]), past_end("koid", 1, 0));
        assert_eq!(decode_error(&[0x0000_0080_0401_0027, 1]), past_end("object name", 1, 0));
        assert_eq!(decode_error(&[0x0000_0100_0001_0027, 1]), past_end("argument header", 1, 0));
    }
}
