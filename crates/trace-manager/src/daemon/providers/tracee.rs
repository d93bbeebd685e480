//! The state of a provider in a session.

use crate::core::ClientId;
use std::sync::Arc;
use std::time::Instant;
use trace_archive::transfer::{Progress, VmoSource};
use trace_format::buffer::BufferMode;
use trace_format::scopes::Ending;
use trace_format::units::TicksPerSecond;
use trace_protocol::BufferingMode;
use trace_reader::buffer::{Activity, BufferPart, BufferReader, Period, Usage};
use zx_sim::{Fifo, Signals, Vmo, ticks, wait_one};

/// The state of a provider in a session.
pub(super) struct Tracee {
    pub session: ClientId,
    /// What reads it has a share of this one descriptor: there may be no other later.
    pub vmo: Arc<Vmo>,
    pub size: u64,
    pub mode: BufferingMode,
    pub fifo: Option<Fifo>,
    /// None while a transfer has it.
    pub progress: Option<Progress>,
    /// It has confirmed its start, so there is a header in its buffer.
    pub has_started: bool,
    /// It has confirmed its stop, and is not started again.
    pub has_stopped: bool,
    /// When its buffer was made, in ticks.
    pub made: u64,
    /// When its FIFO or its channel was closed, in ticks.
    pub ended: Option<u64>,
    /// It was asked to leave the session.
    pub is_terminated: bool,
    /// The program has moved to another buffer.
    pub is_left: bool,
    /// Bytes that were copied for it.
    pub copied: u64,
}

impl Tracee {
    /// Bytes of its buffer that have no memory yet.
    pub fn missing_bytes(&self) -> u64 {
        let size = self.vmo.size().unwrap_or(self.size);
        size.saturating_sub(self.vmo.backed_bytes().unwrap_or(size))
    }

    pub fn usage(&self, rate: TicksPerSecond, saved_halves: u64) -> Option<Usage> {
        let source = VmoSource::from(self.vmo.clone());
        let part = BufferPart::Rest(Activity::Live);
        let mode = BufferMode::from(self.mode);
        let mut reader = BufferReader::open(source, self.size, mode, rate, part).ok()?;
        reader.set_period(self.period());
        reader.usage(saved_halves).ok()
    }

    /// Why its open scopes have no end, if it is read to the end now.
    pub fn ending(&self) -> Option<Ending> {
        match (self.is_left, self.ended) {
            (true, _) => None,
            (false, Some(_)) if !self.has_stopped => Some(Ending::Death),
            (false, _) => Some(Ending::Stop),
        }
    }

    /// The period that the buffer's data may come from, if it is read now.
    pub fn period(&self) -> Period {
        Period { made: self.made, read: self.ended.unwrap_or_else(ticks::now) }
    }

    /// Whether the other end of its FIFO is open.
    pub fn has_peer(&self) -> bool {
        let closed = |fifo| wait_one(fifo, Signals::empty(), Some(Instant::now()));
        let signals = self.fifo.as_ref().and_then(|fifo| closed(fifo).ok());
        signals.is_some_and(|signals| !signals.contains(Signals::PEER_CLOSED))
    }

    /// The provider sends nothing more.
    pub fn close(&mut self) {
        self.fifo = None;
        self.ended = self.ended.or_else(|| Some(ticks::now()));
    }
}
