//! The summary after a recording, for programs.

use super::{Summary, advice};
use serde_json::json;
use trace_format::loss::LossCode;
use trace_protocol::controller::ProviderStats;

impl Summary<'_> {
    /// A document: the file, each program with its losses and their reasons, and the options that would have
    /// avoided them.
    //= docs/recording.md#what-is-lost
    pub fn json(&self) -> String {
        let sum = |of: fn(&ProviderStats) -> Option<u64>| {
            self.providers.iter().filter_map(of).fold(0, u64::saturating_add)
        };
        let document = json!({
            "version": crate::shell::json::VERSION,
            "file": (!self.is_unchanged).then_some(self.place),
            "bytes": self.file_bytes,
            "events": sum(|provider| provider.events_archived),
            "dropped": self.providers.iter().all(has_count).then(|| sum(|provider| provider.records_dropped)),
            "providers": self.providers.iter().map(provider).collect::<Vec<_>>(),
            "advice": advice::lines(self.providers, self.buffer_size, self.room),
        });
        format!("{document:#}\n")
    }
}

/// Whether it is known how much a program has lost.
fn has_count(provider: &ProviderStats) -> bool {
    provider.losses.iter().all(|lost| LossCode(lost.reason).has_count())
}

/// A program, with its losses.
pub fn provider(provider: &ProviderStats) -> serde_json::Value {
    let losses = provider.losses.iter().map(|lost| {
        json!({
            "reason": lost.reason,
            "reason_text": LossCode(lost.reason).text(),
            "count": LossCode(lost.reason).has_count().then_some(lost.records),
            "wanted": advice::is_loss(lost),
        })
    });
    json!({
        "id": provider.id,
        "name": provider.name,
        "pid": provider.pid,
        "buffering_mode": provider.buffering_mode.map(|mode| mode.to_string()),
        "buffer_bytes": provider.buffer_bytes,
        "buffer_percent": provider.percentage_rolling_buffer_used,
        "events": provider.events_archived,
        "bytes": provider.bytes_archived,
        "generated": provider.records_generated,
        "dropped": provider.records_dropped.filter(|_| has_count(provider)),
        "losses": losses.collect::<Vec<_>>(),
        "end": provider.disposition,
        "open_scopes": Some(&provider.open_scopes).filter(|open| !open.is_empty()),
        "problem": Some(&provider.problem).filter(|problem| !problem.is_empty()),
    })
}
