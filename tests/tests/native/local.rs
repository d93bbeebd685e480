//! Programs in C and C++ that record themselves.

use std::process::{Command, Output};
use trace_tests::{Archive, Sandbox, native};

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
    if !native::has_compilers("a_c_program_records_itself") {
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
        assert!(reasons[0].contains("trace provider: no local recording: "), "{reasons:?}");
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
    if !native::has_compilers("a_program_with_chromiums_names_records_itself") {
        return;
    }
    for compiler in ["g++", "clang++"] {
        let sandbox = Sandbox::new();
        let flags = [&native::STRICT[..], &["-std=c++17"]].concat();
        let output = run(&sandbox, compiler, "trace_log.cc", &flags);
        let expected = "*: 1 0 1\n\
                        ,app,app.verbose,-app.verbose: 1 0 1\n\
                        *,-net,disabled-by-default-*: 1 0 1\n\
                        cancelled: 0 0\n";
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{compiler}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{compiler}");
        let found = |file: &str| {
            let mut names = names(&sandbox, file);
            names.sort();
            names
        };
        assert_eq!(found("all.fxt"), ["DoWork", "bytes", "step"], "{compiler}");
        assert_eq!(found("app.fxt"), ["DoWork"], "{compiler}");
        assert_eq!(found("most.fxt"), ["DoWork", "draw", "step"], "{compiler}");
    }
}

/// `TRACE_ECHO` is for programs in C, too.
//= docs/c.md#recordings-inside-one-process
#[test]
fn events_of_a_c_program_are_printed() {
    if !native::has_compilers("events_of_a_c_program_are_printed") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("echoing");
    native::program("gcc", &[native::source("echoing.c").to_str().unwrap()], &[], &program);
    let mut command = Command::new(program);
    let output =
        command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env("TRACE_ECHO", "1").output().unwrap();
    native::check("gcc", &output);
    let lines = String::from_utf8_lossy(&output.stderr).into_owned();
    let words: Vec<Vec<&str>> = lines.lines().map(|line| line.split_whitespace().skip(1).collect()).collect();
    let [outer, inner] = &words[..] else { panic!("{lines}") };
    assert_eq!((&outer[..2], outer.last()), (&["echoing", "echo:outer"][..], Some(&"number=1")), "{lines}");
    assert_eq!(inner[..], ["echoing", "echo:inner"], "{lines}");
}

/// A block of the page as a program: what stands before the first statement remains outside of `main`.
fn example(sandbox: &Sandbox, language: &str, compiler: &str, name: &str) {
    let page = trace_tests::pages::read("docs/c.md");
    let (_, section) = page.split_once("## Recordings inside one process").expect("a section");
    let (_, rest) = section.split_once(&format!("```{language}\n")).expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let (head, body): (Vec<&str>, Vec<&str>) =
        example.lines().partition(|line| line.starts_with('#') || line.starts_with("using "));
    let text = format!(
        "#include <stdio.h>\n{}\nint main(void) {{\nFILE* file = fopen(\"log.fxt\", \"w\");\n{}\nfclose(file);\n\
         return 0;\n}}\n",
        head.join("\n"),
        body.join("\n")
    );
    let source = sandbox.file(name);
    std::fs::write(&source, text).unwrap();
    let program = sandbox.file("example");
    native::program(compiler, &[source.to_str().unwrap()], &["-Wall", "-Werror"], &program);
    let mut command = Command::new(program);
    command.current_dir(sandbox.work_dir()).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
    let output = command.output().unwrap();
    native::check(name, &output);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
}

//= docs/c.md#recordings-inside-one-process
#[test]
fn the_examples_of_the_page_record_themselves() {
    if !native::has_compilers("the_examples_of_the_page_record_themselves") {
        return;
    }
    let sandbox = Sandbox::new();
    example(&sandbox, "c", "gcc", "example.c");
    example(&sandbox, "cpp", "g++", "example.cc");
    for file in ["slow.fxt", "app.fxt", "log.fxt"] {
        assert_eq!(names(&sandbox, file), [""; 0], "{file}");
    }
}
