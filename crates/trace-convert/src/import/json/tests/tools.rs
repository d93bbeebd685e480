//! What tools write that instrument functions.

use super::*;

/// Begin and length of each slice with its name, in the order of the ends.
fn slices(lines: &[String]) -> Vec<(String, u64)> {
    let nanos = |line: &str| line.split(' ').next().unwrap().replace('.', "").parse::<u64>().unwrap();
    let name = |line: &str| line.rsplit('"').nth(1).unwrap_or_default().to_owned();
    let mut open = Vec::new();
    let mut found = Vec::new();
    for line in lines {
        if line.contains(" begin ") {
            open.push((name(line.split(" {").next().unwrap()), nanos(line)));
        } else if line.contains(" end ") {
            let (name, begin) = open.pop().unwrap();
            found.push((name, nanos(line) - begin));
        }
    }
    assert!(open.is_empty());
    found
}

/// `uftrace dump --chrome`
//= docs/import.md#functions-without-instrumentation
#[test]
fn functions_of_uftrace_are_slices() {
    let (archive, summary) = imported(
        r#"{"traceEvents":[
{"ts":0,"ph":"M","pid":1234,"tid":1234,"name":"process_name","args":{"name":"[1234] app"}},
{"ts":0,"ph":"M","pid":1234,"tid":1234,"name":"thread_name","args":{"name":"[1234] app"}},
{"ts":80155.036,"ph":"B","pid":1234,"tid":1234,"name":"main"},
{"ts":80155.100,"ph":"B","pid":1234,"tid":1234,"name":"fib","args":{"arguments":"(2)"}},
{"ts":80155.250,"ph":"B","pid":1234,"tid":1234,"name":"fib","args":{"arguments":"(1)"}},
{"ts":80155.300,"ph":"E","pid":1234,"tid":1234,"name":"fib","args":{"retval":"1"}},
{"ts":80155.310,"ph":"B","pid":1234,"tid":1234,"name":"fib","args":{"arguments":"(0)"}},
{"ts":80155.312,"ph":"E","pid":1234,"tid":1234,"name":"fib","args":{"retval":"0"}},
{"ts":80156.000,"ph":"E","pid":1234,"tid":1234,"name":"fib","args":{"retval":"1"}},
{"ts":80157.123,"ph":"E","pid":1234,"tid":1234,"name":"main"}
], "displayTimeUnit": "ns", "metadata": {
"h":"",
"command_line":"uftrace record ./app ",
"recorded_time":"Mon Nov 30 14:00:00 2026"
} }
"#,
    );
    let expected = [("fib", 50), ("fib", 2), ("fib", 900), ("main", 2087)];
    assert_eq!(slices(&lines(&archive)), expected.map(|(name, length)| (name.to_owned(), length)));
    assert_eq!((summary.events, summary.malformed), (8, 0));
    assert_eq!(summary.skipped, [("members \"metadata\"".to_owned(), 1)]);
}

/// `llvm-xray convert --output-format=trace_event`
//= docs/import.md#functions-without-instrumentation
#[test]
fn functions_of_xray_are_slices() {
    let (archive, summary) = imported(
        r#"{
  "traceEvents": [
    { "name" : "main", "ph" : "B", "tid" : "32282", "pid" : "32280", "ts" : "1796049739945755.0000", "sf" : "0" },
    { "name" : "int a::tmpl<int>(int)", "ph" : "B", "tid" : "32282", "pid" : "32280", "ts" : "1796049739945756.2500", "sf" : "1" },
    { "name" : "int a::tmpl<int>(int)", "ph" : "E", "tid" : "32282", "pid" : "32280", "ts" : "1796049739945756.5000", "sf" : "1" },
    { "name" : "main", "ph" : "E", "tid" : "32282", "pid" : "32280", "ts" : "1796049739945784.5000", "sf" : "0" }
  ],
  "displayTimeUnit": "ns",
  "stackFrames": {
    "0" : { "name" : "main" },
    "1" : { "name" : "int a::tmpl<int>(int)", "parent" : "0" }
  }
}
"#,
    );
    let found = lines(&archive);
    assert_eq!(found[0], r#"1796049739.945755000 begin 32280/32282 "" "main""#);
    let expected = [("int a::tmpl<int>(int)", 250), ("main", 29_500)];
    assert_eq!(slices(&found), expected.map(|(name, length)| (name.to_owned(), length)));
    assert_eq!(summary.skipped, [("members \"stackFrames\"".to_owned(), 1)]);
}
