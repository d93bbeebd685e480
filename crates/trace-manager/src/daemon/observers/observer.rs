//! One observer: its queue, its updates, and what it has dropped.

use super::feed::{Feed, SharedVmo};
use crate::core::ClientId;
use crate::daemon::log::log;
use crate::daemon::providers::Providers;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use trace_format::units::{ProviderId, TicksPerSecond};
use trace_protocol::BufferingMode;
use trace_protocol::controller::{Counts, FrameKind, ObserveOptions, ObservedProvider, SessionState};
use trace_protocol::limits::MAX_OBSERVED_PROVIDERS;
use zx_sim::{Error, Signals, Socket, WaitSet, ticks};

/// A frame is queued only while fewer bytes wait.
const MAX_QUEUED: usize = 2 << 20;
/// Ended programs that an observer has not read to their end.
const MAX_ENDED: usize = 64;
/// The limits of an interval between updates.
const INTERVALS: (u64, u64) = (50, 10_000);
/// How long an observer may take to read the rest of a session.
const END_WAIT: Duration = Duration::from_secs(2);

/// What an observer needs to know of the session.
pub(super) struct Context<'a> {
    pub now: Instant,
    pub rate: TicksPerSecond,
    pub providers: &'a Providers,
    /// The session; none when it is over.
    pub session: Option<(SessionState, BufferingMode)>,
    /// Halves that are saved of a provider's buffer.
    pub saved_halves: &'a dyn Fn(ProviderId) -> u64,
    /// Buffers that observers have open.
    pub open: &'a dyn Fn(ProviderId) -> Option<std::rc::Rc<SharedVmo>>,
}

/// What is left to do for an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More, at once.
    Busy,
    /// Nothing before its deadline, or before it has read something.
    Idle,
    /// It has everything, or reads no more.
    Gone,
}

/// The update that is being made.
struct Pass {
    begun: Instant,
    remaining: VecDeque<ProviderId>,
    counts: Vec<ObservedProvider>,
}

/// An observer.
pub(super) struct Observer {
    pub client: ClientId,
    /// What it observes.
    pub session: ClientId,
    /// Its number among the daemon's keys.
    pub number: u32,
    socket: Socket,
    interval: Duration,
    wants_records: bool,
    /// It wants the scopes of threads of which one has been open for so long.
    open_for_ns: Option<u64>,
    queue: Vec<u8>,
    sent: usize,
    is_watched: bool,
    feeds: BTreeMap<ProviderId, Feed>,
    /// Providers that have to be read before the next update.
    eager: VecDeque<ProviderId>,
    pass: Option<Pass>,
    next: Instant,
    update: u64,
    dropped: u64,
    left_out: u64,
    mode: BufferingMode,
    /// The session is over, and the observer has until then to read the rest.
    ending: Option<Instant>,
    is_end_queued: bool,
}

impl Observer {
    /// A client's observer of a session.
    pub fn new(
        (client, session): (ClientId, ClientId),
        number: u32,
        socket: Socket,
        options: &ObserveOptions,
        now: Instant,
    ) -> Self {
        let interval = options.interval_milliseconds.clamp(INTERVALS.0, INTERVALS.1);
        Self {
            client,
            session,
            number,
            socket,
            interval: Duration::from_millis(interval),
            wants_records: options.wants_records,
            open_for_ns: options.open_for_ns,
            queue: Vec::new(),
            sent: 0,
            is_watched: false,
            feeds: BTreeMap::new(),
            eager: VecDeque::new(),
            pass: None,
            next: now,
            update: 0,
            dropped: 0,
            left_out: 0,
            mode: BufferingMode::Oneshot,
            ending: None,
            is_end_queued: false,
        }
    }

    /// A buffer that it has open.
    pub fn open(&self, id: ProviderId) -> Option<std::rc::Rc<SharedVmo>> {
        self.feeds.get(&id).map(|feed| feed.vmo.clone())
    }

    /// A provider's buffer is about to be given up.
    pub fn note_end(&mut self, id: ProviderId, context: &Context<'_>) {
        if self.ending.is_some() {
            return;
        }
        let ended = self.feeds.values().filter(|feed| feed.has_ended()).count();
        if ended >= MAX_ENDED {
            self.left_out += 1;
            self.feeds.remove(&id);
            return;
        }
        self.add_feed(id, context);
        if let Some(feed) = self.feeds.get_mut(&id) {
            feed.end();
        }
    }

    /// A provider is started, and forgets its definitions.
    pub fn note_clearing(&mut self, id: ProviderId) {
        if let Some(feed) = self.feeds.get_mut(&id) {
            feed.will_be_cleared();
        }
    }

    /// A half of a provider's buffer may be written over from now on.
    pub fn note_saved(&mut self, id: ProviderId) {
        if self.wants_records && !self.eager.contains(&id) {
            self.eager.push_back(id);
        }
    }

    /// The session is over.
    pub fn end(&mut self, now: Instant) {
        self.ending = Some(now + END_WAIT);
        self.next = now;
    }

    /// When [`Observer::step`] is due.
    pub fn deadline(&self) -> Instant {
        if let Some(ending) = self.ending {
            return if self.is_end_queued || self.is_blocked() { ending } else { self.next };
        }
        let again = self.feeds.values().filter_map(Feed::again).min();
        again.filter(|_| !self.is_blocked()).map_or(self.next, |again| again.min(self.next))
    }

    fn unsent(&self) -> usize {
        self.queue.len() - self.sent
    }

    fn is_blocked(&self) -> bool {
        self.unsent() > MAX_QUEUED
    }

    fn add_feed(&mut self, id: ProviderId, context: &Context<'_>) {
        if !self.feeds.contains_key(&id)
            && let Some((buffer, vmo)) = context.providers.observed_buffer(self.session, id)
        {
            let vmo = (context.open)(id).unwrap_or_else(|| SharedVmo::new(vmo));
            self.feeds.insert(id, Feed::new(id, buffer, vmo));
        }
    }

    /// Does a little of what is due: reads one batch at most.
    pub fn step(&mut self, context: &Context<'_>, waits: &WaitSet, key: u64) -> Step {
        let now = context.now;
        if self.flush().is_err() || self.ending.is_some_and(|ending| ending <= now) {
            let _ = self.is_watched.then(|| waits.remove(&self.socket));
            return Step::Gone;
        }
        self.watch(waits, key);
        if self.is_end_queued {
            return if self.unsent() == 0 { Step::Gone } else { Step::Idle };
        }
        if let Some((_, mode)) = context.session.filter(|_| self.ending.is_none()) {
            self.mode = mode;
        }
        if self.next <= now && self.ending.is_none() {
            self.begin_update(context);
        } else if self.ending.is_some() && self.pass.is_none() {
            self.begin_pass(context);
        }
        if self.is_blocked() {
            return Step::Idle;
        }
        let is_due = |(_, feed): &(&ProviderId, &Feed)| feed.again().is_some_and(|again| again <= now);
        let due = self.feeds.iter().find(is_due).map(|(id, _)| *id);
        if let Some(id) = self.eager.front().copied().or(due).filter(|_| self.wants_records) {
            if self.ending.is_none() {
                self.add_feed(id, context);
            }
            let feed = self.feeds.get_mut(&id);
            let goes_on = feed.is_some_and(|feed| feed.read(context.rate, now, &mut self.queue));
            if !goes_on && self.eager.front() == Some(&id) {
                self.eager.pop_front();
            }
            return Step::Busy;
        }
        self.go_on(context)
    }

    /// Begins the next update, or drops it.
    fn begin_update(&mut self, context: &Context<'_>) {
        if self.unsent() == 0 && self.pass.is_none() {
            self.begin_pass(context);
            return;
        }
        if self.pass.is_some() && !self.is_blocked() {
            return;
        }
        if self.pass.take().is_none() {
            self.update += 1;
        }
        self.dropped += 1;
        self.next = context.now + self.interval;
        // Their memory is not kept for an observer that does not read.
        let before = self.feeds.len();
        self.feeds.retain(|_, feed| !feed.has_ended());
        self.left_out += (before - self.feeds.len()) as u64;
    }

    fn begin_pass(&mut self, context: &Context<'_>) {
        self.update += 1;
        if self.ending.is_none() {
            context.providers.observed(self.session).for_each(|id| self.add_feed(id, context));
        }
        let remaining: VecDeque<ProviderId> = self.feeds.keys().copied().collect();
        self.pass = Some(Pass { begun: context.now, remaining, counts: Vec::new() });
    }

    /// Goes on with the update that is being made.
    fn go_on(&mut self, context: &Context<'_>) -> Step {
        let Some(pass) = &mut self.pass else {
            return Step::Idle;
        };
        let Some(id) = pass.remaining.front().copied() else {
            self.finish_update(context);
            return Step::Busy;
        };
        if let Some(feed) = self.feeds.get_mut(&id) {
            if self.wants_records && feed.read(context.rate, context.now, &mut self.queue) {
                return Step::Busy;
            }
            if pass.counts.len() < MAX_OBSERVED_PROVIDERS {
                let saved_halves = (context.saved_halves)(id);
                pass.counts.push(feed.counts(context.rate, saved_halves, self.wants_records));
            } else {
                self.left_out += 1;
            }
            if feed.has_ended() {
                self.feeds.remove(&id);
            } else if let Some(open_for_ns) = self.open_for_ns {
                feed.open_scopes(context.rate, open_for_ns, &mut self.queue);
            }
        }
        pass.remaining.pop_front();
        Step::Busy
    }

    fn finish_update(&mut self, context: &Context<'_>) {
        let Some(pass) = self.pass.take() else {
            return;
        };
        let session = context.session.filter(|_| self.ending.is_none());
        let counts = Counts {
            update: self.update,
            dropped_updates: self.dropped,
            ticks: ticks::now(),
            ticks_per_second: context.rate.0.get(),
            state: session.map_or(SessionState::Terminating, |(state, _)| state),
            mode: self.mode,
            providers: pass.counts,
            left_out: self.left_out,
        };
        match counts.encode() {
            Ok(contents) => self.push_frame(FrameKind::Counts, &contents),
            Err(error) => log(&format!("cannot send an update: {error}")),
        }
        // As much time for everything else as the update took.
        let took = context.now.saturating_duration_since(pass.begun);
        self.next = (self.next + self.interval).max(context.now + took);
        if self.ending.is_some() {
            self.push_frame(FrameKind::End, &[]);
            self.is_end_queued = true;
        }
    }

    fn push_frame(&mut self, kind: FrameKind, contents: &[u8]) {
        if let Ok(header) = kind.header(contents.len()) {
            self.queue.extend_from_slice(&header);
            self.queue.extend_from_slice(contents);
        }
    }

    /// Writes as much as the observer takes. An error means that it has gone.
    fn flush(&mut self) -> Result<(), Error> {
        while self.sent < self.queue.len() {
            match self.socket.write(&self.queue[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(Error::ShouldWait) => {
                    if self.sent >= MAX_QUEUED {
                        self.queue.drain(..std::mem::take(&mut self.sent));
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.queue.clear();
        self.sent = 0;
        Ok(())
    }

    /// Wakes the loop when the observer takes more, if it has to.
    fn watch(&mut self, waits: &WaitSet, key: u64) {
        let is_wanted = self.unsent() > 0;
        if is_wanted && !self.is_watched {
            self.is_watched = waits.add(&self.socket, key, Signals::WRITABLE).is_ok();
        } else if !is_wanted && self.is_watched {
            let _ = waits.remove(&self.socket);
            self.is_watched = false;
        }
    }
}
