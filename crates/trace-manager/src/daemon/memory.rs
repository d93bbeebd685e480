//! Dumps of memory: programs are asked, all at one moment, for what they use it.
//= docs/protocol.md#memory-dumps

use super::providers::Providers;
use std::time::{Duration, Instant};
use trace_format::units::ProviderId;
use trace_protocol::memory::{MemoryDump, MemoryDumpLevel, MemoryDumps};

/// The dumps of this manager.
#[derive(Debug, Default)]
pub(super) struct Dumps {
    /// Number of the last one.
    last: u64,
    /// When the next one of a session is due that wants them again and again.
    next: Option<Instant>,
}

impl Dumps {
    /// Asks those who record.
    pub fn take(
        &mut self,
        providers: &mut Providers,
        recording: &[ProviderId],
        level: MemoryDumpLevel,
    ) -> MemoryDump {
        self.last += 1;
        let asked = recording.iter().filter(|id| providers.dump_memory(**id, self.last, level)).count();
        MemoryDump { id: self.last, providers: u32::try_from(asked).unwrap_or(u32::MAX) }
    }

    /// Takes the one that is due, if the session wants any.
    pub fn take_if_due(
        &mut self,
        now: Instant,
        wanted: Option<MemoryDumps>,
        providers: &mut Providers,
        recording: impl FnOnce() -> Option<Vec<ProviderId>>,
    ) {
        let Some(wanted) = wanted else {
            self.next = None;
            return;
        };
        let due = *self.next.get_or_insert(now);
        if due > now {
            return;
        }
        self.take(providers, &recording().unwrap_or_default(), wanted.level);
        let interval = Duration::from_millis(wanted.interval_milliseconds.max(1));
        // On a grid; those that were missed are not made up for.
        let missed = (now - due).as_nanos() / interval.as_nanos();
        self.next = Some(due + interval * u32::try_from(missed).unwrap_or(u32::MAX - 1).saturating_add(1));
    }

    /// When the next one is due.
    pub const fn deadline(&self) -> Option<Instant> {
        self.next
    }
}
