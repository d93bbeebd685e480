//! Counting what is not kept, in the shared buffer, so that the counts outlive the process.

use crate::buffer::Buffer;
use crate::sync::{AtomicU64, Ordering};
use trace_format::buffer::{WORD_BYTES, field};
use trace_format::slab::{Gap, LossReason, TOO_LARGE_FOR_FORMAT};

impl Buffer {
    /// Counts a record that was refused, while this half was to be given out.
    //= docs/buffer.md#loss-ledger
    pub fn count_loss(&self, reason: LossReason, timestamp: u64, half: impl FnOnce() -> u64) {
        self.add_refused(reason, 1, timestamp, timestamp);
        if let Some(offset) = self.gap_of(reason, half) {
            self.add(offset, 1, timestamp, timestamp);
        }
    }

    /// Counts records that were refused, wherever that was.
    pub fn add_refused(&self, reason: LossReason, count: u64, first: u64, last: u64) {
        self.add_loss(reason, count, first, last);
        self.header(field::RECORDS_DROPPED).fetch_add(count, Ordering::Relaxed);
    }

    /// Adds records to the ledger's entry for a reason.
    pub fn add_loss(&self, reason: LossReason, count: u64, first: u64, last: u64) {
        self.add(self.layout.loss_entry(reason), count, first, last);
    }

    fn add(&self, offset: u64, count: u64, first: u64, last: u64) {
        let [total, complement, latest] = self.entry(offset);
        total.fetch_add(count, Ordering::Relaxed);
        complement.fetch_max(!first, Ordering::Relaxed);
        latest.fetch_max(last, Ordering::Relaxed);
    }

    /// Counts events that a thread has left by jumps, the latest at this time.
    //= docs/buffer.md#events-that-are-left
    pub fn count_left(&self, count: u32, latest: u64) {
        if count > 0 {
            self.add_refused(LossReason::LeftByJump, u64::from(count), latest, latest);
        }
    }

    /// Adds to the room that was short where records were refused for a reason, or definitions stand inline.
    //= docs/buffer.md#what-was-short
    pub fn add_short(&self, reason: LossReason, bytes: u64) {
        self.spare_word(reason).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the room that a refused record would have taken.
    pub fn add_short_record(&self, reason: LossReason, bytes: u64) {
        self.add_short(reason, most_room(bytes, self.layout.slab_bytes));
    }

    /// Notes the size of a record that is larger than this buffer takes, or than the format allows.
    //= docs/buffer.md#what-was-short
    pub fn note_too_large(&self, bytes: u64, is_for_format: bool) {
        let size = if is_for_format { bytes | TOO_LARGE_FOR_FORMAT } else { bytes };
        self.spare_word(LossReason::TooLarge).fetch_max(size, Ordering::Relaxed);
    }

    /// The last word of the ledger's entry for a reason.
    pub(super) fn spare_word(&self, reason: LossReason) -> &AtomicU64 {
        self.region.word(self.layout.loss_entry(reason) + 3 * WORD_BYTES)
    }

    fn entry(&self, offset: u64) -> [&AtomicU64; 3] {
        [0, 1, 2].map(|word| self.region.word(offset + word * WORD_BYTES))
    }

    /// The entry of the gap that a refusal belongs to, while streaming: there is one for each half that
    /// writers could not have, and each of the two reasons.
    fn gap_of(&self, reason: LossReason, half: impl FnOnce() -> u64) -> Option<u64> {
        if !matches!(reason, LossReason::NotSaved | LossReason::NotRetired) {
            return None;
        }
        self.gap_entry(half(), reason)
    }

    fn gap_entry(&self, half: u64, reason: LossReason) -> Option<u64> {
        let pairs = self.layout.gap_count() / 2;
        let pair = half.checked_rem(u64::from(pairs))? as u32;
        Some(self.layout.gap(2 * pair + u32::from(reason == LossReason::NotRetired)))
    }

    /// Prepares the gaps in front of a half, of which no record was refused yet.
    pub fn begin_gaps(&self, half: u64) {
        for reason in [LossReason::NotSaved, LossReason::NotRetired] {
            if let Some(offset) = self.gap_entry(half, reason) {
                for word in self.entry(offset) {
                    word.store(0, Ordering::Relaxed);
                }
                let key = Gap { half, reason }.to_word();
                self.region.word(offset + 3 * WORD_BYTES).store(key, Ordering::Relaxed);
            }
        }
    }
}

/// The most that a record of so many bytes takes of the buffer, with what stays unused because of it: of a
/// slab that has no room for it, less than its size; behind a run, the end of its last slab and of the
/// thread's own. A slab that is left because of a record of at most an eighth of it is used by seven eighths.
/// It holds for slabs of this size and for larger ones.
fn most_room(bytes: u64, slab_bytes: u64) -> u64 {
    if bytes > slab_bytes {
        (bytes.next_multiple_of(slab_bytes) + slab_bytes).max(3 * bytes)
    } else if bytes > slab_bytes / 8 {
        3 * bytes
    } else {
        bytes + bytes.div_ceil(7)
    }
}
