//! Alerts of programs of earlier releases, which do not record them: the manager does it for them, between
//! the parts of providers.

use super::Providers;
use crate::core::ClientId;
use trace_archive::session_info::{self, RaisedAlert};

/// Alerts that wait for the end of a part; more are only counted.
const MAX_WAITING: usize = 1000;

/// Alerts that were raised and are not in the archive yet.
#[derive(Debug, Default)]
pub(super) struct UnrecordedAlerts {
    waiting: Vec<RaisedAlert>,
    left_out: u64,
}

impl UnrecordedAlerts {
    pub fn add(&mut self, alert: RaisedAlert) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push(alert);
        } else {
            self.left_out += 1;
        }
    }
}

impl Providers {
    /// Queues the alerts of a session raised since the last time. Nothing may come between the records of a
    /// provider's part.
    //= docs/format.md#alerts
    pub fn write_alerts(&mut self, client: ClientId, out: &mut Vec<u8>) {
        let Some(session) = self.sessions.get_mut(&client) else {
            return;
        };
        let UnrecordedAlerts { waiting, left_out } = std::mem::take(&mut session.alerts);
        if session.has_metadata && !waiting.is_empty() {
            session_info::alerts(&waiting, left_out, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::units::{Koid, Ticks};

    #[test]
    fn so_many_alerts_wait_and_more_are_counted() {
        let mut alerts = UnrecordedAlerts::default();
        for number in 0..MAX_WAITING as u64 + 7 {
            alerts.add(RaisedAlert { at: Ticks(number), process: Koid(1), name: "stall".to_owned() });
        }
        assert_eq!((alerts.waiting.len(), alerts.left_out), (MAX_WAITING, 7));
    }
}
