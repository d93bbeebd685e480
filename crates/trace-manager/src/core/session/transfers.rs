//! Data on its way into the archive: queued, being read, handed over, written.

use super::packets::break_off;
use super::{Actions, Session, stats_of};
use crate::core::tracee::Data;
use crate::core::{Action, Part};
use trace_format::loss::LossCode;
use trace_format::units::ProviderId;
use trace_protocol::controller::{ProviderDisposition, ProviderStats};

/// A part that is on its way into the archive.
#[derive(Debug)]
pub(super) struct HandedOver {
    provider: ProviderId,
    part: Part,
    stats: ProviderStats,
}

impl Session {
    /// Queues a provider's data for the archive, once.
    pub(super) fn queue(&mut self, id: ProviderId) {
        let is_quiet = self.tracees.get(&id).is_some_and(|tracee| !tracee.state.may_write());
        self.queue_as(id, is_quiet);
    }

    /// As [`Session::queue`]. If it is not quiet, it may be written while it is read.
    pub(super) fn queue_as(&mut self, id: ProviderId, is_quiet: bool) {
        let Some(tracee) = self.tracees.get_mut(&id).filter(|tracee| tracee.data == Data::InBuffer) else {
            return;
        };
        if self.is_aborted {
            tracee.data = Data::Left;
        } else {
            tracee.data = Data::Queued;
            self.transfers.push_back((id, Part::Rest { is_quiet }));
        }
    }

    /// A part was read, as far as that was possible.
    pub fn handle_transferred(
        &mut self,
        provider: ProviderId,
        stats: ProviderStats,
        is_complete: bool,
        actions: &mut Actions,
    ) {
        let Some((_, part)) = self.transferring.take_if(|(transferring, _)| *transferring == provider) else {
            actions
                .push_back(Action::Log(format!("program {}: transferred without being asked", provider.0)));
            return;
        };
        let Some(tracee) = self.tracees.get_mut(&provider) else {
            return;
        };
        match part {
            Part::Rest { .. } => tracee.data = Data::HandedOver,
            Part::Half { wrapped_count, .. } if !is_complete => {
                // BUFFER_SAVED would make the provider overwrite data that is in no archive.
                tracee.stream.finish();
                break_off(self.client, tracee, &format!("half {wrapped_count} {}", stats.problem), actions);
                return;
            }
            Part::Half { .. } => {}
        }
        self.handed_over.push_back(HandedOver { provider, part, stats });
    }

    /// The part that was read first is written; a provider whose half it was gets it back.
    //= docs/protocol.md#confirmations
    pub fn handle_written(&mut self, provider: ProviderId, actions: &mut Actions) {
        let Some(HandedOver { part, stats, .. }) =
            self.handed_over.pop_front_if(|handed_over| handed_over.provider == provider)
        else {
            actions.push_back(Action::Log(format!("program {}: written without being read", provider.0)));
            return;
        };
        let Some(tracee) = self.tracees.get_mut(&provider) else {
            return;
        };
        match part {
            Part::Rest { .. } => {
                tracee.data = Data::Archived;
                let stats = stats_of(tracee, stats);
                let end = ProviderDisposition::EndedBeforeStart;
                if stats.disposition == end {
                    let reason = tracee.is_slow.then_some(LossCode::NOT_RECORDED);
                    actions.push_back(tracee.report_missing(self.client, reason, Some(end), String::new()));
                }
                self.stats.push(stats);
            }
            Part::Half { wrapped_count, durable_data_end } => {
                tracee.stream.finish();
                if tracee.state.is_connected() {
                    actions.push_back(Action::SendSaved { provider, wrapped_count, durable_data_end });
                }
            }
        }
    }
}
