//! The daemon around the core: one loop that waits for sockets, FIFOs and timers.

mod actions;
mod announcement;
mod archiving;
mod clients;
mod descriptors;
mod dying;
mod ends;
mod entrances;
mod fairness;
mod file_writer;
mod inherited;
mod io;
mod key;
mod log;
mod memory;
mod observers;
mod output;
mod place;
mod providers;
mod recording;
mod session_dir;
mod signposts;
mod snapshot;
mod task;
mod turn;
mod wire;

use crate::core::{Action, ClientId, Core, Event, Uid};
use announcement::Announcement;
use clients::Clients;
use io::Io;
use key::Key;
use log::log;
use memory::Dumps;
use observers::Observers;
use place::Place;
use providers::Providers;
use recording::{Recording, Recordings};
use snapshot::Snapshot;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use task::{Effects, Requester, Tasks};
use trace_format::units::{ProviderId, TicksPerSecond};
use trace_protocol::controller::{ProviderProgress, Refusal, SessionResponse, TaskRequest, TraceConfig};
use trace_protocol::limits::MAX_SESSIONS_OF_A_USER;
use turn::Turns;
use zx_sim::{Handle, Listener, Signals};

/// How many connections are accepted before everything else is checked.
const ACCEPTED_AT_ONCE: usize = 64;
/// Answers of a provider that may precede what it hands over: as many questions as it is asked at a time.
const MAX_ANSWERS: usize = 16;
/// How long no connection is accepted after the process ran out of descriptors.
const LISTENERS_REST: Duration = Duration::from_millis(200);
/// Held by the one manager of a runtime directory.
const LOCK: &str = "lock";

/// How the daemon is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where its sockets and buffers go.
    pub runtime_dir: PathBuf,
    /// Directory of the buffers, below a directory that only this user may use; none stands for the runtime
    /// directory.
    pub buffers_dir: Option<PathBuf>,
    /// The manager serves the programs and clients of all users; each client sees only what its user may see.
    pub is_for_all_users: bool,
    /// A command started it: its log is a file that only it writes.
    pub on_demand: bool,
    /// It is for one recording, and exits when nothing is left to be done for that.
    pub leaves_with_its_recording: bool,
    /// How long the manager may have no client and no session before it exits.
    pub idle_timeout: Option<Duration>,
}

/// Why the daemon cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another manager has the directory.
    #[error("a manager is already running in {} (pid {})", directory.display(), pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()))]
    AlreadyRunning {
        /// The runtime directory.
        directory: PathBuf,
        /// The other manager's process.
        pid: Option<u32>,
    },
    /// The runtime directory or something in it cannot be used.
    #[error("{}: {error}", path.display())]
    Path {
        /// What cannot be used.
        path: PathBuf,
        /// Why.
        error: zx_sim::Error,
    },
    /// The operating system refused something else.
    #[error("{what}: {error}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The operating system's error.
        error: zx_sim::Error,
    },
}

/// Runs the manager of a runtime directory until a signal ends it, or, on demand, until it is no longer
/// needed.
///
/// # Errors
/// The directory cannot be used, or belongs to a running manager.
pub fn run(options: Options) -> Result<(), Error> {
    zx_sim::distrust_peers();
    // A file that reaches the limit of its size is an error of writing it, and does not end the manager.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    inherited::allow_many_descriptors();
    if options.on_demand {
        inherited::take_back();
        log::own_file();
    }
    let (place, registry, provisioner) = Place::take(&options)?;
    let mut daemon = Daemon::new(&options, place, (registry, provisioner))?;
    loop {
        let end = daemon.run();
        daemon.place.leave();
        // A client that has connected before that waits to be served; one that connects later starts the next
        // manager.
        if !matches!(end, Ok(End::Unneeded)) || !daemon.has_late_client() {
            return end.map(|_| ());
        }
        if !daemon.place.is_taken() {
            let (registry, provisioner) = daemon.place.listen_again()?;
            daemon.listen(registry, provisioner)?;
        }
    }
}

/// Why the manager ends.
enum End {
    /// A signal came.
    Signal,
    /// There was no client and no recording for a while.
    Unneeded,
}

/// Everything the loop works on.
struct Daemon {
    started: Instant,
    idle_timeout: Option<Duration>,
    idle_since: Instant,
    leaves_with_its_recording: bool,
    /// It has had a session. Clients that only ask come before that, too.
    has_recorded: bool,
    core: Core,
    place: Place,
    announcement: Announcement,
    io: Io,
    registry: Listener,
    provisioner: Listener,
    /// No connection is accepted until then.
    resting_until: Option<Instant>,
    _signals: zx_sim::Socket,
    providers: Providers,
    clients: Clients,
    dumps: Dumps,
    recordings: Recordings,
    /// The session whose data was moved last.
    last_pumped: ClientId,
    /// By the sessions that they are of, which may be over.
    snapshots: BTreeMap<ClientId, Snapshot>,
    observers: Observers,
    tasks: Tasks,
    owner: Uid,
    /// There is more to copy, but the other sources had to have a turn.
    is_busy: bool,
    rate: TicksPerSecond,
}

impl Daemon {
    fn new(
        options: &Options,
        place: Place,
        (registry, provisioner): (Listener, Listener),
    ) -> Result<Self, Error> {
        let system = |what| move |error| Error::System { what, error };
        let io = Io::new().map_err(system("cannot wait"))?;
        let (signals, signal_writer) = zx_sim::Socket::pair().map_err(system("cannot make a socket"))?;
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
            let writer = signal_writer.duplicate().map_err(system("cannot duplicate a socket"))?;
            signal_hook::low_level::pipe::register(signal, writer)
                .map_err(|source| zx_sim::Error::io("cannot handle signals", source))
                .map_err(system("cannot handle signals"))?;
        }
        let watch = |object: &dyn AsFd, key: Key| {
            io.waits.add(&object.as_fd(), key.encode(), Signals::READABLE).map_err(system("cannot wait"))
        };
        watch(&signals, Key::Signal)?;
        let now = Instant::now();
        let owner = Uid(rustix::process::geteuid().as_raw());
        let clock = place.clock;
        let providers = Providers::new(place.buffers()?, clock).found_in(&options.runtime_dir);
        let daemon = Self {
            started: now,
            idle_timeout: options.idle_timeout,
            idle_since: now,
            leaves_with_its_recording: options.leaves_with_its_recording,
            has_recorded: false,
            core: Core::new(owner),
            announcement: Announcement::new(place.announced()?),
            place,
            registry,
            provisioner,
            resting_until: None,
            _signals: signals,
            providers,
            clients: Clients::new(),
            dumps: Dumps::default(),
            recordings: Recordings::new(),
            last_pumped: ClientId(0),
            snapshots: BTreeMap::new(),
            observers: Observers::default(),
            tasks: Tasks::new(),
            owner,
            is_busy: false,
            rate: TicksPerSecond(NonZeroU64::new(clock.ticks_per_second).unwrap_or(NonZeroU64::MIN)),
            io,
        };
        daemon.watch_listeners()?;
        Ok(daemon)
    }

    /// Listens on other sockets than before; without another one for clients, on the same.
    fn listen(&mut self, registry: Listener, provisioner: Option<Listener>) -> Result<(), Error> {
        self.registry = registry;
        match provisioner {
            Some(provisioner) => self.provisioner = provisioner,
            // It is watched again below.
            None => drop(self.io.waits.remove(&self.provisioner)),
        }
        self.watch_listeners()
    }

    fn watch_listeners(&self) -> Result<(), Error> {
        for (listener, key) in [(&self.registry, Key::Registry), (&self.provisioner, Key::Provisioner)] {
            let added = self.io.waits.add(listener, key.encode(), Signals::READABLE);
            added.map_err(|error| Error::System { what: "cannot wait", error })?;
        }
        Ok(())
    }

    /// A client has connected that was not accepted yet.
    fn has_late_client(&mut self) -> bool {
        // One that has found the socket, and has not connected yet, is refused: it starts the next manager.
        if !self.place.is_provisioner_inherited() {
            self.provisioner.refuse_all();
        }
        let _ = self.clients.accept(&self.provisioner, &self.io);
        !self.clients.is_empty()
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn run(&mut self) -> Result<End, Error> {
        let mut events = Vec::new();
        let mut unhandled = VecDeque::new();
        let mut turns = Turns::new();
        loop {
            self.work();
            self.dump_memory_if_due(Instant::now());
            self.flush_if_quiet(Instant::now());
            if self.is_unneeded() {
                return Ok(End::Unneeded);
            }
            turns.end();
            if unhandled.is_empty() {
                let deadline = if self.is_busy { Some(Instant::now()) } else { self.deadline() };
                let wait = self.io.waits.wait(&mut events, deadline);
                wait.map_err(|error| Error::System { what: "cannot wait", error })?;
                unhandled.extend(events.iter().map(|event| Key::decode(event.key)));
            }
            turns.begin();
            // At least one, and the others have their turn later.
            while let Some(key) = unhandled.pop_front() {
                if key == Key::Signal {
                    // The sessions end with what they have; clients see it on their channels.
                    return Ok(End::Signal);
                }
                self.handle_ready(key);
                if !turns.has_time() {
                    break;
                }
            }
            let now = Instant::now();
            self.clients.expire_queries(now);
            self.begin_queries();
            log::handle_time(now);
            self.listen_again(now);
            self.look_around(now);
            self.providers.handle_time(now);
            self.answer_stop(now);
            self.with_tasks(|tasks, effects| tasks.handle_time(now, effects));
            self.fail_late_outputs(now);
        }
    }

    /// A source is readable, or closed.
    /// Reads a message of a provider's; true if it was an answer.
    fn read_provider(&mut self, id: ProviderId) -> bool {
        let response = self.providers.read_channel(id, &mut self.io);
        if let Some(response) = &response {
            self.clients.handle_answer(id, response, self.core.wants_known_categories(id));
        }
        response.is_some()
    }

    fn handle_ready(&mut self, key: Key) {
        match key {
            Key::Registry => {
                let mut new = Vec::new();
                let accepted = self.providers.accept(&self.registry, &self.io, &mut new);
                self.rest_unless(accepted);
                // At once, before other silent connections take their places.
                new.into_iter().for_each(|number| self.handle_ready(Key::Registration(number)));
            }
            Key::Registration(number) => {
                let is_started = |uid, name: &str| self.core.is_started(uid, name);
                self.providers.read_registration(number, is_started, &mut self.io);
            }
            Key::Provider(id) => _ = self.read_provider(id),
            Key::Fifo(id) => {
                // What it has recorded before comes through the channel, before it reports its start.
                let is_first = self.providers.awaits_start(id);
                let _ = is_first && (0..MAX_ANSWERS).all(|_| self.read_provider(id));
                self.providers.read_fifo(id, &mut self.io);
            }
            Key::Process(id) if self.providers.is_adopting(id) => {}
            Key::Process(id) => self.providers.dying.handle_readable(id, &mut self.io),
            Key::Provisioner => {
                let accepted = self.clients.accept(&self.provisioner, &self.io);
                self.rest_unless(accepted);
            }
            Key::Client(number) => {
                let uid = self.clients.user(number);
                let providers = || self.core.providers(uid);
                let recording = self.core.recording(uid);
                let registered = &mut self.providers;
                let dumps = &mut self.dumps;
                let context =
                    clients::QueryContext { uid, providers: &providers, registered, recording, dumps };
                let about_task = self.clients.read_provisioner(number, context, &mut self.io);
                if let Some((requester, request)) = about_task {
                    self.handle_task(requester, request);
                }
            }
            Key::Session(number) => {
                if let Some(txid) = self.clients.read_session(number, &mut self.io) {
                    let progress = self.progress(client_id(number));
                    self.clients.reply_progress(number, txid, progress);
                }
            }
            Key::Spool(task) => self.with_tasks(|tasks, effects| tasks.finish(task, effects)),
            Key::Output | Key::Snapshot | Key::Observer(_) | Key::Signal => {}
        }
    }

    /// Stops watching connections for a while if they cannot be accepted: they would end every wait at once.
    fn rest_unless(&mut self, accepted: zx_sim::Result<()>) {
        if let Err(error) = accepted {
            log(&error.to_string());
            for listener in [&self.registry, &self.provisioner] {
                let _ = self.io.waits.remove(listener);
            }
            self.resting_until = Some(Instant::now() + LISTENERS_REST);
        }
    }

    fn listen_again(&mut self, now: Instant) {
        if self.resting_until.take_if(|until| *until <= now).is_some() {
            // If that fails, another process has used up the memory: retry.
            if self.watch_listeners().is_err() {
                self.resting_until = Some(now + LISTENERS_REST);
            }
        }
    }

    /// Asks providers for the answers to clients' queries.
    fn begin_queries(&mut self) {
        while let Some(asking) = self.clients.next_query() {
            let providers = self.core.providers(asking.uid);
            self.clients.begin_query(&asking, &providers, &mut self.providers);
        }
    }

    /// The progress of a session's providers. What is on its way into the archive is not in their buffers any
    /// more: a client adds what it has got of that.
    fn progress(&self, session: ClientId) -> Vec<ProviderProgress> {
        self.providers.progress(session, self.rate, |id| self.core.handed_over_halves(id))
    }

    /// Requests the memory dumps of sessions that are due.
    fn dump_memory_if_due(&mut self, now: Instant) {
        for (client, recording) in &mut self.recordings {
            let wanted = self.core.memory_dumps(*client);
            let recorded = || self.core.recording_in(*client);
            let next = &mut recording.next_dump;
            self.dumps.take_if_due(now, next, wanted, &mut self.providers, recorded);
        }
    }

    /// A user has as many sessions as a manager serves.
    //= docs/protocol.md#several-sessions
    fn has_too_many(&self, uid: Uid, besides: Option<ClientId>) -> bool {
        let recordings = self.recordings.iter().filter(|(_, recording)| recording.uid == uid);
        // The file of a task may not be written though its session is over.
        let all: BTreeSet<ClientId> =
            recordings.map(|(client, _)| *client).chain(self.tasks.clients_of(uid)).collect();
        all.into_iter().filter(|client| Some(*client) != besides).count() >= MAX_SESSIONS_OF_A_USER
    }

    /// Why a session that a user asks for is refused.
    fn refusal(&self, uid: Uid, config: &TraceConfig) -> Option<Refusal> {
        let refusal = self.has_too_many(uid, None).then(too_many);
        refusal.or_else(|| self.core.refusal(uid, config)).map(actions::with_start_time)
    }

    /// Runs an operation on the tasks, and carries out its effects.
    fn with_tasks(&mut self, act: impl FnOnce(&mut Tasks, &mut Effects)) {
        let mut effects = Effects::default();
        act(&mut self.tasks, &mut effects);
        self.io.events.extend(effects.events);
        for (requester, response) in effects.answers {
            self.clients.reply_task(requester, response);
        }
    }

    fn handle_task(&mut self, requester: Requester, request: TaskRequest<Handle>) {
        let owner = self.owner;
        match request {
            TaskRequest::Start { config, options, file } => {
                let mut started = None;
                // Before anything is made for it.
                let refusal = self.refusal(requester.uid, &config);
                self.with_tasks(|tasks, effects| match refusal {
                    Some(refusal) => tasks.refuse(requester, refusal, effects),
                    None => started = tasks.start(requester, config, options, file, effects),
                });
                if let Some((task, output)) = started {
                    self.clients.push_output(output);
                    if let Some(spool) = self.tasks.spool(task) {
                        let _ = self.io.waits.add(spool, Key::Spool(task).encode(), Signals::READABLE);
                    }
                }
            }
            TaskRequest::End(task) => {
                self.with_tasks(|tasks, effects| tasks.end(task, requester, owner, effects));
            }
            TaskRequest::Abort(task) => {
                self.with_tasks(|tasks, effects| tasks.abort(task, requester, owner, effects));
            }
            TaskRequest::Flush(task) => {
                self.with_tasks(|tasks, effects| tasks.flush(task, requester, owner, effects));
            }
            TaskRequest::Status(task) => {
                let asked = self.tasks.of_status(task, requester, owner);
                let progress = asked.map(|session| self.progress(session)).unwrap_or_default();
                let mut ended = asked.map(|session| self.core.ended(session)).unwrap_or_default();
                if let Some(ends) = asked.and_then(|session| self.providers.ends(session)) {
                    ends.name_now(&mut ended, Instant::now());
                }
                self.with_tasks(|tasks, effects| {
                    tasks.status(requester, owner, asked, progress, ended, effects);
                });
            }
        }
    }

    /// Answers a Stop when it is known how all its programs have ended.
    fn answer_stop(&mut self, now: Instant) {
        while let Some((client, result)) = self.providers.complete_stop(now) {
            self.reply(client, SessionResponse::StopTracing(Ok(result)));
        }
    }

    /// Sends a response to a client, which may be a task of this manager.
    fn reply(&mut self, client: ClientId, response: SessionResponse) {
        if client.is_task() {
            self.with_tasks(|tasks, effects| tasks.handle_response(client, response, effects));
        } else {
            self.clients.reply(client, response);
        }
    }

    /// Does what can be done without waiting: data is moved once, and then what else is ready has its turn.
    fn work(&mut self) {
        let mut has_moved = false;
        loop {
            // An event counts before the time at which the daemon saw it: the daemon may have had to wait for
            // a processor.
            while let Some(event) = self.io.events.pop_front() {
                // Its answer has programs that are known only by what they have left.
                if matches!(event, Event::Stop { .. } | Event::ClientClosed { .. } | Event::Snapshot { .. }) {
                    for gave_up in self.providers.take_notes() {
                        self.core.handle_event(self.now(), gave_up);
                    }
                }
                match event {
                    // Not when the request is read: another session may end in between.
                    Event::Initialize { client, uid, .. } if self.has_too_many(uid, Some(client)) => {
                        self.act(Action::RefuseClient { client, refusal: too_many() });
                    }
                    event => self.core.handle_event(self.now(), event),
                }
                self.act_on_all();
            }
            self.core.handle_time(self.now());
            self.act_on_all();
            if std::mem::replace(&mut has_moved, true) {
                // A part that was read makes room for the next one.
                self.is_busy = true;
                return;
            }
            self.is_busy = self.pump_all()
                | self.pump_snapshots()
                | self.providers.make_buffers(&mut self.io)
                | self.providers.copy_buffers(&mut self.io);
            // Only when nothing of the sessions' own is to be done at once.
            self.is_busy = self.is_busy || self.pump_observers();
            if self.io.events.is_empty() {
                return;
            }
        }
    }

    fn act_on_all(&mut self) {
        // Before any provider gets Start or Stop.
        self.announcement.set(self.core.recorded());
        self.announcement.set_markers(self.core.wanted_markers());
        while let Some(action) = self.core.poll_action() {
            self.act(action);
        }
    }

    /// When something is due next if nothing happens outside.
    fn deadline(&self) -> Option<Instant> {
        let core = self.core.next_deadline().map(|deadline| self.started + deadline);
        let idle = self.idle_timeout.map(|timeout| self.idle_since + timeout);
        let task = self.tasks.deadline();
        let of_recording = |(client, recording): (&ClientId, &Recording)| {
            [self.output_deadline(*client), recording.next_flush, recording.next_dump]
        };
        let recordings = self.recordings.iter().flat_map(of_recording);
        let others = [self.clients.next_deadline(), self.providers.next_deadline()];
        let others = others.into_iter().chain([log::deadline(), self.resting_until]);
        let others = others.chain([self.observers.deadline(), Some(self.place.next_look())]);
        [core, idle, task].into_iter().chain(others).chain(recordings).flatten().min()
    }

    /// The manager was started on demand, and has had no client and no session for a while; or another one
    /// has its place.
    fn is_unneeded(&mut self) -> bool {
        let is_taken = self.place.is_taken();
        let Some(timeout) = self.idle_timeout.or(is_taken.then_some(Duration::ZERO)) else {
            return false;
        };
        let now = Instant::now();
        if self.core.has_session()
            || !self.recordings.is_empty()
            || !self.observers.is_empty()
            || self.tasks.is_busy()
            || self.tasks.has_unreported_end(now)
            || !self.clients.is_empty()
        {
            self.idle_since = now;
            self.has_recorded |= self.core.has_session();
            return false;
        }
        is_taken || self.leaves_with_its_recording && self.has_recorded || now >= self.idle_since + timeout
    }
}

/// Why a user has no more sessions.
fn too_many() -> Refusal {
    let limit = Some(MAX_SESSIONS_OF_A_USER as u64);
    let reason =
        format!("the trace manager is in use by {MAX_SESSIONS_OF_A_USER} recordings of this user, the most");
    Refusal { reason, limit, ..Refusal::default() }
}

/// The id of a session channel, as the core knows it.
fn client_id(number: u32) -> ClientId {
    ClientId(u64::from(number))
}
