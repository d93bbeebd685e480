//! A buffer's own accounts of its records: how many were written, how many are gone, and why.

use super::{
    BufferError, BufferReader, GapLoss, Ledger, Shortage, Source, Usage, Written, is_whole_run, read_exact,
};
use std::ops::Range;
use trace_format::buffer::BufferMode;
use trace_format::slab::{
    Gap, Loss, LossReason, SlabState, SlabWord, TALLY_BYTES, TOO_LARGE_FOR_FORMAT, Tally,
};

impl<S: Source> BufferReader<S> {
    /// The loss ledger as the writer left it; events that were found to be late are added to what ended
    /// recording. Counts that no writer can have reached are dropped.
    ///
    /// # Errors
    /// The buffer cannot be read.
    //= docs/buffer.md#contents-that-are-checked
    pub fn ledger(&self) -> Result<Ledger, BufferError> {
        let mut losses = [(LossReason::Full, Loss::default()); LossReason::ALL.len()];
        let mut counts = [0; LossReason::ALL.len()];
        let mut damaged = 0;
        for ((slot, seen), reason) in losses.iter_mut().zip(&mut counts).zip(LossReason::ALL) {
            let [count, complement, last, _] = self.entry(self.header.layout.loss_entry(reason))?;
            let loss = Loss::from_words([count, complement, last]);
            *seen = count;
            let is_plausible = self.is_plausible(&loss);
            damaged += u64::from(!is_plausible);
            *slot = (reason, if is_plausible { loss } else { Loss::default() });
        }
        if self.header.layout.mode == BufferMode::Circular {
            // Records that are gone were overwritten or cleared.
            let cleared = losses[LossReason::Cleared as usize].1.count;
            let gone = self.gone()?;
            if gone <= self.most_records() {
                losses[LossReason::Overwritten as usize].1.count = gone.saturating_sub(cleared);
            } else {
                damaged += 1;
            }
        }
        let is_durable_full = losses[LossReason::DurableFull as usize].1.count > 0;
        let ended_by = if is_durable_full { LossReason::DurableFull } else { LossReason::Full };
        let count = &mut losses[ended_by as usize].1.count;
        *count = count.saturating_add(self.findings.late_events);
        Ok(Ledger { losses, counts, damaged })
    }

    /// The losses of [`BufferReader::ledger`].
    ///
    /// # Errors
    /// The buffer cannot be read.
    pub fn losses(&self) -> Result<[(LossReason, Loss); LossReason::ALL.len()], BufferError> {
        self.ledger().map(|ledger| ledger.losses)
    }

    /// Whether a writer can have counted this many, with the last at this time.
    fn is_plausible(&self, loss: &Loss) -> bool {
        loss.count == 0 || loss.count <= self.most_records() && loss.last <= self.latest()
    }

    /// The records that threads have written so far, by their tallies; for slabs that are still with a
    /// thread, by the records found in them.
    ///
    /// # Errors
    /// The buffer cannot be read.
    //= docs/buffer.md#tallies
    pub fn written(&self) -> Result<Written, BufferError> {
        let words = self.slab_words(0, self.header.layout.slab_count())?;
        let floor = self.header.floor_sequence.max(1);
        let mut written = Written::default();
        for ((tally, word), read) in self.tallies()?.into_iter().zip(words).zip(&self.read) {
            written.records = written.records.saturating_add(tally.total);
            let is_open = word.state() == SlabState::Open && word.sequence() >= floor;
            if is_open && !tally.has_present_claim() {
                written.open_slabs += 1;
                let found = if read.sequence == word.sequence() { read.records } else { 0 };
                written.records = written.records.saturating_add(found);
            }
        }
        if written.records > self.most_records() {
            (written.records, written.is_damaged) = (0, true);
        }
        Ok(written)
    }

    /// The fill levels of the buffer; in streaming mode, after the given number of halves were returned to
    /// the writer.
    ///
    /// # Errors
    /// The buffer cannot be read.
    pub fn usage(&self, saved_halves: u64) -> Result<Usage, BufferError> {
        let layout = &self.header.layout;
        let words = self.slab_words(0, layout.slab_count())?;
        let floor = self.header.floor_sequence.max(1);
        let claimed = words.iter().map(|word| word.sequence() + 1).max().unwrap_or(0).saturating_sub(floor);
        let records = self.tallies()?.iter().map(|tally| tally.total).fold(0, u64::saturating_add);
        let ledger = self.ledger()?;
        let has_claims = claimed <= self.most_claims();
        let has_records = records <= self.most_records();
        let claimed = if has_claims { claimed } else { 0 };
        let in_use = match layout.mode {
            BufferMode::Streaming => {
                claimed.saturating_sub(saved_halves.saturating_mul(u64::from(layout.slabs_per_half)))
            }
            BufferMode::Oneshot | BufferMode::Circular => claimed,
        };
        let slabs = u64::from(layout.slab_count());
        let refused = ledger
            .losses
            .into_iter()
            .filter(|(reason, _)| !matches!(reason, LossReason::Overwritten | LossReason::Cleared));
        Ok(Usage {
            records: if has_records { records } else { 0 },
            refused: refused.map(|(_, loss)| loss.count).fold(0, u64::saturating_add),
            claimed_bytes: claimed.saturating_mul(layout.slab_bytes),
            held_bytes: in_use.min(slabs).saturating_mul(layout.slab_bytes) + self.header.durable_data_end,
            rolling_percent: 100.0 * in_use.min(slabs) as f32 / slabs.max(1) as f32,
            is_damaged: self.header_fault.is_some() || ledger.damaged > 0 || !has_claims || !has_records,
        })
    }

    /// Unused parts of the buffer, as offsets in bytes: after the given number of bytes of definitions, and
    /// slabs that were never claimed.
    ///
    /// # Errors
    /// The buffer cannot be read.
    pub fn unused(&self, durable_bytes: u64) -> Result<Vec<Range<u64>>, BufferError> {
        let layout = &self.header.layout;
        let durable_end = layout.durable + durable_bytes.min(layout.durable_bytes);
        let mut parts: Vec<Range<u64>> = Vec::new();
        parts.push(durable_end..layout.durable + layout.durable_bytes);
        for (slab, word) in (0..).zip(self.slab_words(0, layout.slab_count())?) {
            if word == SlabWord::EMPTY {
                let start = layout.slab(slab);
                match parts.last_mut().filter(|last| last.end == start) {
                    Some(last) => last.end += layout.slab_bytes,
                    None => parts.push(start..start + layout.slab_bytes),
                }
            }
        }
        Ok(parts)
    }

    /// The sizes with which the buffer would have kept everything since it was made.
    ///
    /// # Errors
    /// The buffer cannot be read.
    //= docs/buffer.md#what-was-short
    pub fn shortage(&self) -> Result<Shortage, BufferError> {
        let layout = &self.header.layout;
        let spare = |reason| Ok::<u64, BufferError>(self.entry(layout.loss_entry(reason))?[3]);
        let (full, definitions) = (spare(LossReason::Full)?, spare(LossReason::DurableFull)?);
        let late = spare(LossReason::NotSaved)?.saturating_add(spare(LossReason::NotRetired)?);
        let too_large = spare(LossReason::TooLarge)?;
        let has_room = match layout.mode {
            BufferMode::Streaming => self.usage(0)?.claimed_bytes,
            BufferMode::Oneshot | BufferMode::Circular => u64::from(layout.slab_count()) * layout.slab_bytes,
        };
        let short = full.saturating_add(late);
        let is_beyond_format = too_large & TOO_LARGE_FOR_FORMAT != 0;
        Ok(Shortage {
            rolling_bytes: (short > 0).then(|| has_room.saturating_add(short)),
            durable_bytes: (definitions > 0).then(|| layout.durable_bytes.saturating_add(definitions)),
            record_bytes: (too_large > 0 && !is_beyond_format).then_some(too_large),
            is_beyond_format,
        })
    }

    fn tallies(&self) -> Result<Vec<Tally>, BufferError> {
        let layout = &self.header.layout;
        let mut tallies = vec![0; layout.slab_count() as usize * TALLY_BYTES as usize];
        read_exact(&self.source, layout.tallies, &mut tallies)?;
        let tallies = tallies.as_chunks::<8>().0.as_chunks::<4>().0.iter();
        Ok(tallies.map(|tally| Tally::from_words(tally.map(u64::from_le_bytes))).collect())
    }

    /// Records that were in slabs and no longer are. If another thread took the end of a run before the claim
    /// of its beginning was complete, the record is gone with it.
    //= docs/buffer.md#tallies
    //= docs/buffer.md#late-threads
    fn gone(&self) -> Result<u64, BufferError> {
        let layout = &self.header.layout;
        let words = self.slab_words(0, layout.slab_count())?;
        let gone = self.tallies()?.into_iter().zip(&words).zip(0..).map(|((tally, word), slab)| {
            let is_cut =
                word.state() == SlabState::Closed && !is_whole_run(layout, slab, &words[slab as usize..]);
            if is_cut { tally.total } else { tally.gone(*word) }
        });
        Ok(gone.fold(0, u64::saturating_add))
    }

    /// The last times in which writers could not get a slab, in order. Small buffers keep none.
    ///
    /// # Errors
    /// The buffer cannot be read.
    //= docs/buffer.md#gaps
    pub fn gaps(&self) -> Result<Vec<GapLoss>, BufferError> {
        self.gaps_and_damaged().map(|(gaps, _)| gaps)
    }

    /// The same, and the number of implausible ones.
    ///
    /// # Errors
    /// The buffer cannot be read.
    pub fn gaps_and_damaged(&self) -> Result<(Vec<GapLoss>, u64), BufferError> {
        let (mut gaps, mut damaged) = (Vec::new(), 0);
        for index in 0..self.header.layout.gap_count() {
            let [count, complement, last, key] = self.entry(self.header.layout.gap(index))?;
            let loss = Loss::from_words([count, complement, last]);
            match Gap::from_word(key).filter(|_| count > 0) {
                Some(gap) if self.is_plausible(&loss) => gaps.push(GapLoss { gap, loss }),
                Some(_) => damaged += 1,
                None => {}
            }
        }
        gaps.sort_by_key(|gap| (gap.gap.half, gap.gap.reason));
        Ok((gaps, damaged))
    }

    fn entry(&self, offset: u64) -> Result<[u64; 4], BufferError> {
        let mut bytes = [0; 32];
        read_exact(&self.source, offset, &mut bytes)?;
        let mut words = [0; 4];
        for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*chunk);
        }
        Ok(words)
    }
}
