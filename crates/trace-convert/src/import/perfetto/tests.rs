//! Packets, and what comes of them.

use super::*;
use crate::Filter;
use crate::export::perfetto::messages::*;
use crate::import::testing::lines;
use prost::Message;

mod clocks;
mod damage;
mod kernel;
mod lanes;
mod older;
mod usual;

/// A trace of packets.
fn trace(packets: &[TracePacket]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for packet in packets {
        bytes.push(0x0a);
        packet.encode_length_delimited(&mut bytes).unwrap();
    }
    bytes
}

fn imported(bytes: &[u8]) -> (Vec<String>, Summary) {
    assert!(is_perfetto(bytes, true));
    let mut archive = Vec::new();
    let summary = import(bytes, &mut archive).unwrap();
    (lines(&archive), summary)
}

fn event(at: u64, event: TrackEvent) -> TracePacket {
    TracePacket {
        timestamp: Some(at),
        trusted_packet_sequence_id: Some(1),
        track_event: Some(event),
        ..TracePacket::default()
    }
}

fn described(descriptor: TrackDescriptor) -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(1),
        track_descriptor: Some(Box::new(descriptor)),
        ..TracePacket::default()
    }
}

fn thread(uuid: u64, pid: i32, tid: i64, name: &str) -> TracePacket {
    let thread = ThreadDescriptor {
        pid: Some(pid),
        tid: Some(tid),
        thread_name: Some(name.to_owned()),
        ..ThreadDescriptor::default()
    };
    described(TrackDescriptor { uuid: Some(uuid), thread: Some(thread), ..TrackDescriptor::default() })
}

fn slice(kind: i32, track: u64, name: &str) -> TrackEvent {
    TrackEvent {
        kind: Some(kind),
        track_uuid: Some(track),
        name: (!name.is_empty()).then(|| name.to_owned()),
        categories: vec!["a".to_owned(), "b".to_owned()],
        ..TrackEvent::default()
    }
}

//= docs/import.md#perfetto
//= docs/import.md#track-events
//= docs/import.md#names-of-ends
#[test]
fn slices_come_in_the_order_of_their_times_with_names_at_both_ends() {
    let end = TrackEvent { kind: Some(TYPE_SLICE_END), track_uuid: Some(1), ..TrackEvent::default() };
    let (found, summary) = imported(&trace(&[
        thread(1, 5, 6, "main"),
        event(40, end.clone()),
        event(50, end),
        event(10, slice(TYPE_SLICE_BEGIN, 1, "outer")),
        event(30, slice(TYPE_INSTANT, 1, "now")),
    ]));
    assert_eq!(
        found,
        [
            r#"- kernel-object thread #6 "main" {process=#5}"#,
            r#"0.000000010 begin 5/6 "a,b" "outer""#,
            r#"0.000000030 instant 5/6 "a,b" "now" scope=thread"#,
            r#"0.000000040 end 5/6 "a,b" "outer""#,
        ]
    );
    assert_eq!(summary.events, 3);
    assert_eq!(summary.skipped, [("ends of spans that began before the trace".to_owned(), 1)]);
}

/// Two processes have a thread of one number, as in exports of Fuchsia's traces.
//= docs/import.md#names-of-ends
#[test]
fn an_end_ends_a_slice_of_its_process() {
    let end =
        |track| TrackEvent { kind: Some(TYPE_SLICE_END), track_uuid: Some(track), ..TrackEvent::default() };
    let (found, summary) = imported(&trace(&[
        thread(1, 5, 7, "one"),
        thread(2, 6, 7, "two"),
        event(10, slice(TYPE_SLICE_BEGIN, 1, "first")),
        event(20, slice(TYPE_SLICE_BEGIN, 2, "second")),
        event(30, end(1)),
        event(40, end(2)),
    ]));
    assert_eq!(
        found[2..],
        [
            r#"0.000000010 begin 5/7 "a,b" "first""#,
            r#"0.000000020 begin 6/7 "a,b" "second""#,
            r#"0.000000030 end 5/7 "a,b" "first""#,
            r#"0.000000040 end 6/7 "a,b" "second""#,
        ]
    );
    assert_eq!(summary.skipped, []);
}

//= docs/import.md#tracks-of-perfetto
//= docs/import.md#track-events
#[test]
fn lanes_counters_flows_and_values_within_values_have_their_place() {
    let lane = TrackDescriptor {
        uuid: Some(9),
        parent_uuid: Some(1),
        name: Some("lane".to_owned()),
        ..TrackDescriptor::default()
    };
    let counter = TrackDescriptor {
        uuid: Some(8),
        parent_uuid: Some(1),
        name: Some("bytes".to_owned()),
        counter: Some(CounterDescriptor {
            unit_multiplier: Some(1024),
            is_incremental: Some(true),
            ..CounterDescriptor::default()
        }),
        ..TrackDescriptor::default()
    };
    let value = |value| TrackEvent {
        kind: Some(TYPE_COUNTER),
        track_uuid: Some(8),
        counter_value: Some(value),
        ..TrackEvent::default()
    };
    let named = |name: &str| DebugAnnotation { name: Some(name.to_owned()), ..DebugAnnotation::default() };
    let list = DebugAnnotation {
        array_values: vec![
            DebugAnnotation { bool_value: Some(true), ..DebugAnnotation::default() },
            DebugAnnotation { pointer_value: Some(16), ..DebugAnnotation::default() },
        ],
        ..named("list")
    };
    let deep = DebugAnnotation {
        dict_entries: vec![DebugAnnotation { int_value: Some(-3), ..named("x") }, list],
        ..named("deep")
    };
    let mut first = slice(TYPE_SLICE_BEGIN, 1, "first");
    first.flow_ids = vec![77];
    first.debug_annotations = vec![deep];
    let mut second = slice(TYPE_INSTANT, 1, "second");
    second.terminating_flow_ids = vec![77];
    let mut found = slice(TYPE_SLICE_BEGIN, 9, "found");
    found.flow_ids = vec![78];
    let (found, summary) = imported(&trace(&[
        thread(1, 5, 6, "main"),
        described(lane),
        described(counter),
        event(10, first),
        event(11, value(2)),
        event(12, value(3)),
        event(20, found),
        event(21, slice(TYPE_SLICE_END, 9, "")),
        event(30, second),
    ]));
    insta::assert_snapshot!(found[1..].join("\n"), @r#"
    0.000000010 begin 5/6 "a,b" "first" {deep.x=-3i64, "deep.list[0]"=true, "deep.list[1]"=0x10}
    0.000000010 flow-begin 5/6 "flow" "flow" id=0x4d
    0.000000011 counter 5/6 "" "bytes" id=0x0 {value=2048i64}
    0.000000012 counter 5/6 "" "bytes" id=0x0 {value=5120i64}
    - kernel-object thread #2147352576 "lane" {process=#5}
    0.000000020 begin 5/2147352576 "a,b" "found"
    0.000000020 flow-begin 5/2147352576 "flow" "flow" id=0x4e
    0.000000021 end 5/2147352576 "a,b" "found"
    0.000000030 begin 5/6 "a,b" "second"
    0.000000030 flow-end 5/6 "flow" "flow" id=0x4d
    0.000000030 end 5/6 "a,b" "second"
    "#);
    assert_eq!(summary.skipped, []);
}

//= docs/import.md#clocks-of-perfetto
#[test]
fn times_of_other_clocks_go_by_the_snapshots() {
    let clock = |id, at| Clock { clock_id: Some(id), timestamp: Some(at), ..Clock::default() };
    let own = Clock { is_incremental: Some(true), unit_multiplier_ns: Some(1000), ..clock(64, 5) };
    let snapshot = |clocks| TracePacket {
        trusted_packet_sequence_id: Some(1),
        clock_snapshot: Some(ClockSnapshot { clocks, ..ClockSnapshot::default() }),
        ..TracePacket::default()
    };
    let at = |clock: u32, at: u64| TracePacket {
        timestamp_clock_id: Some(clock),
        ..event(at, slice(TYPE_INSTANT, 0, "now"))
    };
    let (found, summary) = imported(&trace(&[
        snapshot(vec![clock(6, 1_000_000), clock(3, 400_000), own]),
        snapshot(vec![clock(6, 2_000_000), clock(3, 1_500_000)]),
        at(3, 300_000),
        at(3, 1_400_000),
        at(3, 1_600_000),
        at(64, 7),
        at(64, 2),
        at(6, 42),
        at(5, 42),
    ]));
    let times: Vec<&str> = found.iter().map(|line| line.split(' ').next().unwrap()).collect();
    // The first: 7 and then 2 microseconds behind 1 ms.
    assert_eq!(
        times,
        ["0.000000042", "0.000900000", "0.001007000", "0.001009000", "0.002000000", "0.002100000"]
    );
    assert_eq!(
        summary.skipped,
        [("events of a clock that no snapshot relates to the trace's".to_owned(), 1)]
    );
}

//= docs/import.md#perfetto
#[test]
fn compressed_damaged_and_truncated_packets_are_reported() {
    let inner = trace(&[event(10, slice(TYPE_INSTANT, 0, "inner"))]);
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &inner).unwrap();
    let compressed =
        TracePacket { compressed_packets: Some(encoder.finish().unwrap()), ..TracePacket::default() };
    let mut bytes = trace(&[compressed]);
    // A packet whose timestamp has no end.
    bytes.extend([0x0a, 2, 0x40, 0x80]);
    bytes.extend([0x0a, 5, 0x40]);
    let mut archive = Vec::new();
    let summary = import(&bytes[..], &mut archive).unwrap();
    assert_eq!(lines(&archive), [r#"0.000000010 instant 0/0 "a,b" "inner" scope=global"#]);
    assert_eq!(summary.skipped, [("packets that cannot be decoded".to_owned(), 1)]);
    assert_eq!(summary.warnings, 2);
    assert_eq!((&*summary.first_warnings[0], summary.is_cut_off), ("the file is cut off", true));

    let error = import(&[0x0a, 0, 0x13][..], Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "byte 2: expected a packet");
    for other in [&b"\n[{}]"[..], b"{}", b"\n\n# tracer", b"", &0x0016_5478_4604_0010_u64.to_le_bytes()] {
        assert!(!is_perfetto(other, true), "{other:?}");
    }
}

/// A packet with packets within it.
fn compressed(packets: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, packets).unwrap();
    trace(&[TracePacket { compressed_packets: Some(encoder.finish().unwrap()), ..TracePacket::default() }])
}

/// The same, compressed with zstd.
fn zstd_compressed(packets: &[u8]) -> Vec<u8> {
    let payload = zstd::encode_all(packets, 3).unwrap();
    let mut packet = Vec::new();
    prost::encoding::bytes::encode(133, &payload, &mut packet);
    let mut trace = Vec::new();
    prost::encoding::bytes::encode(1, &packet, &mut trace);
    trace
}

//= docs/import.md#perfetto
#[test]
fn packets_within_are_compressed_with_zstd_too() {
    let inner = trace(&[event(10, slice(TYPE_INSTANT, 0, "inner"))]);
    let mut bytes = zstd_compressed(&inner);
    let place = bytes.len();
    bytes.extend(zstd_compressed(&[inner, zstd_compressed(b"")].concat()));
    let mut archive = Vec::new();
    let summary = import(&bytes[..], &mut archive).unwrap();
    assert_eq!(lines(&archive), [r#"0.000000010 instant 0/0 "a,b" "inner" scope=global"#; 2]);
    assert_eq!(summary.skipped, [("compressed packets within compressed packets".to_owned(), 1)]);
    // A bit of the second packet's magic number.
    let magic = bytes[place..].windows(4).position(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    bytes[place + magic] ^= 1;
    let mut archive = Vec::new();
    let summary = import(&bytes[..], &mut archive).unwrap();
    assert_eq!(lines(&archive).len(), 1);
    assert_eq!(summary.skipped, [("packets that cannot be decoded".to_owned(), 1)]);
}

//= docs/import.md#memory
#[test]
fn what_grows_like_no_trace_is_an_error() {
    let inner = trace(&[event(10, slice(TYPE_INSTANT, 0, &"x".repeat(100_000)))]);
    grows_like_no_trace(&compressed(&inner));
    grows_like_no_trace(&zstd_compressed(&inner));
}

fn grows_like_no_trace(packets: &[u8]) {
    // A GiB of two MiB is not suspicious; more than a thousand times as much is.
    let growth = Growth { compressed: 2 << 20, plain: 1 << 30 };
    let (_, packet) = wire::Fields::of(packets).next().unwrap();
    let Contents::Compressed(payload) = packets::contents(packet.unwrap()) else { panic!("other contents") };
    let mut importer = Importer::new(Vec::new());
    importer.growth = growth;
    importer.compressed(7, payload).unwrap();
    assert!(importer.growth.compressed > 2 << 20);
    assert!(importer.growth.plain > (1 << 30) + 100_000);
    importer.growth.plain = 1001 * importer.growth.compressed;
    let error = importer.compressed(7, payload).unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 7: what is compressed in packets grows to more than 1000 times its size"
    );
}

//= docs/import.md#kernel-events
#[test]
fn switches_in_columns_and_markers_are_records() {
    let compact = CompactSched {
        switch_timestamp: vec![100, 10, 10],
        switch_prev_state: vec![0, 1, 0x20],
        switch_next_pid: vec![7, 0, 8],
        switch_next_prio: vec![120, 120, 99],
        intern_table: vec!["app".to_owned(), "swapper".to_owned(), "other".to_owned()],
        switch_next_comm_index: vec![0, 1, 2],
        waking_timestamp: vec![105],
        waking_pid: vec![8],
        waking_target_cpu: vec![2],
        waking_prio: vec![99],
        waking_comm_index: vec![2],
        waking_common_flags: vec![0],
    };
    let print = FtraceEvent {
        timestamp: Some(115),
        pid: Some(7),
        print: Some(Print { buf: Some("B|7|marked\n".to_owned()) }),
        ..FtraceEvent::default()
    };
    let bundle = FtraceEventBundle {
        cpu: Some(2),
        event: vec![print],
        compact_sched: Some(compact),
        ..FtraceEventBundle::default()
    };
    let packet = TracePacket { ftrace_events: Some(Box::new(bundle)), ..TracePacket::default() };
    let (found, summary) = imported(&trace(&[packet]));
    insta::assert_snapshot!(found.join("\n"), @r#"
    - kernel-object thread #7 "app" {process=#0}
    - kernel-object thread #2147418114 "cpu-2" {process=#0}
    - kernel-object thread #8 "other" {process=#0}
    - kernel-object thread #7 "app" {process=#7}
    - kernel-object process #7 "app"
    0.000000105 thread-wakeup cpu=2 8 {weight=99i32}
    0.000000110 context-switch cpu=2 7 blocked -> 2147418114 {outgoing_weight=120i32, incoming_weight=-2147483648i32}
    0.000000115 begin 7/7 "atrace" "marked"
    0.000000120 context-switch cpu=2 2147418114 dying -> 8 {outgoing_weight=-2147483648i32, incoming_weight=99i32}
    "#);
    assert_eq!(summary.skipped, [("first switches of a CPU, which do not tell who ran".to_owned(), 1)]);
}

//= docs/import.md#perfetto
#[test]
fn what_we_export_comes_back() {
    let text = r#"{"traceEvents":[
        {"ph":"M","pid":5,"name":"process_name","args":{"name":"app"}},
        {"ph":"M","pid":5,"tid":6,"name":"thread_name","args":{"name":"main"}},
        {"ph":"B","ts":1,"pid":5,"tid":6,"cat":"c","name":"outer","args":{"a":1,"t":"x","d":0.5,"b":true}},
        {"ph":"s","ts":1.5,"pid":5,"tid":6,"cat":"c","name":"go","id":"9"},
        {"ph":"C","ts":2,"pid":5,"tid":6,"cat":"c","name":"count","id":7,"args":{"n":3}},
        {"ph":"E","ts":3,"pid":5,"tid":6,"cat":"c","name":"outer"},
        {"ph":"f","ts":4,"pid":5,"tid":6,"cat":"c","name":"go","id":"9"}
    ]}"#;
    let mut archive = Vec::new();
    crate::import::json::import(text.as_bytes(), &mut archive).unwrap();
    let mut exported = Vec::new();
    crate::export::perfetto::convert(&archive[..], &mut exported, Filter::default()).unwrap();
    let (found, summary) = imported(&exported);
    insta::assert_snapshot!(found.join("\n"), @r#"
    - kernel-object process #5 "app"
    - kernel-object thread #6 "main" {process=#5}
    - kernel-object thread #6 "main" {process=#5}
    0.000001000 begin 5/6 "c" "outer" {a=1i64, t="x", d=0.5, b=true}
    0.000001500 flow-begin 5/6 "c" "go" id=0x9
    0.000002000 counter 5/5 "" "count:n:7" id=0x0 {value=3i64}
    0.000003000 end 5/6 "c" "outer"
    0.000004000 flow-end 5/6 "c" "go" id=0x9
    "#);
    assert_eq!(summary.skipped, []);
}
