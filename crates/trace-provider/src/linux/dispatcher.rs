//! Finds a manager, serves its requests, and finds the next one when it is gone: on a thread of the
//! provider's, or a turn at a time in a loop of the application's.

mod commands;
mod requests;

use crate::linux::manager::{self, Found, Line};
use crate::linux::queue::Sender;
use crate::linux::session::Session;
use crate::linux::startup;
use crate::linux::watch::Watch;
#[cfg(feature = "local")]
use crate::linux::{echo::Echo, local};
pub(crate) use commands::{Command, CommandReceiver, Commands};
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_engine::engine;
use trace_format::shown::Shown;
use zx_sim::guest::ClosedInChildren;
use zx_sim::{Channel, PidNamespace, Signals, WaitSet, WakeReceiver, debuglog};

/// What the application may be waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No manager listens in any runtime directory.
    NoManager,
    /// The provider has registered and asked for no answer, as nothing is being recorded.
    NotRecording,
    /// A manager has answered a synchronous registration.
    Registered { already_started: bool },
    /// The manager does not serve this provider.
    Refused { reason: String },
    /// A trace is being set up: the buffer is being mapped, which takes a while where it is large.
    Initializing,
    /// Recording has started.
    Started,
    /// The manager will learn that the application has not waited for its answer.
    GoneOn,
}

/// When the application has closed the descriptor that wakes the thread, the thread looks this often whether
/// there are orders.
const ORDERS_INTERVAL: Duration = Duration::from_millis(50);
/// How often other directories may have become the ones to watch, without anything that a watch shows.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);
/// Without a watch the directories are looked at this often.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// After a directory changed, a manager may be about to listen: it is tried this often …
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// … for so long.
const RETRY_SPAN: Duration = Duration::from_secs(1);
/// While a manager has too many connections to take in, it is tried after pauses from this …
const SHORTEST_BUSY_PAUSE: Duration = Duration::from_millis(1);
/// … to this, each twice as long as the one before …
const LONGEST_BUSY_PAUSE: Duration = Duration::from_millis(64);
/// … for so long, and from then on at [`POLL_INTERVAL`].
const BUSY_SPAN: Duration = Duration::from_secs(6);
/// A manager that gives a provider up sooner than this will do so again: the provider pauses, each time
/// longer, from the first of these …
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// … or from this if the manager has refused it …
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// … to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// See above.
const SHORT_LINE: Duration = Duration::from_secs(1);

const KEY_WAKER: u64 = 0;
const KEY_CHANNEL: u64 = 1;
const KEY_FIFO: u64 = 2;
const KEY_WATCH: u64 = 3;
const KEY_ANSWER: u64 = 4;

/// The state between two turns.
pub(crate) struct Dispatcher {
    name: String,
    is_answer_wanted: bool,
    progress: Sender<Progress>,
    commands: Commands,
    received: CommandReceiver,
    wakes: WakeReceiver,
    /// No more wakes come: the application has closed their descriptor.
    is_deaf: Cell<bool>,
    waits: WaitSet,
    /// The only way to a manager, if there is one.
    inherited: Option<Channel>,
    directories: Vec<PathBuf>,
    /// None while there was always a manager, or where it cannot be had.
    watch: Option<Watch>,
    /// The manager has refused this provider.
    is_refused: Cell<bool>,
    /// The application's wait has timed out, and no manager has learned that yet.
    has_gone_on: Cell<bool>,
    /// The manager's, where that is not the one of this process.
    namespace: RefCell<Option<PidNamespace>>,
    #[cfg(feature = "local")]
    echo: RefCell<Option<Echo>>,
    phase: Phase,
    /// The last pause after a manager was lost.
    pause: Duration,
    /// Its descriptors are in the program's table, which forked children inherit.
    is_shared: bool,
}

/// How long to wait before each further attempt to connect to a manager whose queue is full.
struct BusyPauses {
    since: Instant,
    next: Duration,
}

impl BusyPauses {
    fn new() -> Self {
        Self { since: Instant::now(), next: SHORTEST_BUSY_PAUSE }
    }

    fn next(&mut self) -> Duration {
        if self.since.elapsed() > BUSY_SPAN {
            return POLL_INTERVAL;
        }
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST_BUSY_PAUSE);
        pause
    }
}

/// What the dispatcher is doing.
enum Phase {
    /// Nothing, until this time.
    Pausing(Instant),
    Looking(Search),
    Following(Following),
}

/// Looking for a manager.
struct Search {
    retry_until: Instant,
    busy: BusyPauses,
    /// A manager listens, and takes in others first.
    is_busy: bool,
}

/// Serving the requests of a manager. Guards stand before what they guard, so that they are dropped first.
struct Following {
    guards: Vec<ClosedInChildren>,
    session_guards: Vec<ClosedInChildren>,
    session: Option<Session>,
    line: Line,
    since: Instant,
}

/// What follows a part of a turn.
enum Step {
    /// Wait for an object, or for this time.
    Wait(Phase, Option<Instant>),
    /// Go on at once.
    Next(Phase),
}

/// What follows a turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Wait for an object, or for this time.
    Wait(Option<Instant>),
    /// The application has dropped its provider.
    Over,
}

/// Prints events, if that is wanted, from the program's own buffer to begin with.
#[cfg(feature = "local")]
fn echo() -> Option<Echo> {
    let mut echo = Echo::new()?;
    if let Some(buffer) = startup::buffer() {
        echo.follow(buffer);
    }
    Some(echo)
}

/// Lets observers do what is due in a recording that no manager has. When to do it again.
fn observers_turn(phase: &Phase) -> Option<Instant> {
    let has_session = matches!(phase, Phase::Following(following) if following.session.is_some());
    let is_own = !has_session && engine::state() == engine::State::Started;
    is_own.then(|| engine::turn(false)).flatten().map(|delay| Instant::now() + delay)
}

impl Dispatcher {
    /// On a thread with descriptors of its own, unless they are shared. None when there can be no more of
    /// them.
    pub fn new(
        name: String,
        is_answer_wanted: bool,
        progress: Sender<Progress>,
        (commands, received): (Commands, CommandReceiver),
        wakes: WakeReceiver,
        inherited: Option<Channel>,
        is_shared: bool,
    ) -> Option<Self> {
        let waits = WaitSet::new().ok()?;
        waits.add(&wakes, KEY_WAKER, Signals::READABLE).ok()?;
        let directories = if inherited.is_some() { Vec::new() } else { manager::directories() };
        let (is_deaf, watch) = (Cell::new(false), None);
        #[cfg(feature = "local")]
        local::serve_with(&commands);
        Some(Self {
            name,
            is_answer_wanted,
            progress,
            commands,
            received,
            wakes,
            is_deaf,
            waits,
            inherited,
            directories,
            watch,
            is_refused: Cell::new(false),
            has_gone_on: Cell::new(false),
            namespace: RefCell::new(None),
            #[cfg(feature = "local")]
            echo: RefCell::new(echo()),
            phase: Phase::Pausing(Instant::now()),
            pause: Duration::ZERO,
            is_shared,
        })
    }

    /// Until the provider is dropped.
    pub fn run(mut self) {
        let mut keys = Vec::new();
        while let Turn::Wait(deadline) = self.turn(&keys) {
            keys = self.wait(deadline);
        }
    }

    /// Does what is due, and what the objects with these keys are ready for.
    pub fn turn(&mut self, keys: &[u64]) -> Turn {
        let mut phase = std::mem::replace(&mut self.phase, Phase::Pausing(Instant::now()));
        #[cfg(feature = "local")]
        local::serve_request();
        if keys.contains(&KEY_WAKER) && self.run_commands(&mut phase) {
            if let Phase::Following(following) = phase {
                self.leave(following);
            }
            self.end_echo();
            startup::end();
            return Turn::Over;
        }
        let mut keys = keys;
        loop {
            let step = match phase {
                Phase::Pausing(until) if Instant::now() < until => Step::Wait(phase, Some(until)),
                Phase::Pausing(_) => self.begin_search(),
                Phase::Looking(search) => self.search(search, keys),
                Phase::Following(following) => self.follow(following, keys),
            };
            match step {
                Step::Wait(phase, deadline) => {
                    let turn = observers_turn(&phase);
                    self.phase = phase;
                    return Turn::Wait([deadline, self.serve_echo(), turn].into_iter().flatten().min());
                }
                Step::Next(next) => phase = next,
            }
            keys = &[];
        }
    }

    /// Prints what was recorded since the last time, if that is wanted. When to do it again.
    #[cfg(feature = "local")]
    fn serve_echo(&self) -> Option<Instant> {
        let mut echo = self.echo.borrow_mut();
        let echo = echo.as_mut()?;
        echo.serve();
        echo.deadline()
    }

    #[cfg(not(feature = "local"))]
    #[allow(clippy::unused_self, reason = "with the feature `local` there is something to print")]
    fn serve_echo(&self) -> Option<Instant> {
        None
    }

    fn end_echo(&self) {
        #[cfg(feature = "local")]
        self.echo.borrow_mut().iter_mut().for_each(Echo::leave);
    }

    /// Prints why nothing is recorded, once for each process, as the reason would be the same again.
    fn report(&self, reason: &str) {
        static IS_TOLD: AtomicBool = AtomicBool::new(false);
        if !IS_TOLD.swap(true, Ordering::Relaxed) {
            self.print(&format!("not traced: {reason}"));
        }
    }

    fn begin_search(&mut self) -> Step {
        // Where a manager listens already, no watch is needed.
        let found = self.register();
        // While the manager makes the buffer, or before there is one; it may take long.
        engine::prepare();
        let search = Search { retry_until: Instant::now(), busy: BusyPauses::new(), is_busy: false };
        self.go_on_searching(search, found)
    }

    fn search(&mut self, mut search: Search, keys: &[u64]) -> Step {
        if keys.contains(&KEY_WATCH) {
            search.retry_until = Instant::now() + RETRY_SPAN;
        }
        // Without a manager the directories are looked for, and watched, first.
        let found = if search.is_busy { self.register() } else { Found::NoManager };
        self.go_on_searching(search, found)
    }

    fn go_on_searching(&mut self, mut search: Search, found: Found) -> Step {
        let mut found = found;
        if matches!(found, Found::NoManager) {
            search.busy = BusyPauses::new();
            // Others may have made one of them their own, or given it back.
            if self.inherited.is_none() {
                self.directories = manager::places();
            }
            // Watched before the next attempt, so that no later change is missed.
            let is_watched = self.watch();
            found = self.register();
            if matches!(found, Found::NoManager) {
                self.progress.send(Progress::NoManager);
                let now = Instant::now();
                let deadline = match is_watched {
                    _ if now < search.retry_until => Some(now + RETRY_INTERVAL),
                    true => Some(now + LOOK_INTERVAL),
                    false => Some(now + POLL_INTERVAL),
                };
                search.is_busy = false;
                return Step::Wait(Phase::Looking(search), deadline);
            }
        }
        // What changes in a manager's directory is no reason to try it sooner.
        self.watch.iter_mut().for_each(Watch::rest);
        match found {
            Found::Manager(line) => self.begin_following(line),
            Found::Busy | Found::NoManager => {
                search.is_busy = true;
                let deadline = Instant::now() + search.busy.next();
                Step::Wait(Phase::Looking(search), Some(deadline))
            }
        }
    }

    /// Registers with a manager, if one listens.
    fn register(&self) -> Found {
        let found = match &self.inherited {
            Some(registry) => manager::register_through(registry, &self.name),
            None => manager::register(&self.directories, &self.name, self.is_answer_wanted),
        };
        if matches!(&found, Found::Manager(line) if line.answer.is_none()) {
            self.progress.send(Progress::NotRecording);
        }
        found
    }

    /// Makes changes of the directories end a wait; false where that is not possible.
    fn watch(&mut self) -> bool {
        if self.watch.is_none() {
            let watch = Watch::new();
            self.watch = watch.filter(|watch| self.waits.add(watch, KEY_WATCH, Signals::READABLE).is_ok());
        }
        self.watch.as_mut().is_some_and(|watch| watch.aim(&self.directories))
    }

    fn begin_following(&mut self, mut line: Line) -> Step {
        let signals = Signals::READABLE | Signals::PEER_CLOSED;
        self.go_on(&mut line);
        let answer = line.answer.as_ref().map(|answer| (answer, KEY_ANSWER));
        let objects = answer.into_iter().chain([(&line.channel, KEY_CHANNEL)]);
        let is_complete =
            objects.into_iter().all(|(object, key)| self.waits.add(object, key, signals).is_ok());
        let guards = self.guards(line.answer.iter().chain([&line.channel]).map(AsFd::as_fd));
        let following =
            Following { guards, session_guards: Vec::new(), session: None, line, since: Instant::now() };
        match is_complete {
            true => Step::Next(Phase::Following(following)),
            false => self.lose(following),
        }
    }

    /// Serves the requests of the manager.
    fn follow(&mut self, mut following: Following, keys: &[u64]) -> Step {
        let Following { line, session, .. } = &mut following;
        self.go_on(line);
        if keys.contains(&KEY_FIFO) && session.as_mut().is_some_and(|session| !session.read_fifo()) {
            self.end_session(session);
        }
        let answer = if keys.contains(&KEY_ANSWER) { line.answer.take() } else { None };
        if let Some(answer) = answer {
            let _ = self.waits.remove(&answer);
            // The channel reports that a manager is gone.
            manager::read_answer(&answer).into_iter().for_each(|progress| _ = self.progress.send(progress));
        }
        if keys.contains(&KEY_CHANNEL) && self.serve(&line.channel, session).is_none() {
            return self.lose(following);
        }
        if line.answer.is_none() && following.guards.len() > 1 {
            following.guards.remove(0);
        }
        following.session_guards.clear();
        following.session_guards = self.guards(following.session.iter().flat_map(Session::descriptors));
        let is_deaf = self.is_deaf.get();
        let deadline = following.session.as_mut().and_then(|session| session.service(is_deaf));
        Step::Wait(Phase::Following(following), deadline)
    }

    /// The manager has closed the channel, or is dead: looks for the next one, sooner or later.
    fn lose(&mut self, following: Following) -> Step {
        let is_short = following.since.elapsed() < SHORT_LINE;
        self.leave(following);
        self.pause = match (self.is_refused.take(), is_short) {
            (true, _) => (self.pause * 2).clamp(REFUSED_PAUSE, LONGEST_PAUSE),
            (false, true) => (self.pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
            (false, false) => Duration::ZERO,
        };
        Step::Next(Phase::Pausing(Instant::now() + self.pause))
    }

    /// Ends everything with a manager.
    fn leave(&self, mut following: Following) {
        self.end_session(&mut following.session);
        self.namespace.take();
        let Following { line, .. } = &following;
        for object in line.answer.iter().chain([&line.channel]) {
            let _ = self.waits.remove(object);
        }
    }

    /// Whether all descriptors that have an identity are still its own, in the program's table.
    pub fn is_whole(&self) -> bool {
        match &self.phase {
            Phase::Following(following) => {
                following.guards.iter().chain(&following.session_guards).all(ClosedInChildren::is_open)
            }
            Phase::Pausing(_) | Phase::Looking(_) => true,
        }
    }

    /// The program has closed descriptors: none is used or closed any more, as it may have become the
    /// program's.
    pub fn abandon(&mut self) {
        self.report("its descriptors were closed");
        let phase = std::mem::replace(&mut self.phase, Phase::Pausing(Instant::now()));
        if let Phase::Following(Following { session, line, .. }) = phase {
            session.into_iter().for_each(Session::abandon);
            std::mem::forget(line);
        }
    }

    /// Makes forked children close these, if they are in the program's own table.
    fn guards<'a>(&self, objects: impl Iterator<Item = BorrowedFd<'a>>) -> Vec<ClosedInChildren> {
        objects.filter(|_| self.is_shared).map(|object| ClosedInChildren::new(&object)).collect()
    }

    /// Drops the connection on which the manager would answer, where the application waits no longer.
    //= docs/protocol.md#a-recording-is-announced
    fn go_on(&self, line: &mut Line) {
        if self.has_gone_on.take() {
            if let Some(answer) = line.answer.take() {
                let _ = self.waits.remove(&answer);
            }
            self.progress.send(Progress::GoneOn);
        }
    }

    /// Executes the application's commands. True if one of them is to end.
    fn run_commands(&self, phase: &mut Phase) -> bool {
        if !self.is_deaf.get() && !self.wakes.reset() {
            let _ = self.waits.remove(&self.wakes);
            self.is_deaf.set(true);
        }
        // Commands from before the end are still executed: an alert may be the last action of a program.
        let is_over = self.received.is_over();
        let mut session = match phase {
            Phase::Following(following) => following.session.as_mut(),
            Phase::Pausing(_) | Phase::Looking(_) => None,
        };
        for command in self.received.take() {
            match (command, session.as_mut()) {
                (Command::Flush, Some(session)) => session.flush(),
                (Command::Alert(name), Some(session)) => session.alert(name),
                (Command::GoOn, _) => self.has_gone_on.set(true),
                (Command::Flush | Command::Alert(_), None) => {}
            }
        }
        is_over
    }

    /// Prints a message about this provider on standard error.
    fn print(&self, text: &str) {
        let text = format!("trace: program \"{}\": {text}", self.name);
        debuglog::write_for_process(&Shown(&text).to_string());
    }

    fn end_session(&self, session: &mut Option<Session>) {
        if let Some(session) = session.take() {
            if session.has_started() {
                self.end_echo();
            }
            let _ = self.waits.remove(session.fifo());
        }
    }

    /// The keys of what happened; empty at the deadline.
    fn wait(&self, deadline: Option<Instant>) -> Vec<u64> {
        let look = self.is_deaf.get().then(|| Instant::now() + ORDERS_INTERVAL);
        let mut keys = self.ready(deadline.into_iter().chain(look).min());
        keys.extend(self.is_deaf.get().then_some(KEY_WAKER));
        keys
    }

    /// The keys of objects that are ready, at the latest at the deadline.
    pub fn ready(&self, deadline: Option<Instant>) -> Vec<u64> {
        let mut events = Vec::new();
        let _ = self.waits.wait(&mut events, deadline);
        events.iter().map(|event| event.key).collect()
    }

    /// What all objects are waited for with.
    pub fn waits(&self) -> &WaitSet {
        &self.waits
    }
}
