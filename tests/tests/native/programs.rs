//! Small programs, and exactly what is recorded of them.

use std::path::Path;
use trace_format::event::EventKind;
use trace_tests::archive::Value;
use trace_tests::{Archive, Requirement, Sandbox, native};

/// Records a program. What it ends with has to be good.
pub fn record(program: &Path, arguments: &[&str]) -> (Sandbox, Archive) {
    let program = program.to_str().expect("a path in UTF-8");
    let sandbox = Sandbox::new();
    let all = [&["record", "--output-file", "trace.fxt", "--", program], arguments].concat();
    let output = sandbox.trace(all);
    native::check(program, &output);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    (sandbox, archive)
}

/// Category, name and arguments of an event, as text.
pub fn shown(event: &trace_tests::archive::Event) -> String {
    let event = &event.event;
    let value = |value: &Value| match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int32(value) => format!("{value}i32"),
        Value::Uint32(value) => format!("{value}u32"),
        Value::Int64(value) => format!("{value}i64"),
        Value::Uint64(value) => format!("{value}u64"),
        Value::Double(value) => format!("{value:?}"),
        Value::String(text) => format!("{:?}", text.to_str()),
        Value::Pointer(value) => format!("{value:#x}p"),
        Value::Koid(koid) => format!("{}k", koid.0),
        Value::Blob(bytes) => format!("{bytes:?}"),
        Value::Unknown => "unknown".to_owned(),
    };
    let arguments: Vec<String> =
        event.arguments.iter().map(|(name, found)| format!("{}={}", name.to_str(), value(found))).collect();
    let kind = match &event.kind {
        EventKind::DurationComplete { .. } => "complete".to_owned(),
        kind => format!("{kind:?}").to_lowercase(),
    };
    format!("{kind} {}/{} {}", event.category.to_str(), event.name.to_str(), arguments.join(" "))
        .trim_end()
        .to_owned()
}

/// What is recorded of a program, event by event.
pub fn events(program: &Path, arguments: &[&str]) -> Vec<String> {
    record(program, arguments).1.events.iter().map(shown).collect()
}

const EXPECTED: [&str; 2] =
    [r#"complete example/DoSomething a=1i32 b="one""#, r#"complete example/DoSomething a=-2i32 b="two""#];

#[test]
fn programs_with_a_loop_and_a_provider_are_recorded() {
    if !Requirement::Compilers.is_met("programs_with_a_loop_and_a_provider_are_recorded") {
        return;
    }
    let sandbox = Sandbox::new();
    let c = native::C.map(|compiler| (compiler, ["do_something.c", "provider_main.c"], "-std=c11"));
    let cxx = native::CXX.map(|compiler| (compiler, ["do_something.cc", "provider_main.cc"], "-std=c++17"));
    for (compiler, sources, standard) in c.into_iter().chain(cxx) {
        for optimization in ["-O0", "-O2"] {
            let program = sandbox.file("program");
            let flags = [&native::STRICT[..], &[standard, optimization]].concat();
            native::program(compiler, &sources, &flags, &program);
            assert_eq!(events(&program, &[]), EXPECTED, "{compiler} {optimization}");
        }
    }
}

/// Whichever way it makes its provider, while a recording is running that it was not started by.
//= docs/protocol.md#a-recording-is-announced
#[test]
fn the_first_event_is_recorded_however_the_provider_was_made() {
    if !Requirement::Compilers.is_met("the_first_event_is_recorded_however_the_provider_was_made") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("first");
    native::program("gcc", &["first.c"], &[&native::STRICT[..], &["-std=c11"]].concat(), &program);
    let output = sandbox.trace(["start"]);
    assert!(output.status.success(), "{output:?}");
    for way in ["0", "1", "2", "3", "4"] {
        let mut command = std::process::Command::new(&program);
        command.arg(way).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env_remove("TRACE_RECORD");
        native::check(way, &command.output().unwrap());
    }
    let output = sandbox.trace(["stop"]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let events: Vec<String> = archive.events.iter().map(shown).collect();
    let expected = |way| format!("instant {{ scope: thread }} first/event way={way}i32");
    assert_eq!(events, (0..5).map(expected).collect::<Vec<_>>());
    // The parent of the child is a provider, too.
    assert_eq!(archive.providers.len(), 1 + 5 + 1);
}

#[test]
fn the_static_library_does_the_same() {
    if !Requirement::Compilers.is_met("the_static_library_does_the_same") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    native::static_program("gcc", &["do_something.c", "provider_main.c"], &["-O2"], &program);
    assert_eq!(events(&program, &[]), EXPECTED);
    native::static_program(
        "clang++",
        &["do_something.cc", "provider_main.cc"],
        &["-O2", "-std=c++17"],
        &program,
    );
    assert_eq!(events(&program, &[]), EXPECTED);
}

#[test]
fn a_program_without_a_manager_runs_on() {
    if !Requirement::Compilers.is_met("a_program_without_a_manager_runs_on") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    native::program("gcc", &["do_something.c", "provider_main.c"], &[], &program);
    let output = std::process::Command::new(&program)
        .env("TRACE_RUNTIME_DIR", sandbox.runtime_dir())
        .output()
        .expect("the program runs");
    native::check("without a manager", &output);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
