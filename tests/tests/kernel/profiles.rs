//! Where a program spends its time.

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace_tests::kernel::alone;
use trace_tests::perfetto::{Rows, query};
use trace_tests::{Requirement, Sandbox, catapult, native};

/// The functions of each sample's stack, and how many samples have it.
const STACKS: &str = "WITH RECURSIVE up(sample, parent, depth, frame) AS (\
     SELECT s.id, c.parent_id, 0, c.frame_id FROM perf_sample s JOIN stack_profile_callsite c ON s.callsite_id = c.id \
     UNION ALL SELECT up.sample, c.parent_id, up.depth + 1, c.frame_id \
     FROM stack_profile_callsite c JOIN up ON c.id = up.parent) \
     SELECT f.name AS name, m.name AS module, count(DISTINCT sample) AS n FROM up \
     JOIN stack_profile_frame f ON up.frame = f.id \
     JOIN stack_profile_mapping m ON f.mapping = m.id GROUP BY f.name, m.name ORDER BY n DESC";
const ERRORS: &str = "SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";

/// How programs are compiled as a rule: no frame pointers, but tables for unwinding.
const PLAIN: [&str; 5] =
    ["-O2", "-g", "-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-Wl,--build-id"];

fn can_profile(test: &str) -> bool {
    Requirement::Perf.is_met(test) && Requirement::Compilers.is_met(test)
}

/// A program, a profile of it, and what is in that.
struct Profile {
    test: &'static str,
    sandbox: Sandbox,
    program: PathBuf,
    records: Vec<Value>,
}

impl Profile {
    /// Records a program that was made in the sandbox, a thousand times a second.
    fn record(
        test: &'static str,
        make: impl FnOnce(&Sandbox, &Path),
        options: &[&str],
        arguments: &[&str],
    ) -> Self {
        let sandbox = Sandbox::new();
        let program = sandbox.file("profiled");
        make(&sandbox, &program);
        let mut command: Vec<&OsStr> = ["record", "--profile", "1000"].map(OsStr::new).to_vec();
        command.extend(options.iter().chain(&["--"]).map(OsStr::new));
        command.push(program.as_os_str());
        command.extend(arguments.iter().map(OsStr::new));
        let output = sandbox.trace(command);
        assert!(output.status.success(), "{output:?}");
        let dump = sandbox.trace(["dump", "--json", "trace.fxt"]);
        let lines = dump.stdout.split(|byte| *byte == b'\n');
        let records = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        Self { test, sandbox, program, records }
    }

    /// The samples of the program.
    fn samples(&self) -> Vec<&Value> {
        let name = json!(self.program.to_str().unwrap());
        let module = self.records.iter().find(|record| record["kind"] == "module" && record["name"] == name);
        let process = &module.expect("the program is a module")["process"];
        let is_it = |record: &&Value| record["kind"] == "backtrace" && record["process"] == *process;
        self.records.iter().filter(is_it).collect()
    }

    /// What Perfetto makes of the converted trace; none where it is not installed.
    fn converted(&self, environment: &[(&str, &Path)]) -> Option<Functions> {
        let mut command = self.sandbox.command("trace");
        command.args(["convert", "trace.fxt", "trace.pftrace"]).envs(environment.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let file = self.sandbox.file("trace.pftrace");
        let rows = query(self.test, &file, STACKS)?;
        assert_eq!(query(self.test, &file, ERRORS).unwrap(), Vec::<Value>::new());
        Some(Functions { rows, all: self.samples().len() as u64 })
    }
}

struct Functions {
    rows: Rows,
    all: u64,
}

impl Functions {
    /// How many samples have a function whose name is like this, in all modules.
    fn with(&self, is_it: impl Fn(&str) -> bool) -> u64 {
        let rows = self.rows.iter().filter(|row| row["name"].as_str().is_some_and(&is_it));
        rows.map(|row| row["n"].as_u64().expect("a count")).max().unwrap_or(0)
    }

    /// At least so many percent of all samples have this function.
    #[track_caller]
    fn assert_share(&self, name: &str, percent: u64) {
        assert!(self.with(|found| found == name) * 100 >= self.all * percent, "{name}: {:#?}", self.rows);
    }
}

fn c_program(source: &'static str, flags: &[&str]) -> impl FnOnce(&Sandbox, &Path) {
    move |_, program| native::program("gcc", &[source], flags, program)
}

//= docs/kernel.md#profiles
//= docs/perfetto.md#profiles
#[test]
fn a_profile_shows_the_functions_that_a_program_is_in() {
    let test = "a_profile_shows_the_functions_that_a_program_is_in";
    if !can_profile(test) {
        return;
    }
    let _alone = alone();
    let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id"];
    // By frame pointers alone.
    let profile = Profile::record(test, c_program("profiled.c", &flags), &["--profile-stack", "0"], &[]);
    let times: Vec<u64> =
        profile.samples().iter().map(|record| record["ns"].as_u64().expect("a time")).collect();
    // 900 ms on a CPU, a thousand times a second.
    assert!((600..=1000).contains(&times.len()), "{}", times.len());
    let mut spans: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    spans.sort_unstable();
    // A millisecond apart, and more where others had a turn on its CPU.
    assert!(spans[spans.len() / 4] >= 900_000, "{spans:?}");

    let Some(found) = profile.converted(&[]) else { return };
    // What is before main and behind it is short.
    found.assert_share("main", 95);
    found.assert_share("outer", 90);
    found.assert_share("innermost", 80);
}

//= docs/kernel.md#profiles
#[test]
fn callers_are_found_in_programs_without_frame_pointers() {
    let test = "callers_are_found_in_programs_without_frame_pointers";
    if !can_profile(test) {
        return;
    }
    let _alone = alone();
    let profile = Profile::record(test, c_program("profiled.c", &PLAIN), &[], &[]);
    assert!((600..=1000).contains(&profile.samples().len()), "{}", profile.samples().len());
    let Some(found) = profile.converted(&[]) else { return };
    for function in ["main", "outer", "between"] {
        found.assert_share(function, 90);
    }
    found.assert_share("innermost", 80);
    // Up to where the program begins.
    found.assert_share("_start", 90);
}

/// Catapult's samples and the lines of folded stacks have the same functions.
//= docs/catapult.md#samples
//= docs/folded.md#lines
#[test]
fn samples_are_in_every_format_that_has_a_place_for_them() {
    let test = "samples_are_in_every_format_that_has_a_place_for_them";
    if !can_profile(test) {
        return;
    }
    let _alone = alone();
    let profile = Profile::record(test, c_program("profiled.c", &PLAIN), &[], &[]);
    let count = profile.samples().len() as u64;
    for arguments in [
        ["trace.fxt", "trace.json", "--format", "chrome"],
        ["trace.fxt", "trace.folded", "--format", "folded"],
    ] {
        let output = profile.sandbox.trace(std::iter::once("convert").chain(arguments));
        assert!(output.status.success(), "{output:?}");
    }
    let folded = fs::read_to_string(profile.sandbox.file("trace.folded")).unwrap();
    let stacks = folded.lines().map(|line| line.rsplit_once(' ').expect("a count"));
    let stacks: Vec<(&str, u64)> = stacks.map(|(stack, count)| (stack, count.parse().unwrap())).collect();
    let own = stacks.iter().filter(|(stack, _)| stack.starts_with("profiled;"));
    assert_eq!(own.map(|(_, count)| count).sum::<u64>(), count, "{folded}");
    let innermost = stacks.iter().filter(|(stack, _)| stack.ends_with(";main;outer;between;innermost"));
    let innermost = innermost.map(|(_, count)| count).sum::<u64>();
    assert!(innermost * 10 > count * 8, "{folded}");
    let Some(found) = catapult::count(test, &profile.sandbox.file("trace.json")) else { return };
    assert_eq!((&found["error"], &found["warnings"]), (&Value::Null, &json!([])));
    for name in ["_start", "main", "outer", "between", "innermost"] {
        let with = stacks.iter().filter(|(stack, _)| stack.split(';').any(|part| part == name));
        assert_eq!(found["samples"][name], json!(with.map(|(_, count)| count).sum::<u64>()), "{name}");
    }
}

//= docs/kernel.md#profiles
#[test]
fn callers_are_found_in_programs_in_rust() {
    let test = "callers_are_found_in_programs_in_rust";
    if !can_profile(test) {
        return;
    }
    let _alone = alone();
    let make = |_: &Sandbox, program: &Path| {
        // As `cargo build --release` does.
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let source = native::source("profiled.rs");
        let mut command = Command::new(compiler);
        command.env_remove(trace_tests::build::FOR_HARNESS);
        command.args(["--edition=2024", "-C", "opt-level=3"]).arg(source).arg("-o").arg(program);
        native::check("rustc", &command.output().unwrap());
    };
    let profile = Profile::record(test, make, &[], &[]);
    let Some(found) = profile.converted(&[]) else { return };
    for function in ["profiled::main", "profiled::Outer::run", "profiled::between", "profiled::innermost"] {
        // The end of a symbol without debug information is a number.
        let count = found.with(|name| name == function || name.starts_with(&format!("{function}::h")));
        assert!(count * 100 >= found.all * 80, "{function}: {:#?}", found.rows);
    }
    found.assert_share("_start", 80);
}

//= docs/kernel.md#functions-without-a-file
#[test]
fn functions_of_the_kernel_have_names_in_the_trace() {
    let test = "functions_of_the_kernel_have_names_in_the_trace";
    if !Requirement::KernelPerf.is_met(test) || !can_profile(test) {
        return;
    }
    let _alone = alone();
    let make = |_: &Sandbox, program: &Path| _ = fs::copy("/bin/dd", program).unwrap();
    let arguments = ["if=/dev/urandom", "of=/dev/null", "bs=64k", "count=1000"];
    let profile = Profile::record(test, make, &[], &arguments);
    let samples = profile.samples();
    // The kernel's functions are named wherever the trace is read.
    let is_of_kernel = |frame: &Value| frame.as_u64().is_some_and(|frame| frame >= 1 << 63);
    for sample in &samples {
        for (frame, name) in
            sample["frames"].as_array().unwrap().iter().zip(
                sample["functions"].as_array().into_iter().flatten().chain(std::iter::repeat(&Value::Null)),
            )
        {
            assert!(!is_of_kernel(frame) || name.is_string(), "{sample}");
        }
    }
    let reads = |sample: &&&Value| {
        let names = sample["functions"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).any(|name| name.ends_with("vfs_read"))
    };
    assert!(samples.iter().filter(reads).count() * 2 > samples.len(), "{samples:#?}");
    let Some(found) = profile.converted(&[]) else { return };
    found.assert_share("vfs_read", 50);
    let row = found.rows.iter().find(|row| row["name"] == "vfs_read").unwrap();
    // Perfetto makes paths of all names.
    assert_eq!(row["module"], "/[kernel.kallsyms]");
    // The program is behind it.
    let row = found.rows.iter().find(|row| row["module"] == json!(profile.program.to_str().unwrap()));
    assert!(row.unwrap()["n"].as_u64().unwrap() * 10 > found.all * 9, "{:#?}", found.rows);
}

//= docs/kernel.md#functions-without-a-file
#[test]
fn functions_that_a_program_has_compiled_have_names_in_the_trace() {
    let test = "functions_that_a_program_has_compiled_have_names_in_the_trace";
    if !can_profile(test) {
        return;
    }
    let _alone = alone();
    for moment in ["at once", "late"] {
        let profile = Profile::record(test, c_program("compiling.c", &PLAIN), &[], &[moment]);
        let samples = profile.samples();
        let is_in_it = |sample: &&&Value| sample["functions"][0] == "compiled function";
        let count = samples.iter().filter(is_in_it).count();
        assert!(samples.len() > 100 && count * 10 > samples.len() * 8, "{moment}: {count}: {samples:#?}");
        let Some(found) = profile.converted(&[]) else { return };
        found.assert_share("compiled function", 80);
        found.assert_share("run", 80);
        found.assert_share("main", 80);
    }
}

//= docs/perfetto.md#debug-files
#[test]
fn names_come_from_debug_files_apart() {
    let test = "names_come_from_debug_files_apart";
    if !can_profile(test) || !Requirement::Binutils.is_met(test) {
        return;
    }
    let _alone = alone();
    let run = |tool: &str, arguments: &[&OsStr]| {
        native::check(tool, &Command::new(tool).args(arguments).output().unwrap());
    };
    let make = |sandbox: &Sandbox, program: &Path| {
        native::program("gcc", &["profiled.c"], &PLAIN, program);
        let debug = sandbox.file("profiled.debug");
        run("objcopy", &["--only-keep-debug".as_ref(), program.as_os_str(), debug.as_os_str()]);
        run("strip", &["--strip-all".as_ref(), program.as_os_str()]);
        let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
        link.push(&debug);
        run("objcopy", &[&link, program.as_os_str()]);
    };
    let profile = Profile::record(test, make, &[], &[]);
    // Beside the program.
    let Some(found) = profile.converted(&[]) else { return };
    found.assert_share("between", 90);
    let debug = profile.sandbox.file("profiled.debug");
    let build_id = profile.records.iter().find(|record| {
        record["kind"] == "module" && record["name"] == json!(profile.program.to_str().unwrap())
    });
    let build_id = build_id.unwrap()["build_id"].as_str().unwrap().to_owned();
    // By its build, while the program itself is gone.
    let root = profile.sandbox.file("debug");
    let place = root.join(".build-id").join(&build_id[..2]);
    fs::create_dir_all(&place).unwrap();
    fs::rename(&debug, place.join(format!("{}.debug", &build_id[2..]))).unwrap();
    fs::remove_file(&profile.program).unwrap();
    profile.converted(&[("TRACE_DEBUG_FILES", &root)]).unwrap().assert_share("between", 90);
    // Nothing is left.
    assert_eq!(profile.converted(&[]).unwrap().with(|name| name == "between"), 0);
}
