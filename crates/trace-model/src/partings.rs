//! The reasons that the manager gives for spans without an end.

use std::collections::{BTreeMap, BTreeSet};
use trace_reader::item::{Ending, Koid, Parting, ProviderId, TicksPerSecond};
use trace_reader::{Item, MANAGER, Resolved};

/// Remarks at most: an archive has one for each program and run.
const MAX_REMARKS: usize = 65_536;

/// For each program, the times up to which its spans are recorded, with the reason for those that have no
/// end.
//= docs/protocol.md#provider-descriptions
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partings {
    rate: Option<TicksPerSecond>,
    /// By process and time, in nanoseconds: the reason, and whether some of its records are missing.
    remarks: BTreeMap<(Koid, u64), (Ending, bool)>,
    /// Providers of which records are missing.
    incomplete: BTreeSet<ProviderId>,
}

impl Partings {
    /// One remark.
    #[cfg(test)]
    pub fn of_remark(process: Koid, at: u64, ending: Ending) -> Self {
        Self { remarks: [((process, at), (ending, false))].into(), ..Self::default() }
    }

    /// Takes a record, in the order of the archive.
    #[inline]
    pub fn note(&mut self, record: &Resolved<'_>) {
        if record.provider == MANAGER {
            self.note_remark(&record.item);
        } else if let Item::Loss(_) = record.item
            && self.incomplete.len() < MAX_REMARKS
        {
            self.incomplete.insert(record.provider);
        }
    }

    fn note_remark(&mut self, item: &Item<'_>) {
        if let Item::Initialization { rate } = item {
            self.rate = Some(*rate);
        } else if let (Some(Parting { process, provider, at, ending }), Some(rate)) =
            (item.parting(), self.rate)
            && self.remarks.len() < MAX_REMARKS
        {
            let is_incomplete = provider.is_some_and(|provider| self.incomplete.contains(&provider));
            self.remarks.insert((process, at.to_nanos(rate).0), (ending, is_incomplete));
        }
    }

    /// The reason for a span of a process that has no end, and how long the span had lasted. It is that of
    /// the run in which the span began. Times are nanoseconds.
    #[must_use]
    pub fn of(&self, process: Koid, begin: u64) -> Option<(Ending, u64)> {
        self.find(process, begin).map(|(ending, _, lasted)| (ending, lasted))
    }

    /// The same for an operation: none if records are missing. Another thread may have written the end, and
    /// a circular buffer has room for the begin and none for that.
    #[must_use]
    pub fn of_operation(&self, process: Koid, begin: u64) -> Option<(Ending, u64)> {
        let found = self.find(process, begin).filter(|(_, is_incomplete, _)| !is_incomplete);
        found.map(|(ending, _, lasted)| (ending, lasted))
    }

    fn find(&self, process: Koid, begin: u64) -> Option<(Ending, bool, u64)> {
        let run = (process, begin)..=(process, u64::MAX);
        let ((_, at), (ending, is_incomplete)) = self.remarks.range(run).next()?;
        Some((*ending, *is_incomplete, at - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;
    use trace_reader::item::Ticks;

    /// Two runs of one program, and one of another, of a clock with two ticks for a nanosecond.
    #[test]
    fn a_span_has_the_reason_of_its_run() {
        let mut partings = Partings::default();
        let rate = TicksPerSecond(NonZeroU64::new(2_000_000_000).unwrap());
        partings.note_remark(&Item::Initialization { rate });
        for (process, at, ending) in
            [(7, 20, Ending::Stop), (7, 60, Ending::Death), (8, 200, Ending::Snapshot)]
        {
            let at = Ticks(at).to_nanos(rate).0;
            partings.remarks.insert((Koid(process), at), (ending, process == 8));
        }
        let of = |process, begin| partings.of(Koid(process), begin);
        assert_eq!((of(7, 4), of(7, 10)), (Some((Ending::Stop, 6)), Some((Ending::Stop, 0))));
        assert_eq!((of(7, 11), of(7, 31)), (Some((Ending::Death, 19)), None));
        assert_eq!((of(8, 1), of(9, 1), of(6, 1)), (Some((Ending::Snapshot, 99)), None, None));
        // Of the third one, records are missing.
        let of_operation = |process| partings.of_operation(Koid(process), 1);
        assert_eq!((of_operation(7), of_operation(8)), (Some((Ending::Stop, 9)), None));
    }
}
