//! What readers with stacks get: packets and documents. What they see in them is compared in the scenarios.

use crate::export::catapult::{self, Container, Dialect, Options};
use crate::export::perfetto::messages::SIBLING_MERGE_BEHAVIOR_NONE;
use crate::export::perfetto::tests::{archive, archive_on, decoded};
use crate::{ConvertError, Filter, Summary, perfetto};
use std::collections::HashMap;
use std::io;
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::{EventKind, Scope};
use trace_format::refs::StringRef;
use trace_format::units::Ticks;

type Line = (u64, &'static str, EventKind, &'static [Argument<'static>]);

const BEGIN: EventKind = EventKind::DurationBegin;
const END: EventKind = EventKind::DurationEnd;

const fn complete(begin: u64, name: &'static str, end: u64) -> Line {
    (begin, name, EventKind::DurationComplete { end: Ticks(end) }, &[])
}

/// Steps of tracks, which are numbered as they are described: `track at name`, or `track at` for an end.
fn steps(lines: &[Line]) -> (Vec<String>, Summary) {
    steps_of(lines, Filter::default())
}

fn steps_of(lines: &[Line], filter: Filter) -> (Vec<String>, Summary) {
    let mut packets = Vec::new();
    let summary = perfetto::convert(&archive(lines), &mut packets, filter).unwrap();
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut steps = Vec::new();
    for packet in decoded(&packets).unwrap().packet {
        let interned = packet.interned_data.map(|interned| interned.event_names).unwrap_or_default();
        names.extend(interned.into_iter().map(|name| (name.iid.unwrap(), name.name.unwrap())));
        let Some(event) = packet.track_event else { continue };
        let name = event.name.or_else(|| names.get(&event.name_iid?).cloned()).unwrap_or_default();
        let (track, at) = (event.track_uuid.unwrap(), packet.timestamp.unwrap());
        let arguments = event.debug_annotations.iter().filter_map(|annotation| annotation.name.as_deref());
        let arguments: Vec<_> = arguments.collect();
        steps.push(format!("{track} {at} {name}{}", arguments.join(" ")).trim_end().to_owned());
    }
    (steps, summary)
}

fn document(lines: &[Line]) -> (Vec<String>, Summary) {
    document_of(lines, Filter::default())
}

fn document_of(lines: &[Line], filter: Filter) -> (Vec<String>, Summary) {
    let mut json = Vec::new();
    let options = Options { dialect: Dialect::Chrome(Container::Array), filter, ..Options::default() };
    let summary = catapult::convert_in_memory(&archive(lines), &mut json, options).unwrap();
    let events: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
    let without = |event: &serde_json::Value| {
        let mut event = event.as_object().unwrap().clone();
        ["cat", "pid"].iter().for_each(|member| _ = event.remove(*member));
        serde_json::to_string(&event).unwrap()
    };
    (events.iter().map(without).collect(), summary)
}

//= docs/meaning.md#overlap
#[test]
fn what_overlaps_is_on_a_lane() {
    let lines = [complete(0, "A", 20_000), complete(10_000, "B", 40_000), (50_000, "C", BEGIN, &[])];
    // Tracks 1 and 2 are the process and the thread.
    let (steps, summary) = steps(&lines);
    assert_eq!(steps, ["2 0 A", "3 10000 B", "2 20000", "3 40000", "2 50000 C"]);
    assert_eq!(summary, Summary { events: 3, ..Summary::default() });
    let (events, summary) = document(&lines);
    assert_eq!(
        events,
        [
            r#"{"name":"A","ph":"B","tid":6,"ts":0.0}"#,
            r#"{"name":"B","ph":"B","tid":2147483648,"ts":10.0}"#,
            r#"{"ph":"E","tid":6,"ts":20.0}"#,
            r#"{"ph":"E","tid":2147483648,"ts":40.0}"#,
            r#"{"name":"C","ph":"B","tid":6,"ts":50.0}"#,
        ]
    );
    assert_eq!(summary, Summary { events: 3, ..Summary::default() });
}

/// Numbers that readers or lanes need for something else are replaced; lanes take none of the trace's.
//= docs/meaning.md#overlap
#[test]
fn threads_have_numbers_of_their_own() {
    let lines = [(0, 100, 200), (5, 150, 250), (1 << 30, 100, 200), (1 << 31, 100, 200), (7, 100, 200)];
    let lines = lines.into_iter().chain([(7, 150, 250)]);
    let lines: Vec<_> = lines.map(|(thread, begin, end)| (thread, complete(begin, "e", end))).collect();
    let archive = archive_on(&lines);
    let mut json = Vec::new();
    let options = Options { dialect: Dialect::Chrome(Container::Array), ..Options::default() };
    let summary = catapult::convert_in_memory(&archive, &mut json, options).unwrap();
    let events: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
    let begins = events.iter().filter(|event| event["ph"] != "E");
    let numbers: Vec<u64> = begins.map(|event| event["tid"].as_u64().unwrap()).collect();
    let [zero, five, taken, high, seven, lane] = numbers[..] else { panic!("{numbers:?}") };
    assert_eq!([five, high, seven, lane], [5, 1 << 31, 7, (1 << 31) + 1]);
    assert!([zero, taken].iter().all(|number| number >> 30 == 1 && *number != 1 << 30), "{numbers:?}");
    assert_eq!(summary.remarks.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 1]);
}

//= docs/meaning.md#flows
#[test]
fn parts_of_flows_are_on_the_lanes_of_their_slices() {
    let lines = [
        complete(0, "A", 20_000),
        (5_000, "f", EventKind::FlowBegin { id: 1 }, &[][..]),
        complete(10_000, "B", 40_000),
        (25_000, "f", EventKind::FlowStep { id: 1 }, &[]),
        (30_000, "f", EventKind::FlowEnd { id: 1 }, &[]),
    ];
    let (steps, summary) = steps(&lines);
    assert_eq!(steps, ["2 0 A", "2 5000 f", "3 10000 B", "2 20000", "3 25000 f", "3 30000 f", "3 40000"]);
    assert_eq!(summary.skipped, []);
    assert_eq!(document(&lines).1.skipped, []);
    // Perfetto's reader would look for the slices on another track if it may join this one with others.
    let mut packets = Vec::new();
    perfetto::convert(&archive(&lines), &mut packets, Filter::default()).unwrap();
    let tracks = decoded(&packets).unwrap().packet.into_iter().filter_map(|packet| packet.track_descriptor);
    let apart = tracks.filter(|track| track.sibling_merge_behavior == Some(SIBLING_MERGE_BEHAVIOR_NONE));
    assert_eq!(apart.filter_map(|track| track.name).collect::<Vec<_>>(), ["overlapping 1"]);
}

//= docs/meaning.md#overlap
#[test]
fn of_what_begins_together_the_outer_one_comes_first() {
    const ARGUMENTS: [Argument<'_>; 1] =
        [Argument { name: StringRef::Inline(b" a"), value: ArgumentValue::Bool(true) }];
    let lines = [
        complete(0, "inner", 50),
        complete(0, "outer", 200),
        (300, "pair", BEGIN, &ARGUMENTS),
        (310, "other", END, &[]),
        (400, "nothing", END, &[]),
    ];
    let (steps, summary) = steps(&lines);
    assert_eq!(steps, ["2 0 outer", "2 0 inner", "2 50", "2 200", "2 300 pair a", "2 310"]);
    let skipped = [("ends without a beginning".to_owned(), 1)];
    assert_eq!((summary.events, &summary.skipped[..]), (5, &skipped[..]));
    let (events, summary) = document(&lines);
    assert_eq!(
        events,
        [
            r#"{"name":"outer","ph":"B","tid":6,"ts":0.0}"#,
            r#"{"name":"inner","ph":"B","tid":6,"ts":0.0}"#,
            r#"{"ph":"E","tid":6,"ts":0.05}"#,
            r#"{"ph":"E","tid":6,"ts":0.2}"#,
            r#"{"args":{" a":true},"name":"pair","ph":"B","tid":6,"ts":0.3}"#,
            r#"{"ph":"E","tid":6,"ts":0.31}"#,
        ]
    );
    assert_eq!((summary.events, &summary.skipped[..]), (5, &skipped[..]));
}

/// A pair that takes no time becomes one complete event.
#[test]
fn arguments_stand_where_they_were() {
    const THREAD_TS: StringRef<'_> = StringRef::Inline(b"thread_ts");
    const FIRST: [Argument<'_>; 1] =
        [Argument { name: StringRef::Inline(b"a"), value: ArgumentValue::Bool(true) }];
    const LAST: [Argument<'_>; 2] = [
        Argument { name: StringRef::Inline(b"b"), value: ArgumentValue::Int32(7) },
        Argument { name: THREAD_TS, value: ArgumentValue::Int32(9000) },
    ];
    const TIMES: [Argument<'_>; 2] = [
        Argument { name: THREAD_TS, value: ArgumentValue::Int32(1000) },
        Argument { name: StringRef::Inline(b"thread_dur"), value: ArgumentValue::Int32(25) },
    ];
    // It is odd for Chrome's readers alone.
    let lines = [(5, "x", BEGIN, &FIRST[..]), (5, "x", END, &LAST[..])];
    assert_eq!(steps(&lines).0, ["2 5 x", "2 5"]);
    let expected = r#"{"args":{"a":true,"b":7},"dur":0.0,"name":"x","ph":"X","tid":6,"ts":0.005,"tts":9.0}"#;
    assert_eq!(document(&lines).0, [expected]);
    let pair = [(5, "x", BEGIN, &FIRST[..]), (7, "x", END, &LAST[..])];
    let whole = (9, "y", EventKind::DurationComplete { end: Ticks(20) }, &TIMES[..]);
    let lines = [pair[0], pair[1], complete(9, "inner", 15), whole];
    assert_eq!(
        document(&lines).0,
        [
            r#"{"args":{"a":true},"name":"x","ph":"B","tid":6,"ts":0.005}"#,
            r#"{"args":{"b":7},"ph":"E","tid":6,"ts":0.007,"tts":9.0}"#,
            r#"{"name":"y","ph":"B","tdur":0.025,"tid":6,"ts":0.009,"tts":1.0}"#,
            r#"{"name":"inner","ph":"B","tid":6,"ts":0.009}"#,
            r#"{"ph":"E","tid":6,"ts":0.015}"#,
            r#"{"ph":"E","tid":6,"ts":0.02,"tts":1.025}"#,
        ]
    );
}

/// If there is no room for the arguments of an end, they are written with the begin.
#[test]
fn ends_of_open_slices_are_bounded() {
    let value = ArgumentValue::String(StringRef::Inline(&[b'x'; 30_000]));
    let argument: &'static _ = Box::leak(Box::new([Argument { name: StringRef::Inline(b"b"), value }]));
    // Open together, in which the first overlap makes them odd.
    let count = (8 << 20) / 30_000 + 10;
    let mut lines = vec![complete(0, "A", 2), complete(1, "B", 3)];
    lines.extend((0..count).map(|number| (10 + number, "x", BEGIN, &[][..])));
    lines.extend((0..count).map(|number| (10_000 + number, "x", END, &argument[..])));
    let (events, summary) = document(&lines);
    assert_eq!((events.len() as u64, &summary.skipped[..]), (4 + 2 * count, &[][..]));
    let count_of = |phase: &str| {
        events.iter().filter(|event| event.contains(phase) && event.len() > 30_000).count() as u64
    };
    assert_eq!(count_of("\"ph\":\"B\"") + count_of("\"ph\":\"E\""), count);
    assert!((1..20).contains(&count_of("\"ph\":\"B\"")));
}

/// Perfetto ends an instant where the next slice begins or ends: a part of a flow behind one would be its.
//= docs/meaning.md#flows
#[test]
fn instants_ahead_of_flows_have_ends() {
    let instant = (1_000, "i", EventKind::Instant { scope: Scope::Thread }, &[][..]);
    let flow = (2_000, "f", EventKind::FlowBegin { id: 1 }, &[][..]);
    let [begin, end] = [(0, "p", BEGIN, &[][..]), (9_000, "p", END, &[][..])];
    let (found, summary) = steps(&[begin, instant, flow, end]);
    assert_eq!(found, ["2 0 p", "2 1000 i", "2 1000", "2 2000 f", "2 9000"]);
    assert_eq!(summary, Summary { events: 4, ..Summary::default() });
    // Something begins between.
    let inner = [(1_500, "q", BEGIN, &[][..]), (3_000, "q", END, &[])];
    let (found, _) = steps(&[begin, instant, inner[0], flow, inner[1], end]);
    assert_eq!(found, ["2 0 p", "2 1000 i", "2 1500 q", "2 2000 f", "2 3000", "2 9000"]);
}

/// A complete event without length would stay open, as one of whole microseconds does.
#[test]
fn complete_events_without_length_have_ends() {
    assert_eq!(steps(&[complete(5, "z", 5), complete(7, "y", 1_007)]).0, ["2 5 z", "2 5", "2 7 y"]);
    // In the end behind it, as it would be one of `y`.
    let flow = (1_500, "f", EventKind::FlowBegin { id: 1 }, &[][..]);
    let lines = [complete(100, "y", 1_100), flow, complete(0, "p", 2_000)];
    assert_eq!(steps(&lines).0, ["2 0 p", "2 100 y", "2 1100", "2 1500 f", "2 2000"]);
}

/// An end for which nothing is open would end a slice that is recorded as a whole.
#[test]
fn ends_of_nothing_end_nothing() {
    let lines = [complete(0, "a", 4), complete(1, "b", 1), (3, "e", END, &[][..])];
    let (found, summary) = steps(&lines);
    assert_eq!(found, ["2 0 a", "2 1 b", "2 1", "2 4"]);
    assert_eq!(summary.skipped, [("ends without a beginning".to_owned(), 1)]);
}

#[test]
fn times_beyond_doubles_are_counted() {
    let remarks = |at| document(&[complete(at, "a", at + 5)]).1.remarks;
    assert_eq!(remarks((1000 << 43) - 1), []);
    let said = "events of more than 101 days on the trace's clock: readers with doubles round their times";
    assert_eq!(remarks(1000 << 43), [(said.to_owned(), 1)]);
}

/// An end is kept if its begin is, in the order of their times.
//= docs/catapult.md#filters
#[test]
fn late_ends_are_kept_with_their_begins() {
    let [operation_begin, operation_end] = [EventKind::AsyncBegin { id: 7 }, EventKind::AsyncEnd { id: 7 }];
    let lines = [
        (0, "a", BEGIN, &[][..]),
        (5, "b", BEGIN, &[]),
        (10, "", END, &[]),
        (6, "a", END, &[]),
        (20, "a", END, &[]),
        (30, "b", END, &[]),
        (40, "a", operation_begin, &[]),
        (41, "b", operation_begin, &[]),
        (60, "a", operation_end, &[]),
        (50, "b", operation_end, &[]),
    ];
    let filter = || Filter::new(&["a".to_owned()], None).unwrap();
    let (found, summary) = steps_of(&lines, filter());
    assert_eq!(found, ["3 40 a", "3 60", "2 0 a", "2 10"]);
    // The third end of `a` ends nothing.
    let skipped = [("ends without a beginning".to_owned(), 1)];
    assert_eq!((summary.events, &summary.skipped[..]), (5, &skipped[..]));
    let (events, summary) = document_of(&lines, filter());
    let (operations, slices): (Vec<_>, Vec<_>) = events.iter().partition(|event| event.contains("id2"));
    let [begin, end] = [r#"{"name":"a","ph":"B","tid":6,"ts":0.0}"#, r#"{"ph":"E","tid":6,"ts":0.01}"#];
    assert_eq!((operations.len(), slices), (2, vec![&begin.to_owned(), &end.to_owned()]));
    assert_eq!((summary.events, &summary.skipped[..]), (5, &skipped[..]));
}

/// What Perfetto's processor places elsewhere, whatever is written.
#[test]
fn misplaced_slices_and_flows_are_counted() {
    let twins = [complete(5, "y", 5), complete(5, "z", 5)];
    let at_end = [(6, "p", BEGIN, &[][..]), complete(7, "z", 7), (7, "p", END, &[])];
    let flow = [(8, "f", EventKind::FlowBegin { id: 1 }, &[][..])];
    let counts =
        |lines: &[Line]| document(lines).1.skipped.iter().map(|(_, count)| *count).collect::<Vec<_>>();
    assert_eq!(counts(&twins), [1]);
    assert_eq!(counts(&at_end), [1]);
    assert_eq!(counts(&[&twins[..], &flow[..]].concat()), [1, 1]);
    // Behind the end of a pair, it is in nothing.
    assert_eq!(counts(&[&at_end[..], &flow[..]].concat()), [1]);
    assert_eq!(counts(&[complete(5, "y", 6), complete(5, "z", 6)]), [0; 0]);
}

//= docs/meaning.md#operations
#[test]
fn operations_that_do_not_nest_are_apart() {
    let [begin, end] = [EventKind::AsyncBegin { id: 7 }, EventKind::AsyncEnd { id: 7 }];
    let lines = [
        (0, "A", begin, &[][..]),
        (10, "B", begin, &[]),
        (15, "moment", EventKind::AsyncInstant { id: 7 }, &[]),
        (20, "A", end, &[]),
        (30, "renamed", end, &[]),
        (40, "B", end, &[]),
    ];
    assert_eq!(steps(&lines).0, ["3 0 A", "4 10 B", "4 15 moment", "3 20", "4 30"]);
    let (events, summary) = document(&lines);
    let ids: Vec<String> = events
        .iter()
        .map(|event| {
            let event: serde_json::Value = serde_json::from_str(event).unwrap();
            let text = |member: &str| event[member].as_str().unwrap().to_owned();
            format!("{} {} {}", text("ph"), text("name"), event["id2"]["local"].as_str().unwrap())
        })
        .collect();
    let (a, b) = (ids[0].strip_prefix("b A ").unwrap(), ids[1].strip_prefix("b B ").unwrap());
    assert_ne!(a, b);
    assert_eq!(
        ids[2..],
        [
            format!("n moment {b}"),
            format!("e A {a}"),
            // Under the name of its begin.
            format!("e B {b}"),
            "e B 0x7".to_owned(),
        ]
    );
    assert_eq!(summary.events, 6);
}

/// Without a look at the archive before, the conversion fails and says what is odd.
#[test]
fn a_conversion_in_one_pass_says_what_is_odd() {
    let odd = archive(&[complete(0, "inner", 50), complete(0, "outer", 200)]);
    let options = || Options { dialect: Dialect::Chrome(Container::Array), ..Options::default() };
    let found = |converted: Result<Summary, ConvertError>| match converted {
        Err(ConvertError::Odd(odd)) => odd,
        other => panic!("{other:?}"),
    };
    let of_chrome = found(catapult::convert_with(&odd[..], io::sink(), options()));
    let of_perfetto = found(perfetto::convert_with(&odd[..], io::sink(), perfetto::Options::default()));
    assert_eq!(of_chrome, of_perfetto);
    let even = archive(&[complete(0, "outer", 200), complete(0, "inner", 50)]);
    assert_eq!(catapult::convert_with(&even[..], io::sink(), options()).unwrap().events, 2);
    assert_eq!(perfetto::convert_with(&even[..], io::sink(), <_>::default()).unwrap().events, 2);
    // Fuchsia's dialect has records as they are.
    assert_eq!(catapult::convert(&odd[..], io::sink()).unwrap().events, 2);
}

//= docs/catapult.md#filters
#[test]
fn an_end_is_kept_if_its_begin_is() {
    let [begin, end] = [EventKind::AsyncBegin { id: 7 }, EventKind::AsyncEnd { id: 7 }];
    let lines = [
        (1, "kept", BEGIN, &[][..]),
        (2, "other", BEGIN, &[]),
        (3, "kept", END, &[]),
        (4, "", END, &[]),
        (5, "kept", begin, &[]),
        (6, "other", begin, &[]),
        (7, "other", end, &[]),
        (8, "x", end, &[]),
        (9, "kept", END, &[]),
    ];
    let mut json = Vec::new();
    let filter = Filter::new(&["kept".to_owned()], None).unwrap();
    catapult::convert_with(&archive(&lines)[..], &mut json, Options { filter, ..Options::default() })
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let nanos = |event: &serde_json::Value| (event["ts"].as_f64().unwrap() * 1000.0).round() as u64;
    let times: Vec<u64> = document["traceEvents"].as_array().unwrap().iter().map(nanos).collect();
    assert_eq!(times, [1, 4, 5, 8, 9]);
}
