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
    /// Providers of which records are missing; an archive has a record of its own for each.
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
        if let Item::Loss(loss) = &record.item {
            self.incomplete.insert(loss.provider);
        } else if record.provider == MANAGER {
            self.note_remark(&record.item);
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

    /// Returns why a span without an end has none, and how long it had lasted. The remark about the run in
    /// which the span began counts. Times are nanoseconds.
    #[must_use]
    pub fn of(&self, process: Koid, begin: u64) -> Option<(Ending, u64)> {
        self.find(process, begin).map(|(ending, _, lasted)| (ending, lasted))
    }

    /// Like [`Partings::of`], for an operation. Returns `None` if records of the program are missing: the end
    /// may be one of them, because another thread can write it, and its records may be overwritten first.
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
    use trace_reader::Reader;
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
        // Of the last one, records are missing.
        let of_operation = |process| partings.of_operation(Koid(process), 1);
        assert_eq!((of_operation(7), of_operation(8)), (Some((Ending::Stop, 9)), None));
    }

    fn padded(text: &str) -> Vec<u64> {
        let words = text.as_bytes().chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        words.collect()
    }

    /// A header with an inline name, and the words behind it.
    fn named(header: u64, at: u32, name: &str, rest: &[u64]) -> Vec<u64> {
        let words = [padded(name), rest.to_vec()].concat();
        let inline = (0x8000 | name.len() as u64) << at;
        [vec![header | (1 + words.len() as u64) << 4 | inline], words].concat()
    }

    fn provider(id: u64) -> Vec<u64> {
        vec![2 << 4 | 1 << 16 | id << 20 | 1 << 52, u64::from(b'p')]
    }

    fn loss(provider: u64) -> Vec<u64> {
        named(5 | 32 << 32 | 1 << 48, 16, "trace:loss", &[1 | 1 << 16 | provider << 32, 1, 0, 0])
    }

    fn remark(provider: u64, process: u64, at: u64) -> Vec<u64> {
        let open = [padded("open"), padded("open at death")].concat();
        let open_header = 6 | (1 + open.len() as u64) << 4 | 0x8004 << 16 | 0x800d << 32;
        let arguments = [
            named(8, 16, "process", &[process]),
            named(2 | provider << 32, 16, "provider", &[]),
            [vec![open_header], open].concat(),
            named(4, 16, "at", &[at]),
        ]
        .concat();
        let header = 7 | (2 + arguments.len() as u64) << 4 | 4 << 16 | 4 << 40;
        [vec![header, 0], arguments].concat()
    }

    fn of_archive(records: &[Vec<u64>]) -> Partings {
        let words = [vec![0x0016_5478_4604_0010], records.concat()].concat();
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let mut reader = Reader::new(&bytes[..]).unwrap();
        let mut partings = Partings::default();
        while let Some(record) = reader.next_item().unwrap() {
            partings.note(&record);
        }
        partings
    }

    #[test]
    fn remarks_of_the_manager_count_and_losses_of_their_provider() {
        let rate = vec![0x21, 2_000_000_000];
        let remarks = [remark(1, 70, 200), remark(2, 80, 400)].concat();
        let partings = of_archive(&[provider(2), loss(2), provider(0), rate.clone(), remarks]);
        let death = |lasted| Some((Ending::Death, lasted));
        assert_eq!([partings.of(Koid(70), 10), partings.of(Koid(80), 10)], [death(90), death(190)]);
        assert_eq!(
            [partings.of_operation(Koid(70), 10), partings.of_operation(Koid(80), 10)],
            [death(90), None]
        );
        // No other provider's remark counts, and none without a rate.
        let other = of_archive(&[provider(1), rate.clone(), remark(1, 70, 200)]);
        let without = of_archive(&[provider(0), remark(1, 70, 200), rate]);
        assert_eq!([other.of(Koid(70), 10), without.of(Koid(70), 10)], [None, None]);
    }
}
