//! Tracks that are no thread's, and descriptions behind the events.

use super::*;
use crate::export::perfetto::convert;

fn end(track: u64) -> TrackEvent {
    TrackEvent { kind: Some(TYPE_SLICE_END), track_uuid: Some(track), ..TrackEvent::default() }
}

fn track(uuid: u64, parent: Option<u64>, name: &str) -> TracePacket {
    described(TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid: parent,
        name: Some(name.to_owned()),
        ..TrackDescriptor::default()
    })
}

fn process(uuid: u64, pid: i32, name: &str) -> TracePacket {
    let process = ProcessDescriptor { pid: Some(pid), process_name: Some(name.to_owned()) };
    described(TrackDescriptor { uuid: Some(uuid), process: Some(process), ..TrackDescriptor::default() })
}

fn with_flows(mut event: TrackEvent, through: &[u64], ending: &[u64]) -> TrackEvent {
    (event.flow_ids, event.terminating_flow_ids) = (through.to_vec(), ending.to_vec());
    event
}

fn counter(uuid: u64) -> TracePacket {
    described(TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid: Some(2),
        name: Some("bytes".to_owned()),
        counter: Some(CounterDescriptor {
            unit_multiplier: Some(1024),
            is_incremental: Some(true),
            ..CounterDescriptor::default()
        }),
        ..TrackDescriptor::default()
    })
}

fn value(track: u64, value: i64) -> TrackEvent {
    TrackEvent {
        kind: Some(TYPE_COUNTER),
        track_uuid: Some(track),
        counter_value: Some(value),
        ..TrackEvent::default()
    }
}

/// Events of threads, of a process, of custom tracks and counters, and what describes their tracks.
fn events_and_tracks() -> (Vec<TracePacket>, Vec<TracePacket>) {
    let double = TrackEvent { counter_value: None, double_counter_value: Some(0.5), ..value(8, 0) };
    let legacy = |at, phase: u8, flow| {
        let legacy = LegacyEvent { phase: Some(phase.into()), unscoped_id: flow, ..LegacyEvent::default() };
        event(at, TrackEvent { legacy_event: Some(legacy), kind: None, ..slice(0, 5, "old") })
    };
    let events = vec![
        event(10, with_flows(slice(TYPE_SLICE_BEGIN, 1, "work"), &[77], &[])),
        event(12, slice(TYPE_INSTANT, 1, "now")),
        event(14, with_flows(slice(TYPE_SLICE_BEGIN, 4, "draw"), &[77], &[])),
        event(15, slice(TYPE_SLICE_BEGIN, 4, "text")),
        event(16, end(4)),
        event(17, slice(TYPE_INSTANT, 4, "shown")),
        event(18, end(4)),
        event(19, with_flows(slice(TYPE_INSTANT, 5, "sent"), &[], &[77])),
        event(20, end(1)),
        event(21, slice(TYPE_SLICE_BEGIN, 2, "load")),
        event(22, end(2)),
        event(23, slice(TYPE_SLICE_BEGIN, 6, "get")),
        event(24, slice(TYPE_SLICE_BEGIN, 6, "parse")),
        event(25, end(6)),
        event(26, end(6)),
        event(27, value(8, 2)),
        event(28, value(8, 3)),
        event(29, double),
        legacy(30, b'B', None),
        legacy(31, b't', Some(9)),
        legacy(32, b'E', None),
    ];
    let tracks = vec![
        thread(1, 10, 11, "main"),
        process(2, 10, "app"),
        track(4, Some(2), "GPU"),
        track(5, Some(1), "net"),
        track(6, Some(2), "get"),
        counter(8),
    ];
    (events, tracks)
}

/// What was read, without names, and the names.
fn parts(packets: &[TracePacket]) -> (Vec<String>, Vec<String>) {
    let (mut found, summary) = imported(&trace(packets));
    assert_eq!(summary.skipped, []);
    let records = found.len() - found.iter().filter(|line| line.contains("kernel-object")).count();
    assert_eq!(summary.events, records as u64);
    let (mut names, events): (Vec<_>, Vec<_>) =
        found.drain(..).partition(|line| line.contains("kernel-object"));
    names.sort();
    names.dedup();
    (events, names)
}

/// A writer has descriptions when it closes its buffers, or has several buffers.
//= docs/import.md#tracks-of-perfetto
#[test]
fn descriptions_count_wherever_they_are() {
    let (events, tracks) = events_and_tracks();
    let before = parts(&[tracks.clone(), events.clone()].concat());
    insta::assert_snapshot!([before.1.join("\n"), before.0.join("\n")].join("\n"), @r#"
    - kernel-object process #10 "app"
    - kernel-object thread #11 "main" {process=#10}
    - kernel-object thread #2147352576 "GPU" {process=#10}
    - kernel-object thread #2147352577 "net" {process=#10}
    0.000000010 begin 10/11 "a,b" "work"
    0.000000010 flow-begin 10/11 "flow" "flow" id=0x4d
    0.000000012 instant 10/11 "a,b" "now" scope=thread
    0.000000014 begin 10/2147352576 "a,b" "draw"
    0.000000014 flow-step 10/2147352576 "flow" "flow" id=0x4d
    0.000000015 begin 10/2147352576 "a,b" "text"
    0.000000016 end 10/2147352576 "a,b" "text"
    0.000000017 instant 10/2147352576 "a,b" "shown" scope=thread
    0.000000018 end 10/2147352576 "a,b" "draw"
    0.000000019 begin 10/2147352577 "a,b" "sent"
    0.000000019 flow-end 10/2147352577 "flow" "flow" id=0x4d
    0.000000019 end 10/2147352577 "a,b" "sent"
    0.000000020 end 10/11 "a,b" "work"
    0.000000021 async-begin 10/10 "a,b" "load" id=0x2
    0.000000022 async-end 10/10 "a,b" "load" id=0x2
    0.000000023 async-begin 10/10 "a,b" "get" id=0x6
    0.000000024 async-begin 10/10 "a,b" "parse" id=0x6
    0.000000025 async-end 10/10 "a,b" "parse" id=0x6
    0.000000026 async-end 10/10 "a,b" "get" id=0x6
    0.000000027 counter 10/10 "" "bytes" id=0x0 {value=2048i64}
    0.000000028 counter 10/10 "" "bytes" id=0x0 {value=5120i64}
    0.000000029 counter 10/10 "" "bytes" id=0x0 {value=0.5}
    0.000000030 begin 10/2147352577 "a,b" "old"
    0.000000031 flow-begin 10/2147352577 "a,b" "old" id=0x9
    0.000000032 end 10/2147352577 "a,b" "old"
    "#);
    let behind = parts(&[events.clone(), tracks.clone()].concat());
    assert_eq!(behind, before);
    for cut in [3, 11, 18] {
        let (first, rest) = events.split_at(cut);
        assert_eq!(parts(&[first.to_vec(), tracks.clone(), rest.to_vec()].concat()), before);
    }
}

//= docs/import.md#tracks-of-perfetto
#[test]
fn custom_tracks_survive_a_round_trip() {
    let (events, tracks) = events_and_tracks();
    let mut archive = Vec::new();
    import(&trace(&[tracks, events].concat())[..], &mut archive).unwrap();
    let mut exported = Vec::new();
    let summary = convert(&archive[..], &mut exported, Filter::default()).unwrap();
    assert_eq!((summary.skipped, summary.remarks), (Vec::new(), Vec::new()));
    let mut packets = Vec::new();
    for (_, packet) in wire::Fields::of(&exported) {
        packets.push(TracePacket::decode(packet.unwrap()).unwrap());
    }
    let described = packets.iter().filter_map(|packet| packet.track_descriptor.as_deref());
    let mut found: Vec<_> = described
        .map(|track| {
            let of = track.thread.as_ref().map(|thread| thread.tid.unwrap_or(0));
            let process = track.process.as_ref().map(|process| process.pid.unwrap_or(0));
            let named = track.thread.as_ref().and_then(|thread| thread.thread_name.clone());
            (track.name.clone().or(named).unwrap_or_default(), of, process)
        })
        .filter(|(name, of, process)| !name.is_empty() || of.is_some() || process.is_some())
        .collect();
    found.sort();
    found.dedup();
    let found: Vec<_> = found.iter().map(|track| format!("{track:?}")).collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    ("", None, Some(10))
    ("", Some(10), None)
    ("GPU", Some(2147352576), None)
    ("bytes:value:0", None, None)
    ("get", None, None)
    ("load", None, None)
    ("main", Some(11), None)
    ("net", Some(2147352577), None)
    "#);
    let mut again = Vec::new();
    import(&exported[..], &mut again).unwrap();
    let events = |archive: &[u8]| {
        let lines = lines(archive).into_iter().filter(|line| !line.contains("kernel-object"));
        lines
            .filter(|line| !line.contains(" counter "))
            .map(|line| line.replace("11/", ""))
            .collect::<Vec<_>>()
    };
    let operations = |line: &String| !line.contains("async");
    let kept = |archive: &[u8]| events(archive).into_iter().filter(operations).collect::<Vec<_>>();
    assert_eq!(kept(&again), kept(&archive));
}

/// An operation has no flows, and a track of its own name is one.
//= docs/import.md#tracks-of-perfetto
#[test]
fn tracks_without_a_name_of_their_own_are_operations_unless_they_have_flows() {
    let (found, summary) = imported(&trace(&[
        event(10, slice(TYPE_SLICE_BEGIN, 3, "fetch")),
        event(11, with_flows(slice(TYPE_SLICE_BEGIN, 4, "send"), &[7], &[])),
        event(12, slice(TYPE_SLICE_END, 9, "")),
        event(13, end(4)),
        event(14, end(3)),
        event(15, slice(TYPE_INSTANT, 3, "later")),
        track(3, None, ""),
        track(9, None, "never begun"),
    ]));
    insta::assert_snapshot!(found.join("\n"), @r#"
    0.000000010 async-begin 0/0 "a,b" "fetch" id=0x3
    - kernel-object thread #2147352576 "send" {process=#0}
    0.000000011 begin 0/2147352576 "a,b" "send"
    0.000000011 flow-begin 0/2147352576 "flow" "flow" id=0x7
    0.000000012 async-end 0/0 "a,b" "" id=0x9
    0.000000013 end 0/2147352576 "a,b" "send"
    0.000000014 async-end 0/0 "a,b" "fetch" id=0x3
    0.000000015 async-instant 0/0 "a,b" "later" id=0x3
    "#);
    assert_eq!(summary.skipped, []);
}

/// As Perfetto's reader has them.
//= docs/import.md#tracks-of-perfetto
#[test]
fn the_first_name_of_a_track_counts_and_the_last_one_of_a_thread() {
    let (found, _) = imported(&trace(&[
        track(3, None, "first"),
        thread(4, 10, 11, "first"),
        event(10, slice(TYPE_INSTANT, 3, "a")),
        track(3, None, "second"),
        thread(4, 10, 11, "second"),
        event(11, slice(TYPE_INSTANT, 4, "b")),
    ]));
    insta::assert_snapshot!(found.join("\n"), @r#"
    - kernel-object thread #11 "first" {process=#10}
    - kernel-object thread #11 "second" {process=#10}
    - kernel-object thread #2147352576 "first" {process=#0}
    0.000000010 instant 0/2147352576 "a,b" "a" scope=thread
    0.000000011 instant 10/11 "a,b" "b" scope=thread
    "#);
}

//= docs/import.md#memory
#[test]
fn tracks_beyond_the_range_are_operations() {
    let mut packets = Vec::new();
    for uuid in 1..=(1 << 16) + 2 {
        packets.push(track(uuid, None, "lane"));
        packets.push(event(uuid, slice(TYPE_INSTANT, uuid, "x")));
    }
    let (found, summary) = imported(&trace(&packets));
    let count = |what: &str| found.iter().filter(|line| line.contains(what)).count();
    assert_eq!(
        (count(" instant 0/2147"), count(" async-instant 0/0 "), count("\"lane\"")),
        (65536, 2, 65536)
    );
    assert_eq!((summary.events, summary.skipped), (65538, Vec::new()));
}

/// The largest slice has no room for the id of its track.
//= docs/import.md#tracks-of-perfetto
#[test]
fn an_operation_that_is_too_large_is_counted() {
    let text = |bytes: usize| DebugAnnotation {
        name: Some("a".to_owned()),
        string_value: Some("x".repeat(bytes)),
        ..DebugAnnotation::default()
    };
    let counts = |bytes: usize| {
        let debug_annotations = vec![text(32_000), text(bytes)];
        let begin = TrackEvent { debug_annotations, ..slice(TYPE_SLICE_BEGIN, 3, "x") };
        let summary = imported(&trace(&[event(10, begin), event(11, end(3))])).1;
        (summary.events, summary.skipped)
    };
    assert_eq!(counts(704), (2, Vec::new()));
    assert_eq!(counts(712), (1, vec![("events that are too large".to_owned(), 1)]));
}
