//! The name of a function that is not in any file, as stored in an archive: the payload of a blob named
//! `trace:function`.
//!
//! ```text
//!  63                                           16 15            0
//! +-----------------------------------------------+---------------+
//! |                       0                       |    version    |
//! +-----------------------------------------------+---------------+
//! | koid of the process, or 0                                     |
//! | address of the function                                       |
//! | its length in bytes                                           |
//! | name ...                                                      |
//! ```

use crate::bits::field;
use crate::blob::{Blob, TYPE_DATA};
use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::refs::StringRef;
use crate::units::Koid;

/// Name of the blobs that name functions.
pub const FUNCTION_BLOB_NAME: &str = "trace:function";
/// The version of the payload that is written.
pub const FUNCTION_VERSION: u16 = 1;
/// Longest name, in bytes; longer ones are cut.
pub const MAX_FUNCTION_BYTES: usize = 1024;
/// Words before the name.
const HEAD_BYTES: usize = 32;

/// The process of functions that are the same in all processes: the kernel's.
pub const KERNEL: Koid = Koid(0);

/// A function, by the addresses of its code.
//= docs/format.md#function-blob
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionRecord<'a> {
    /// The process; [`KERNEL`] for a function of the kernel.
    pub process: Koid,
    /// Where it begins.
    pub start: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Its name.
    pub name: &'a [u8],
}

/// A payload.
pub struct FunctionBytes {
    bytes: [u8; HEAD_BYTES + MAX_FUNCTION_BYTES],
    length: usize,
}

impl FunctionBytes {
    /// The blob around it.
    #[must_use]
    pub fn blob(&self) -> Blob<'_> {
        let payload = self.bytes.get(..self.length).unwrap_or_default();
        Blob { blob_type: TYPE_DATA, name: StringRef::inline(FUNCTION_BLOB_NAME), payload }
    }
}

impl<'a> FunctionRecord<'a> {
    /// The payload.
    //= docs/format.md#function-blob
    #[must_use]
    pub fn to_bytes(&self) -> FunctionBytes {
        let mut bytes = [0; HEAD_BYTES + MAX_FUNCTION_BYTES];
        let head =
            [u64::from(FUNCTION_VERSION), self.process.0, self.start, self.length].map(u64::to_le_bytes);
        let name = self.name.iter().take(MAX_FUNCTION_BYTES);
        let mut length = 0;
        for (place, byte) in bytes.iter_mut().zip(head.as_flattened().iter().chain(name)) {
            *place = *byte;
            length += 1;
        }
        FunctionBytes { bytes, length }
    }

    /// Decodes a payload; none for one of another version.
    ///
    /// # Errors
    ///
    /// [`DecodeError::PastEnd`] if the payload is too short.
    //= docs/format.md#function-blob
    pub fn decode(payload: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        let mut cursor = Cursor::new(payload);
        if field(cursor.word("function")?, 0, 16) as u16 != FUNCTION_VERSION {
            return Ok(None);
        }
        Ok(Some(Self {
            process: Koid(cursor.word("function process")?),
            start: cursor.word("function start")?,
            length: cursor.word("function length")?,
            name: payload.get(HEAD_BYTES..).unwrap_or_default(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::sink::SliceSink;

    const FUNCTION: FunctionRecord<'_> =
        FunctionRecord { process: Koid(7), start: 0x7f00_0000_1000, length: 0x40, name: b"compiled" };

    //= docs/format.md#function-blob
    #[test]
    fn golden_bytes() {
        let bytes = FUNCTION.to_bytes();
        let mut words = [0; 16];
        let mut sink = SliceSink::new(&mut words);
        Record::Blob(bytes.blob()).encode(&mut sink).unwrap();
        let golden = [
            0x0001_0028_800e_0085,
            u64::from_le_bytes(*b"trace:fu"),
            u64::from_le_bytes(*b"nction\0\0"),
            1,
            7,
            0x7f00_0000_1000,
            0x40,
            u64::from_le_bytes(*b"compiled"),
        ];
        assert_eq!(sink.words(), golden);
        assert_eq!(FunctionRecord::decode(bytes.blob().payload), Ok(Some(FUNCTION)));
    }

    //= docs/format.md#function-blob
    #[test]
    fn other_versions_short_payloads_and_long_names() {
        let bytes = FUNCTION.to_bytes();
        let mut payload = bytes.blob().payload.to_vec();
        assert!(FunctionRecord::decode(&payload[..31]).is_err());
        assert_eq!(
            FunctionRecord::decode(&payload[..32]),
            Ok(Some(FunctionRecord { name: b"", ..FUNCTION }))
        );
        payload[0] = 2;
        assert_eq!(FunctionRecord::decode(&payload), Ok(None));
        let name = [b'x'; MAX_FUNCTION_BYTES + 1];
        let bytes = FunctionRecord { name: &name, ..FUNCTION }.to_bytes();
        let cut = FunctionRecord { name: &name[1..], ..FUNCTION };
        assert_eq!(FunctionRecord::decode(bytes.blob().payload), Ok(Some(cut)));
    }
}
