//! The longest waits: of threads that were ready until a CPU ran them, and of flows from one part to the
//! next.

use crate::entry::{Flow, LEFT_OUT};
use foldhash::fast::RandomState;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// How many are kept of each kind.
const MAX: usize = 12;
/// Threads that are ready at a time.
const MAX_READY: usize = 100_000;

/// A wait, of those of one kind the longest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    pub length: u64,
    pub from: u64,
    /// The thread that waited, or that the flow arrived at.
    pub thread: u32,
    /// Of a flow: where it came from, and its category and name.
    pub flow: Option<(u32, u32)>,
}

/// The longest ones.
#[derive(Debug, Default)]
struct Longest(BinaryHeap<Reverse<Wait>>);

impl Longest {
    fn push(&mut self, wait: Wait) {
        self.0.push(Reverse(wait));
        if self.0.len() > MAX {
            self.0.pop();
        }
    }

    fn into_list(self) -> Vec<Wait> {
        self.0.into_sorted_vec().into_iter().map(|Reverse(wait)| wait).collect()
    }
}

/// Waits for a CPU, while rows arrive.
#[derive(Debug, Default)]
pub struct Waits {
    ready: HashMap<u64, u64, RandomState>,
    longest: Longest,
    /// How many were measured, and their sum in nanoseconds.
    pub count: u64,
    pub sum: u128,
}

impl Waits {
    /// A thread became ready.
    pub fn woken(&mut self, tid: u64, at: u64) {
        if self.ready.len() < MAX_READY {
            self.ready.entry(tid).or_insert(at);
        }
    }

    /// A CPU began to run a thread; a wait counts if it is wanted from its begin on.
    pub fn ran(&mut self, tid: u64, thread: u32, at: u64, is_wanted: impl FnOnce(u64) -> bool) {
        if self.ready.is_empty() {
            return;
        }
        if let Some(from) = self.ready.get(&tid).copied()
            && at >= from
        {
            self.ready.remove(&tid);
            if !is_wanted(from) {
                return;
            }
            let length = at - from;
            self.count += 1;
            self.sum += u128::from(length);
            self.longest.push(Wait { length, from, thread, flow: None });
        }
    }

    /// The longest, in descending order.
    pub fn finish(&mut self) -> Vec<Wait> {
        std::mem::take(&mut self.longest).into_list()
    }
}

/// The longest times between two parts of a flow that are on different threads; flows are in order.
pub fn of_flows(flows: &[Flow]) -> Vec<Wait> {
    let mut longest = Longest::default();
    for pair in flows.windows(2) {
        let [from, to] = pair else { continue };
        let is_shown = from.thread != LEFT_OUT && to.thread != LEFT_OUT;
        if is_shown && from.id == to.id && from.phase != 2 && to.phase != 0 && from.thread != to.thread {
            let flow = Some((from.thread, to.what));
            let length = to.at.saturating_sub(from.at);
            longest.push(Wait { length, from: from.at, thread: to.thread, flow });
        }
    }
    longest.into_list()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_from_its_wakeup_until_it_runs() {
        let mut waits = Waits::default();
        let all = |_| true;
        waits.ran(7, 0, 5, all);
        waits.woken(7, 10);
        waits.woken(7, 12);
        waits.woken(8, 11);
        // It had run before, which is only known now.
        waits.ran(8, 1, 3, all);
        waits.ran(7, 0, 30, all);
        waits.ran(8, 1, 12, all);
        waits.ran(7, 0, 99, all);
        // One that is not wanted is over, too.
        waits.woken(7, 100);
        waits.ran(7, 0, 120, |from| from != 100);
        waits.ran(7, 0, 130, all);
        let lengths: Vec<_> = waits.finish().iter().map(|wait| (wait.length, wait.thread)).collect();
        assert_eq!((lengths, waits.count, waits.sum), (vec![(20, 0), (1, 1)], 2, 21));
    }

    #[test]
    fn a_flow_waits_between_threads() {
        let part = |id, at, thread, phase| Flow { what: 1, id, at, thread, phase };
        let flows = [
            part(1, 0, 0, 0),
            part(1, 5, 0, 1),
            part(1, 9, 1, 2),
            // The id is used again.
            part(1, 50, 0, 0),
            part(1, 57, 2, 2),
            part(2, 90, 1, 2),
            // What is left out is between them.
            part(3, 91, 0, 0),
            part(3, 92, LEFT_OUT, 1),
            part(3, 99, 2, 2),
        ];
        let waits: Vec<_> = of_flows(&flows).iter().map(|wait| (wait.length, wait.from)).collect();
        assert_eq!(waits, [(7, 50), (4, 5)]);
    }
}
