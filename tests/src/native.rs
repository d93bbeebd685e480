//! Programs in C and C++ that tests compile against the headers and the library of this workspace.

use crate::requirement::Requirement;
use crate::{build, compiled};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Compilers of C.
pub const C: [&str; 2] = ["gcc", "clang"];
/// Compilers of C++.
pub const CXX: [&str; 2] = ["g++", "clang++"];
/// Warnings that the headers are clean of, and that end the compilation.
pub const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Flags for the sanitizers of addresses, leaks and undefined behaviour, which end a program.
pub const SANITIZED: [&str; 4] = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Where the headers are.
#[must_use]
pub fn include_dir() -> PathBuf {
    build::workspace().join("crates/trace-c/include")
}

/// A directory with the libraries under the names that linkers and loaders look for.
///
/// # Panics
/// If they cannot be built.
#[must_use]
pub fn library_dir() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let files = build::libraries();
        let file = |name: &str| {
            let found = files.iter().find(|path| path.ends_with(name));
            found.unwrap_or_else(|| panic!("no {name} among {files:?}")).clone()
        };
        let directory = build::target_dir().join("native");
        std::fs::create_dir_all(&directory).expect("a directory");
        let links = [
            ("libtrace.so", "libtrace.so"),
            ("libtrace.so.0", "libtrace.so"),
            ("libtrace.a", "libtrace.a"),
            ("libtracereader.so", "libtracereader.so"),
            ("libtracereader.so.0", "libtracereader.so"),
            ("libtracereader.a", "libtracereader.a"),
            ("libtracejson.so", "libtracejson.so"),
            ("libtracejson.so.0", "libtracejson.so"),
            ("libtracejson.a", "libtracejson.a"),
            ("libtraceclient.so", "libtraceclient.so"),
            ("libtraceclient.so.0", "libtraceclient.so"),
            ("libtraceclient.a", "libtraceclient.a"),
        ];
        for (name, target) in links {
            // By renaming, as other tests may be doing the same.
            let fresh = directory.join(format!("{name}.{}", std::process::id()));
            let _ = std::fs::remove_file(&fresh);
            std::os::unix::fs::symlink(file(target), &fresh).expect("a link");
            std::fs::rename(fresh, directory.join(name)).expect("a link");
        }
        directory
    })
}

/// What a static library needs beside itself.
pub const STATIC_LIBRARIES: [&str; 5] = ["-lgcc_eh", "-lpthread", "-ldl", "-lm", "-lrt"];

/// A source file of `tests/native`.
#[must_use]
pub fn source(name: &str) -> PathBuf {
    build::workspace().join("tests/native").join(name)
}

/// Runs a compiler with the headers at hand.
///
/// # Panics
/// If it does not run.
pub fn compiler(compiler: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(compiler);
    command.arg("-I").arg(include_dir()).args(arguments);
    command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"))
}

/// Compiles some sources and links them with the shared library.
///
/// # Panics
/// If that fails.
pub fn program(compiler_name: &str, sources: &[&str], flags: &[&str], output: &Path) {
    shared_program("trace", compiler_name, sources, flags, output);
}

/// Compiles some sources and links them with the shared library that reads traces.
///
/// # Panics
/// If that fails.
pub fn reading_program(compiler_name: &str, sources: &[&str], flags: &[&str], output: &Path) {
    shared_program("tracereader", compiler_name, sources, flags, output);
}

/// Compiles some sources and links them with the shared library that records other programs.
///
/// # Panics
/// If that fails.
pub fn client_program(compiler_name: &str, sources: &[&str], flags: &[&str], output: &Path) {
    shared_program("traceclient", compiler_name, sources, flags, output);
}

/// Compiles some sources and links them with the shared libraries that record and that write JSON.
///
/// # Panics
/// If that fails.
pub fn json_program(compiler_name: &str, sources: &[&str], flags: &[&str], output: &Path) {
    let flags = [flags, &["-pthread", "-Wl,--no-as-needed,-ltrace"]].concat();
    shared_program("tracejson", compiler_name, sources, &flags, output);
}

fn shared_program(library: &str, compiler_name: &str, sources: &[&str], flags: &[&str], output: &Path) {
    let directory = library_dir().to_str().expect("a path in UTF-8").to_owned();
    // Whatever else is in the loader's path, such as what cargo puts there.
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{directory}");
    let link = [format!("-L{directory}"), format!("-l{library}"), rpath];
    link_program(compiler_name, sources, flags, &link, output);
}

/// Compiles some sources and links them with the static library.
///
/// # Panics
/// If that fails.
pub fn static_program(compiler_name: &str, sources: &[&str], flags: &[&str], output: &Path) {
    with_archive("libtrace.a", compiler_name, sources, flags, output);
}

/// Compiles some sources and links them with the static library that records other programs.
///
/// # Panics
/// If that fails.
pub fn static_client_program(compiler_name: &str, sources: &[&str], flags: &[&str], output: &Path) {
    with_archive("libtraceclient.a", compiler_name, sources, flags, output);
}

/// Compiles some sources and links them with the static library that reads traces.
///
/// # Panics
/// If that fails.
pub fn static_reading_program(compiler_name: &str, sources: &[&str], flags: &[&str], output: &Path) {
    with_archive("libtracereader.a", compiler_name, sources, flags, output);
}

fn with_archive(archive: &str, compiler_name: &str, sources: &[&str], flags: &[&str], output: &Path) {
    let archive = library_dir().join(archive);
    let mut link = vec![archive.to_str().expect("a path in UTF-8").to_owned()];
    link.extend(STATIC_LIBRARIES.map(str::to_owned));
    link_program(compiler_name, sources, flags, &link, output);
}

fn link_program(compiler_name: &str, sources: &[&str], flags: &[&str], link: &[String], output: &Path) {
    // Compilers complain of flags of the linker that they do not need.
    let is_of_linker = |flag: &&str| flag.starts_with("-Wl,") || *flag == "-shared";
    let compiled: Vec<&str> = flags.iter().copied().filter(|flag| !is_of_linker(flag)).collect();
    let mut objects = Vec::new();
    for (number, name) in sources.iter().enumerate() {
        let object = output.with_extension(format!("{number}.o"));
        let made = compiled::compile(compiler_name, &compiled, &source(name), Some(&object));
        check(&format!("{compiler_name} {compiled:?} {name}"), &made);
        objects.push(object.to_str().expect("a path in UTF-8").to_owned());
    }
    let mut arguments: Vec<&str> = flags.to_vec();
    // A language that flags name is that of the sources, not of what was compiled from them.
    arguments.extend(["-x", "none"]);
    arguments.extend(objects.iter().map(String::as_str));
    arguments.extend(["-o", output.to_str().expect("a path in UTF-8")]);
    arguments.extend(link.iter().map(String::as_str));
    check(&format!("{compiler_name} {arguments:?}"), &compiler(compiler_name, &arguments));
}

/// Checks that something ran well.
///
/// # Panics
/// If it did not.
pub fn check(what: &str, output: &Output) {
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (said(&output.stdout), said(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{out}\n{err}", output.status);
}

/// Checks that a library exports the functions that its header declares with a prefix, so many, and no
/// others, and that it has its name for loaders.
///
/// # Panics
/// If it does not.
pub fn check_exports(test: &str, library: &str, (header, prefix, count): (&str, &str, usize)) {
    if !Requirement::Binutils.is_met(test) {
        return;
    }
    let file = library_dir().join(format!("{library}.so"));
    let run = |tool: &str, argument: &str| {
        let output = Command::new(tool).arg(argument).arg(&file).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let symbols = run("nm", "-D");
    let defined = symbols.lines().filter_map(|line| line.split_once(" T ").map(|(_, name)| name.to_owned()));
    let text = std::fs::read_to_string(include_dir().join(header)).expect("the header");
    let declared: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.starts_with("//") && !line.starts_with("typedef"))
        .filter_map(|line| line.split_once('(')?.0.split([' ', '*']).next_back().map(str::to_owned))
        .filter(|name| name.starts_with(prefix))
        .collect();
    assert_eq!(declared.len(), count, "{declared:?}");
    assert_eq!(defined.collect::<BTreeSet<_>>(), declared);
    assert!(run("readelf", "-d").contains(&format!("[{library}.so.0]")));
}
