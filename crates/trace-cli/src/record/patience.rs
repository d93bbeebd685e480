//! Writes to a pipe or a connection whose reader may take nothing any more: a Ctrl-C ends the wait for it.
//= docs/recording.md#how-a-recording-ends

use super::recording::{SAME_INTERRUPT, SILENCE};
use crate::connection::NoReader;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zx_sim::Socket;

/// How often to look for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Signals that are counted.
const MAX_SIGNALS: usize = 16;

/// Knows of signals before they are handled.
pub struct Patience {
    signals: Socket,
    /// The user has asked to stop before.
    asked: Mutex<Option<Instant>>,
}

impl Patience {
    /// `signals` has a byte for each signal that was not handled yet.
    pub fn new(signals: Socket) -> Self {
        Self { signals, asked: Mutex::default() }
    }

    /// A signal is handled.
    pub fn note_signal(&self, now: Instant) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
    }

    /// Signals that were not handled yet.
    fn signals(&self) -> usize {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(&self.signals, &mut [0; MAX_SIGNALS], flags).map_or(0, |(count, _)| count)
    }
}

/// Shared with the sink.
pub struct Shared(pub Arc<Patience>);

impl trace_client::sink::Patience for Shared {
    fn wait_until(&self, is_true: &mut dyn FnMut(Duration) -> io::Result<(bool, u64)>) -> io::Result<()> {
        let Self(patience) = self;
        let last = *patience.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wait = Wait { seen: 0, last, taken: None };
        loop {
            let (is_true, taken) = is_true(LOOK)?;
            if is_true {
                return Ok(());
            }
            if wait.is_over(Instant::now(), patience.signals(), taken) {
                return Err(io::Error::other(NoReader));
            }
        }
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
