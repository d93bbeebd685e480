//! Memory dumps: programs are asked, all at one moment, what they use their memory for.
//= docs/protocol.md#memory-dumps

use super::providers::Providers;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use trace_format::units::ProviderId;
use trace_protocol::memory::{MemoryDump, MemoryDumpLevel, MemoryDumps};

/// The memory dumps of this manager.
#[derive(Debug, Default)]
pub(super) struct Dumps {
    /// Number of the last one.
    last: u64,
}

/// A memory dump that was requested from providers.
pub(super) struct Taken {
    pub dump: MemoryDump,
    /// Providers that confirm when they have written it.
    pub answering: BTreeSet<ProviderId>,
}

impl Dumps {
    /// Requests a dump from the providers that record; those that can confirm when they have written it.
    pub fn take(
        &mut self,
        providers: &mut Providers,
        recording: &[ProviderId],
        level: MemoryDumpLevel,
        answers: bool,
    ) -> Taken {
        self.last += 1;
        let mut answering = BTreeSet::new();
        let mut asked = 0_u32;
        let mut can_all_answer = answers;
        for id in recording {
            if let Some(can_answer) = providers.dump_memory(*id, self.last, level, answers) {
                asked = asked.saturating_add(1);
                can_all_answer &= can_answer;
                answering.extend((can_answer && answers).then_some(*id));
            }
        }
        let dump = MemoryDump { id: self.last, providers: asked, written: can_all_answer.then_some(0) };
        Taken { dump, answering }
    }

    /// Requests the dump of a session that is due, if the session wants any. `next` is when it is.
    pub fn take_if_due(
        &mut self,
        now: Instant,
        next: &mut Option<Instant>,
        wanted: Option<MemoryDumps>,
        providers: &mut Providers,
        recording: impl FnOnce() -> Option<Vec<ProviderId>>,
    ) {
        let Some(wanted) = wanted else {
            *next = None;
            return;
        };
        let due = *next.get_or_insert(now);
        if due > now {
            return;
        }
        self.take(providers, &recording().unwrap_or_default(), wanted.level, false);
        let interval = Duration::from_millis(wanted.interval_milliseconds.max(1));
        // On a fixed grid; missed dumps are not made up for.
        let missed = (now - due).as_nanos() / interval.as_nanos();
        *next = Some(due + interval * u32::try_from(missed).unwrap_or(u32::MAX - 1).saturating_add(1));
    }
}
