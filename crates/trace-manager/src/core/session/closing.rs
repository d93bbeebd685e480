//! Providers that end, leave, or cannot take part.

use super::{Actions, JOINED_LATE, KERNEL_GOES_ON, Session};
use crate::core::tracee::{Data, Tracee, TraceeState};
use crate::core::{Action, ClientId, Now, ProcessState, Unmade};
use std::time::Duration;
use trace_archive::{missing, problem};
use trace_format::loss::LossCode;
use trace_format::units::ProviderId;
use trace_protocol::controller::{Lost, ProviderDisposition, ProviderStats, SessionState, Untraced};
use trace_protocol::names::KERNEL_PROVIDER;

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
                // A dead program does nothing more, but the kernel does.
                if self.state == SessionState::Started && tracee.name == KERNEL_PROVIDER {
                    tracee.lacks_rest = true;
                    let (reason, end) = (Some(LossCode::REST_MISSING), Some(tracee.disposition));
                    let problem = KERNEL_GOES_ON.to_owned();
                    actions.push_back(tracee.report_missing(self.client, reason, end, problem));
                }
            }
            // Also after a Stop that did not request it: the buffer would be gone when it is requested.
            self.queue_as(id, is_quiet);
        }
    }

    /// A provider cannot take part.
    pub fn handle_failed(&mut self, id: ProviderId, reason: &Unmade, actions: &mut Actions) {
        if let Some(tracee) = self.tracees.get_mut(&id).filter(|tracee| tracee.state.is_connected()) {
            actions.push_back(Action::Log(format!("{}: not traced: {reason}", tracee.label())));
            // Its application may wait for the start.
            actions.push_back(Action::TerminateTracee(id));
            tracee.state = TraceeState::Gone;
            tracee.data = Data::None;
            let stats = ProviderStats {
                id: id.0,
                name: tracee.name.clone(),
                pid: tracee.pid,
                problem: problem(reason),
                is_out_of_space: reason.is_out_of_space(),
                ..ProviderStats::default()
            };
            self.report_untraced(stats, ProviderDisposition::NotTraced, actions);
        }
    }

    /// A provider wanted to take part, and was refused before it was registered.
    //= docs/protocol.md#providers-that-cannot-be-recorded
    pub fn handle_refused(
        &mut self,
        id: ProviderId,
        (name, pid): (String, u64),
        reason: String,
        actions: &mut Actions,
    ) {
        // A refused provider retries.
        if self.state != SessionState::Terminating && !self.stats.has_untraced(pid) {
            let stats = ProviderStats { id: id.0, name, pid, problem: reason, ..ProviderStats::default() };
            self.report_untraced(stats, ProviderDisposition::Refused, actions);
        }
    }

    /// A program has stopped waiting. If the manager has recorded it since, the program has joined late.
    //= docs/protocol.md#programs-of-which-something-is-missing
    pub fn handle_gave_up(&mut self, id: ProviderId, (name, pid): (String, u64), actions: &mut Actions) {
        // The manager has refused it before, or has taken a note of it.
        if self.stats.has_untraced(pid) {
            return;
        }
        let reason = LossCode::JOINED_LATE;
        let mut tracees: Vec<&mut Tracee> =
            self.tracees.values_mut().filter(|tracee| tracee.pid == pid).collect();
        let mut stats: Vec<&mut ProviderStats> = self.stats.of_process(pid).collect();
        let late = Lost { reason: reason.0, records: 1 };
        if tracees.iter().any(|tracee| tracee.joins_late)
            || stats.iter().any(|stats| stats.losses.contains(&late))
        {
            return;
        }
        if let Some(tracee) = tracees.first_mut() {
            tracee.join_late(self.client, actions);
        } else if let Some(stats) = stats.first_mut() {
            stats.losses.push(late);
            if stats.problem.is_empty() {
                JOINED_LATE.clone_into(&mut stats.problem);
            }
            actions.push_back(report_missing(self.client, stats, reason, None, String::new()));
        } else {
            let (id, problem) = (id.0, missing::GAVE_UP.to_owned());
            let stats = ProviderStats { id, name, pid, problem, ..ProviderStats::default() };
            self.report_untraced(stats, ProviderDisposition::GaveUp, actions);
        }
    }

    /// Reports a provider that cannot be recorded, at once, in the answer to a Stop, and in the archive.
    //= docs/protocol.md#programs-of-which-something-is-missing
    fn report_untraced(
        &mut self,
        stats: ProviderStats,
        disposition: ProviderDisposition,
        actions: &mut Actions,
    ) {
        if self.config.wants_untraced {
            let (name, pid, reason) = (stats.name.clone(), stats.pid, stats.problem.clone());
            actions.push_back(Action::Untraced(self.client, Untraced { name, pid, reason }));
        }
        let reason = LossCode::NOT_RECORDED;
        let problem = stats.problem.clone();
        actions.push_back(report_missing(self.client, &stats, reason, Some(disposition), problem));
        let losses = vec![Lost { reason: reason.0, records: 1 }];
        self.stats.push_untraced(ProviderStats { disposition: disposition.into(), losses, ..stats });
    }
}

/// Something of a program with these statistics is missing in the archive.
fn report_missing(
    client: ClientId,
    stats: &ProviderStats,
    reason: LossCode,
    disposition: Option<ProviderDisposition>,
    problem: String,
) -> Action {
    let (provider, name, pid, reason) = (ProviderId(stats.id), stats.name.clone(), stats.pid, Some(reason));
    Action::ReportMissing { client, provider, name, pid, reason, disposition, problem }
}
