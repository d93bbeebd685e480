//! What a provider lost, as the archive reports it: each missing record once, with its reason and its time.

use crate::framing;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use trace_format::loss::LossCode;
use trace_format::slab::{Loss, LossReason};
use trace_format::units::ProviderId;
use trace_protocol::controller::Lost;
use trace_reader::buffer::{BufferError, BufferReader, GapLoss, Source};

/// How many reported gaps are remembered. A sound buffer shows far fewer at a time, and never one again that
/// has gone.
const MAX_REPORTED_GAPS: usize = 256;

/// How many gaps a buffer shows at a time.
const SHOWN_GAPS: usize = 112;

/// The losses of a provider that are reported so far, in the form that the manifest stores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// Reason, by its number in the ledger of the buffer; records; the time of the last, in ticks.
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

impl Reported {
    /// The buffer was cleared, after this many of its records were written into the archive.
    pub fn clear(&mut self, archived: u64) {
        self.cleared += archived;
        // Halves count from 0 again.
        self.gaps.clear();
    }
}

/// The losses of a provider that are reported so far, and the counts of its ledger when it was last read.
#[derive(Debug, Default)]
pub struct Losses {
    /// By reason: the number of losses and the time of the last.
    by_reason: BTreeMap<LossReason, Loss>,
    /// By half and reason: the reported records of a gap.
    reported_gaps: BTreeMap<(u64, LossReason), u64>,
    /// Records in the buffer that were written into the archive: clearing them loses nothing.
    archived: u64,
    /// All records that were lost, without those overwritten in circular mode.
    dropped: u64,
    /// Records that writers were refused: they are in no slab and in no tally.
    refused: u64,
    /// Records that were dropped because they were malformed.
    malformed: u64,
    /// The counts of the ledger when it was read last.
    counts: [u64; LossReason::ALL.len()],
    /// Counters that were found to be damaged, and how many of them are reported in the archive.
    damaged: u64,
    reported_damaged: u64,
    /// The buffer could not be read to its end, and that is reported.
    is_rest_missing: bool,
}

impl Losses {
    /// All records that were lost. Events overwritten in circular mode do not count as dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether records were lost because the buffer had no room for them.
    pub fn was_full(&self) -> bool {
        let full = [LossReason::Full, LossReason::NotSaved, LossReason::NotRetired];
        full.iter().any(|reason| self.by_reason.get(reason).is_some_and(|loss| loss.count > 0))
    }

    /// The reported losses by reason, without records that were cleared after they were archived.
    pub fn by_reason(&self) -> Vec<Lost> {
        let reported = self.by_reason.iter().map(|(reason, loss)| (LossCode::from(*reason), loss.count));
        let malformed = (LossCode::MALFORMED, self.malformed);
        let damaged = (LossCode::DAMAGED_COUNTERS, self.damaged);
        let rest = (LossCode::REST_MISSING, self.is_rest_missing.into());
        let all = reported.chain([malformed, damaged, rest]);
        let lost = all.map(|(reason, records)| Lost { reason: reason.0, records });
        let is_cleared = |lost: &Lost| lost.reason == LossCode::from(LossReason::Cleared).0;
        lost.filter(|lost| lost.records > 0 && !is_cleared(lost)).collect()
    }

    /// Counters of the buffer hold values that no writer can have counted: the number of lost records is
    /// unknown.
    pub fn is_damaged(&self) -> bool {
        self.damaged > 0
    }

    /// Counts one more damaged counter.
    pub fn note_damage(&mut self) {
        self.damaged = self.damaged.saturating_add(1);
    }

    /// Reports the counters that were found damaged since the last report.
    //= docs/protocol.md#losses
    pub fn report_damage(&mut self, provider: ProviderId, out: &mut Vec<u8>) {
        let new = self.damaged - self.reported_damaged;
        if new > 0 {
            self.reported_damaged = self.damaged;
            framing::loss(provider, LossCode::DAMAGED_COUNTERS, Loss { count: new, ..Loss::default() }, out);
        }
    }

    /// Reports that the rest of the buffer could not be read, once.
    pub fn report_rest_missing(&mut self, provider: ProviderId, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_rest_missing, true) {
            framing::loss(provider, LossCode::REST_MISSING, Loss { count: 1, ..Loss::default() }, out);
        }
    }

    /// The state from which [`Losses::resume`] continues.
    pub fn reported(&self) -> Reported {
        let reported = self.by_reason.iter().filter(|(_, loss)| loss.count > 0);
        let by_reason = reported.map(|(reason, loss)| (*reason as u8, loss.count, loss.last));
        let shown = self.reported_gaps.iter().rev().take(SHOWN_GAPS);
        let gaps = shown.map(|(&(half, reason), &count)| (half, reason as u8, count));
        Reported {
            by_reason: by_reason.collect(),
            gaps: gaps.collect(),
            cleared: self.archived,
            dropped: self.dropped,
            malformed: self.malformed,
            damaged: self.reported_damaged,
        }
    }

    /// Continues from the report of an earlier process.
    pub fn resume(reported: &Reported) -> Self {
        let reason = |number: u8| LossReason::ALL.into_iter().find(|reason| *reason as u8 == number);
        let by_reason = reported
            .by_reason
            .iter()
            .filter_map(|&(number, count, last)| Some((reason(number)?, Loss { count, first: last, last })));
        let gaps =
            reported.gaps.iter().filter_map(|&(half, number, count)| Some(((half, reason(number)?), count)));
        Self {
            by_reason: by_reason.collect(),
            reported_gaps: gaps.collect(),
            archived: reported.cleared,
            dropped: reported.dropped,
            malformed: reported.malformed,
            damaged: reported.damaged,
            reported_damaged: reported.damaged,
            ..Self::default()
        }
    }

    /// Records that never came into a slab.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Reports the records that were found malformed since the last report.
    pub fn report_malformed(&mut self, provider: ProviderId, malformed: u64, out: &mut Vec<u8>) {
        let new = malformed.saturating_sub(self.malformed);
        if new > 0 {
            self.malformed = malformed;
            framing::loss(provider, LossCode::MALFORMED, Loss { count: new, ..Loss::default() }, out);
        }
    }

    /// The buffer is about to be cleared, after this many of its records were written into the archive.
    pub fn clear(&mut self, archived: u64) {
        self.archived += archived;
        // Halves count from 0 again.
        self.reported_gaps.clear();
    }

    /// Appends a record for each gap and each reason with unreported losses. Until the run is over only gaps
    /// are reported: a writer adds to the ledger and to a gap one after the other.
    ///
    /// # Errors
    /// The buffer cannot be read.
    //= docs/protocol.md#losses
    pub fn report<S: Source>(
        &mut self,
        provider: ProviderId,
        reader: &BufferReader<S>,
        is_over: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), BufferError> {
        let (gaps, damaged) = reader.gaps_and_damaged()?;
        self.damaged = self.damaged.max(damaged);
        self.report_gaps(provider, &gaps, out);
        if is_over {
            let ledger = reader.ledger()?;
            self.damaged = self.damaged.max(ledger.damaged);
            self.compare(&ledger.counts);
            let ledger = ledger.losses;
            let refused = ledger.iter().filter(|(reason, _)| is_refusal(*reason));
            let refused = refused.map(|(_, loss)| loss.count).fold(0, u64::saturating_add);
            // Late events are in slabs, and count with the reason that ended recording.
            self.refused = refused.saturating_sub(reader.findings().late_events);
            self.report_ledger(provider, &ledger, out);
        }
        Ok(())
    }

    /// Compares the ledger's counts with those read before: they only grow.
    fn compare(&mut self, counts: &[u64]) {
        let is_backwards = self.counts.iter().zip(counts).any(|(before, now)| now < before);
        if is_backwards {
            self.note_damage();
        }
        for (known, now) in self.counts.iter_mut().zip(counts) {
            *known = *now;
        }
    }

    fn report_gaps(&mut self, provider: ProviderId, gaps: &[GapLoss], out: &mut Vec<u8>) {
        for gap in gaps {
            let reported = self.reported_gaps.entry((gap.gap.half, gap.gap.reason)).or_default();
            let new = gap.loss.count.saturating_sub(*reported);
            if new > 0 {
                *reported += new;
                let all = self.by_reason.entry(gap.gap.reason).or_default();
                *all =
                    Loss { count: all.count.saturating_add(new), last: gap.loss.last.max(all.last), ..*all };
                self.dropped = self.dropped.saturating_add(new);
                framing::loss(provider, gap.gap.reason.into(), Loss { count: new, ..gap.loss }, out);
            }
        }
        if self.reported_gaps.len() > MAX_REPORTED_GAPS {
            let shown: BTreeSet<_> = gaps.iter().map(|gap| (gap.gap.half, gap.gap.reason)).collect();
            self.reported_gaps.retain(|key, _| shown.contains(key));
        }
    }

    /// Reports the ledger's losses beyond the gaps.
    fn report_ledger(&mut self, provider: ProviderId, ledger: &[(LossReason, Loss)], out: &mut Vec<u8>) {
        for &(reason, loss) in ledger {
            let reported = self.by_reason.entry(reason).or_default();
            let mut new = loss.count.saturating_sub(reported.count);
            let first = if reported.count > 0 { reported.last } else { loss.first };
            *reported = Loss { count: reported.count.max(loss.count), ..loss };
            if reason == LossReason::Cleared {
                let archived = new.min(self.archived);
                self.archived -= archived;
                new -= archived;
            }
            if reason != LossReason::Overwritten {
                self.dropped = self.dropped.saturating_add(new);
            }
            if new > 0 {
                framing::loss(provider, reason.into(), Loss { count: new, first, last: loss.last }, out);
            }
        }
    }
}

/// A record that was not written, rather than one that was and is gone.
fn is_refusal(reason: LossReason) -> bool {
    !matches!(reason, LossReason::Overwritten | LossReason::Cleared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Image;
    use trace_format::buffer::BufferMode;
    use trace_format::loss::LossRecord;
    use trace_format::record::{Record, RecordHeader};
    use trace_format::slab::Gap;
    use trace_reader::buffer::{Activity, BufferPart, Period};

    const PROVIDER: ProviderId = ProviderId(3);

    fn loss(count: u64, first: u64, last: u64) -> Loss {
        Loss { count, first, last }
    }

    fn gap(half: u64, loss: Loss) -> GapLoss {
        GapLoss { gap: Gap { half, reason: LossReason::NotSaved }, loss }
    }

    /// Reason, count and times of the records in an archive.
    fn reported(archive: &[u8]) -> Vec<(LossReason, Loss)> {
        let reason = |code| LossReason::ALL.into_iter().find(|reason| LossCode::from(*reason) == code);
        records(archive).into_iter().map(|(code, loss)| (reason(code).unwrap(), loss)).collect()
    }

    fn records(archive: &[u8]) -> Vec<(LossCode, Loss)> {
        let mut rest = archive;
        let mut reported = Vec::new();
        while !rest.is_empty() {
            let bytes = RecordHeader(u64::from_le_bytes(*rest.first_chunk().unwrap())).size().bytes();
            let record = Record::decode(&rest[..bytes]).unwrap();
            let Record::Blob(blob) = record else { panic!("{record:?}") };
            let record = LossRecord::decode(blob.payload).unwrap().unwrap();
            assert_eq!(record.provider, PROVIDER);
            reported.push((record.reason, loss(record.count, record.first.0, record.last.0)));
            rest = &rest[bytes..];
        }
        reported
    }

    fn gaps(losses: &mut Losses, gaps: &[GapLoss]) -> Vec<Loss> {
        let mut out = Vec::new();
        losses.report_gaps(PROVIDER, gaps, &mut out);
        reported(&out).into_iter().map(|(_, loss)| loss).collect()
    }

    fn ledger(losses: &mut Losses, ledger: &[(LossReason, Loss)]) -> Vec<(LossReason, Loss)> {
        let mut out = Vec::new();
        losses.report_ledger(PROVIDER, ledger, &mut out);
        reported(&out)
    }

    //= docs/protocol.md#losses
    #[test]
    fn a_gap_is_reported_once_and_what_it_grew_by() {
        let mut losses = Losses::default();
        assert_eq!(gaps(&mut losses, &[gap(4, loss(10, 100, 200))]), [loss(10, 100, 200)]);
        assert_eq!(gaps(&mut losses, &[gap(4, loss(10, 100, 200))]), []);
        let later = [gap(4, loss(12, 100, 230)), gap(6, loss(1, 500, 500))];
        assert_eq!(gaps(&mut losses, &later), [loss(2, 100, 230), loss(1, 500, 500)]);
        assert_eq!(losses.dropped(), 13);
    }

    #[test]
    fn a_record_that_is_too_large_fills_no_buffer() {
        let mut losses = Losses::default();
        ledger(&mut losses, &[(LossReason::TooLarge, loss(2, 50, 60)), (LossReason::Full, loss(0, 0, 0))]);
        assert_eq!((losses.dropped(), losses.was_full()), (2, false));
        ledger(&mut losses, &[(LossReason::Full, loss(1, 70, 70))]);
        assert!(losses.was_full());
        let mut losses = Losses::default();
        gaps(&mut losses, &[gap(4, loss(10, 100, 200))]);
        assert!(losses.was_full());
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
        for half in 0..10 * MAX_REPORTED_GAPS as u64 {
            let shown = [gap(half, loss(1, 5, 6)), gap(half + 1, loss(2, 5, 6))];
            let new = [loss(1, 5, 6), loss(2, 5, 6)];
            assert_eq!(
                gaps(&mut losses, &shown),
                if half == 0 { &new[..] } else { &new[1..] },
                "half {half}"
            );
            assert!(losses.reported_gaps.len() <= MAX_REPORTED_GAPS);
        }
        // As many as are remembered stay, shown or not.
        let mut losses = Losses::default();
        let many: Vec<_> = (0..MAX_REPORTED_GAPS as u64).map(|half| gap(half, loss(1, 5, 6))).collect();
        gaps(&mut losses, &many);
        assert_eq!(gaps(&mut losses, &[]), []);
        assert_eq!(gaps(&mut losses, &many), []);
        gaps(&mut losses, &[gap(1000, loss(1, 5, 6)), gap(1001, loss(1, 5, 6))]);
        assert_eq!(losses.reported_gaps.len(), 2);
    }

    //= docs/recovery.md#what-is-recovered
    #[test]
    fn a_resumed_report_adds_the_rest() {
        let mut losses = Losses::default();
        losses.clear(4);
        gaps(&mut losses, &[gap(4, loss(10, 100, 200))]);
        ledger(&mut losses, &[(LossReason::Full, loss(0, 0, 0)), (LossReason::TooLarge, loss(2, 50, 60))]);
        losses.report_malformed(PROVIDER, 5, &mut Vec::new());
        losses.note_damage();
        losses.report_damage(PROVIDER, &mut Vec::new());
        let reported: Reported =
            serde_json::from_str(&serde_json::to_string(&losses.reported()).unwrap()).unwrap();
        // Reasons without losses are left out.
        assert_eq!(reported.by_reason, [(2, 10, 200), (5, 2, 60)]);
        let mut losses = Losses::resume(&reported);
        assert!(losses.is_damaged());
        assert_eq!((losses.dropped(), losses.reported()), (12, reported));
        assert_eq!(gaps(&mut losses, &[gap(4, loss(11, 100, 210))]), [loss(1, 100, 210)]);
        let all = [(LossReason::NotSaved, loss(13, 100, 900)), (LossReason::TooLarge, loss(3, 50, 70))];
        let rest = [(LossReason::NotSaved, loss(2, 210, 900)), (LossReason::TooLarge, loss(1, 60, 70))];
        assert_eq!(ledger(&mut losses, &all), rest);
        assert_eq!(losses.dropped(), 16);
    }

    //= docs/recovery.md#what-is-recovered
    #[test]
    fn a_stored_report_is_cleared_as_the_losses_are() {
        let mut losses = Losses::default();
        losses.clear(60);
        gaps(&mut losses, &[gap(4, loss(10, 100, 200))]);
        let mut reported = losses.reported();
        reported.clear(40);
        losses.clear(40);
        assert_eq!(losses.reported(), reported);
        let cleared = |count| [(LossReason::Cleared, loss(count, 0, 7))];
        assert_eq!(ledger(&mut Losses::resume(&reported), &cleared(103)), cleared(3));
    }

    //= docs/protocol.md#losses
    #[test]
    fn the_ledger_is_reported_when_a_run_is_over() {
        let image = Image::sized(1 << 20, BufferMode::Streaming);
        let layout = image.layout;
        let gap = Gap { half: 4, reason: LossReason::NotSaved };
        let image = image
            .words(layout.loss_entry(LossReason::Overwritten), &[7, !1, 2])
            .words(layout.loss_entry(LossReason::NotSaved), &[5, !10, 20])
            .words(layout.loss_entry(LossReason::Cleared), &[2, !1, 3])
            .words(layout.gap(0), &[3, !10, 15, gap.to_word()]);
        let mut reader = image.reader(BufferPart::Rest(Activity::Quiet));
        let mut losses = Losses::default();
        let mut out = Vec::new();
        losses.report(PROVIDER, &reader, false, &mut out).unwrap();
        assert_eq!(reported(&out), [(LossReason::NotSaved, loss(3, 10, 15))]);
        assert_eq!((losses.dropped(), losses.refused()), (3, 0));
        out.clear();
        losses.report(PROVIDER, &reader, true, &mut out).unwrap();
        let rest = [
            (LossReason::Overwritten, loss(7, 1, 2)),
            (LossReason::NotSaved, loss(2, 15, 20)),
            (LossReason::Cleared, loss(2, 1, 3)),
        ];
        assert_eq!(reported(&out), rest);
        // Records that were overwritten or cleared had been written.
        assert_eq!((losses.dropped(), losses.refused()), (7, 5));
        let lost = |reason, records| Lost { reason: LossCode::from(reason).0, records };
        assert_eq!(losses.by_reason(), [lost(LossReason::Overwritten, 7), lost(LossReason::NotSaved, 5)]);
        assert!(!losses.is_damaged());
        // No writer has lost so many in no time.
        let image = image.words(layout.loss_entry(LossReason::Full), &[1 << 21, !1, 2]);
        reader = image.reader(BufferPart::Rest(Activity::Quiet));
        reader.set_period(Period { made: 0, read: 0 });
        losses.report(PROVIDER, &reader, true, &mut Vec::new()).unwrap();
        assert!(losses.is_damaged());
    }

    //= docs/protocol.md#losses
    #[test]
    fn malformed_records_are_reported_once() {
        let mut losses = Losses::default();
        let report = |losses: &mut Losses, malformed| {
            let mut out = Vec::new();
            losses.report_malformed(PROVIDER, malformed, &mut out);
            records(&out)
        };
        assert_eq!(report(&mut losses, 0), []);
        assert_eq!(report(&mut losses, 3), [(LossCode::MALFORMED, loss(3, 0, 0))]);
        assert_eq!(report(&mut losses, 3), []);
        assert_eq!(report(&mut losses, 5), [(LossCode::MALFORMED, loss(2, 0, 0))]);
        assert_eq!(losses.by_reason(), [Lost { reason: LossCode::MALFORMED.0, records: 5 }]);
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
    fn counts_that_go_backwards_are_damage_and_reported_once() {
        let mut losses = Losses::default();
        losses.compare(&[8, 0, 3]);
        losses.compare(&[8, 1, 3]);
        assert!(!losses.is_damaged());
        losses.compare(&[9, 0, 2]);
        assert!(losses.is_damaged());
        let mut out = Vec::new();
        losses.report_damage(PROVIDER, &mut out);
        let reported_once = out.len();
        losses.report_damage(PROVIDER, &mut out);
        assert_eq!(out.len(), reported_once);
        let Record::Blob(blob) = Record::decode(&out).unwrap() else { panic!("{out:?}") };
        let record = LossRecord::decode(blob.payload).unwrap().unwrap();
        assert_eq!((record.reason, record.count), (LossCode::DAMAGED_COUNTERS, 1));
        // A damaged counter is not a number of records.
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
    fn going_round_is_reported_and_not_a_drop() {
        let mut losses = Losses::default();
        let overwritten = [(LossReason::Overwritten, loss(1000, 0, 7))];
        assert_eq!(ledger(&mut losses, &overwritten), overwritten);
        assert_eq!(losses.dropped(), 0);
    }
}
