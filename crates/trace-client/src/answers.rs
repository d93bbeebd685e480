//! What a recording has asked the manager for, and who waits for the answers.

use crate::error::{Error, Result};
use crate::pending::Completer;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use trace_protocol::controller::{Alert, ProviderProgress};

/// How long it may take to answer a request while it records.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Requests of one kind that wait for the manager at once.
const MAX_UNANSWERED: usize = 16;

/// The requests that were not answered.
#[derive(Default)]
pub(crate) struct Answers {
    pub flushes: Requests<()>,
    pub progress: Requests<Vec<ProviderProgress>>,
    pub alerts: VecDeque<Completer<Alert>>,
    /// The manager was asked for an alert.
    pub is_watching: bool,
    /// Came when nothing waited for it any more.
    pub early: Option<Alert>,
}

/// Requests of one kind, which are answered in their order: until when, and whether anything waits for the
/// answer.
pub(crate) struct Requests<T>(VecDeque<(Instant, Option<Completer<T>>)>);

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Send + 'static> Requests<T> {
    pub fn push(&mut self, completer: Option<Completer<T>>) {
        self.0.push_back((Instant::now() + ANSWER_WAIT, completer));
    }

    pub fn answer(&mut self, answer: Result<T>) {
        if let Some((_, Some(completer))) = self.0.pop_front() {
            completer.complete(answer);
        }
    }

    /// The manager has as many as it may have: it hangs, and they would fill the channel.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_UNANSWERED
    }

    /// When the first of those has to be answered that something waits for.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.iter().find(|(_, completer)| completer.is_some()).map(|(deadline, _)| *deadline)
    }

    /// Gives up those that should have been answered. Their answers may come all the same.
    pub fn give_up(&mut self, now: Instant) {
        for (_, completer) in self.0.iter_mut().take_while(|(deadline, _)| *deadline <= now) {
            if let Some(completer) = completer.take() {
                completer.complete(Err(Error::NoAnswer));
            }
        }
    }
}
