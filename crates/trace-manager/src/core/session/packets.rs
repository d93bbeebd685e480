//! Packets from providers' FIFOs.

use super::{Actions, Session};
use crate::core::tracee::{Data, Tracee, TraceeState};
use crate::core::{Action, ClientId, Part};
use trace_format::loss::LossCode;
use trace_format::units::ProviderId;
use trace_protocol::controller::ProviderDisposition;
use trace_protocol::{BufferingMode, FifoRequest, PacketError};

impl Session {
    /// A packet of a provider's; one that breaks the rules ends its part in the session.
    //= docs/protocol.md#fifo-packets
    pub fn handle_packet(
        &mut self,
        id: ProviderId,
        packet: Result<FifoRequest, PacketError>,
        actions: &mut Actions,
    ) {
        let Some(tracee) = self.tracees.get_mut(&id).filter(|tracee| tracee.state.is_connected()) else {
            return;
        };
        tracee.has_started |= matches!(packet, Ok(FifoRequest::Started { .. }));
        match (packet, tracee.state) {
            (Ok(FifoRequest::Started { .. }), TraceeState::Starting) => {
                tracee.state = TraceeState::Started;
                if tracee.is_slow && !tracee.joins_late {
                    tracee.join_late(self.client, actions);
                }
            }
            (Ok(FifoRequest::Stopped), TraceeState::Stopping) => {
                tracee.state = TraceeState::Stopped;
                tracee.disposition = ProviderDisposition::Stopped;
                // It may be started again.
                tracee.is_overdue = false;
                if self.write_results {
                    self.queue(id);
                }
            }
            (Ok(FifoRequest::Stopped), TraceeState::Terminating) => {
                tracee.state = TraceeState::Leaving;
                if tracee.disposition != ProviderDisposition::BrokeProtocol {
                    tracee.disposition = ProviderDisposition::Stopped;
                }
                self.queue(id);
            }
            (Ok(FifoRequest::Stopped), TraceeState::Starting | TraceeState::Started) => {
                tracee.state = TraceeState::Leaving;
            }
            (Ok(FifoRequest::Alert { name }), _) => self.handle_alert(id, name, actions),
            (
                Ok(FifoRequest::SaveBuffer { wrapped_count, durable_data_end }),
                TraceeState::Started | TraceeState::Stopping | TraceeState::Terminating,
            ) if self.config.buffering_mode == BufferingMode::Streaming && tracee.data == Data::InBuffer => {
                match tracee.stream.begin(wrapped_count, durable_data_end) {
                    Ok(()) => {
                        let part = Part::Half { wrapped_count, durable_data_end };
                        self.transfers.push_back((id, part));
                    }
                    Err(error) => break_off(self.client, tracee, &error.to_string(), actions),
                }
            }
            (Ok(unexpected), state) => {
                let text = format!("{}: unexpected {unexpected:?} while {state:?}", tracee.label());
                actions.push_back(Action::Log(text));
            }
            (Err(error), _) => break_off(self.client, tracee, &format!("bad packet: {error}"), actions),
        }
    }
}

impl Session {
    /// A provider has sent what is no message or no packet; its connection is closed next.
    pub fn handle_broken(&mut self, id: ProviderId, problem: &str, actions: &mut Actions) {
        if let Some(tracee) = self.tracees.get_mut(&id).filter(|tracee| tracee.state.is_connected()) {
            break_off(self.client, tracee, problem, actions);
        }
    }
}

/// Ends the part in the session of a provider that broke the protocol: what it does from here on is missing.
pub(super) fn break_off(client: ClientId, tracee: &mut Tracee, problem: &str, actions: &mut Actions) {
    actions.push_back(Action::Log(format!("{}: {problem}; terminating it", tracee.label())));
    if !matches!(tracee.state, TraceeState::Terminating | TraceeState::Leaving) {
        tracee.disposition = ProviderDisposition::BrokeProtocol;
        let (reason, end) = (Some(LossCode::REST_MISSING), Some(tracee.disposition));
        actions.push_back(tracee.report_missing(client, reason, end, problem.to_owned()));
        if tracee.state.is_connected() {
            tracee.terminate(actions);
        }
    }
}
