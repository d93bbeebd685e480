//! Clocks of sequences.

use super::*;

fn clock(id: u32, at: u64) -> Clock {
    Clock { clock_id: Some(id), timestamp: Some(at), ..Clock::default() }
}

/// A snapshot of sequence 1, which begins anew: from here on packets use clock 64 and count from the previous
/// packet, in microseconds.
fn beginning(clocks: Vec<Clock>) -> TracePacket {
    let own = Clock { is_incremental: Some(true), unit_multiplier_ns: Some(1000), ..clock(64, 0) };
    let defaults = TracePacketDefaults { timestamp_clock_id: Some(64), ..TracePacketDefaults::default() };
    TracePacket {
        trusted_packet_sequence_id: Some(1),
        sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
        trace_packet_defaults: Some(defaults),
        clock_snapshot: Some(ClockSnapshot {
            clocks: [clocks, vec![own]].concat(),
            primary_trace_clock: None,
        }),
        ..TracePacket::default()
    }
}

fn times(found: &[String]) -> Vec<&str> {
    let timed = found.iter().filter(|line| !line.starts_with('-'));
    timed.map(|line| line.split(' ').next().unwrap()).collect()
}

/// Descriptors, interned strings, statistics: all have a time, and the next packet counts from there.
//= docs/import.md#clocks-of-perfetto
#[test]
fn a_packet_without_an_event_moves_its_sequences_clock() {
    let after = |delta, packet: TracePacket| TracePacket {
        timestamp: Some(delta),
        trusted_packet_sequence_id: Some(1),
        ..packet
    };
    let name = InternedName { iid: Some(1), name: Some("interned".to_owned()) };
    let interned = InternedData { event_names: vec![name], ..InternedData::default() };
    let mut unread = trace(&[after(100, TracePacket::default())]);
    // And statistics of the system: field 7, empty.
    unread.extend([0x3a, 0]);
    unread[1] += 2;
    let (found, _) = imported(
        &[
            trace(&[
                beginning(vec![clock(CLOCK_BOOTTIME, 1_000_000)]),
                after(1, thread(1, 5, 6, "main")),
                after(10, TracePacket { interned_data: Some(Box::new(interned)), ..TracePacket::default() }),
            ]),
            unread,
            trace(&[event(1000, slice(TYPE_INSTANT, 1, "now")), event(5, slice(TYPE_INSTANT, 1, "later"))]),
        ]
        .concat(),
    );
    assert_eq!(times(&found), ["0.002111000", "0.002116000"]);
}

/// A sequence may relate its clock to another than the trace's, which the service relates to that.
//= docs/import.md#clocks-of-perfetto
#[test]
fn a_clock_may_relate_to_the_traces_by_another() {
    let all = ClockSnapshot {
        clocks: vec![clock(CLOCK_BOOTTIME, 9_000_000), clock(CLOCK_MONOTONIC, 2_000_000)],
        primary_trace_clock: Some(CLOCK_BOOTTIME),
    };
    let (found, summary) = imported(&trace(&[
        TracePacket { clock_snapshot: Some(all), ..TracePacket::default() },
        beginning(vec![clock(CLOCK_MONOTONIC, 2_500_000)]),
        event(7, slice(TYPE_INSTANT, 0, "now")),
    ]));
    assert_eq!(times(&found), ["0.009507000"]);
    assert_eq!(summary.skipped, []);
}

/// Packets after a lost one count from an unknown time.
//= docs/import.md#clocks-of-perfetto
#[test]
fn a_lost_packet_ends_the_state_of_the_sequence() {
    let needing =
        |packet: TracePacket| TracePacket { sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE), ..packet };
    let mut after_loss = needing(event(20, slice(TYPE_INSTANT, 0, "lost")));
    after_loss.previous_packet_dropped = Some(1);
    let (found, summary) = imported(&trace(&[
        beginning(vec![clock(CLOCK_BOOTTIME, 1_000_000)]),
        needing(event(10, slice(TYPE_INSTANT, 0, "first"))),
        after_loss,
        needing(event(30, slice(TYPE_INSTANT, 0, "lost too"))),
        beginning(vec![clock(CLOCK_BOOTTIME, 2_000_000)]),
        needing(event(40, slice(TYPE_INSTANT, 0, "again"))),
    ]));
    assert_eq!(times(&found), ["0.001010000", "0.002040000"]);
    assert_eq!(summary.skipped, [("packets that refer to lost strings".to_owned(), 2)]);
}

/// The oldest kind of times: microseconds of the monotonic clock, from the thread's descriptor on.
//= docs/import.md#clocks-of-perfetto
#[test]
fn older_times_are_those_of_the_monotonic_clock() {
    let all = ClockSnapshot {
        clocks: vec![clock(CLOCK_BOOTTIME, 9_000_000), clock(CLOCK_MONOTONIC, 2_000_000)],
        primary_trace_clock: None,
    };
    let own = ThreadDescriptor {
        pid: Some(5),
        tid: Some(6),
        reference_timestamp_us: Some(2500),
        ..ThreadDescriptor::default()
    };
    let older = |delta, absolute| TracePacket {
        trusted_packet_sequence_id: Some(1),
        track_event: Some(TrackEvent {
            timestamp_delta_us: delta,
            timestamp_absolute_us: absolute,
            kind: Some(TYPE_INSTANT),
            ..TrackEvent::default()
        }),
        ..TracePacket::default()
    };
    let (found, _) = imported(&trace(&[
        TracePacket { clock_snapshot: Some(all), ..TracePacket::default() },
        TracePacket {
            trusted_packet_sequence_id: Some(1),
            incremental_state_cleared: Some(true),
            thread_descriptor: Some(own),
            ..TracePacket::default()
        },
        older(Some(3), None),
        older(None, Some(3000)),
        // One event's own time is no reference for others; a packet's time counts for less.
        TracePacket { timestamp: Some(1), ..older(Some(4), None) },
    ]));
    assert_eq!(times(&found), ["0.009503000", "0.009507000", "0.010000000"]);
    assert!(found.iter().all(|line| line.contains(" instant 5/6 ")), "{found:?}");
}
