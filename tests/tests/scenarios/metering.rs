//! Metrics of the `metrics` crate.

use trace_format::event::EventKind;
use trace_tests::archive::Value;
use trace_tests::{Archive, Sandbox, wait_for};

/// The samples of category `metrics` in the order of time, but for those of one counter, whose values come
/// apart.
fn samples(sandbox: &Sandbox, name: &str) -> (Vec<String>, Vec<u64>) {
    let output = sandbox.trace(["check", name]);
    assert!(output.status.success(), "{output:?}");
    let mut events = Archive::read(&sandbox.file(name)).events;
    events.sort_by_key(|event| event.event.timestamp);
    let (mut samples, mut shared) = (Vec::new(), Vec::new());
    for event in events.iter().filter(|event| event.event.category.as_bytes() == b"metrics") {
        assert!(matches!(event.event.kind, EventKind::Counter { id: 0 }), "{event:?}");
        if event.name() == "shared" {
            shared.push(event.u64("value"));
            continue;
        }
        let values = event.event.arguments.iter().map(|(name, value)| match value {
            Value::Uint64(value) => format!("{}={value}", name.to_str()),
            Value::Double(value) => format!("{}={value:?}", name.to_str()),
            other => panic!("{other:?}"),
        });
        samples.push(format!("{} {}", event.name(), values.collect::<Vec<_>>().join(" ")));
    }
    (samples, shared)
}

const CHANGES: [&str; 12] = [
    r#"requests{method="GET",path="/\"a\""} value=1"#,
    r#"requests{method="GET",path="/\"a\""} value=2"#,
    r#"requests{method="GET",path="/\"a\""} value=3"#,
    "requests value=0",
    r#"requests{method="PUT"} value=40"#,
    "clock value=100",
    "clock value=101",
    "load value=1.5",
    "load value=2.5",
    "load value=-0.5",
    "load value=0.25",
    "idle value=0.0",
];
const LATENCY: &str = r#"latency{path="/"} count=100 min=1.0 mean=50.5 max=100.0 p50=51.0 p99=98.0"#;
const SIZE: &str = "size count=3 min=4096.0 mean=4096.0 max=4096.0 p50=4096.0 p99=4096.0";

/// Histograms are sampled in any order.
fn with_histograms(mut samples: Vec<String>) -> Vec<String> {
    let begin = samples.len().saturating_sub(2);
    samples[begin..].sort();
    samples
}

#[test]
fn counters_and_gauges_are_sampled_when_they_change() {
    let sandbox = Sandbox::new();
    sandbox.record(&["-o", "metrics.fxt"], "metering", &["alone"]);
    let (mut found, mut shared) = samples(&sandbox, "metrics.fxt");
    // The values may be of several intervals, here.
    let histograms = found.split_off(CHANGES.len());
    assert_eq!(found, CHANGES);
    let counts = histograms.iter().map(|sample| {
        let count = sample.split("count=").nth(1).and_then(|rest| rest.split(' ').next());
        count.unwrap().parse::<u64>().unwrap()
    });
    assert_eq!(counts.sum::<u64>(), 103, "{histograms:?}");
    shared.sort_unstable();
    assert!(shared.into_iter().eq(1..=2000));
}

/// What another recorder gets: one description, as many handles as macros, and as many changes as calls.
const FORWARDED: &str = "[1, 13, 120]\n";

#[test]
fn another_recorder_gets_everything_with_and_without_a_recording() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["-o", "metrics.fxt"], "metering", &["beside"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), FORWARDED);
    let (found, _) = samples(&sandbox, "metrics.fxt");
    assert_eq!(with_histograms(found), [&CHANGES[..], &[LATENCY, SIZE]].concat());
    let mut program = sandbox.spawn("metering", &["beside"]);
    assert_eq!(format!("{}\n", program.line()), FORWARDED);
    program.succeed();
}

#[test]
fn an_interval_of_no_length_has_one_value() {
    let sandbox = Sandbox::new();
    sandbox.record(&["-o", "metrics.fxt"], "metering", &["each"]);
    let (found, _) = samples(&sandbox, "metrics.fxt");
    let expected: Vec<_> = (1..=100)
        .map(|value| {
            let series = ["min", "mean", "max", "p50", "p99"].map(|name| format!(" {name}={value}.0"));
            format!("latency{{path=\"/\"}} count=1{}", series.concat())
        })
        .chain([SIZE.to_owned()])
        .collect();
    assert_eq!(found[CHANGES.len()..], expected);
}

/// A recording begins with what is known, and ends with what was collected in it.
#[test]
fn a_recording_begins_with_the_present_values_and_ends_its_intervals() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let mut program = sandbox.spawn("metering", &["waits"]);
    assert_eq!(program.line(), "waits");
    for name in ["first.fxt", "second.fxt"] {
        let mut client = sandbox.spawn("trace", &["record", "-o", name]);
        wait_for("the recording", || client.stderr_so_far().contains("press Ctrl-C").then_some(()));
        program.say("on");
        assert_eq!(program.line(), "done");
        client.signal(rustix::process::Signal::INT);
        program.say("off");
        assert_eq!(program.line(), "done");
        client.close_stdin();
        client.succeed();
        let (mut found, _) = samples(&sandbox, name);
        found.sort();
        let expected = [
            "clock value=101",
            "idle value=0.0",
            r#"latency{path="/"} count=2 min=8.0 mean=12.0 max=16.0 p50=8.25 p99=16.0"#,
            "load value=0.25",
            "requests value=0",
            r#"requests{method="GET",path="/\"a\""} value=3"#,
            r#"requests{method="PUT"} value=40"#,
        ];
        assert_eq!(found, expected, "{name}");
    }
    program.close_stdin();
    assert_eq!(program.line(), "[1, 21, 128]");
    program.succeed();
}
