//! State that every part of the daemon needs: the watched descriptors, and events on their way to the core.

use crate::core::Event;
use std::collections::VecDeque;
use zx_sim::WaitSet;

/// The daemon's wait set and the events that the core has not handled yet.
pub(super) struct Io {
    pub waits: WaitSet,
    /// In the order in which they happened.
    pub events: VecDeque<Event>,
}

impl Io {
    /// # Errors
    /// There are no descriptors left.
    pub fn new() -> zx_sim::Result<Self> {
        Ok(Self { waits: WaitSet::new()?, events: VecDeque::new() })
    }
}
