//! One trace of this process: from Initialize to Terminate.

use crate::buffer;
use std::time::{Duration, Instant};
use trace_engine::{BUFFER_VERSION, BufferMode, Config, engine};
use trace_protocol::fifo::{FIFO_DEPTH, FIFO_VERSION, PACKET_BYTES};
use trace_protocol::provider::ProviderConfig;
use trace_protocol::{BufferingMode, FifoRequest};
use zx_sim::{Fifo, Handle, Vmo};

/// How long a stop waits for threads that are inside an event.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// The engine is ours, and so is one end of the FIFO.
#[derive(Debug)]
pub(crate) struct Session {
    fifo: Fifo,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Initialized,
    Started,
    Stopped,
}

impl Session {
    /// Maps the buffer and hands it to the engine. On an error the handles are dropped, which the manager
    /// sees.
    pub fn initialize(config: ProviderConfig<Handle>) -> Result<Self, String> {
        if config.buffer_header_version != BUFFER_VERSION {
            return Err(format!(
                "the manager's buffer header has version {}, this program writes version {BUFFER_VERSION}",
                config.buffer_header_version
            ));
        }
        let source = zx_sim::ticks::source().name();
        if config.tick_source != source {
            return Err(format!("the manager's clock is {}, this program's is {source}", config.tick_source));
        }
        let mode = match config.buffering_mode {
            BufferingMode::Oneshot => BufferMode::Oneshot,
            mode => return Err(format!("buffering mode {mode:?} is not supported by this program")),
        };
        let fifo =
            Fifo::from_handle(config.fifo, PACKET_BYTES, FIFO_DEPTH).map_err(|error| error.to_string())?;
        let mapping = Vmo::from_handle(config.buffer)
            .and_then(|vmo| vmo.map())
            .map_err(|error| format!("cannot map the buffer: {error}"))?;
        let config = Config {
            process: zx_sim::process_koid(),
            process_name: zx_sim::process_name(),
            ticks_per_second: config.ticks_per_second,
            categories: config.categories,
        };
        engine::initialize(buffer::region(mapping), mode, config).map_err(|error| error.to_string())?;
        Ok(Self { fifo, state: State::Initialized })
    }

    /// The FIFO, to wait for.
    pub fn fifo(&self) -> &Fifo {
        &self.fifo
    }

    /// Starts recording; false if there was nothing to start.
    pub fn start(&mut self) -> bool {
        if self.state != State::Initialized || engine::start().is_err() {
            return false;
        }
        self.state = State::Started;
        self.send(FifoRequest::Started { version: FIFO_VERSION });
        true
    }

    /// Stops recording and says so when the buffer is complete.
    pub fn stop(&mut self) {
        if self.state != State::Started {
            return;
        }
        self.state = State::Stopped;
        match engine::stop(Instant::now() + STOP_WAIT) {
            Ok(stopped) if stopped.stragglers == 0 => self.send(FifoRequest::Stopped),
            // The manager's own timer runs out, and it reads the buffer as one that is still written.
            _ => {}
        }
    }

    /// Reads what the manager sent; false if it broke the protocol or is gone.
    pub fn is_fifo_in_order(&self) -> bool {
        // Nothing is due to a provider in oneshot mode.
        let mut packet = [0; PACKET_BYTES];
        matches!(self.fifo.read(&mut packet), Err(zx_sim::Error::ShouldWait))
    }

    fn send(&self, request: FifoRequest) {
        if let Ok(packet) = request.encode() {
            // Full or closed: the manager does not read or is gone, and will be noticed as such.
            let _ = self.fifo.write(&packet);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
        let _ = engine::terminate(Instant::now() + STOP_WAIT);
    }
}
