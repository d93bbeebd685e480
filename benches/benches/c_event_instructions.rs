//! Instructions of events that are compiled from C and C++, beside those of Rust, which `event_instructions`
//! counts.
//!
//! `-- --check` fails where one takes more than a fifth more than in Rust.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trace_benches::callgrind::count_of;
use trace_tests::native;

/// As the program numbers them, by their names in Rust's list.
const KINDS: [&str; 10] = [
    "nothing",
    "site off",
    "instant",
    "duration begin",
    "duration end",
    "duration scope",
    "flow begin",
    "counter",
    "instant with an i64",
    "instant with an i64 and 16 bytes of text",
];
const COMPILERS: [(&str, &str, &str); 4] = [
    ("gcc", "c", "-std=gnu11"),
    ("clang", "c", "-std=gnu11"),
    ("g++", "c++", "-std=c++17"),
    ("clang++", "c++", "-std=c++17"),
];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Compiles the program.
fn compile((name, language, standard): (&str, &str, &str), directory: &Path) -> PathBuf {
    let program = directory.join(name);
    let source = package().join("benches/c/events.h");
    let library = native::library_dir().join("libtrace.so.0").display().to_string();
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}", native::library_dir().display());
    let (source, output) = (source.display().to_string(), program.display().to_string());
    let arguments = [standard, "-O2", "-x", language, &source, "-x", "none", "-o", &output, &library, &rpath];
    native::check(name, &native::compiler(name, &arguments));
    program
}

fn run() -> Result<bool, String> {
    let kept = fs::read_to_string(package().join("benches/event_instructions.txt"))
        .map_err(|error| error.to_string())?;
    let rust: BTreeMap<&str, u64> = kept
        .lines()
        .filter_map(|line| line.rsplit_once(": "))
        .filter_map(|(name, count)| Some((name, count.parse().ok()?)))
        .collect();
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut programs = Vec::new();
    for compiler in COMPILERS {
        programs.push((compiler.0, compile(compiler, directory.path())));
    }
    let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
    println!("| event | Rust | {} |\n|---|---|{}", names.join(" | "), "---|".repeat(names.len()));
    let mut loops = BTreeMap::new();
    let mut is_good = true;
    for (place, kind) in KINDS.iter().enumerate() {
        let expected = rust.get(kind).ok_or_else(|| format!("{kind} was not counted in Rust"))?;
        let mut row = Vec::new();
        for (name, program) in &programs {
            let found = count_of(program, &[&place.to_string()])?;
            let around = *loops.entry(*name).or_insert(found);
            row.push(found.to_string());
            // What is around an event, the loop, is not the event's. Of a site that is off there is nothing
            // else.
            let own = (found.saturating_sub(around), expected - rust["nothing"]);
            is_good &= place < 2 || own.0 * 5 <= own.1 * 6;
        }
        println!("| {kind} | {expected} | {} |", row.join(" | "));
    }
    Ok(is_good)
}

fn main() -> ExitCode {
    let is_check = std::env::args().any(|argument| argument == "--check");
    match run() {
        Ok(is_good) if is_good || !is_check => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("an event takes more than a fifth more instructions in C than in Rust");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
