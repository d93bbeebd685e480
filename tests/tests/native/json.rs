//! Programs that write their own recordings as Chromium's JSON.

use serde_json::{Value, json};
use std::process::{Command, Output};
use trace_tests::{Requirement, Sandbox, native};

fn run(sandbox: &Sandbox, compiler: &str, source: &str) -> Output {
    let program = sandbox.file(compiler);
    let source = native::source(source);
    let flags = [&native::STRICT[..], &["-std=c++17"]].concat();
    native::json_program(compiler, &[source.to_str().unwrap()], &flags, &program);
    let output = Command::new(program).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).output().unwrap();
    native::check(compiler, &output);
    output
}

/// The events of a document but for names of processes and threads, without times of the machine's. Those are
/// checked: a slice is inside the one before it, or has no length.
fn events(document: &str) -> Vec<Value> {
    let events: Vec<Value> = serde_json::from_str(document).unwrap_or_else(|why| panic!("{why}: {document}"));
    let events = events.into_iter().filter(|event| event["ph"] != "M");
    let plain = |mut event: Value| {
        let members = event.as_object_mut().expect("an object");
        for time in ["ts", "tts", "dur", "tdur"] {
            if let Some(value) = members.get_mut(time) {
                let micros = value.as_f64().expect("a number");
                *value = json!(if micros > 0.0 { "later" } else { "0" });
            }
        }
        assert!(members.remove("pid").is_some_and(|pid| pid.is_u64()));
        event
    };
    events.map(plain).collect()
}

/// What Chromium's demo prints: slices that are open have no length, and "testxxx," is a category beside "".
//= docs/c.md#chromium
#[test]
fn chromiums_demo_prints_open_slices_with_times_of_the_thread() {
    if !Requirement::Compilers.is_met("chromiums_demo_prints_open_slices_with_times_of_the_thread") {
        return;
    }
    for compiler in native::CXX {
        let sandbox = Sandbox::new();
        let output = run(&sandbox, compiler, "chromium_demo.cc");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let raw: Vec<Value> = serde_json::from_str(&text).unwrap();
        let tid = raw[0]["tid"].clone();
        let open = |category: &str| {
            json!({"cat": category, "name": "main", "ph": "X", "tid": tid, "args": {},
                "ts": "later", "tts": "later", "tdur": "0"})
        };
        let closed = json!({"cat": "test", "name": "closed", "ph": "X", "tid": tid, "args": {"number": 1},
            "ts": "later", "tts": "later", "dur": "later", "tdur": "later"});
        assert_eq!(events(&text), [closed, open("test"), open("testxxx,")], "{compiler}: {text}");
        let number = |index: usize, member: &str| raw[index][member].as_f64().unwrap();
        for member in ["ts", "tts"] {
            let [closed, outer, inner] = [0, 1, 2].map(|index| number(index, member));
            assert!(outer <= inner && inner <= closed, "{member}: {text}");
        }
        assert!(number(0, "tdur") <= number(0, "dur"), "{text}");
        let named: Vec<&Value> = raw.iter().filter(|event| event["ph"] == "M").collect();
        assert_eq!(named[0]["args"]["name"], json!(compiler), "{text}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{compiler}");
    }
}

//= docs/c.md#chromium
#[test]
fn a_program_writes_json_with_chromiums_names() {
    if !Requirement::Compilers.is_met("a_program_writes_json_with_chromiums_names") {
        return;
    }
    for compiler in native::CXX {
        let sandbox = Sandbox::new();
        let output = run(&sandbox, compiler, "chromium_json.cc");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (mut printed, mut documents, mut whole) = (Vec::new(), Vec::new(), String::new());
        // A document has a line for each event.
        for line in text.lines() {
            whole.push_str(line);
            if line.ends_with(',') {
                continue;
            }
            let line = std::mem::take(&mut whole);
            match line.split_once(": ") {
                Some((what, document)) if document.starts_with('[') => {
                    documents.push((what.to_owned(), events(document)));
                }
                Some((what, event)) if event.starts_with('{') => {
                    documents.push((what.to_owned(), events(&format!("[{event}]"))));
                }
                _ => printed.push(line),
            }
        }
        let expected = [
            "nothing: 0",
            "bytes: 0 0 app",
            "enabled",
            "bytes: 1 0",
            "status: 6 of 262144",
            "disabled",
            "observers: 0",
            "archive: 0",
        ];
        assert_eq!(printed, expected, "{compiler}: {text}");
        let tid = documents[0].1[0]["tid"].clone();
        let state =
            r#"{"frames":3,"name":"a\"b\u000a","inner":{"on":true,"half":0.5},"list":[1,"x",2,{"":5}]}"#;
        let both = |arguments: Value| {
            json!({"cat": "app", "name": "both", "ph": "i", "s": "t", "tid": tid, "ts": "later",
                "args": arguments})
        };
        let timed = |mut event: Value| {
            event["tts"] = json!("later");
            event
        };
        let secret = |arguments: Value| {
            let mut event = both(arguments);
            event["name"] = json!("secret");
            event
        };
        let load = |phase: &str| {
            json!({"cat": "app", "name": "Load", "ph": phase, "id2": {"local": "0x12"}, "tid": 77,
                "ts": "later", "args": {}})
        };
        let flushed = vec![
            json!({"cat": "app", "name": "Converted", "ph": "i", "s": "t", "tid": tid, "ts": "later",
                "tts": "later", "args": {"state": state}}),
            json!({"cat": "app", "name": "Complete", "ph": "B", "tid": tid, "ts": "later", "tts": "later",
                "args": {"number": 7, "text": "seven"}}),
            json!({"cat": "app", "name": "Inside", "ph": "i", "s": "p", "tid": tid, "ts": "later",
                "tts": "later", "args": {"value": 1.5}}),
            json!({"ph": "E", "tid": tid, "ts": "later", "tts": "later", "args": {}}),
            load("b"),
            load("e"),
        ];
        let expected = [
            ("flush elsewhere", flushed),
            ("no predicate", vec![timed(both(json!("__stripped__")))]),
            ("predicate", vec![timed(both(json!({"public": 1, "private": "__stripped__"})))]),
            ("event", vec![both(json!({"public": "one", "private": true}))]),
            ("filtered", vec![both(json!({"public": "one", "private": "__stripped__"}))]),
            ("event", vec![secret(json!({"public": -1}))]),
            ("filtered", vec![secret(json!("__stripped__"))]),
        ];
        let expected = expected.map(|(what, events)| (what.to_owned(), events));
        assert_eq!(documents, expected, "{compiler}");
        let reasons = String::from_utf8_lossy(&output.stderr).into_owned();
        let json = "nothing is recorded: the TraceConfig of one argument is JSON: line 1, column ";
        let expected = [
            format!("{json}1: expected an object, {{ ... }}"),
            "nothing is recorded: \"record-for-ever\" is no option of a TraceConfig".to_owned(),
            format!("{json}2: unknown key included_categorys; did you mean included_categories?"),
            "nothing is recorded: trace-to-console needs TRACE_ECHO=1 in the environment".to_owned(),
            "an archive has all arguments, which enable-argument-filter is against: use Flush()".to_owned(),
        ];
        assert_eq!(reasons.lines().count(), expected.len(), "{reasons}");
        for (line, expected) in reasons.lines().zip(expected) {
            assert!(line.ends_with(&format!("trace: {expected}")), "{line}");
        }
    }
}

#[test]
fn the_library_for_json_exports_its_header() {
    let test = "the_library_for_json_exports_its_header";
    native::check_exports(test, "libtracejson", ("trace-json/c_api.h", "trace_json_", 3));
}
