//! Futures whose polls are durations, with a flow from each to the next.

use crate::api::id::Id;
use crate::record::arguments::{IntoValue, Values};
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
    end: &'static Site,
    flow: &'static Site,
    id: Id,
    values: V,
}

impl<V: Values> TraceFutureArgs<V> {
    /// For [`trace_future_args!`](crate::trace_future_args).
    #[doc(hidden)]
    pub const fn new(
        begin: &'static Site,
        end: &'static Site,
        flow: &'static Site,
        id: Id,
        values: V,
    ) -> Self {
        Self { begin, end, flow, id, values }
    }
}

/// Gives every future [`trace`](TraceFutureExt::trace).
pub trait TraceFutureExt: Future + Sized {
    /// Records each poll as a duration; its end says `poll-state`, `pending` or `ready`, and `poll-count`,
    /// the polls so far. A flow connects the polls of a future that was not ready at once.
    ///
    /// ```
    /// # use trace_engine as trace_provider;
    /// use trace_provider::{TraceFutureExt, trace_future_args};
    /// let answer = async { 42 }.trace(trace_future_args!("app", "answer", "question" => 6 * 9));
    /// # let _ = answer;
    /// ```
    fn trace<V: Values>(self, arguments: TraceFutureArgs<V>) -> TraceFuture<Self, V> {
        TraceFuture { inner: self, arguments, polls: 0, is_flowing: false }
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
    }
}

impl<F: Future, V: Values> Future for TraceFuture<F, V> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let TraceFutureArgs { begin, end, flow, id, ref values } = *this.arguments;
        *this.polls += 1;
        let start = begin.is_on().then(stamp);
        let event = |event_type, extra| Event { event_type, start: None, extra };
        if start.is_some() {
            write_event_at(begin, event(EventType::DurationBegin, None), values, start);
        }
        let result = this.inner.poll(context);
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
                write_event_at(flow, event(step, Some(id.0)), &(), start);
            }
            let state = if result.is_pending() { "pending" } else { "ready" };
            let values = (state.into_value(), ((*this.polls).into_value(), ()));
            write_event_at(end, event(EventType::DurationEnd, None), &values, None);
        }
        result
    }
}
