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
    /// None; the type has room for some as all kinds of record do.
    //= docs/format.md#initialization-record
    #[inline]
    pub fn encode(&self, sink: &mut impl Sink) -> Result<(), EncodeError> {
        sink.word(HEADER);
        sink.word(self.ticks_per_second.0.get());
        Ok(())
    }
}
