//! Observers of the running session: who may be one, how many, and until when.
//!
//! An observer sees what a session records. Nothing that it does or fails to do is an event for the session.
//= docs/protocol.md#observers

use super::{Action, ClientId, Uid};
use std::collections::{BTreeSet, VecDeque};
use trace_protocol::controller::ObserveError;
use trace_protocol::limits::MAX_OBSERVERS;

/// The observers of the running session.
#[derive(Debug, Default)]
pub(super) struct Observers {
    observers: BTreeSet<ClientId>,
}

impl Observers {
    /// A client wants to observe the session of a user, if there is one that it may see.
    pub fn add(&mut self, client: ClientId, session: Option<Uid>, actions: &mut VecDeque<Action>) {
        let result = match session {
            None => Err(ObserveError::NothingRecorded),
            Some(_) if self.observers.len() >= MAX_OBSERVERS => Err(ObserveError::Busy),
            Some(_) => Ok(()),
        };
        if result.is_ok() {
            self.observers.insert(client);
        }
        actions.push_back(Action::ReplyObserve(client, result));
    }

    /// An observer has gone.
    pub fn remove(&mut self, client: ClientId) {
        self.observers.remove(&client);
    }

    /// The session is over.
    pub fn end(&mut self, actions: &mut VecDeque<Action>) {
        actions.extend(std::mem::take(&mut self.observers).into_iter().map(Action::EndObserver));
    }
}
