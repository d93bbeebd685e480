use super::*;
use crate::args::categories::Groups;
use proptest::prelude::*;
use trace_config::position;

/// The options as TOML, then the messages.
fn becomes(text: &str) -> String {
    let place = |wrong: &Wrong| position::describe(text, Some(wrong.at), &wrong.message);
    let form = match detect(text) {
        Ok(form) => form,
        Err(wrong) => return place(&wrong),
    };
    assert_ne!(form, Form::Toml, "{text}");
    match translate(text, form) {
        Ok(translation) => {
            let mut lines = toml::to_string(&translation.recording).unwrap();
            for note in &translation.notes {
                lines += &format!("{}\n", place(note));
            }
            lines + &translation.nothing.unwrap_or_default()
        }
        Err(wrong) => place(&wrong),
    }
}

fn options(text: &str, expected: &[&str]) {
    assert_eq!(becomes(text).lines().collect::<Vec<_>>(), expected, "{text}");
}

/// What a key protects is left out, or nothing is recorded.
//= docs/configurations.md#privacy
#[test]
fn requests_for_privacy_fail_closed() {
    let source = |text: &str| format!("data_sources {{ config {{ {text} }} }}");
    for text in [
        r#"name: "track_event" track_event_config { filter_dynamic_event_names: true }"#,
        r#"name: "org.chromium.trace_event" chrome_config { privacy_filtering_enabled: true }"#,
    ] {
        assert!(becomes(&source(text)).lines().any(|line| line == "privacy = true"), "{text}");
    }
    let refused = [
        (r#"{"enable_argument_filter": true}"#.to_owned(), "enable_argument_filter"),
        (r#"{"trace_config": {"enableArgumentFilter": true}}"#.to_owned(), "enable_argument_filter"),
        (
            r#"{"categories": "*", "options": "record-continuously,enable-argument-filter"}"#.to_owned(),
            "enable-argument-filter",
        ),
        (r#"{"enable_package_name_filter": true}"#.to_owned(), "enable_package_name_filter"),
        (r#"{"included_process_ids": [7]}"#.to_owned(), "included_process_ids"),
        (
            source(r#"name: "track_event" track_event_config { filter_debug_annotations: true }"#),
            "filter_debug_annotations",
        ),
        (source(r#"name: "linux.perf" perf_event_config { exclude_cmdline: "vault" }"#), "exclude_cmdline"),
        (
            source(
                r#"name: "org.chromium.trace_event" chrome_config { trace_config: "{\"enable_argument_filter\":true}" }"#,
            ),
            "enable_argument_filter",
        ),
        (source(r#"name: "track_event""#) + " trace_filter { bytecode: \"x\" }", "trace_filter"),
        (source(r#"name: "track_event""#) + " lockdown_mode: LOCKDOWN_SET", "lockdown_mode"),
    ];
    for (text, key) in refused {
        let found = becomes(&text);
        assert!(found.contains(&format!("{key} protects what a recording would have: ")), "{text}: {found}");
        assert_eq!(found.lines().count(), 1, "{text}: {found}");
    }
    // What asks for nothing is no reason.
    for text in [
        r#"{"included_categories": ["a"], "enable_argument_filter": false, "included_process_ids": []}"#
            .to_owned(),
        source(r#"name: "track_event" track_event_config { filter_debug_annotations: false }"#)
            + " lockdown_mode: LOCKDOWN_CLEAR",
    ] {
        let found = becomes(&text);
        assert!(!found.contains("protects") && !found.contains("privacy"), "{text}: {found}");
    }
}

//= docs/configurations.md#chrome
#[test]
fn chromes_configuration_becomes_options() {
    let text = r#"{
  // of a page
  "record_mode": "record-continuously",
  "included_categories": ["cat1", "cat2*", "disabled-by-default-x"],
  "excluded_categories": ["cat2noisy"],
  "trace_buffer_size_in_kb": 65537,
  "memory_dump_config": {
    "triggers": [
      { "mode": "detailed", "periodic_interval_ms": 2000 },
      { "mode": "light", "type": "periodic_interval", "min_time_between_dumps_ms": 250 },
      { "mode": "light", "type": "peak_memory_usage", "min_time_between_dumps_ms": 50 }
    ],
  },
  "enable_sampling": true, "enable_systrace": false
}"#;
    options(
        text,
        &[
            "categories = [\"cat1\", \"cat2*\", \"disabled-by-default-x\", \"memory_dump\", \"-cat2noisy\"]",
            "memory-dump-interval = \"250ms\"",
            "detailed-memory-dumps = false",
            "buffer-size = \"65MiB\"",
            "buffering-mode = \"circular\"",
            "line 9, column 7: the configuration asks for detailed memory dumps every 2000 ms besides the more \
             frequent ones, which is not recorded",
            "line 11, column 7: the configuration asks for memory dumps at peaks of memory usage, which is not recorded",
            "line 14, column 3: the configuration asks for enable_sampling, which is not recorded",
        ],
    );
    options(
        r#"{"record_mode": "record-until-full"}"#,
        &["categories = [\"*\"]", "buffering-mode = \"oneshot\""],
    );
    options(
        r#"{"recording_mode": "record-as-much-as-possible", "excluded_categories": ["a"]}"#,
        &["categories = [\"*\", \"-a\"]", "buffering-mode = \"streaming\""],
    );
    options(
        r#"{"record_mode": "trace-to-console", "included_categories": ["a"]}"#,
        &[
            "categories = [\"a\"]",
            "line 1, column 17: the configuration asks for trace-to-console, which is not recorded",
        ],
    );
    options(
        r#"{"trace_buffer_size_in_events": 200000, "included_categories": ["*"]}"#,
        &["categories = [\"*\"]", "buffer-size = \"13MiB\""],
    );
    options(
        r#"{"trace_buffer_size_in_kb": 4294967295, "included_categories": ["*"]}"#,
        &[
            "categories = [\"*\"]",
            "buffer-size = \"4096MiB\"",
            "line 1, column 29: a buffer of 4194304 MiB is reduced to 4096 MiB, the largest size",
        ],
    );
}

//= docs/configurations.md#chrome
#[test]
fn chromes_filter_strings_and_files_are_read() {
    options(
        r#"{"categories": "-*,devtools.timeline, cat2*,disabled-by-default-x",
            "options": "record-until-full,sampling-frequency=10000,enable-systrace", "transferMode": "ReturnAsStream"}"#,
        &[
            "categories = [\"cat2*\", \"devtools.timeline\", \"disabled-by-default-x\", \"kernel:sched\"]",
            "buffering-mode = \"oneshot\"",
            "line 2, column 24: the configuration asks for sampling-frequency, which is not recorded",
        ],
    );
    options(
        r#"{"transferMode": "ReturnAsStream", "traceConfig":
            {"recordMode": "recordContinuously", "includedCategories": ["a"], "traceBufferSizeInKb": 2048}}"#,
        &["categories = [\"a\"]", "buffer-size = \"2MiB\"", "buffering-mode = \"circular\""],
    );
    options(
        r#"{"trace_config": {"included_categories": ["a"]}, "startup_duration": 5, "result_file": "a.json"}"#,
        &["categories = [\"a\"]", "duration = \"5s\"", "output = \"a.json\""],
    );
}

#[test]
fn errors_in_chromes_configuration_have_a_place() {
    for (text, expected) in [
        ("{", "line 1, column 2: EOF while parsing an object"),
        ("{}", "line 1, column 1: it sets nothing"),
        ("{\"trace_config\": {}}", "line 1, column 1: it sets nothing"),
        (
            "{\n  \"included_categorys\": []}",
            "line 2, column 3: unknown key included_categorys; did you mean included_categories?",
        ),
        (
            "{\"record_mode\":\n \"record-continously\"}",
            "line 2, column 2: unknown value record-continously; did you mean record-continuously?",
        ),
        ("{\"record_mode\": 5}", "line 1, column 17: expected text in quotes, found 5"),
        ("{\"enable_systrace\": \"yes\"}", "line 1, column 21: expected true or false, found \"yes\""),
        (
            "{\"trace_buffer_size_in_kb\": -1}",
            "line 1, column 29: expected a whole number up to 4294967295, found -1",
        ),
        (
            "{\"included_categories\": [\"a\", \"b*c\"]}",
            "line 1, column 31: category \"b*c\" is invalid: no blanks or quotes, and * only at the end",
        ),
        ("{\"included_categories\": [[\"a\"]]}", "line 1, column 26: expected text in quotes, found a list"),
        ("{\"record_mode\": \"a\", \"record_mode\": \"b\"}", "line 1, column 22: record_mode is already set"),
        (
            "{\"categories\": \"a\", \"options\": \"record-until-ful\"}",
            "line 1, column 32: unknown option record-until-ful; did you mean record-until-full?",
        ),
        (
            "{\"memory_dump_config\": {\"triggers\": [{\"mode\": \"light\"}]}}",
            "line 1, column 38: the trigger has no interval: expected periodic_interval_ms or \
             min_time_between_dumps_ms above 0",
        ),
        (
            "{\"memory_dump_config\": {\"triggers\": [{\"mode\": \"ligt\"}]}}",
            "line 1, column 47: unknown value ligt; did you mean light?",
        ),
    ] {
        assert_eq!(becomes(text), expected, "{text}");
    }
    let nothing = becomes("{\"excluded_categories\": [\"*\"]}");
    assert_eq!(nothing, "nothing would be recorded: all categories are excluded");
}

/// A configuration with most of what can be recorded.
const PERFETTO: &str = r#"# Two buffers.
buffers { size_kb: 8192 fill_policy: DISCARD }
buffers: { size_kb: 65536, fill_policy: DISCARD, name: "kernel" };
duration_ms: 10000
flush_period_ms: 500
max_file_size_bytes: 1000000001
data_sources {
  config {
    name: "track_event"
    track_event_config {
      disabled_categories: "*"
      enabled_categories: ["net", "gfx*"]
      enabled_categories: 'app'
    }
  }
}
data_sources: <
  config: <
    name: "linux.ftrace"
    target_buffer: 1
    ftrace_config {
      ftrace_events: "sched/sched_switch"
      ftrace_events: "power/suspend_resume"
      ftrace_events: "ftrace/print" ftrace_events: "rss_stat_throttled"
      atrace_apps: "*"
      buffer_size_kb: 2048
    }
  >
>
data_sources { config { name: "linux.process_stats" target_buffer_name: "kernel"
  process_stats_config { scan_all_processes_on_start: true proc_stats_poll_ms: 1000 } } }
data_sources { config { name: "linux.sys_stats" target_buffer: 1
  sys_stats_config { meminfo_period_ms: 250 stat_period_ms: 250 meminfo_counters: MEMINFO_MEM_FREE
    cpufreq_period_ms: 250 } } }
data_sources { config { name: "android.log" } }
incremental_state_config { clear_period_ms: 5000 }
unique_session_name: "mine"
builtin_data_sources { disable_system_info: false }
"#;

//= docs/configurations.md#perfetto
#[test]
fn producers_have_buffers_of_their_own() {
    let sources = r#"data_sources { config { name: "track_event" } }"#;
    let text = |producers: &str| format!("buffers {{ size_kb: 4096 }} {sources} {producers}");
    options(
        &text(
            r#"producers { producer_name: "renderer" shm_size_kb: 16000 page_size_kb: 32 } producers { producer_name: "b" }"#,
        ),
        &[
            "categories = [\"*\"]",
            "buffer-size = \"4MiB\"",
            "program-buffer-size = [\"renderer:16MiB\"]",
            "buffering-mode = \"circular\"",
        ],
    );
    let found = becomes(&text("producers { shm_size_kb: 16 }"));
    assert!(found.ends_with("a producer needs a producer_name"), "{found}");
    let found = becomes(&text(r#"producers { producer_name: "a/b" shm_size_kb: 16 }"#));
    assert!(found.ends_with("\"a/b\" cannot be the name of a program here"), "{found}");
}

/// A configuration for the markers of an application, and of nothing else.
//= docs/configurations.md#events-of-the-kernel
#[test]
fn markers_of_applications_are_markers() {
    let text = |app: &str| {
        format!(
            "buffers {{ size_kb: 65536 fill_policy: RING_BUFFER }}\n\
             data_sources {{ config {{ name: \"linux.ftrace\" ftrace_config {{ atrace_apps: {app:?} }} }} }}\n\
             duration_ms: 2000\n"
        )
    };
    let recorded = [
        "categories = [\"atrace\"]",
        "duration = \"2s\"",
        "program-buffer-size = [\"ktrace_provider:64MiB\"]",
        "buffering-mode = \"circular\"",
    ];
    options(&text("*"), &recorded);
    let of_one = "categories = [\"com.example.settings/atrace\", \"kernel:atrace:com.example.settings\"]";
    options(&text("com.example.settings"), &[&[of_one], &recorded[1..]].concat());
}

/// What a recording has for keys of Perfetto's, or why not.
//= docs/configurations.md#perfetto
#[test]
fn keys_without_an_equal_are_done_or_reported_with_a_reason() {
    let text = |more: &str| format!("data_sources {{ config {{ name: \"track_event\" }} }} {more}");
    let all = "categories = [\"*\"]";
    let compressed = "line 1, column 67: the configuration asks for compression_type, which is not done: name the output \
                      trace.fxt.zst, or give --compress";
    options(&text("compression_type: COMPRESSION_TYPE_DEFLATE"), &[all, compressed]);
    options(&text("compression_type: COMPRESSION_TYPE_UNSPECIFIED"), &[all]);
    let found = becomes(&text("compression_type: DEFLATE"));
    assert!(found.contains("unknown value DEFLATE"), "{found}");

    let trigger = |mode: &str| {
        text(&format!(
            "trigger_config {{ trigger_mode: {mode} triggers {{ name: \"stall\" stop_delay_ms: 5000 }} }}"
        ))
    };
    options(&trigger("STOP_TRACING"), &[all, "trigger = [\"stall:stop+5s\"]"]);
    options(
        &trigger("CLONE_SNAPSHOT"),
        &[
            all,
            "trigger = [\"stall:snapshot\"]",
            "line 1, column 104: stop_delay_ms has no meaning here: a snapshot is taken at once",
        ],
    );
    let starts = "line 1, column 64: the configuration asks for a trigger_config that starts the recording, which begins \
                  at once instead: programs raise alerts only while they are recorded; STOP_TRACING with RING_BUFFER \
                  keeps what led to a trigger, and stop_delay_ms what followed";
    options(&trigger("START_TRACING"), &[all, starts]);
}

/// A data source of a program's own has the program's name; others are mistakes, or Perfetto's.
//= docs/configurations.md#perfetto
#[test]
fn a_data_source_that_is_named_like_a_program_is_the_program() {
    let text = |name: &str, more: &str| format!("data_sources {{ config {{ name: \"{name}\" }} {more} }}");
    let note = |source: &str, program: &str| {
        format!(
            "line 1, column 31: data source {source:?} is recorded as everything of the program {program:?}: a program here \
             has no data sources"
        )
    };
    let prog = "com.example.prog";
    options(&text(prog, ""), &["categories = [\"com.example.prog/*\"]", &note(prog, prog)]);
    let filtered = text(prog, "producer_name_filter: \"worker\"");
    options(&filtered, &["categories = [\"worker/*\"]", &note(prog, "worker")]);
    let nothing = "nothing would be recorded: it has no data source with something to record; possible ones are \
        track_event, org.chromium.trace_event, linux.ftrace, linux.process_stats, linux.sys_stats, linux.perf";
    for name in [
        "android.log",
        "linux.system_info",
        "org.chromium.trace_metadata",
        "prog",
        "com.example/prog",
        "linux.ftrce",
    ] {
        let found = becomes(&text(name, ""));
        assert!(found.contains("which is not recorded") && found.ends_with(nothing), "{name}: {found}");
    }
}

/// Tags select in programs that have them; what they cannot select is reported.
//= docs/configurations.md#events-of-the-kernel
#[test]
fn categories_of_atrace_are_tags_or_events_of_the_kernel() {
    let text = |inside: &str| {
        format!("data_sources {{ config {{ name: \"linux.ftrace\" ftrace_config {{ {inside} }} }} }}")
    };
    let foreign = |at: u32, names: &str| {
        format!(
            "line 1, column {at}: the configuration asks for atrace_categories {names}, which select only what programs \
             with this library write: a marker in the kernel's buffer has no tag, and all markers of other programs are \
             recorded"
        )
    };
    let inside = "atrace_categories: \"view\" atrace_categories: \"sched\" atrace_categories: \"am\"";
    options(
        &text(inside),
        &[
            "categories = [\"atrace:am\", \"atrace:view\", \"kernel:sched\"]",
            &foreign(81, "\"view\", \"am\""),
        ],
    );
    options(&text("atrace_categories: \"sched\""), &["categories = [\"kernel:sched\"]"]);
    let power = "atrace_categories: \"power\"";
    let of_power = foreign(81, "\"power\"");
    options(&text(power), &["categories = [\"atrace:power\", \"kernel:power\"]", &of_power]);
    let of_programs = format!("{power} atrace_userspace_only: true");
    options(&text(&of_programs), &["categories = [\"atrace:power\"]", &of_power]);
    options(
        &text("atrace_categories: [\"view\", \"vieww\", \"a/b\", \"\\n\"]"),
        &[
            "categories = [\"atrace:view\"]",
            &foreign(82, "\"view\""),
            "line 1, column 90: the configuration asks for atrace category \"vieww\", which is not recorded",
            "line 1, column 99: the configuration asks for atrace category \"a/b\", which is not recorded",
            "line 1, column 106: the configuration asks for atrace category \"\\n\", which is not recorded",
        ],
    );
}

//= docs/configurations.md#perfetto
#[test]
fn perfettos_configuration_becomes_options() {
    options(
        PERFETTO,
        &[
            "categories = [\"app\", \"gfx*\", \"net\", \"atrace\", \"kernel:sched\", \
             \"kernel:tp:power:suspend_resume\", \"system_metrics:cpu\", \"system_metrics:memory\", \
             \"system_metrics:processes\"]",
            "duration = \"10s\"",
            "max-size = \"976562KiB\"",
            "buffer-size = \"8MiB\"",
            "program-buffer-size = [\"ktrace_provider:64MiB\"]",
            "buffering-mode = \"oneshot\"",
            "sample-interval = \"250ms\"",
            "line 24, column 52: the configuration asks for event \"rss_stat_throttled\", which is not recorded: its \
             system is missing, as in sched/sched_switch",
            "line 26, column 7: the configuration asks for buffer_size_kb, which is not recorded",
            "line 31, column 80: this is sampled every 250 ms instead of 1000, like everything else",
            "line 34, column 5: the configuration asks for cpufreq_period_ms, which is not recorded",
            "line 35, column 31: the configuration asks for data source \"android.log\", which is not recorded",
            "line 36, column 1: the configuration asks for incremental_state_config, which is not recorded",
        ],
    );
    let streamed = "buffers { size_kb: 1 } write_into_file: true file_write_period_ms: 2500 flush_period_ms: 30000 \
        output_path: '/tmp/a.pftrace' data_sources { config { name: 'track_event' } }";
    options(
        streamed,
        &[
            "categories = [\"*\"]",
            "output = \"/tmp/a.pftrace\"",
            "write-period = \"30s\"",
            "buffer-size = \"1MiB\"",
            "buffering-mode = \"streaming\"",
        ],
    );
    let ring = "buffers { size_kb: 4096 } data_sources { config { name: 'track_event' } producer_name_filter: 'one' }";
    options(ring, &["categories = [\"one/*\"]", "buffer-size = \"4MiB\"", "buffering-mode = \"circular\""]);
    let two = "buffers { size_kb: 1024 } buffers { size_kb: 2048 fill_policy: DISCARD } data_sources { config { \
        name: 'track_event' track_event_config { enabled_categories: 'a' disabled_categories: '*' } } } data_sources { \
        config { name: 'linux.sys_stats' target_buffer: 1 sys_stats_config { psi_period_ms: 50 } } }";
    options(
        two,
        &[
            "categories = [\"a\", \"system_metrics:cpu\"]",
            "buffer-size = \"1MiB\"",
            "program-buffer-size = [\"ktrace_provider:2MiB\"]",
            "buffering-mode = \"circular\"",
            "sample-interval = \"50ms\"",
            "line 1, column 46: the buffers have different fill policies: RING_BUFFER is used for all",
        ],
    );
    let others =
        "data_sources { config { name: 'track_event' track_event_config { enabled_categories: 'a' } } }";
    options(
        others,
        &[
            "categories = [\"*\"]",
            "line 1, column 86: other categories than \"a\" are recorded, too: Perfetto records only those that are \
             enabled if disabled_categories has \"*\"",
        ],
    );
    let profile =
        "data_sources { config { name: 'linux.perf' perf_event_config { timebase { frequency: 99 } } } }";
    options(profile, &["categories = [\"ktrace_provider/profile\"]", "profile = 99"]);
    let triggers = "trigger_config { trigger_mode: CLONE_SNAPSHOT triggers { name: 'stall' stop_delay_ms: 0 } } \
        data_sources { config { name: 'track_event' } }";
    options(triggers, &["categories = [\"*\"]", "trigger = [\"stall:snapshot\"]"]);
    let chrome = r#"data_sources { config { name: "org.chromium.trace_event" chrome_config {
        trace_config: "{\"record_mode\":\"record-until-full\",\"included_categories\":[\"a\"]}" } } }"#;
    options(chrome, &["categories = [\"a\"]"]);
}

/// `*` is for programs: the kernel's provider records what is named for it.
#[test]
fn everything_of_programs_is_not_everything_of_the_kernel() {
    let text = "data_sources { config { name: 'track_event' } } data_sources { config { name: 'linux.ftrace' \
        ftrace_config { ftrace_events: 'sched_switch' } } }";
    let translation = translate(text, Form::TextProto).unwrap();
    let entries = translation.recording.categories.unwrap().0;
    assert_eq!(entries[..2], ["*", "kernel:sched"]);
    let plan = Groups::built_in().plan(&entries).unwrap();
    assert_eq!(plan.session, ["*", "kernel:sched"]);
    let of_kernel = &plan.providers[ktrace_provider::NAME];
    let listed: Vec<String> = plan.session.iter().chain(of_kernel).cloned().collect();
    let is_excluded = |name: &str| {
        let is_match = |entry: &str| match entry.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => entry == name,
        };
        listed.iter().filter_map(|entry| entry.strip_prefix('-')).any(is_match)
    };
    let selected = categories::EventSelection::new(|name| !is_excluded(name), &listed);
    let mut groups: Vec<_> = selected.points.iter().map(|(group, _)| *group).collect();
    groups.dedup();
    assert_eq!(groups, ["kernel:meta", "kernel:sched"]);
    assert!(!selected.markers && !selected.texts && selected.single.is_empty());
    assert!(metrics::MetricSet::new(|name| !is_excluded(name)).is_nothing());
}

#[test]
fn errors_in_perfettos_configuration_have_a_place() {
    let nothing = "nothing would be recorded: it has no data source with something to record; possible ones are \
        track_event, org.chromium.trace_event, linux.ftrace, linux.process_stats, linux.sys_stats, linux.perf";
    for (text, expected) in [
        ("duration_ms: 5\nbufers { }", "line 2, column 1: unknown key bufers; did you mean buffers?"),
        ("buffers { size_kb: 4 size_kb: 5 }", "line 1, column 22: size_kb is already set"),
        ("buffers { }", "line 1, column 9: a buffer needs a size_kb above 0"),
        ("buffers { size_kb: 0 }", "line 1, column 20: a buffer needs a size_kb above 0"),
        (
            "buffers {\n  size_kb: 4\n  fill_policy: RING_BUFER }",
            "line 3, column 16: unknown value RING_BUFER; did you mean RING_BUFFER?",
        ),
        ("duration_ms: '5'", "line 1, column 14: expected a whole number up to 4294967295, found \"5\""),
        (
            "duration_ms: 4294967296",
            "line 1, column 14: expected a whole number up to 4294967295, found 4294967296",
        ),
        ("duration_ms: 5 }", "line 1, column 16: expected the name of a field, found '}'"),
        (
            "data_sources { config { name: \"track_event\"\n track_event_config { enabled_categories: \"a/b\" } } }",
            "line 2, column 43: category \"a/b\" cannot be selected: it contains '/'",
        ),
        (
            "data_sources { config { name: 'track_event' target_buffer: 1 } } buffers { size_kb: 1 }",
            "line 1, column 60: there is no buffer 1: the first one is 0, and there are 1",
        ),
        (
            "data_sources { config { name: 'track_event' target_buffer_name: 'x' } }",
            "line 1, column 65: there is no buffer \"x\"",
        ),
        ("data_sources { config { } }", "line 1, column 14: a data source needs config { name }"),
        (
            "trigger_config { trigger_mode: STOP_TRACING triggers { name: 'a-long-long-name' } }",
            "line 1, column 62: the alert's name has 16 bytes, at most 14",
        ),
        (
            "data_sources { config { name: 'org.chromium.trace_event' chrome_config { trace_config: '{\"recrd_mode\":1}' } } }",
            "line 1, column 88: trace_config: line 1, column 2: unknown key recrd_mode; did you mean record_mode?",
        ),
    ] {
        assert_eq!(becomes(text), expected, "{text}");
    }
    let unknown = "data_sources { config { name: \"track_events\" } }";
    let said = "line 1, column 31: the configuration asks for data source \"track_events\", which is not recorded; \
        did you mean track_event?";
    options(unknown, &[said, nothing]);
    options("duration_ms: 5", &["duration = \"5ms\"", nothing]);
}

#[test]
fn what_is_no_configuration_is_refused() {
    let neither = "this is no configuration: expected TOML (key = value), Chrome's JSON ({ ... }) or Perfetto's text \
        form (key: value)";
    for (text, expected) in [
        ("", "line 1, column 1: it is empty".to_owned()),
        (" \n# a comment\n", "line 1, column 1: it is empty".to_owned()),
        ("hello world", format!("line 1, column 1: {neither}")),
        ("# one\n cat1,cat2*,-cat3", format!("line 2, column 2: {neither}")),
        ("*", format!("line 1, column 1: {neither}")),
        (
            "bufer-size 64",
            "line 1, column 1: bufer-size is no key of a configuration; did you mean buffer-size?".to_owned(),
        ),
        (
            "duration_ms 64",
            "line 1, column 1: duration_ms has no value: expected `duration_ms = ...` in TOML, or `duration_ms: ...` \
             in Perfetto's form"
                .to_owned(),
        ),
    ] {
        assert_eq!(becomes(text), expected, "{text}");
    }
    for (text, form) in [
        ("# x\nbuffer-size = 4", Form::Toml),
        ("a.b = 4", Form::Toml),
        ("[category-groups]", Form::Toml),
        ("\n{", Form::Json),
        ("// x\n{}", Form::Json),
        ("# x\nbuffers {", Form::TextProto),
        ("buffers: {", Form::TextProto),
        ("buffers <", Form::TextProto),
    ] {
        assert_eq!(detect(text), Ok(form), "{text}");
    }
}

/// Fragments that are near to configurations.
fn fragment() -> impl Strategy<Value = String> {
    let words = [
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        ":",
        ",",
        ";",
        "\"",
        "'",
        "\\",
        "#",
        "=",
        "-",
        "\n",
        "1",
        "0x",
        "*",
        "true",
        "buffers",
        "size_kb",
        "data_sources",
        "config",
        "name",
        "\"track_event\"",
        "track_event_config",
        "\"included_categories\"",
        "\"record_mode\"",
        "duration_ms",
        "\u{e4}",
        "\u{0}",
    ];
    prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        any::<char>().prop_map(String::from)
    ]
}

proptest! {
    /// No text panics, and none is accepted without saying what to record.
    #[test]
    fn any_text_is_refused_or_says_what_to_record(fragments in prop::collection::vec(fragment(), 0..40)) {
        let text = fragments.join(" ");
        for text in [text.clone(), fragments.concat(), format!("{{{text}}}")] {
            let forms = detect(&text).map_or(vec![], |form| vec![form]);
            for form in forms.into_iter().chain([Form::TextProto, Form::Json]).filter(|form| *form != Form::Toml) {
                match translate(&text, form) {
                    Ok(found) => {
                        let has_categories = found.recording.categories.is_some_and(|list| !list.0.is_empty());
                        prop_assert_ne!(has_categories, found.nothing.is_some(), "{}", text);
                    }
                    Err(wrong) => {
                        prop_assert!(wrong.at <= text.len());
                        position::describe(&text, Some(wrong.at), &wrong.message);
                    }
                }
            }
        }
    }

    /// Cut off anywhere, a configuration has an error, or is one that was written.
    #[test]
    fn a_configuration_that_is_cut_off_does_not_record_more(length in 0..PERFETTO.len()) {
        let cut = &PERFETTO[..PERFETTO.floor_char_boundary(length)];
        if let Ok(found) = translate(cut, Form::TextProto) {
            let entries = found.recording.categories.map_or(vec![], |list| list.0);
            prop_assert!(!entries.iter().any(|entry| entry == "*"), "{}", cut);
        }
    }
}
