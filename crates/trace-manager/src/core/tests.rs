//! The core, played through without processes.

mod closing;
mod joining;
mod missing;
mod observers;
mod packets;
mod queries;
mod session;
mod several;
mod simulator;
mod stopping;
mod streaming;
mod users;

use super::session::{JOINED_LATE, KERNEL_GOES_ON};
use super::*;
use trace_format::loss::LossCode;
use trace_protocol::controller::{
    Alert, Lost, ProviderDisposition, ProviderStats, SessionState, StartOptions, StopOptions, StopResult,
    Untraced,
};
use trace_protocol::names::KERNEL_PROVIDER;
use trace_protocol::{BufferDisposition, BufferingMode, FifoRequest, PacketError};

const CLIENT: ClientId = ClientId(7);
const A: ProviderId = ProviderId(1);
const B: ProviderId = ProviderId(2);
const C: ProviderId = ProviderId(3);

/// Program, name, what is missing, how its part ended, and why.
type Missing = (ProviderId, String, Option<LossCode>, Option<ProviderDisposition>, String);

/// A core and the time, with what the core wants done collected after each step.
struct Bench {
    core: Core,
    now: Now,
    /// Lines the core wrote into the log.
    log: Vec<String>,
    /// The providers that the client was reported to wait for.
    waited_for: Vec<String>,
    /// What was reported to be missing in the archive.
    missing: Vec<Missing>,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            core: Core::new(Uid::ROOT),
            now: Duration::from_secs(100),
            log: Vec::new(),
            waited_for: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// A session without anything special, with the given providers, not started.
    fn initialized(providers: &[ProviderId]) -> Bench {
        Bench::configured(providers, TraceConfig::default())
    }

    fn configured(providers: &[ProviderId], config: TraceConfig) -> Bench {
        let mut bench = Bench::new();
        for provider in providers {
            bench.register(*provider);
        }
        bench.event(Event::Initialize { client: CLIENT, pid: 77, uid: Uid::ROOT, config });
        bench
    }

    /// As [`Bench::initialized`], and every provider has started.
    fn started(providers: &[ProviderId]) -> Bench {
        Bench::started_with(providers, TraceConfig::default())
    }

    fn started_with(providers: &[ProviderId], config: TraceConfig) -> Bench {
        let mut bench = Bench::configured(providers, config);
        bench.start();
        for provider in providers {
            bench.send(*provider, started());
        }
        assert_eq!(bench.state(), Some(SessionState::Started));
        bench
    }

    /// As [`Bench::started`], and a Stop waits for every provider.
    fn stopping(providers: &[ProviderId], write_results: bool) -> Bench {
        let mut bench = Bench::started(providers);
        bench.stop(write_results);
        bench
    }

    /// As [`Bench::stopping`], and every provider has stopped and was transferred if that was asked for.
    fn stopped(providers: &[ProviderId], write_results: bool) -> Bench {
        let mut bench = Bench::stopping(providers, write_results);
        for provider in providers {
            bench.send(*provider, FifoRequest::Stopped);
            if write_results {
                bench.transferred(*provider);
            }
        }
        assert_eq!(bench.state(), Some(SessionState::Stopped));
        bench
    }

    /// As [`Bench::started`], and the client has gone.
    fn terminating(providers: &[ProviderId]) -> Bench {
        let mut bench = Bench::started(providers);
        bench.event(Event::ClientClosed { client: CLIENT });
        bench
    }

    fn state(&self) -> Option<SessionState> {
        self.core.sessions.get(&CLIENT).map(Session::state)
    }

    /// Has the core handle an event; returns its actions, without the lines of the log and what is missing.
    fn event(&mut self, event: Event) -> Vec<Action> {
        self.core.handle_event(self.now, event);
        self.drain()
    }

    /// Lets time pass.
    fn pass(&mut self, time: Duration) -> Vec<Action> {
        self.now += time;
        self.core.handle_time(self.now);
        self.drain()
    }

    fn drain(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while let Some(action) = self.core.poll_action() {
            match action {
                Action::Log(text) => self.log.push(text),
                Action::Waiting(_, names) => self.waited_for.extend(names),
                Action::ReportMissing { client, provider, name, reason, disposition, problem, .. } => {
                    assert_eq!(client, CLIENT);
                    self.missing.push((provider, name, reason, disposition, problem));
                }
                action => actions.push(action),
            }
        }
        actions
    }

    fn register(&mut self, provider: ProviderId) -> Vec<Action> {
        self.register_as(provider, format!("provider-{}", provider.0))
    }

    fn register_as(&mut self, provider: ProviderId, name: String) -> Vec<Action> {
        self.event(Event::ProviderRegistered {
            provider,
            name,
            pid: 1000 + u64::from(provider.0),
            uid: Uid::ROOT,
            is_late: false,
            is_waiting: false,
        })
    }

    fn start(&mut self) -> Vec<Action> {
        self.start_with(StartOptions::default())
    }

    fn start_with(&mut self, options: StartOptions) -> Vec<Action> {
        self.event(Event::Start { client: CLIENT, options })
    }

    fn stop(&mut self, write_results: bool) -> Vec<Action> {
        self.event(Event::Stop { client: CLIENT, options: StopOptions { write_results } })
    }

    fn send(&mut self, provider: ProviderId, packet: FifoRequest) -> Vec<Action> {
        self.event(Event::Packet { provider, packet: Ok(packet) })
    }

    fn send_bad(&mut self, provider: ProviderId) -> Vec<Action> {
        let packet = Err(PacketError::Unknown { request: 0x77 });
        self.event(Event::Packet { provider, packet })
    }

    /// A part is read and written, before anything else is.
    fn transferred(&mut self, provider: ProviderId) -> Vec<Action> {
        let mut actions = self.read(provider);
        actions.extend(self.written(provider));
        actions
    }

    fn read(&mut self, provider: ProviderId) -> Vec<Action> {
        self.event(Event::TransferFinished { provider, stats: metrics(provider), is_complete: true })
    }

    fn written(&mut self, provider: ProviderId) -> Vec<Action> {
        self.event(Event::PartWritten { provider })
    }

    fn dies(&mut self, provider: ProviderId) -> Vec<Action> {
        self.event(Event::ProviderClosed { provider, process: ProcessState::Dead })
    }

    /// It closes its FIFO, and its process cannot be watched.
    fn leaves(&mut self, provider: ProviderId) -> Vec<Action> {
        self.event(Event::FifoClosed { provider, process: ProcessState::Unknown })
    }

    /// It closes its FIFO, and its process is not dead yet.
    fn closes(&mut self, provider: ProviderId) -> Vec<Action> {
        self.event(Event::FifoClosed { provider, process: ProcessState::Alive })
    }
}

fn started() -> FifoRequest {
    FifoRequest::Started { version: 1 }
}

/// What the shell says of a transfer; different for each provider.
fn metrics(provider: ProviderId) -> ProviderStats {
    ProviderStats { events_archived: Some(100 + u64::from(provider.0)), ..ProviderStats::default() }
}

/// The entry of a transferred provider in the answer to a Stop.
fn entry(provider: ProviderId, disposition: &str) -> ProviderStats {
    ProviderStats { events_archived: metrics(provider).events_archived, ..bare_entry(provider, disposition) }
}

/// The entry of a provider of which nothing was transferred.
fn bare_entry(provider: ProviderId, disposition: &str) -> ProviderStats {
    ProviderStats {
        id: provider.0,
        name: format!("provider-{}", provider.0),
        pid: 1000 + u64::from(provider.0),
        disposition: disposition.to_owned(),
        losses: match disposition {
            "broke the protocol" => unknown(LossCode::REST_MISSING),
            "did not start" | "not traced" => unknown(LossCode::NOT_RECORDED),
            _ => Vec::new(),
        },
        ..ProviderStats::default()
    }
}

/// A loss without a number.
fn unknown(reason: LossCode) -> Vec<Lost> {
    vec![Lost { reason: reason.0, records: 1 }]
}

fn start_of(provider: ProviderId, disposition: BufferDisposition) -> Action {
    Action::StartTracee { provider, disposition, additional_categories: Vec::new() }
}

fn initialize_of(provider: ProviderId) -> Action {
    Action::InitializeTracee {
        client: CLIENT,
        provider,
        buffer_bytes: 4 << 20,
        mode: BufferingMode::Oneshot,
        categories: Vec::new(),
    }
}

fn transfer_of(provider: ProviderId, is_quiet: bool) -> Action {
    Action::Transfer { client: CLIENT, provider, part: Part::Rest { is_quiet } }
}

fn entered(state: SessionState) -> Action {
    Action::StateChanged(CLIENT, state)
}

fn stop_reply(provider_stats: Vec<ProviderStats>) -> Action {
    Action::ReplyStop(CLIENT, Ok(StopResult { provider_stats }))
}

fn ended() -> Action {
    Action::EndSession { client: CLIENT, is_aborted: false }
}
