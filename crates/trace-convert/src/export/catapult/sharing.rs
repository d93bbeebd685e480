//! What the text of events waits for that other threads make.

use super::event::{Events, Tally};
use super::{Dialect, FlowPart};
use crate::export::jobs::{Batch, Collector, Crew, Jobs};
use crate::output::Output;
use std::collections::VecDeque;

/// Work for other threads.
pub(super) struct Sharing {
    pub crew: Crew<Events>,
    /// Events for the next batch.
    pub collector: Collector<VecDeque<FlowPart>>,
    pub batch_bytes: usize,
    /// What comes next in the output.
    pub pieces: VecDeque<Piece>,
    /// Bytes of text in them.
    pub text_bytes: usize,
    /// Buffers that were used before.
    pub spare: Vec<Batch<VecDeque<FlowPart>>>,
}

/// A part of the output.
pub(super) enum Piece {
    /// Text of this thread.
    Text(Output, Tally),
    /// That of the oldest batch that is outstanding.
    Batch,
}

impl Sharing {
    pub fn new(jobs: Jobs, dialect: Dialect) -> Self {
        Self {
            crew: Crew::new(jobs.threads - 1, || Events::new(dialect)),
            collector: Collector::new(),
            batch_bytes: jobs.batch_bytes,
            pieces: VecDeque::new(),
            text_bytes: 0,
            spare: Vec::new(),
        }
    }
}
