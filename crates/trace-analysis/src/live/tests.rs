//! Records in pieces, and the window as it moves on.

use super::*;
use crate::assertion::{self, Assertion, Source};
use crate::testing::{Archive, INSTANT};
use trace_format::argument::ArgumentValue;
use trace_reader::Reader;

const PROVIDER: ProviderId = ProviderId(1);
const MS: u64 = 1_000_000;

fn live(archive: &Archive) -> Live {
    let mut live = Live::default();
    let mut reader = Reader::new(archive.bytes()).unwrap();
    while let Some(record) = reader.next_item().unwrap() {
        live.record(&record);
    }
    live
}

//= docs/live.md#what-is-shown
#[test]
fn durations_of_the_window_have_exact_counts_and_percentiles() {
    let mut archive = Archive::new();
    for number in 1..=100 {
        let begin = 1000 * MS + number * 10 * MS;
        archive = archive.complete(1, "frame", begin, begin + number * MS / 100);
    }
    archive = archive.event(1, "mark", INSTANT, 2000 * MS);
    let snapshot = live(&archive).snapshot(2100 * MS, 5);
    let [frame] = &snapshot.spans[..] else { panic!("{snapshot:?}") };
    assert_eq!((frame.category.as_str(), frame.name.as_str(), frame.count), ("c", "frame", 100));
    assert_eq!((frame.total_ns, frame.max_ns), (5050 * MS / 100, MS));
    assert_eq!((frame.p50_ns, frame.p99_ns), (Some(0.5e6), Some(0.99e6)));
    assert_eq!(snapshot.events, BTreeMap::from([(PROVIDER, 101)]));
    assert_eq!(snapshot.all_events, BTreeMap::from([(PROVIDER, 101)]));
    assert!((snapshot.seconds - 1.09).abs() < 1e-9, "{}", snapshot.seconds);
}

//= docs/recording.md#triggers
#[test]
fn values_of_selected_durations_are_those_of_the_window() {
    let mut archive = Archive::new();
    for number in 1..=100 {
        let begin = 1000 * MS + number * 10 * MS;
        archive = archive.complete(1, "frame", begin, begin + number * MS / 100);
        archive = archive.complete(2, "other", begin, begin + MS * 5);
    }
    let mut live = live(&archive);
    let mut value = |text: &str, now| {
        let Ok(Assertion::Comparison(comparison)) = Assertion::parse(text) else { panic!("{text}") };
        let assertion::Value::Of(function, Source::Events(selector)) = comparison.value else {
            panic!("{text}")
        };
        live.value_of(function, &selector, now * MS).unwrap()
    };
    assert_eq!(value("count(c:frame) > 1", 2100), Some(100.0));
    assert_eq!(value("count(*) > 1", 2100), Some(200.0));
    assert_eq!(value("sum(frame) > 1s", 2100), Some(50.5e6));
    assert_eq!(value("max(frame) > 1s", 2100), Some(1e6));
    assert_eq!(value("max(*) > 1s", 2100), Some(5e6));
    assert_eq!(value("mean(frame) > 1s", 2100), Some(0.505e6));
    assert_eq!(value("p99(frame) > 1s", 2100), Some(0.99e6));
    assert_eq!(value("p50(c:frame) > 1s", 2100), Some(0.5e6));
    assert_eq!((value("max(d:frame) > 1s", 2100), value("count(nosuch) > 1", 2100)), (None, Some(0.0)));
    assert_eq!((value("min(frame) > 1s", 2100), value("rate(frame) > 1", 2100)), (None, None));
    // Those that end at 1.5 s and later.
    assert_eq!(value("count(frame) > 1", 6400), Some(51.0));
    assert_eq!((value("p99(frame) > 1s", 9000), value("count(frame) > 1", 9000)), (None, Some(0.0)));
}

//= docs/live.md#what-is-shown
#[test]
fn what_is_older_than_the_window_is_forgotten() {
    let archive = Archive::new()
        .complete(1, "early", 1000 * MS, 1100 * MS)
        .complete(1, "late", 4000 * MS, 4100 * MS)
        .counter("queue", "depth", 7, 1000 * MS);
    let mut live = live(&archive);
    let names = |snapshot: &Snapshot| snapshot.spans.iter().map(|span| span.name.clone()).collect::<Vec<_>>();
    // A window has ten buckets, the last of which has just begun.
    assert_eq!(names(&live.snapshot(5999 * MS, 5)), ["early", "late"]);
    let snapshot = live.snapshot(6000 * MS, 5);
    assert_eq!(names(&snapshot), ["late"]);
    assert_eq!((snapshot.events[&PROVIDER], snapshot.all_events[&PROVIDER]), (1, 3));
    assert!((snapshot.seconds - 4.5).abs() < 1e-9, "{}", snapshot.seconds);
    let snapshot = live.snapshot(60_000 * MS, 5);
    assert_eq!((names(&snapshot).len(), snapshot.events.len()), (0, 0));
    assert_eq!(snapshot.counters[0].values.len(), HISTORY);
}

#[test]
fn begins_and_ends_are_paired_across_pieces() {
    let first = Archive::new().event(3, "job", EventKind::DurationBegin, 1000 * MS).event(
        1,
        "request",
        EventKind::AsyncBegin { id: 9 },
        1000 * MS,
    );
    let second = Archive::new()
        .event(3, "job", EventKind::DurationEnd, 1300 * MS)
        .event(1, "request", EventKind::AsyncEnd { id: 9 }, 1200 * MS)
        .event(3, "job", EventKind::DurationEnd, 1400 * MS);
    let mut live = live(&first);
    let mut reader = Reader::new(second.bytes()).unwrap();
    while let Some(record) = reader.next_item().unwrap() {
        live.record(&record);
    }
    let spans = live.snapshot(1500 * MS, 5).spans;
    let found: Vec<_> = spans.iter().map(|span| (span.name.as_str(), span.count, span.total_ns)).collect();
    assert_eq!(found, [("job", 1, 300 * MS), ("request", 1, 200 * MS)]);
}

//= docs/live.md#what-is-shown
#[test]
fn counters_have_a_value_for_each_bucket() {
    let archive = Archive::new()
        .counter("queue", "depth", 1, 1000 * MS)
        .counter("queue", "depth", 3, 1100 * MS)
        .counter("queue", "depth", 5, 2500 * MS)
        .sample("queue", "load", 0.5, 2500 * MS)
        .sample("queue", "load", f64::NAN, 2600 * MS);
    let counters = live(&archive).snapshot(3000 * MS, 5).counters;
    let found: Vec<_> =
        counters.iter().map(|counter| (counter.series.as_str(), &counter.values[..])).collect();
    assert_eq!(found, [("depth", &[3.0, 3.0, 3.0, 5.0, 5.0][..]), ("load", &[0.5, 0.5])]);
}

#[test]
fn memory_is_bounded() {
    let mut archive = Archive::new();
    for number in 0..3000 {
        archive = archive.complete(1, &format!("name {number}"), 1000 * MS, 1000 * MS + number).counter(
            &format!("counter {number}"),
            "value",
            1,
            1000 * MS,
        );
    }
    let snapshot = live(&archive).snapshot(1100 * MS, 10);
    assert_eq!((snapshot.spans.len(), snapshot.other_spans), (10, 2000));
    assert_eq!((snapshot.counters.len(), snapshot.other_samples), (2000, 1000));
    // Times hours apart move the window on, and do not fill it with empty buckets.
    let mut archive = Archive::new();
    for hour in 0..100 {
        archive = archive.complete(1, "hour", hour * 3_600_000 * MS, hour * 3_600_000 * MS + MS);
    }
    let mut live = self::live(&archive);
    assert!(live.window.len() <= 2 * WINDOW_BUCKETS as usize, "{}", live.window.len());
    assert_eq!(live.snapshot(99 * 3_600_000 * MS + 2 * MS, 10).spans[0].count, 1);
    // Beyond 256 values a percentile is that of a class.
    let mut archive = Archive::new();
    for number in 1..=10_000_u64 {
        archive = archive.complete(1, "x", 1000 * MS + number, 1000 * MS + number + 1000 + number);
    }
    let [x] = &self::live(&archive).snapshot(1100 * MS, 1).spans[..] else { panic!() };
    let p50 = x.p50_ns.unwrap();
    assert!((p50 - 6000.0).abs() <= 6.0, "{p50}");
}

//= docs/meaning.md#polls
#[test]
fn polls_are_taken_out_again_when_their_operation_says_so() {
    let value = |live: &mut Live, text: &str| {
        let Ok(Assertion::Comparison(comparison)) = Assertion::parse(text) else { panic!("{text}") };
        let assertion::Value::Of(function, Source::Events(selector)) = comparison.value else {
            panic!("{text}")
        };
        live.value_of(function, &selector, 10 * MS)
    };
    let mut live = live(&Archive::new().operation(7).operation(8));
    assert_eq!(value(&mut live, "count(job) > 1"), Ok(Some(2.0)));
    assert_eq!(value(&mut live, "p50(job) > 1s"), Ok(Some(3000.0)));
    assert_eq!(value(&mut live, "sum(poll(job)) > 1s"), Ok(Some(1200.0)));
    assert_eq!(value(&mut live, "count(slice(job)) > 1"), Ok(Some(0.0)));
    let names = live.snapshot(10 * MS, 5).spans;
    assert_eq!(names.iter().map(|span| (span.kind, span.count)).collect::<Vec<_>>(), [(Kind::Operation, 2)]);
    // One that is open when its operation says so, and one that is none.
    let (begin, end) = (EventKind::DurationBegin, EventKind::DurationEnd);
    let archive = Archive::new()
        .event(1, "job", begin, 1000)
        .with(1, "job", EventKind::AsyncBegin { id: 7 }, 1000, ("first-poll", ArgumentValue::Bool(true)))
        .event(1, "job", end, 1100)
        .event(1, "job", EventKind::AsyncEnd { id: 7 }, 1200);
    let mut live = super::tests::live(&archive);
    assert_eq!(value(&mut live, "max(job) > 1s"), Ok(Some(200.0)));
    let archive = archive.complete(1, "job", 2000, 2001);
    let mut live = super::tests::live(&archive);
    let mixed = value(&mut live, "max(job) > 1s").unwrap_err();
    assert_eq!(mixed.to_string(), "job is the name of operations (1) and of durations (1)");
}

/// A span that waits for something is recorded as an operation some time after its first poll.
//= docs/meaning.md#polls
#[test]
fn what_may_still_turn_out_to_be_a_poll_waits() {
    let value = |live: &mut Live, now: u64| {
        let Ok(Assertion::Comparison(comparison)) = Assertion::parse("count(job) > 1") else { panic!() };
        let assertion::Value::Of(function, Source::Events(selector)) = comparison.value else { panic!() };
        live.value_of(function, &selector, now).map_err(|mixed| mixed.to_string())
    };
    let (begin, end) = (EventKind::DurationBegin, EventKind::DurationEnd);
    let pair = |archive: Archive, at: u64| archive.event(1, "job", begin, at).event(1, "job", end, at + 100);
    // One before the first operation of the name, and one behind it.
    for archive in [pair(Archive::new(), 1000).operation(7), pair(Archive::new().operation(7), 9000)] {
        let mut live = live(&archive);
        assert_eq!(value(&mut live, MS), Ok(Some(1.0)));
        assert_eq!(value(&mut live, 140 * MS), Ok(Some(1.0)));
        let mixed = "job is the name of operations (1) and of durations (1)";
        assert_eq!(value(&mut live, 170 * MS), Err(mixed.to_owned()));
    }
}
