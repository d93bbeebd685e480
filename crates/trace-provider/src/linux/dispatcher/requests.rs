//! Requests of the manager.

use super::{Dispatcher, KEY_FIFO, Progress};
use crate::linux::config;
use crate::linux::dispatcher::commands::Command;
use crate::linux::memory_dump;
use crate::linux::session::{HandedOver, Session};
use trace_engine::{AlertHandler, WakeHandler, engine};
use trace_protocol::provider::{ProviderConfig, ProviderRequest, ProviderResponse};
use trace_protocol::{KnownCategories, KnownCategory, Message, Txid};
use zx_sim::{Channel, Error, Handle, PidNamespace, Signals, Vmo};

impl Dispatcher {
    /// Serves all requests that have arrived. None when the manager is gone or broke the protocol.
    pub(super) fn serve(&self, channel: &Channel, session: &mut Option<Session>) -> Option<()> {
        while let Some((txid, request)) = self.receive(channel, session)? {
            match request {
                ProviderRequest::Initialize { .. } | ProviderRequest::UsePidNamespace { .. } => {}
                ProviderRequest::Start { buffer_disposition, additional_categories } => {
                    let start = |session: &mut Session| {
                        session.start(buffer_disposition, &additional_categories, |handed_over| {
                            self.hand_over(channel, handed_over);
                        })
                    };
                    match session.as_mut().map(start) {
                        Some(Ok(())) => {
                            #[cfg(feature = "local")]
                            self.echo_session(session.as_ref());
                            self.progress.send(Progress::Started);
                        }
                        Some(Err(reason)) => {
                            self.print(&format!("not started: {reason}"));
                            self.progress.send(Progress::NotRecording);
                        }
                        None => {}
                    }
                }
                ProviderRequest::Stop => {
                    if let Some(session) = session {
                        session.stop();
                    }
                    // It may have been answered that a recording is started, which is over now.
                    self.progress.send(Progress::NotRecording);
                }
                ProviderRequest::Flush => {
                    if let Some(session) = session {
                        session.flush();
                    }
                }
                ProviderRequest::DumpMemory { dump, level, answers } => {
                    let is_written = session.is_some() && memory_dump::take(dump, level);
                    if answers {
                        answer(channel, ProviderResponse::DumpedMemory { dump, is_written }, Txid::ONE_WAY)?;
                    }
                }
                ProviderRequest::Terminate => {
                    self.end_session(session);
                    self.progress.send(Progress::NotRecording);
                }
                ProviderRequest::GetKnownCategories => answer_categories(channel, txid)?,
                ProviderRequest::Refused { reason } => {
                    self.report(&reason.to_string());
                    self.is_refused.set(true);
                    self.progress.send(Progress::Refused { reason });
                }
            }
        }
        Some(())
    }

    /// Prints what is recorded from now on.
    #[cfg(feature = "local")]
    fn echo_session(&self, session: Option<&Session>) {
        let mut echo = self.echo.borrow_mut();
        let buffer = session.and_then(Session::buffer);
        if let (Some(echo), Some(buffer)) = (echo.as_mut(), buffer) {
            echo.follow(buffer);
        }
    }

    /// Hands the manager what the program has recorded so far. If the channel has no room for it, it stays
    /// where it is, for `trace recover`.
    fn hand_over(&self, channel: &Channel, handed_over: HandedOver) {
        let HandedOver { buffer, mode } = handed_over;
        let _ = answer(
            channel,
            ProviderResponse::HandOver { buffer, buffering_mode: mode.into() },
            Txid::ONE_WAY,
        );
    }

    /// The next request, if one has arrived; one with descriptors was served already. None when the
    /// manager is gone or broke the protocol.
    fn receive(
        &self,
        channel: &Channel,
        session: &mut Option<Session>,
    ) -> Option<Option<(Txid, ProviderRequest<Handle>)>> {
        let message = match channel.read() {
            Ok(message) => message,
            Err(Error::ShouldWait) => return Some(None),
            Err(_) => return None,
        };
        let encoded = trace_protocol::Encoded { bytes: message.bytes, handles: message.handles };
        let encoded = encoded.unspill(Vmo::load).ok()?;
        let (txid, request) = ProviderRequest::decode(&encoded.bytes, encoded.handles).ok()?;
        if let ProviderRequest::Initialize { config } = request {
            self.initialize(session, config);
            return self.receive(channel, session);
        }
        if let ProviderRequest::UsePidNamespace { namespace } = request {
            if session.is_none() {
                self.namespace.replace(PidNamespace::from_handle(namespace));
            }
            return self.receive(channel, session);
        }
        Some(Some((txid, request)))
    }

    fn initialize(&self, session: &mut Option<Session>, config: ProviderConfig<Handle>) {
        if session.is_some() {
            return;
        }
        self.progress.send(Progress::Initializing);
        let commands = self.commands.clone();
        let alert = AlertHandler::new(move |name| commands.send(Command::Alert(name.to_owned())));
        let commands = self.commands.clone();
        let wake = WakeHandler::new(move || commands.wake());
        match Session::initialize(config, alert, wake, self.namespace.borrow().as_ref()) {
            Ok(initialized) => {
                let signals = Signals::READABLE | Signals::PEER_CLOSED;
                if self.waits.add(initialized.fifo(), KEY_FIFO, signals).is_ok() {
                    *session = Some(initialized);
                }
            }
            Err(reason) => {
                self.report(&reason.to_string());
                self.progress.send(Progress::NotRecording);
            }
        }
    }
}

fn answer_categories(channel: &Channel, txid: Txid) -> Option<()> {
    let described = config::described_categories();
    let is_described = |name: &str| described.iter().any(|category| category.name == name);
    let plain = engine::known_categories()
        .into_iter()
        .filter(|name| !is_described(name))
        .map(|name| KnownCategory { name, description: String::new() });
    let categories = KnownCategories::of(described.iter().cloned().chain(plain));
    answer(channel, ProviderResponse::KnownCategories(categories), txid)
}

/// Answers a manager. One that asks faster than it reads loses answers, and not the program.
//= docs/protocol.md#provider
fn answer(channel: &Channel, response: ProviderResponse<Handle>, txid: Txid) -> Option<()> {
    let reply = response.encode(txid).ok()?;
    let reply = reply.spill(Vmo::store).ok()?;
    match channel.write(&reply.bytes, reply.handles) {
        Ok(()) | Err(Error::ShouldWait) => Some(()),
        Err(_) => None,
    }
}
