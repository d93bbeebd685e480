//! `trace filter`: recordings that are passed on.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::process::{Output, Stdio};
use trace_tests::Sandbox;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let output = sandbox.trace(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// Filters `trace.fxt`, into a plain file and into a compressed one with the same contents, and returns the
/// summary and all bytes that are passed on.
fn filtered(sandbox: &Sandbox, options: &[&str]) -> (Value, Vec<u8>) {
    let with = |output| [&["filter", "--json"], options, &["trace.fxt", output]].concat();
    let summary = run(sandbox, &with("public.fxt"));
    run(sandbox, &with("public.fxt.zst"));
    run(sandbox, &["check", "public.fxt"]);
    run(sandbox, &["check", "public.fxt.zst"]);
    let plain = fs::read(sandbox.file("public.fxt")).unwrap();
    let compressed = fs::read(sandbox.file("public.fxt.zst")).unwrap();
    assert_ne!(compressed[..4], plain[..4]);
    run(sandbox, &["convert", "public.fxt.zst", "again.fxt"]);
    assert!(fs::read(sandbox.file("again.fxt")).unwrap() == plain);
    let mut summary: Value = trace_tests::json(&summary);
    assert_eq!(summary["file"], "public.fxt");
    let members = summary.as_object_mut().unwrap();
    let _ = ["file", "not_imported"].map(|member| members.remove(member));
    (summary, [plain, compressed].concat())
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The objects of a dump.
fn dump(sandbox: &Sandbox, trace: &str) -> Vec<Value> {
    let dumped = text(&run(sandbox, &["dump", "--json", trace]).stdout);
    dumped.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How many records of each kind a trace has.
fn kinds(objects: &[Value]) -> BTreeMap<&str, usize> {
    let mut kinds = BTreeMap::new();
    for object in objects {
        *kinds.entry(object["kind"].as_str().unwrap()).or_default() += 1;
    }
    let _ = ["magic", "provider-info", "provider-section", "string", "thread", "initialization"]
        .map(|kind| kinds.remove(kind));
    kinds
}

/// Every kind of record, in one program.
fn record_kinds() -> Sandbox {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&[], "kinds", &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    sandbox
}

/// Without arguments: events, names and messages stay.
//= docs/filter.md#arguments
//= docs/json.md#filter
#[test]
fn arguments_are_gone_with_their_names() {
    let sandbox = record_kinds();
    let before = dump(&sandbox, "trace.fxt");
    let texts =
        ["port", "length", "host", "boot_id", "wall_clock_ns", "level=7", "void main", "trace record"];
    let given = fs::read(sandbox.file("trace.fxt")).unwrap();
    let arguments = |objects: &[Value], of_events: bool| -> usize {
        let holders = objects.iter().filter(|object| {
            let kind = object["kind"].as_str().unwrap();
            of_events != ["kernel-object", "context-switch", "thread-wakeup"].contains(&kind)
        });
        holders.filter_map(|object| object["args"].as_array()).map(Vec::len).sum()
    };
    for name in &texts[..7] {
        assert!(contains(&given, name), "{name}");
    }
    let (summary, bytes) = filtered(&sandbox, &["--strip-args"]);
    let after = dump(&sandbox, "public.fxt");
    assert_eq!(kinds(&after), kinds(&before));
    assert_eq!(arguments(&after, true), 0);
    // The command line of the program and how it ended are texts; all else says what belongs to what.
    assert_eq!(arguments(&before, false) - arguments(&after, false), 2);
    let removed = arguments(&before, true) + 2;
    assert_eq!(
        summary,
        json!({
            "events": 15, "removed_events": 0, "records": 19, "removed_records": 0, "removed_arguments": removed,
            "replaced_texts": 0, "missing_categories": [], "skipped": [],
        })
    );
    for text in texts {
        assert!(!contains(&bytes, text), "{text}");
    }
    for name in ["kinds", "a message with", "guest cpu 1", "incoming_weight"] {
        assert!(contains(&bytes, name), "{name}");
    }
    let blobs = |object: &&Value| object["payload_bytes"].is_u64() || object["kind"] == "blob";
    assert_eq!(after.iter().filter(blobs).count(), 3);
    assert!(after.iter().filter(blobs).all(|blob| blob["payload"] == ""));

    let (_, bytes) = filtered(&sandbox, &["--keep-args", "port,wall_clock_ns", "--keep-args", "length"]);
    for (name, is_kept) in [("port", true), ("wall_clock_ns", true), ("length", true), ("boot_id", false)] {
        assert_eq!(contains(&bytes, name), is_kept, "{name}");
    }
    assert_eq!(arguments(&dump(&sandbox, "public.fxt"), true), 1 + 2 + 3);
}

/// With placeholders for names of programs and threads, messages, host and command lines.
//= docs/filter.md#placeholders
#[test]
fn texts_are_replaced_and_what_was_equal_still_is() {
    let sandbox = record_kinds();
    let before = dump(&sandbox, "trace.fxt");
    let (summary, bytes) = filtered(&sandbox, &["--redact-strings"]);
    assert_eq!((&summary["events"], &summary["records"]), (&json!(15), &json!(19)));
    assert_eq!((&summary["removed_arguments"], &summary["removed_events"]), (&json!(0), &json!(0)));
    let after = dump(&sandbox, "public.fxt");
    assert_eq!(kinds(&after), kinds(&before));

    // All texts of the input but those of events' names, categories and names of arguments.
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut count = 0;
    let mut pair = |before: &Value, after: &Value| {
        let [before, after] = [before, after].map(|text| text.as_str().unwrap_or_default().to_owned());
        if before.is_empty() {
            assert_eq!(after, "");
            return;
        }
        // A word of the format: why spans have no end.
        if before == "open at stop" {
            assert_eq!(after, before);
            return;
        }
        count += 1;
        assert!(after.starts_with("text-"), "{before}: {after}");
        assert_eq!(texts.entry(before).or_insert_with(|| after.clone()), &after);
    };
    let is_definition =
        |object: &&Value| !["magic", "string", "thread"].contains(&object["kind"].as_str().unwrap());
    let both = before.iter().filter(is_definition).zip(after.iter().filter(is_definition));
    for (before, after) in both {
        assert_eq!(before["kind"], after["kind"]);
        match before["kind"].as_str().unwrap() {
            "kernel-object" | "provider-info" | "blob" => pair(&before["name"], &after["name"]),
            "log" => pair(&before["message"], &after["message"]),
            _ => assert_eq!(before["name"], after["name"]),
        }
        assert_eq!(before["category"], after["category"]);
        let lists = [before, after].map(|object| object["args"].as_array().cloned().unwrap_or_default());
        assert_eq!(lists[0].len(), lists[1].len());
        for (before, after) in lists[0].iter().zip(&lists[1]) {
            assert_eq!(before["name"], after["name"]);
            match before["type"].as_str() {
                Some("string") => pair(&before["value"], &after["value"]),
                _ => assert_eq!(before["value"], after["value"]),
            }
        }
    }
    assert_eq!(summary["replaced_texts"], count);
    let different: BTreeSet<&String> = texts.values().collect();
    assert_eq!(different.len(), texts.len());
    // A program's name is a category here.
    for (text, _) in texts.iter().filter(|(text, _)| text.len() > 5 && !["kinds"].contains(&text.as_str())) {
        assert!(!contains(&bytes, text), "{text}");
    }
    assert!(texts.contains_key("a message with grün") && texts.contains_key("guest cpu 0"));
    assert!(!contains(&bytes, "void main") && !contains(&bytes, "level=7"));
}

/// The demo's three programs, whose flows lead from one to the other.
fn record_demo() -> (Sandbox, Vec<Value>) {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&[], "demo", &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let before = dump(&sandbox, "trace.fxt");
    (sandbox, before)
}

fn is_event(object: &Value) -> bool {
    object["thread"].is_u64() && object["category"].is_string() && object["kind"] != "large-blob"
}

fn is_of_manager(object: &Value) -> bool {
    object["program_id"] == 0
}

/// Events without what depends on their place in the file.
fn comparable<'a>(objects: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let events = objects.filter(|object| is_event(object) && !is_of_manager(object)).cloned();
    events
        .map(|mut event| {
            event.as_object_mut().unwrap().remove("at_byte");
            event
        })
        .collect()
}

/// The events that a selection keeps, and no flow of which it removes an event.
fn selected(before: &[Value], is_kept: impl Fn(&Value) -> bool) -> Vec<Value> {
    let is_flow = |event: &Value| event["kind"].as_str().unwrap().starts_with("flow");
    let events = || before.iter().filter(|object| is_event(object));
    let cut: BTreeSet<String> = events()
        .filter(|event| is_flow(event) && !is_kept(event))
        .map(|event| event["id"].to_string())
        .collect();
    comparable(
        events()
            .filter(|event| is_kept(event) && !(is_flow(event) && cut.contains(&event["id"].to_string()))),
    )
}

/// One program of three: nothing of the others is left.
//= docs/filter.md#selection
//= docs/filter.md#what-belongs-together
//= docs/filter.md#processes
#[test]
fn a_process_is_kept_without_a_trace_of_the_others() {
    let (sandbox, before) = record_demo();
    let process_of = |name: &str| {
        let is_named = |object: &&Value| {
            object["kind"] == "kernel-object" && object["object_type"] == 1 && object["name"] == name
        };
        before.iter().find(is_named).unwrap_or_else(|| panic!("{name}"))["koid"].clone()
    };
    let process = process_of("demo-storage");
    let expected = selected(&before, |event| event["process"] == process);
    let all = comparable(before.iter());
    let (summary, bytes) = filtered(&sandbox, &["--process", "demo-storage"]);
    let after = dump(&sandbox, "public.fxt");
    assert!(comparable(after.iter()) == expected);
    assert!(expected.len() > 100, "{}", expected.len());
    assert!(expected.iter().all(|event| event["process"] == process));
    // The two instants of the manager are events, too.
    assert_eq!(summary["events"], expected.len());
    assert_eq!(summary["removed_events"], all.len() - expected.len());
    for name in ["demo-renderer", "raster-0", "trace record", "tile"] {
        assert!(
            contains(&fs::read(sandbox.file("trace.fxt")).unwrap(), name) || name == "trace record",
            "{name}"
        );
        assert!(!contains(&bytes, name), "{name}");
    }
    let providers: BTreeSet<String> = after.iter().map(|object| object["program_id"].to_string()).collect();
    assert_eq!(providers.len(), 2, "{providers:?}");

    // By its number, or by both names: flows between them are whole.
    let (again, _) = filtered(&sandbox, &["--process", &process.to_string()]);
    assert_eq!(again, summary);
    let others = [process.clone(), process_of("demo-renderer")];
    let expected = selected(&before, |event| others.contains(&event["process"]));
    filtered(&sandbox, &["--process", "demo-storage,demo-renderer"]);
    assert!(comparable(dump(&sandbox, "public.fxt").iter()) == expected);
}

fn text_of<'e>(event: &'e Value, member: &str) -> &'e str {
    event[member].as_str().unwrap()
}

/// One category of several, and its processes.
//= docs/filter.md#selection
#[test]
fn a_category_is_kept_with_the_names_that_it_needs() {
    let (sandbox, before) = record_demo();
    let expected =
        selected(&before, |event| event["category"] == "startup" || event["category"] == "storage");
    let (summary, bytes) = filtered(&sandbox, &["--category", "startup,storage"]);
    let after = dump(&sandbox, "public.fxt");
    assert!(comparable(after.iter()) == expected);
    assert!(!expected.is_empty());
    assert_eq!(summary["events"], expected.len());
    let all = comparable(before.iter());
    let others = all.iter().filter(|event| !["startup", "storage"].contains(&text_of(event, "category")));
    let mut removed: BTreeSet<&str> = others.map(|event| text_of(event, "name")).collect();
    let kept: Vec<String> = expected.iter().map(ToString::to_string).collect();
    removed.retain(|name| !kept.iter().any(|event| event.contains(name)));
    assert!(removed.len() > 3, "{removed:?}");
    // Short names occur by accident.
    for name in removed.iter().filter(|name| name.len() > 5) {
        assert!(!contains(&bytes, name), "{name}");
    }
    // Threads of which nothing is left have no name.
    let threads: BTreeSet<String> =
        after.iter().filter(|o| is_event(o)).map(|event| event["thread"].to_string()).collect();
    let named = after.iter().filter(|object| object["kind"] == "kernel-object" && object["object_type"] == 2);
    let named: BTreeSet<String> = named.map(|object| object["koid"].to_string()).collect();
    assert!(named.is_subset(&threads), "{named:?} {threads:?}");
    let ends =
        after.iter().filter(|object| object["name"] == "recording" || object["name"] == "recording_end");
    assert_eq!(ends.count(), 2);
}

/// From another format and a pipe, to a pipe.
//= docs/filter.md#the-command
#[test]
fn imports_and_pipes_are_filtered() {
    let sandbox = Sandbox::new();
    let events = r#"[{"ph": "X", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2, "name": "draw", "cat": "gfx", "args": {"who": "alice"}},
        {"ph": "X", "pid": 1, "tid": 2, "ts": 9, "dur": 2, "name": "read", "cat": "disk", "args": {"size": 5}}]"#;
    fs::write(sandbox.file("events.json"), events).unwrap();
    for options in [&["--category", "gfx"][..], &["--redact-strings"]] {
        let mut command = sandbox.command("trace");
        command.arg("filter").args(options).args(["-", "-"]);
        let output =
            command.stdin(Stdio::from(File::open(sandbox.file("events.json")).unwrap())).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        fs::write(sandbox.file("out.fxt"), &output.stdout).unwrap();
        run(&sandbox, &["check", "out.fxt"]);
        let is_redacted = options.len() == 1;
        assert_eq!(contains(&output.stdout, "alice"), !is_redacted);
        assert_eq!(contains(&output.stdout, "read"), is_redacted);
        assert_eq!(contains(&output.stdout, "size"), is_redacted);
        let found = comparable(dump(&sandbox, "out.fxt").iter());
        assert_eq!(found.len(), if is_redacted { 2 } else { 1 });
    }
}

/// The trace may have no event of it just now, so the rest is filtered.
//= docs/filter.md#the-command
#[test]
fn a_category_without_events_is_reported() {
    let sandbox = record_kinds();
    let output = sandbox.trace(["filter", "--json", "--category", "trac,nothing", "trace.fxt", "o.fxt"]);
    assert!(output.status.success(), "{output:?}");
    let said = text(&output.stderr);
    for expected in
        ["trac: the trace has no such event; did you mean trace?", "nothing: the trace has no such event"]
    {
        assert!(said.lines().any(|line| line == format!("trace: warning: --category {expected}")), "{said}");
    }
    let summary: Value = trace_tests::json(&output);
    assert_eq!(
        (&summary["events"], &summary["missing_categories"]),
        (&json!(0), &json!(["trac", "nothing"]))
    );
}

/// As in other commands.
//= docs/filter.md#the-command
#[test]
fn categories_are_selected_by_patterns_groups_and_exclusions() {
    let sandbox = Sandbox::new();
    let event = |at: usize, category: &str| {
        format!(r#"{{"ph":"X","name":"a","cat":"{category}","pid":1,"tid":1,"ts":{at},"dur":1}}"#)
    };
    let categories = ["app", "net", "net:tcp", "net:noise", "my"];
    let events: Vec<String> =
        categories.iter().enumerate().map(|(at, category)| event(at * 10, category)).collect();
    fs::write(sandbox.file("a.json"), format!("[{}]", events.join(","))).unwrap();
    for (list, expected) in [
        ("net*,-net:noise", &["net", "net:tcp"][..]),
        ("-net*", &["app", "my"]),
        ("#default", &["app", "net"]),
        ("#default,-net", &["app"]),
        ("*", &categories),
    ] {
        let output = sandbox.trace(["filter", "--json", "--category", list, "a.json", "o.fxt"]);
        let summary: Value = trace_tests::json(&output);
        assert_eq!(summary["missing_categories"], json!([]), "{list}");
        let question = "SELECT DISTINCT category FROM slices ORDER BY ts";
        let rows = |trace: &str, more: &[&str]| {
            let arguments = [&["query", "--format", "csv"][..], more, &[question, trace]].concat();
            let output = sandbox.trace(arguments);
            text(&output.stdout).lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(rows("o.fxt", &[]), expected, "{list}");
        // The commands that read select the same.
        assert_eq!(rows("a.json", &["--category", list]), expected, "{list}");
    }
    let output = sandbox.trace(["filter", "--category", "#none", "a.json", "o.fxt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no category group found for #none"), "{output:?}");
}

//= docs/filter.md#the-command
#[test]
fn what_cannot_be_filtered_is_an_error_and_leaves_no_file() {
    let sandbox = record_kinds();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["trace.fxt", "o.fxt"], 2, "nothing is to be removed: give --strip-args"),
        (&["--category", "a,,b", "trace.fxt", "o.fxt"], 2, "--category: a name is empty"),
        (&["--strip-args", "trace.fxt", "o.json"], 2, "o.json: trace filter writes FXT"),
        (&["--strip-args", "trace.fxt", "trace.fxt"], 2, "trace.fxt is both input and output"),
        (&["--strip-args", "--json", "trace.fxt", "-"], 2, "--json: the trace goes to stdout already"),
        (&["--strip-args", "none.fxt", "o.fxt"], 6, "cannot read none.fxt"),
        (
            &["--process", "kinds,nothing", "trace.fxt", "o.fxt"],
            1,
            "trace.fxt: --process nothing: the trace has no process",
        ),
        (&["--strip-args", "trace.fxt", "none/o.fxt"], 125, "none/o.fxt"),
    ];
    let before = sandbox.files();
    for (arguments, code, expected) in cases {
        let output = sandbox.trace([&["filter"], arguments].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(sandbox.files(), before, "{arguments:?}");
    }
    // A trace that is cut off: what comes before is there, as in a conversion.
    let whole = fs::read(sandbox.file("trace.fxt")).unwrap();
    fs::write(sandbox.file("cut.fxt"), &whole[..whole.len() - 100]).unwrap();
    let output = sandbox.trace(["filter", "--strip-args", "cut.fxt", "o.fxt"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("1 problem in the trace"), "{}", text(&output.stderr));
    let events = comparable(dump(&sandbox, "o.fxt").iter()).len();
    assert_eq!(events, 15);
}
