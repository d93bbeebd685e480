//! Tests.

use super::*;
use crate::live::batch::MAX_SLICES;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::initialization::Initialization;
use trace_format::kernel_object::KernelObject;
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::units::{ProcessKoid, ThreadKoid, Ticks, TicksPerSecond};
use trace_reader::Reader;

struct Words(Vec<u8>);

impl Sink for Words {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }
}

/// An archive of records of one provider, whose ticks are nanoseconds.
fn archive(records: &[Record<'_>]) -> Vec<u8> {
    let mut bytes = Words(Vec::new());
    let first = [
        Record::Metadata(Metadata::TraceInfoMagic),
        Record::Metadata(Metadata::ProviderInfo { id: ProviderId(1), name: b"app" }),
        Record::Initialization(Initialization {
            ticks_per_second: TicksPerSecond::new(1_000_000_000).unwrap(),
        }),
    ];
    for record in first.iter().chain(records) {
        record.encode(&mut bytes).unwrap();
    }
    bytes.0
}

fn event<'a>(at: u64, name: &'a [u8], kind: EventKind, arguments: &'a [Argument<'a>]) -> Record<'a> {
    Record::Event(Event {
        timestamp: Ticks(at),
        thread: ThreadRef::Inline { process: ProcessKoid(Koid(7)), thread: ThreadKoid(Koid(8)) },
        category: StringRef::Inline(b"c"),
        name: StringRef::Inline(name),
        kind,
        arguments: Arguments::from_slice(arguments),
    })
}

/// Gives the records to a drawer, and takes a message at a time.
fn fed(drawer: &mut Drawer, now: u64, losses: &[Loss], records: &[Record<'_>]) -> Message {
    let bytes = archive(records);
    let mut reader = Reader::new(&bytes[..]).unwrap();
    let table = serde_json::json!({"a": 1});
    let mut message = None;
    let count = records.len() + 3;
    let mut read = 0;
    while let Some(record) = reader.next_item().unwrap() {
        drawer.record(&record);
        read += 1;
        if read == count {
            let names = Some(record.names);
            message =
                Some(drawer.message(Moment { now, clock_ms: 5.25, names, losses, table: Some(&table) }));
        }
    }
    message.expect("as many records")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

//= docs/live.md#in-a-browser
#[test]
fn a_message_has_everything_that_is_new_and_its_names_once() {
    let mut drawer = Drawer::default();
    let name = KernelObject {
        object_type: 1,
        koid: Koid(7),
        name: StringRef::Inline(b"the app"),
        arguments: Arguments::from_slice(&[]),
    };
    let value = [Argument { name: StringRef::Inline(b"depth"), value: ArgumentValue::Uint64(9) }];
    let records = [
        Record::KernelObject(name),
        event(1000, b"outer", EventKind::DurationBegin, &[]),
        event(1010, b"inner", EventKind::DurationComplete { end: Ticks(1030) }, &[]),
        event(1040, b"mark", EventKind::Instant { scope: Scope::Thread }, &[]),
        event(1050, b"queue", EventKind::Counter { id: 3 }, &value),
        event(1060, b"request", EventKind::AsyncBegin { id: 5 }, &[]),
        event(1065, b"request", EventKind::AsyncEnd { id: 5 }, &[]),
        event(1070, b"way", EventKind::FlowBegin { id: 5 }, &[]),
    ];
    let message = fed(&mut drawer, 1100, &[], &records);
    let names = json(&message.names);
    let whats = names["whats"].as_array().unwrap();
    let number = |name: &str| {
        let text = |place: &Value| names["texts"][place.as_u64().unwrap() as usize].as_str().unwrap();
        whats.iter().position(|pair| text(&pair[1]) == name && text(&pair[0]) == "c").unwrap() as u64
    };
    assert_eq!((&names["processes"], &names["threads"]), (&json(r#"["7"]"#), &json(r#"[["8",0]]"#)));
    assert_eq!(names["process_names"], json(r#"[[0,"the app"]]"#));
    let tracks = names["tracks"].as_array().unwrap();
    let track = |kind: Kind| tracks.iter().position(|track| track[0] == kind as u8).unwrap() as u64;
    assert_eq!(tracks.len(), 4);
    let counter = &tracks[track(Kind::Counter) as usize];
    assert_eq!(counter, &serde_json::json!([Kind::Counter as u8, 0, number("queue"), "3", "depth"]));
    let update = json(&message.update);
    assert_eq!(
        (&update["base"], &update["from"], &update["now"]),
        (&json("\"1000\""), &json("0"), &json("100"))
    );
    assert_eq!((&update["clock"], &update["table"]), (&json("5.25"), &json(r#"{"a":1}"#)));
    let of = |name: &str, kind: Kind| {
        let all = update[name].as_array().unwrap();
        all.iter().find(|columns| columns[0] == track(kind)).unwrap_or_else(|| panic!("{update}")).clone()
    };
    let [inner, outer] = [number("inner"), number("outer")];
    assert_eq!(
        of("slices", Kind::Thread),
        serde_json::json!([track(Kind::Thread), [0, 10], [0, 21], [outer, inner]])
    );
    let request = number("request");
    assert_eq!(
        of("slices", Kind::Operations),
        serde_json::json!([track(Kind::Operations), [60], [6], [request]])
    );
    assert_eq!(
        of("points", Kind::Instants),
        serde_json::json!([track(Kind::Instants), [40], [number("mark")]])
    );
    assert_eq!(of("samples", Kind::Counter), serde_json::json!([track(Kind::Counter), [50], [9.0]]));
    let total = |name: &str| update["totals"][name].as_u64().unwrap();
    let totals =
        ["slices", "operations", "instants", "counters", "flows", "logs", "sched", "thinned", "undrawn"];
    assert_eq!(totals.map(total), [1, 1, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(update["sums"], serde_json::json!([[inner, 1, 20, 20], [request, 1, 5, 5]]));
    // What is open is known to pages that come later.
    let open = json(&message.open.unwrap());
    assert_eq!(open["slices"], serde_json::json!([[track(Kind::Thread), [0], [0], [outer]]]));

    // The next one has what ended, and no name again.
    let loss = Loss { provider: "app".to_owned(), pid: 7, reason: "why", count: 2 };
    let message = fed(&mut drawer, 1200, &[loss], &[event(1150, b"outer", EventKind::DurationEnd, &[])]);
    assert_eq!(message.names, "");
    let update = json(&message.update);
    assert_eq!(update["slices"], serde_json::json!([[track(Kind::Thread), [0], [151], [outer]]]));
    assert_eq!(update["losses"], json(r#"[[100,200,"app","why",2,["7"]]]"#));
    assert_eq!(json(&message.open.unwrap()).get("slices"), None);
    let message = fed(&mut drawer, 1300, &[], &[]);
    assert_eq!((message.names.as_str(), message.open), ("", None));
    assert_eq!(json(&message.update)["totals"]["slices"], 2);
}

/// Pages would show it without an end for ever.
#[test]
fn what_was_open_ends_or_goes_whatever_else_is_recorded() {
    let mut drawer = Drawer::default();
    let complete =
        |at, length| event(at, b"long", EventKind::DurationComplete { end: Ticks(at + length) }, &[]);
    let message = fed(&mut drawer, 1100, &[], &[event(1000, b"short", EventKind::DurationBegin, &[])]);
    let begun = json(&message.open.unwrap())["slices"].clone();
    // It ends soon, and much that is longer comes with its end.
    let mut records = vec![event(1001, b"short", EventKind::DurationEnd, &[])];
    records.extend((0..3 * MAX_SLICES as u64).map(|number| complete(1100 + number, 500)));
    let update = json(&fed(&mut drawer, 9000, &[], &records).update);
    let short = &update["slices"][0];
    assert_eq!([&short[0], &short[1][0], &short[3][0]], [&begun[0][0], &json("0"), &begun[0][3][0]]);
    assert_eq!((&short[2][0], update.get("gone")), (&json("2"), None));
    // More are open than pages know of: those of threads come first.
    let operations = (0..MAX_OPEN as u64).map(|id| event(9000, b"op", EventKind::AsyncBegin { id }, &[]));
    fed(&mut drawer, 9100, &[], &operations.collect::<Vec<_>>());
    let names: Vec<String> = (0..MAX_OPEN).map(|number| format!("{number}")).collect();
    let begins = names.iter().map(|name| event(9200, name.as_bytes(), EventKind::DurationBegin, &[]));
    let message = fed(&mut drawer, 9300, &[], &begins.collect::<Vec<_>>());
    let (update, names) = (json(&message.update), json(&message.names));
    let operations = update["gone"].as_array().unwrap();
    assert_eq!((operations.len(), &operations[0][1]), (1, &json("8000")), "{names}");
    assert_eq!(json(&message.open.unwrap())["slices"][0][1].as_array().unwrap().len(), MAX_OPEN);
}

/// Names are cut, between characters.
#[test]
fn names_of_pages_have_a_limit() {
    let mut drawer = Drawer::default();
    let name = "\u{e4}".repeat(5000);
    let object = KernelObject {
        object_type: 2,
        koid: Koid(8),
        name: StringRef::Inline(name.as_bytes()),
        arguments: Arguments::from_slice(&[]),
    };
    let mark = event(1000, name.as_bytes(), EventKind::Instant { scope: Scope::Thread }, &[]);
    let message = fed(&mut drawer, 1100, &[], &[Record::KernelObject(object), mark]);
    let names = json(&message.names);
    let cut = Value::from("\u{e4}".repeat(500));
    assert_eq!(names["thread_names"][0][1], cut);
    assert!(names["texts"].as_array().unwrap().contains(&cut), "{}", names["texts"]);
}

#[test]
fn messages_are_bounded_whatever_is_recorded() {
    let mut drawer = Drawer::default();
    let names: Vec<String> = (0..2 * MAX_TRACKS).map(|number| format!("n{number}")).collect();
    let value = [Argument { name: StringRef::Inline(b"v"), value: ArgumentValue::Double(f64::NAN) }];
    // Its thread has a track before there are too many.
    let mut records = vec![event(900, b"short", EventKind::DurationComplete { end: Ticks(901) }, &[])];
    for (at, name) in (1000..).zip(&names) {
        records.push(event(at, name.as_bytes(), EventKind::Counter { id: 0 }, &value));
        records.push(event(at, name.as_bytes(), EventKind::DurationBegin, &[]));
    }
    for at in 0..10_000 {
        records.push(event(
            50_000 + at,
            b"short",
            EventKind::DurationComplete { end: Ticks(50_001 + at) },
            &[],
        ));
    }
    let message = fed(&mut drawer, 100_000, &[], &records);
    let update = json(&message.update);
    assert_eq!(update["totals"]["counters"].as_u64(), Some(2 * MAX_TRACKS as u64));
    assert_eq!(update["totals"]["slices"], 10_001);
    assert!(update["totals"]["undrawn"].as_u64().unwrap() >= MAX_TRACKS as u64);
    let slices =
        update["slices"].as_array().unwrap().iter().flat_map(|columns| columns[1].as_array().unwrap());
    assert_eq!(slices.count(), MAX_SLICES);
    assert_eq!(json(&message.names)["tracks"].as_array().unwrap().len(), MAX_TRACKS);
    // Of what is open, pages know the first so many.
    let open = json(&message.open.unwrap());
    assert_eq!(open["slices"][0][1].as_array().unwrap().len(), MAX_OPEN);
}
