//! Observers of a session: how many, and until when.
//!
//! An observer sees what a session records. Nothing that it does or fails to do is an event for the session.
//= docs/protocol.md#observers

use super::{Action, ClientId};
use std::collections::{BTreeSet, VecDeque};
use trace_protocol::controller::ObserveError;
use trace_protocol::limits::MAX_OBSERVERS;

/// The observers of a session.
#[derive(Debug, Default)]
pub(super) struct Observers {
    observers: BTreeSet<ClientId>,
}

impl Observers {
    /// Adds a client.
    pub fn add(&mut self, client: ClientId) -> Result<(), ObserveError> {
        if self.observers.len() >= MAX_OBSERVERS {
            return Err(ObserveError::Busy);
        }
        self.observers.insert(client);
        Ok(())
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
