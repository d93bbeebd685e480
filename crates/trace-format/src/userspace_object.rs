//! Userspace object records: names and properties of an object inside a process.
//!
//! ```text
//!  63            44 43    40 39        24 23      16 15         4 3  0
//! +----------------+--------+------------+----------+------------+----+
//! |       0        | args   |    name    | process  | size words |  6 |
//! +----------------+--------+------------+----------+------------+----+
//! | address                                                           |
//! | process koid, if the process is inline                            |
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
use crate::units::{Koid, ProcessKoid, ThreadIndex, Words};

/// The header of a userspace object record of `size_words` words.
//= docs/format.md#userspace-object-record
#[inline]
#[must_use]
pub const fn header(size_words: u64, process_ref: u8, name_ref: u16, argument_count: u64) -> u64 {
    RecordType::UserspaceObject as u64
        | (size_words << 4)
        | ((process_ref as u64) << 16)
        | ((name_ref as u64) << 24)
        | (argument_count << 40)
}

/// The process that an object belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcessRef {
    /// The process of a thread that the provider registered.
    Index(ThreadIndex),
    /// The process itself. Writers disagree on how many words this takes, so it is read and never written.
    Inline(ProcessKoid),
}

/// Describes the object at an address within a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserspaceObject<'a> {
    /// Its process.
    pub process: ProcessRef,
    /// Where it is; unique within the process.
    pub address: u64,
    /// Its name.
    pub name: StringRef<'a>,
    /// Its properties.
    pub arguments: Arguments<'a>,
}

impl<'a> UserspaceObject<'a> {
    //= docs/format.md#userspace-object-record
    pub(crate) fn decode(header: RecordHeader, mut cursor: Cursor<'a>) -> Result<Self, DecodeError> {
        let address = cursor.word("address")?;
        let process = match ThreadIndex::new(field(header.0, 16, 8) as u8) {
            Some(index) => ProcessRef::Index(index),
            None => ProcessRef::Inline(ProcessKoid(Koid(cursor.word("process koid")?))),
        };
        let name = cursor.string(field(header.0, 24, 16) as u16, "object name")?;
        let arguments = Arguments::decode(field(header.0, 40, 4), &mut cursor)?;
        Ok(Self { process, address, name, arguments })
    }

    /// Size of the record.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        let fixed = match self.process {
            ProcessRef::Index(_) => 2,
            ProcessRef::Inline(_) => 3,
        };
        Words(fixed).plus(self.name.words()).plus(self.arguments.words())
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// [`EncodeError::ReadOnly`] for an inline process, [`EncodeError::TooLong`] for a string,
    /// [`EncodeError::TooManyArguments`], [`EncodeError::UnknownType`] for an argument,
    /// [`EncodeError::TooLarge`].
    //= docs/format.md#userspace-object-record
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        let ProcessRef::Index(process) = self.process else {
            return Err(EncodeError::ReadOnly { what: "inline process of a userspace object" });
        };
        self.name.check("object name")?;
        self.arguments.check()?;
        let size_words = check_size(self.words())?;
        sink.word(header(size_words, process.get(), self.name.bits(), self.arguments.len() as u64));
        sink.word(self.address);
        self.name.write(sink);
        self.arguments.write(sink);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument::{Argument, ArgumentValue};
    use crate::record::Record;
    use crate::testing::{check_decode, check_golden, decode_error, encode, past_end};
    use crate::units::StringIndex;

    fn index(index: u16) -> StringRef<'static> {
        StringRef::Index(StringIndex::new(index).unwrap())
    }

    #[test]
    //= docs/format.md#userspace-object-record
    fn examples() {
        // Header: type 6, 3 words, process of thread 0xaa, name 0x7777, 1 argument.
        let arguments = [Argument { name: index(0x1234), value: ArgumentValue::Bool(true) }];
        let object = Record::UserspaceObject(UserspaceObject {
            process: ProcessRef::Index(ThreadIndex::new(0xaa).unwrap()),
            address: 0xdead_beef,
            name: index(0x7777),
            arguments: Arguments::new(&arguments),
        });
        check_golden(&[0x0000_0177_77aa_0036, 0xdead_beef, 0x0000_0001_1234_0019], object);
        // Reserved bits set.
        check_decode(&[0xffff_f177_77aa_0036, 0xdead_beef, 0x0000_0001_1234_0019], object);
        check_golden(
            &[0x0000_0080_0301_0036, u64::MAX, 0x0067_6f64],
            Record::UserspaceObject(UserspaceObject {
                process: ProcessRef::Index(ThreadIndex::new(1).unwrap()),
                address: u64::MAX,
                name: StringRef::Inline(b"dog"),
                arguments: Arguments::default(),
            }),
        );
    }

    #[test]
    //= docs/format.md#userspace-object-record
    fn an_inline_process_is_one_word_and_never_written() {
        let object = Record::UserspaceObject(UserspaceObject {
            process: ProcessRef::Inline(ProcessKoid(Koid(1234))),
            address: 0xdead_beef,
            name: StringRef::Inline(b"dog"),
            arguments: Arguments::default(),
        });
        check_decode(&[0x0000_0080_0300_0046, 0xdead_beef, 1234, 0x0067_6f64], object);
        assert_eq!(object.words(), Words(4));
        let error = EncodeError::ReadOnly { what: "inline process of a userspace object" };
        assert_eq!(encode(&object), Err(error));
    }

    #[test]
    //= docs/format.md#malformed-input
    fn parts_past_the_end_are_malformed() {
        assert_eq!(decode_error(&[0x0000_0000_0001_0016]), past_end("address", 1, 0));
        assert_eq!(decode_error(&[0x0000_0000_0000_0026, 1]), past_end("process koid", 1, 0));
        assert_eq!(decode_error(&[0x0000_0080_0101_0026, 1]), past_end("object name", 1, 0));
        assert_eq!(decode_error(&[0x0000_0100_0001_0026, 1]), past_end("argument header", 1, 0));
    }
}
