//! Initialization records: the speed of a provider's clock.

use crate::cursor::Cursor;
use crate::error::{DecodeError, EncodeError};
use crate::record::RecordType;
use crate::sink::Sink;
use crate::units::{TicksPerSecond, Words};

/// The only header an initialization record has; its second word is the rate.
pub const HEADER: u64 = RecordType::Initialization as u64 | (2 << 4);

/// Sets the tick rate of the current provider from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initialization {
    /// The rate.
    pub ticks_per_second: TicksPerSecond,
}

impl Initialization {
    //= docs/format.md#initialization-record
    pub(crate) fn decode(mut cursor: Cursor<'_>) -> Result<Self, DecodeError> {
        let rate = cursor.word("ticks per second")?;
        let ticks_per_second = TicksPerSecond::new(rate).ok_or(DecodeError::NoTicks)?;
        Ok(Self { ticks_per_second })
    }

    /// Size of the record: 2 words.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> Words {
        Words(2)
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// None; the result type is that of all kinds of record.
    //= docs/format.md#initialization-record
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        sink.word(HEADER);
        sink.word(self.ticks_per_second.0.get());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::testing::{check_decode, check_golden, decode_error, past_end};

    fn record(rate: u64) -> Record<'static> {
        Record::Initialization(Initialization { ticks_per_second: TicksPerSecond::new(rate).unwrap() })
    }

    #[test]
    //= docs/format.md#initialization-record
    fn examples() {
        check_golden(&[0x0000_0000_0000_0021, 0x0000_0000_3b9a_ca00], record(1_000_000_000));
        check_golden(&[0x0000_0000_0000_0021, 0x0000_0000_0000_abcd], record(0xabcd));
        // With the base tick and base time that some writers append.
        let extended = [0x0000_0000_0000_0041, 0x0000_0000_8f0d_1800, 5, 6];
        check_decode(&extended, record(2_400_000_000));
        // Reserved bits set.
        check_decode(&[0xffff_ffff_ffff_0021, 7], record(7));
    }

    #[test]
    //= docs/format.md#initialization-record
    fn a_clock_that_stands_still_is_malformed() {
        assert_eq!(decode_error(&[HEADER, 0]), DecodeError::NoTicks);
        assert_eq!(decode_error(&[0x11]), past_end("ticks per second", 1, 0));
    }
}
