//! Decides when the server is no longer needed.
//!
//! A page that is served here keeps one connection open while it is open. The page of ui.perfetto.dev cannot
//! do that, but it fetches the trace once and keeps it. So the server is no longer needed when the whole
//! trace was fetched, or a page was open, and no connection with a request has been open for a while: long
//! enough to reload a page.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the server stays after the last connection.
pub const GRACE: Duration = Duration::from_secs(5);

/// The connections of pages, and the progress of fetching.
#[derive(Debug)]
pub struct Attendance {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    visitors: usize,
    /// The trace was fetched, or the page was open.
    is_served: bool,
    /// When the last visitor left.
    empty_since: Instant,
    /// Something is still going on that pages may come for.
    is_held: bool,
    /// It ends as soon as no page is connected, and at this time at the latest.
    last: Option<Instant>,
}

impl State {
    /// When the server ends if no connection comes; none if it does not end.
    fn end(&self) -> Option<Instant> {
        if let Some(last) = self.last {
            return Some(if self.visitors == 0 { self.empty_since.min(last) } else { last });
        }
        (self.is_served && self.visitors == 0 && !self.is_held).then(|| self.empty_since + GRACE)
    }
}

impl Attendance {
    /// No page has connected yet.
    pub fn new() -> Self {
        let empty_since = Instant::now();
        let state = State { visitors: 0, is_served: false, empty_since, is_held: false, last: None };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Stays until [`Attendance::release`], whatever pages do.
    pub fn hold(&self) {
        self.state().is_held = true;
    }

    /// Ends as soon as pages have gone.
    pub fn release(&self) {
        let mut state = self.state();
        state.is_held = false;
        state.empty_since = Instant::now();
        drop(state);
        self.changed.notify_one();
    }

    /// Ends as soon as no page is connected, and at a time at the latest.
    pub fn end_by(&self, last: Instant) {
        self.state().last = Some(last);
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called at the first request of a connection.
    pub fn arrive(&self) {
        self.state().visitors += 1;
        self.changed.notify_one();
    }

    /// Called at the end of that connection.
    pub fn leave(&self) {
        self.leave_at(Instant::now());
    }

    fn leave_at(&self, now: Instant) {
        let mut state = self.state();
        state.visitors -= 1;
        state.empty_since = now;
        drop(state);
        self.changed.notify_one();
    }

    /// Called when the trace was fetched, or the page is open.
    pub fn note_served(&self) {
        self.state().is_served = true;
        self.changed.notify_one();
    }

    /// Waits until the server is no longer needed.
    pub async fn wait_for_end(&self) {
        loop {
            let end = self.state().end();
            match end {
                None => self.changed.notified().await,
                Some(end) if end <= Instant::now() => return,
                Some(end) => {
                    let _ = tokio::time::timeout_at(end.into(), self.changed.notified()).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_it_has_served_and_no_page_was_there_for_a_while() {
        let attendance = Attendance::new();
        let end = || attendance.state().end();
        let began = Instant::now();
        // A page that has not fetched the trace.
        attendance.arrive();
        attendance.leave_at(began);
        assert_eq!(end(), None);
        // A slow reader, and a quick one that has all of it.
        attendance.arrive();
        attendance.arrive();
        attendance.note_served();
        attendance.leave_at(began + Duration::from_secs(1));
        assert_eq!(end(), None);
        let left = began + Duration::from_secs(2);
        attendance.leave_at(left);
        assert_eq!(end(), Some(left + GRACE));
        // The page is reloaded.
        attendance.arrive();
        assert_eq!(end(), None);
        let left = began + Duration::from_secs(100);
        attendance.leave_at(left);
        assert_eq!(end(), Some(left + GRACE));
    }

    #[test]
    fn it_stays_while_it_is_held_and_ends_when_told_to() {
        let attendance = Attendance::new();
        let end = || attendance.state().end();
        attendance.hold();
        attendance.arrive();
        attendance.note_served();
        attendance.leave();
        assert_eq!(end(), None);
        let released = Instant::now();
        attendance.release();
        assert!(end().is_some_and(|end| end >= released + GRACE));
        attendance.arrive();
        assert_eq!(end(), None);
        let last = Instant::now() + Duration::from_secs(1);
        attendance.end_by(last);
        assert_eq!(end(), Some(last));
        attendance.leave();
        assert!(end().is_some_and(|end| end <= Instant::now()));
    }
}
