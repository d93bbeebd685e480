//! What the library exports, and what objects refer to.

use std::fs;
use std::process::Command;
use trace_tests::{Requirement, Sandbox, build, compiled, native};

fn run(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    native::check(program, &output);
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn library() -> String {
    native::library_dir().join("libtrace.so").to_str().expect("UTF-8").to_owned()
}

/// Programs are linked against these: what is missing here breaks them, what is new is to be kept from then
/// on.
#[test]
fn the_library_exports_its_list_and_nothing_else() {
    if !Requirement::Binutils.is_met("the_library_exports_its_list_and_nothing_else") {
        return;
    }
    let symbols = run("nm", &["--dynamic", "--defined-only", &library()]);
    let mut names: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    names.sort_unstable();
    let path = build::workspace().join("crates/trace-c/exports.txt");
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let kept: Vec<&str> = kept.lines().collect();
    assert_eq!(names, kept, "{} is not what is exported", path.display());
}

/// The list and the headers agree: whatever is declared can be linked.
#[test]
fn headers_declare_what_is_exported() {
    let exports =
        fs::read_to_string(build::workspace().join("crates/trace-c/exports.txt")).expect("the list");
    let mut declared = String::new();
    let output =
        Command::new("grep").args(["-rhv", "^ *//"]).arg(native::include_dir()).output().expect("grep runs");
    declared.push_str(&String::from_utf8_lossy(&output.stdout));
    for name in exports.lines() {
        assert!(declared.contains(name), "no header declares {name}");
    }
}

#[test]
fn the_library_has_a_name_for_its_compatibility() {
    if !Requirement::Binutils.is_met("the_library_has_a_name_for_its_compatibility") {
        return;
    }
    let dynamic = run("readelf", &["--dynamic", &library()]);
    assert!(dynamic.contains("[libtrace.so.0]"), "{dynamic}");
}

#[test]
fn objects_without_trace_refer_to_nothing() {
    let test = "objects_without_trace_refer_to_nothing";
    if !Requirement::Compilers.is_met(test) || !Requirement::Binutils.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let object = sandbox.file("object.o");
    let source = native::source("without_trace.c");
    let languages = [
        ("gcc", "c", "-std=c11"),
        ("clang", "c", "-std=c11"),
        ("g++", "c++", "-std=c++17"),
        ("clang++", "c++", "-std=c++17"),
    ];
    for (compiler, language, standard) in languages {
        for optimization in ["-O0", "-O2"] {
            let flags = [&native::STRICT[..], &[optimization, standard, "-x", language]].concat();
            native::check(compiler, &compiled::compile(compiler, &flags, &source, Some(&object)));
            let symbols = run("nm", &["--undefined-only", object.to_str().expect("UTF-8")]);
            assert_eq!(symbols, "", "{compiler} {optimization}");
        }
    }
}

/// A program with another layout of sites and slabs does not link; and if it does, because it was linked with
/// another library, it does not start.
#[test]
fn another_layout_neither_links_nor_loads() {
    if !Requirement::Compilers.is_met("another_layout_neither_links_nor_loads") {
        return;
    }
    let sandbox = Sandbox::new();
    let changed = sandbox.file("include");
    let status = Command::new("cp").arg("-r").arg(native::include_dir()).arg(&changed).status();
    assert!(status.expect("cp runs").success());
    let header = changed.join("lib/trace/internal/layout.h");
    let text = fs::read_to_string(&header).expect("the header");
    assert!(text.contains("trace_internal_layout_2"));
    fs::write(&header, text.replace("trace_internal_layout_2", "trace_internal_layout_9")).expect("a file");
    let program = sandbox.file("program");
    let link = |more: &[&str]| {
        Command::new("gcc")
            .arg("-I")
            .arg(&changed)
            .args(["do_something.c", "provider_main.c"].map(native::source))
            .arg("-o")
            .arg(&program)
            .args(more)
            .arg(format!("-L{}", native::library_dir().display()))
            .arg("-ltrace")
            .arg(format!("-Wl,-rpath,{}", native::library_dir().display()))
            .output()
            .expect("gcc runs")
    };
    let output = link(&[]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("undefined reference to `trace_internal_layout_9'"), "{said}");
    // A library that had it, when the program was linked.
    let (source, other) = (sandbox.file("other.c"), sandbox.file("libother.so"));
    fs::write(&source, "long trace_internal_layout_9;\n").expect("a file");
    let arguments = ["-shared", "-fPIC", "-Wl,-soname,libtrace.so.0", "-o"];
    let output = Command::new("gcc").args(arguments).arg(&other).arg(&source).output().expect("gcc runs");
    native::check("gcc", &output);
    native::check("gcc", &link(&[other.to_str().expect("UTF-8"), "-Wl,--unresolved-symbols=ignore-all"]));
    let output = Command::new(&program).output().expect("it is started");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("undefined symbol: trace_internal_layout_9"), "{said}");
}

/// The macros of the headers that are for C++ only are compiled to nothing, too.
#[test]
fn more_macros_are_compiled_to_nothing() {
    let test = "more_macros_are_compiled_to_nothing";
    if !Requirement::Compilers.is_met(test) || !Requirement::Binutils.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let object = sandbox.file("object.o");
    for compiler in native::CXX {
        for (name, expected) in [
            ("chromium.cc", &["trace_provider_start"][..]),
            ("types.cc", &["trace_provider_start"]),
            ("virtual.cc", &["trace_provider_start", "zx_ticks_get"]),
        ] {
            // Arguments that are not evaluated leave unused variables behind.
            let flags = [&native::STRICT[..], &["-Wno-unused", "-O2", "-std=c++17", "-DNTRACE"]].concat();
            let source = native::source(name);
            native::check(compiler, &compiled::compile(compiler, &flags, &source, Some(&object)));
            let symbols = run("nm", &["--undefined-only", object.to_str().expect("UTF-8")]);
            let ours: Vec<&str> = symbols
                .lines()
                .filter_map(|line| line.split_whitespace().last())
                .filter(|name| name.starts_with("trace_") || name.starts_with("zx_"))
                .collect();
            assert_eq!(ours, expected, "{compiler} {name}");
        }
    }
}
