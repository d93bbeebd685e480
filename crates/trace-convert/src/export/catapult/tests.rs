mod chrome;
mod system;

use super::*;
use trace_format::units::{Ticks, TicksPerSecond};
use trace_reader::ReadError;

const MAGIC: &str = "10 00 04 46 78 54 16 00";
/// 10⁹ ticks per second.
const NANOSECONDS: &str = "21 00 00 00 00 00 00 00  00 ca 9a 3b 00 00 00 00";
/// Thread 1 is thread 6 of process 5.
const THREAD: &str = "33 00 01 00 00 00 00 00  05 00 00 00 00 00 00 00  06 00 00 00 00 00 00 00";

fn bytes(hex: &[&str]) -> Vec<u8> {
    let digits = hex.iter().flat_map(|line| line.split_whitespace());
    digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Converts an archive with these records behind the magic number.
fn convert_hex(hex: &[&str]) -> (String, Summary) {
    let trace = [bytes(&[MAGIC]), bytes(hex)].concat();
    let mut output = Vec::new();
    let summary = convert(&trace[..], &mut output).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

fn document(events: &[&str], system: &[&str]) -> String {
    let (events, system) = (events.join(","), system.join(","));
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{events}],\"systemTraceEvents\":{{\"type\":\"fuchsia\",\
         \"events\":[{system}]}}}}"
    )
}

/// The records give exactly these events, and nothing else happens.
fn assert_events(hex: &[&str], events: &[&str]) {
    let (text, summary) = convert_hex(hex);
    assert_eq!(text, document(events, &[]));
    assert_eq!(summary, Summary { events: events.len() as u64, ..Summary::default() });
}

//= docs/catapult.md#document
#[test]
fn an_archive_without_records_is_a_document() {
    assert_events(&[], &[]);
    let empty =
        r#"{"displayTimeUnit":"ns","traceEvents":[],"systemTraceEvents":{"type":"fuchsia","events":[]}}"#;
    assert_eq!(convert_hex(&[]).0, empty);
}

const DURATION_24_MHZ: [&str; 6] = [
    "21 00 00 00 00 00 00 00  00 36 6e 01 00 00 00 00",
    "22 00 01 00 04 00 00 00  74 65 73 74 00 00 00 00",
    "22 00 02 00 04 00 00 00  77 6f 72 6b 00 00 00 00",
    "33 00 01 00 00 00 00 00  e8 03 00 00 00 00 00 00  e9 03 00 00 00 00 00 00",
    "24 00 02 01 01 00 02 00  01 00 00 00 00 00 00 00",
    "24 00 03 01 01 00 02 00  19 00 00 00 00 00 00 00",
];

//= docs/catapult.md#events
#[test]
fn durations_with_references_at_24_mhz() {
    let events = [
        r#"{"cat":"test","name":"work","ts":0.041666666666666664,"pid":1000,"tid":1001,"ph":"B"}"#,
        r#"{"cat":"test","name":"work","ts":1.0416666666666665,"pid":1000,"tid":1001,"ph":"E"}"#,
    ];
    assert_events(&DURATION_24_MHZ, &events);
}

#[test]
fn a_complete_duration_has_its_length() {
    let hex = [
        NANOSECONDS,
        "b4 00 24 00 03 80 04 80  e8 03 00 00 00 00 00 00",
        "e8 03 00 00 00 00 00 00  e9 03 00 00 00 00 00 00",
        "61 70 70 00 00 00 00 00  64 72 61 77 00 00 00 00",
        "21 00 01 80 ff ff ff ff  69 00 00 00 00 00 00 00",
        "22 00 01 80 ff ff ff ff  75 00 00 00 00 00 00 00",
        "ac 0d 00 00 00 00 00 00",
    ];
    let event = r#"{"cat":"app","name":"draw","ts":1.0,"pid":1000,"tid":1001,"ph":"X","dur":2.5,"args":{"i":-1,"u":4294967295}}"#;
    assert_events(&hex, &[event]);
}

//= docs/catapult.md#arguments
#[test]
fn every_argument_type_has_its_form() {
    let hex = [
        "33 00 01 00 00 00 00 00  07 00 00 00 00 00 00 00  08 00 00 00 00 00 00 00",
        "14 02 a0 01 01 80 01 80  00 00 00 00 00 00 00 00",
        "61 00 00 00 00 00 00 00  6b 00 00 00 00 00 00 00",
        "20 00 01 80 00 00 00 00  6e 00 00 00 00 00 00 00",
        "33 00 03 80 00 00 00 00  69 36 34 00 00 00 00 00  00 00 00 00 00 00 00 80",
        "34 00 03 80 00 00 00 00  75 36 34 00 00 00 00 00  ff ff ff ff ff ff ff ff",
        "35 00 01 80 00 00 00 00  64 00 00 00 00 00 00 00  9a 99 99 99 99 99 b9 3f",
        "35 00 01 80 00 00 00 00  65 00 00 00 00 00 00 00  00 00 00 00 00 00 08 40",
        "36 00 01 80 03 80 00 00  73 00 00 00 00 00 00 00  78 22 79 00 00 00 00 00",
        "37 00 01 80 00 00 00 00  70 00 00 00 00 00 00 00  ef be ad de 00 00 00 00",
        "38 00 02 80 00 00 00 00  6b 6f 00 00 00 00 00 00  34 12 00 00 00 00 00 00",
        "29 00 01 80 01 00 00 00  62 00 00 00 00 00 00 00",
        "3a 00 02 80 03 00 00 00  62 6c 00 00 00 00 00 00  01 02 03 00 00 00 00 00",
        "00 00 00 00 00 00 00 00",
    ];
    let event = r##"{"cat":"a","name":"k","ts":0.0,"pid":7,"tid":8,"ph":"i","s":"t","args":{"i64":-9223372036854775808,"u64":18446744073709551615,"d":0.1,"e":3.0,"s":"x\"y","p":"0xdeadbeef","ko":"#4660","b":true,"bl":"AQID"}}"##;
    assert_events(&hex, &[event]);
}

//= docs/catapult.md#arguments
#[test]
fn arguments_without_a_value_leave_an_empty_object_or_none() {
    let head = "54 00 10 01 00 00 01 80  f4 01 00 00 00 00 00 00  69 00 00 00 00 00 00 00";
    let null = "10 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00";
    let event = r#"{"cat":"","name":"i","ts":0.5,"pid":5,"tid":6,"ph":"i","s":"t","args":{}}"#;
    assert_events(&[THREAD, head, null], &[event]);
    let unknown = "1b 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00";
    let (text, summary) = convert_hex(&[THREAD, head, unknown]);
    assert_eq!(text, document(&[&event.replace(",\"args\":{}", "")], &[]));
    assert_eq!(summary.skipped, [("arguments of unknown type".to_owned(), 1)]);
}

#[test]
fn instants_have_scopes() {
    let head =
        "54 00 00 01 01 80 01 80  f4 01 00 00 00 00 00 00  63 00 00 00 00 00 00 00  69 00 00 00 00 00 00 00";
    let hex = [
        NANOSECONDS,
        THREAD,
        head,
        "02 00 00 00 00 00 00 00",
        head,
        "01 00 00 00 00 00 00 00",
        head,
        "00 00 00 00 00 00 00 00",
    ];
    let events = [
        r#"{"cat":"c","name":"i","ts":0.5,"pid":5,"tid":6,"ph":"i","s":"g"}"#,
        r#"{"cat":"c","name":"i","ts":0.5,"pid":5,"tid":6,"ph":"i","s":"p"}"#,
        r#"{"cat":"c","name":"i","ts":0.5,"pid":5,"tid":6,"ph":"i","s":"t"}"#,
    ];
    assert_events(&hex, &events);
}

#[test]
fn counters_have_an_id_unless_it_is_0() {
    let names = "d0 07 00 00 00 00 00 00  6d 65 6d 00 00 00 00 00  68 65 61 70 00 00 00 00";
    let used = "34 00 04 80 00 00 00 00  75 73 65 64 00 00 00 00  0a 00 00 00 00 00 00 00";
    let free = "35 00 04 80 00 00 00 00  66 72 65 65 00 00 00 00  00 00 00 00 00 00 04 40";
    let hex = [
        NANOSECONDS,
        THREAD,
        "b4 00 21 01 03 80 04 80",
        names,
        used,
        free,
        "00 00 00 00 00 00 00 00",
        "84 00 11 01 03 80 04 80",
        names,
        used,
        "ff 00 00 00 00 00 00 00",
    ];
    let events = [
        r#"{"cat":"mem","name":"heap","ts":2.0,"pid":5,"tid":6,"ph":"C","args":{"used":10,"free":2.5}}"#,
        r#"{"cat":"mem","name":"heap","ts":2.0,"pid":5,"tid":6,"ph":"C","id":"0xff","args":{"used":10}}"#,
    ];
    assert_events(&hex, &events);
}

#[test]
fn async_ids_are_numbers() {
    let names = "69 6f 00 00 00 00 00 00  72 65 61 64 00 00 00 00";
    let hex = [
        NANOSECONDS,
        THREAD,
        "54 00 05 01 02 80 04 80  e8 03 00 00 00 00 00 00",
        names,
        "01 00 00 00 00 00 00 00",
        "74 00 16 01 02 80 04 80  dc 05 00 00 00 00 00 00",
        names,
        "22 00 01 80 03 00 00 00  6e 00 00 00 00 00 00 00",
        "01 00 00 00 00 00 00 00",
        "54 00 07 01 02 80 04 80  d0 07 00 00 00 00 00 00",
        names,
        "01 00 00 00 00 00 00 00",
        "54 00 05 01 02 80 04 80  e8 03 00 00 00 00 00 00",
        names,
        "01 00 00 00 00 00 00 80",
    ];
    let events = [
        r#"{"cat":"io","name":"read","ts":1.0,"pid":5,"tid":6,"ph":"b","id":1}"#,
        r#"{"cat":"io","name":"read","ts":1.5,"pid":5,"tid":6,"ph":"n","id":1,"args":{"n":3}}"#,
        r#"{"cat":"io","name":"read","ts":2.0,"pid":5,"tid":6,"ph":"e","id":1}"#,
        r#"{"cat":"io","name":"read","ts":1.0,"pid":5,"tid":6,"ph":"b","id":9223372036854775809}"#,
    ];
    assert_events(&hex, &events);
}

#[test]
fn flow_ids_are_text() {
    let names = "69 70 63 00 00 00 00 00  63 61 6c 6c 00 00 00 00  01 00 00 00 00 00 00 80";
    let hex = [
        NANOSECONDS,
        THREAD,
        "54 00 08 01 03 80 04 80  e8 03 00 00 00 00 00 00",
        names,
        "54 00 09 01 03 80 04 80  4c 04 00 00 00 00 00 00",
        names,
        "54 00 0a 01 03 80 04 80  b0 04 00 00 00 00 00 00",
        names,
    ];
    let events = [
        r#"{"cat":"ipc","name":"call","ts":1.0,"pid":5,"tid":6,"ph":"s","id":"9223372036854775809"}"#,
        r#"{"cat":"ipc","name":"call","ts":1.1,"pid":5,"tid":6,"ph":"t","id":"9223372036854775809"}"#,
        r#"{"cat":"ipc","name":"call","ts":1.2,"pid":5,"tid":6,"ph":"f","bp":"e","id":"9223372036854775809"}"#,
    ];
    assert_events(&hex, &events);
}

const SHELL: &str = "37 00 01 05 80 00 00 00  e8 03 00 00 00 00 00 00  73 68 65 6c 6c 00 00 00";
const MAIN: &str = "67 00 02 04 80 01 00 00  e9 03 00 00 00 00 00 00  6d 61 69 6e 00 00 00 00
                    38 00 07 80 00 00 00 00  70 72 6f 63 65 73 73 00  e8 03 00 00 00 00 00 00";

//= docs/catapult.md#names
#[test]
fn names_come_sorted_and_the_longest_stays() {
    let hex = [
        MAIN,
        SHELL,
        "37 00 01 02 80 00 00 00  e8 03 00 00 00 00 00 00  73 68 00 00 00 00 00 00", // "sh" for the shell
        "37 00 01 01 80 00 00 00  09 00 00 00 00 00 00 00  61 00 00 00 00 00 00 00", // "a", then "bb"
        "37 00 01 02 80 00 00 00  09 00 00 00 00 00 00 00  62 62 00 00 00 00 00 00",
        "37 00 01 06 80 00 00 00  00 00 00 00 00 00 00 00  6b 65 72 6e 65 6c 00 00",
        "37 00 02 01 80 00 00 00  07 00 00 00 00 00 00 00  74 00 00 00 00 00 00 00", // thread of no process
        "37 00 04 01 80 00 00 00  07 00 00 00 00 00 00 00  63 00 00 00 00 00 00 00", // channel
    ];
    let system = [
        r#"{"ph":"p","pid":0,"name":"kernel","sort_index":-1}"#,
        r#"{"ph":"p","pid":9,"name":"bb"}"#,
        r#"{"ph":"p","pid":1000,"name":"shell"}"#,
        r#"{"ph":"t","pid":1000,"tid":1001,"name":"main"}"#,
    ];
    let (text, summary) = convert_hex(&hex);
    assert_eq!(text, document(&[], &system));
    assert_eq!(summary.skipped, [("kernel objects that are no process or thread".to_owned(), 1)]);
}

//= docs/catapult.md#log-records
#[test]
fn a_log_record_is_an_instant() {
    let hex = [
        NANOSECONDS,
        THREAD,
        "49 00 09 00 01 00 00 00  dc 05 00 00 00 00 00 00  64 69 73 6b 20 66 75 6c  6c 00 00 00 00 00 00 00",
    ];
    let event = r#"{"name":"log","ph":"i","ts":1.5,"pid":5,"tid":6,"s":"g","args":{"message":"disk full"}}"#;
    assert_events(&hex, &[event]);
}

//= docs/catapult.md#strings
#[test]
fn invalid_utf8_is_replaced() {
    let hex = [
        THREAD,
        "44 00 02 01 05 80 06 80  e8 03 00 00 00 00 00 00  63 e2 82 61 74 00 00 00  6e c1 61 85 6d 65 00 00",
    ];
    let event = "{\"cat\":\"c\u{fffd}at\",\"name\":\"n\u{fffd}a\u{fffd}me\",\"ts\":1.0,\"pid\":5,\"tid\":6,\"ph\":\"B\"}";
    assert_events(&hex, &[event]);
}

//= docs/catapult.md#left-out
#[test]
fn what_has_no_place_is_counted_by_name() {
    let hex = [
        "10 00 13 00 00 00 00 00",                          // buffer of provider 1 full
        "25 00 00 00 01 00 01 00  61 00 00 00 00 00 00 00", // blob
        "36 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  05 00 00 00 00 00 00 00", // userspace object
        "48 00 00 00 30 00 00 30  01 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00  03 00 00 00 00 00 00 00",
        "4a 00 02 00 00 00 00 00  01 00 00 00 00 00 00 00  05 00 00 00 00 00 00 00  06 00 00 00 00 00 00 00",
        "3f 00 00 00 00 01 00 00  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00", // large
        "1b 00 00 00 00 00 00 00  1b 00 00 00 00 00 00 00", // types of a newer version
        "44 00 0b 00 00 00 00 00  01 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00  03 00 00 00 00 00 00 00",
    ];
    let (text, summary) = convert_hex(&hex);
    assert_eq!(text, document(&[], &[]));
    let expected = [
        ("blobs", 1),
        ("events of unknown type", 1),
        ("fiber switches", 1),
        ("large records", 1),
        ("profiler records", 1),
        ("program events", 1),
        ("records of unknown type", 2),
        ("userspace objects", 1),
    ];
    assert_eq!(summary.skipped, expected.map(|(kind, count)| (kind.to_owned(), count)));
    assert_eq!((summary.events, summary.warnings), (0, 0));
}

//= docs/deviations.md#json
#[test]
fn a_provider_keeps_its_own_rate() {
    let instant =
        "44 00 00 00 00 00 00 00  e8 03 00 00 00 00 00 00  05 00 00 00 00 00 00 00  06 00 00 00 00 00 00 00";
    let hex = [
        "10 00 11 00 00 00 00 00", // provider 1, a megahertz
        "21 00 00 00 00 00 00 00  40 42 0f 00 00 00 00 00",
        "10 00 21 00 00 00 00 00", // provider 2, a gigahertz
        NANOSECONDS,
        instant,
        "10 00 12 00 00 00 00 00", // provider 1 again
        instant,
    ];
    let (text, summary) = convert_hex(&hex);
    let events = [
        r#"{"cat":"","name":"","ts":1.0,"pid":5,"tid":6,"ph":"i","s":"t"}"#,
        r#"{"cat":"","name":"","ts":1000.0,"pid":5,"tid":6,"ph":"i","s":"t"}"#,
    ];
    assert_eq!(text, document(&events, &[]));
    assert_eq!(summary.first_warnings, ["events have been timed with different tick rates"]);
    assert_eq!(summary.warnings, 1);
}

//= docs/deviations.md#json
#[test]
fn a_duration_that_ends_before_it_begins_has_no_length() {
    let hex = [
        "54 00 04 00 00 00 00 00  e8 03 00 00 00 00 00 00  05 00 00 00 00 00 00 00  06 00 00 00 00 00 00 00",
        "e7 03 00 00 00 00 00 00",
    ];
    let (text, summary) = convert_hex(&hex);
    let event = r#"{"cat":"","name":"","ts":1.0,"pid":5,"tid":6,"ph":"X","dur":0.0}"#;
    assert_eq!(text, document(&[event], &[]));
    assert_eq!(summary.first_warnings, ["byte 8: ends at 999 ticks, before it begins at 1000 ticks"]);
}

//= docs/deviations.md#json
#[test]
fn what_is_not_defined_is_shown_as_unknown() {
    let (text, summary) = convert_hex(&["24 00 02 01 01 00 02 00  e8 03 00 00 00 00 00 00"]);
    let event = r#"{"cat":"<unknown>","name":"<unknown>","ts":1.0,"pid":0,"tid":0,"ph":"B"}"#;
    assert_eq!(text, document(&[event], &[]));
    assert_eq!(summary.warnings, 3);
}

//= docs/catapult.md#damaged-archives
#[test]
fn a_damaged_archive_gives_a_whole_document() {
    let begin = &DURATION_24_MHZ[..5];
    let event = r#"{"cat":"test","name":"work","ts":0.041666666666666664,"pid":1000,"tid":1001,"ph":"B"}"#;
    // Cut in the middle of the last event.
    let cut = [begin, &["24 00 03 01 01 00 02 00  19 00"]].concat();
    let (text, summary) = convert_hex(&cut);
    assert_eq!(text, document(&[event], &[]));
    assert_eq!(summary.first_warnings, ["byte 96: the input ends after 10 bytes of it"]);
    // A record without a size.
    let lost = [begin, &["04 00 03 01 01 00 02 00"]].concat();
    let trace = [bytes(&[MAGIC]), bytes(&lost)].concat();
    let mut output = Vec::new();
    let summary = convert(&trace[..], &mut output).unwrap();
    assert!(matches!(summary.stopped.unwrap().error(), ReadError::NoSize { .. }));
    assert_eq!(String::from_utf8(output).unwrap(), document(&[event], &[]));
    // The same, with an archive behind it.
    let resumed = [begin, &["04 00 03 01 01 00 02 00", MAGIC], begin].concat();
    let (text, summary) = convert_hex(&resumed);
    assert_eq!(text, document(&[event, event], &[]));
    assert_eq!(summary.first_warnings, ["byte 96: 8 damaged bytes skipped"]);
}

//= docs/catapult.md#damaged-archives
#[test]
fn what_is_no_archive_gives_no_output() {
    let mut output = Vec::new();
    let error = convert(&b"{\"traceEvents\":[]}"[..], &mut output).unwrap_err();
    assert_eq!(error.to_string(), "expected a Fuchsia trace, found what looks like JSON");
    assert!(output.is_empty());
}

#[test]
fn output_that_fails_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert!(matches!(convert(&bytes(&[MAGIC])[..], Full), Err(ConvertError::Write(_))));
}

/// What is written for a time, and the nanosecond that it stands for.
fn time(ticks: u64, rate: u64) -> (String, u64) {
    let rate = TicksPerSecond::new(rate).unwrap();
    let mut hex = bytes(&[MAGIC, "21 00 00 00 00 00 00 00"]);
    hex.extend(rate.0.get().to_le_bytes());
    hex.extend(bytes(&["44 00 00 00 00 00 00 00"]));
    hex.extend(ticks.to_le_bytes());
    hex.extend([0; 16]);
    let mut output = Vec::new();
    convert(&hex[..], &mut output).unwrap();
    let text = String::from_utf8(output).unwrap();
    let (_, text) = text.split_once("\"ts\":").unwrap();
    (text.split(',').next().unwrap().to_owned(), Ticks(ticks).to_nanos(rate).0)
}

//= docs/catapult.md#numbers
#[test]
fn times_are_fuchsias_doubles_while_these_are_exact() {
    for (ticks, rate, text) in [
        (12_000_005, 24_000_000, "500000.2083333333"),
        (62_208_000_000_007, 24_000_000, "2592000000000.2915"),
        (1_124_610_290_239_000, 1_000_000_000, "1124610290239.0"),
        (3, 1_000_000_000, "0.003"),
        // 113 days: neighbouring nanoseconds are the same double.
        (9_800_000_000_000_001, 1_000_000_000, "9800000000000.001"),
        (9_800_000_000_000_000, 1_000_000_000, "9800000000000.0"),
        (9_800_000_000_000_010, 1_000_000_000, "9800000000000.01"),
        (u64::MAX, 1_000_000_000, "18446744073709550.0"),
        (u64::MAX - 1, 1_000_000_000, "18446744073709551.614"),
        (u64::MAX, 1, "1.8446744073709552e25"),
    ] {
        assert_eq!(time(ticks, rate).0, text);
    }
}

//= docs/catapult.md#numbers
#[test]
fn times_lead_back_to_their_nanosecond_at_any_age() {
    for start in [0, 1 << 40, 1 << 50, 1 << 52, 1 << 53, 1 << 58, (1 << 63) - 1000] {
        for ticks in start..start + 500 {
            let (text, nanos) = time(ticks, 1_000_000_000);
            let (whole, fraction) = text.split_once('.').unwrap();
            let thousandths: f64 = format!("0.{fraction}").parse().unwrap();
            let back = whole.parse::<u64>().unwrap() * 1000 + (thousandths * 1000.0).round() as u64;
            assert_eq!(back, nanos, "{text}");
        }
    }
}

#[test]
fn a_larger_trace_parses_to_its_values() {
    let mut trace = bytes(&[MAGIC, NANOSECONDS, THREAD]);
    let count = 5_000_u64;
    for number in 0..count {
        // A counter without names: its id, argument and time give its number.
        trace.extend((4 | (7 << 4) | (1 << 16) | (1 << 20) | (1 << 24) | (0x8001_u64 << 48)).to_le_bytes());
        trace.extend((number * 1000).to_le_bytes());
        trace.extend(bytes(&["78 00 00 00 00 00 00 00", "34 00 01 80 00 00 00 00  76 00 00 00 00 00 00 00"]));
        trace.extend((u64::MAX - number).to_le_bytes());
        trace.extend((number + 1).to_le_bytes());
    }
    let mut output = Vec::new();
    let summary = convert(&trace[..], &mut output).unwrap();
    assert_eq!(summary, Summary { events: count, ..Summary::default() });
    let document: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    assert_eq!(events.len() as u64, count);
    for (number, event) in (0..count).zip(events) {
        let expected = serde_json::json!({
            "cat": "", "name": "x", "ts": number as f64, "pid": 5, "tid": 6, "ph": "C",
            "id": format!("{:#x}", number + 1), "args": {"v": u64::MAX - number},
        });
        assert_eq!(*event, expected);
    }
}
