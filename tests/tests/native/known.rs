//! The categories of sites in C and C++ that were not passed yet.

use std::path::Path;
use std::process::Command;
use trace_tests::{Requirement, Sandbox, native, wait_for};

/// Of `known.h`, in order.
const KNOWN: [&str; 9] = [
    "as one of several",
    "known",
    "known alert",
    "known blob",
    "known counter",
    "known duration",
    "known instaflow",
    "known instant",
    "known question",
];
const MORE_IN_CXX: [&str; 4] = ["known constructor", "known inline", "known lambda", "known template"];

/// Options for the linker are there when sources are compiled, too.
const UNUSED_OPTIONS: &str = "-Wno-unused-command-line-argument";

/// The categories that are listed while a program runs.
fn listed(sandbox: &Sandbox, program: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new(program);
    command.args(arguments).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).env_remove("TRACE_RECORD");
    let mut process = Sandbox::spawn_command(command);
    assert_eq!(process.line(), "ready");
    // It registers in the background.
    let listed = wait_for("the program to register", || {
        let output = sandbox.trace(["list-categories"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let listed: Vec<String> = said.lines().skip(1).map(|line| line.trim().to_owned()).collect();
        (!listed.is_empty()).then_some(listed)
    });
    process.say("");
    process.succeed();
    listed
}

//= docs/c.md#known-categories
#[test]
fn categories_of_sites_that_were_never_passed_are_listed() {
    if !Requirement::Compilers.is_met("categories_of_sites_that_were_never_passed_are_listed") {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("program");
    let c = native::C.map(|compiler| (compiler, &["known.c"][..], "-std=c11"));
    let cxx = native::CXX.map(|compiler| (compiler, &["known.cc", "known_other.cc"][..], "-std=c++17"));
    let ways: [&[&str]; 6] = [
        &["-O0"],
        &["-O2"],
        &["-O2", "-flto"],
        &["-O1", "-no-pie", "-fno-pie"],
        &["-O2", "-masm=intel"],
        &["-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"],
    ];
    for (compiler, sources, standard) in c.into_iter().chain(cxx) {
        let mut expected = KNOWN.to_vec();
        if compiler.ends_with("++") {
            expected.extend(MORE_IN_CXX);
            expected.sort_unstable();
        }
        for way in ways {
            let flags =
                [&native::STRICT[..], &[standard, "-pthread", "-Wno-unused-function", UNUSED_OPTIONS], way]
                    .concat();
            native::program(compiler, sources, &flags, &program);
            assert_eq!(listed(&sandbox, &program, &[]), expected, "{compiler} {way:?}");
        }
    }
    // A library, as long as it is loaded; and the static library, which is a copy of its own in each.
    let plugin = sandbox.file("plugin.so");
    let define = ["-shared", "-fPIC", "-DPLUGIN_NAME=\"plugin\""];
    native::program("gcc", &["plugin.c"], &define, &plugin);
    let path = plugin.to_str().expect("a path in UTF-8");
    let mut expected = KNOWN.to_vec();
    expected.push("plugin");
    native::program("gcc", &["known.c"], &[], &program);
    assert_eq!(listed(&sandbox, &program, &[path]), expected);
    native::static_program("gcc", &["plugin.c"], &define, &plugin);
    native::static_program("gcc", &["known.c"], &[], &program);
    assert_eq!(listed(&sandbox, &program, &[path]), expected);
}
