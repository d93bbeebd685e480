//! What observers need of the providers that take part in the session.

use super::{Providers, Tracee};
use crate::core::ClientId;
use std::sync::Arc;
use trace_format::units::ProviderId;
use trace_protocol::BufferingMode;
use zx_sim::Vmo;

/// A provider's buffer, as an observer reads it.
#[derive(Clone)]
pub(in crate::daemon) struct ObservedBuffer {
    pub name: String,
    pub pid: u64,
    pub size: u64,
    pub mode: BufferingMode,
    /// When it was made, in ticks.
    pub made: u64,
}

impl Tracee {
    /// Whether observers of a session read it: it is one of that session, and may hold something.
    fn is_observed(&self, session: ClientId) -> bool {
        self.has_started && self.session == session
    }
}

impl Providers {
    /// The providers of a session whose buffers may hold something.
    pub fn observed(&self, session: ClientId) -> impl Iterator<Item = ProviderId> + '_ {
        let is_observed = move |provider: &super::Provider| {
            provider.tracee.as_ref().is_some_and(|tracee| tracee.is_observed(session))
        };
        self.providers.iter().filter(move |(_, provider)| is_observed(provider)).map(|(id, _)| *id)
    }

    /// The buffer of a provider of a session and how to read it, if it may hold something.
    pub fn observed_buffer(&self, session: ClientId, id: ProviderId) -> Option<(ObservedBuffer, Arc<Vmo>)> {
        let provider = self.providers.get(&id)?;
        let tracee = provider.tracee.as_ref().filter(|tracee| tracee.is_observed(session))?;
        let buffer = ObservedBuffer {
            name: provider.name.clone(),
            pid: provider.pid,
            size: tracee.size,
            mode: tracee.mode,
            made: tracee.made,
        };
        Some((buffer, tracee.vmo.clone()))
    }
}
