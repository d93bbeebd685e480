//! Alerts on their way from providers to the client that watches.

use super::{Actions, Session};
use crate::core::Action;
use std::collections::VecDeque;
use trace_format::units::ProviderId;
use trace_protocol::controller::Alert;

/// Alerts that wait for a client that watches; then the oldest is dropped.
const MAX_QUEUED: usize = 16;

/// Alerts that were raised and not reported yet, or the client's pending request for one: one of both is
/// empty.
#[derive(Debug, Default)]
pub(super) struct Alerts {
    queued: VecDeque<Alert>,
    /// Requests that wait for an alert.
    watching: usize,
    /// Alerts that were dropped since the last answer.
    dropped: u64,
}

impl Session {
    /// The client waits for an alert.
    //= docs/protocol.md#alerts
    pub fn handle_watch_alert(&mut self, actions: &mut Actions) {
        match self.alerts.queued.pop_front() {
            Some(alert) => self.answer_watch(alert, actions),
            None => self.alerts.watching += 1,
        }
    }

    /// A provider has raised an alert.
    pub(super) fn handle_alert(&mut self, id: ProviderId, name: String, actions: &mut Actions) {
        let tracee = self.tracees.get(&id);
        let (provider, pid) = tracee.map(|tracee| (tracee.name.clone(), tracee.pid)).unwrap_or_default();
        let alert = Alert { name, provider, pid, dropped: 0 };
        if self.alerts.watching > 0 {
            self.alerts.watching -= 1;
            self.answer_watch(alert, actions);
            return;
        }
        if self.alerts.queued.len() == MAX_QUEUED {
            self.alerts.queued.pop_front();
            self.alerts.dropped += 1;
        }
        self.alerts.queued.push_back(alert);
    }

    fn answer_watch(&mut self, alert: Alert, actions: &mut Actions) {
        let dropped = std::mem::take(&mut self.alerts.dropped);
        actions.push_back(Action::ReplyAlert(self.client, Alert { dropped, ..alert }));
    }
}
