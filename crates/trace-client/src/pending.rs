//! Answers that come later.

use crate::error::{Error, Result};
use crate::thread::run_beside;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use zx_sim::guest::children::generation;

/// An answer that comes later: [`Pending::wait`] blocks until it is there, and it is a future in any
/// executor. Both return an error if what was asked for is not possible. The request is sent before this is
/// returned, and dropping this does not take it back.
#[must_use = "the answer, or the reason why there is none, is lost"]
pub struct Pending<T>(Arc<Slot<T>>);

struct Slot<T> {
    /// A forked child has no thread that answers, and may find the lock taken.
    process: u32,
    state: Mutex<State<T>>,
    ready: Condvar,
}

struct State<T> {
    answer: Option<Result<T>>,
    waker: Option<Waker>,
    /// There will be no answer but this one.
    is_answered: bool,
    /// Nothing waits for it any more.
    is_abandoned: bool,
}

/// The side that answers. Dropped without an answer, it answers [`Error::Over`].
pub(crate) struct Completer<T>(Arc<Slot<T>>);

/// An answer, and where it goes.
pub(crate) fn pending<T>() -> (Completer<T>, Pending<T>) {
    let state = State { answer: None, waker: None, is_answered: false, is_abandoned: false };
    let process = generation();
    let slot = Arc::new(Slot { process, state: Mutex::new(state), ready: Condvar::new() });
    (Completer(slot.clone()), Pending(slot))
}

/// Nothing will be done: the request is of a forked child, and the thread of its parent.
pub(crate) fn of_parent<T>() -> Pending<T> {
    pending().1
}

impl<T> Slot<T> {
    fn is_own(&self) -> bool {
        self.process == generation()
    }
}

impl<T: Send + 'static> Completer<T> {
    /// Delivers the answer.
    pub fn complete(self, answer: Result<T>) {
        if let Err(unwanted) = self.deliver(answer) {
            run_beside(move || drop(unwanted));
        }
    }
}

impl<T> Completer<T> {
    /// Delivers a value, if anything waits for it; else returns it.
    pub fn offer(self, value: T) -> Option<T> {
        self.deliver(Ok(value)).err().and_then(Result::ok)
    }

    /// Returns the answer if nothing waits for it.
    fn deliver(&self, answer: Result<T>) -> std::result::Result<(), Result<T>> {
        let mut state = self.0.state.lock();
        if state.is_answered || state.is_abandoned {
            return Err(answer);
        }
        state.is_answered = true;
        state.answer = Some(answer);
        let waker = state.waker.take();
        drop(state);
        self.0.ready.notify_all();
        if let Some(waker) = waker {
            run_beside(|| waker.wake());
        }
        Ok(())
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        let _ = self.deliver(Err(Error::Over));
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if !self.0.is_own() {
            return;
        }
        self.0.state.lock().is_abandoned = true;
    }
}

impl<T> Pending<T> {
    /// Blocks until the answer is there.
    ///
    /// # Errors
    /// What was asked for is not possible.
    pub fn wait(self) -> Result<T> {
        if !self.0.is_own() {
            return Err(Error::Over);
        }
        let mut state = self.0.state.lock();
        loop {
            match state.answer.take() {
                Some(answer) => return answer,
                // The future has returned it.
                None if state.is_answered => return Err(Error::Over),
                None => self.0.ready.wait(&mut state),
            }
        }
    }

    /// The same until a deadline; none if the answer is not there by then.
    pub fn wait_until(&mut self, deadline: Instant) -> Option<Result<T>> {
        if !self.0.is_own() {
            return Some(Err(Error::Over));
        }
        let mut state = self.0.state.lock();
        loop {
            if let Some(answer) = state.answer.take() {
                return Some(answer);
            }
            if state.is_answered || self.0.ready.wait_until(&mut state, deadline).timed_out() {
                return state.answer.take();
            }
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if !self.0.is_own() {
            return Poll::Ready(Err(Error::Over));
        }
        let mut state = self.0.state.lock();
        match state.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None if state.is_answered => Poll::Ready(Err(Error::Over)),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::time::Duration;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_answer_is_there_for_both_faces() {
        let (completer, answer) = pending();
        completer.complete(Ok(7));
        assert_eq!(answer.wait().unwrap(), 7);

        let counter = Arc::new(Counter::default());
        let waker = Waker::from(counter.clone());
        let mut context = Context::from_waker(&waker);
        let (completer, mut answer) = pending();
        assert!(Pin::new(&mut answer).poll(&mut context).is_pending());
        assert!(answer.wait_until(Instant::now() + Duration::from_millis(1)).is_none());
        assert_eq!(counter.0.load(Ordering::Relaxed), 0);
        completer.complete(Ok("a"));
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
        assert!(matches!(Pin::new(&mut answer).poll(&mut context), Poll::Ready(Ok("a"))));
        // There is one answer.
        assert!(matches!(Pin::new(&mut answer).poll(&mut context), Poll::Ready(Err(Error::Over))));
        assert!(matches!(answer.wait(), Err(Error::Over)));
    }

    #[test]
    fn nothing_waits_for_one_who_is_gone() {
        let (completer, answer) = pending::<()>();
        let waiting = std::thread::spawn(move || answer.wait());
        drop(completer);
        assert!(matches!(waiting.join().unwrap(), Err(Error::Over)));
        let (completer, answer) = pending();
        drop(answer);
        assert_eq!(completer.offer(7), Some(7));
        let (completer, answer) = pending();
        assert_eq!(completer.offer(8), None);
        assert_eq!(answer.wait().unwrap(), 8);
    }
}
