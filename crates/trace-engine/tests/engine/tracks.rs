//! What happens on no thread in particular: virtual threads, tracks, futures.

use crate::support::Trace;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use trace_engine::{
    Scope, TraceFutureExt, Track, duration, instant, trace_future_args, track_duration, track_duration_begin,
    track_duration_end, track_instant, vthread_counter, vthread_duration_begin, vthread_duration_end,
    vthread_flow_begin, vthread_flow_end, vthread_flow_step,
};

#[test]
fn virtual_threads_have_durations_flows_and_a_name() {
    let trace = Trace::start(1 << 20, &[]);
    vthread_duration_begin!("gpu", "draw", "queue 7", 7, "n" => 1_u32);
    vthread_flow_begin!("gpu", "frame", "queue 7", 7, 99);
    vthread_flow_step!("gpu", "frame", "another name", 7, 99);
    vthread_flow_end!("gpu", "frame", "queue 8", 8, 99);
    vthread_counter!("gpu", "load", "queue 7", 7, 3, "busy" => 0.5);
    vthread_duration_end!("gpu", "draw", &String::from("queue 7"), 7);
    let read = trace.stop();
    let begin = "begin gpu/draw n=Uint32(1)";
    let flows = ["flow begin 99 gpu/frame", "flow step 99 gpu/frame", "flow end 99 gpu/frame"];
    assert_eq!(
        read.lines(),
        [&[begin][..], &flows, &["counter 3 gpu/load busy=Double(0.5)", "end gpu/draw"]].concat()
    );
    let threads: Vec<u64> = read.events.iter().map(|event| event.thread).collect();
    let [seven, eight] = [1 << 63 | 7, 1 << 63 | 8];
    assert_eq!(threads, [seven, seven, seven, eight, seven, seven]);
    let process = std::process::id();
    let name =
        |koid: u64, name: &str| format!("- kernel-object thread #{koid} \"{name}\" {{process=#{process}}}");
    let named: Vec<&String> = read.dump.iter().filter(|line| line.contains("\"queue ")).collect();
    assert_eq!(named, [&name(seven, "queue 7"), &name(eight, "queue 8")]);
}

#[test]
fn so_many_virtual_threads_are_named_and_no_more() {
    let trace = Trace::start(4 << 20, &[]);
    for id in (0..1100).rev() {
        vthread_duration_begin!("cat", "name", "virtual", id);
        vthread_duration_end!("cat", "name", "virtual", id);
    }
    let read = trace.stop();
    assert_eq!(read.events.len(), 2200);
    assert_eq!(read.dump.iter().filter(|line| line.contains("\"virtual\"")).count(), 1024);
    assert_eq!((read.findings.bad_records, read.dropped()), (0, 0));
}

static UPLOADS: Track = Track::new("uploads");

#[test]
fn a_track_has_moments_and_durations() {
    let trace = Trace::start(1 << 20, &[]);
    track_duration_begin!("net", UPLOADS, "upload", "bytes" => 7_u32);
    track_instant!("net", UPLOADS, "first byte");
    track_duration_end!("net", UPLOADS, "upload");
    {
        track_duration!("net", UPLOADS, "cleanup", "files" => 2_u32);
        duration!("net", "on the thread");
    }
    let read = trace.stop();
    let lines = [
        "begin net/upload bytes=Uint32(7)",
        "instant t net/first byte",
        "end net/upload",
        "complete net/on the thread",
        "complete net/cleanup files=Uint32(2)",
    ];
    assert_eq!(read.lines(), lines);
    let track = 1 << 63 | UPLOADS.id();
    let threads: Vec<bool> = read.events.iter().map(|event| event.thread == track).collect();
    assert_eq!(threads, [true, true, true, false, true]);
    let [inner, outer] = &read.events[3..] else { panic!("{:?}", read.events) };
    assert!(outer.timestamp < inner.timestamp && inner.end < outer.end);
    assert!(read.dump.iter().any(|line| line.contains("\"uploads\"")));
}

/// Pending so many times.
struct Pending(u32);

impl Future for Pending {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u64> {
        instant!("app", "inside", Scope::Thread);
        match self.0.checked_sub(1) {
            None => Poll::Ready(42),
            Some(rest) => {
                self.0 = rest;
                Poll::Pending
            }
        }
    }
}

fn finish(future: impl Future<Output = u64>) {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    while future.as_mut().poll(&mut context) != Poll::Ready(42) {}
}

#[test]
fn a_future_is_a_bar_of_polls_that_a_flow_connects() {
    let trace = Trace::start(1 << 20, &[]);
    finish(Pending(2).trace(trace_future_args!("app", "task", 9, "n" => 5_u32)));
    let read = trace.stop();
    let begin = "begin app/task poll-of=Uint64(9) n=Uint32(5)";
    let inside = "instant t app/inside";
    let end = |state, count| format!("end app/task poll-state=\"{state}\" poll-count=Uint64({count})");
    let lines = [
        &["async begin 9 app/task n=Uint32(5)"][..],
        &[begin, inside, "flow begin 9 app/task", &end("pending", 1)],
        &[begin, inside, "flow step 9 app/task", &end("pending", 2)],
        &[begin, inside, "flow end 9 app/task", &end("ready", 3)],
        &["async end 9 app/task poll-state=\"ready\" poll-count=Uint64(3)"],
    ];
    assert_eq!(read.lines(), lines.concat());
    let [operation, polls @ .., end] = &read.events[..] else { panic!("{:?}", read.events) };
    let times = |event: usize| polls[event].timestamp;
    assert_eq!((operation.timestamp, end.timestamp), (times(0), times(polls.len() - 1)));
    for poll in polls.chunks(4) {
        assert_eq!(poll[2].timestamp, poll[0].timestamp, "the flow is where the poll begins");
        assert!(poll[0].timestamp < poll[1].timestamp && poll[1].timestamp < poll[3].timestamp);
    }
}

#[test]
fn a_future_that_is_ready_at_once_has_no_flow() {
    let trace = Trace::start(1 << 20, &[]);
    finish(Pending(0).trace(trace_future_args!("app", "task", 9)));
    let read = trace.stop();
    let end = "end app/task poll-state=\"ready\" poll-count=Uint64(1)";
    let (opened, closed) = ("async begin 9 app/task", format!("async end 9 app/task{}", &end[12..]));
    assert_eq!(
        read.lines(),
        [opened, "begin app/task poll-of=Uint64(9)", "instant t app/inside", end, &closed]
    );
}

/// One that was never polled has not begun.
#[test]
fn a_future_that_is_dropped_ends_there() {
    let trace = Trace::start(1 << 20, &[]);
    drop(Pending(1).trace(trace_future_args!("app", "never", 1)));
    let mut dropped = Box::pin(Pending(1).trace(trace_future_args!("app", "task", 2)));
    assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(dropped);
    let lines = trace.stop().lines();
    let end = "app/task poll-state=\"dropped\" poll-count=Uint64(1)";
    let ends = [
        "begin app/task poll-of=Uint64(2)",
        "flow end 2 app/task",
        &format!("end {end}"),
        &format!("async end 2 {end}"),
    ];
    assert_eq!(lines[5..], ends, "{lines:?}");
}

#[test]
fn what_was_polled_before_the_trace_is_counted_and_has_no_end_alone() {
    let mut future = pin!(Pending(1).trace(trace_future_args!("app", "task", 3)));
    let mut context = Context::from_waker(Waker::noop());
    {
        // Another test's trace must not see the first poll.
        let trace = Trace::start(1 << 20, &["other"]);
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert_eq!(trace.stop().lines(), [""; 0]);
    }
    let trace = Trace::start(1 << 20, &[]);
    assert_eq!(future.as_mut().poll(&mut context), Poll::Ready(42));
    let read = trace.stop();
    let end = "end app/task poll-state=\"ready\" poll-count=Uint64(2)";
    assert_eq!(read.lines(), ["begin app/task poll-of=Uint64(3)", "instant t app/inside", end]);
}
