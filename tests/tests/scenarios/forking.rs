//! Programs that fork: no child writes into its parent's buffer, and each is a provider of its own.

use rustix::process::Signal;
use std::collections::BTreeMap;
use trace_format::event::EventKind;
use trace_format::kernel_object::TYPE_PROCESS;
use trace_reader::{Item, Reader, Value};
use trace_tests::sandbox::kill;
use trace_tests::scene::wait_for_death;
use trace_tests::{Archive, Sandbox, wait_for};

fn record(what: &[&str]) -> Archive {
    let sandbox = Sandbox::new();
    sandbox.record(&[], "forking", what);
    Archive::read(&sandbox.file("trace.fxt"))
}

/// Names of the events of each process, which must be the one that the event says it was written by, and each
/// of a provider of its own.
fn by_process(archive: &Archive) -> Vec<Vec<String>> {
    let mut processes: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut providers = BTreeMap::new();
    for event in &archive.events {
        let process = event.event.process.0;
        if event.name() != "busy" {
            let trace_tests::archive::Value::Uint32(pid) = event.event.argument("pid").unwrap() else {
                panic!("{event:?}")
            };
            assert_eq!(u64::from(*pid), process);
        }
        assert_eq!(*providers.entry(process).or_insert(event.provider), event.provider);
        processes.entry(process).or_default().push(event.name());
    }
    let mut providers: Vec<_> = providers.into_values().collect();
    providers.sort();
    providers.dedup();
    assert_eq!(providers.len(), processes.len(), "two processes in one provider");
    let mut of_processes: Vec<_> = processes.into_values().collect();
    of_processes.sort();
    of_processes
}

//= docs/buffer.md#fork
#[test]
fn a_child_is_recorded_from_its_first_event_on() {
    let archive = record(&["events"]);
    assert_eq!(by_process(&archive), [vec!["before", "after"], vec!["child"; 3]]);
    assert!(archive.providers.values().filter(|name| *name == "forking").count() == 2);
}

/// Whichever thread is the first, all of them wait for the recording.
//= docs/buffer.md#fork
#[test]
fn no_event_is_missing_of_threads_that_come_to_a_childs_first_at_once() {
    for _ in 0..20 {
        let archive = record(&["crowd"]);
        let mut found: Vec<(u64, u64)> = archive
            .events
            .iter()
            .filter(|event| event.name() == "crowd")
            .map(|event| (event.u64("thread"), event.u64("n")))
            .collect();
        found.sort_unstable();
        let expected: Vec<(u64, u64)> =
            (0..4).flat_map(|thread| (0..2000).map(move |n| (thread, n))).collect();
        assert!(found == expected, "{} of {}", found.len(), expected.len());
    }
}

#[test]
fn a_child_that_records_nothing_is_no_provider() {
    let archive = record(&["silent"]);
    assert_eq!(by_process(&archive), [["before", "after"]]);
    assert_eq!(archive.providers.len(), 2, "{:?}", archive.providers);
}

#[test]
fn a_child_may_end_like_its_parent() {
    let archive = record(&["drop"]);
    assert_eq!(by_process(&archive), [vec!["before", "after"], vec!["child"]]);
}

#[test]
fn a_child_may_register_by_itself() {
    let archive = record(&["own"]);
    assert_eq!(by_process(&archive), [vec!["before", "after"], vec!["child"]]);
    let names: Vec<_> = archive.providers.values().map(String::as_str).collect();
    assert_eq!(names, ["trace_manager", "forking", "own"]);
}

#[test]
fn a_grandchild_is_a_provider_too() {
    let archive = record(&["nested"]);
    assert_eq!(by_process(&archive), [vec!["before", "after"], vec!["child"]]);
}

#[test]
fn threads_that_fork_do_not_disturb_others_that_write() {
    let archive = record(&["threads", "events"]);
    let processes = by_process(&archive);
    assert_eq!(processes.len(), 6);
    let parent = processes.iter().max_by_key(|names| names.len()).unwrap();
    assert_eq!(parent.iter().filter(|name| *name == "busy").count(), 800);
    assert_eq!(processes.iter().flatten().filter(|name| *name == "child").count(), 4 + 3);
}

/// A parent that has died is gone for the manager, whatever its children have inherited.
#[test]
fn a_child_that_outlives_its_parent_does_not_keep_it_registered() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    wait_for("the manager", || sandbox.manager_pid());
    let registered = || {
        let output = sandbox.trace(["list-programs", "--machine", "json"]);
        // Not before the manager listens.
        let list: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
        list.and_then(|list| Some(list.as_array()?.len()))
    };
    let mut waiting = sandbox.spawn("emit", &["1", "1", "--wait"]);
    waiting.line();
    wait_for("one provider", || (registered() == Some(1)).then_some(()));
    let mut parent = sandbox.spawn("forking", &["outlive"]);
    parent.line();
    wait_for("the parent to be forgotten", || (registered() == Some(1)).then_some(()));
}

/// Whose child each process is, as the manager says it.
fn parents(file: &std::path::Path) -> BTreeMap<u64, u64> {
    let mut parents = BTreeMap::new();
    let bytes = std::fs::read(file).unwrap();
    let mut reader = Reader::new(&bytes[..]).unwrap();
    while let Some(found) = reader.next_item().unwrap() {
        if let Item::KernelObject { object_type: TYPE_PROCESS, koid, arguments, .. } = found.item {
            let parent = arguments.iter().find_map(|(name, value)| match value {
                Value::Koid(parent) if name == "parent" => Some(parent.0),
                _ => None,
            });
            parents.extend(parent.map(|parent| (koid.0, parent)));
        }
    }
    parents
}

//= docs/protocol.md#the-managers-own-provider
#[test]
fn three_hundred_children_alive_at_once_are_recorded_and_the_archive_says_whose_they_are() {
    let sandbox = Sandbox::new();
    sandbox.trace(["start", "--buffer-size", "1"]);
    let mut program = sandbox.spawn("forking", &["many"]);
    let pid = u64::from(program.pid());
    let slowest = program.line();
    let output = program.finish();
    assert!(output.status.success(), "{output:?}");
    let output = sandbox.trace(["stop"]);
    let text = trace_tests::scene::stderr(&output);
    assert!(text.contains("trace: 302 events of 301 programs in "), "the slowest: {slowest} ms; {text}");
    assert!(!text.contains("warning"), "{text}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let mut expected = vec![vec!["before", "after"]];
    expected.extend(vec![vec!["child"]; 300]);
    assert_eq!(by_process(&archive), expected);
    let children = archive.events.iter().filter(|event| event.name() == "child");
    let children: BTreeMap<u64, u64> = children.map(|event| (event.event.process.0, pid)).collect();
    assert_eq!(parents(&sandbox.file("trace.fxt")), children);
    assert!(sandbox.trace(["check", "trace.fxt"]).status.success());
}

/// Also where client and manager died before anything of them was in the archive.
//= docs/recovery.md#what-is-recovered
#[test]
fn a_recovered_archive_says_whose_children_they_are() {
    let sandbox = Sandbox::new();
    let recording = sandbox.spawn("trace", &["record", "--buffering-mode", "oneshot"]);
    wait_for("the recording", || recording.stderr_so_far().contains("press Ctrl-C").then_some(()));
    recording.signal(Signal::STOP);
    let program = sandbox.spawn_recorded("forking", &["events"]);
    let pid = u64::from(program.pid());
    program.succeed();
    for pid in [sandbox.manager_pid().unwrap(), recording.pid()] {
        kill(pid, Signal::KILL);
        wait_for_death(pid);
    }
    let output = sandbox.trace(["recover"]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("recovered.fxt"));
    let children = archive.events.iter().filter(|event| event.name() == "child");
    let children: BTreeMap<u64, u64> = children.map(|event| (event.event.process.0, pid)).collect();
    assert_eq!(children.len(), 1);
    assert_eq!(parents(&sandbox.file("recovered.fxt")), children);
}

/// The number of children for each test that looks for a child that hangs.
fn children() -> u32 {
    std::env::var("FORKS").map_or(200, |number| number.parse().expect("FORKS is a number"))
}

/// No child hangs that is forked while another thread makes a call site of texts of run time.
#[test]
fn no_child_hangs_that_is_forked_while_sites_are_made() {
    // A program has room for 4000 sites.
    const AT_ONCE: u32 = 200;
    for _ in 0..children().div_ceil(AT_ONCE) {
        let archive = record(&["making", &AT_ONCE.to_string()]);
        let count = |name: &str| archive.events.iter().filter(|event| event.name() == name).count();
        assert_eq!((count("before"), count("child"), count("after")), (1, AT_ONCE as usize, 1));
        for child in 0..AT_ONCE {
            assert_eq!(count(&format!("of child {child}")), 1, "{child}");
        }
    }
}

/// Nor one that is forked while `tracing` asks what is recorded, as it does at the beginning and the end of a
/// recording.
#[test]
fn no_child_hangs_that_is_forked_while_tracing_asks_what_is_recorded() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    wait_for("the manager", || sandbox.manager_pid());
    let mut program = sandbox.spawn("reloading", &["fork", &children().to_string()]);
    assert_eq!(program.line(), "ready");
    let providers = || sandbox.trace(["list-programs"]).stdout;
    wait_for("the program", || String::from_utf8_lossy(&providers()).contains("reloading").then_some(()));
    program.say("go");
    // It goes on until it has forked often enough, at least once while it was asked.
    for round in 0.. {
        let trace = format!("{round}.fxt");
        assert!(sandbox.trace(["start", "-o", &trace]).status.success());
        assert!(sandbox.trace(["stop"]).status.success());
        program.say("more");
        if program.line() == "enough" {
            break;
        }
    }
    program.close_stdin();
    program.succeed();
}

/// Arrows have ids of their own in each process.
#[test]
fn arrows_of_children_are_not_those_of_their_parent() {
    let archive = record(&["flows"]);
    let mut flows: BTreeMap<u64, Vec<(u64, bool)>> = BTreeMap::new();
    for event in &archive.events {
        match event.event.kind {
            EventKind::FlowBegin { id } => flows.entry(id).or_default().push((event.event.process.0, true)),
            EventKind::FlowEnd { id } => flows.entry(id).or_default().push((event.event.process.0, false)),
            _ => {}
        }
    }
    assert_eq!(flows.len(), (1 + 20 + 20) * 5);
    for (id, parts) in flows {
        let [(process, begins), (other, also_begins)] = parts[..] else { panic!("{id}: {parts:?}") };
        assert_eq!((process, begins), (other, !also_begins), "{id}");
    }
}

/// A second provider registers, but the process is recorded once: it does not wait for a start.
#[test]
fn a_second_provider_does_not_wait() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&[], "forking", &["--twice", "events"]);
    // A provider whose wait has timed out says so.
    assert_eq!(String::from_utf8_lossy(&output.stderr).matches("has not answered").count(), 0, "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(by_process(&archive), [vec!["before", "after"], vec!["child"; 3]]);
}
