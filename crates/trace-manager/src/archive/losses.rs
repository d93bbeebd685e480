//! What a provider lost, as the archive is told: each record that is missing once, with its reason and its
//! time.

use super::ByteSink;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use trace_format::loss::{LossCode, LossRecord};
use trace_format::slab::{Loss, LossReason};
use trace_format::units::{ProviderId, Ticks};
use trace_protocol::controller::Lost;
use trace_reader::buffer::{BufferError, BufferReader, GapLoss, Source};

/// Gaps that are kept in mind. An honest buffer shows far fewer at a time, and never one again that has gone.
const MAX_TOLD_GAPS: usize = 256;

/// Gaps that a buffer shows at a time.
const SHOWN_GAPS: usize = 112;

/// What was told of a provider's losses so far, in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Reason, as the ledger of the buffer numbers it; records; the time of the last, in ticks.
    by_reason: Vec<(u8, u64, u64)>,
    /// Half, reason, records.
    gaps: Vec<(u64, u8, u64)>,
    /// Records of the buffer that are in the archive, so that clearing them loses nothing.
    cleared: u64,
    dropped: u64,
    malformed: u64,
    /// Damaged counters.
    damaged: u64,
}

impl Told {
    /// The buffer was cleared, after so many of its records were written into the archive.
    pub(crate) fn clear(&mut self, archived: u64) {
        self.cleared += archived;
        // Halves count from 0 again.
        self.gaps.clear();
    }
}

/// What was told of a provider's ledger so far.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// By reason: how many, and when the last of them was.
    told: BTreeMap<LossReason, Loss>,
    /// By half and reason: how many of a gap.
    told_gaps: BTreeMap<(u64, LossReason), u64>,
    /// Records in the buffer that were written into the archive: clearing them loses nothing.
    archived: u64,
    /// Records that were lost, altogether, without those that a circular buffer has gone over.
    dropped: u64,
    /// Records that writers were refused: they are in no slab and in no tally.
    refused: u64,
    /// Records that were left out because they were malformed.
    malformed: u64,
    /// The counts of the ledger when it was read last.
    counts: [u64; LossReason::ALL.len()],
    /// Counters that were found to be damaged, and how many of them the archive was told of.
    damaged: u64,
    told_damaged: u64,
}

impl Losses {
    /// Records that were lost, altogether. What a circular buffer has gone over does not count: that is what
    /// it is for.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// What was told, by reason, without what was cleared after it was archived.
    pub fn by_reason(&self) -> Vec<Lost> {
        let told = self.told.iter().map(|(reason, loss)| (LossCode::from(*reason), loss.count));
        let malformed = (LossCode::MALFORMED, self.malformed);
        let damaged = (LossCode::DAMAGED_COUNTERS, self.damaged);
        let lost =
            told.chain([malformed, damaged]).map(|(reason, records)| Lost { reason: reason.0, records });
        let is_cleared = |lost: &Lost| lost.reason == LossCode::from(LossReason::Cleared).0;
        lost.filter(|lost| lost.records > 0 && !is_cleared(lost)).collect()
    }

    /// Counters of the buffer hold what no writer can have counted: what was lost is not known.
    pub fn is_damaged(&self) -> bool {
        self.damaged > 0
    }

    /// Takes note of more damage.
    pub fn note_damage(&mut self) {
        self.damaged = self.damaged.saturating_add(1);
    }

    /// Tells of damaged counters: so many since the last time.
    //= docs/protocol.md#losses
    pub fn tell_damage(&mut self, provider: ProviderId, out: &mut Vec<u8>) {
        let new = self.damaged - self.told_damaged;
        if new > 0 {
            self.told_damaged = self.damaged;
            write(provider, LossCode::DAMAGED_COUNTERS, Loss { count: new, ..Loss::default() }, out);
        }
    }

    /// What somebody else needs to know who goes on telling.
    pub fn told(&self) -> Told {
        let told = self.told.iter().filter(|(_, loss)| loss.count > 0);
        let by_reason = told.map(|(reason, loss)| (*reason as u8, loss.count, loss.last));
        let shown = self.told_gaps.iter().rev().take(SHOWN_GAPS);
        let gaps = shown.map(|(&(half, reason), &count)| (half, reason as u8, count));
        Told {
            by_reason: by_reason.collect(),
            gaps: gaps.collect(),
            cleared: self.archived,
            dropped: self.dropped,
            malformed: self.malformed,
            damaged: self.told_damaged,
        }
    }

    /// Goes on behind what somebody else has told.
    pub fn resume(told: &Told) -> Self {
        let reason = |number: u8| LossReason::ALL.into_iter().find(|reason| *reason as u8 == number);
        let by_reason = told
            .by_reason
            .iter()
            .filter_map(|&(number, count, last)| Some((reason(number)?, Loss { count, first: last, last })));
        let gaps =
            told.gaps.iter().filter_map(|&(half, number, count)| Some(((half, reason(number)?), count)));
        Self {
            told: by_reason.collect(),
            told_gaps: gaps.collect(),
            archived: told.cleared,
            dropped: told.dropped,
            malformed: told.malformed,
            damaged: told.damaged,
            told_damaged: told.damaged,
            ..Self::default()
        }
    }

    /// Records that never came into a slab.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Tells of malformed records: so many since the last time.
    pub fn tell_malformed(&mut self, provider: ProviderId, malformed: u64, out: &mut Vec<u8>) {
        let new = malformed.saturating_sub(self.malformed);
        if new > 0 {
            self.malformed = malformed;
            write(provider, LossCode::MALFORMED, Loss { count: new, ..Loss::default() }, out);
        }
    }

    /// The buffer is about to be cleared, after so many of its records were written into the archive.
    pub fn clear(&mut self, archived: u64) {
        self.archived += archived;
        // Halves count from 0 again.
        self.told_gaps.clear();
    }

    /// Appends a record for each gap and each reason of which something is new. Until the run is over only
    /// gaps are told: a writer adds to the ledger and to a gap one after the other.
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
        let (gaps, damaged) = reader.gaps_and_damaged()?;
        self.damaged = self.damaged.max(damaged);
        self.tell_gaps(provider, &gaps, out);
        if is_over {
            let ledger = reader.ledger()?;
            self.damaged = self.damaged.max(ledger.damaged);
            self.compare(&ledger.counts);
            let ledger = ledger.losses;
            let refused = ledger.iter().filter(|(reason, _)| is_refusal(*reason));
            let refused = refused.map(|(_, loss)| loss.count).fold(0, u64::saturating_add);
            // Events that came late are in slabs, and count as what ended recording.
            self.refused = refused.saturating_sub(reader.findings().late_events);
            self.tell_ledger(provider, &ledger, out);
        }
        Ok(())
    }

    /// Holds the ledger's counts against what they were: they only grow.
    fn compare(&mut self, counts: &[u64]) {
        let is_backwards = self.counts.iter().zip(counts).any(|(before, now)| now < before);
        if is_backwards {
            self.note_damage();
        }
        for (known, now) in self.counts.iter_mut().zip(counts) {
            *known = *now;
        }
    }

    fn tell_gaps(&mut self, provider: ProviderId, gaps: &[GapLoss], out: &mut Vec<u8>) {
        for gap in gaps {
            let told = self.told_gaps.entry((gap.gap.half, gap.gap.reason)).or_default();
            let new = gap.loss.count.saturating_sub(*told);
            if new > 0 {
                *told += new;
                let all = self.told.entry(gap.gap.reason).or_default();
                *all =
                    Loss { count: all.count.saturating_add(new), last: gap.loss.last.max(all.last), ..*all };
                self.dropped = self.dropped.saturating_add(new);
                write(provider, gap.gap.reason.into(), Loss { count: new, ..gap.loss }, out);
            }
        }
        if self.told_gaps.len() > MAX_TOLD_GAPS {
            let shown: BTreeSet<_> = gaps.iter().map(|gap| (gap.gap.half, gap.gap.reason)).collect();
            self.told_gaps.retain(|key, _| shown.contains(key));
        }
    }

    /// What no gap has told.
    fn tell_ledger(&mut self, provider: ProviderId, ledger: &[(LossReason, Loss)], out: &mut Vec<u8>) {
        for &(reason, loss) in ledger {
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
                write(provider, reason.into(), Loss { count: new, first, last: loss.last }, out);
            }
        }
    }
}

/// A record that was not written, rather than one that was and is gone.
fn is_refusal(reason: LossReason) -> bool {
    !matches!(reason, LossReason::Overwritten | LossReason::Cleared)
}

pub(super) fn write(provider: ProviderId, reason: LossCode, loss: Loss, out: &mut Vec<u8>) {
    let record =
        LossRecord { provider, reason, count: loss.count, first: Ticks(loss.first), last: Ticks(loss.last) };
    let start = out.len();
    if LossRecord::blob(&record.to_bytes()).encode(&mut ByteSink(out)).is_err() {
        debug_assert!(false, "a loss blob is within the limits");
        out.truncate(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::record::{Record, RecordHeader};
    use trace_format::slab::Gap;

    const PROVIDER: ProviderId = ProviderId(3);

    fn loss(count: u64, first: u64, last: u64) -> Loss {
        Loss { count, first, last }
    }

    fn gap(half: u64, loss: Loss) -> GapLoss {
        GapLoss { gap: Gap { half, reason: LossReason::NotSaved }, loss }
    }

    /// Reason, count and times of the records in an archive.
    fn told(archive: &[u8]) -> Vec<(LossReason, Loss)> {
        let mut rest = archive;
        let mut told = Vec::new();
        while !rest.is_empty() {
            let bytes = RecordHeader(u64::from_le_bytes(*rest.first_chunk().unwrap())).size().bytes();
            let record = Record::decode(&rest[..bytes]).unwrap();
            let Record::Blob(blob) = record else { panic!("{record:?}") };
            let record = LossRecord::decode(blob.payload).unwrap().unwrap();
            assert_eq!(record.provider, PROVIDER);
            let reason = LossReason::ALL.into_iter().find(|reason| LossCode::from(*reason) == record.reason);
            told.push((reason.unwrap(), loss(record.count, record.first.0, record.last.0)));
            rest = &rest[bytes..];
        }
        told
    }

    fn gaps(losses: &mut Losses, gaps: &[GapLoss]) -> Vec<Loss> {
        let mut out = Vec::new();
        losses.tell_gaps(PROVIDER, gaps, &mut out);
        told(&out).into_iter().map(|(_, loss)| loss).collect()
    }

    fn ledger(losses: &mut Losses, ledger: &[(LossReason, Loss)]) -> Vec<(LossReason, Loss)> {
        let mut out = Vec::new();
        losses.tell_ledger(PROVIDER, ledger, &mut out);
        told(&out)
    }

    //= docs/protocol.md#losses
    #[test]
    fn a_gap_is_told_once_and_what_it_grew_by() {
        let mut losses = Losses::default();
        assert_eq!(gaps(&mut losses, &[gap(4, loss(10, 100, 200))]), [loss(10, 100, 200)]);
        assert_eq!(gaps(&mut losses, &[gap(4, loss(10, 100, 200))]), []);
        let later = [gap(4, loss(12, 100, 230)), gap(6, loss(1, 500, 500))];
        assert_eq!(gaps(&mut losses, &later), [loss(2, 100, 230), loss(1, 500, 500)]);
        assert_eq!(losses.dropped(), 13);
    }

    //= docs/protocol.md#losses
    #[test]
    fn the_rest_of_a_reason_begins_where_its_gaps_end() {
        let mut losses = Losses::default();
        gaps(&mut losses, &[gap(4, loss(10, 100, 200))]);
        let all = [(LossReason::NotSaved, loss(13, 100, 900)), (LossReason::TooLarge, loss(2, 50, 60))];
        let rest = [(LossReason::NotSaved, loss(3, 200, 900)), (LossReason::TooLarge, loss(2, 50, 60))];
        assert_eq!(ledger(&mut losses, &all), rest);
        assert_eq!(ledger(&mut losses, &all), []);
        assert_eq!(losses.dropped(), 15);
        // Another run: halves count from 0 again, the ledger goes on.
        losses.clear(0);
        assert_eq!(gaps(&mut losses, &[gap(4, loss(5, 1000, 1001))]), [loss(5, 1000, 1001)]);
        assert_eq!(ledger(&mut losses, &[(LossReason::NotSaved, loss(18, 100, 1001))]), []);
        assert_eq!(losses.dropped(), 20);
    }

    #[test]
    fn gaps_that_are_not_shown_any_more_are_forgotten() {
        let mut losses = Losses::default();
        for half in 0..10 * MAX_TOLD_GAPS as u64 {
            let shown = [gap(half, loss(1, 5, 6)), gap(half + 1, loss(2, 5, 6))];
            let new = [loss(1, 5, 6), loss(2, 5, 6)];
            assert_eq!(
                gaps(&mut losses, &shown),
                if half == 0 { &new[..] } else { &new[1..] },
                "half {half}"
            );
            assert!(losses.told_gaps.len() <= MAX_TOLD_GAPS);
        }
    }

    //= docs/recovery.md#what-is-recovered
    #[test]
    fn whoever_goes_on_tells_the_rest() {
        let mut losses = Losses::default();
        gaps(&mut losses, &[gap(4, loss(10, 100, 200))]);
        ledger(&mut losses, &[(LossReason::TooLarge, loss(2, 50, 60))]);
        let told: Told = serde_json::from_str(&serde_json::to_string(&losses.told()).unwrap()).unwrap();
        let mut losses = Losses::resume(&told);
        assert_eq!((losses.dropped(), losses.told()), (12, told));
        assert_eq!(gaps(&mut losses, &[gap(4, loss(11, 100, 210))]), [loss(1, 100, 210)]);
        let all = [(LossReason::NotSaved, loss(13, 100, 900)), (LossReason::TooLarge, loss(3, 50, 70))];
        let rest = [(LossReason::NotSaved, loss(2, 210, 900)), (LossReason::TooLarge, loss(1, 60, 70))];
        assert_eq!(ledger(&mut losses, &all), rest);
        assert_eq!(losses.dropped(), 16);
    }

    #[test]
    fn a_ledger_that_shrinks_takes_nothing_back() {
        let mut losses = Losses::default();
        let ledger_of = |count| [(LossReason::Full, loss(count, 1, 2))];
        assert_eq!(ledger(&mut losses, &ledger_of(8)).len(), 1);
        assert_eq!(ledger(&mut losses, &ledger_of(3)), []);
        assert_eq!(ledger(&mut losses, &ledger_of(8)), []);
        assert_eq!(losses.dropped(), 8);
    }

    //= docs/protocol.md#losses
    #[test]
    fn counts_that_go_backwards_are_damage_and_told_once() {
        let mut losses = Losses::default();
        losses.compare(&[8, 0, 3]);
        losses.compare(&[8, 1, 3]);
        assert!(!losses.is_damaged());
        losses.compare(&[9, 0, 2]);
        assert!(losses.is_damaged());
        let mut out = Vec::new();
        losses.tell_damage(PROVIDER, &mut out);
        let told_once = out.len();
        losses.tell_damage(PROVIDER, &mut out);
        assert_eq!(out.len(), told_once);
        let Record::Blob(blob) = Record::decode(&out).unwrap() else { panic!("{out:?}") };
        let record = LossRecord::decode(blob.payload).unwrap().unwrap();
        assert_eq!((record.reason, record.count), (LossCode::DAMAGED_COUNTERS, 1));
        // It is no number of records.
        assert_eq!(losses.dropped(), 0);
        let lost = Lost { reason: LossCode::DAMAGED_COUNTERS.0, records: 1 };
        assert_eq!(losses.by_reason(), [lost]);
    }

    #[test]
    fn what_was_archived_before_it_was_cleared_is_not_lost() {
        let mut losses = Losses::default();
        losses.clear(100);
        let cleared = |count| [(LossReason::Cleared, loss(count, 0, 7))];
        assert_eq!(ledger(&mut losses, &cleared(103)), cleared(3));
        assert_eq!(ledger(&mut losses, &cleared(105)), [(LossReason::Cleared, loss(2, 7, 7))]);
        assert_eq!(losses.dropped(), 5);
    }

    #[test]
    fn going_round_is_told_and_not_a_drop() {
        let mut losses = Losses::default();
        let overwritten = [(LossReason::Overwritten, loss(1000, 0, 7))];
        assert_eq!(ledger(&mut losses, &overwritten), overwritten);
        assert_eq!(losses.dropped(), 0);
    }
}
