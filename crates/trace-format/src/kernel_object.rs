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

/// Says what a koid stands for.
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
    pub fn words(&self) -> Words {
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
