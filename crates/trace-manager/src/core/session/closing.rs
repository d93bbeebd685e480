//! Providers that end, leave, or cannot take part.

use super::{Actions, Session, stats_of};
use crate::core::tracee::{Data, Tracee, TraceeState};
use crate::core::{Action, Now, ProcessState};
use std::time::Duration;
use trace_format::units::ProviderId;
use trace_protocol::controller::{ProviderDisposition, ProviderStats, SessionState, Untraced};

/// How long a process may take to die after it closed its descriptors. On a busy machine it has to wait for a
/// processor.
const DYING_WAIT: Duration = Duration::from_secs(1);

impl Session {
    /// A provider closed its FIFO or its channel. A process that dies closes them first and is dead a moment
    /// later, so a buffer that may still be written waits for that.
    //= docs/protocol.md#a-provider-that-dies
    pub fn handle_closed(&mut self, now: Now, id: ProviderId, process: ProcessState, actions: &mut Actions) {
        let Some(tracee) = self.tracees.get_mut(&id) else {
            return;
        };
        match tracee.state {
            TraceeState::Gone => {}
            TraceeState::Dying { .. } if process == ProcessState::Alive => {}
            // A part that is queued already is read as it is.
            state if state.may_write() && tracee.data == Data::InBuffer && process == ProcessState::Alive => {
                tracee.state = TraceeState::Dying { until: now + DYING_WAIT };
                tracee.is_overdue = false;
                actions.push_back(Action::WatchProcess(id));
            }
            _ => self.close(id, process == ProcessState::Dead, actions),
        }
    }

    /// The process of a provider that closed its FIFO or channel is dead.
    pub fn handle_death(&mut self, id: ProviderId, actions: &mut Actions) {
        if self.tracees.get(&id).is_some_and(|tracee| matches!(tracee.state, TraceeState::Dying { .. })) {
            self.close(id, true, actions);
        }
    }

    /// Stops waiting for processes that did not die in time: they are taken to go on.
    pub(super) fn settle_dying(&mut self, now: Now, actions: &mut Actions) {
        let is_due = |tracee: &&Tracee| matches!(tracee.state, TraceeState::Dying { until } if until <= now);
        let due: Vec<_> = self.tracees.values().filter(is_due).map(|tracee| tracee.id).collect();
        due.into_iter().for_each(|id| self.close(id, false, actions));
    }

    /// A provider no longer takes part; what it committed is written at once.
    fn close(&mut self, id: ProviderId, is_dead: bool, actions: &mut Actions) {
        let Some(tracee) = self.tracees.get_mut(&id) else {
            return;
        };
        if matches!(tracee.state, TraceeState::Dying { .. }) {
            actions.push_back(Action::ForgetProcess(id));
        }
        let is_quiet = is_dead || !tracee.state.may_write();
        tracee.state = TraceeState::Gone;
        if tracee.data == Data::InBuffer {
            if tracee.disposition == ProviderDisposition::Recording {
                tracee.disposition = match is_dead {
                    true => ProviderDisposition::Ended,
                    false => ProviderDisposition::Left,
                };
            }
            // Also after a Stop that did not request it: the buffer would be gone when it is requested.
            self.queue_as(id, is_quiet);
        }
    }

    /// A provider cannot take part.
    pub fn handle_failed(&mut self, id: ProviderId, reason: String, actions: &mut Actions) {
        if let Some(tracee) = self.tracees.get_mut(&id).filter(|tracee| tracee.state.is_connected()) {
            actions.push_back(Action::Log(format!("{}: not traced: {reason}", tracee.label())));
            // Its application may wait for the start.
            actions.push_back(Action::TerminateTracee(id));
            tracee.state = TraceeState::Gone;
            tracee.data = Data::None;
            tracee.disposition = ProviderDisposition::NotTraced;
            let stats = stats_of(tracee, ProviderStats { problem: reason, ..ProviderStats::default() });
            self.report_untraced(stats, actions);
        }
    }

    /// A provider wanted to take part, and was refused before it was registered.
    //= docs/protocol.md#providers-that-cannot-be-recorded
    pub fn handle_refused(&mut self, name: String, pid: u64, reason: String, actions: &mut Actions) {
        if self.state != SessionState::Terminating {
            let disposition = ProviderDisposition::Refused.into();
            let stats = ProviderStats { name, pid, disposition, problem: reason, ..ProviderStats::default() };
            self.report_untraced(stats, actions);
        }
    }

    /// Reports a provider that cannot be recorded, at once and in the answer to a Stop.
    fn report_untraced(&mut self, stats: ProviderStats, actions: &mut Actions) {
        if self.config.wants_untraced {
            let (name, pid, reason) = (stats.name.clone(), stats.pid, stats.problem.clone());
            actions.push_back(Action::Untraced(self.client, Untraced { name, pid, reason }));
        }
        self.stats.push_untraced(stats);
    }
}
