//! Writes to a pipe or a connection whose reader may take nothing any more: a Ctrl-C ends the wait for it.
//= docs/recording.md#how-a-recording-ends

use super::recording::{SAME_INTERRUPT, SILENCE};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::net::{RecvFlags, recv};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Instant;
use trace_client::Error;
use zx_sim::Socket;

/// What a pipe that is ready takes at least, without a wait (`PIPE_BUF`).
const CHUNK_BYTES: usize = 4096;
/// How often to look for signals.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
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
        if FileType::from_raw_mode(fstat(&*out)?.st_mode) == FileType::RegularFile {
            // It has no reader to wait for.
            return out.write_all(bytes);
        }
        for chunk in bytes.chunks(CHUNK_BYTES) {
            self.wait_for_reader(out)?;
            out.write_all(chunk)?;
        }
        Ok(())
    }

    fn wait_for_reader(&self, out: &impl AsFd) -> io::Result<()> {
        let mut asked: Option<Instant> = None;
        let (mut seen, mut last) = (0, self.asked);
        loop {
            let mut polled = [PollFd::new(out, PollFlags::OUT)];
            match poll(&mut polled, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
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
