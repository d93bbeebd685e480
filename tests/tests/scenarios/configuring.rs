//! Configurations of other tools, each recorded: what is in the archive is what they ask for.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;
use trace_tests::build::program;
use trace_tests::{Archive, Sandbox};

/// Rounds of `emit`, which records 13 events of category `emit` and one of `other` in each.
const ROUNDS: usize = 3;

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Events by category.
fn counts(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in Archive::read(&sandbox.file("trace.fxt")).events {
        *counts.entry(event.event.category.to_str().into_owned()).or_default() += 1;
    }
    counts
}

/// Records `emit` with a configuration, from a file and from stdin, and counts the same.
fn record(sandbox: &Sandbox, text: &str, options: &[&str]) -> (BTreeMap<String, usize>, String) {
    fs::write(sandbox.file("config"), text).unwrap();
    let emit = program("emit").to_str().expect("a path in UTF-8");
    let rounds = ROUNDS.to_string();
    let command = [options, &["--", emit, "1", &rounds]].concat();
    let output = sandbox.trace([&["record", "-c", "config"], &command[..]].concat());
    assert!(output.status.success(), "{text}: {output:?}");
    let found = counts(sandbox);
    fs::remove_file(sandbox.file("trace.fxt")).unwrap();
    let stdin = fs::File::open(sandbox.file("config")).unwrap();
    let again =
        sandbox.command("trace").args(["record", "--config", "-"]).args(&command).stdin(stdin).output();
    let again = again.expect("trace runs");
    assert!(again.status.success(), "{text}: {again:?}");
    let of_stdin = counts(sandbox);
    for counts in [&found, &of_stdin] {
        let of_programs = ["emit", "other"].map(|name| counts.get(name).copied().unwrap_or_default());
        assert!(of_programs == ["emit", "other"].map(|name| found.get(name).copied().unwrap_or_default()));
    }
    (found, stderr(&output))
}

fn of(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

//= docs/configurations.md#categories
#[test]
fn each_form_records_what_it_asks_for() {
    let sandbox = Sandbox::new();
    let (emit, other) = (("emit", 13 * ROUNDS), ("other", ROUNDS));
    let text_proto = |categories: &str| {
        format!(
            "# of programs\nbuffers {{ size_kb: 8192 fill_policy: DISCARD }}\ndata_sources: <\n  config {{ name: \
             'track_event', track_event_config {{ {categories} }} }};\n>\n"
        )
    };
    for (text, expected) in [
        ("categories = ['emit']\nbuffer-size = '8MiB'\n", &[emit][..]),
        (r#"{"record_mode": "record-until-full", "included_categories": ["em*"]}"#, &[emit]),
        (r#"{"record_mode": "record-continuously", "excluded_categories": ["emit"]}"#, &[other]),
        (r#"{"included_categories": ["emit"], "excluded_categories": ["*"]}"#, &[emit]),
        (r#"{"record_mode": "record-as-much-as-possible"}"#, &[emit, other]),
        (r#"{"categories": "-*,other", "options": "record-until-full"}"#, &[other]),
        (&text_proto(""), &[emit, other]),
        (&text_proto("enabled_categories: 'emit'"), &[emit, other]),
        (&text_proto("enabled_categories: ['emit', 'em*'] disabled_categories: '*'"), &[emit]),
        (&text_proto("disabled_categories: 'em*'"), &[other]),
    ] {
        let (found, said) = record(&sandbox, text, &[]);
        assert_eq!(found, of(expected), "{text}");
        let is_surprising = text.contains("enabled_categories: 'emit' }");
        assert_eq!(
            said.contains("other categories than \"emit\" are recorded, too"),
            is_surprising,
            "{said}"
        );
        assert_eq!(said.contains("warning"), is_surprising, "{text}: {said}");
    }
    // The command line overrides a file.
    let text = text_proto("enabled_categories: 'emit' disabled_categories: '*'");
    let (found, _) = record(&sandbox, &text, &["--categories", "other", "--buffering-mode", "ring_buffer"]);
    assert_eq!(found, of(&[other]));
}

//= docs/configurations.md#perfetto
#[test]
fn the_effective_options_are_shown_and_recorded_with() {
    let sandbox = Sandbox::new();
    let text = "buffers { size_kb: 2000 } buffers { size_kb: 3000 } max_file_size_bytes: 1048576000\n\
        data_sources { config { name: 'track_event' } }\n\
        data_sources { config { name: 'linux.sys_stats' target_buffer: 1 sys_stats_config { \
        meminfo_period_ms: 20 thermal_period_ms: 20 } } }\n\
        data_sources { config { name: 'android.log' } }\n";
    fs::write(sandbox.file("config"), text).unwrap();
    let output = sandbox.trace([
        "record",
        "--print-config",
        "--config",
        "config",
        "--buffering-mode",
        "discard",
        "--txt",
    ]);
    assert!(output.status.success(), "{output:?}");
    let said = "trace: warning: config: line 3, column 107: the configuration asks for thermal_period_ms, which is \
        not recorded\n\
        trace: warning: config: line 4, column 31: the configuration asks for data source \"android.log\", which is \
        not recorded\n";
    assert_eq!(stderr(&output), said);
    let effective = String::from_utf8(output.stdout).unwrap();
    for line in [
        "buffer-size = \"2MiB\"",
        "program-buffer-size = [\"ktrace_provider:3MiB\"]",
        "buffering-mode = \"oneshot\"",
        "max-size = \"1000MiB\"",
        "sample-interval = \"20ms\"",
    ] {
        assert!(effective.lines().any(|found| found == line), "{line}: {effective}");
    }
    // Neither other metrics nor events of the kernel, which are all meant by `*`.
    let (mut found, _) = record(&sandbox, text, &[]);
    assert!(found.remove("system_metrics:memory").is_some_and(|count| count > 0), "{found:?}");
    assert_eq!(found, of(&[("emit", 13 * ROUNDS), ("other", ROUNDS)]));
    // The same again, from what was shown.
    let (mut found, said) = record(&sandbox, &effective, &[]);
    assert!(found.remove("system_metrics:memory").is_some_and(|count| count > 0), "{found:?}");
    assert_eq!(found, of(&[("emit", 13 * ROUNDS), ("other", ROUNDS)]));
    assert!(!said.contains("which is not recorded"), "{said}");
}

//= docs/configurations.md#chrome
#[test]
fn memory_dumps_are_taken_as_chromes_configuration_says() {
    let sandbox = Sandbox::new();
    let text = r#"{ "included_categories": ["disabled-by-default-memory-infra"], "excluded_categories": ["*"],
        "memory_dump_config": { "triggers": [{ "mode": "detailed", "periodic_interval_ms": 20 }] } }"#;
    fs::write(sandbox.file("config"), text).unwrap();
    let memory = program("memory").to_str().expect("a path in UTF-8");
    let mut recording = sandbox.spawn("trace", &["record", "-c", "config", "--", memory, "one", "1000"]);
    assert_eq!(recording.line(), "ready");
    for _ in 0..3 {
        assert!(recording.line().starts_with("dump "));
    }
    recording.close_stdin();
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let count = |name: &str| archive.events.iter().filter(|event| event.event.name.to_str() == name).count();
    assert!(count("cache") >= 3);
    assert_eq!(count("cache/images"), count("cache"));
    assert_eq!(counts(&sandbox).keys().collect::<Vec<_>>(), ["memory_dump"]);
}

//= docs/configurations.md#what-is-refused-and-what-is-reported
#[test]
fn what_is_no_configuration_records_nothing() {
    let sandbox = Sandbox::new();
    let forms = "line 1, column 1: this is no configuration: expected TOML (key = value), Chrome's JSON ({ ... }) or \
        Perfetto's text form (key: value)";
    let nothing = "nothing would be recorded: it has no data source with something to record; possible ones are \
        track_event, org.chromium.trace_event, linux.ftrace, linux.process_stats, linux.sys_stats, linux.perf";
    for (text, expected) in [
        (&b""[..], "line 1, column 1: it is empty"),
        (b"emit,other\n", forms),
        (
            b"{\"record_mod\": \"record-until-full\"}",
            "line 1, column 2: unknown key record_mod; did you mean record_mode?",
        ),
        (b"{}", "line 1, column 1: it sets nothing"),
        (b"bufer-size = 4", "line 1, column 1: unknown key bufer-size; did you mean buffer-size?"),
        (b"buffers {\n size_kb: 4k }", "line 2, column 11: 4k is no number"),
        (b"buffers { size_kb: 4 }", nothing),
        (
            b"\x0a\x04\x08\xff",
            "it is not text: byte 3 is not UTF-8; binary configurations of Perfetto cannot be read",
        ),
    ] {
        fs::write(sandbox.file("config"), text).unwrap();
        for command in [&["record"][..], &["record", "--print-config"], &["start"]] {
            let output = sandbox.trace([command, &["-c", "config", "--duration", "1ms"]].concat());
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert_eq!(stderr(&output), format!("trace: config: {expected}\n"));
        }
    }
    assert_eq!(sandbox.files(), ["config"]);
    let output = sandbox.trace(["record", "--txt"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // Their recordings are made beside them.
    for command in [&["live"][..], &["view", "--live"]] {
        let output = sandbox.trace([command, &["-c", "-"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = "trace: invalid value '-' for '--config <FILE>': stdin cannot be read here: expected a file; see --help\n";
        assert_eq!(stderr(&output), said);
    }
}
