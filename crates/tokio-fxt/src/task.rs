//! A future whose polls are recorded.

use crate::operation::{End, Operation, find_rate, start};
use crate::waker::TaskWaker;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use trace_engine::engine;

/// Records a future as a task of this name, which begins now: for functions of tokio, and of other crates,
/// that spawn futures. The future of a task should be wrapped as a whole: as a part of another one, it would
/// count wakes of that one, too. Takes no lock, and may be called on any thread.
pub fn task<F: Future>(name: &str, future: F) -> Task<F> {
    let record = Record { operation: Operation::begin(name), waker: None, polls: 0, has_panicked: false };
    Task { inner: future, record }
}

pin_project_lite::pin_project! {
    /// A future whose polls are recorded; see [`task`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Task<F> {
        #[pin]
        inner: F,
        record: Record,
    }

    impl<F> PinnedDrop for Task<F> {
        fn drop(this: Pin<&mut Self>) {
            let record = this.project().record;
            let end = if record.has_panicked { End::Panicked } else { End::Dropped };
            record.operation.end(end, Some(record.polls));
        }
    }
}

/// What is known of a task.
#[derive(Debug)]
struct Record {
    operation: Operation,
    /// The waker of polls that are recorded, in both forms.
    waker: Option<(Waker, Arc<TaskWaker>)>,
    polls: u64,
    has_panicked: bool,
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.record.polls += 1;
        if !this.record.operation.site.is_on() {
            return this.inner.poll(context);
        }
        poll_recorded(this.inner, this.record, context.waker())
    }
}

/// A poll of a task whose category is recorded.
fn poll_recorded<F: Future>(inner: Pin<&mut F>, record: &mut Record, outer: &Waker) -> Poll<F::Output> {
    let Record { operation, waker, polls, has_panicked } = record;
    #[cfg(tokio_unstable)]
    crate::hooks::is_recorded_by_name();
    let epoch = engine::epoch();
    let start = start();
    let woken = waker.as_ref().and_then(|(_, waker)| waker.begin_poll());
    // A wake from another thread may have been noted in a poll.
    let since = operation.since(epoch).map(|since| woken.map_or(since, |woken| woken.max(since)));
    let (inner_waker, waker) = match waker {
        Some(known) if known.1.is_for(outer) => known,
        _ => {
            find_rate();
            let own = Arc::new(TaskWaker::new(outer.clone(), operation.site));
            waker.insert((Waker::from(own.clone()), own))
        }
    };
    let within = operation.within();
    let mut polling = Polling { operation, waker, epoch, start, since, has_panicked, is_over: false };
    let result = inner.poll(&mut Context::from_waker(inner_waker));
    polling.is_over = true;
    drop((polling, within));
    if result.is_ready() {
        operation.end(End::Ready, Some(*polls));
    }
    result
}

/// Records a poll when it is over, also by a panic.
struct Polling<'a> {
    operation: &'a mut Operation,
    waker: &'a TaskWaker,
    epoch: u32,
    start: u64,
    since: Option<u64>,
    has_panicked: &'a mut bool,
    is_over: bool,
}

impl Drop for Polling<'_> {
    #[inline]
    fn drop(&mut self) {
        let end = self.operation.record_run(self.epoch, self.start, self.since);
        self.waker.end_poll(end);
        *self.has_panicked = !self.is_over;
    }
}
