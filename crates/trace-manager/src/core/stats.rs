//! Results for the answer to a Stop, gathered while providers come and go.

use trace_protocol::controller::{ProviderDisposition, ProviderStats, StopResult};

/// Maximum number of entries in the answer to a Stop. With every text at its longest the answer still fits
/// into a message.
const MAX_ENTRIES: usize = 2500;

/// Metrics of the providers of a run.
///
/// A run of a build may see thousands of short-lived providers; beyond [`MAX_ENTRIES`] they are summed up in
/// one entry, so that the answer can always be sent.
#[derive(Debug, Default)]
pub(super) struct Stats {
    /// Transferred since the last Start.
    run: Vec<ProviderStats>,
    /// Could not take part in the session.
    untraced: Vec<ProviderStats>,
}

impl Stats {
    /// Forgets the previous run; providers that cannot take part are not forgotten.
    pub fn begin_run(&mut self) {
        self.run.clear();
    }

    /// Adds a provider whose data was handed over.
    pub fn push(&mut self, stats: ProviderStats) {
        push_or_sum(&mut self.run, stats);
    }

    /// The entries of a process that was recorded.
    pub fn of_process(&mut self, pid: u64) -> impl Iterator<Item = &mut ProviderStats> {
        self.run.iter_mut().filter(move |stats| stats.pid == pid)
    }

    /// Whether a process could not take part.
    pub fn has_untraced(&self, pid: u64) -> bool {
        self.untraced.iter().any(|stats| stats.pid == pid)
    }

    /// Adds a provider that cannot take part.
    pub fn push_untraced(&mut self, stats: ProviderStats) {
        push_or_sum(&mut self.untraced, stats);
    }

    /// Everything together with the providers whose data stays in their buffers.
    pub fn result(&self, kept: impl Iterator<Item = ProviderStats>) -> StopResult {
        let mut provider_stats = Vec::new();
        for stats in self.run.iter().chain(&self.untraced).cloned().chain(kept) {
            push_or_sum(&mut provider_stats, stats);
        }
        StopResult { provider_stats }
    }
}

fn push_or_sum(entries: &mut Vec<ProviderStats>, stats: ProviderStats) {
    if entries.len() < MAX_ENTRIES {
        entries.push(stats);
        return;
    }
    let Some(last) = entries.last_mut() else {
        return;
    };
    *last = ProviderStats {
        name: "further programs".to_owned(),
        records_dropped: sum(last.records_dropped, stats.records_dropped),
        non_durable_bytes_written: sum(last.non_durable_bytes_written, stats.non_durable_bytes_written),
        events_archived: sum(last.events_archived, stats.events_archived),
        bytes_archived: sum(last.bytes_archived, stats.bytes_archived),
        malformed_records: sum(last.malformed_records, stats.malformed_records),
        records_generated: sum(last.records_generated, stats.records_generated),
        disposition: ProviderDisposition::SummedUp.into(),
        ..ProviderStats::default()
    };
}

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.saturating_add(right)),
        (one, other) => one.or(other),
    }
}
