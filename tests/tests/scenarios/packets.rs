//! Perfetto's packets that few traces have: what its own reader sees in them, it sees in what we make of
//! them.

use serde_json::{Value, json};
use trace_tests::Sandbox;
use trace_tests::perfetto::query_all;
use trace_tests::pftrace::{Message, trace};

/// Clocks, as snapshots number them.
const MONOTONIC: u64 = 3;
const BOOT: u64 = 6;
/// A clock of a sequence.
const OWN: u64 = 64;
const CLEARED: u64 = 1;
const BEGIN: u64 = 1;
const END: u64 = 2;

fn message() -> Message {
    Message::default()
}

fn clock(id: u64, at: u64) -> Message {
    message().number(1, id).number(2, at)
}

fn packet(sequence: u64) -> Message {
    message().number(10, sequence)
}

fn thread(pid: u64, tid: u64, name: &[u8]) -> Message {
    message().number(1, pid).number(2, tid).text(5, name)
}

fn slice(kind: u64, name: &str) -> Message {
    let event = message().number(9, kind);
    if name.is_empty() { event } else { event.text(22, "c").text(23, name) }
}

/// An event with a phase, and more of the older kind's fields.
fn older(phase: u8, name: &str, legacy: &Message) -> Message {
    let event = message().text(22, "c").text(23, name);
    event.message(6, &legacy.clone().number(2, phase.into()))
}

/// A kernel's event of a thread.
fn kernel(at: u64, field: u64, event: &Message) -> Message {
    message().number(1, at).number(2, 60).message(field, event)
}

/// As Chromium writes: each packet counts from the one before, in microseconds, descriptors and statistics
/// too; the sequence relates its clock to the monotonic one, the service relates that to the boot clock.
fn clocks() -> Vec<Message> {
    let service = message()
        .message(1, &clock(BOOT, 9_000_000))
        .message(1, &clock(MONOTONIC, 2_000_000))
        .number(2, BOOT);
    let own = clock(OWN, 0).number(3, 1).number(4, 1000);
    let relation = message().message(1, &clock(MONOTONIC, 2_500_000)).message(1, &own);
    let defaults = message().number(58, OWN).message(11, &message().number(11, 77));
    let descriptor = message().number(1, 77).message(4, &thread(50, 60, b"worker"));
    let after = |delta: u64| packet(2).number(8, delta);
    vec![
        packet(1).message(6, &service),
        packet(2).number(13, CLEARED).message(59, &defaults).message(6, &relation),
        after(100).message(60, &descriptor),
        after(20).message(11, &slice(BEGIN, "first")),
        after(3).message(12, &message()),
        after(1000).message(11, &slice(END, "")),
        after(7).message(7, &message()),
        after(5).message(11, &slice(BEGIN, "second")),
        after(6).message(11, &slice(END, "")),
    ]
}

/// A sequence of a thread with the older kind of events: flows by number and direction, flow ends that go to
/// the next slice, times of the monotonic clock, names by events, an explicit track 0.
fn older_events() -> Vec<Message> {
    let service = message()
        .message(1, &clock(BOOT, 9_000_000))
        .message(1, &clock(MONOTONIC, 2_000_000))
        .number(2, BOOT);
    let own = packet(2).number(41, 1).message(44, &thread(50, 60, b"main").number(6, 2500));
    let at = |micros: u64, event: Message| packet(2).message(11, &event.number(1, micros));
    let bound = |direction: u64| message().number(8, 9).number(13, direction).number(3, 2);
    let flow = |legacy: Message| legacy.number(6, 4);
    let renamed = |name: &str| {
        older(b'M', "thread_name", &message()).message(4, &message().text(10, "name").text(6, name))
    };
    vec![
        packet(1).message(6, &service),
        own,
        at(10, older(b'X', "out", &bound(2))),
        at(10, older(b'X', "through", &bound(3))),
        at(10, older(b'X', "in", &bound(1))),
        at(10, older(b'B', "begin", &message())),
        at(1, older(b's', "go", &flow(message()))),
        at(1, older(b'f', "go", &flow(message()))),
        at(1, older(b'E', "begin", &message())),
        at(10, older(b'B', "next", &message())),
        at(1, older(b'E', "next", &message())),
        at(1, older(b'X', "track 0", &message().number(3, 1)).number(11, 0)),
        at(1, renamed("renamed")),
        at(1, renamed("")),
    ]
}

/// Interrupts whose ends say what the handler returned, system calls, a name that was cut within a character.
fn kernel_events() -> Vec<Message> {
    let print = |text: &str| message().text(2, text);
    let bundle = message()
        .number(1, 1)
        .message(2, &kernel(1000, 36, &message().number(1, 27).text(2, "timer")))
        .message(2, &kernel(2000, 37, &message().number(1, 27).number(2, 1)))
        .message(2, &kernel(3000, 329, &message().number(1, 202)))
        .message(2, &kernel(4000, 330, &message().number(1, 202).number(2, 0)))
        .message(2, &kernel(5000, 3, &print("B|60|marked\n")))
        .message(2, &kernel(6000, 3, &print("E|60\n")));
    let described = message().number(1, 5).message(4, &thread(60, 60, b"caf\xc3\xa9 \xe2\x82"));
    vec![packet(1).message(60, &described), message().message(1, &bundle)]
}

const SLICES: &str = "SELECT coalesce(s.name, '') AS name, s.ts AS ts, s.dur AS dur, coalesce(th.tid, 0) AS tid FROM slice s \
     LEFT JOIN thread_track t ON s.track_id = t.id LEFT JOIN thread th USING (utid) ORDER BY s.ts, s.dur";
const FLOWS: &str = "SELECT a.name AS source, b.name AS target FROM flow f JOIN slice a ON f.slice_out = a.id \
     JOIN slice b ON f.slice_in = b.id ORDER BY a.ts, b.ts";
const NAMES: &str = "SELECT tid, name FROM thread WHERE tid = 60 ORDER BY tid";

fn rows(names: [&str; 4], rows: &[(&str, u64, u64, u64)]) -> Vec<Value> {
    let row = |&(name, ts, dur, tid): &(&str, u64, u64, u64)| json!({names[0]: name, names[1]: ts, names[2]: dur, names[3]: tid});
    rows.iter().map(row).collect()
}

//= docs/import.md#clocks-of-perfetto
//= docs/import.md#track-events
//= docs/import.md#kernel-events
#[test]
fn perfetto_sees_rare_packets_as_we_do() {
    let test = "perfetto_sees_rare_packets_as_we_do";
    let sandbox = Sandbox::new();
    let slices = |list: &[_]| rows(["name", "ts", "dur", "tid"], list);
    let clocked = slices(&[("first", 9_620_000, 1_003_000, 60), ("second", 10_635_000, 6000, 60)]);
    let old = slices(&[
        ("out", 9_510_000, 2000, 60),
        ("through", 9_520_000, 2000, 60),
        ("in", 9_530_000, 2000, 60),
        ("begin", 9_540_000, 3000, 60),
        ("next", 9_553_000, 1000, 60),
        ("track 0", 9_555_000, 1000, 60),
    ]);
    let flow = |(source, target): (&str, &str)| json!({"source": source, "target": target});
    let flows = [("out", "through"), ("through", "in"), ("begin", "next")].map(flow).to_vec();
    // Of interrupts the names differ, and system calls have their numbers where the machine is not known.
    let kernel = slices(&[("marked", 5000, 1000, 60)]);
    let marked = SLICES.replace("ORDER", "WHERE s.name = 'marked' ORDER");
    let ends = "SELECT ts, dur FROM slice WHERE name <> 'marked' ORDER BY ts";
    let ended = vec![json!({"ts": 1000, "dur": 1000}), json!({"ts": 3000, "dur": 1000})];
    let name = |name: &str| vec![json!({"tid": 60, "name": name})];
    let cases: [(&str, Vec<Message>, &str, Vec<Value>); 8] = [
        ("clocks", clocks(), SLICES, clocked),
        ("clocks", clocks(), NAMES, name("worker")),
        ("older", older_events(), SLICES, old),
        ("older", older_events(), FLOWS, flows),
        ("older", older_events(), NAMES, name("main")),
        ("kernel", kernel_events(), &marked, kernel),
        ("kernel", kernel_events(), ends, ended),
        ("kernel", kernel_events(), NAMES, name("café \u{fffd}")),
    ];
    let mut questions = Vec::new();
    for (name, packets, question, _) in &cases {
        let [original, converted] =
            ["", "-again"].map(|which| sandbox.file(&format!("{name}{which}.pftrace")));
        std::fs::write(&original, trace(packets)).unwrap();
        let output = sandbox.trace(["convert", original.to_str().unwrap(), converted.to_str().unwrap()]);
        assert!(output.status.success(), "{output:?}");
        questions.extend([original, converted].map(|path| (path, (*question).to_owned())));
    }
    let Some(answers) = query_all(test, &questions) else { return };
    let (pairs, _) = answers.as_chunks::<2>();
    for ((name, _, question, expected), [original, converted]) in cases.iter().zip(pairs) {
        assert_eq!(original, expected, "{name}: {question}");
        assert_eq!(converted, expected, "{name}, converted: {question}");
    }
}

//= docs/check.md#problems
#[test]
fn what_cannot_be_decoded_is_a_problem() {
    let sandbox = Sandbox::new();
    // A text where a soft interrupt's number should be, between two good events.
    let print = |text: &str| message().text(2, text);
    let bundle = message()
        .number(1, 1)
        .message(2, &kernel(1000, 3, &print("B|60|marked\n")))
        .message(2, &kernel(1500, 24, &message().text(1, "three")))
        .message(2, &kernel(2000, 3, &print("E|60\n")));
    std::fs::write(sandbox.file("odd.pftrace"), trace(&[message().message(1, &bundle)])).unwrap();
    let checked = sandbox.trace(["check", "--json", "odd.pftrace"]);
    let answer = trace_tests::Answer::of(&checked);
    let [problem] = &answer.problems[..] else { panic!("{answer:?}") };
    assert_eq!((&problem["kind"], &problem["count"]), (&json!("undecodable"), &json!(1)));
    assert_eq!(problem["at_byte"], 0);
    assert_eq!((checked.status.code(), &answer.result["events"]), (Some(1), &json!(2)));
    let text = sandbox.trace(["check", "odd.pftrace"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("\nundecodable: 1\n  byte 0, program 1: kernel event: "), "{text}");
    let allowed = sandbox.trace(["check", "--allow", "undecodable", "odd.pftrace"]);
    assert_eq!(allowed.status.code(), Some(0), "{allowed:?}");
    for (options, code) in [(&["--strict"][..], 4), (&[], 0)] {
        let output = sandbox.trace([&["convert"], options, &["odd.pftrace", "odd.fxt"]].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
}
