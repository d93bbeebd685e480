//! What a provider lost, as the archive is told: each record that is missing once, with its reason and its time.

use super::archive::ByteSink;
use std::collections::BTreeMap;
use trace_format::loss::{LossCode, LossRecord};
use trace_format::slab::{Loss, LossReason};
use trace_format::units::{ProviderId, Ticks};
use trace_reader::buffer::{BufferError, BufferReader, Source};

/// What was told of a provider's ledger so far.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// By reason: how many, and when the last of them was.
    told: BTreeMap<LossReason, Loss>,
    /// By half and reason: how many of a gap.
    told_gaps: BTreeMap<(u64, LossReason), u64>,
    /// Records in the buffer that were written into the archive: clearing them loses nothing.
    archived: u64,
    /// Records that were lost, altogether, without those that a circular buffer has gone over.
    dropped: u64,
}

impl Losses {
    /// Records that were lost, altogether. What a circular buffer has gone over does not count: that is what it is for.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The buffer is about to be cleared, after so many of its records were written into the archive.
    pub fn clear(&mut self, archived: u64) {
        self.archived += archived;
        // Halves count from 0 again.
        self.told_gaps.clear();
    }

    /// Appends a record for each gap and each reason of which something is new. Until the run is over only gaps are told:
    /// a writer adds to the ledger and to a gap one after the other.
    ///
    /// # Errors
    /// The buffer cannot be read.
    //= docs/protocol.md#losses
    pub fn tell<S: Source>(
        &mut self,
        provider: ProviderId,
        reader: &BufferReader<S>,
        is_over: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), BufferError> {
        for gap in reader.gaps()? {
            let told = self.told_gaps.entry((gap.gap.half, gap.gap.reason)).or_default();
            let new = gap.loss.count.saturating_sub(*told);
            if new > 0 {
                *told += new;
                self.told.entry(gap.gap.reason).or_default().count += new;
                self.dropped = self.dropped.saturating_add(new);
                write(provider, gap.gap.reason, Loss { count: new, ..gap.loss }, out);
            }
        }
        for (reason, loss) in reader.losses()?.into_iter().filter(|_| is_over) {
            let told = self.told.entry(reason).or_default();
            let mut new = loss.count.saturating_sub(told.count);
            let first = if told.count > 0 { told.last } else { loss.first };
            *told = Loss { count: told.count.max(loss.count), ..loss };
            if reason == LossReason::Cleared {
                let archived = new.min(self.archived);
                self.archived -= archived;
                new -= archived;
            }
            if reason != LossReason::Overwritten {
                self.dropped = self.dropped.saturating_add(new);
            }
            if new > 0 {
                write(provider, reason, Loss { count: new, first, last: loss.last }, out);
            }
        }
        Ok(())
    }
}

fn write(provider: ProviderId, reason: LossReason, loss: Loss, out: &mut Vec<u8>) {
    let record = LossRecord {
        provider,
        reason: LossCode::from(reason),
        count: loss.count,
        first: Ticks(loss.first),
        last: Ticks(loss.last),
    };
    let start = out.len();
    if LossRecord::blob(&record.to_bytes()).encode(&mut ByteSink(out)).is_err() {
        debug_assert!(false, "a loss blob is within the limits");
        out.truncate(start);
    }
}
