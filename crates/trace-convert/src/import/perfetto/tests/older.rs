//! What older producers write: events with phases, flows that are bound to slices, threads of sequences.

use super::*;

/// The sequence's thread.
fn own_thread() -> TracePacket {
    let thread = ThreadDescriptor { pid: Some(5), tid: Some(6), ..ThreadDescriptor::default() };
    TracePacket {
        trusted_packet_sequence_id: Some(1),
        incremental_state_cleared: Some(true),
        thread_descriptor: Some(thread),
        ..TracePacket::default()
    }
}

fn older(at: u64, phase: u8, name: &str, legacy: LegacyEvent) -> TracePacket {
    let legacy_event = Some(LegacyEvent { phase: Some(phase.into()), ..legacy });
    let name = (!name.is_empty()).then(|| name.to_owned());
    event(at, TrackEvent { name, legacy_event, categories: vec!["c".to_owned()], ..TrackEvent::default() })
}

fn bound(id: u64, direction: i32) -> LegacyEvent {
    LegacyEvent { bind_id: Some(id), flow_direction: Some(direction), ..LegacyEvent::default() }
}

//= docs/import.md#track-events
#[test]
fn a_slice_may_have_a_flow_by_its_number_and_direction() {
    let complete =
        |at, name: &str, legacy| older(at, b'X', name, LegacyEvent { duration_us: Some(1), ..legacy });
    let (found, summary) = imported(&trace(&[
        own_thread(),
        complete(1000, "out", bound(9, 2)),
        older(3000, b'B', "through", bound(9, 3)),
        older(4000, b'E', "", LegacyEvent::default()),
        complete(5000, "in", bound(9, 1)),
        complete(7000, "nowhere", bound(9, 0)),
        older(9000, b'b', "operation", LegacyEvent { unscoped_id: Some(3), ..bound(9, 2) }),
        older(9500, b'e', "operation", LegacyEvent { unscoped_id: Some(3), ..LegacyEvent::default() }),
    ]));
    insta::assert_snapshot!(found.join("\n"), @r#"
    0.000001000 begin 5/6 "c" "out"
    0.000001000 flow-begin 5/6 "flow" "flow" id=0x9
    0.000002000 end 5/6 "c" "out"
    0.000003000 begin 5/6 "c" "through"
    0.000003000 flow-step 5/6 "flow" "flow" id=0x9
    0.000004000 end 5/6 "c" "through"
    0.000005000 begin 5/6 "c" "in"
    0.000005000 flow-end 5/6 "flow" "flow" id=0x9
    0.000006000 end 5/6 "c" "in"
    0.000007000 complete 5/6 "c" "nowhere" end=0.000008000
    0.000009000 async-begin 5/6 "c" "operation" id=0x3
    0.000009500 async-end 5/6 "c" "operation" id=0x3
    "#);
    let skipped = ["flows of asynchronous spans", "flows without a direction"];
    assert_eq!(summary.skipped, skipped.map(|kind| (kind.to_owned(), 1)));
}

/// Unless it is bound to the slice around it.
//= docs/import.md#track-events
#[test]
fn the_end_of_a_flow_goes_to_the_next_slice() {
    let flow = |is_enclosed: Option<bool>| LegacyEvent {
        unscoped_id: Some(4),
        bind_to_enclosing: is_enclosed,
        ..LegacyEvent::default()
    };
    let (found, summary) = imported(&trace(&[
        own_thread(),
        older(1000, b'B', "one", LegacyEvent::default()),
        older(1100, b's', "go", flow(None)),
        older(1200, b'f', "go", flow(None)),
        older(1300, b'f', "go", flow(Some(true))),
        older(2000, b'E', "", LegacyEvent::default()),
        older(3000, b'B', "two", LegacyEvent::default()),
        older(4000, b'E', "", LegacyEvent::default()),
        older(5000, b'f', "go", flow(None)),
    ]));
    insta::assert_snapshot!(found.join("\n"), @r#"
    0.000001000 begin 5/6 "c" "one"
    0.000001100 flow-begin 5/6 "c" "go" id=0x4
    0.000001300 flow-end 5/6 "c" "go" id=0x4
    0.000002000 end 5/6 "c" "one"
    0.000003000 begin 5/6 "c" "two"
    0.000003000 flow-end 5/6 "c" "go" id=0x4
    0.000004000 end 5/6 "c" "two"
    0.000005000 flow-end 5/6 "c" "go" id=0x4
    "#);
    assert_eq!(summary.skipped, []);
}

/// Events with a phase belong to the sequence's thread then; others to no thread.
//= docs/import.md#tracks-of-perfetto
#[test]
fn track_0_takes_an_event_from_its_default_track() {
    let defaults = TrackEventDefaults { track_uuid: Some(1), ..TrackEventDefaults::default() };
    let defaults =
        TracePacketDefaults { track_event_defaults: Some(defaults), ..TracePacketDefaults::default() };
    let on = |packet: TracePacket, track_uuid: Option<u64>| TracePacket {
        track_event: packet.track_event.map(|event| TrackEvent { track_uuid, ..event }),
        ..packet
    };
    let phase = |at| older(at, b'I', "older", LegacyEvent::default());
    let (found, _) = imported(&trace(&[
        own_thread(),
        TracePacket { trace_packet_defaults: Some(defaults), ..thread(1, 50, 60, "default") },
        own_thread_again(),
        phase(10),
        on(phase(20), Some(0)),
        on(event(30, slice(TYPE_INSTANT, 0, "newer")), None),
        event(40, slice(TYPE_INSTANT, 0, "newer")),
    ]));
    insta::assert_snapshot!(found[1..].join("\n"), @r#"
    0.000000010 instant 50/60 "c" "older" scope=thread
    0.000000020 instant 5/6 "c" "older" scope=thread
    0.000000030 instant 50/60 "a,b" "newer" scope=thread
    0.000000040 instant 0/0 "a,b" "newer" scope=global
    "#);
}

/// A descriptor that does not forget the defaults.
fn own_thread_again() -> TracePacket {
    TracePacket { incremental_state_cleared: None, ..own_thread() }
}

//= docs/import.md#perfetto
#[test]
fn an_empty_name_leaves_a_known_one() {
    let process = |name: &str| ProcessDescriptor { pid: Some(5), process_name: Some(name.to_owned()) };
    let described_process = |name| {
        described(TrackDescriptor {
            uuid: Some(2),
            process: Some(process(name)),
            ..TrackDescriptor::default()
        })
    };
    let named = |name: &str, value: &str| {
        let value = DebugAnnotation { string_value: Some(value.to_owned()), ..DebugAnnotation::default() };
        let mut packet = older(1, b'M', name, LegacyEvent::default());
        packet.track_event.as_mut().unwrap().debug_annotations = vec![value];
        packet
    };
    let (found, summary) = imported(&trace(&[
        own_thread(),
        named("thread_name", "older"),
        named("thread_name", ""),
        thread(1, 5, 6, "main"),
        thread(1, 5, 6, ""),
        described_process("app"),
        described_process(""),
        // A descriptor's name goes before an event's.
        own_thread(),
        named("thread_name", "older"),
        named("process_name", "older"),
        named("process_labels", "x"),
        TracePacket { process_descriptor: Some(process("oldest")), ..TracePacket::default() },
        TracePacket { process_descriptor: Some(process("")), ..TracePacket::default() },
    ]));
    assert_eq!(
        found,
        [
            r#"- kernel-object thread #6 "older" {process=#5}"#,
            r#"- kernel-object thread #6 "main" {process=#5}"#,
            r#"- kernel-object process #5 "app""#,
            r#"- kernel-object process #5 "oldest""#,
        ]
    );
    assert_eq!(summary.skipped, [("metadata process_labels".to_owned(), 1)]);
}

//= docs/import.md#track-events
#[test]
fn a_trigger_is_an_instant() {
    let trigger = |name: &str| Trigger {
        trigger_name: Some(name.to_owned()),
        producer_name: Some("perfetto".to_owned()),
        trusted_producer_uid: Some(1000),
    };
    let (found, summary) = imported(&trace(&[
        TracePacket { timestamp: Some(10), trigger: Some(trigger("stop")), ..TracePacket::default() },
        TracePacket {
            timestamp: Some(20),
            clone_snapshot_trigger: Some(trigger("clone")),
            ..TracePacket::default()
        },
        TracePacket { trigger: Some(trigger("when?")), ..TracePacket::default() },
    ]));
    insta::assert_snapshot!(found.join("\n"), @r#"
    0.000000010 instant 0/0 "trigger" "stop" scope=global {producer_name="perfetto", trusted_producer_uid=1000i32}
    0.000000020 instant 0/0 "trigger" "clone" scope=global {producer_name="perfetto", trusted_producer_uid=1000i32}
    "#);
    assert_eq!(summary.skipped, [("events without a time".to_owned(), 1)]);
}
