//! What the manager says of programs whose spans have begun and not ended.

use std::collections::HashMap;
use trace_reader::item::{Ending, Koid, Ticks, TicksPerSecond};
use trace_reader::{Item, MANAGER, Resolved};

/// Remarks at most: an archive has one for each program and run.
const MAX_REMARKS: usize = 65_536;

/// When the recording of each program was over, and why: the reason of all its spans that have no end.
//= docs/protocol.md#provider-descriptions
#[derive(Debug, Default)]
pub struct Partings {
    rate: Option<TicksPerSecond>,
    count: usize,
    /// By process, in the order of the archive.
    by_process: HashMap<Koid, Vec<(Ticks, Ending)>>,
}

impl Partings {
    /// Takes a record, in the order of the archive.
    #[inline]
    pub fn note(&mut self, record: &Resolved<'_>) {
        if record.provider == MANAGER {
            self.note_remark(&record.item);
        }
    }

    fn note_remark(&mut self, item: &Item<'_>) {
        match item {
            Item::Initialization { rate } => self.rate = Some(*rate),
            item => {
                if let Some((process, at, ending)) = item.parting().filter(|_| self.count < MAX_REMARKS) {
                    self.by_process.entry(process).or_default().push((at, ending));
                    self.count += 1;
                }
            }
        }
    }

    /// Why a span of a process has no end that began at a time, and how long it had lasted by then; both in
    /// nanoseconds.
    #[must_use]
    pub fn of(&self, process: Koid, begin: u64) -> Option<(Ending, u64)> {
        let rate = self.rate?;
        let remarks = self.by_process.get(&process)?.iter();
        let mut remarks = remarks.map(|(at, ending)| (*ending, at.to_nanos(rate).0));
        // That of the run in which it began.
        let (ending, at) = remarks.find(|(_, at)| *at >= begin)?;
        Some((ending, at - begin))
    }
}
