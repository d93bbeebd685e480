//! The summary after a recording, for programs.

use super::{Summary, advice};
use crate::files::account::{loss_json, trace_json};
use crate::shell::json::{self, Answer};
use serde_json::json;
use trace_format::loss::LossCode;
use trace_protocol::controller::ProviderStats;

impl Summary<'_> {
    /// The file, each program, what was lost, and the options that would have avoided it.
    //= docs/recording.md#what-is-lost
    pub fn answer(&self) -> Answer {
        let sum = |of: fn(&ProviderStats) -> Option<u64>| {
            self.providers.iter().filter_map(of).fold(0, u64::saturating_add)
        };
        let result = json!({
            "events": sum(|program| program.events_archived),
            "lost": self.providers.iter().all(has_count).then(|| sum(|program| program.records_dropped)),
            "programs": self.providers.iter().map(program).collect::<Vec<_>>(),
            "advice": advice::lines(self.providers, self.buffer_size, self.room),
        });
        let file = (!self.is_unchanged).then_some(self.place);
        let mut answer = Answer::of(result);
        answer.traces.extend(file.map(|file| trace_json(file, self.file_bytes, None)));
        add_losses(&mut answer, self.place, self.providers);
        answer
    }
}

/// Adds what programs have lost, and what went wrong with them.
pub fn add_losses(answer: &mut Answer, file: &str, programs: &[ProviderStats]) {
    for program in programs {
        answer.losses.extend(program.losses.iter().map(|lost| {
            let mut loss =
                loss_json(file, &program.name, program.id, LossCode(lost.reason), lost.records, None);
            loss["is_intended"] = (!advice::is_loss(lost)).into();
            loss
        }));
        answer.problems.extend((!program.problem.is_empty()).then(|| {
            let mut problem = json::problem("program", None, Some(&program.problem), None);
            (problem["file"], problem["program_id"]) = (file.into(), program.id.into());
            problem
        }));
    }
}

/// Whether it is known how much a program has lost.
fn has_count(provider: &ProviderStats) -> bool {
    provider.losses.iter().all(|lost| LossCode(lost.reason).has_count())
}

/// A program.
pub fn program(program: &ProviderStats) -> serde_json::Value {
    json!({
        "id": program.id,
        "name": program.name,
        "pid": program.pid,
        "buffering_mode": program.buffering_mode.map(|mode| mode.to_string()),
        "buffer_bytes": program.buffer_bytes,
        "fill_percent": program.percentage_rolling_buffer_used,
        "events": program.events_archived,
        "bytes": program.bytes_archived,
        "generated": program.records_generated,
        "lost": program.records_dropped.filter(|_| has_count(program)),
        "end_reason": program.disposition,
        "open_scopes": Some(&program.open_scopes).filter(|open| !open.is_empty()),
    })
}
