//! Everything outside the core: providers, buffers, the output, clients, and the order in which things
//! happen.

use super::super::*;
use super::ledger::{Ledger, Reached};
use super::random::Random;

const STEPS_WITH_FAULTS: u32 = 60;
const MAX_STEPS: u32 = 100_000;
/// The numbers of observers.
const FIRST_OBSERVER: u64 = 1 << 40;
/// The client and the only provider of a session that nothing happens to.
const BYSTANDER: ClientId = ClientId(1 << 41);
const BYSTANDING: ProviderId = ProviderId(1 << 30);

/// What a provider is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Idle,
    Ready,
    Recording,
}

/// A provider's process.
#[derive(Debug)]
struct Process {
    activity: Activity,
    /// The half that it fills, while it streams.
    half: u32,
    durable_bytes: u64,
    /// A half was handed over and not given back.
    is_saving: bool,
    /// It answers nothing for ever.
    is_stalled: bool,
    /// Which of its FIFOs is open; what a closed one still held is not delivered.
    fifo: Option<u32>,
}

/// Something that will happen.
#[derive(Debug)]
enum Incident {
    Event(Event),
    /// The given event, if this FIFO is still open then.
    OnFifo(ProviderId, u32, Event),
    /// The shell has read the last byte of this transfer.
    Transferred(u32, ProviderId),
    /// The reader of this session's archive has written what was read first of all.
    Written(u32),
    /// A half is given back on this FIFO.
    GivenBack(ProviderId, u32),
    /// A watched process is dead.
    Died(ProviderId),
    /// The shell has read the last byte of a snapshot of this session.
    Copied(ClientId),
}

pub struct World {
    core: Core,
    /// The same, but that nothing observes it, and that it has no other session.
    alone: Core,
    ledger: Ledger,
    random: Random,
    now: Now,
    /// In order of time; of equal times the earlier made comes first.
    incidents: BTreeMap<(Now, u64), Incident>,
    made: u64,
    processes: BTreeMap<ProviderId, Process>,
    next_provider: u32,
    next_client: u64,
    next_observer: u64,
    next_fifo: u32,
    transfer: u32,
    /// What was read and is not written, in this session.
    handed_over: VecDeque<ProviderId>,
    session: u32,
    has_faults: bool,
    /// Another session runs beside the one that everything happens to.
    has_bystander: bool,
    is_streaming: bool,
    /// What happened, printed when an assertion fails.
    history: Vec<String>,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in &self.history {
                eprintln!("{line}");
            }
        }
    }
}

impl World {
    pub fn new(seed: u64) -> World {
        let has_bystander = seed.is_multiple_of(2);
        World {
            core: if has_bystander { with_bystander() } else { Core::new(Uid::ROOT) },
            has_bystander,
            alone: Core::new(Uid::ROOT),
            ledger: Ledger::default(),
            random: Random::new(seed),
            now: Duration::ZERO,
            incidents: BTreeMap::new(),
            made: 0,
            processes: BTreeMap::new(),
            next_provider: 1,
            next_client: 1,
            next_observer: FIRST_OBSERVER,
            next_fifo: 1,
            transfer: 0,
            handed_over: VecDeque::new(),
            session: 0,
            has_faults: true,
            is_streaming: false,
            history: Vec::new(),
        }
    }

    pub fn reached(&mut self) -> Reached {
        std::mem::take(&mut self.ledger.reached)
    }

    /// Random actions of all processes, and what follows from them.
    pub fn run_with_faults(&mut self) {
        for _ in 0..STEPS_WITH_FAULTS {
            if self.random.chance(50) {
                self.do_something();
            } else {
                self.advance();
            }
        }
    }

    /// No more faults and no more wishes: the client goes, and the core must come to rest.
    pub fn heal(&mut self) {
        self.has_faults = false;
        self.close_client();
        self.settle();
        self.check_bystander();
        assert!(!self.alone.has_session(), "the session does not end");
        assert_eq!(self.core.next_deadline(), None);
        assert_eq!(self.ledger.client, None);
        assert!(self.ledger.has_ended_observers());
    }

    /// A session without faults works as if nothing had been.
    pub fn run_cleanly(&mut self) {
        for process in self.processes.values_mut() {
            process.is_stalled = false;
        }
        self.register();
        self.settle();
        self.initialize(false);
        let client = self.ledger.client.expect("the client has the session");
        let options =
            StartOptions { buffer_disposition: BufferDisposition::Retain, ..StartOptions::default() };
        self.handle(Event::Start { client, options });
        self.settle();
        assert_eq!(self.ledger.state(), Some(SessionState::Started));
        if self.is_streaming {
            self.stream_cleanly();
        }
        self.handle(Event::Stop { client, options: StopOptions { write_results: true } });
        assert!(self.ledger.is_stop_pending);
        self.settle();
        assert_eq!(self.ledger.state(), Some(SessionState::Stopped));
        assert!(!self.ledger.is_stop_pending, "the stop is not answered");
        self.close_client();
        self.settle();
        assert!(!self.alone.has_session());
        self.check_bystander();
    }

    /// The other session goes on, and is served.
    //= docs/protocol.md#several-sessions
    fn check_bystander(&mut self) {
        assert_eq!(self.core.has_session(), self.has_bystander);
        if self.has_bystander {
            assert_eq!(self.core.recording_in(BYSTANDER), Some(vec![BYSTANDING]));
            self.core.handle_event(self.now, Event::Flush { client: BYSTANDER });
            assert_eq!(self.core.poll_action(), Some(Action::FlushTracee(BYSTANDING)));
            assert_eq!(self.core.poll_action(), Some(Action::ReplyFlush(BYSTANDER, Ok(()))));
        }
    }

    /// Every half that is handed over comes back, each once.
    fn stream_cleanly(&mut self) {
        let recording = |process: &Process| process.activity == Activity::Recording && process.fifo.is_some();
        for half in 0..3 {
            let providers: Vec<_> =
                self.processes.iter().filter(|(_, process)| recording(process)).map(|(id, _)| *id).collect();
            assert!(!providers.is_empty(), "nobody records");
            providers.iter().for_each(|provider| self.fill(*provider));
            self.settle();
            for provider in providers {
                let process = &self.processes[&provider];
                assert_eq!((process.half, process.is_saving), (half + 1, false), "{provider:?}");
            }
        }
    }

    fn settle(&mut self) {
        for _ in 0..MAX_STEPS {
            if !self.advance() {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// Goes on to the next thing that is due; false when nothing is.
    fn advance(&mut self) -> bool {
        let incident = self.incidents.keys().next().map(|(time, _)| *time);
        let deadline = self.core.next_deadline();
        let Some(next) = incident.into_iter().chain(deadline).min() else {
            return false;
        };
        self.now = self.now.max(next);
        if incident.is_none_or(|incident| deadline.is_some_and(|deadline| deadline <= incident)) {
            self.history.push(format!("{:?} time", self.now));
            self.core.handle_time(self.now);
            self.alone.handle_time(self.now);
            assert_ne!(self.core.next_deadline(), deadline, "what was due is still due");
            self.act();
            return true;
        }
        if let Some((_, incident)) = self.incidents.pop_first() {
            self.happen(incident);
        }
        true
    }

    fn happen(&mut self, incident: Incident) {
        match incident {
            Incident::Event(event) => self.handle(event),
            Incident::OnFifo(provider, fifo, event) => {
                let process = self.processes.get_mut(&provider);
                if let Some(process) = process.filter(|process| process.fifo == Some(fifo)) {
                    if matches!(event, Event::FifoClosed { .. }) {
                        process.fifo = None;
                        process.activity = Activity::Idle;
                    }
                    self.handle(event);
                }
            }
            Incident::GivenBack(provider, fifo) => {
                let process = self.processes.get_mut(&provider);
                if let Some(process) =
                    process.filter(|process| process.fifo == Some(fifo) && process.is_saving)
                {
                    process.is_saving = false;
                    process.half += 1;
                }
            }
            Incident::Died(provider) => self.handle(Event::ProcessDied { provider }),
            Incident::Copied(session) => {
                let result = Ok(StopResult { provider_stats: Vec::new() });
                self.handle(Event::SnapshotFinished { session, result });
            }
            Incident::Transferred(transfer, provider) => {
                if transfer == self.transfer && self.ledger.transferring == Some(provider) {
                    let is_complete = !(self.has_faults && self.random.chance(5));
                    let stats = ProviderStats::default();
                    if is_complete || self.ledger.transferring_half.is_none() {
                        self.handed_over.push_back(provider);
                        let delay = self.random.delay();
                        self.later(delay, Incident::Written(self.session));
                    }
                    self.handle(Event::TransferFinished { provider, stats, is_complete });
                }
            }
            Incident::Written(session) => {
                if session == self.session
                    && let Some(provider) = self.handed_over.pop_front()
                {
                    self.handle(Event::PartWritten { provider });
                }
            }
        }
    }

    fn handle(&mut self, event: Event) {
        self.history.push(format!("{:?} {event:?}", self.now));
        if let Event::OutputFailed { .. } = event {
            self.forget_handed_over();
        }
        self.ledger.before(&event);
        if !matches!(event, Event::Observe { .. } | Event::ObserverClosed { .. }) {
            self.alone.handle_event(self.now, event.clone());
        }
        self.core.handle_event(self.now, event);
        self.act();
    }

    /// The next thing that the core wants. What is not about observers is the same without any, and without
    /// another session.
    //= docs/protocol.md#observers
    //= docs/protocol.md#several-sessions
    fn next_action(&mut self) -> Option<Action> {
        let action = self.core.poll_action();
        if !matches!(action, Some(Action::ReplyObserve(..) | Action::EndObserver(_))) {
            assert_eq!(action, self.alone.poll_action(), "with observers and another session, and without");
            assert_eq!(self.core.next_deadline(), self.alone.next_deadline());
        }
        action
    }

    /// Does what the core wants.
    fn act(&mut self) {
        while let Some(action) = self.next_action() {
            self.history.push(format!("    {action:?}"));
            self.ledger.check(&action);
            match action {
                Action::InitializeTracee { provider, .. } => self.initialize_tracee(provider),
                Action::StartTracee { provider, disposition, .. } => {
                    self.answer(provider, Activity::Ready, started());
                    let process = self.processes.get_mut(&provider);
                    if let Some(process) = process.filter(|_| disposition != BufferDisposition::Retain) {
                        process.half = 0;
                        process.is_saving = false;
                    }
                }
                Action::StopTracee(provider) => {
                    self.answer(provider, Activity::Recording, FifoRequest::Stopped);
                }
                Action::TerminateTracee(provider) => self.terminate(provider),
                Action::Transfer { provider, .. } => {
                    self.transfer += 1;
                    let delay = self.random.delay();
                    self.later(delay, Incident::Transferred(self.transfer, provider));
                }
                Action::SendSaved { provider, .. } => {
                    let delay = self.random.delay();
                    if let Some(fifo) = self.processes.get(&provider).and_then(|process| process.fifo) {
                        self.later(delay, Incident::GivenBack(provider, fifo));
                    }
                }
                Action::TakeSnapshot { session, .. } => {
                    let delay = self.random.delay();
                    self.later(delay, Incident::Copied(session));
                }
                // One that goes on does not die.
                Action::WatchProcess(provider) if !self.processes.contains_key(&provider) => {
                    let delay = self.random.delay();
                    self.later(delay, Incident::Died(provider));
                }
                Action::ForgetProcess(provider) => {
                    self.incidents
                        .retain(|_, incident| !matches!(incident, Incident::Died(p) if *p == provider));
                }
                Action::DropTracee(provider) | Action::LeaveBuffer(provider) => {
                    if let Some(process) = self.processes.get_mut(&provider) {
                        process.fifo = None;
                        process.activity = Activity::Idle;
                    }
                }
                Action::EndSession { .. } => self.forget_handed_over(),
                _ => {}
            }
        }
    }

    fn forget_handed_over(&mut self) {
        self.handed_over.clear();
        self.session += 1;
    }

    fn later(&mut self, delay: Duration, incident: Incident) {
        self.made += 1;
        self.incidents.insert((self.now + delay, self.made), incident);
    }

    fn initialize_tracee(&mut self, provider: ProviderId) {
        if self.has_faults && self.random.chance(5) {
            let event = Event::TraceeFailed { provider, reason: Unmade::Gone };
            self.later(Duration::ZERO, Incident::Event(event));
            return;
        }
        if let Some(process) = self.processes.get_mut(&provider) {
            process.fifo = Some(self.next_fifo);
            process.activity = Activity::Ready;
            process.half = 0;
            process.durable_bytes = 16;
            process.is_saving = false;
            self.next_fifo += 1;
        }
    }

    /// A provider obeys a Start or a Stop if it can, and says so some time later. Packets of one provider
    /// keep their order, so all of them take the time of the slowest.
    fn answer(&mut self, provider: ProviderId, expected: Activity, packet: FifoRequest) {
        let lies = self.has_faults && self.random.chance(5);
        let delay = self.random.delay();
        let Some(process) = self.processes.get_mut(&provider) else {
            return;
        };
        let Some(fifo) = process.fifo.filter(|_| !process.is_stalled && process.activity == expected) else {
            return;
        };
        let is_start = expected == Activity::Ready;
        process.activity = if is_start { Activity::Recording } else { Activity::Ready };
        let packet = if lies { Err(PacketError::Version { found: 2 }) } else { Ok(packet) };
        self.in_order(provider, fifo, delay, Event::Packet { provider, packet });
    }

    /// Something on a FIFO, not before what was put into it earlier.
    fn in_order(&mut self, provider: ProviderId, fifo: u32, delay: Duration, event: Event) {
        let is_before = |incident: &Incident| matches!(incident, Incident::OnFifo(p, f, _) if (*p, *f) == (provider, fifo));
        let last =
            self.incidents.iter().filter(|(_, incident)| is_before(incident)).map(|((time, _), _)| *time);
        let earliest = last.max().map_or(Duration::ZERO, |last| last.saturating_sub(self.now));
        self.later(delay.max(earliest), Incident::OnFifo(provider, fifo, event));
    }

    fn terminate(&mut self, provider: ProviderId) {
        let delay = self.random.delay();
        let Some(process) = self.processes.get_mut(&provider).filter(|process| !process.is_stalled) else {
            return;
        };
        let Some(fifo) = process.fifo else {
            return;
        };
        if std::mem::replace(&mut process.activity, Activity::Idle) == Activity::Recording {
            let event = Event::Packet { provider, packet: Ok(FifoRequest::Stopped) };
            self.in_order(provider, fifo, delay, event);
        }
        self.in_order(provider, fifo, delay, Event::FifoClosed { provider, process: ProcessState::Alive });
    }

    fn do_something(&mut self) {
        match self.random.below(29) {
            20..=23 => {
                if let Some(provider) = self.random_provider() {
                    self.fill(provider);
                }
            }
            24 => self.flush(),
            25 => self.handle(Event::Snapshot {
                client: ClientId(1000),
                uid: Uid::ROOT,
                program: Some("provider-0".to_owned()),
            }),
            26..=27 => self.observe(),
            28 => self.close_observer(),
            0..=2 => self.register(),
            3..=4 => self.kill(),
            5 => self.stall(),
            6 => self.lie(),
            7..=9 => self.initialize(self.ledger.client.is_some()),
            10..=13 => self.start(),
            14..=16 => self.stop(),
            17 => self.watch_or_alert(),
            18 => self.break_output(),
            _ => {
                if self.random.chance(30) {
                    self.close_client();
                }
            }
        }
    }

    fn register(&mut self) {
        let provider = ProviderId(self.next_provider);
        self.next_provider += 1;
        let process = Process {
            activity: Activity::Idle,
            half: 0,
            durable_bytes: 0,
            is_saving: false,
            is_stalled: false,
            fifo: None,
        };
        self.processes.insert(provider, process);
        let name = format!("provider-{}", provider.0 % 3);
        let uid = self.user();
        self.handle(Event::ProviderRegistered {
            provider,
            name,
            pid: u64::from(provider.0),
            uid,
            is_late: false,
            is_waiting: false,
        });
    }

    fn random_provider(&mut self) -> Option<ProviderId> {
        let ids: Vec<ProviderId> = self.processes.keys().copied().collect();
        self.random.pick(&ids)
    }

    /// A process ends. Its FIFO or its channel is seen first, before or after it can be waited for.
    fn kill(&mut self) {
        let Some(provider) = self.random_provider() else {
            return;
        };
        let process = self.processes.remove(&provider);
        if process.is_some_and(|process| process.fifo.is_some()) && self.random.chance(40) {
            let process = self.end_of_process();
            self.handle(Event::FifoClosed { provider, process });
        }
        let process = self.end_of_process();
        let delay = self.random.delay();
        let event = Event::ProviderClosed { provider, process };
        self.later(delay, Incident::Event(event));
    }

    /// What the shell sees of a process that closes its descriptors: a busy machine lets it die later.
    fn end_of_process(&mut self) -> ProcessState {
        self.random
            .pick(&[ProcessState::Dead, ProcessState::Dead, ProcessState::Alive, ProcessState::Unknown])
            .unwrap_or(ProcessState::Dead)
    }

    fn stall(&mut self) {
        let provider = self.random_provider();
        if let Some(process) = provider.and_then(|provider| self.processes.get_mut(&provider)) {
            process.is_stalled = true;
        }
    }

    /// A provider's half is full, and it hands it over unless the half before is still with the manager.
    fn fill(&mut self, provider: ProviderId) {
        let grown = 8 * self.random.below(3);
        let delay = self.random.delay();
        let is_streaming = self.is_streaming;
        let process = self.processes.get_mut(&provider);
        let Some(process) = process.filter(|process| {
            is_streaming
                && process.activity == Activity::Recording
                && !process.is_saving
                && !process.is_stalled
        }) else {
            return;
        };
        let Some(fifo) = process.fifo else {
            return;
        };
        process.is_saving = true;
        process.durable_bytes += grown;
        let packet =
            FifoRequest::SaveBuffer { wrapped_count: process.half, durable_data_end: process.durable_bytes };
        self.in_order(provider, fifo, delay, Event::Packet { provider, packet: Ok(packet) });
    }

    /// A packet that the manager does not expect.
    fn lie(&mut self) {
        let Some(provider) = self.random_provider() else {
            return;
        };
        let Some(fifo) = self.processes.get(&provider).and_then(|process| process.fifo) else {
            return;
        };
        let packet = match self.random.below(5) {
            0 => Ok(started()),
            1 => Ok(FifoRequest::SaveBuffer {
                wrapped_count: self.random.below(3) as u32,
                durable_data_end: self.random.below(40),
            }),
            2 => Err(PacketError::Data16 { request: 1, found: 1 }),
            3 => Err(PacketError::Unknown { request: 0x77 }),
            _ => Ok(FifoRequest::Stopped),
        };
        self.in_order(provider, fifo, Duration::ZERO, Event::Packet { provider, packet });
    }

    fn initialize(&mut self, is_second: bool) {
        let client = ClientId(self.next_client);
        self.next_client += 1;
        if !is_second {
            self.ledger.client = Some(client);
            self.ledger.is_client_there = true;
        }
        let start_timeout_milliseconds = 1 + self.random.below(4000);
        let stop_timeout_milliseconds = 1 + self.random.below(4000);
        let is_streaming = self.random.chance(50);
        if !is_second {
            self.is_streaming = is_streaming;
        }
        let buffering_mode = if is_streaming { BufferingMode::Streaming } else { BufferingMode::Oneshot };
        let programs: Vec<String> = (0..3).map(|number| format!("provider-{number}")).collect();
        let config = if self.has_faults {
            TraceConfig {
                programs,
                start_timeout_milliseconds,
                stop_timeout_milliseconds,
                buffering_mode,
                ..TraceConfig::default()
            }
        } else {
            // Longer than any answer takes.
            TraceConfig {
                programs,
                start_timeout_milliseconds: 60_000,
                stop_timeout_milliseconds: 60_000,
                buffering_mode,
                ..TraceConfig::default()
            }
        };
        // A second one asks for programs of the first.
        let uid = if self.has_faults && !is_second { self.user() } else { Uid::ROOT };
        self.handle(Event::Initialize { client, pid: 77, uid, config });
    }

    fn user(&mut self) -> Uid {
        self.random.pick(&[Uid::ROOT, Uid::ROOT, Uid(1000), Uid(1001)]).unwrap_or(Uid::ROOT)
    }

    /// Most often the session's client, sometimes one without a session.
    fn some_client(&mut self) -> ClientId {
        let client = self.ledger.client.filter(|_| self.ledger.is_client_there);
        client.filter(|_| self.random.chance(95)).unwrap_or(ClientId(0))
    }

    fn start(&mut self) {
        let client = self.some_client();
        let disposition = self.random.pick(BufferDisposition::ALL).unwrap_or(BufferDisposition::Retain);
        let options = StartOptions { buffer_disposition: disposition, ..StartOptions::default() };
        self.handle(Event::Start { client, options });
    }

    fn stop(&mut self) {
        let client = self.some_client();
        let options = StopOptions { write_results: self.random.chance(50) };
        self.handle(Event::Stop { client, options });
    }

    fn flush(&mut self) {
        let client = self.some_client();
        self.handle(Event::Flush { client });
    }

    /// Several at once, so that some are too many.
    fn observe(&mut self) {
        for _ in 0..=self.random.below(4) {
            let client = ClientId(self.next_observer);
            self.next_observer += 1;
            let uid = self.user();
            self.handle(Event::Observe { client, uid, program: Some("provider-0".to_owned()) });
        }
    }

    /// One that observes, or one that was refused or has gone already.
    fn close_observer(&mut self) {
        let client = ClientId(FIRST_OBSERVER + self.random.below(self.next_observer - FIRST_OBSERVER + 1));
        self.handle(Event::ObserverClosed { client });
    }

    fn watch_or_alert(&mut self) {
        let client = self.ledger.client.filter(|_| self.ledger.is_client_there);
        if self.random.chance(50) {
            if let Some(client) = client {
                self.handle(Event::WatchAlert { client });
            }
        } else if let Some(provider) = self.random_provider() {
            let packet = Ok(FifoRequest::Alert { name: "alert".to_owned() });
            self.handle(Event::Packet { provider, packet });
        }
    }

    fn break_output(&mut self) {
        if let Some(client) = self.ledger.client
            && self.random.chance(30)
        {
            self.handle(Event::OutputFailed { client, reason: "the output is broken".to_owned() });
        }
    }

    fn close_client(&mut self) {
        if let Some(client) = self.ledger.client.filter(|_| self.ledger.is_client_there) {
            self.handle(Event::ClientClosed { client });
        }
    }
}

/// A core with a session of its own, which streams from one provider.
fn with_bystander() -> Core {
    let mut core = Core::new(Uid::ROOT);
    let name = "bystander".to_owned();
    let config = TraceConfig {
        programs: vec![name.clone()],
        buffering_mode: BufferingMode::Streaming,
        ..TraceConfig::default()
    };
    let (client, provider, uid) = (BYSTANDER, BYSTANDING, Uid::ROOT);
    for event in [
        Event::Initialize { client, pid: 1, uid, config },
        Event::ProviderRegistered { provider, name, pid: 1, uid, is_late: false, is_waiting: false },
        Event::Start { client, options: StartOptions::default() },
        Event::Packet { provider, packet: Ok(started()) },
    ] {
        core.handle_event(Duration::ZERO, event);
        while core.poll_action().is_some() {}
    }
    core
}
