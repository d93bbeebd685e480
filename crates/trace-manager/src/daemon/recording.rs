//! What the daemon has for each session: its output, what is on its way there, and when things are due.

use super::output::Output;
use crate::core::{ClientId, Uid};
use std::collections::BTreeMap;
use std::time::Instant;
use trace_archive::transfer::Transfer;
use trace_format::units::ProviderId;

/// A session, or the rest of one whose archive is still being written.
pub(super) struct Recording {
    pub uid: Uid,
    /// None when it accepts nothing any more.
    pub output: Option<Output>,
    /// The part that is being read.
    pub transfer: Option<(ProviderId, Transfer)>,
    /// When to check whether something was written since the last check.
    pub next_flush: Option<Instant>,
    /// When the next periodic memory dump is due.
    pub next_dump: Option<Instant>,
}

impl Recording {
    /// A session of a user's.
    pub fn new(uid: Uid, output: Output) -> Self {
        Self { uid, output: Some(output), transfer: None, next_flush: None, next_dump: None }
    }
}

/// Those of a manager.
pub(super) type Recordings = BTreeMap<ClientId, Recording>;
