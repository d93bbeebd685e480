//! Profiles of small traces.

use super::*;
use crate::export::folded;
use crate::export::threads::testing::{EVENTS, archive, empty, of_json, with_losses};
use serde_json::{Value, json};

fn document(trace: Trace) -> (Value, Summary) {
    let mut output = Vec::new();
    let summary = convert(trace, &mut output, Filter::default()).unwrap();
    (serde_json::from_slice(&output).unwrap(), summary)
}

fn counts(list: &[(String, u64)]) -> Vec<(&str, u64)> {
    list.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

fn string(document: &Value, number: &Value) -> String {
    document["shared"]["stringArray"][number.as_u64().unwrap() as usize].as_str().unwrap().to_owned()
}

/// The markers of a thread: name, phase, begin, end, category, and what its schema says of its data.
fn markers(document: &Value, thread: &Value) -> Vec<String> {
    let markers = &thread["markers"];
    let count = markers["length"].as_u64().unwrap() as usize;
    for column in ["data", "name", "startTime", "endTime", "phase", "category"] {
        assert_eq!(markers[column].as_array().unwrap().len(), count, "{column}");
    }
    let text = |place: usize| {
        let of = |column: &str| &markers[column][place];
        let data = of("data");
        let schemas = document["meta"]["markerSchema"].as_array().unwrap();
        let schema = schemas.iter().find(|schema| schema["name"] == data["type"]).unwrap();
        let fields = schema["fields"].as_array().unwrap().iter().map(|field| {
            let value = &data[field["key"].as_str().unwrap()];
            let format = field["format"].as_str().unwrap();
            let value = if format.contains("flow") { json!(string(document, value)) } else { value.clone() };
            format!("{}={value} ({format})", field["label"].as_str().unwrap())
        });
        let fields = fields.collect::<Vec<_>>().join(", ");
        let category = &document["meta"]["categories"][of("category").as_u64().unwrap() as usize]["name"];
        let nested = if schema["isStackBased"] == true { " nested" } else { "" };
        format!(
            "{} {} {}..{} {} {}{nested} [{fields}]",
            string(document, of("name")),
            of("phase"),
            of("startTime"),
            of("endTime"),
            category.as_str().unwrap(),
            data["type"].as_str().unwrap().rsplit_once(' ').unwrap().0,
        )
    };
    (0..count).map(text).collect()
}

/// The samples of a thread: time, weight and stack.
fn samples(document: &Value, thread: &Value) -> Vec<String> {
    let samples = &thread["samples"];
    let count = samples["length"].as_u64().unwrap() as usize;
    for column in ["stack", "time"] {
        assert_eq!(samples[column].as_array().unwrap().len(), count, "{column}");
    }
    let (stacks, frames, functions) = (&thread["stackTable"], &thread["frameTable"], &thread["funcTable"]);
    let text = |place: usize| {
        let mut names = Vec::new();
        let mut stack = samples["stack"][place].clone();
        while let Some(number) = stack.as_u64().map(|number| number as usize) {
            let frame = stacks["frame"][number].as_u64().unwrap() as usize;
            let function = frames["func"][frame].as_u64().unwrap() as usize;
            names.push(string(document, &functions["name"][function]));
            stack = stacks["prefix"][number].clone();
        }
        names.reverse();
        format!("{} {} {}", samples["time"][place], samples["weight"][place], names.join(";"))
    };
    (0..count).map(text).collect()
}

//= docs/firefox.md#threads
#[test]
fn what_is_on_a_thread_is_a_marker() {
    let (document, summary) = document(of_json(EVENTS));
    let threads = document["threads"].as_array().unwrap();
    let heads: Vec<String> = threads
        .iter()
        .map(|thread| {
            ["processName", "pid", "name", "tid", "isMainThread"]
                .map(|member| thread[member].to_string())
                .join(" ")
        })
        .collect();
    let expected = [
        r#""app" "1" "main" 2 true"#,
        r#""app" "1" "thread 3" 3 false"#,
        r#""process 9" "9" "thread 9" 9 true"#,
    ];
    assert_eq!(heads, expected);
    let main = [
        r#"outer 1 0.005..0.015 c slice nested [a=1 (integer), b="x" (string)]"#,
        "inner 1 0.007..0.01 c slice nested []",
        "leaf 1 0.008..0.0085 d slice nested []",
        r#"go 0 0.009..null c flow begin [flow="0x9" (flow-id)]"#,
        "first 1 0.025..0.035 c slice nested []",
        r#"go 0 0.026..null c flow end [flow="0x9" (terminating-flow-id)]"#,
        "second 1 0.03..0.04 c slice []",
        "open 2 0.045..null c slice nested []",
        "inner 1 0.046..0.047 c slice nested []",
    ];
    assert_eq!(markers(&document, &threads[0]), main);
    let third = [
        "other 1 0..0.001 c slice nested []",
        "job 1 0.001..0.004 c operation [id=7 (integer)]",
        "now 0 0.002..null c instant [n=1.5 (decimal)]",
    ];
    assert_eq!(markers(&document, &threads[1]), third);
    assert_eq!(markers(&document, &threads[2]), ["a;b 7  1 0.055..0.059 c slice nested []"]);
    assert_eq!((summary.events, summary.skipped), (15, Vec::new()));
    let remarks = [
        ("slices without an end: markers of their begins", 1),
        ("slices that overlap others: markers, and in no stack", 1),
    ];
    assert_eq!(counts(&summary.remarks), remarks);
}

//= docs/firefox.md#samples
#[test]
fn slices_are_samples_with_their_own_time_as_weight() {
    let (document, _) = document(of_json(EVENTS));
    let thread = &document["threads"][0];
    assert_eq!(thread["samples"]["weightType"], "tracing-ms");
    let expected = [
        "0.005 0.002 outer",
        "0.007 0.001 outer;inner",
        "0.008 0.0005 outer;inner;leaf",
        "0.0085 0.0015 outer;inner",
        "0.01 0.005 outer",
        "0.015 0.01 ",
        "0.025 0.01 first",
        "0.035 0.01 ",
        "0.045 0.001 open",
        "0.046 0.001 open;inner",
        "0.047 0.012 open",
    ];
    assert_eq!(samples(&document, thread), expected);
    assert_eq!(document["meta"]["profilingEndTime"], 0.059);
}

//= docs/firefox.md#samples
#[test]
fn samples_of_a_profile_count_as_one_each() {
    let (document, summary) = document(archive(folded::testing::trace()));
    let thread = &document["threads"][0];
    assert_eq!(thread["samples"]["weightType"], "samples");
    let expected = ["0 null main", "1e-6 null main;a;b\nc;vfs_read", "2e-6 null main;a;b\nc;vfs_read"];
    assert_eq!(samples(&document, thread), expected);
    assert_eq!((summary.events, summary.skipped), (3, Vec::new()));
}

//= docs/firefox.md#counters
#[test]
fn counters_have_the_changes_of_their_values() {
    let events = format!(
        "{EVENTS},{}",
        r#"{"ph":"C","ts":7,"pid":9,"tid":9,"cat":"c","name":"two","id":3,"args":{"x":0.5,"y":-2}},
           {"ph":"C","ts":9,"pid":9,"tid":9,"cat":"c","name":"two","id":3,"args":{"x":0.25}}"#
    );
    let (document, _) = document(of_json(&events));
    let shown: Vec<String> = document["counters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|counter| {
            let samples = &counter["samples"];
            let main = counter["mainThreadIndex"].as_u64().unwrap() as usize;
            assert_eq!(document["threads"][main]["pid"], counter["pid"]);
            assert_eq!(counter["display"]["graphType"], "line-accumulated");
            format!("{} {} {} {}", counter["name"], samples["time"], samples["count"], samples["length"])
        })
        .collect();
    let expected = [
        r#""count:n" [0.002,0.003] [3.0,-2.0] 2"#,
        r#""two:x:3" [0.002,0.004] [0.5,-0.25] 2"#,
        r#""two:y:3" [0.002] [-2.0] 1"#,
    ];
    assert_eq!(shown, expected);
}

//= docs/firefox.md#arguments
#[test]
fn arguments_keep_their_names_types_and_order() {
    let events = r#"{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"x",
        "args":{"type":"mine","{b}":true,"big":18446744073709551615,"low":-3,"d":1e300}}"#;
    let (document, _) = document(of_json(events));
    let expected = r#"x 1 0..0.001 Other slice nested [type="mine" (string), {b}="true" (string), big="18446744073709551615" (string), low=-3 (integer), d=1e+300 (decimal)]"#;
    assert_eq!(markers(&document, &document["threads"][0]), [expected]);
    let label = &document["meta"]["markerSchema"][0]["tableLabel"];
    let labels = "type={marker.data.f0}, (b)={marker.data.f1}, big={marker.data.f2}, low={marker.data.f3}, d={marker.data.f4}";
    assert_eq!(label, labels);
}

#[test]
fn there_may_be_nothing() {
    let (document, summary) = document(empty());
    assert_eq!((document["threads"].clone(), document["counters"].clone()), (json!([]), json!([])));
    assert_eq!(document["meta"]["preprocessedProfileVersion"], 57);
    assert_eq!(summary, Summary::default());
}

//= docs/firefox.md#threads
#[test]
fn losses_are_markers_of_their_process() {
    let events = r#"{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"cat":"c","name":"x"}"#;
    let (document, summary) = document(with_losses(events));
    let fields =
        |count| format!(r#"count={count} (integer), provider=1 (integer), reason="buffer full" (string)"#);
    let expected = [
        "x 1 0..0.002 c slice nested []".to_owned(),
        format!("lost 1 0.001..0.004 trace:loss operation [{}]", fields(7)),
        format!("lost 1 0.002..0.002 trace:loss operation [{}]", fields(9)),
    ];
    assert_eq!(markers(&document, &document["threads"][0]), expected);
    assert_eq!(document["meta"]["extra"][0]["entries"][0]["value"], 16);
    let said = "records are missing in the trace: the profile has markers of the category trace:loss";
    assert_eq!(counts(&summary.remarks), [(said, 16)]);
}
