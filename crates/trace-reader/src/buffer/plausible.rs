//! Plausibility of a buffer's counters and times, given the time in which it was written.
//!
//! Its provider has the buffer mapped, and may store anything anywhere. Records are checked one by one;
//! counters and times are compared with what any writer could have done between the creation of the buffer
//! and its reading.

use super::{BufferReader, Source};
use trace_format::buffer::HeaderError;
use trace_format::slab::SlabWord;

/// When a buffer was made and when it is read, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// A time before its writer had it.
    pub made: u64,
    /// The time at which reading of a part begins.
    pub read: u64,
}

/// Programs may give their own times to events, even future ones: at most this many seconds ahead.
const MAX_AHEAD_SECONDS: u64 = 3600;
/// Maximum number of records that all threads of a program write or lose in a nanosecond: several times what
/// a hundred processors can achieve.
const MAX_RECORDS_PER_NANO: u128 = 16;
/// Clearing a slab takes longer than that.
const MAX_SLABS_PER_NANO: u128 = 1;
/// Up to this many records, the time that they took is not judged.
const UNSUSPECTED_RECORDS: u128 = 1 << 20;

impl<S: Source> BufferReader<S> {
    /// Sets when the buffer was created, and when its next part is read. Without it all counters and times
    /// are believed.
    //= docs/buffer.md#contents-that-are-checked
    pub fn set_period(&mut self, period: Period) {
        self.period = Some(period);
        self.check_header();
    }

    /// Leaves out what no writer can have stored in the header, which is a fault.
    pub(super) fn check_header(&mut self) {
        if self.period.is_none() {
            return;
        }
        let (latest, limit) = (self.latest(), self.most_records());
        if let Some(found) = self.header.end_ts.take_if(|end| *end == 0 || *end > latest) {
            self.header_fault.get_or_insert(HeaderError::EndTimestamp { found });
        }
        let found = self.header.records_dropped;
        if found > limit {
            self.header.records_dropped = 0;
            self.header_fault.get_or_insert(HeaderError::RecordsDropped { found, limit });
        }
    }

    /// Leaves out a floor sequence that is too high for the words of the slabs. Tickets may have been
    /// skipped.
    pub(super) fn check_floor(&mut self, words: &[SlabWord]) {
        let newest = words.iter().map(|word| word.sequence()).max().unwrap_or(0);
        let limit = newest.saturating_add(4 * words.len() as u64 + 1);
        let found = self.header.floor_sequence;
        if newest > 0 && found > limit {
            self.header.floor_sequence = 0;
            self.header_fault.get_or_insert(HeaderError::FloorSequence { found, limit });
        }
    }

    /// The latest timestamp that a record may have.
    pub(super) fn latest(&self) -> u64 {
        let ahead = MAX_AHEAD_SECONDS.saturating_mul(self.rate.0.get());
        self.period.map_or(u64::MAX, |period| period.read.saturating_add(ahead))
    }

    /// Nanoseconds since the buffer was made.
    fn nanos(&self) -> Option<u128> {
        let Period { made, read } = self.period?;
        Some(u128::from(read.saturating_sub(made)) * 1_000_000_000 / u128::from(self.rate.0.get()))
    }

    /// The most records that can have been written or lost.
    pub(super) fn most_records(&self) -> u64 {
        let most = self.nanos().map(|nanos| nanos * MAX_RECORDS_PER_NANO + UNSUSPECTED_RECORDS);
        most.map_or(u64::MAX, |most| u64::try_from(most).unwrap_or(u64::MAX))
    }

    /// The most slabs that can have been claimed; tickets may have been skipped.
    pub(super) fn most_claims(&self) -> u64 {
        let rounds = 4 * u128::from(self.header.layout.slab_count());
        let most = self.nanos().map(|nanos| nanos * MAX_SLABS_PER_NANO + rounds);
        most.map_or(u64::MAX, |most| u64::try_from(most).unwrap_or(u64::MAX))
    }
}
