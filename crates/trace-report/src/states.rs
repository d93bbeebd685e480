//! What threads do, by the records of the scheduler: they run, are ready to run, or wait for something else.

use crate::entry::OPEN;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Threads that are looked at.
const MAX_THREADS: usize = 100_000;
/// Wakeups of a thread since it last ran that are remembered.
const MAX_WAKEUPS: usize = 8;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A CPU runs it.
    Running,
    /// It waits for a CPU.
    Ready,
    /// It waits for something else.
    Waiting,
}

impl State {
    /// A word for people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Waiting => "waiting",
        }
    }

    /// The state of a thread that does not run any more; none if that is not known, or if it has ended.
    fn after(end_state: Option<&str>) -> Option<Self> {
        match end_state {
            // It was interrupted.
            Some("running" | "new") => Some(Self::Ready),
            Some("blocked" | "suspended") => Some(Self::Waiting),
            _ => None,
        }
    }
}

/// A thread is in a state from a time on; the length is [`OPEN`] if nothing is known to have ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub at: u64,
    pub length: u64,
    pub state: State,
}

/// A thread since it last ran.
#[derive(Debug, Default)]
struct Last {
    /// Its number on the page.
    thread: u32,
    /// When it stopped.
    end: u64,
    /// Its state since then.
    state: Option<State>,
    /// When it became ready since then; some may be of a time in which it ran, which is only known later.
    wakeups: Vec<u64>,
}

impl Last {
    /// What it did from when it stopped until a time; [`OPEN`] if it has not run again.
    fn until(&self, at: u64, mut take: impl FnMut(Stretch)) {
        let woken = self.wakeups.iter().copied().find(|woken| (self.end..=at).contains(woken));
        let mut stretch = |from: u64, to: u64, state| {
            if to > from {
                take(Stretch { at: from, length: if to == OPEN { OPEN } else { to - from }, state });
            }
        };
        match (self.state, woken) {
            (Some(State::Waiting), Some(woken)) => {
                stretch(self.end, woken, State::Waiting);
                stretch(woken, at, State::Ready);
            }
            (Some(state), _) => stretch(self.end, at, state),
            (None, Some(woken)) => stretch(woken, at, State::Ready),
            (None, None) => {}
        }
    }
}

/// All threads, by their ids.
#[derive(Debug, Default)]
pub struct States {
    threads: HashMap<u64, Last, RandomState>,
}

impl States {
    fn last(&mut self, tid: u64) -> Option<&mut Last> {
        let is_full = self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&tid);
        (!is_full).then(|| self.threads.entry(tid).or_default())
    }

    /// A thread became ready.
    pub fn woken(&mut self, tid: u64, at: u64) {
        if let Some(last) = self.last(tid)
            && last.wakeups.len() < MAX_WAKEUPS
        {
            last.wakeups.push(at);
        }
    }

    /// A CPU ran a thread, which came before and which it does now; stretches do not overlap.
    pub fn ran(
        &mut self,
        tid: u64,
        thread: u32,
        (at, length): (u64, u64),
        end_state: Option<&str>,
        mut take: impl FnMut(Stretch),
    ) {
        let Some(last) = self.last(tid) else { return };
        last.until(at, &mut take);
        let end = at.saturating_add(length);
        // A record that is missing may have it run on two CPUs at once.
        let from = at.max(last.end);
        if end > from {
            take(Stretch {
                at: from,
                length: if length == OPEN { OPEN } else { end - from },
                state: State::Running,
            });
        }
        last.wakeups.retain(|woken| *woken >= end);
        (last.thread, last.end) = (thread, end.max(last.end));
        last.state = State::after(end_state).filter(|_| length != OPEN);
    }

    /// What threads do when the trace ends, with their numbers; of each, what came first comes first.
    pub fn finish(self, mut take: impl FnMut(u32, Stretch)) {
        let mut threads: Vec<(u64, Last)> = self.threads.into_iter().collect();
        threads.sort_by_key(|(tid, _)| *tid);
        // Where it has never run, its number is not known.
        for (_, last) in threads.iter().filter(|(_, last)| last.end > 0) {
            last.until(OPEN, |stretch| take(last.thread, stretch));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::{Ready, Running, Waiting};

    /// A time, and for how long a CPU ran the thread from then, with its state afterwards; none for a wakeup.
    type Step = (u64, Option<(u64, Option<&'static str>)>);

    /// What comes of what a thread does.
    fn stretches(steps: &[Step]) -> Vec<(u64, u64, State)> {
        let (mut states, mut found) = (States::default(), Vec::new());
        let mut take = |stretch: Stretch| found.push((stretch.at, stretch.length, stretch.state));
        for (at, ran) in steps {
            match ran {
                Some((length, end_state)) => states.ran(7, 0, (*at, *length), *end_state, &mut take),
                None => states.woken(7, *at),
            }
        }
        states.finish(|_, stretch| take(stretch));
        found
    }

    #[test]
    fn a_thread_waits_until_it_is_woken_and_is_ready_until_it_runs() {
        let found = stretches(&[
            (5, None),
            (10, Some((5, Some("blocked")))),
            (40, None),
            // Once more, while it is ready.
            (45, None),
            (50, Some((10, Some("running")))),
            (70, Some((5, Some("suspended")))),
            (90, Some((1, Some("dead")))),
        ]);
        let expected = [
            (5, 5, Ready),
            (10, 5, Running),
            (15, 25, Waiting),
            (40, 10, Ready),
            (50, 10, Running),
            (60, 10, Ready),
            (70, 5, Running),
            // Nothing says when it was woken.
            (75, 15, Waiting),
            (90, 1, Running),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_wakeup_may_be_known_before_the_time_that_it_runs() {
        // It is woken while it runs, for the last time before it sleeps, and that it ran is known afterwards.
        let found = stretches(&[
            (0, Some((1, Some("blocked")))),
            (12, None),
            (20, None),
            (10, Some((8, Some("blocked")))),
        ]);
        assert_eq!(
            found,
            [(0, 1, Running), (1, 9, Waiting), (10, 8, Running), (18, 2, Waiting), (20, OPEN, Ready)]
        );
    }

    #[test]
    fn what_is_not_known_is_left_out_and_nothing_overlaps() {
        let found = stretches(&[
            (10, Some((10, None))),
            (30, Some((10, Some("blocked")))),
            (35, Some((10, None))),
            (60, Some((OPEN, None))),
        ]);
        assert_eq!(found, [(10, 10, Running), (30, 10, Running), (40, 5, Running), (60, OPEN, Running)]);
        assert_eq!(stretches(&[(5, None)]), []);
    }
}
