//! Limits for durations, as conditions of triggers: the recording is observed, as `trace live` does it.
//= docs/recording.md#triggers

use crate::args::trigger::DurationLimit;
use crate::record::live::feed::{follow, time_of};
use crate::record::live::source;
use crate::shell::exit::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use trace_analysis::live::Live;
use trace_archive::problem;
use trace_format::units::ProviderId;
use zx_sim::Socket;

/// How often the durations are looked at: as often as their window moves on.
const INTERVAL: Duration = Duration::from_millis(500);

/// A limit, and whether the durations exceeded it when that was looked at last.
pub struct Watched {
    limit: DurationLimit,
    is_exceeded: bool,
    /// The message was sent that both operations and durations have its name.
    is_mixed: bool,
    /// Set each time that it begins to be exceeded.
    has_come: Arc<AtomicBool>,
}

impl Watched {
    pub fn new(limit: DurationLimit, has_come: Arc<AtomicBool>) -> Self {
        Self { limit, is_exceeded: false, is_mixed: false, has_come }
    }

    /// Whether it begins to be exceeded. A message says once why it cannot be.
    fn look(&mut self, live: &mut Live, now_ns: u64, say: &Sender<String>) -> bool {
        let DurationLimit { function, selector, limit, .. } = &self.limit;
        let value = live.value_of(*function, selector, now_ns).unwrap_or_else(|mixed| {
            if !std::mem::replace(&mut self.is_mixed, true) {
                let _ = say
                    .send(format!("trace: the trigger on {selector} does not fire: {}", mixed.with_choice()));
            }
            None
        });
        let was_exceeded =
            std::mem::replace(&mut self.is_exceeded, value.is_some_and(|value| value > *limit));
        let begins = self.is_exceeded && !was_exceeded;
        if begins {
            self.has_come.store(true, Ordering::Relaxed);
        }
        begins
    }
}

/// Watches the durations of the recording of a program, or of the only one, until it ends. A byte of news
/// follows each limit that begins to be exceeded, and a message why they are watched no longer.
pub fn begin(
    mut limits: Vec<Watched>,
    program: Option<&str>,
    news: Socket,
    say: Sender<String>,
) -> Result<(), Failure> {
    let socket = source::observe_running(&source::records(INTERVAL, program))?;
    let work = move || {
        let followed = follow(socket, |live, counts| {
            let now_ns = time_of(&counts);
            let mut begins = false;
            for limit in &mut limits {
                let was_mixed = limit.is_mixed;
                begins |= limit.look(live, now_ns, &say) | (limit.is_mixed != was_mixed);
            }
            if begins {
                // When it is full, the other side has enough to read.
                let _ = news.write(&[0]);
            }
            for ended in counts.providers.iter().filter(|provider| provider.has_ended) {
                live.forget(ProviderId(ended.progress.id));
            }
        });
        if let Err(error) = followed {
            let why = problem(&error);
            let _ = say.send(format!("trace: durations are no condition any more: {why}"));
            let _ = news.write(&[0]);
        }
    };
    let thread = std::thread::Builder::new().name("trace-limits".to_owned()).spawn(work);
    thread.map(drop).map_err(|error| Failure::new(format!("cannot start a thread: {error}")))
}
