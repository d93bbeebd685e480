//! The library as it is installed: found by pkg-config and by CMake.

use super::programs::record;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace_tests::{Requirement, Sandbox, build, native};

/// Installs the library of this build.
fn install(prefix: &Path) {
    // As the other tests have it, so that nothing is built a second time.
    let output = native::library_dir().join("libtrace.so").canonicalize().expect("the library");
    let directory = output.parent().expect("a directory");
    let status = Command::new("make")
        .current_dir(build::workspace())
        .args(["--silent", "install-c", "BUILD_C=true"])
        .arg(format!("OUTPUT_C={}", directory.display()))
        .arg(format!("PREFIX={}", prefix.display()))
        .output()
        .expect("make runs");
    native::check("make install-c", &status);
}

/// What pkg-config says of a library.
fn pkg_config(prefix: &Path, library: &str, arguments: &[&str]) -> Vec<String> {
    let output = Command::new("pkg-config")
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .args(arguments)
        .arg(library)
        .output()
        .expect("pkg-config runs");
    native::check("pkg-config", &output);
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

fn sources() -> [PathBuf; 2] {
    ["do_something.c", "provider_main.c"].map(native::source)
}

/// It does what it should with the shared library that was installed.
fn check_recorded(program: &Path, what: &str) {
    let (_, archive) = record(program, &[]);
    let names: Vec<String> = archive.events.iter().map(trace_tests::archive::Event::name).collect();
    assert_eq!(names, ["DoSomething", "DoSomething"], "{what}");
}

/// It reads with the library that was installed.
fn check_read(program: &Path, what: &str) {
    let trace = build::workspace().join("tests/data/corpus/loss.fxt");
    let output = Command::new(program).arg(trace).output().expect("it runs");
    native::check(what, &output);
    assert!(String::from_utf8_lossy(&output.stdout).contains(" - loss provider=1 "), "{what}: {output:?}");
}

/// It writes its own recording with the library that was installed.
fn check_json(program: &Path) {
    let output = Command::new(program).output().expect("it runs");
    native::check("a program that writes JSON", &output);
    let events: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let names = events.iter().filter(|event| event["ph"] == "X").map(|event| event["name"].as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["closed", "main", "main"].map(Some));
}

/// A program without any shared library records, and another one reads.
fn check_static(sandbox: &Sandbox, prefix: &Path) {
    let link = |name: &str, library: &str, sources: &[PathBuf]| {
        let program = sandbox.file(name);
        let flags = pkg_config(prefix, library, &["--static", "--cflags", "--libs"]);
        let mut gcc = Command::new("gcc");
        gcc.args(sources).arg("-o").arg(&program).args(&flags).arg("-static");
        native::check("gcc -static", &gcc.output().expect("gcc runs"));
        let headers = text_of(Command::new("readelf").args(["-lW"]).arg(&program));
        assert!(!headers.contains("INTERP"), "{name} has a loader: {headers}");
        program
    };
    check_recorded(&link("recording_static", "libtrace", &sources()), "gcc -static");
    check_read(&link("reading_static", "libtracereader", &[native::source("read.c")]), "gcc -static");
}

/// What is installed has no debug information, and a link to the file that has it.
fn check_stripped(prefix: &Path) {
    for (library, function) in
        [("libtrace", "trace_provider_create_with_fdio"), ("libtracereader", "trace_reader_close")]
    {
        let name = format!("{library}.so.{}", env!("CARGO_PKG_VERSION"));
        let path = prefix.join("lib").join(&name);
        let sections = text_of(Command::new("readelf").args(["-SW"]).arg(&path));
        assert!(!sections.contains(".debug_info") && !sections.contains(".symtab"), "{sections}");
        let sections = text_of(
            Command::new("readelf").args(["-SW"]).arg(prefix.join("lib").join(format!("{library}.a"))),
        );
        assert!(!sections.contains(".debug_info"), "{library}.a has debug information");

        let symbols = text_of(Command::new("nm").arg("-D").arg(&path));
        let symbol = symbols.lines().find(|line| line.ends_with(&format!(" T {function}")));
        let address = symbol.unwrap_or_else(|| panic!("no {function}: {symbols}"));
        let address = address.split(' ').next().expect("an address");
        let line = || text_of(Command::new("addr2line").arg("-e").arg(&path).arg(address));
        assert!(line().starts_with("??:"), "{name} knows lines by itself: {}", line());
        // Where every debugger looks.
        let mut below = prefix.join("lib/debug").into_os_string();
        below.push(&path);
        let debug = format!("{name}.debug");
        let beside = prefix.join("lib").join(&debug);
        fs::copy(PathBuf::from(below).with_file_name(&debug), &beside).expect("a debug file");
        assert!(line().contains("/src/"), "{name}: {}", line());
        fs::remove_file(beside).expect("a file");
    }
}

fn text_of(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    native::check("a tool", &output);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_installed_library_is_found() {
    let test = "an_installed_library_is_found";
    if !Requirement::Compilers.is_met(test) || !Requirement::Installing.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let prefix = sandbox.file("prefix");
    install(&prefix);
    let version = pkg_config(&prefix, "libtrace", &["--modversion"]);
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);

    let program = sandbox.file("shared");
    let flags = pkg_config(&prefix, "libtrace", &["--cflags", "--libs"]);
    let rpath = format!("-Wl,-rpath,{}", prefix.join("lib").display());
    let output =
        Command::new("gcc").args(sources()).arg("-o").arg(&program).args(&flags).arg(&rpath).output();
    native::check("gcc", &output.expect("gcc runs"));
    check_recorded(&program, "pkg-config");

    let program = sandbox.file("reading");
    let flags = pkg_config(&prefix, "libtracereader", &["--cflags", "--libs"]);
    let mut gcc = Command::new("gcc");
    gcc.arg(native::source("read.c")).arg("-o").arg(&program).args(&flags).arg(&rpath);
    native::check("gcc", &gcc.output().expect("gcc runs"));
    check_read(&program, "pkg-config");

    let program = sandbox.file("json");
    let flags = pkg_config(&prefix, "libtracejson", &["--cflags", "--libs"]);
    let mut gcc = Command::new("g++");
    gcc.arg(native::source("chromium_demo.cc"))
        .arg("-o")
        .arg(&program)
        .args(&flags)
        .args([&rpath, "-pthread"]);
    native::check("g++", &gcc.output().expect("g++ runs"));
    check_json(&program);

    check_static(&sandbox, &prefix);
    check_stripped(&prefix);

    let project = sandbox.file("project");
    fs::create_dir(&project).expect("a directory");
    let files = sources().map(|path| format!("\"{}\"", path.display())).join(" ");
    let reading = format!("\"{}\"", native::source("read.c").display());
    let text = format!(
        "cmake_minimum_required(VERSION 3.16)\nproject(app C)\nfind_package(Trace 0.1 REQUIRED)\n\
         add_executable(app {files})\ntarget_link_libraries(app PRIVATE Trace::trace)\n\
         add_executable(app_static {files})\ntarget_link_libraries(app_static PRIVATE Trace::trace_static)\n\
         add_executable(read {reading})\ntarget_link_libraries(read PRIVATE Trace::reader)\n\
         add_executable(read_static {reading})\ntarget_link_libraries(read_static PRIVATE Trace::reader_static)\n"
    );
    fs::write(project.join("CMakeLists.txt"), text).expect("a file");
    let output = Command::new("cmake")
        .args(["-S", ".", "-B", "build"])
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()))
        .current_dir(&project)
        .output()
        .expect("cmake runs");
    native::check("cmake", &output);
    let output = Command::new("cmake").args(["--build", "build"]).current_dir(&project).output();
    native::check("cmake --build", &output.expect("cmake runs"));
    for name in ["app", "app_static"] {
        check_recorded(&project.join("build").join(name), name);
    }
    for name in ["read", "read_static"] {
        check_read(&project.join("build").join(name), name);
    }

    let output = Command::new("make")
        .current_dir(build::workspace())
        .args(["--silent", "uninstall-c"])
        .arg(format!("PREFIX={}", prefix.display()))
        .output()
        .expect("make runs");
    native::check("make uninstall-c", &output);
    let left = Command::new("find").arg(&prefix).args(["-type", "f"]).output().expect("find runs");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "everything is removed");
}
