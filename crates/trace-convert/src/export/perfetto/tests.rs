//! What Perfetto's own reader sees in these files is compared in the scenarios; here are the packets
//! themselves.

use super::*;
use trace_format::argument::{Argument, ArgumentValue};
use trace_format::event::EventKind;
use trace_format::event::{Event as Encoded, Scope};
use trace_format::metadata::MAGIC_WORD;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks};

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

pub(crate) fn archive(lines: &[Line<'_>]) -> Vec<u8> {
    archive_on(&lines.iter().map(|line| (6, *line)).collect::<Vec<_>>())
}

/// Time, name, kind and arguments.
pub(crate) type Line<'a> = (u64, &'a str, EventKind, &'a [Argument<'a>]);

/// Events of the threads with these numbers.
pub(crate) fn archive_on(lines: &[(u64, Line<'_>)]) -> Vec<u8> {
    let mut archive = Bytes(MAGIC_WORD.to_le_bytes().to_vec());
    for (thread, (at, name, kind, arguments)) in lines {
        let event = Encoded {
            timestamp: Ticks(*at),
            thread: ThreadRef::Inline { process: ProcessKoid(Koid(5)), thread: ThreadKoid(Koid(*thread)) },
            category: StringRef::Inline(b"c"),
            name: StringRef::Inline(name.as_bytes()),
            kind: *kind,
            arguments: trace_format::argument::Arguments::from_slice(arguments),
        };
        event.encode(&mut archive).unwrap();
    }
    archive.0
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(crate) packet: Vec<TracePacket>,
}

pub(crate) fn decoded(packets: &[u8]) -> Result<Trace, prost::DecodeError> {
    Trace::decode(packets)
}

fn packets(archive: &[u8]) -> (Vec<TracePacket>, Summary) {
    let mut output = Vec::new();
    let summary = convert(archive, &mut output, Filter::default()).unwrap();
    (Trace::decode(&output[..]).unwrap().packet, summary)
}

fn argument(name: &'static str, value: ArgumentValue<'static>) -> Argument<'static> {
    Argument { name: StringRef::Inline(name.as_bytes()), value }
}

//= docs/perfetto.md#document
//= docs/perfetto.md#tracks
//= docs/perfetto.md#events
#[test]
fn a_complete_duration_is_a_begin_and_an_end_on_its_threads_track() {
    let kind = EventKind::DurationComplete { end: Ticks(3500) };
    let (packets, summary) = packets(&archive(&[(1000, "draw", kind, &[])]));
    let [process, thread, begin, end] = &packets[..] else { panic!("{packets:?}") };
    let of = |packet: &TracePacket| packet.track_descriptor.clone().unwrap();
    assert_eq!(of(process).process.unwrap().pid, Some(5));
    let described = of(thread).thread.unwrap();
    assert_eq!((described.pid, described.tid, of(thread).parent_uuid), (Some(5), Some(6), of(process).uuid));
    let event = begin.track_event.clone().unwrap();
    assert_eq!((begin.timestamp, event.kind, event.track_uuid), (Some(1000), Some(1), of(thread).uuid));
    let interned = begin.interned_data.clone().unwrap();
    assert_eq!(interned.event_names[0].name.as_deref(), Some("draw"));
    assert_eq!((event.name_iid, event.category_iids), (interned.event_names[0].iid, vec![1]));
    assert_eq!(begin.sequence_flags, Some(3));
    let event = end.track_event.clone().unwrap();
    assert_eq!((end.timestamp, event.kind, event.track_uuid), (Some(3500), Some(2), of(thread).uuid));
    assert_eq!((end.sequence_flags, &end.interned_data), (Some(2), &None));
    assert_eq!(summary, Summary { events: 1, ..Summary::default() });
}

//= docs/perfetto.md#arguments
#[test]
fn arguments_keep_their_types_and_names_are_written_once() {
    let scope = EventKind::Instant { scope: Scope::Thread };
    let arguments = [
        argument("a", ArgumentValue::Int64(-5)),
        argument("b", ArgumentValue::Uint64(u64::MAX)),
        argument("c", ArgumentValue::Bool(true)),
        argument("d", ArgumentValue::Double(0.5)),
        argument("e", ArgumentValue::String(StringRef::Inline(b"x"))),
        argument("f", ArgumentValue::Pointer(16)),
        argument("g", ArgumentValue::Blob(&[1, 2, 3])),
    ];
    let (packets, _) = packets(&archive(&[(1, "i", scope, &arguments), (2, "i", scope, &arguments)]));
    let annotations = &packets[2].track_event.as_ref().unwrap().debug_annotations;
    assert_eq!(annotations[0].int_value, Some(-5));
    assert_eq!(annotations[1].uint_value, Some(u64::MAX));
    assert_eq!(annotations[2].bool_value, Some(true));
    assert_eq!(annotations[3].double_value, Some(0.5));
    assert_eq!(annotations[4].string_value.as_deref(), Some("x"));
    assert_eq!(annotations[5].pointer_value, Some(16));
    assert_eq!(annotations[6].string_value.as_deref(), Some("AQID"));
    assert_eq!(packets[2].interned_data.as_ref().unwrap().debug_annotation_names.len(), 7);
    assert_eq!(packets[3].interned_data, None);
    assert_eq!(&packets[3].track_event.as_ref().unwrap().debug_annotations, annotations);
}

//= docs/perfetto.md#tracks
#[test]
fn an_operation_has_a_track_from_its_begin_to_its_end() {
    let lines: [(u64, &str, EventKind, &[Argument<'_>]); 5] = [
        (1, "read", EventKind::AsyncBegin { id: 7 }, &[]),
        (2, "part", EventKind::AsyncBegin { id: 7 }, &[]),
        (3, "part", EventKind::AsyncEnd { id: 7 }, &[]),
        (4, "read", EventKind::AsyncEnd { id: 7 }, &[]),
        (5, "read", EventKind::AsyncBegin { id: 7 }, &[]),
    ];
    let (packets, _) = packets(&archive(&lines));
    let tracks: Vec<_> =
        packets.iter().filter_map(|packet| packet.track_event.as_ref()?.track_uuid).collect();
    assert_eq!(tracks[..4], [tracks[0]; 4]);
    assert_ne!(tracks[4], tracks[0]);
    let described = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()?.name.clone());
    assert_eq!(described.collect::<Vec<_>>(), ["read", "read"]);
}

//= docs/perfetto.md#events
#[test]
fn counters_and_flows_have_their_forms() {
    let samples =
        [argument("used", ArgumentValue::Uint64(u64::MAX)), argument("free", ArgumentValue::Int32(3))];
    let text = [argument("no", ArgumentValue::Bool(true))];
    let lines: [(u64, &str, EventKind, &[Argument<'_>]); 3] = [
        (1, "heap", EventKind::Counter { id: 9 }, &samples),
        (2, "heap", EventKind::Counter { id: 9 }, &text),
        (3, "call", EventKind::FlowEnd { id: 1 << 63 }, &[]),
    ];
    let (packets, summary) = packets(&archive(&lines));
    let names: Vec<_> =
        packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()?.name.clone()).collect();
    assert_eq!(names, ["heap", "heap:used:9", "heap:free:9"]);
    let events: Vec<_> = packets.iter().filter_map(|packet| packet.track_event.as_ref()).collect();
    assert_eq!(events[0].double_counter_value, Some(u64::MAX as f64));
    assert_eq!(events[1].counter_value, Some(3));
    let flow = events[2].legacy_event.as_ref().unwrap();
    assert_eq!(
        (flow.phase, flow.unscoped_id, flow.bind_to_enclosing),
        (Some(102), Some(1 << 63), Some(true))
    );
    assert_eq!(summary.skipped, [("counter arguments that are no numbers".to_owned(), 1)]);
}

/// More strings than are kept: the writer has the reader forget them.
//= docs/perfetto.md#document
#[test]
fn strings_without_end_are_forgotten() {
    let scope = EventKind::Instant { scope: Scope::Thread };
    let names: Vec<String> =
        (0..interned::MAX_INTERNED + 10).map(|number| format!("name {number}")).collect();
    let lines: Vec<_> = names.iter().map(|name| (1, name.as_str(), scope, &[][..])).collect();
    let (packets, _) = packets(&archive(&lines));
    let cleared = packets.iter().filter(|packet| packet.sequence_flags == Some(3)).count();
    assert_eq!(cleared, 2);
}

//= docs/perfetto.md#clock
#[test]
fn times_that_perfetto_drops_are_counted() {
    let scope = EventKind::Instant { scope: Scope::Thread };
    let most = i64::MAX as u64;
    let (_, summary) = packets(&archive(&[(most, "last", scope, &[]), (most + 1, "later", scope, &[])]));
    assert_eq!((summary.events, summary.skipped), (2, vec![(TOO_LATE.to_owned(), 1)]));
}

//= docs/perfetto.md#what-other-importers-drop
#[test]
fn objects_before_the_first_event_have_its_time() {
    let blob = |name: &'static [u8]| trace_format::blob::Blob {
        blob_type: trace_format::blob::TYPE_DATA,
        name: StringRef::Inline(name),
        payload: b"bytes",
    };
    let scope = EventKind::Instant { scope: Scope::Thread };
    let events =
        archive(&[(1_000_000_000_000, "first", scope, &[]), (1_000_000_200_000, "last", scope, &[])]);
    let mut whole = Bytes(MAGIC_WORD.to_le_bytes().to_vec());
    blob(b"early").encode(&mut whole).unwrap();
    blob(b"early too").encode(&mut whole).unwrap();
    whole.0.extend_from_slice(&events[8..]);
    blob(b"late").encode(&mut whole).unwrap();
    let (packets, summary) = self::packets(&whole.0);
    let names: Vec<String> = packets
        .iter()
        .filter_map(|packet| packet.interned_data.as_ref())
        .flat_map(|data| data.event_names.iter().filter_map(|name| name.name.clone()))
        .collect();
    let times: Vec<u64> = packets
        .iter()
        .filter(|packet| packet.track_event.is_some())
        .map(|packet| packet.timestamp.unwrap())
        .collect();
    assert_eq!(names, ["early", "early too", "first", "last", "late"]);
    assert_eq!(
        times,
        [1_000_000_000_000, 1_000_000_000_000, 1_000_000_000_000, 1_000_000_200_000, 1_000_000_200_000]
    );
    assert_eq!((summary.events, summary.skipped), (5, Vec::new()));
    // Without any event there is no other time than 0.
    let mut alone = Bytes(MAGIC_WORD.to_le_bytes().to_vec());
    blob(b"alone").encode(&mut alone).unwrap();
    let (packets, _) = self::packets(&alone.0);
    assert_eq!(packets.last().unwrap().timestamp, Some(0));
}

//= docs/perfetto.md#scheduling
#[test]
fn a_wakeup_has_the_waker_that_is_known() {
    use trace_format::scheduling::Scheduling as Record;
    let mut archive = Bytes(MAGIC_WORD.to_le_bytes().to_vec());
    let waker = argument("waker", ArgumentValue::Koid(Koid(77)));
    for arguments in [&[][..], &[waker]] {
        let wakeup = Record::ThreadWakeup {
            timestamp: Ticks(10),
            cpu: 3,
            thread: ThreadKoid(Koid(6)),
            arguments: trace_format::argument::Arguments::from_slice(arguments),
        };
        wakeup.encode(&mut archive).unwrap();
    }
    let (packets, _) = packets(&archive.0);
    let wakers = packets.iter().filter_map(|packet| Some(packet.ftrace_events.as_ref()?.event[0].pid));
    assert_eq!(wakers.collect::<Vec<_>>(), [Some(0), Some(77)]);
}

//= docs/perfetto.md#tracks
#[test]
fn an_empty_name_is_no_name() {
    let mut archive = Bytes(MAGIC_WORD.to_le_bytes().to_vec());
    for name in [&b"app"[..], b""] {
        let object = trace_format::kernel_object::KernelObject {
            object_type: TYPE_PROCESS,
            koid: Koid(5),
            name: if name.is_empty() { StringRef::Empty } else { StringRef::Inline(name) },
            arguments: trace_format::argument::Arguments::from_slice(&[]),
        };
        object.encode(&mut archive).unwrap();
    }
    let (packets, _) = packets(&archive.0);
    let described = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()?.process.clone());
    let names: Vec<_> = described.map(|process| process.process_name).collect();
    assert_eq!(names, [Some("app".to_owned()), None]);
}

//= docs/perfetto.md#losses
#[test]
fn a_loss_is_an_instant_and_a_slice_on_a_track_of_its_own() {
    use trace_format::loss::{LossCode, LossRecord};
    use trace_format::units::ProviderId;
    let mut archive = Bytes(archive(&[(1000, "i", EventKind::Instant { scope: Scope::Thread }, &[])]));
    for (reason, first, last) in [(0, 2000, 5000), (999, 0, 0)] {
        let loss = LossRecord {
            provider: ProviderId(0),
            reason: LossCode(reason),
            count: 7,
            first: Ticks(first),
            last: Ticks(last),
        };
        LossRecord::blob(&loss.to_bytes()).encode(&mut archive).unwrap();
    }
    let (packets, summary) = packets(&archive.0);
    assert_eq!(summary, Summary { events: 1, ..Summary::default() });
    let process = packets[0].track_descriptor.as_ref().unwrap().uuid;
    let tracks: Vec<_> = packets[3..].iter().filter_map(|packet| packet.track_descriptor.as_ref()).collect();
    let described: Vec<_> = tracks.iter().map(|track| (track.name.as_deref(), track.parent_uuid)).collect();
    assert_eq!(described, [(Some("lost"), process); 2]);
    let events: Vec<_> = packets[3..]
        .iter()
        .filter_map(|packet| {
            let event = packet.track_event.as_ref()?;
            let texts = event.debug_annotations.iter().filter_map(|note| note.string_value.clone());
            let numbers = event.debug_annotations.iter().filter_map(|note| note.uint_value);
            let (texts, numbers): (Vec<_>, Vec<_>) = (texts.collect(), numbers.collect());
            Some((packet.timestamp.unwrap(), event.kind.unwrap(), event.track_uuid, texts.join("|"), numbers))
        })
        .collect();
    let full = |at, kind| (at, kind, tracks[0].uuid, "buffer full|".to_owned(), vec![7, 2000, 5000, 0]);
    let expected = [
        full(2000, TYPE_SLICE_BEGIN),
        full(2000, TYPE_INSTANT),
        (5000, TYPE_SLICE_END, tracks[0].uuid, String::new(), Vec::new()),
        (1000, TYPE_INSTANT, tracks[1].uuid, "reason 999|".to_owned(), vec![7, 0]),
    ];
    assert_eq!(events, expected);
}

//= docs/perfetto.md#tracks
#[test]
fn counters_of_one_name_are_below_one_track() {
    let (a, b) = (argument("a", ArgumentValue::Int64(1)), argument("b", ArgumentValue::Int64(2)));
    let both: &[Argument<'_>] = &[a, b];
    let (packets, _) = packets(&archive(&[
        (1, "heap", EventKind::Counter { id: 0 }, both),
        (2, "heap", EventKind::Counter { id: 3 }, &both[..1]),
        (3, "alone", EventKind::Counter { id: 0 }, &both[..1]),
        (4, "heap", EventKind::Counter { id: 0 }, both),
    ]));
    let process = packets[0].track_descriptor.as_ref().unwrap().uuid;
    let tracks: Vec<_> = packets.iter().filter_map(|packet| packet.track_descriptor.as_ref()).collect();
    let group = tracks[2].uuid;
    let described: Vec<_> = tracks[2..]
        .iter()
        .map(|track| (track.name.as_deref().unwrap(), track.parent_uuid, track.counter.is_some()))
        .collect();
    let expected = [
        ("heap", process, false),
        ("heap:a:0", group, true),
        ("heap:b:0", group, true),
        ("heap:a:3", group, true),
        ("alone:a:0", process, true),
    ];
    assert_eq!(described, expected);
}
