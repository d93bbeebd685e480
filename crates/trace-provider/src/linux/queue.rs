//! A queue between two threads. The standard library's is compiled in three kinds for each type of value,
//! which would be a seventh of what this library adds to a program.

use crate::linux::lock::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, PoisonError};
use std::time::Instant;

/// Both ends of a queue.
pub(crate) fn queue<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { values: VecDeque::new(), has_sender: true, has_receiver: true };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
    (Sender(shared.clone()), Receiver(shared))
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    values: VecDeque<T>,
    has_sender: bool,
    has_receiver: bool,
}

/// The end that values are put into.
#[derive(Debug)]
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// The end that values come out of.
#[derive(Debug)]
pub(crate) struct Receiver<T>(Arc<Shared<T>>);

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// None came until the deadline.
    Late,
    /// None will come: the other end was dropped.
    Closed,
}

impl<T> Sender<T> {
    /// False, and the value is dropped, when the other end was.
    pub fn send(&self, value: T) -> bool {
        let mut state = self.0.state.lock();
        let is_received = state.has_receiver;
        if is_received {
            state.values.push_back(value);
            self.0.changed.notify_one();
        }
        is_received
    }
}

impl<T> Receiver<T> {
    /// The next value. Waits for one, until the deadline if there is any.
    pub fn receive(&self, deadline: Option<Instant>) -> Result<T, Missing> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(value) = state.values.pop_front() {
                return Ok(value);
            }
            if !state.has_sender {
                return Err(Missing::Closed);
            }
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return Err(Missing::Late),
                Some(left) => {
                    self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.state.lock().has_sender = false;
        self.0.changed.notify_one();
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.state.lock().has_receiver = false;
    }
}

#[cfg(test)]
mod tests {
    use super::{Missing, queue};
    use std::time::{Duration, Instant};

    #[test]
    fn values_come_in_order_also_after_the_end() {
        let (sender, receiver) = queue();
        let thread = std::thread::spawn(move || (0..1000).for_each(|value| assert!(sender.send(value))));
        let received: Vec<i32> = std::iter::from_fn(|| receiver.receive(None).ok()).collect();
        assert!(received.into_iter().eq(0..1000));
        thread.join().unwrap();
        assert_eq!(receiver.receive(None), Err(Missing::Closed));
    }

    #[test]
    fn what_is_missing_is_late_or_closed() {
        let (sender, receiver) = queue();
        let begin = Instant::now();
        assert_eq!(receiver.receive(Some(begin + Duration::from_millis(20))), Err::<(), _>(Missing::Late));
        assert!(begin.elapsed() >= Duration::from_millis(20));
        assert_eq!(receiver.receive(Some(begin)), Err(Missing::Late));
        drop(receiver);
        assert!(!sender.send(()));
    }
}
