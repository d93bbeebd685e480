//! The provider's thread: finds a manager, does what it says, and finds the next one when it is gone.

use crate::ask;
use crate::manager::{self, Found, Line};
use crate::memory_dump;
use crate::session::Session;
use crate::watch::Watch;
use crossbeam_channel::{Receiver, Sender};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use trace_engine::{AlertHandler, WakeHandler, engine};
use trace_format::shown::Shown;
use trace_protocol::provider::{ProviderConfig, ProviderRequest, ProviderResponse};
use trace_protocol::{KnownCategories, KnownCategory};
use trace_protocol::{Message, Txid};
use zx_sim::{
    Channel, Error, Handle, PidNamespace, Signals, Vmo, WaitSet, WakeReceiver, WakeSender, debuglog,
};

/// What the application may be waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nobody listens in any runtime directory.
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
    /// The manager will find that the application has not waited for its answer.
    GoneOn,
}

/// What the application wants of its provider's thread.
#[derive(Debug)]
pub(crate) enum Order {
    /// Hand over what was recorded so far.
    Flush,
    /// Tell the manager.
    Alert(String),
    /// The application waits no longer for the answer to its registration.
    GoOn,
}

/// The application's way to its provider's thread. Nothing here waits.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    sender: Sender<Order>,
    /// The provider is no longer wanted.
    is_over: Arc<AtomicBool>,
    /// A descriptor of the application's table, which only the application's threads drop.
    waker: Weak<WakeSender>,
}

/// The other end of [`Orders`].
pub(crate) struct OrderReceiver {
    orders: Receiver<Order>,
    is_over: Arc<AtomicBool>,
}

impl Orders {
    /// Both ends.
    pub fn new(waker: &Arc<WakeSender>) -> (Self, OrderReceiver) {
        let (sender, orders) = crossbeam_channel::bounded(MAX_ORDERS);
        let is_over = Arc::new(AtomicBool::new(false));
        let sender = Self { sender, is_over: is_over.clone(), waker: Arc::downgrade(waker) };
        (sender, OrderReceiver { orders, is_over })
    }

    /// Where orders pile up, because the thread has no time for them, the newest are dropped.
    pub fn give(&self, order: Order) {
        let _ = self.sender.try_send(order);
        self.wake();
    }

    /// Ends the thread.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// The application drops the descriptor only when the thread has ended, and the trace with it: what is
    /// upgraded here, inside an event, is not the last of it.
    fn wake(&self) {
        if let Some(waker) = self.waker.upgrade() {
            waker.wake();
        }
    }
}

/// Orders that wait for the thread at most.
const MAX_ORDERS: usize = 1024;
/// When the application has closed the descriptor that wakes the thread, the thread looks this often whether
/// there are orders.
const ORDERS_INTERVAL: Duration = Duration::from_millis(50);
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
/// … or from this where the manager has said that it does not serve it …
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

/// The state of the provider's thread.
pub(crate) struct Dispatcher {
    name: String,
    is_answer_wanted: bool,
    progress: Sender<Progress>,
    orders: Orders,
    received: OrderReceiver,
    wakes: WakeReceiver,
    /// No more wakes come: the application has closed their descriptor.
    is_deaf: Cell<bool>,
    waits: WaitSet,
    directories: Vec<PathBuf>,
    /// None while there was always a manager, or where it cannot be had.
    watch: Option<Watch>,
    /// The manager has said that it does not serve this provider.
    is_refused: Cell<bool>,
    /// The application has waited in vain; until a manager knows that.
    has_gone_on: Cell<bool>,
    /// The manager's, where that is not the one of this process.
    namespace: RefCell<Option<PidNamespace>>,
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

/// Why following a manager ended.
#[derive(PartialEq, Eq)]
enum End {
    /// The application dropped its provider.
    Dropped,
    /// The manager closed the channel or is dead.
    ManagerGone,
}

impl Dispatcher {
    /// On a thread with descriptors of its own. None when it can have no more of them.
    pub fn new(
        name: String,
        is_answer_wanted: bool,
        progress: Sender<Progress>,
        (orders, received): (Orders, OrderReceiver),
        wakes: WakeReceiver,
    ) -> Option<Self> {
        let waits = WaitSet::new().ok()?;
        waits.add(&wakes, KEY_WAKER, Signals::READABLE).ok()?;
        let directories = manager::directories();
        let (is_deaf, watch) = (Cell::new(false), None);
        Some(Self {
            name,
            is_answer_wanted,
            progress,
            orders,
            received,
            wakes,
            is_deaf,
            waits,
            directories,
            watch,
            is_refused: Cell::new(false),
            has_gone_on: Cell::new(false),
            namespace: RefCell::new(None),
        })
    }

    /// Until the provider is dropped.
    pub fn run(mut self) {
        let mut pause = Duration::ZERO;
        while self.pause(pause)
            && let Some(line) = self.find_manager()
        {
            let begin = Instant::now();
            if self.follow(line) == End::Dropped {
                return;
            }
            pause = match (self.is_refused.take(), begin.elapsed() < SHORT_LINE) {
                (true, _) => (pause * 2).clamp(REFUSED_PAUSE, LONGEST_PAUSE),
                (false, true) => (pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
                (false, false) => Duration::ZERO,
            };
        }
    }

    /// Does nothing for a while but what the application wants. False when the provider is dropped.
    fn pause(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if self.wait(Some(until)).contains(&KEY_WAKER) && self.obey(&mut None) {
                return false;
            }
        }
        true
    }

    /// Says why nothing is recorded, once for each process: it would be the same again.
    fn tell(&self, reason: &str) {
        static IS_TOLD: AtomicBool = AtomicBool::new(false);
        if !IS_TOLD.swap(true, Ordering::Relaxed) {
            self.print(&format!("not traced: {reason}"));
        }
    }

    /// Waits for a manager and registers with it. None when the provider is dropped.
    fn find_manager(&mut self) -> Option<Line> {
        let mut retry_until = Instant::now();
        let mut busy = BusyPauses::new();
        // Where a manager listens already, no watch is needed.
        let mut found = self.register();
        // While the manager makes the buffer, or before there is one; it may take long.
        engine::prepare();
        let line = loop {
            let is_busy = matches!(found, Found::Busy);
            let deadline = match found {
                Found::Manager(line) => break Some(line),
                Found::Busy => {
                    // What changes in its directory is no reason to try it sooner.
                    self.watch.iter_mut().for_each(Watch::rest);
                    Some(Instant::now() + busy.next())
                }
                Found::Nobody => {
                    busy = BusyPauses::new();
                    // Others may have made one of them their own, or given it back.
                    self.directories = manager::directories();
                    // Watched before it is tried again, so that nothing that comes after is missed.
                    let is_watched = self.watch();
                    found = self.register();
                    if !matches!(found, Found::Nobody) {
                        continue;
                    }
                    let _ = self.progress.send(Progress::NoManager);
                    let now = Instant::now();
                    match is_watched {
                        _ if now < retry_until => Some(now + RETRY_INTERVAL),
                        true => None,
                        false => Some(now + POLL_INTERVAL),
                    }
                }
            };
            let keys = self.wait(deadline);
            if keys.contains(&KEY_WAKER) && self.obey(&mut None) {
                break None;
            }
            if keys.contains(&KEY_WATCH) {
                retry_until = Instant::now() + RETRY_SPAN;
            }
            // Without a manager the directories are looked for, and watched, first.
            found = if is_busy { self.register() } else { Found::Nobody };
        };
        if let Some(watch) = &mut self.watch {
            watch.rest();
        }
        line
    }

    /// Registers with a manager, if one listens.
    fn register(&self) -> Found {
        let found = manager::register(&self.directories, &self.name, self.is_answer_wanted);
        if matches!(&found, Found::Manager(line) if line.answer.is_none()) {
            let _ = self.progress.send(Progress::NotRecording);
        }
        found
    }

    /// Has changes of the directories end a wait; false where that is not possible.
    fn watch(&mut self) -> bool {
        if self.watch.is_none() {
            let watch = Watch::new();
            self.watch = watch.filter(|watch| self.waits.add(watch, KEY_WATCH, Signals::READABLE).is_ok());
        }
        self.watch.as_mut().is_some_and(|watch| watch.aim(&self.directories))
    }

    /// Does what the manager says until it is gone.
    fn follow(&self, mut line: Line) -> End {
        let signals = Signals::READABLE | Signals::PEER_CLOSED;
        self.go_on(&mut line);
        let answer = line.answer.as_ref().map(|answer| (answer, KEY_ANSWER));
        let objects = answer.into_iter().chain([(&line.channel, KEY_CHANNEL)]);
        for (object, key) in objects {
            if self.waits.add(object, key, signals).is_err() {
                return End::ManagerGone;
            }
        }
        let mut session: Option<Session> = None;
        let end = loop {
            let deadline = session.as_mut().and_then(|session| session.service(self.is_deaf.get()));
            let keys = self.wait(deadline);
            if keys.contains(&KEY_WAKER) && self.obey(&mut session) {
                break End::Dropped;
            }
            self.go_on(&mut line);
            if keys.contains(&KEY_FIFO) && session.as_mut().is_some_and(|session| !session.read_fifo()) {
                self.end_session(&mut session);
            }
            if keys.contains(&KEY_ANSWER)
                && let Some(answer) = line.answer.take()
            {
                let _ = self.waits.remove(&answer);
                // That a manager is gone, the channel says.
                manager::read_answer(&answer)
                    .into_iter()
                    .for_each(|progress| drop(self.progress.send(progress)));
            }
            if keys.contains(&KEY_CHANNEL) && self.serve(&line.channel, &mut session).is_none() {
                break End::ManagerGone;
            }
        };
        self.end_session(&mut session);
        self.namespace.take();
        for object in line.answer.iter().chain([&line.channel]) {
            let _ = self.waits.remove(object);
        }
        end
    }

    /// Lets the manager find nobody who waits for its answer, where the application has gone on.
    //= docs/protocol.md#a-recording-is-announced
    fn go_on(&self, line: &mut Line) {
        if self.has_gone_on.take() {
            if let Some(answer) = line.answer.take() {
                let _ = self.waits.remove(&answer);
            }
            let _ = self.progress.send(Progress::GoneOn);
        }
    }

    /// Does what the application wants. True if that is to end.
    fn obey(&self, session: &mut Option<Session>) -> bool {
        if !self.is_deaf.get() && !self.wakes.reset() {
            let _ = self.waits.remove(&self.wakes);
            self.is_deaf.set(true);
        }
        // What was wanted before the end is still done: an alert may be the last thing that a program says.
        let is_over = self.received.is_over.load(Ordering::SeqCst);
        for order in self.received.orders.try_iter() {
            match (order, session.as_mut()) {
                (Order::Flush, Some(session)) => session.flush(),
                (Order::Alert(name), Some(session)) => session.alert(name),
                (Order::GoOn, _) => self.has_gone_on.set(true),
                (Order::Flush | Order::Alert(_), None) => {}
            }
        }
        is_over
    }

    /// Serves all requests that have arrived. None when the manager is gone or broke the protocol.
    fn serve(&self, channel: &Channel, session: &mut Option<Session>) -> Option<()> {
        while let Some((txid, request)) = self.receive(channel, session)? {
            match request {
                ProviderRequest::Initialize { .. } | ProviderRequest::UsePidNamespace { .. } => {}
                ProviderRequest::Start { buffer_disposition, additional_categories } => {
                    let start =
                        |session: &mut Session| session.start(buffer_disposition, &additional_categories);
                    match session.as_mut().map(start) {
                        Some(Ok(())) => drop(self.progress.send(Progress::Started)),
                        Some(Err(reason)) => {
                            self.print(&format!("not started: {reason}"));
                        }
                        None => {}
                    }
                }
                ProviderRequest::Stop => {
                    if let Some(session) = session {
                        session.stop();
                    }
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
                ProviderRequest::Terminate => self.end_session(session),
                ProviderRequest::GetKnownCategories => answer_categories(channel, txid)?,
                ProviderRequest::Refused { reason } => {
                    self.tell(&reason);
                    self.is_refused.set(true);
                    let _ = self.progress.send(Progress::Refused { reason });
                }
            }
        }
        Some(())
    }

    /// The next request, if one has arrived; one that brings descriptors is obeyed already. None when the
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
        let encoded = encoded.unspill(load).ok()?;
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
        let _ = self.progress.send(Progress::Initializing);
        let orders = self.orders.clone();
        let alert = AlertHandler::new(move |name| orders.give(Order::Alert(name.to_owned())));
        let orders = self.orders.clone();
        let wake = WakeHandler::new(move || orders.wake());
        match Session::initialize(config, alert, wake, self.namespace.borrow().as_ref()) {
            Ok(initialized) => {
                let signals = Signals::READABLE | Signals::PEER_CLOSED;
                if self.waits.add(initialized.fifo(), KEY_FIFO, signals).is_ok() {
                    *session = Some(initialized);
                }
            }
            Err(reason) => self.tell(&reason),
        }
    }

    /// Says something on standard error, of this provider.
    fn print(&self, text: &str) {
        let text = format!("trace provider \"{}\": {text}", self.name);
        debuglog::write_for_process(&Shown(&text).to_string());
    }

    fn end_session(&self, session: &mut Option<Session>) {
        if let Some(session) = session.take() {
            let _ = self.waits.remove(session.fifo());
        }
    }

    /// The keys of what happened; empty at the deadline.
    fn wait(&self, deadline: Option<Instant>) -> Vec<u64> {
        let mut events = Vec::new();
        let is_deaf = self.is_deaf.get();
        let look = is_deaf.then(|| Instant::now() + ORDERS_INTERVAL);
        let _ = self.waits.wait(&mut events, deadline.into_iter().chain(look).min());
        events.iter().map(|event| event.key).chain(is_deaf.then_some(KEY_WAKER)).collect()
    }
}

/// Reads a message that travelled in a VMO.
fn load(handle: Handle, length: usize) -> Result<Vec<u8>, LoadError> {
    Ok(Vmo::from_sealed_handle(handle)?.to_bytes(length)?)
}

/// Why a message in a VMO cannot be had; only that it cannot matters.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error(transparent)]
    Object(#[from] Error),
    #[error(transparent)]
    Protocol(#[from] trace_protocol::ProtocolError),
}

fn answer_categories(channel: &Channel, txid: Txid) -> Option<()> {
    let described = ask::described_categories();
    let is_described = |name: &str| described.iter().any(|category| category.name == name);
    let plain = engine::known_categories()
        .into_iter()
        .filter(|name| !is_described(name))
        .map(|name| KnownCategory { name, description: String::new() });
    let categories = KnownCategories::of(described.iter().cloned().chain(plain));
    answer(channel, ProviderResponse::KnownCategories(categories), txid)
}

fn answer(channel: &Channel, response: ProviderResponse, txid: Txid) -> Option<()> {
    let reply = Message::<Handle>::encode(response, txid).ok()?;
    let reply = reply.spill(|bytes| Vmo::of_bytes("answer", bytes).map(Vmo::into_handle)).ok()?;
    channel.write(&reply.bytes, reply.handles).ok()
}
