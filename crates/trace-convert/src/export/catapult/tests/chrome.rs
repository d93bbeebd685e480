//! Chrome's dialect.
//= docs/catapult.md#chromes-dialect

use super::*;

struct Bytes(Vec<u8>);

impl trace_format::sink::Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

fn chrome(hex: &[&str], container: Container) -> (String, Summary) {
    let trace = [bytes(&[MAGIC]), bytes(hex)].concat();
    let mut output = Vec::new();
    let options = Options { dialect: Dialect::Chrome(container), ..Options::default() };
    let summary = convert_with(&trace[..], &mut output, options).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

#[test]
fn names_are_events_in_either_container() {
    let hex: Vec<&str> = DURATION_24_MHZ.into_iter().chain([MAIN, SHELL]).collect();
    let events = [
        r#"{"cat":"test","name":"work","ts":0.041,"pid":1000,"tid":1001,"ph":"B"}"#,
        r#"{"ts":1.041,"pid":1000,"tid":1001,"ph":"E"}"#,
        r#"{"name":"process_name","ph":"M","pid":1000,"args":{"name":"shell"}}"#,
        r#"{"name":"thread_name","ph":"M","pid":1000,"tid":1001,"args":{"name":"main"}}"#,
    ]
    .join(",");
    assert_eq!(chrome(&hex, Container::Array).0, format!("[{events}]"));
    let object = format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{events}]}}");
    assert_eq!(chrome(&hex, Container::Object).0, object);
    assert_eq!(chrome(&[], Container::Array).0, "[]");
}

/// Provider 1 has a megahertz, and an event of thread 6 in process 5 at its 1000th tick.
const PROVIDER: [&str; 3] = [
    "10 00 11 00 00 00 00 00",
    "21 00 00 00 00 00 00 00  40 42 0f 00 00 00 00 00",
    "44 00 00 00 00 00 00 00  e8 03 00 00 00 00 00 00  05 00 00 00 00 00 00 00  06 00 00 00 00 00 00 00",
];
const LOSS: &str = "75 00 0a 80 20 00 01 00  74 72 61 63 65 3a 6c 6f  73 73 00 00 00 00 00 00";

//= docs/catapult.md#losses
#[test]
fn a_loss_is_an_instant_and_an_operation() {
    let hex = [
        &PROVIDER[..],
        // 1000 records from tick 2000 to 5000, because the buffer was full; 7 of a newer reason, without
        // a time.
        &[LOSS, "01 00 00 00 01 00 00 00  e8 03 00 00 00 00 00 00"],
        &["d0 07 00 00 00 00 00 00  88 13 00 00 00 00 00 00"],
        &[LOSS, "01 00 e7 03 01 00 00 00  07 00 00 00 00 00 00 00"],
        &["00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00"],
    ];
    let full = r#""args":{"reason":"buffer full","count":1000,"first_us":2000.0,"last_us":5000.0,"provider":1,"provider_name":""}}"#;
    let newer = r#""args":{"reason":"reason 999","count":7,"provider":1,"provider_name":""}}"#;
    let of = |at: &str, rest: &str| {
        format!(r#"{{"cat":"trace:loss","name":"lost","ts":{at},"pid":5,"tid":6,{rest}"#)
    };
    let events = [
        r#"{"cat":"","name":"","ts":1000.0,"pid":5,"tid":6,"ph":"i","s":"t"}"#.to_owned(),
        of("2000.0", &format!(r#""ph":"i","s":"p",{full}"#)),
        of("2000.0", &format!(r#""ph":"b","id2":{{"local":"0x1"}},{full}"#)),
        of("5000.0", r#""ph":"e","id2":{"local":"0x1"}}"#),
        of("1000.0", &format!(r#""ph":"i","s":"p",{newer}"#)),
        of("1000.0", &format!(r#""ph":"b","id2":{{"local":"0x2"}},{newer}"#)),
        of("1000.0", r#""ph":"e","id2":{"local":"0x2"}}"#),
    ];
    let (text, summary) = chrome(&hex.concat(), Container::Array);
    assert_eq!(text, format!("[{}]", events.join(",")));
    assert_eq!(summary, Summary { events: 1, ..Summary::default() });
    // Fuchsia's exporter knows no losses.
    assert_eq!(convert_hex(&hex.concat()).1.skipped, [("loss records".to_owned(), 2)]);
}

//= docs/catapult.md#other-data
#[test]
fn the_object_says_how_it_was_recorded() {
    use trace_format::argument::{Argument, ArgumentValue};
    use trace_format::refs::{StringRef, ThreadRef};
    use trace_format::units::{Koid, ProcessKoid, ThreadKoid};
    let text = |name: &'static [u8], value: &'static [u8]| Argument {
        name: StringRef::Inline(name),
        value: ArgumentValue::String(StringRef::Inline(value)),
    };
    let wall = ArgumentValue::Uint64(1_800_000_000_123_456_789);
    let arguments = [
        text(b"version", b"1.2.3"),
        text(b"host", b"ho\"st"),
        text(b"kernel", b"Linux 6"),
        text(b"boot_id", b"b"),
        text(b"clock_source", b"tsc"),
        text(b"command_line", b"--password x"),
        Argument { name: StringRef::Inline(b"wall_clock_ns"), value: wall },
    ];
    let mut archive = Bytes(bytes(&[MAGIC]));
    let event = trace_format::event::Event {
        timestamp: Ticks(5000),
        thread: ThreadRef::Inline { process: ProcessKoid(Koid(1)), thread: ThreadKoid(Koid(2)) },
        category: StringRef::Inline(b"trace"),
        name: StringRef::Inline(b"recording"),
        kind: trace_format::event::EventKind::Instant { scope: trace_format::event::Scope::Global },
        arguments: trace_format::argument::Arguments::from_slice(&arguments),
    };
    event.encode(&mut archive).unwrap();
    // A program cannot say it in the manager's place.
    archive.0.extend(bytes(&["10 00 11 00 00 00 00 00"]));
    event.encode(&mut archive).unwrap();
    let mut output = Vec::new();
    let options = Options { dialect: Dialect::Chrome(Container::Object), ..Options::default() };
    convert_with(&archive.0[..], &mut output, options).unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let expected = serde_json::json!({
        "host": "ho\"st", "kernel": "Linux 6", "boot_id": "b", "clock": "tsc",
        "wall_clock_ns": "1800000000123456789", "recorded_by_version": "1.2.3", "wall_clock_at_us": 5.0,
        "converted_by_version": env!("CARGO_PKG_VERSION"),
    });
    assert_eq!(found["otherData"], expected);
    // The manager's own is no event.
    assert_eq!(found["traceEvents"].as_array().unwrap().len(), 1);
}

#[test]
fn an_empty_name_is_no_event() {
    // A kernel object record: a process, koid 5, whose name is the empty string.
    let process = "27 00 01 00 00 00 00 00  05 00 00 00 00 00 00 00";
    assert_eq!(chrome(&[process], Container::Array).0, "[]");
}

#[test]
fn ids_of_64_bits_survive_javascript() {
    let names = "69 6f 00 00 00 00 00 00  72 65 61 64 00 00 00 00";
    let hex = [
        NANOSECONDS,
        THREAD,
        "54 00 05 01 02 80 04 80  e8 03 00 00 00 00 00 00",
        names,
        "01 00 00 00 00 00 00 80",
        "54 00 0a 01 02 80 04 80  e8 03 00 00 00 00 00 00",
        names,
        "01 00 00 00 00 00 00 80",
    ];
    assert_eq!(
        chrome(&hex, Container::Array).0,
        r#"[{"cat":"io","name":"read","ts":1.0,"pid":5,"tid":6,"ph":"b","id2":{"local":"0x8000000000000001"}},{"cat":"io","name":"read","ts":1.0,"pid":5,"tid":6,"ph":"f","bp":"e","id":"0x8000000000000001"}]"#
    );
}

#[test]
fn what_chrome_has_no_place_for_is_counted() {
    let counter = [
        NANOSECONDS,
        THREAD,
        // A number, a text and a koid.
        "e4 00 31 01 01 80 01 80  e8 03 00 00 00 00 00 00  63 00 00 00 00 00 00 00  6e 00 00 00 00 00 00 00",
        "21 00 01 80 07 00 00 00  61 00 00 00 00 00 00 00",
        "36 00 01 80 01 80 00 00  62 00 00 00 00 00 00 00  78 00 00 00 00 00 00 00",
        "38 00 01 80 00 00 00 00  63 00 00 00 00 00 00 00  09 00 00 00 00 00 00 00",
        "05 00 00 00 00 00 00 00",
    ];
    let counter: Vec<&str> = counter.into_iter().collect();
    let length = bytes(&counter[2..]).len() / 8;
    let mut words = counter.join("  ");
    words = words.replacen(
        "e4 00 31 01",
        &format!("{:02x} {:02x} 31 01", 4 | (length & 0xf) << 4, length >> 4),
        1,
    );
    let switch =
        "48 00 00 00 10 00 00 10  e8 03 00 00 00 00 00 00  e9 03 00 00 00 00 00 00  ea 03 00 00 00 00 00 00";
    let log =
        "49 00 09 00 01 00 00 00  dc 05 00 00 00 00 00 00  64 69 73 6b 20 66 75 6c  6c 00 00 00 00 00 00 00";
    let (text, summary) = chrome(&[&words, switch, log], Container::Array);
    assert_eq!(
        text,
        r#"[{"cat":"c","name":"n","ts":1.0,"pid":5,"tid":6,"ph":"C","id":"0x5","args":{"a":7}},{"cat":"log","name":"log","ph":"i","ts":1.5,"pid":5,"tid":6,"s":"g","args":{"message":"disk full"}}]"#
    );
    let expected = [("counter arguments that are no numbers", 2), ("scheduling records", 1)];
    assert_eq!(summary.skipped, expected.map(|(kind, count)| (kind.to_owned(), count)));
}

/// In Chrome's dialect a number is one flow only; an archive may use an id again.
//= docs/perfetto.md#flows
#[test]
fn a_flow_has_a_number_of_its_own() {
    let event = |phase: char, ts: u32, pid: u32| {
        format!(r#"{{"ph":"{phase}","bp":"e","ts":{ts},"pid":{pid},"tid":1,"cat":"c","name":"n","id":"9"}}"#)
    };
    // Process 2 is described after process 1.
    let text = [
        event('s', 1, 1),
        event('s', 10, 1),
        event('s', 5, 2),
        event('f', 2, 2),
        event('f', 6, 2),
        event('f', 11, 3),
        event('f', 0, 4),
    ]
    .join(",");
    let mut archive = Vec::new();
    crate::import::json::import(format!("[{text}]").as_bytes(), &mut archive).unwrap();
    let ids = |dialect: Dialect| {
        let mut output = Vec::new();
        convert_with(&archive[..], &mut output, Options { dialect, ..Options::default() }).unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output).unwrap();
        let id = |event: &serde_json::Value| event["id"].as_str().unwrap().to_owned();
        found["traceEvents"].as_array().unwrap().iter().map(id).collect::<Vec<String>>()
    };
    assert_eq!(ids(Dialect::Fuchsia), ["9"; 7]);
    let ids = ids(Dialect::Chrome(Container::Object));
    assert_eq!(ids[0], "0x9");
    assert!(ids[1] != ids[0] && ids[2] != ids[0] && ids[1] != ids[2], "{ids:?}");
    // The last that its own process had begun, else any that had begun, else its own id.
    assert_eq!(ids[3..], [ids[0].clone(), ids[2].clone(), ids[1].clone(), "0x9".to_owned()]);
}

/// One begin, three ends under other names: three arrows where they can be said.
//= docs/perfetto.md#flows
#[test]
fn a_flow_that_ends_in_several_places_keeps_its_arrows() {
    let event = |phase: char, ts: u32, tid: u32, name: &str| {
        format!(
            r#"{{"ph":"{phase}","bp":"e","ts":{ts},"pid":1,"tid":{tid},"cat":"c","name":"{name}","id":"9"}}"#
        )
    };
    let text = [event('s', 1, 1, "a"), event('f', 2, 2, "b"), event('f', 3, 3, "c"), event('f', 4, 4, "c")]
        .join(",");
    let mut archive = Vec::new();
    crate::import::json::import(format!("[{text}]").as_bytes(), &mut archive).unwrap();
    let convert = |dialect: Dialect| {
        let mut output = Vec::new();
        let options = Options { dialect, ..Options::default() };
        let summary = convert_with(&archive[..], &mut output, options).unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output).unwrap();
        let part = |event: &serde_json::Value| {
            let number = |name: &str| event[name].as_f64().unwrap() as u64;
            (event["ph"].as_str().unwrap().to_owned(), number("ts"), number("tid"), event["id"].to_string())
        };
        let parts: Vec<_> = found["traceEvents"].as_array().unwrap().iter().map(part).collect();
        (parts, summary)
    };
    let (parts, summary) = convert(Dialect::Chrome(Container::Object));
    assert_eq!((summary.events, summary.remarks), (4, Vec::new()));
    let mut arrows = Vec::new();
    for (_, begun, from, id) in parts.iter().filter(|part| part.0 == "s") {
        let ends: Vec<_> = parts.iter().filter(|part| part.0 == "f" && part.3 == *id).collect();
        let [(_, ended, to, _)] = ends[..] else { panic!("{parts:?}") };
        arrows.push([*begun, *from, *ended, *to]);
    }
    assert_eq!(arrows, [[1, 1, 2, 2], [1, 1, 3, 3], [1, 1, 4, 4]]);
    let (parts, summary) = convert(Dialect::Fuchsia);
    assert_eq!(parts.len(), 4);
    let remark = "flows with several ends: Catapult shows an arrow to the first one";
    assert_eq!(summary.remarks, [(remark.to_owned(), 2)]);
}

//= docs/catapult.md#samples
#[test]
fn backtraces_are_samples_of_the_object() {
    let trace = crate::export::folded::testing::trace();
    let convert = |dialect| {
        let mut output = Vec::new();
        let options = Options { dialect, ..Options::default() };
        let summary = convert_with(&trace[..], &mut output, options).unwrap();
        (String::from_utf8(output).unwrap(), summary)
    };
    let (document, summary) = convert(Dialect::Chrome(Container::Object));
    let sample = |ts, sf| format!(r#"{{"name":"sample","pid":7,"tid":8,"ts":{ts},"sf":"{sf}","weight":1}}"#);
    let samples = [sample("0.005", 1), sample("0.006", 3), sample("0.007", 3)].join(",");
    let frames = r#""1":{"category":"","name":"main"},"2":{"category":"","name":"a;b\nc","parent":"1"},"3":{"category":"","name":"vfs_read","parent":"2"}"#;
    let thread = r#"{"name":"thread_sort_index","ph":"M","pid":7,"tid":8,"args":{"sort_index":0}}"#;
    let expected = format!(
        r#"{{"displayTimeUnit":"ns","traceEvents":[{thread}],"samples":[{samples}],"stackFrames":{{{frames}}}}}"#
    );
    assert_eq!(document, expected);
    assert_eq!(summary.skipped, []);
    for dialect in [Dialect::Fuchsia, Dialect::Chrome(Container::Array)] {
        let (document, summary) = convert(dialect);
        assert!(!document.contains("sample"), "{document}");
        assert_eq!(summary.skipped, [("profiler records".to_owned(), 3)]);
    }
}
