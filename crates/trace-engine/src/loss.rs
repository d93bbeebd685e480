//! Counting what is not kept, in the shared buffer, so that the figures outlive the process.

use crate::context::Context;
use crate::sync::{AtomicU64, Ordering};
use trace_format::buffer::{WORD_BYTES, field};
use trace_format::slab::{Gap, LossReason};
use zx_sim::ticks;

impl Context {
    /// Counts a record that was refused.
    //= docs/buffer.md#loss-ledger
    pub fn count_loss(&self, reason: LossReason, timestamp: u64) {
        self.add_refused(reason, 1, timestamp, timestamp);
        if let Some(offset) = self.gap_of(reason) {
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

    fn entry(&self, offset: u64) -> [&AtomicU64; 3] {
        [0, 1, 2].map(|word| self.region.word(offset + word * WORD_BYTES))
    }

    /// The entry of the gap that a refusal now belongs to, while streaming: there is one for each half that
    /// writers could not have, and each of the two reasons.
    fn gap_of(&self, reason: LossReason) -> Option<u64> {
        if !matches!(reason, LossReason::NotSaved | LossReason::NotRetired) {
            return None;
        }
        let half = self.claims.half_of(self.claims.ticket());
        self.gap_entry(half, reason)
    }

    fn gap_entry(&self, half: u64, reason: LossReason) -> Option<u64> {
        let pairs = self.layout.gap_count() / 2;
        let pair = half.checked_rem(u64::from(pairs))? as u32;
        Some(self.layout.gap(2 * pair + u32::from(reason == LossReason::NotRetired)))
    }

    /// Prepares the gaps in front of a half, which nobody has been refused yet.
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

    /// Ends recording for the whole provider: what is kept is a prefix in time, up to the earliest
    /// refusal. An event that is refused happened when it was refused: a thread that slept between its
    /// event's beginning and the refusal takes nothing away from those that were recorded meanwhile.
    //= docs/buffer.md#the-end-of-a-oneshot-buffer
    pub fn refuse(&self, reason: LossReason) {
        let timestamp = ticks::now();
        self.header(field::END_TS).fetch_min(timestamp, Ordering::Relaxed);
        let by = reason as usize + 1;
        let first = self.ended_by.compare_exchange(0, by, Ordering::Relaxed, Ordering::Relaxed);
        self.claims.set_full();
        let reason = match first {
            Ok(_) => reason,
            Err(by) => LossReason::ALL[by - 1],
        };
        self.count_loss(reason, timestamp);
    }
}
