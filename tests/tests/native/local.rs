//! Programs in C and C++ that record themselves.

use std::process::{Command, Output};
use trace_tests::{Archive, Requirement, Sandbox, native};

fn run(sandbox: &Sandbox, compiler: &str, source: &str, flags: &[&str]) -> Output {
    let program = sandbox.file(compiler);
    let source = native::source(source);
    native::program(compiler, &[source.to_str().unwrap()], flags, &program);
    let mut command = Command::new(program);
    command.arg(sandbox.work_dir()).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
    let output = command.output().unwrap();
    native::check(compiler, &output);
    output
}

fn names(sandbox: &Sandbox, file: &str) -> Vec<String> {
    let archive = Archive::read(&sandbox.file(file));
    archive.events.iter().map(trace_tests::archive::Event::name).collect()
}

//= docs/c.md#recordings-inside-one-process
#[test]
fn a_c_program_records_itself() {
    if !Requirement::Compilers.is_met("a_c_program_records_itself") {
        return;
    }
    for compiler in ["gcc", "clang"] {
        let sandbox = Sandbox::new();
        let output = run(&sandbox, compiler, "local.c", &native::STRICT);
        let expected = "nothing yet: 0 0\n\
                        streaming: 0\n\
                        start: 1\n\
                        again: 0\n\
                        snapshot: 1 5000 0\n\
                        requested: 1\n\
                        recording: 1\n\
                        flush: 1 10000 0, 1 of more pieces, 65536, 1 last\n\
                        again: 0\n\
                        start: 1\n\
                        stop: 1\n\
                        file: 1 2\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{compiler}: {output:?}");
        let reasons = String::from_utf8_lossy(&output.stderr).into_owned();
        let reasons: Vec<&str> = reasons.lines().collect();
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        assert!(reasons[0].contains("trace: no local recording: "), "{reasons:?}");
        assert!(reasons[2].ends_with("saved: there is no local recording"), "{reasons:?}");
        for (file, events) in [("snapshot", 5000), ("requested", 5000), ("flushed", 10_000), ("file", 2)] {
            assert_eq!(names(&sandbox, &format!("{file}.fxt")), vec!["event"; events], "{file}");
        }
    }
}

/// Categories and modes as Chromium's page describes them.
//= docs/c.md#recordings-inside-one-process
#[test]
fn a_program_with_chromiums_names_records_itself() {
    if !Requirement::Compilers.is_met("a_program_with_chromiums_names_records_itself") {
        return;
    }
    for compiler in ["g++", "clang++"] {
        let sandbox = Sandbox::new();
        let flags = [&native::STRICT[..], &["-std=c++17"]].concat();
        let output = run(&sandbox, compiler, "trace_log.cc", &flags);
        let expected = "*: 1 0 1\n\
                        ,app,app.verbose,-app.verbose: 1 0 1\n\
                        *,-net,disabled-by-default-*: 1 0 1\n\
                        ,app: 1 0 1\n\
                        -*: 1 0 1\n\
                        cancelled: 0 0\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{compiler}: {output:?}");
        let systrace = "trace: enable-systrace: events of the kernel are recorded by `trace record` alone\n";
        assert_eq!(String::from_utf8_lossy(&output.stderr), systrace, "{compiler}");
        let found = |file: &str| {
            let mut names = names(&sandbox, file);
            names.sort();
            names
        };
        assert_eq!(found("all.fxt"), ["DoWork", "bytes", "step"], "{compiler}");
        assert_eq!(found("app.fxt"), ["DoWork"], "{compiler}");
        assert_eq!(found("most.fxt"), ["DoWork", "draw", "step"], "{compiler}");
        assert_eq!(found("only.fxt"), ["DoWork"], "{compiler}");
        assert_eq!(found("none.fxt"), [""; 0], "{compiler}");
    }
}

//= docs/c.md#a-hook-for-each-event
#[test]
fn a_function_of_a_c_program_sees_each_event() {
    if !Requirement::Compilers.is_met("a_function_of_a_c_program_sees_each_event") {
        return;
    }
    for compiler in ["gcc", "clang"] {
        let sandbox = Sandbox::new();
        let output = run(&sandbox, compiler, "hooks.c", &[&native::STRICT[..], &["-pthread"]].concat());
        let seen = |when: &str| {
            [
                "instant app/step number=-5 text=value 0 1",
                "counter app/load busy=0.5 3 1",
                "instant app/secret 0 1",
                "begin app/work 0 1",
                "flow begin app/flow 9 1",
                "end app/work 0 1",
                "async end app/by hand 8 1",
            ]
            .map(|event| format!("{when} {event}\n"))
            .concat()
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (printed, counted) = text.split_once("all: ").expect("both parts");
        let expected = format!("{}{}printed: 1 19 0\n", seen("before"), seen("during"));
        assert_eq!(printed, expected, "{compiler}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{compiler}");
        let mut found = names(&sandbox, "printed.fxt");
        found.retain(|name| name == "secret");
        assert_eq!(found.len(), 1, "{compiler}: while there was none");
        let numbers: Vec<usize> =
            counted.split(|char: char| !char.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        let [1, seen, 1, recorded, 0] = numbers[..] else { panic!("{compiler}: {counted}") };
        assert_eq!(seen + recorded, 5000, "{compiler}: each event in one place");
        assert_eq!(names(&sandbox, "counted.fxt"), vec!["many"; recorded], "{compiler}");
    }
}

/// The functions that Chromium's TraceLog takes.
//= docs/c.md#a-hook-for-each-event
#[test]
fn chromiums_overrides_see_each_event() {
    if !Requirement::Compilers.is_met("chromiums_overrides_see_each_event") {
        return;
    }
    for compiler in ["g++", "clang++"] {
        let sandbox = Sandbox::new();
        let flags = [&native::STRICT[..], &["-std=c++17"]].concat();
        let output = run(&sandbox, compiler, "overrides.cc", &flags);
        let seen = |how: &str, handle: &str| {
            format!(
                "{how} I app step number=-1 on=1\n{how} X app DoWork name=value\nupdate app DoWork {handle} 1 0 1\n"
            )
        };
        let expected = [
            &seen("override", "7 0"),
            "flush\n",
            &seen("override", "7 0"),
            &seen("filter", "0 5"),
            "update app DoWork 0 0 1 0 1\n",
        ]
        .concat();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{compiler}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{compiler}");
        assert_eq!(names(&sandbox, "override.fxt"), [""; 0], "{compiler}");
        let mut found = names(&sandbox, "filter.fxt");
        found.sort();
        assert_eq!(found, ["DoWork", "DoWork", "DoWork", "step", "step"], "{compiler}");
    }
}

/// `TRACE_ECHO` is for programs in C, too.
//= docs/c.md#recordings-inside-one-process
#[test]
fn events_of_a_c_program_are_printed() {
    if !Requirement::Compilers.is_met("events_of_a_c_program_are_printed") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("echoing");
    native::program("gcc", &[native::source("echoing.c").to_str().unwrap()], &[], &program);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env("TRACE_ECHO", "1");
        let output = command.output().unwrap();
        native::check("gcc", &output);
        // What was recorded to be printed is for nothing else, also where the provider is never destroyed.
        let entries =
            std::fs::read_dir(sandbox.runtime_dir()).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = entries.filter(|name| name.to_string_lossy().starts_with("session-")).collect();
        assert!(left.is_empty(), "{left:?}");
        output
    };
    run(&["keep"]);
    let output = run(&[]);
    let lines = String::from_utf8_lossy(&output.stderr).into_owned();
    let words: Vec<Vec<&str>> = lines.lines().map(|line| line.split_whitespace().skip(1).collect()).collect();
    let [outer, inner] = &words[..] else { panic!("{lines}") };
    assert_eq!((&outer[..2], outer.last()), (&["echoing", "echo:outer"][..], Some(&"number=1")), "{lines}");
    assert_eq!(inner[..], ["echoing", "echo:inner"], "{lines}");
}

/// The first block of a section of the page as a program: its last paragraph is the body of `main`.
fn example(sandbox: &Sandbox, section: &str, language: &str, compiler: &str, name: &str) {
    let page = trace_tests::pages::read("docs/c.md");
    let (_, section) = page.split_once(&format!("## {section}\n")).expect("a section");
    let (_, rest) = section.split_once(&format!("```{language}\n")).expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let (head, body) = example.rsplit_once("\n\n").expect("a body");
    let text = format!(
        "#include <stdio.h>\n{head}\nint main(void) {{\nFILE* file = fopen(\"log.json\", \"w\");\n{body}\n\
         fclose(file);\nreturn 0;\n}}\n"
    );
    let source = sandbox.file(name);
    std::fs::write(&source, &text).unwrap();
    let program = sandbox.file("example");
    let link = if text.contains("Flush(") { native::json_program } else { native::program };
    link(compiler, &[source.to_str().unwrap()], &["-Wall", "-Werror"], &program);
    let mut command = Command::new(program);
    command.current_dir(sandbox.work_dir()).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
    let output = command.output().unwrap();
    native::check(name, &output);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
}

//= docs/c.md#recordings-inside-one-process
#[test]
fn the_examples_of_the_page_record_themselves() {
    if !Requirement::Compilers.is_met("the_examples_of_the_page_record_themselves") {
        return;
    }
    let sandbox = Sandbox::new();
    let section = "Recordings inside one process";
    example(&sandbox, section, "c", "gcc", "example.c");
    example(&sandbox, section, "cpp", "g++", "example.cc");
    for file in ["slow.fxt", "app.fxt"] {
        assert_eq!(names(&sandbox, file), [""; 0], "{file}");
    }
    let document = std::fs::read_to_string(sandbox.file("log.json")).unwrap();
    let events: Vec<serde_json::Value> = serde_json::from_str(&document).unwrap();
    assert!(events.iter().all(|event| event["ph"] == "M"), "{document}");
}

//= docs/c.md#a-hook-for-each-event
#[test]
fn the_examples_of_hooks_compile_and_run() {
    if !Requirement::Compilers.is_met("the_examples_of_hooks_compile_and_run") {
        return;
    }
    let sandbox = Sandbox::new();
    let section = "A hook for each event";
    example(&sandbox, section, "c", "gcc", "hook.c");
    example(&sandbox, section, "cpp", "g++", "hook.cc");
}
