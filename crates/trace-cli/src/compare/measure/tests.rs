//! What becomes a sample, event by event.

use crate::settings::spec_file::SpecFile;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::EventKind;
use trace_format::event::{Event, Scope};
use trace_format::metadata::MAGIC_WORD;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::units::Koid;
use trace_format::units::{ProcessKoid, ThreadKoid, Ticks};

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

/// Milliseconds, thread, name, kind; all of category `c`.
type Line<'a> = (u64, u64, &'a str, EventKind);

/// The samples of measurements, in a trace of these events whose ticks are nanoseconds.
fn samples_of(measure: &str, lines: &[Line<'_>]) -> Vec<Vec<f64>> {
    with_arguments(measure, &lines.iter().map(|line| (*line, None)).collect::<Vec<_>>())
}

fn with_arguments(measure: &str, lines: &[(Line<'_>, Option<ArgumentValue<'_>>)]) -> Vec<Vec<f64>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spec.json");
    std::fs::write(&path, format!("{{ \"measure\": [{measure}] }} // what is measured")).unwrap();
    let spec = SpecFile::read(&path).unwrap();
    let mut archive = Bytes(MAGIC_WORD.to_le_bytes().to_vec());
    for ((millis, thread, name, kind), value) in lines {
        let argument = value.map(|value| Argument { name: StringRef::Inline(b"size"), value });
        let event = Event {
            timestamp: Ticks(millis * 1_000_000),
            thread: ThreadRef::Inline { process: ProcessKoid(Koid(1)), thread: ThreadKoid(Koid(*thread)) },
            category: StringRef::Inline(b"c"),
            name: StringRef::Inline(name.as_bytes()),
            kind: *kind,
            arguments: Arguments::from_slice(argument.as_slice()),
        };
        event.encode(&mut archive).unwrap();
    }
    crate::compare::measure::measure(&spec.measure, &archive.0[..]).unwrap().samples
}

fn duration(name: &str) -> String {
    format!(r#"{{ "type": "duration", "event_name": "{name}", "event_category": "c" }}"#)
}

fn between(first: &str, second: &str, anchors: &str) -> String {
    format!(
        r#"{{ "type": "time_between", "first_event_name": "{first}", "first_event_category": "c",
            "second_event_name": "{second}", "second_event_category": "c"{anchors} }}"#
    )
}

const INSTANT: EventKind = EventKind::Instant { scope: Scope::Thread };
const BEGIN: EventKind = EventKind::DurationBegin;
const END: EventKind = EventKind::DurationEnd;

fn complete(end: u64) -> EventKind {
    EventKind::DurationComplete { end: Ticks(end * 1_000_000) }
}

//= docs/measure.md#samples
//= docs/measure.md#specification
#[test]
fn durations_end_with_the_innermost_end_of_their_thread() {
    let lines = [
        (1, 1, "outer", BEGIN),
        (2, 1, "a", BEGIN),
        (3, 2, "a", BEGIN),
        // Whatever it is called, it ends what is innermost, whose name counts.
        (5, 1, "other", END),
        (9, 1, "a", END),
        // Nothing is open.
        (10, 1, "a", END),
        (11, 2, "a", END),
        // Out of order in the file.
        (4, 3, "a", complete(10)),
    ];
    assert_eq!(samples_of(&duration("a"), &lines), [[6.0, 3.0, 8.0]]);
}

//= docs/measure.md#samples
#[test]
fn operations_end_by_their_ids_and_flows_by_their_names() {
    let lines = [
        (1, 1, "a", EventKind::AsyncBegin { id: 7 }),
        // Inside of the first one.
        (2, 2, "a", EventKind::AsyncBegin { id: 7 }),
        (3, 1, "a", EventKind::FlowBegin { id: 7 }),
        // It is open already.
        (4, 1, "a", EventKind::FlowBegin { id: 7 }),
        (5, 1, "b", EventKind::FlowEnd { id: 7 }),
        (5, 1, "a", EventKind::AsyncEnd { id: 8 }),
        (6, 2, "a", EventKind::AsyncEnd { id: 7 }),
        // The name of the begin counts.
        (9, 2, "b", EventKind::AsyncEnd { id: 7 }),
        (10, 2, "a", EventKind::AsyncEnd { id: 7 }),
        (16, 2, "a", EventKind::FlowEnd { id: 7 }),
    ];
    assert_eq!(samples_of(&duration("a"), &lines), [[4.0, 8.0, 13.0]]);
}

//= docs/measure.md#samples
#[test]
fn a_second_event_ends_the_first_that_came_last() {
    let lines = [
        (1, 1, "b", INSTANT),
        (2, 1, "a", INSTANT),
        (4, 1, "a", INSTANT),
        (7, 2, "b", INSTANT),
        // Nothing is pending.
        (8, 2, "b", INSTANT),
    ];
    assert_eq!(samples_of(&between("a", "b", ""), &lines), [[3.0]]);
    // An event may be both: it ends what is pending, and is pending then.
    assert_eq!(samples_of(&between("a", "a", ""), &lines), [[2.0]]);
}

//= docs/measure.md#samples
#[test]
fn anchors_choose_the_end_of_a_span() {
    let lines = [
        (1, 1, "a", complete(5)),
        (6, 1, "b", BEGIN),
        (9, 1, "b", END),
        (20, 1, "a", EventKind::AsyncBegin { id: 1 }),
        (22, 1, "a", EventKind::AsyncEnd { id: 1 }),
        (30, 1, "b", INSTANT),
    ];
    let of = |first: &str, second: &str| {
        let anchors = format!(r#", "first_event_anchor": "{first}", "second_event_anchor": "{second}""#);
        samples_of(&between("a", "b", &anchors), &lines).remove(0)
    };
    assert_eq!(of("begin", "begin"), [5.0, 10.0]);
    assert_eq!(of("end", "begin"), [1.0, 8.0]);
    assert_eq!(of("begin", "end"), [8.0, 10.0]);
    assert_eq!(of("end", "end"), [4.0, 8.0]);
}

//= docs/measure.md#samples
#[test]
fn arguments_feed_the_first_measurement_that_names_them() {
    let of = |label: &str| {
        format!(
            r#"{{ "type": "argument_value", "event_name": "a", "event_category": "c", "argument_name": "size",
                "argument_unit": "B", "output_test_name": "{label}" }}"#
        )
    };
    let lines = [
        ((1, 1, "a", INSTANT), Some(ArgumentValue::Uint64(3))),
        ((2, 1, "a", INSTANT), Some(ArgumentValue::Int64(4))),
        ((3, 1, "a", INSTANT), None),
        ((4, 1, "b", INSTANT), Some(ArgumentValue::Uint64(5))),
        ((5, 1, "a", EventKind::Counter { id: 0 }), Some(ArgumentValue::Uint64(6))),
    ];
    let both = format!("{}, {}", of("x"), of("y"));
    assert_eq!(with_arguments(&both, &lines), [vec![3.0, 6.0], vec![]]);
}
