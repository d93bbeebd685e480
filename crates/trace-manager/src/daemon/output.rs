//! The client's end of the archive: a socket that is never waited for.
//!
//! The queue takes one batch at a time: a transfer goes on only when the socket has taken everything, so a
//! client that reads slowly holds up its own session and nothing else, and memory stays at one batch.

use crate::archive::{self, facts};
use std::time::Instant;
use trace_format::units::TicksPerSecond;
use trace_protocol::controller::TraceConfig;
use zx_sim::{Error, Signals, Socket, WaitSet};

/// How far the queue got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Everything is in the socket.
    Drained,
    /// The socket takes no more for now.
    Blocked,
}

/// Where the archive goes.
pub(super) struct Output {
    socket: Socket,
    queue: Vec<u8>,
    sent: usize,
    has_metadata: bool,
    is_watched: bool,
    /// Set when everything is queued: until then the client may take its time.
    end_deadline: Option<Instant>,
}

impl Output {
    pub fn new(socket: Socket, has_metadata: bool) -> Self {
        Self { socket, queue: Vec::new(), sent: 0, has_metadata, is_watched: false, end_deadline: None }
    }

    /// Queues what the archive begins with.
    pub fn begin(&mut self, config: &TraceConfig, rate: TicksPerSecond) {
        if self.has_metadata {
            facts::begin(config, rate, &mut self.queue);
        } else {
            archive::magic(&mut self.queue);
        }
    }

    /// Queues what the archive ends with; nothing comes after.
    pub fn end(&mut self, deadline: Instant) {
        self.end_now();
        self.end_deadline = Some(deadline);
    }

    /// Queues what the archive ends with, for a reader that nobody waits for.
    pub fn end_now(&mut self) {
        if self.has_metadata {
            facts::end(&mut self.queue);
        }
    }

    /// The end was queued.
    pub fn is_ended(&self) -> bool {
        self.end_deadline.is_some()
    }

    /// When the client must have read everything.
    pub fn deadline(&self) -> Option<Instant> {
        self.end_deadline
    }

    /// Where the next batch goes; empty after [`Flushed::Drained`].
    pub fn queue(&mut self) -> &mut Vec<u8> {
        &mut self.queue
    }

    /// Gives the socket as much as it takes. An error says that nobody reads any more.
    pub fn flush(&mut self) -> Result<Flushed, String> {
        while self.sent < self.queue.len() {
            match self.socket.write(&self.queue[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(Error::ShouldWait) => return Ok(Flushed::Blocked),
                Err(Error::PeerClosed) => return Err("the client does not read any more".to_owned()),
                Err(error) => return Err(format!("cannot write to the client: {error}")),
            }
        }
        self.queue.clear();
        self.sent = 0;
        Ok(Flushed::Drained)
    }

    /// Wakes the loop when the socket takes more.
    pub fn watch(&mut self, waits: &WaitSet, key: u64) {
        if !self.is_watched {
            self.is_watched = waits.add(&self.socket, key, Signals::WRITABLE | Signals::PEER_CLOSED).is_ok();
        }
    }

    pub fn unwatch(&mut self, waits: &WaitSet) {
        if std::mem::take(&mut self.is_watched) {
            let _ = waits.remove(&self.socket);
        }
    }
}
