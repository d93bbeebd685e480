//! What the scheduler did, large blobs, split output, filters.

use super::*;
use crate::filter::testing::filter;

const SWITCH: &str = "a8 00 02 00 30 00 00 10  b8 0b 00 00 00 00 00 00
    e9 03 00 00 00 00 00 00  ff 7f 00 00 00 00 00 00
    31 00 0f 80 14 00 00 00  6f 75 74 67 6f 69 6e 67  5f 77 65 69 67 68 74 00
    31 00 0f 80 00 00 00 80  69 6e 63 6f 6d 69 6e 67  5f 77 65 69 67 68 74 00";
const WAKEUP: &str = "88 00 12 00 00 00 00 20  a0 0f 00 00 00 00 00 00  e9 03 00 00 00 00 00 00
    21 00 06 80 14 00 00 00  77 65 69 67 68 74 00 00
    38 00 05 80 00 00 00 00  77 61 6b 65 72 00 00 00  4d 00 00 00 00 00 00 00";
const LEGACY: &str = "68 00 00 02 00 00 40 01  01 00 00 00 00 00 00 00  34 12 00 00 00 00 00 00
    21 43 00 00 00 00 00 00  e8 03 00 00 00 00 00 00  e9 03 00 00 00 00 00 00";
/// 1000 of thread 1001 to a thread that is not idle, without weights.
const PLAIN: &str =
    "48 00 00 00 10 00 00 10  e8 03 00 00 00 00 00 00  e9 03 00 00 00 00 00 00  ea 03 00 00 00 00 00 00";

const LEGACY_JSON: &str = r#"{"ph":"k","ts":0.041666666666666664,"cpu":0,"out":{"pid":4660,"tid":17185,"state":2,"prio":0},"in":{"pid":1000,"tid":1001,"prio":20}}"#;

//= docs/catapult.md#scheduling
#[test]
fn the_scheduler_comes_behind_the_names() {
    let system = [
        r#"{"ph":"p","pid":1000,"name":"shell"}"#,
        r#"{"ph":"t","pid":1000,"tid":1001,"name":"main"}"#,
        r#"{"ph":"k","ts":3.0,"cpu":0,"out":{"tid":1001,"state":3,"prio":20},"in":{"tid":32767,"prio":-2147483648}}"#,
        r#"{"ph":"w","ts":4.0,"cpu":1,"tid":1001,"prio":20}"#,
        r#"{"ph":"k","ts":1.0,"cpu":0,"out":{"tid":1001,"state":1},"in":{"tid":1002}}"#,
    ];
    let (text, summary) = convert_hex(&[NANOSECONDS, SWITCH, SHELL, MAIN, WAKEUP, PLAIN]);
    assert_eq!(text, document(&[], &system));
    assert_eq!(summary, Summary::default());
}

/// Both kinds in one file.
//= docs/catapult.md#document
#[test]
fn events_and_scheduling_stand_in_their_parts() {
    let hex: Vec<&str> = DURATION_24_MHZ.into_iter().chain([LEGACY]).collect();
    let events = [
        r#"{"cat":"test","name":"work","ts":0.041666666666666664,"pid":1000,"tid":1001,"ph":"B"}"#,
        r#"{"cat":"test","name":"work","ts":1.0416666666666665,"pid":1000,"tid":1001,"ph":"E"}"#,
    ];
    assert_eq!(convert_hex(&hex).0, document(&events, &[LEGACY_JSON]));
}

const FIDL_BLOB: &str = "cf 00 00 00 00 00 00 00  09 80 08 80 00 00 00 00
    66 69 64 6c 3a 62 6c 6f  62 00 00 00 00 00 00 00  42 6c 6f 62 4e 61 6d 65
    e8 03 00 00 00 00 00 00  2d 00 00 00 00 00 00 00  2e 00 00 00 00 00 00 00
    13 00 00 00 00 00 00 00
    73 6f 6d 65 20 74 65 73  74 20 62 6c 6f 62 20 64  61 74 61 00 00 00 00 00";
const FIDL_JSON: &str = r#"{"ph":"O","id":"","cat":"fidl:blob","name":"BlobName","ts":1.0,"pid":45,"tid":46,"blob":"c29tZSB0ZXN0IGJsb2IgZGF0YQ=="}"#;

//= docs/catapult.md#large-blobs
#[test]
fn a_large_blob_of_the_one_category_is_an_object() {
    assert_events(&[FIDL_BLOB], &[FIDL_JSON]);
    let other = FIDL_BLOB.replacen("66 69 64 6c", "46 69 64 6c", 1);
    let (text, summary) = convert_hex(&[&other]);
    assert_eq!(text, document(&[], &[]));
    assert_eq!(summary.skipped, [("large records".to_owned(), 1)]);
}

/// One that is larger than the reader's pieces: as if it had come in one.
//= docs/catapult.md#large-blobs
#[test]
fn a_very_large_blob_comes_in_pieces() {
    use base64::Engine;

    let payload: Vec<u8> = (0..3_000_001_u32).map(|number| (number % 251) as u8).collect();
    let mut record = bytes(&[FIDL_BLOB]);
    record.truncate(8 * 8);
    record.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    record.extend_from_slice(&payload);
    record.resize(record.len().next_multiple_of(8), 0);
    let words = record.len() as u64 / 8;
    record[..8].copy_from_slice(&(15 | words << 4).to_le_bytes());
    let mut output = Vec::new();
    convert(&[bytes(&[MAGIC]), record].concat()[..], &mut output).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let text = document["traceEvents"][0]["blob"].as_str().unwrap();
    assert!(base64::engine::general_purpose::STANDARD.decode(text).unwrap() == payload);
}

fn converted(hex: &[&str], options: Options<'_>) -> (String, Summary) {
    let mut output = Vec::new();
    let trace = [bytes(&[MAGIC]), bytes(hex)].concat();
    let summary = convert_with(&trace[..], &mut output, options).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

//= docs/catapult.md#split-output
#[test]
fn system_events_go_elsewhere_as_lines() {
    let hex = [NANOSECONDS, SHELL, WAKEUP, DURATION_24_MHZ[3]];
    let mut system = Vec::new();
    let options = Options { system_output: Some(&mut system), ..Options::default() };
    assert_eq!(converted(&hex, options).0, r#"{"displayTimeUnit":"ns","traceEvents":[]}"#);
    assert_eq!(
        String::from_utf8(system).unwrap(),
        "{\"ph\":\"p\",\"pid\":1000,\"name\":\"shell\"}\n{\"ph\":\"w\",\"ts\":4.0,\"cpu\":1,\"tid\":1001,\"prio\":20}\n"
    );
    let mut system = Vec::new();
    let options = Options { system_output: Some(&mut system), ..Options::default() };
    converted(&[NANOSECONDS], options);
    assert!(system.is_empty());
}

/// Much more than is kept in memory, in order.
//= docs/catapult.md#scheduling
#[test]
fn scheduling_that_does_not_fit_into_memory_waits_in_a_file() {
    const COUNT: u64 = 120_000;
    let mut trace = [bytes(&[MAGIC]), bytes(&[NANOSECONDS, SHELL])].concat();
    let record = bytes(&[WAKEUP]);
    for number in 0..COUNT {
        trace.extend_from_slice(&record[..8]);
        trace.extend_from_slice(&(number * 1000).to_le_bytes());
        trace.extend_from_slice(&record[16..]);
    }
    let mut output = Vec::new();
    convert(&trace[..], &mut output).unwrap();
    assert!(output.len() > 5 << 20);
    let document: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let events = document["systemTraceEvents"]["events"].as_array().unwrap();
    assert_eq!(events.len() as u64, COUNT + 1);
    assert!(events[1..].iter().zip(0..).all(|(event, number)| event["ts"] == f64::from(number)));
}

//= docs/catapult.md#filters
#[test]
fn events_are_filtered_and_the_rest_stays() {
    let hex: Vec<&str> = DURATION_24_MHZ.into_iter().chain([SHELL, LEGACY, FIDL_BLOB]).collect();
    let system = [r#"{"ph":"p","pid":1000,"name":"shell"}"#, LEGACY_JSON];
    let of = |filter| converted(&hex, Options { filter, ..Options::default() }).0;
    assert_eq!(of(filter(&["nothing"], &[])), document(&[], &system));
    let blob = FIDL_JSON.replace("\"ts\":1.0", "\"ts\":41.666666666666664");
    assert_eq!(of(filter(&["Blob.*"], &[])), document(&[&blob], &system));
    assert_eq!(of(filter(&[], &["test"])).matches("\"name\":\"work\"").count(), 2);
    assert_eq!(of(Filter::default()).matches("\"ph\":").count(), 5);
}
