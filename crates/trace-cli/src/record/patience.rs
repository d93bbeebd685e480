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
                let is_ready = match poll(&mut [PollFd::new(&*out, PollFlags::OUT)], Some(&wait)) {
                    Ok(count) => count > 0,
                    Err(rustix::io::Errno::INTR) => false,
                    Err(error) => return Err(error.into()),
                };
                // A connection is ready when a large part of what it holds was read.
                Ok((is_ready, 0_u64.wrapping_sub(zx_sim::unread(out))))
            })?;
            out.write_all(chunk)?;
        }
        Ok(())
    }

    /// Waits until something is true: it is called again and again with the longest time that it may take.
    /// It also says how many bytes the reader has taken so far.
    pub fn wait_until(&self, mut is_true: impl FnMut(Duration) -> io::Result<(bool, u64)>) -> io::Result<()> {
        let mut wait = Wait { seen: 0, last: self.asked, taken: None };
        loop {
            let (is_true, taken) = is_true(LOOK)?;
            if is_true {
                return Ok(());
            }
            if wait.is_over(Instant::now(), self.signals(), taken) {
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

/// How long one write has waited.
struct Wait {
    /// Signals that have come meanwhile.
    seen: usize,
    /// The last of all signals.
    last: Option<Instant>,
    /// Bytes that the reader has taken, and since when there were no more; from the first signal on.
    taken: Option<(u64, Instant)>,
}

impl Wait {
    /// The user has asked twice, or the reader has taken nothing for too long after that.
    fn is_over(&mut self, now: Instant, signals: usize, taken: u64) -> bool {
        if signals > self.seen {
            let is_second = self.last.is_some_and(|last| now > last + SAME_INTERRUPT);
            (self.seen, self.last) = (signals, Some(now));
            if is_second {
                return true;
            }
        }
        if self.seen == 0 {
            return false;
        }
        let (before, since) = self.taken.get_or_insert((taken, now));
        if *before != taken {
            (*before, *since) = (taken, now);
        }
        now > *since + SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(50);

    /// How many looks it takes until a wait is over, of so many at most.
    fn looks(most: u32, has_asked: bool, signals: impl Fn(u32) -> usize, taken: impl Fn(u32) -> u64) -> u32 {
        let begin = Instant::now();
        let last = has_asked.then_some(begin);
        let mut wait = Wait { seen: 0, last, taken: None };
        let is_over = |look: &u32| wait.is_over(begin + STEP * *look, signals(*look), taken(*look));
        (1..most).find(is_over).unwrap_or(most)
    }

    //= docs/recording.md#how-a-recording-ends
    #[test]
    fn a_reader_that_takes_anything_is_waited_for() {
        let silence = (SILENCE.as_millis() / STEP.as_millis()) as u32;
        let signal_at = |at| move |look| usize::from(look >= at);
        // Without a signal for ever; after one as long as the reader takes something; a second one ends it.
        assert_eq!(looks(10_000, false, |_| 0, |_| 7), 10_000);
        assert_eq!(looks(10_000, false, signal_at(5), |_| 7), 5 + silence + 1);
        assert_eq!(looks(10_000, false, signal_at(5), |look| u64::from(look / silence)), 10_000);
        assert_eq!(looks(10_000, false, signal_at(5), |look| u64::from(look.min(100))), 100 + silence + 1);
        let two = |look| usize::from(look >= 5) + usize::from(look >= 25);
        assert_eq!(looks(10_000, false, two, u64::from), 25);
        assert_eq!(looks(10_000, true, signal_at(5), u64::from), 5);
    }
}
