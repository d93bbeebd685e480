//! Programs under the compilers' sanitizers and under valgrind.

use super::hosting::host;
use super::programs::record;
use std::collections::BTreeMap;
use std::process::Command;
use trace_tests::{Archive, Requirement, Sandbox, native};

/// Of `threads.c`.
const THREADS: i32 = 8;
const EVENTS: usize = 2000;

/// Each thread's events are there, in order.
fn check_threads(archive: &Archive) {
    let mut last: BTreeMap<(u64, String), usize> = BTreeMap::new();
    for event in &archive.events {
        let Some(trace_tests::archive::Value::Int32(i)) = event.event.argument("i") else {
            panic!("{event:?}");
        };
        let seen = last.entry((event.event.thread.0, event.name())).or_default();
        assert_eq!(*i as usize, *seen, "{event:?}");
        *seen += 1;
    }
    assert_eq!(last.len(), 2 * THREADS as usize);
    assert!(last.values().all(|count| *count == EVENTS), "{last:?}");
}

/// Whether there are compilers, one of them with its sanitizers.
fn are_there(test: &str, compiler: &'static str) -> bool {
    Requirement::Compilers.is_met(test) && Requirement::Sanitizers(compiler).is_met(test)
}

fn sanitizers_have_nothing_to_say_of_c(compiler: &'static str) {
    let test = format!("sanitizers_have_nothing_to_say_of_c: {compiler}");
    if !are_there(&test, compiler) {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    let flags = [&native::SANITIZED[..], &["-pthread", "-D_GNU_SOURCE"]].concat();
    native::program(compiler, &["threads.c"], &flags, &program);
    check_threads(&record(&program, &[]).1);
    for source in ["rare.c", "by_hand.c", "words.c"] {
        native::program(compiler, &[source], &flags, &program);
        // These say with their status whether all was well; what they record is another test's.
        let options: &[&str] = match source {
            "rare.c" => &["--categories", "rare"],
            "by_hand.c" => &["--categories", "hand*"],
            _ => &[],
        };
        run_recorded(&program, options, &format!("{compiler} {source}"));
    }
    native::program(compiler, &["host.c"], &flags, &program);
    for mode in 0..3 {
        let output = host(&mut Command::new(&program), mode, &sandbox);
        native::check(&format!("{compiler} host.c {mode}"), &output);
    }
}

fn sanitizers_have_nothing_to_say_of_cxx(compiler: &'static str) {
    let test = format!("sanitizers_have_nothing_to_say_of_cxx: {compiler}");
    if !are_there(&test, compiler) {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    let flags = [&native::SANITIZED[..], &["-pthread", "-D_GNU_SOURCE", "-std=c++17"]].concat();
    for (source, categories) in [
        ("types.cc", "types"),
        ("chromium.cc", "chromium"),
        ("statics.cc", "statics"),
        ("observing.cc", "observed"),
    ] {
        native::program(compiler, &[source], &flags, &program);
        run_recorded(&program, &["--categories", categories], &format!("{compiler} {source}"));
    }
}

#[test]
fn sanitizers_of_gcc() {
    sanitizers_have_nothing_to_say_of_c(native::C[0]);
}

#[test]
fn sanitizers_of_clang() {
    sanitizers_have_nothing_to_say_of_c(native::C[1]);
}

#[test]
fn sanitizers_of_gcc_in_cxx() {
    sanitizers_have_nothing_to_say_of_cxx(native::CXX[0]);
}

#[test]
fn sanitizers_of_clang_in_cxx() {
    sanitizers_have_nothing_to_say_of_cxx(native::CXX[1]);
}

fn run_recorded(program: &std::path::Path, options: &[&str], what: &str) {
    let program = program.to_str().expect("a path in UTF-8");
    let sandbox = Sandbox::new();
    let output =
        sandbox.trace([&["record", "--output-file", "trace.fxt"], options, &["--", program]].concat());
    native::check(what, &output);
    assert!(!Archive::read(&sandbox.file("trace.fxt")).events.is_empty(), "{what}: nothing is recorded");
}

/// A reader that is given anything whatever.
#[test]
fn the_reader_stays_within_its_input() {
    if !are_there("the_reader_stays_within_its_input", "clang++") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("dump");
    let flags = [&native::SANITIZED[..], &["-std=c++17", "-DNDEBUG"]].concat();
    native::program("clang++", &["dump.cc"], &flags, &program);
    let corpus = trace_tests::build::workspace().join("tests/data/corpus");
    let mut files = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "fxt") {
            let output = Command::new(&program).arg(entry.path()).output().expect("it runs");
            native::check(&entry.path().display().to_string(), &output);
            files += 1;
        }
    }
    assert!(files > 100, "{files} files");
}

#[test]
fn valgrind_has_nothing_to_say() {
    let test = "valgrind_has_nothing_to_say";
    if !Requirement::Compilers.is_met(test) || !Requirement::Valgrind.is_met(test) {
        return;
    }
    let build = Sandbox::new();
    let program = build.file("threads");
    // As many events as valgrind does in a moment.
    native::program("gcc", &["threads.c"], &["-g", "-pthread", "-DEVENTS=200"], &program);
    let program = program.to_str().expect("a path in UTF-8");
    let sandbox = Sandbox::new();
    let options = ["record", "--output-file", "trace.fxt", "--", "valgrind", "--quiet", "--error-exitcode=9"];
    let output = sandbox
        .trace([&options[..], &["--leak-check=full", "--errors-for-leak-kinds=definite", program]].concat());
    native::check("valgrind", &output);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.events.len(), 2 * 200 * THREADS as usize);
}

#[test]
fn valgrind_runs_the_first_program_that_asks_for_the_clock() {
    let test = "valgrind_runs_the_first_program_that_asks_for_the_clock";
    if !Requirement::Compilers.is_met(test) || !Requirement::Valgrind.is_met(test) {
        return;
    }
    // No process has found the clock's rate in here before.
    let sandbox = Sandbox::new();
    let program = sandbox.file("host");
    native::program("gcc", &["host.c"], &["-g", "-pthread", "-D_GNU_SOURCE"], &program);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9"]).arg(&program);
    native::check("valgrind host.c", &host(&mut valgrind, 0, &sandbox));
}
