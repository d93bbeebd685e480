//! The manager's log: lines on standard error, bounded in rate, and in size where it is a file of its own.
//!
//! What peers do is logged here, and they may do it as often as they like.

use parking_lot::Mutex;
use std::time::{Duration, Instant};
use trace_format::shown::Shown;
use zx_sim::debuglog;

/// Maximum number of lines at once.
const BURST: u32 = 200;
/// Interval between lines after that.
const INTERVAL: Duration = Duration::from_millis(100);
/// Size at which a log that no other program rotates begins anew.
const MAX_FILE_BYTES: u64 = 1 << 20;

static LOG: Mutex<Log> = Mutex::new(Log { allowed: BURST, since: None, skipped: 0, is_own_file: false });

/// The log's rate limit.
#[derive(Debug)]
struct Log {
    /// Number of lines that may still come at once.
    allowed: u32,
    /// When the last of the allowed ones was added; none while the burst is full.
    since: Option<Instant>,
    /// Lines that were not written.
    skipped: u64,
    is_own_file: bool,
}

impl Log {
    /// The lines to write now, if any: how many were dropped before, and this one.
    fn add(&mut self, now: Instant, text: Option<&str>) -> Vec<String> {
        self.earn(now);
        let mut lines = Vec::new();
        if self.skipped > 0 && self.spend(now) {
            let lines_were = if self.skipped == 1 { "line was" } else { "lines were" };
            lines.push(format!("{} more {lines_were} not logged", std::mem::take(&mut self.skipped)));
        }
        if let Some(text) = text {
            if self.skipped == 0 && self.spend(now) {
                lines.push(text.to_owned());
            } else {
                self.skipped += 1;
            }
        }
        lines
    }

    fn earn(&mut self, now: Instant) {
        while let Some(since) = self.since {
            if now < since + INTERVAL {
                return;
            }
            self.allowed += 1;
            self.since = (self.allowed < BURST).then_some(since + INTERVAL);
        }
    }

    fn spend(&mut self, now: Instant) -> bool {
        if self.allowed == 0 {
            return false;
        }
        self.allowed -= 1;
        self.since.get_or_insert(now);
        true
    }

    /// When dropped lines are reported, even if no more lines come.
    fn deadline(&self) -> Option<Instant> {
        self.since.filter(|_| self.skipped > 0).map(|since| since + INTERVAL)
    }

    fn write(&self, lines: &[String]) {
        for line in lines {
            if self.is_own_file {
                make_room();
            }
            debuglog::write(&format!("trace-manager: {}", Shown(line)));
        }
    }
}

/// Marks the log as a file that was made for this manager: it is kept small.
pub(super) fn own_file() {
    LOG.lock().is_own_file = true;
}

/// Logs a line, unless there were too many.
pub(super) fn log(text: &str) {
    add(Instant::now(), Some(text));
}

/// Reports how many lines were dropped, when it is time.
pub(super) fn handle_time(now: Instant) {
    add(now, None);
}

/// When [`handle_time`] is due.
pub(super) fn deadline() -> Option<Instant> {
    LOG.lock().deadline()
}

fn add(now: Instant, text: Option<&str>) {
    let mut log = LOG.lock();
    let lines = log.add(now, text);
    log.write(&lines);
}

/// Empties a log that is full.
fn make_room() {
    let output = std::io::stderr();
    if rustix::fs::fstat(&output).is_ok_and(|stat| stat.st_size as u64 >= MAX_FILE_BYTES) {
        let _ = rustix::fs::ftruncate(&output, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_reported() {
        let mut log = Log { allowed: BURST, since: None, skipped: 0, is_own_file: false };
        let begin = Instant::now();
        let after = |millis| begin + Duration::from_millis(millis);
        for number in 0..BURST {
            let text = format!("line {number}");
            assert_eq!(log.add(begin, Some(&text)), [text]);
        }
        assert_eq!(log.deadline(), None);
        for _ in 0..1000 {
            assert!(log.add(after(99), Some("flood")).is_empty());
        }
        assert_eq!(log.deadline(), Some(after(100)));
        assert_eq!(log.add(after(100), None), ["1000 more lines were not logged"]);
        assert!(log.add(after(150), Some("flood")).is_empty());
        assert_eq!(log.add(after(300), Some("last")), ["1 more line was not logged", "last"]);
        assert_eq!(log.deadline(), None);
        // A minute later there may be as many again, and not more.
        let later = (0..).map(|_| log.add(after(60_000), Some("line")).len()).take_while(|lines| *lines == 1);
        assert_eq!(later.count(), BURST as usize);
    }
}
