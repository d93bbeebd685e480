//! Recordings that have no texts but those that call sites mark as literals.

use crate::support::{ALERTS, Trace};
use trace_engine::ffi::{self, SiteText};
use trace_engine::{
    ArgumentBuffer, DynamicSite, Event, EventType, Koid, Scope, Site, Track, alert, blob, blob_attachment,
    blob_record, display, duration, instant, kernel_object, literal, log, track_instant,
    vthread_duration_begin, write_event,
};
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{self, EventKind};
use trace_format::record::Record;
use trace_format::refs::StringRef;
use trace_format::sink::SliceSink;
use trace_format::units::{StringIndex, Ticks};

const CONSTANT: &str = "a constant";

fn secret() -> String {
    String::from("secret")
}

/// Whether a text stands anywhere in the buffer.
fn has(trace: &Trace, text: &str) -> bool {
    trace.bytes().windows(text.len()).any(|window| window == text.as_bytes())
}

fn private() -> Trace {
    Trace::start_with(|config| config.privacy = true)
}

/// What the dump shows of records that are no definitions, without what differs from run to run.
fn shown(trace: Trace) -> Vec<String> {
    let read = trace.stop();
    assert_eq!(read.findings.bad_records, 0);
    assert_eq!(read.dropped(), 0);
    read.lines()
}

//= docs/recording.md#private-recordings
#[test]
fn arguments_are_numbers_and_literals() {
    let trace = private();
    let secret = secret();
    instant!("app", "event", Scope::Thread,
        "literal" => "open", "raw" => r#"a "raw" one"#, "constant" => literal(CONSTANT), "named" => CONSTANT,
        "string" => &secret, "owned" => secret.clone(), "rendered" => display(&secret), "some" => Some(&*secret),
        "none" => None::<&str>, "char" => 'x', "bytes" => secret.as_bytes(), "sum" => "open".to_owned() + &secret,
        "number" => 7_u32, "koid" => Koid(8));
    {
        duration!("app", "scope", "a" => "open", "b" => &secret);
    }
    assert!(!has(&trace, "secret"));
    let redacted = "\"(redacted)\"";
    let expected = format!(
        "instant t app/event literal=\"open\" raw=\"a \\\"raw\\\" one\" constant=\"a constant\" named={redacted} \
         string={redacted} owned={redacted} rendered={redacted} some={redacted} none=Null char={redacted} bytes=[] \
         sum={redacted} number=Uint32(7) koid=#8"
    );
    assert_eq!(shown(trace), [expected, format!("complete app/scope a=\"open\" b={redacted}")]);
}

//= docs/recording.md#private-recordings
#[test]
fn names_are_those_of_call_sites() {
    let trace = private();
    let secret = secret();
    instant!("app", "at a site", Scope::Thread);
    DynamicSite::new("app", "secret of a plugin", ["key"]).instant(Scope::Thread, ("secret value",));
    let constants = Site::leaked_constants("app", "constants", &["key"]);
    let event = || Event { event_type: EventType::Instant, start: None, extra: None };
    let mut buffer = ArgumentBuffer::new();
    buffer.push_text(0, &secret);
    buffer.push(0, trace_engine::Number::Int64(-1));
    write_event(constants, event(), &buffer);
    let text = SiteText { category: b"app", name: b"secret of C" };
    let values = [ArgumentValue::String(StringRef::inline("secret")), ArgumentValue::Bool(true)];
    let given = ffi::GivenValues { values: &values, literals: 0 };
    ffi::with_unlisted(text, &[b"secret key", b"b"], |site| write_event(site, event(), &given));
    let values = [
        ArgumentValue::String(StringRef::inline("open")),
        ArgumentValue::String(StringRef::inline("secret")),
    ];
    let given = ffi::GivenValues { values: &values, literals: 1 };
    let text = SiteText { category: b"app", name: b"name of C" };
    ffi::with_unlisted_constants(text, &[b"a", b"b"], |site| write_event(site, event(), &given));
    vthread_duration_begin!("app", "virtual", &secret, 7);
    vthread_duration_begin!("app", "virtual", "queue 8", 8);
    static TRACK: Track = Track::new("uploads");
    track_instant!("app", TRACK, "on a track");
    assert!(!has(&trace, "secret"));
    assert!(has(&trace, "queue 8") && has(&trace, "uploads"));
    let redacted = "(redacted)";
    assert_eq!(
        shown(trace),
        [
            "instant t app/at a site".to_owned(),
            format!("instant t {redacted}/{redacted} key=\"{redacted}\""),
            format!("instant t app/constants key=\"{redacted}\" key=Int64(-1)"),
            format!("instant t {redacted}/{redacted} {redacted}=\"{redacted}\" {redacted}=Bool(true)"),
            format!("instant t app/name of C a=\"open\" b=\"{redacted}\""),
            "begin app/virtual".to_owned(),
            "begin app/virtual".to_owned(),
            "instant t app/on a track".to_owned(),
        ]
    );
}

//= docs/recording.md#private-recordings
#[test]
fn messages_bytes_objects_and_alerts_have_no_texts_either() {
    let trace = private();
    let secret = secret();
    log!("app", "a literal");
    log!("app", "{secret} and more");
    blob!("app", "large", secret.as_bytes(), "note" => &secret);
    blob_attachment!("app", "attached", secret.as_bytes());
    blob_record!("app", 1, "piece", secret.as_bytes());
    kernel_object!("app", 9, Koid(77), &secret, "state" => "open", "path" => &secret);
    kernel_object!("app", 2, Koid(78), "a thread", "process" => Koid(1));
    // No thread of the system has this number.
    kernel_object!("app", 2, Koid(1 << 22), &secret, "process" => Koid(1));
    kernel_object!("app", 1, Koid(1 << 30), &secret);
    alert!("app", "open");
    alert!("app", &secret);
    assert!(!has(&trace, "secret"));
    assert_eq!(*ALERTS.lock().unwrap(), ["open", "secret"], "the manager may act on it");
    let read = trace.stop();
    assert_eq!(read.dropped(), 0);
    let all = read.dump.join("\n");
    for text in [
        "a literal",
        "(redacted)",
        "\"large\"",
        "\"attached\"",
        "\"piece\"",
        "state=\"open\"",
        "\"a thread\"",
    ] {
        assert!(all.contains(text), "{text}: {all}");
    }
    let alerts = ["instant t trace/alert name=\"open\"", "instant t trace/alert name=\"(redacted)\""];
    assert_eq!(read.lines(), alerts);
}

fn put(record: &Record<'_>) -> Vec<u64> {
    let mut words = [0; 64];
    let mut sink = SliceSink::new(&mut words);
    record.encode(&mut sink).unwrap();
    sink.words().to_vec()
}

/// Of records that were assembled by hand, what has an index was registered as a constant.
//= docs/recording.md#private-recordings
#[test]
fn records_by_hand_are_redacted() {
    let trace = private();
    assert!(ffi::is_private());
    let index = |index: Option<u16>| StringRef::Index(StringIndex::new(index.unwrap()).unwrap());
    let (constant, of_run) = (index(ffi::literal_index(b"constant")), index(ffi::string_index(b"secret")));
    let arguments = [
        Argument { name: StringRef::inline("secret"), value: ArgumentValue::String(constant) },
        Argument { name: constant, value: ArgumentValue::String(StringRef::inline("secret")) },
        Argument { name: of_run, value: ArgumentValue::Int32(-5) },
    ];
    let event = event::Event {
        timestamp: Ticks(5),
        thread: ffi::current_thread().unwrap(),
        category: constant,
        name: StringRef::inline("secret"),
        kind: EventKind::Counter { id: 3 },
        arguments: Arguments::new(&arguments),
    };
    let words = put(&Record::Event(event));
    ffi::write_record(&words);
    assert_eq!(ffi::try_write_record(&words), ffi::WriteResult::Done);
    let string = trace_format::string::StringRecord { index: 30_000, value: b"secret" };
    assert!(ffi::write_durable_record(&put(&Record::String(string))));
    assert!(!has(&trace, "secret"));
    let line =
        "counter 3 constant/(redacted) (redacted)=\"constant\" constant=\"(redacted)\" (redacted)=Int32(-5)";
    assert_eq!(shown(trace), [line, line]);
}

/// What a private recording has done to a site does not outlive it.
#[test]
fn the_next_recording_has_all_texts() {
    let write = |text: &str| instant!("app", "again", Scope::Thread, "text" => text);
    let trace = private();
    write("secret");
    assert_eq!(shown(trace), ["instant t app/again text=\"(redacted)\""]);
    let trace = Trace::start(1 << 20, &[]);
    assert!(!ffi::is_private());
    write("first");
    write("second");
    let lines = ["first", "second"].map(|text| format!("instant t app/again text=\"{text}\""));
    assert_eq!(shown(trace), lines);
}

/// A recording that is not private goes over to one that is.
#[test]
fn a_private_recording_takes_over() {
    let mut trace = Trace::start(1 << 20, &[]);
    let write = |text: &str| instant!("app", "over", Scope::Thread, "text" => text);
    write("before");
    let left = trace.go_over_with(|config| config.privacy = true);
    assert_eq!(left.lines(), ["instant t app/over text=\"before\""]);
    write("secret");
    assert!(!has(&trace, "secret"));
    assert_eq!(shown(trace), ["instant t app/over text=\"(redacted)\""]);
}
