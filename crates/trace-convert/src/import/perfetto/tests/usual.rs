//! Usual packets, and the same ones with a field that leaves them to the library.

use super::*;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use trace_reader::Reader;
use trace_reader::dump::Line;

/// What a random packet has.
type Choice = (u8, u8, u8, u8, (u64, Option<u64>), Vec<(u8, u8, u64)>);

fn packet((kind, track, name, category, (at, flow), arguments): Choice) -> TracePacket {
    let kinds =
        [TYPE_SLICE_BEGIN, TYPE_SLICE_END, TYPE_INSTANT, TYPE_COUNTER, TYPE_SLICE_BEGIN, TYPE_SLICE_END];
    let kind = kinds[usize::from(kind) % kinds.len()];
    let annotation = |(name, value, number): (u8, u8, u64)| {
        let name_iid = (name % 8 != 0).then_some(u64::from(name % 8));
        let mut annotation = DebugAnnotation { name_iid, ..DebugAnnotation::default() };
        match value % 7 {
            0 => annotation.bool_value = Some(number % 2 == 1),
            1 => annotation.uint_value = Some(number),
            2 => annotation.int_value = Some(number as i64),
            3 => annotation.double_value = Some(number as f64 / 3.0),
            4 => annotation.string_value = Some(format!("text {}", number % 5)),
            5 => annotation.string_value = Some("x".repeat(number as usize % 300)),
            _ => {}
        }
        annotation
    };
    let event = TrackEvent {
        kind: Some(kind),
        track_uuid: (track % 7 != 0).then_some(u64::from(track % 7)),
        name_iid: (name % 9 != 0).then_some(u64::from(name % 9)),
        category_iids: (0..u64::from(category % 3)).map(|more| u64::from(category % 5) + more).collect(),
        flow_ids: flow.filter(|flow| flow % 4 == 0).into_iter().collect(),
        counter_value: (kind == TYPE_COUNTER).then_some(at as i64),
        debug_annotations: arguments.into_iter().map(annotation).collect(),
        ..TrackEvent::default()
    };
    let flags = match category % 11 {
        0 => Some(SEQ_INCREMENTAL_STATE_CLEARED),
        1 => Some(SEQ_NEEDS_INCREMENTAL_STATE),
        _ => None,
    };
    TracePacket {
        timestamp: (name % 31 != 30).then_some(at),
        trusted_packet_sequence_id: Some(1 + u32::from(track) % 3),
        timestamp_clock_id: match track % 13 {
            0 => Some(64),
            1 => Some(77),
            _ => None,
        },
        sequence_flags: flags,
        track_event: Some(event),
        ..TracePacket::default()
    }
}

/// Names for a sequence, one of them empty and one too long for the table.
fn names(sequence: u32) -> TracePacket {
    let name = |iid: u64| match iid {
        5 => String::new(),
        6 => "long ".repeat(60),
        iid => format!("name {}", iid % 3),
    };
    let all = |count| (1..count).map(|iid| InternedName { iid: Some(iid), name: Some(name(iid)) }).collect();
    let data = InternedData {
        event_categories: all(6),
        event_names: all(8),
        debug_annotation_names: all(7),
        ..InternedData::default()
    };
    TracePacket {
        trusted_packet_sequence_id: Some(sequence),
        sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
        interned_data: Some(Box::new(data)),
        ..TracePacket::default()
    }
}

/// A packet with a user's number, which says nothing of the event.
fn unusual(packet: &TracePacket) -> Vec<u8> {
    [&packet.encode_to_vec()[..], &[3 << 3, 7]].concat()
}

fn archive(packets: impl Iterator<Item = Vec<u8>>) -> (Vec<u8>, String) {
    let mut bytes = Vec::new();
    for packet in packets {
        bytes.push(0x0a);
        prost::encoding::encode_varint(packet.len() as u64, &mut bytes);
        bytes.extend(packet);
    }
    let mut archive = Vec::new();
    let said = match import(&*bytes, &mut archive) {
        Ok(summary) => format!("{:?} {:?}", summary.skipped, summary.first_warnings),
        // None of the packets can be read.
        Err(error @ ImportError::Nothing { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
    };
    (archive, said)
}

/// The first line in which the contents of archives differ.
fn difference(one: &[u8], other: &[u8]) -> Option<[String; 2]> {
    let [mut one, mut other] = [one, other].map(|archive| Reader::of_slice(archive).unwrap());
    loop {
        let next = [&mut one, &mut other]
            .map(|reader| reader.next_item().unwrap().map(|item| Line(&item).to_string()));
        match next {
            [None, None] => return None,
            [one, other] if one == other => {}
            differing => return Some(differing.map(Option::unwrap_or_default)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn usual_packets_make_the_same_archive_as_others(
        choices in prop::collection::vec(any::<Choice>(), 1..300),
        is_usual in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        let clock = ClockSnapshot {
            primary_trace_clock: Some(CLOCK_BOOTTIME),
            clocks: [(CLOCK_BOOTTIME, 1000, None), (64, 500, Some(true))]
                .map(|(id, at, is_incremental)| Clock {
                    clock_id: Some(id),
                    timestamp: Some(at),
                    is_incremental,
                    ..Clock::default()
                })
                .into(),
        };
        let snapshot = TracePacket {
            trusted_packet_sequence_id: Some(1),
            clock_snapshot: Some(clock),
            ..TracePacket::default()
        };
        let first = [snapshot, thread(1, 5, 6, "main"), names(1), names(2), names(3)];
        let packets: Vec<_> = choices.into_iter().map(packet).collect();
        let first: Vec<_> = first.iter().map(TracePacket::encode_to_vec).collect();
        let usual = archive(first.iter().cloned().chain(packets.iter().map(TracePacket::encode_to_vec)));
        let others = archive(first.iter().cloned().chain(packets.iter().map(unusual)));
        prop_assert_eq!(&usual.1, &others.1);
        prop_assert_eq!(difference(&usual.0, &others.0), None);
        prop_assert!(usual.0 == others.0);
        let mixed = packets.iter().zip(is_usual.iter().cycle()).map(|(packet, is_usual)| match is_usual {
            true => packet.encode_to_vec(),
            false => unusual(packet),
        });
        prop_assert!(archive(first.iter().cloned().chain(mixed)) == usual);
        let mut compressor = ZlibEncoder::new(Vec::new(), Compression::fast());
        compressor.write_all(&trace(&packets)).unwrap();
        let compressed_packets = Some(compressor.finish().unwrap());
        let compressed = TracePacket { compressed_packets, ..TracePacket::default() }.encode_to_vec();
        prop_assert!(archive(first.into_iter().chain([compressed])) == usual);
    }
}

#[test]
fn many_batches_come_in_their_order() {
    let packets = (0..20_000_u64).map(|number| {
        let kind = if number % 2 == 0 { TYPE_SLICE_BEGIN } else { TYPE_SLICE_END };
        let event = event(number, slice(kind, 1, ""));
        let named = event.track_event.map(|event| TrackEvent { categories: Vec::new(), ..event });
        TracePacket { track_event: named, ..event }
    });
    let all: Vec<_> = std::iter::once(thread(1, 5, 6, "main")).chain(packets).collect();
    let (found, summary) = imported(&trace(&all));
    assert_eq!(summary.events, 20_000);
    for (line, number) in found[1..].iter().zip(0..) {
        let kind = if number % 2 == 0 { "begin" } else { "end" };
        assert_eq!(*line, format!("0.{number:09} {kind} 5/6 \"\" \"\""));
    }
}
