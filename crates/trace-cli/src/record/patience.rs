//! Writes to a pipe or a connection whose reader may take nothing any more: a Ctrl-C ends the wait for it.
//= docs/recording.md#how-a-recording-ends

use super::recording::{SAME_INTERRUPT, SILENCE};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use trace_client::Error;
use zx_sim::Socket;

/// What a pipe that is ready takes at least, without a wait (`PIPE_BUF`).
const CHUNK_BYTES: usize = 4096;
/// How often to look for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Signals that are counted.
const MAX_SIGNALS: usize = 16;

/// The user wants to stop, and the reader is in the way.
#[derive(Debug, thiserror::Error)]
#[error("aborted: the reader of the trace takes nothing")]
struct NoReader;

/// Whether that is why a session has failed.
pub fn is_no_reader(error: &Error) -> bool {
    matches!(error, Error::Write(error) if error.get_ref().is_some_and(|error| error.is::<NoReader>()))
}

/// Knows of signals before they are handled.
pub struct Patience {
    signals: Socket,
    /// The user has asked to stop before.
    asked: Option<Instant>,
}

impl Patience {
    /// `signals` has a byte for each signal that was not handled yet.
    pub fn new(signals: Socket) -> Self {
        Self { signals, asked: None }
    }

    /// A signal is handled.
    pub fn note_signal(&mut self, now: Instant) {
        self.asked.get_or_insert(now);
    }

    /// Writes all of something, as fast as its reader takes it.
    pub fn write_all(&self, out: &mut (impl Write + AsFd), bytes: &[u8]) -> io::Result<()> {
        for chunk in bytes.chunks(CHUNK_BYTES) {
            self.wait_until(|wait| {
                let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
                match poll(&mut [PollFd::new(&*out, PollFlags::OUT)], Some(&wait)) {
                    Ok(0) | Err(rustix::io::Errno::INTR) => Ok(false),
                    Ok(_) => Ok(true),
                    Err(error) => Err(error.into()),
                }
            })?;
            out.write_all(chunk)?;
        }
        Ok(())
    }

    /// Waits until something is true: it is called again and again with the longest time that it may take.
    pub fn wait_until(&self, mut is_true: impl FnMut(Duration) -> io::Result<bool>) -> io::Result<()> {
        let mut asked: Option<Instant> = None;
        let (mut seen, mut last) = (0, self.asked);
        loop {
            if is_true(LOOK)? {
                return Ok(());
            }
            let signals = self.signals();
            let now = Instant::now();
            if signals > seen {
                let is_second = last.is_some_and(|last| now > last + SAME_INTERRUPT);
                (seen, last) = (signals, Some(now));
                if is_second {
                    return Err(io::Error::other(NoReader));
                }
            }
            if seen > 0 && now > *asked.get_or_insert(now) + SILENCE {
                return Err(io::Error::other(NoReader));
            }
        }
    }

    /// Signals that were not handled yet.
    fn signals(&self) -> usize {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(&self.signals, &mut [0; MAX_SIGNALS], flags).map_or(0, |(count, _)| count)
    }
}
