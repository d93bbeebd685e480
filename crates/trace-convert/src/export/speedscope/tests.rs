//! Documents of small traces, and what their reader insists on.

use super::*;
use crate::export::folded;
use crate::export::threads::testing::{EVENTS, archive, empty, of_json, with_losses};
use serde_json::Value;

fn document(trace: Trace) -> (String, Summary) {
    let mut output = Vec::new();
    let summary = convert(trace, &mut output, Filter::default()).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

fn counts(list: &[(String, u64)]) -> Vec<(&str, u64)> {
    list.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

/// Begins and ends of a profile as text.
fn steps(profile: &Value, frames: &Value) -> String {
    let steps = profile["events"].as_array().unwrap().iter().map(|event| {
        let sign = if event["type"] == "O" { '+' } else { '-' };
        let frame = &frames[event["frame"].as_u64().unwrap() as usize];
        format!("{sign}{} {}", frame["name"].as_str().unwrap(), event["at"])
    });
    steps.collect::<Vec<_>>().join(", ")
}

//= docs/speedscope.md#document
#[test]
fn only_selected_slices_are_there() {
    let mut output = Vec::new();
    let filter = crate::filter::testing::filter(&["inner|second"], &[]);
    let summary = convert(of_json(EVENTS), &mut output, filter).unwrap();
    let document: Value = serde_json::from_slice(&output).unwrap();
    let (profiles, frames) = (document["profiles"].as_array().unwrap(), &document["shared"]["frames"]);
    let shown: Vec<String> = profiles.iter().map(|profile| steps(profile, frames)).collect();
    let main = "+inner 0, -inner 3000, +second 23000, -second 33000, +inner 39000, -inner 40000";
    assert_eq!((shown, summary.events), (vec![main.to_owned()], 3));
}

//= docs/speedscope.md#document
#[test]
fn each_thread_has_a_profile_of_its_slices() {
    let (text, summary) = document(of_json(EVENTS));
    let document: Value = serde_json::from_str(&text).unwrap();
    let (profiles, frames) = (document["profiles"].as_array().unwrap(), &document["shared"]["frames"]);
    let shown: Vec<_> =
        profiles.iter().map(|profile| (profile["name"].as_str().unwrap(), steps(profile, frames))).collect();
    let main = "+outer 5000, +inner 7000, +leaf 8000, -leaf 8500, -inner 10000, -outer 15000, +first 25000, \
                -first 35000, +open 45000, +inner 46000, -inner 47000, -open 59000";
    let expected = [
        ("app 1 / main 2", main),
        ("app 1 / main 2 (overlapping, 2)", "+second 30000, -second 40000"),
        ("app 1 / thread 3", "+other 0, -other 1000"),
        ("process 9 / thread 9", "+a;b 7  55000, -a;b 7  59000"),
    ];
    assert_eq!(shown, expected.map(|(name, steps)| (name, steps.to_owned())));
    for profile in profiles {
        let values = ["unit", "startValue", "endValue", "type"].map(|member| profile[member].to_string());
        assert_eq!(values, ["\"nanoseconds\"", "0", "59000", "\"evented\""]);
    }
    assert_eq!(document["activeProfileIndex"], 0);
    assert_eq!(frames[2].to_string(), r#"{"file":"d","name":"leaf"}"#);
    assert_eq!((document["name"].as_str(), summary.events), (Some("a.fxt"), 9));
    let skipped = [
        ("asynchronous operations", 1),
        ("counter values", 2),
        ("flow events", 2),
        ("instants", 1),
        ("sets of arguments", 1),
    ];
    assert_eq!(counts(&summary.skipped), skipped);
    let remarks = [
        ("slices without an end: until the trace ends", 1),
        ("slices that overlap others: in further profiles of their threads", 1),
    ];
    assert_eq!(counts(&summary.remarks), remarks);
}

//= docs/speedscope.md#document
#[test]
fn a_document_is_written_to_the_letter() {
    let events = r##"{"ph":"X","ts":1.5,"dur":2,"pid":1,"tid":2,"cat":"c\u001f","name":"<\"é\">"}"##;
    let expected = [
        r##"{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"trace VERSION","name":"a.fxt","##,
        r##""profiles":[{"type":"evented","name":"process 1 / thread 2","unit":"nanoseconds","startValue":0,"##,
        r##""endValue":2000,"events":[{"type":"O","frame":1,"at":0},{"type":"C","frame":1,"at":2000}]}],"##,
        r##""activeProfileIndex":0,"shared":{"frames":[{"name":"<too many names>"},"##,
        r##"{"name":"<\"é\">","file":"c\u001F"}]}}"##,
    ];
    assert_eq!(document(of_json(events)).0, expected.concat().replace("VERSION", env!("CARGO_PKG_VERSION")));
    let nothing = document(empty());
    assert!(nothing.0.contains(r#""profiles":[],"activeProfileIndex":0"#), "{}", nothing.0);
    assert_eq!(nothing.1, Summary::default());
}

//= docs/speedscope.md#samples
#[test]
fn samples_of_a_thread_are_a_profile_in_which_each_counts_as_one() {
    let (text, summary) = document(archive(folded::testing::trace()));
    let document: Value = serde_json::from_str(&text).unwrap();
    let profile = &document["profiles"][0];
    let frames = &document["shared"]["frames"];
    let stacks: Vec<Vec<&str>> = profile["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stack| {
            stack
                .as_array()
                .unwrap()
                .iter()
                .map(|frame| frames[frame.as_u64().unwrap() as usize]["name"].as_str().unwrap())
                .collect()
        })
        .collect();
    let second = ["main", "a;b\nc", "vfs_read"];
    assert_eq!(stacks, [&["main"][..], &second, &second]);
    assert_eq!(profile["weights"].to_string(), "[1,1,1]");
    let values = ["type", "name", "unit", "startValue", "endValue"].map(|member| profile[member].to_string());
    assert_eq!(values, ["\"sampled\"", "\"process 7 / thread 8 (samples)\"", "\"none\"", "0", "3"]);
    assert_eq!((summary.events, summary.skipped), (3, Vec::new()));
}

/// Rows come in the order of ends, so times go back, and many slices overlap.
#[test]
fn whatever_overlaps_every_profile_is_balanced_and_every_slice_is_in_one() {
    let mut events = Vec::new();
    for number in (0..20).rev() {
        events.push(format!(
            r#"{{"ph":"X","ts":{},"dur":100,"pid":1,"tid":1,"name":"n{number}"}}"#,
            1000 + number
        ));
    }
    let (text, summary) = document(of_json(&events.join(",")));
    let document: Value = serde_json::from_str(&text).unwrap();
    let frames = &document["shared"]["frames"];
    let profiles = document["profiles"].as_array().unwrap();
    let shown: Vec<String> = profiles.iter().map(|profile| steps(profile, frames)).collect();
    let expected = (0..20).map(|number| format!("+n{number} {number}000, -n{number} {}000", number + 100));
    assert_eq!(shown, expected.map(|line| line.replace("+n0 0000", "+n0 0")).collect::<Vec<_>>());
    assert_eq!((summary.skipped, summary.events), (Vec::new(), 20));
    assert_eq!(summary.remarks[0].1, 19);
}

//= docs/speedscope.md#document
#[test]
fn losses_are_in_the_name() {
    let (text, summary) = document(with_losses(EVENTS));
    assert!(text.contains(r#""name":"a.fxt (16 lost)""#), "{text}");
    let said = ("records are missing in the trace: the name of the document says so".to_owned(), 16);
    assert_eq!(summary.remarks.last(), Some(&said));
}
