//! Observers: what a session records is read a second time for clients that only look.
//!
//! Everything here comes after the session's own work, a batch at a time, and nothing waits for it.
//= docs/protocol.md#observers

mod feed;
mod observer;

use super::Daemon;
use super::clients::WantedObserver;
use super::key::Key;
use super::providers::Providers;
use crate::core::{ClientId, Core, Event};
use observer::{Context, Observer, Step};
use std::time::Instant;
use trace_format::units::{ProviderId, TicksPerSecond};
use trace_protocol::controller::ObserveError;

/// The observers of the running sessions, and of those that have just ended.
#[derive(Default)]
pub(super) struct Observers {
    observers: Vec<Observer>,
    /// The one that has the next turn.
    turn: usize,
}

impl Observers {
    pub fn is_empty(&self) -> bool {
        self.observers.is_empty()
    }

    /// When something is due for one of them.
    pub fn deadline(&self) -> Option<Instant> {
        self.observers.iter().map(Observer::deadline).min()
    }

    /// A provider is started, and forgets its definitions.
    pub fn note_clearing(&mut self, id: ProviderId) {
        self.observers.iter_mut().for_each(|observer| observer.note_clearing(id));
    }

    /// A half of a provider's buffer may be written over from now on.
    pub fn note_saved(&mut self, id: ProviderId, providers: &Providers) {
        let session = providers.session_of(id);
        let observers = self.observers.iter_mut().filter(|observer| Some(observer.session) == session);
        observers.for_each(|observer| observer.note_saved(id));
    }

    /// A provider's buffer is about to be given up.
    pub fn note_end(&mut self, id: ProviderId, providers: &Providers, core: &Core, rate: TicksPerSecond) {
        let session = providers.session_of(id);
        let is_theirs = |observer: &Observer| Some(observer.session) == session;
        for index in 0..self.observers.len() {
            if !self.observers.get(index).is_some_and(is_theirs) {
                continue;
            }
            self.with(index, providers, core, rate, |observer, context| observer.note_end(id, context));
        }
    }

    fn with<T>(
        &mut self,
        index: usize,
        providers: &Providers,
        core: &Core,
        rate: TicksPerSecond,
        act: impl FnOnce(&mut Observer, &Context<'_>) -> T,
    ) -> Option<T> {
        let (before, rest) = self.observers.split_at_mut_checked(index)?;
        let (observer, behind) = rest.split_first_mut()?;
        let session = observer.session;
        let others = || before.iter().chain(behind.iter()).filter(|other| other.session == session);
        let context = Context {
            now: Instant::now(),
            rate,
            providers,
            session: core.session_state(observer.session),
            saved_halves: &|id| core.saved_halves(id),
            open: &|id| others().find_map(|observer| observer.open(id)),
        };
        Some(act(observer, &context))
    }
}

impl Daemon {
    /// Answers a client that wants to observe.
    pub(super) fn reply_observe(&mut self, client: ClientId, result: Result<ClientId, ObserveError>) {
        let Some(wanted) = self.clients.take_observer(client) else {
            return;
        };
        self.clients.reply_observe(&wanted, result.map(|_| ()));
        if let Ok(session) = result {
            let WantedObserver { number, options, output, .. } = wanted;
            let observer = Observer::new((client, session), number, output, &options, Instant::now());
            self.observers.observers.push(observer);
        }
    }

    /// The session is over: an observer gets the rest, and the end.
    pub(super) fn end_observer(&mut self, client: ClientId) {
        let now = Instant::now();
        let observers = self.observers.observers.iter_mut();
        observers.filter(|observer| observer.client == client).for_each(|observer| observer.end(now));
    }

    /// Does a little for one observer after the other, one batch at most; true if there is more to do.
    pub(super) fn pump_observers(&mut self) -> bool {
        let count = self.observers.observers.len();
        self.observers.turn = self.observers.turn.wrapping_add(1);
        for place in 0..count {
            let index = self.observers.turn.wrapping_add(place) % count;
            let (waits, observers) = (&self.io.waits, &mut self.observers);
            let step = observers.with(index, &self.providers, &self.core, self.rate, |observer, context| {
                observer.step(context, waits, Key::Observer(observer.number).encode())
            });
            match step {
                Some(Step::Gone) => {
                    let client = self.observers.observers.remove(index).client;
                    self.io.events.push_back(Event::ObserverClosed { client });
                    return true;
                }
                Some(Step::Busy) => return true,
                Some(Step::Idle) | None => {}
            }
        }
        false
    }
}
