//! Futures that are recorded as a bar from the first poll to the last, in which each poll is a duration.

use crate::api::current::{Within, current_operation};
use crate::api::id::Id;
use crate::record::arguments::{IntoValue, Literal, Values};
use crate::record::event::Event;
use crate::record::hot_path::{stamp, write_event_at};
use crate::site::Site;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use trace_format::event::EventType;

/// What a traced future is called, from [`trace_future_args!`](crate::trace_future_args).
#[derive(Clone, Copy, Debug)]
pub struct TraceFutureArgs<V: Values> {
    begin: &'static Site,
    /// The begin of an operation in another one, whose id is the first of its arguments.
    child: &'static Site,
    /// The first of its arguments is the id of the operation.
    poll: &'static Site,
    end: &'static Site,
    flow: &'static Site,
    id: Id,
    values: V,
}

impl<V: Values> TraceFutureArgs<V> {
    /// For [`trace_future_args!`](crate::trace_future_args).
    #[doc(hidden)]
    pub const fn new([begin, child, poll, end, flow]: [&'static Site; 5], id: Id, values: V) -> Self {
        Self { begin, child, poll, end, flow, id, values }
    }
}

/// Gives every future [`trace`](TraceFutureExt::trace).
pub trait TraceFutureExt: Future + Sized {
    /// Records the operation as an async event, from the beginning of the first poll until the future is
    /// ready or dropped, so that its latency is one bar; and each poll as a duration of the thread that
    /// polls, whose argument `poll-of` is the operation's id. The end of each has `poll-state`, `pending`,
    /// `ready`, `dropped` or `panicked`, and `poll-count`, the polls so far. A flow connects the polls of a
    /// future that was not ready immediately; it ends with the last poll, or, if the future is dropped, in a
    /// duration of length 0. Bar and flow have the id in the arguments: futures of the same name that run at
    /// the same time need different ids.
    ///
    /// A future that was polled before the recording began has no bar, since its beginning is not known.
    ///
    /// ```
    /// # use trace_engine as trace_provider;
    /// use trace_provider::{TraceFutureExt, trace_future_args};
    /// let answer = async { 42 }.trace(trace_future_args!("app", "answer", "question" => 6 * 9));
    /// # let _ = answer;
    /// ```
    fn trace<V: Values>(self, arguments: TraceFutureArgs<V>) -> TraceFuture<Self, V> {
        TraceFuture { inner: self, arguments, polls: 0, is_flowing: false, is_open: false }
    }
}

impl<F: Future> TraceFutureExt for F {}

pin_project_lite::pin_project! {
    /// A future whose polls are recorded; see [`TraceFutureExt::trace`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct TraceFuture<F, V: Values> {
        #[pin]
        inner: F,
        arguments: TraceFutureArgs<V>,
        polls: u64,
        // Its flow was begun.
        is_flowing: bool,
        // The operation was begun, and has not ended.
        is_open: bool,
    }

    impl<F, V: Values> PinnedDrop for TraceFuture<F, V> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let TraceFutureArgs { poll, end, flow, id, .. } = *this.arguments;
            if !end.is_on() {
                return;
            }
            let (now, values) = (Some(stamp()), ending("dropped", *this.polls));
            if *this.is_flowing {
                // A flow ends in a duration.
                write_event_at(poll, of_thread(EventType::DurationBegin), &(id.0.into_value(), ()), now);
                write_event_at(flow, of_operation(EventType::FlowEnd, id), &(), now);
                write_event_at(end, of_thread(EventType::DurationEnd), &values, now);
            }
            if *this.is_open {
                write_event_at(end, of_operation(EventType::AsyncEnd, id), &values, now);
            }
        }
    }
}

/// Ends a poll that panics. Otherwise it is forgotten.
struct Unwinding {
    end: &'static Site,
    polls: u64,
}

impl Drop for Unwinding {
    #[cold]
    fn drop(&mut self) {
        if self.end.is_on() {
            let values = ending("panicked", self.polls);
            write_event_at(self.end, of_thread(EventType::DurationEnd), &values, Some(stamp()));
        }
    }
}

/// The beginning or end of a poll.
const fn of_thread(event_type: EventType) -> Event {
    Event { event_type, start: None, extra: None }
}

/// The beginning or end of the whole operation, or a part of its flow.
const fn of_operation(event_type: EventType, id: Id) -> Event {
    Event { event_type, start: None, extra: Some(id.0) }
}

/// What stands on the end of a poll, and of the operation.
fn ending(state: &'static str, polls: u64) -> impl Values {
    (Literal(state).into_value(), (polls.into_value(), ()))
}

impl<F: Future, V: Values> Future for TraceFuture<F, V> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let TraceFutureArgs { begin, child, poll, end, flow, id, ref values } = *this.arguments;
        *this.polls += 1;
        let start = begin.is_on().then(stamp);
        if start.is_some() {
            if *this.polls == 1 {
                let begins = of_operation(EventType::AsyncBegin, id);
                match current_operation() {
                    None => write_event_at(begin, begins, values, start),
                    Some(of) => write_event_at(child, begins, &(of.into_value(), values), start),
                }
                *this.is_open = true;
            }
            let values = (id.0.into_value(), values);
            write_event_at(poll, of_thread(EventType::DurationBegin), &values, start);
        }
        let within = start.map(|_| Within::new(id.0));
        let unwinding = start.map(|_| Unwinding { end, polls: *this.polls });
        let result = this.inner.poll(context);
        core::mem::forget(unwinding);
        drop(within);
        if start.is_some() {
            let step = match (&result, *this.is_flowing) {
                (Poll::Pending, false) => Some(EventType::FlowBegin),
                (Poll::Pending, true) => Some(EventType::FlowStep),
                (Poll::Ready(_), true) => Some(EventType::FlowEnd),
                (Poll::Ready(_), false) => None,
            };
            *this.is_flowing |= result.is_pending();
            if let Some(step) = step {
                // Of the time at which the poll began: what it woke may have run before it returned.
                write_event_at(flow, of_operation(step, id), &(), start);
            }
            let state = if result.is_pending() { "pending" } else { "ready" };
            let (finish, values) = (end.is_on().then(stamp), ending(state, *this.polls));
            write_event_at(end, of_thread(EventType::DurationEnd), &values, finish);
            if *this.is_open && result.is_ready() {
                write_event_at(end, of_operation(EventType::AsyncEnd, id), &values, finish);
            }
        }
        *this.is_open &= result.is_pending();
        *this.is_flowing &= result.is_pending();
        result
    }
}
