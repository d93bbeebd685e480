//! Spans and events as records.

use crate::callsites::{self, Callsite};
use crate::fields::{MessageIs, Visitor};
use crate::log_text::LogVisitor;
use crate::span_data::SpanData;
use crate::thread_state::{Entered, with_entered, with_scratch};
use std::sync::OnceLock;
use trace_engine::args::{IntoValue, Values};
use trace_engine::{
    ArgumentBuffer, Event, EventType, Number, Site, ThreadMoment, innermost_operation, stamp, write_event,
    write_event_at, write_event_of, write_log,
};
use tracing_core::span::{Attributes, Record};

const fn event(event_type: EventType) -> Event {
    Event { event_type, start: None, extra: None }
}

/// Records an event of `tracing`.
pub fn record_event(recorded: &tracing_core::Event<'_>) {
    let Some(callsite) = callsites::find_or_add(recorded.metadata()).filter(|callsite| callsite.is_on())
    else {
        return;
    };
    with_scratch(|scratch| {
        let mut sample = |counter, number| sample(callsite, counter, number);
        let mut visitor = Visitor::new(callsite, &mut scratch.arguments, &mut scratch.text, &mut sample);
        recorded.record(&mut visitor);
        let message = visitor.message;
        drop(visitor);
        let text = scratch.text.as_str();
        let named = match message {
            MessageIs::Missing if !callsite.fields.is_more_than_counters() => return,
            MessageIs::Missing => None,
            MessageIs::Known => callsite.only_message(),
            MessageIs::Other { in_one_piece } if callsite.is_named_by_message => {
                if in_one_piece {
                    callsite.name_by(text)
                } else {
                    callsite.set_varied();
                    None
                }
            }
            MessageIs::Other { .. } => None,
        };
        let site = match (named, message) {
            (Some(message), _) => message.site,
            (None, MessageIs::Missing) => callsite.site,
            (None, _) => {
                scratch.arguments.push_text(callsite.fields.added(), text);
                callsite.site
            }
        };
        write_event(site, event(EventType::Instant), &scratch.arguments);
    });
}

/// Records an event of `tracing` as a message.
pub fn record_log(recorded: &tracing_core::Event<'_>) {
    let Some(callsite) = callsites::find_or_add(recorded.metadata()).filter(|callsite| callsite.is_on())
    else {
        return;
    };
    with_scratch(|scratch| {
        let mut sample = |counter, number| sample(callsite, counter, number);
        let mut visitor = LogVisitor::new(callsite, &mut scratch.text, &mut scratch.fields, &mut sample);
        recorded.record(&mut visitor);
        if let Some(text) = visitor.finish() {
            write_log(callsite.site, text);
        }
    });
}

/// A sample of a counter.
fn sample(callsite: &Callsite, counter: u8, number: Number) {
    let Some(site) = callsite.counters.get(usize::from(counter)) else {
        return;
    };
    match number {
        Number::Bool(value) => write_sample(site, u64::from(value)),
        Number::Int64(value) => write_sample(site, value),
        Number::Uint64(value) => write_sample(site, value),
        Number::Double(value) => write_sample(site, value),
    }
}

fn write_sample<V>(site: &Site, value: V)
where
    V: IntoValue,
    (V::Value, ()): Values,
{
    let event = Event { event_type: EventType::Counter, start: None, extra: Some(0) };
    write_event(site, event, &(value.into_value(), ()));
}

/// Calls a function with the values of fields as arguments.
fn with_arguments(callsite: &Callsite, record: impl Fn(&mut Visitor<'_>), call: impl Fn(&ArgumentBuffer)) {
    with_scratch(|scratch| {
        // Spans have no counters.
        let mut sample = |_, _| ();
        let mut visitor = Visitor::new(callsite, &mut scratch.arguments, &mut scratch.text, &mut sample);
        record(&mut visitor);
        drop(visitor);
        if scratch.arguments.count() > 0 {
            call(&scratch.arguments);
        }
    });
}

/// Stores the fields of a new span.
pub fn store_fields(callsite: &Callsite, data: &SpanData, attributes: &Attributes<'_>) {
    if !attributes.values().is_empty() {
        with_arguments(callsite, |visitor| attributes.record(visitor), |values| data.store_fields(values));
    }
}

/// Stores fields that are recorded later.
pub fn store_late(callsite: &Callsite, data: &SpanData, values: &Record<'_>) {
    with_arguments(callsite, |visitor| values.record(visitor), |values| data.store_late(values));
}

/// Writes the begin of a span with its own fields.
#[inline]
fn write_begin(callsite: &Callsite, data: Option<&SpanData>) {
    let written = event(EventType::DurationBegin);
    match data.filter(|data| data.has_fields()) {
        None => write_event(callsite.site, written, &()),
        Some(_) => write_with_fields(callsite, data, None, Part::default()),
    }
}

/// What a begin says besides the span's own fields.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// It was begun anew, as a span outside of it has ended first.
    is_resumed: bool,
    /// The operation of which it is a poll.
    poll_of: Option<u64>,
}

/// Writes the begin of a span, or of a part of it, with its own fields.
fn write_with_fields(callsite: &Callsite, data: Option<&SpanData>, at: Option<u64>, part: Part) {
    let written = event(EventType::DurationBegin);
    let data = data.filter(|data| data.has_fields());
    if data.is_none() && !part.is_resumed && part.poll_of.is_none() {
        return write_event_at(callsite.site, written, &(), at);
    }
    with_scratch(|scratch| {
        if let Some(data) = data {
            data.fields(&mut scratch.arguments);
        }
        let added = callsite.fields.added();
        if part.is_resumed {
            scratch.arguments.push(added, Number::Bool(true));
        }
        if let Some(id) = part.poll_of {
            scratch.arguments.push(added + 1, Number::Uint64(id));
        }
        write_event_at(callsite.site, written, &scratch.arguments, at);
    });
}

#[inline]
fn write_end(callsite: &Callsite, data: Option<&SpanData>, at: Option<u64>) {
    let written = event(EventType::DurationEnd);
    match data.filter(|data| data.has_late()) {
        None => write_event_at(callsite.site, written, &(), at),
        Some(data) => with_scratch(|scratch| {
            data.take_late(&mut scratch.arguments);
            write_event_at(callsite.site, written, &scratch.arguments, at);
        }),
    }
}

/// The thread enters a span.
#[inline]
pub fn enter(id: u64, callsite: &'static Callsite, data: Option<&SpanData>) {
    with_entered(|entered| entered.push(Entered { id, callsite }));
    if callsite.is_on() {
        let Some(data) = data else {
            return write_begin(callsite, None);
        };
        if data.is_new() {
            write_begin(callsite, Some(data));
            data.enter_first();
        } else {
            enter_operation(id, callsite, data);
        }
        if let Some(id) = data.take_flow() {
            write_event(callsite.site, flow(EventType::FlowEnd, id), &());
        }
        if let Some(origin) = data.take_origin() {
            end_flow_from(origin, callsite);
        }
    }
}

/// The thread enters a span that was entered before, or is an operation from its beginning.
#[inline(never)]
fn enter_operation(id: u64, callsite: &Callsite, data: &SpanData) {
    become_operation(id, callsite, data);
    let part = Part { poll_of: Some(life_of(id)), ..Part::default() };
    write_with_fields(callsite, Some(data), None, part);
    data.enter();
}

/// Writes the begin of a span as an operation, if it has none in this recording: when it was entered first.
pub fn become_operation(id: u64, callsite: &Callsite, data: &SpanData) {
    if data.claim_operation(id) {
        let first = data.first();
        write_operation(id, callsite, data, first, first.is_none());
    }
}

/// Writes the begin of a span as an operation, at a moment of another thread, or of this one now.
fn write_operation(
    id: u64,
    callsite: &Callsite,
    data: &SpanData,
    first: Option<ThreadMoment>,
    began_before: bool,
) {
    let written = Event { extra: Some(life_of(id)), ..event(EventType::AsyncBegin) };
    with_scratch(|scratch| {
        if data.has_fields() {
            data.fields(&mut scratch.arguments);
        }
        let added = callsite.fields.added();
        if first.is_some() {
            scratch.arguments.push(added, Number::Bool(true));
        }
        if let Some(parent) = data.parent() {
            scratch.arguments.push(added + 1, Number::Uint64(parent));
        }
        if began_before {
            scratch.arguments.push(added + 2, Number::Bool(true));
        }
        match first {
            Some(first) => write_event_of(callsite.operation(), first, written, &scratch.arguments),
            None => write_event(callsite.operation(), written, &scratch.arguments),
        }
    });
}

const fn flow(event_type: EventType, id: u64) -> Event {
    Event { event_type, start: None, extra: Some(id) }
}

/// An arrow from a span of another thread to the one that this thread has just entered.
fn end_flow_from(origin: ThreadMoment, callsite: &Callsite) {
    if origin.thread != ThreadMoment::last().thread {
        let id = trace_engine::nonce();
        // Behind the last event of that thread, which may be the begin of the span.
        let begin = ThreadMoment { at: origin.at + 1, ..origin };
        write_event_of(callsite.site, begin, flow(EventType::FlowBegin, id), &());
        write_event(callsite.site, flow(EventType::FlowEnd, id), &());
    }
}

/// A new span, whose parent this thread may be in, or another one: an arrow leads from there to where the
/// span is entered first, if that is on another thread.
pub fn note_origin(data: &SpanData, parent: Option<(u64, Option<&SpanData>)>) {
    let innermost = |entered: &mut Vec<Entered>| entered.last().map(|innermost| innermost.id);
    let origin = match parent {
        Some((id, parent)) => {
            data.set_parent(life_of(id));
            parent.and_then(SpanData::inside)
        }
        None => {
            let innermost = with_entered(innermost).flatten();
            if let Some(operation) = innermost_operation(innermost.map(life_of)) {
                data.set_parent(operation);
            }
            innermost.map(|_| ThreadMoment::last())
        }
    };
    if let Some(origin) = origin {
        data.come_from(origin);
    }
}

/// A span follows from another one: an arrow leads from there to where it is entered first. It begins here,
/// if this thread is in the other span.
pub fn follow(data: &SpanData, callsite: &Callsite, other: u64) {
    let is_in = |entered: &mut Vec<Entered>| entered.iter().any(|entered| entered.id == other);
    if callsite.is_on() && with_entered(is_in) == Some(true) {
        let id = trace_engine::nonce();
        data.expect_flow(id);
        write_event(callsite.site, flow(EventType::FlowBegin, id), &());
    }
}

/// The thread leaves a span. Those that it has entered since, and is still in, end here and begin anew, so
/// that each has its own times.
#[inline]
pub fn exit<'a>(id: u64, data_of: impl Fn(u64) -> Option<&'a SpanData>) {
    let pop =
        |entered: &mut Vec<Entered>| entered.last().is_some_and(|last| last.id == id).then(|| entered.pop());
    let Some(left) = with_entered(pop).flatten().flatten() else {
        return exit_outer(id, data_of);
    };
    let data = data_of(id);
    if let Some(data) = data {
        data.exit();
    }
    if left.callsite.is_on() {
        write_end(left.callsite, data, None);
    }
}

/// The thread leaves a span that is not the innermost one. Those inside of it are operations from here on:
/// what has two parts on a thread is no duration.
#[cold]
fn exit_outer<'a>(id: u64, data_of: impl Fn(u64) -> Option<&'a SpanData>) {
    let left = with_entered(|entered| {
        let place = entered.iter().rposition(|entered| entered.id == id)?;
        let left = entered.remove(place);
        Some((left, entered[place..].to_vec()))
    });
    let data = data_of(id);
    if let Some(data) = data {
        data.exit();
    }
    let Some((left, inner)) = left.flatten().filter(|(left, _)| left.callsite.is_on()) else {
        return;
    };
    let at = Some(stamp());
    inner.iter().rev().for_each(|inner| write_end(inner.callsite, None, at));
    write_end(left.callsite, data, at);
    for Entered { id, callsite } in inner {
        let data = data_of(id);
        data.into_iter().for_each(|data| become_operation(id, callsite, data));
        let poll_of = data.is_some_and(SpanData::is_operation).then(|| life_of(id));
        write_with_fields(callsite, data, at, Part { is_resumed: true, poll_of });
    }
}

/// The operation that the innermost span of this thread is, or would be.
pub fn operation() -> Option<u64> {
    with_entered(|entered| entered.last().map(|innermost| innermost.id)).flatten().map(life_of)
}

/// The id of a span as an operation. It is no number beyond those with a sign, which databases have.
fn life_of(id: u64) -> u64 {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    (PROCESS.get_or_init(trace_engine::nonce) ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 1
}

/// A span is an operation from its creation on.
pub fn begin_life(id: u64, callsite: &Callsite, data: &SpanData) {
    if callsite.is_on() && data.claim_operation(id) {
        data.begin_life();
        write_operation(id, callsite, data, None, false);
    }
}

/// A span ends.
#[inline]
pub fn close(id: u64, data: &SpanData) {
    if data.close() {
        end_operation(id, data);
    }
}

#[inline(never)]
fn end_operation(id: u64, data: &SpanData) {
    if let Some(callsite) = callsites::by_number(data.callsite()).filter(|callsite| callsite.is_on()) {
        let written = Event { extra: Some(life_of(id)), ..event(EventType::AsyncEnd) };
        // Fields that came behind the last poll.
        with_scratch(|scratch| {
            data.take_late(&mut scratch.arguments);
            write_event(callsite.operation(), written, &scratch.arguments);
        });
    }
}
