//! Turns of the loop: what is done between two waits.
//!
//! Whatever peers send, a turn is short, so that nothing else waits long. What one message may cost is in
//! docs/internals/manager.md.

use super::log::log;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// How long messages are handled before data is moved and other sources have their turn.
const MESSAGES_TIME: Duration = Duration::from_millis(5);
/// Time between two lines about long turns.
const SILENCE: Duration = Duration::from_secs(1);
/// Processor time that a turn should not take.
const LONG: Duration = Duration::from_millis(20);

/// The turns so far.
pub(super) struct Turns {
    begun: Instant,
    /// Processor time of this thread when the turn began.
    used: Duration,
    /// The longest since the last line about one, and no line before that time.
    longest: Duration,
    silent_until: Instant,
}

impl Turns {
    pub fn new() -> Self {
        Self { begun: Instant::now(), used: processor_time(), longest: LONG, silent_until: Instant::now() }
    }

    pub fn begin(&mut self) {
        (self.begun, self.used) = (Instant::now(), processor_time());
    }

    /// Whether another message may be handled in this turn.
    pub fn has_time(&self) -> bool {
        self.begun.elapsed() < MESSAGES_TIME
    }

    /// Notes the longest turn of each second, if it is a long one.
    pub fn end(&mut self) {
        let taken = processor_time().saturating_sub(self.used);
        self.longest = self.longest.max(taken);
        if self.longest > LONG && Instant::now() >= self.silent_until {
            log(&format!("a turn took {} ms of processor time", self.longest.as_millis()));
            (self.longest, self.silent_until) = (LONG, Instant::now() + SILENCE);
        }
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
