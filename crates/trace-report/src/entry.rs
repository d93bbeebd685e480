//! What is on tracks, as it is sorted.

use std::io;
use trace_convert::tables::RowOrder;
use trace_model::Interval;
use trace_reader::sorter::words;

/// Something that has not ended.
pub const OPEN: u64 = u64::MAX;

/// The thread of a part of a flow that is not shown, so that what is around it is not taken for neighbours.
pub const LEFT_OUT: u32 = u32::MAX;

/// Something on a track, as it is sorted; its arguments follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it begins, in nanoseconds.
    pub at: u64,
    /// How long it takes; [`OPEN`] if it has not ended. The value of a counter, as bits.
    pub length: u64,
    /// The track.
    pub track: u32,
    /// Number of category and name; of a thread, for CPUs.
    pub what: u32,
    /// Of a slice of a thread.
    pub order: RowOrder,
}

impl Entry {
    pub const BYTES: usize = 32;

    /// Something whose order of records has no meaning.
    pub fn new(at: u64, length: u64, track: u32, what: u32) -> Self {
        Self { at, length, track, what, order: RowOrder::default() }
    }

    /// When it has ended; [`OPEN`] if it has not.
    pub fn end(&self) -> u64 {
        self.at.saturating_add(self.length)
    }

    /// Its times and records.
    pub fn interval(&self) -> Interval {
        self.order.interval(self.at, (self.length != OPEN).then_some(self.length))
    }

    /// The entry as it is sorted, without its arguments.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let of_two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let Self { at, length, track, what, order: RowOrder { row, pair } } = self;
        let words = [at, length, of_two(track, what), of_two(row, pair)];
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(words.map(u64::to_le_bytes).as_flattened());
        bytes
    }

    /// An entry and its arguments.
    pub fn decode(bytes: &[u8]) -> io::Result<(Self, &[u8])> {
        let ([at, length, of, order], args) = words(bytes)?;
        let halves = |word: u64| (word as u32, (word >> 32) as u32);
        let ((track, what), (row, pair)) = (halves(of), halves(order));
        Ok((Self { at, length, track, what, order: RowOrder { row, pair } }, args))
    }
}

/// A begin, step or end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    pub id: u64,
    pub at: u64,
    /// 0 a begin, 1 a step, 2 an end.
    pub phase: u8,
    pub thread: u32,
    pub what: u32,
}

impl Flow {
    /// What the table of flows calls a phase, as a number.
    pub fn phase(text: &str) -> u8 {
        match text {
            "begin" => 0,
            "end" => 2,
            _ => 1,
        }
    }
}
