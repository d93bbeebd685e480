//! System calls in the path of events: none but those that the invariants name.

use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use trace_tests::sandbox::Process;
use trace_tests::tracer::{Tracer, held};
use trace_tests::{Requirement, Sandbox, build, native, wait_for};

/// The rounds between the marks, in each of which the programs record fifteen events or more.
const ROUNDS: u64 = 800;

const TIMES: &str = "--thread-time";

/// System calls of the thread that records, between the marks, by their numbers. Behind so many other
/// threads: of 300, the last ones share what the others have a place of their own for.
fn calls(program: &Path, options: &[&str], threads: &str, hook: &str) -> BTreeMap<u64, u64> {
    let sandbox = Sandbox::new();
    let mut arguments = vec!["record", "--categories", "calls", "-o", "calls.fxt"];
    arguments.extend(options);
    let recording = sandbox.spawn("trace", &arguments);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    let mut command = Command::new(program);
    command.args([threads, hook]).envs(environment(&sandbox)).current_dir(sandbox.work_dir());
    let process: Process = Sandbox::spawn_command(held(&command));
    let all = Tracer::new(&process, "recorder").run_to_end();
    recording.signal(Signal::INT);
    recording.succeed();
    let mark = libc::SYS_getppid.cast_unsigned();
    let mut parts = all.split(|number| *number == mark);
    let (Some(_), Some(between), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        panic!("two marks: {all:?}");
    };
    between.iter().fold(BTreeMap::new(), |mut counts, number| {
        *counts.entry(*number).or_default() += 1;
        counts
    })
}

fn environment(sandbox: &Sandbox) -> [(String, String); 2] {
    let runtime = sandbox.runtime_dir().display().to_string();
    [("TRACE_RUNTIME_DIR".to_owned(), runtime), ("TRACE_RECORD".to_owned(), "1".to_owned())]
}

/// Each mode, and what takes the slow path: blobs, new sites, categories that are off, a full buffer; and by
/// themselves many threads, hooks, private recordings, and the time of threads, which each event asks for.
fn check(what: &str, program: &Path) {
    let cases = [
        (["--buffering-mode=circular"].as_slice(), "0", "-"),
        (&["--buffering-mode=streaming"], "0", "-"),
        (&[], "0", "-"),
        (&[], "300", "-"),
        (&[], "0", "hooked"),
        (&["--privacy"], "0", "-"),
        (&[TIMES], "0", "-"),
    ];
    for (options, threads, hook) in cases {
        let mut found = calls(program, &[options, &["--buffer-size=1"]].concat(), threads, hook);
        let case = format!("{what} {options:?} {threads} {hook}: {found:?}");
        let mut take = |number: i64| found.remove(&number.cast_unsigned()).unwrap_or(0);
        // The invariants name these: to take slabs back, to wake the thread that serves the buffer, and to
        // have memory allocated.
        for (number, most) in [
            (libc::SYS_membarrier, 200),
            (libc::SYS_fstat, 300),
            (libc::SYS_sendto, 300),
            (libc::SYS_madvise, 100),
        ] {
            let made = take(number);
            assert!(made <= most, "{made} of {number} in {case}");
        }
        let times = take(libc::SYS_clock_gettime);
        assert!(if options == [TIMES] { times > ROUNDS } else { times == 0 }, "{times} in {case}");
        assert!(found.is_empty(), "{case}");
    }
}

//= docs/ARCHITECTURE.md#invariants
#[test]
fn events_in_rust_make_no_system_call() {
    if Requirement::Ptrace.is_met("calls::events_in_rust_make_no_system_call") {
        check("Rust", build::program("calls"));
    }
}

//= docs/ARCHITECTURE.md#invariants
#[test]
fn events_in_c_make_no_system_call() {
    let test = "calls::events_in_c_make_no_system_call";
    if !Requirement::Ptrace.is_met(test) || !Requirement::Compilers.is_met(test) {
        return;
    }
    let sandbox = Sandbox::new();
    let program = sandbox.file("calls");
    let flags = ["-D_GNU_SOURCE", "-O2", "-pthread"];
    native::program("gcc", &["calls.c"], &flags, &program);
    check("C", &program);
    let cxx = ["-x", "c++", "-std=c++17", "-O2", "-pthread"];
    native::program("g++", &["calls.c"], &cxx, &program);
    check("C++", &program);
}
