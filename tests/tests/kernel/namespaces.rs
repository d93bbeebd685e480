//! Programs of other pid namespaces, whose threads have other numbers for the kernel.

use std::collections::BTreeSet;
use trace_tests::build::program;
use trace_tests::kernel::{ROOT, alone};
use trace_tests::{Archive, Requirement, Sandbox};

/// Threads with events of `pattern` that the scheduler reports.
const JOINED: &str = "SELECT count(DISTINCT sched.tid) FROM sched JOIN instants AS event
    ON sched.tid = event.tid AND sched.pid = event.pid AND sched.thread = event.thread
    WHERE event.category = 'pattern' AND event.ts BETWEEN sched.ts AND sched.ts + sched.dur";

/// Runs a command in a pid namespace of its own.
const CONTAINED: &str = "unshare --pid --fork --kill-child --mount-proc";

/// In each of two containers the program is process 1, with threads 2, 3 and so on.
//= docs/protocol.md#pid-namespaces
//= docs/kernel.md#containers
#[test]
fn threads_of_two_containers_are_those_of_the_kernel() {
    let test = "threads_of_two_containers_are_those_of_the_kernel";
    if !Requirement::Tracefs.is_met(test) {
        return;
    }
    if !Requirement::PidNamespaces.is_met(test) || !Requirement::ThreadNumbers.is_met(test) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let pattern = program("pattern").to_str().unwrap();
    let [first, second] = [1, 2].map(|_| format!("{CONTAINED} {pattern} 200 20 20"));
    let script = format!("{first} & {second}; wait");
    let categories = "kernel:sched,kernel:meta,pattern";
    let output = sandbox.trace(["record", "--categories", categories, "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{output:?}");

    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let of_pattern: Vec<_> =
        archive.events.iter().filter(|event| event.event.category.as_bytes() == b"pattern").collect();
    let each = 3 * 200 + 2 * 20 + 20 + 2;
    assert_eq!(of_pattern.len(), 2 * each);
    let providers: BTreeSet<_> = of_pattern.iter().map(|event| event.provider).collect();
    let threads: BTreeSet<_> = of_pattern
        .iter()
        .map(|event| (event.provider, event.event.process.0, event.event.thread.0))
        .collect();
    // `ping` and `pong` of each, and nothing is in both.
    assert_eq!((providers.len(), threads.len()), (2, 4), "{threads:?}");
    let numbers: BTreeSet<u64> = threads.iter().map(|(_, _, thread)| *thread).collect();
    assert_eq!(numbers.len(), 4, "{threads:?}");
    let mut names: Vec<&str> = numbers.iter().map(|thread| &archive.threads[thread][..]).collect();
    names.sort_unstable();
    assert_eq!(names, ["ping", "ping", "pong", "pong"]);

    let ask = |question: &str| {
        let output = sandbox.trace(["query", "--format", "csv", question, "trace.fxt"]);
        String::from_utf8(output.stdout).unwrap().lines().nth(1).unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(ask("SELECT count(*) FROM instants WHERE category = 'pattern'"), 2 * (each as u64 - 20));
    assert_eq!(ask(JOINED), 4);
    let check = sandbox.trace(["check", "--clocks", "--json", "trace.fxt"]);
    let report: serde_json::Value = trace_tests::json(&check);
    // All happened while the kernel says that their threads ran.
    assert!(check.status.success(), "{report:#}");
    let clocks = report["clocks"].as_array().unwrap();
    let judged = providers.iter().map(|id| {
        let clock = clocks.iter().find(|clock| clock["program_id"] == id.0).unwrap();
        clock["judged"].as_u64().unwrap()
    });
    // The end of each duration is a moment of its own.
    assert_eq!(judged.collect::<Vec<_>>(), [each as u64 + 20; 2], "{report:#}");
}

/// The shells of both are process 1 for themselves, which is another process on this machine.
//= docs/kernel.md#containers
#[test]
fn markers_of_two_containers_belong_to_their_processes() {
    let test = "markers_of_two_containers_belong_to_their_processes";
    if !Requirement::Markers.is_met(test) {
        return;
    }
    if !Requirement::PidNamespaces.is_met(test) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    // A shell is looked at while it waits.
    let write = format!("echo \\\"C|\\$\\$|queue|7\\\" > {ROOT}/trace_marker; sleep 1; true");
    let script = format!("{CONTAINED} sh -c \"{write}\" & {CONTAINED} sh -c \"{write}\"; wait");
    let output = sandbox.trace(["record", "--categories", "atrace", "--", "sh", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let counters = archive.events.iter().filter(|event| event.name() == "queue");
    let processes: BTreeSet<u64> = counters.map(|event| event.event.process.0).collect();
    assert!(processes.len() == 2 && !processes.contains(&1), "{processes:?}");
    assert!(processes.iter().all(|process| archive.processes[process] == "sh"), "{:?}", archive.processes);
}
