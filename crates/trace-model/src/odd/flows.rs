//! Finds parts of flows that belong to slices that are over, for readers to which these are still open.

use super::{OddFinder, has_whole_slices};
use crate::interval::Interval;
use trace_reader::{Thread, Time};

/// Parts of flows of a thread that wait for the slice around them.
pub(super) const MAX_FLOWS: usize = 64;

impl OddFinder {
    /// A part of a flow: it may belong to a slice that is recorded later.
    pub(super) fn flow(&mut self, thread: Thread, time: Time) {
        let Some(number) = self.thread(thread) else { return };
        let (at, has_whole) = (time.nanos().0, self.has_whole || has_whole_slices(time));
        let state = &mut self.threads[number];
        state.last_flow = state.last_flow.max(Some(at));
        let whole = if has_whole { state.last_whole() } else { 0 };
        let mut ended = whole.max(state.last_moment);
        if ended == 0 {
            return;
        }
        // In the order of times, it comes before some of the records so far, and may be behind any of those.
        let is_in_last = whole > at && state.last_begin().is_some_and(|begin| begin <= at);
        if at < state.last_part.max(state.last_moment) || whole > at && !is_in_last {
            return self.set_odd(number);
        }
        if is_in_last {
            ended = state.last_moment;
            if Some(ended) < state.last_begin() {
                return;
            }
        }
        if ended <= state.last_part {
            return;
        }
        state.flows.push((ended, at));
        self.kept += 1;
        self.flows += 1;
        if state.flows.len() > MAX_FLOWS {
            self.set_odd(number);
        }
    }

    /// An instant, which ends what has ended. It may come before a part of a flow that was recorded earlier.
    pub(super) fn instant(&mut self, thread: Thread, at: u64) {
        let Some(number) = self.thread(thread) else { return };
        let state = &mut self.threads[number];
        state.last_moment = at;
        if Some(at) < state.last_flow {
            self.set_odd(number);
        }
    }

    /// Whether a slice shows that a reader takes a part of a flow for one of another slice.
    #[cold]
    pub(super) fn has_misplaced_flow(&mut self, number: usize, interval: &Interval) -> bool {
        let flows = &mut self.threads[number].flows;
        let before = flows.len();
        let is_misplaced = flows.iter().any(|(ended, at)| interval.begin < *ended && *at <= interval.end);
        // What begins between ends what had ended.
        flows.retain(|(ended, at)| !(*ended..=*at).contains(&interval.begin));
        let gone = before - flows.len();
        self.kept -= gone;
        self.flows -= gone;
        is_misplaced
    }
}
