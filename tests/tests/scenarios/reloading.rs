//! A filter of another layer is reloaded beside the one that records: each layer has all of its events.

use trace_tests::sandbox::Process;
use trace_tests::{Archive, Sandbox, wait_for};

fn spawn(sandbox: &Sandbox) -> (Process, Process) {
    let manager = sandbox.spawn("trace", &["manager"]);
    wait_for("the manager", || sandbox.manager_pid());
    let mut program = sandbox.spawn("reloading", &[]);
    assert_eq!(program.line(), "ready");
    let providers = || sandbox.trace(["list-programs"]).stdout;
    wait_for("the program", || String::from_utf8_lossy(&providers()).contains("reloading").then_some(()));
    (manager, program)
}

fn ask(program: &mut Process, line: &str) -> String {
    program.say(line);
    program.line()
}

fn start(sandbox: &Sandbox) {
    let output = sandbox.trace(["start", "-o", "trace.fxt"]);
    assert!(output.status.success(), "{output:?}");
}

/// How many events of the two levels are recorded.
fn stop(sandbox: &Sandbox) -> (usize, usize) {
    let output = sandbox.trace(["stop"]);
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    std::fs::remove_file(sandbox.file("trace.fxt")).unwrap();
    let count = |name: &str| archive.events.iter().filter(|event| event.name() == name).count();
    (count("information"), count("detail"))
}

#[test]
fn each_layer_has_its_events_before_and_after_a_filter_is_reloaded() {
    let sandbox = Sandbox::new();
    let (_manager, mut program) = spawn(&sandbox);
    // Before the first event, and between events.
    assert_eq!(ask(&mut program, "reload debug"), "done");
    assert_eq!(ask(&mut program, "run batch"), "200");
    assert_eq!(ask(&mut program, "reload off"), "done");
    assert_eq!(ask(&mut program, "run batch"), "0");
    for _ in 0..2 {
        start(&sandbox);
        assert_eq!(ask(&mut program, "run batch"), "0");
        for (filter, printed) in [("info", "100"), ("debug", "200"), ("off", "0")] {
            assert_eq!(ask(&mut program, &format!("reload {filter}")), "done");
            assert_eq!(ask(&mut program, "run batch"), printed, "{filter}");
        }
        assert_eq!(stop(&sandbox), (400, 400));
        assert_eq!(ask(&mut program, "reload info"), "done");
        assert_eq!(ask(&mut program, "run batch"), "100");
        assert_eq!(ask(&mut program, "reload off"), "done");
    }
    program.close_stdin();
    program.succeed();
}

#[test]
fn no_event_is_lost_while_a_filter_is_reloaded() {
    let sandbox = Sandbox::new();
    let (_manager, mut program) = spawn(&sandbox);
    start(&sandbox);
    assert_eq!(ask(&mut program, "run busy"), "4000 0");
    assert_eq!(stop(&sandbox), (4000, 4000));
    assert_eq!(ask(&mut program, "run busy"), "4000 0", "after the recording");
    program.close_stdin();
    program.succeed();
}

/// A recording begins while a reload has asked what is wanted and has not stored the answer.
#[test]
fn a_recording_that_begins_during_a_reload_has_all_events() {
    let sandbox = Sandbox::new();
    let (_manager, mut program) = spawn(&sandbox);
    assert_eq!(ask(&mut program, "run batch"), "100");
    for place in ["level", "callsite"] {
        assert_eq!(ask(&mut program, &format!("hold {place}")), "held");
        start(&sandbox);
        assert_eq!(ask(&mut program, "run release"), "done");
        assert_eq!(ask(&mut program, "run batch"), "100");
        assert_eq!(stop(&sandbox), (100, 100), "held up at the {place}");
        assert_eq!(ask(&mut program, "run batch"), "100");
    }
    program.close_stdin();
    program.succeed();
}
