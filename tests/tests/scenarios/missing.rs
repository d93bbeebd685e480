//! Programs that wanted to be recorded and were not, or not altogether: the archive names them,
//! with a loss whose number is unknown.
//= docs/protocol.md#programs-of-which-something-is-missing

use rustix::process::Signal;
use serde_json::json;
use std::process::{Command, Output, Stdio};
use trace_protocol::registry::{RECORDING_OF_ALL, recording_of};
use trace_tests::perfetto::query;
use trace_tests::sandbox::{Process, json, kill};
use trace_tests::scene::{freeze, stderr, wait_for_death};
use trace_tests::{Answer, Sandbox, wait_for};
use zx_sim::{Channel, Error};

/// What a trace says of the programs that it names, besides the manager: name, how it ended, and the reasons
/// and counts of its losses.
fn programs(sandbox: &Sandbox, trace: &str) -> Vec<serde_json::Value> {
    let sql = "SELECT p.name, p.lost, p.end_reason AS ended, \
               (SELECT group_concat(reason || ' ' || coalesce(count, '?'), ', ') FROM losses WHERE program_id = id) AS losses \
               FROM programs p WHERE id > 0 ORDER BY p.name, losses";
    let rows: Vec<serde_json::Value> = json(&sandbox.trace(["query", "--format", "json", sql, trace]));
    rows.iter().map(|row| json!([row["name"], row["lost"], row["ended"], row["losses"]])).collect()
}

/// Every door says that something is missing, and none how much.
fn is_missing_at_every_door(sandbox: &Sandbox, trace: &str, reason: &str) {
    let asserted = sandbox.trace(["assert", trace, "lost == 0"]);
    assert_eq!(asserted.status.code(), Some(3), "{asserted:?}");
    let checked = sandbox.trace(["check", trace]);
    let text = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("{reason}; how many records it lost is unknown")), "{text}");
    assert!(sandbox.trace(["check", "--allow", "loss", trace]).status.success(), "{text}");
    let found = Answer::of(&sandbox.trace(["stats", "--json", trace])).losses;
    let is_it = |loss: &serde_json::Value| loss["reason"] == reason && loss["count"].is_null();
    assert!(found.iter().any(is_it), "{found:?}");
    let rows: Vec<serde_json::Value> =
        json(&sandbox.trace(["query", "--format", "json", "SELECT lost FROM traces", trace]));
    assert_eq!(rows, [json!({"lost": null})]);
}

fn stop(sandbox: &Sandbox) -> Output {
    let output = sandbox.trace(["stop"]);
    assert!(output.status.success(), "{output:?}");
    output
}

fn manager(sandbox: &Sandbox) -> u32 {
    sandbox.manager_pid().expect("a manager runs")
}

/// The manager, when it has announced a recording.
fn recorder(sandbox: &Sandbox) -> u32 {
    let own = recording_of(rustix::process::geteuid().as_raw());
    let names = [RECORDING_OF_ALL, &own].map(|name| sandbox.runtime_dir().join(name));
    wait_for("a recording", || names.iter().any(|name| name.exists()).then_some(()));
    manager(sandbox)
}

/// Connections that fill the queue of a manager that is frozen.
fn fill_queue(sandbox: &Sandbox) -> Vec<Channel> {
    let mut all = Vec::new();
    loop {
        match Channel::connect(&sandbox.runtime_dir().join("registry")) {
            Ok(channel) => all.push(channel),
            Err(Error::ShouldWait) => return all,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A recording that a program with 10 events waits for in vain, as the manager is frozen and its queue full.
fn gives_up(sandbox: &Sandbox) {
    gives_up_by(sandbox, &["10"]);
}

/// The same with a program that has these arguments.
fn gives_up_by(sandbox: &Sandbox, arguments: &[&str]) {
    freeze(manager(sandbox));
    let queue = fill_queue(sandbox);
    let output = sandbox.spawn("first", arguments).finish();
    assert!(output.status.success() && !output.stderr.is_empty(), "{output:?}");
    drop(queue);
}

const GAVE_UP: &str = "gave up: the trace manager has not answered it in time";

#[test]
fn a_program_that_gives_up_before_it_is_known_is_in_the_archive() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start"]).status.success());
    gives_up(&sandbox);
    kill(manager(&sandbox), Signal::CONT);
    let text = stderr(&stop(&sandbox));
    assert!(text.contains("  gave up\n"), "{text}");
    assert_eq!(programs(&sandbox, "trace.fxt"), [json!(["first", null, GAVE_UP, "not recorded ?"])]);
    is_missing_at_every_door(&sandbox, "trace.fxt", "not recorded");
    // The note is taken up: the next recording does not have it.
    assert!(sandbox.trace(["record", "-o", "next.fxt", "--allow-empty", "--", "true"]).status.success());
    assert_eq!(programs(&sandbox, "next.fxt"), [json!(null); 0]);
}

/// A synchronous registration waits in vain, too: in a queue that is full, and for the answer.
#[test]
fn a_synchronous_registration_that_gives_up_is_in_the_archive() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start"]).status.success());
    gives_up_by(&sandbox, &["10", "synchronously"]);
    kill(manager(&sandbox), Signal::CONT);
    stop(&sandbox);
    assert_eq!(programs(&sandbox, "trace.fxt"), [json!(["first", null, GAVE_UP, "not recorded ?"])]);
    is_missing_at_every_door(&sandbox, "trace.fxt", "not recorded");

    assert!(sandbox.trace(["start", "-o", "second.fxt"]).status.success());
    let manager = recorder(&sandbox);
    freeze(manager);
    let output = sandbox.spawn("first", &["10", "synchronously"]).finish();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("NoManager\n"), "{output:?}");
    kill(manager, Signal::CONT);
    stop(&sandbox);
    let found = programs(&sandbox, "second.fxt");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0][3], "joined late ?");
    is_missing_at_every_door(&sandbox, "second.fxt", "joined late");
}

/// Each of twenty programs waits for a second: their registrations are read when they have ended.
#[test]
fn programs_that_end_before_the_manager_answers_have_joined_late() {
    let sandbox = Sandbox::new();
    let mut recording = sandbox.spawn("trace", &["record", "--fail-on-loss", "--", "sh", "-c", "read line"]);
    let manager = recorder(&sandbox);
    freeze(manager);
    let programs: Vec<Process> = (0..20).map(|_| sandbox.spawn("first", &["10"])).collect();
    programs.into_iter().for_each(Process::succeed);
    kill(manager, Signal::CONT);
    recording.say("");
    let output = recording.finish();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let found = self::programs(&sandbox, "trace.fxt");
    assert_eq!(found.len(), 20, "{found:?}");
    assert!(found.iter().all(|program| program[3] == "joined late ?"), "{found:?}");
    is_missing_at_every_door(&sandbox, "trace.fxt", "joined late");
}

/// The program, the manager and the client are dead: what is left is joined, with the program.
//= docs/recovery.md#what-is-recovered
#[test]
fn whoever_dies_a_program_that_was_not_recorded_is_in_the_archive() {
    for dying in ["manager", "client", "both"] {
        let sandbox = Sandbox::new();
        let mut recording = sandbox.spawn("trace", &["record", "--", "sh", "-c", "echo on; read line"]);
        // One whose client dies while it starts is aborted.
        assert_eq!(recording.line(), "on");
        let mut recorded = sandbox.spawn_recorded("emit", &["1", "1", "--wait"]);
        recorded.line();
        let manager = recorder(&sandbox);
        gives_up(&sandbox);
        if dying != "client" {
            kill(manager, Signal::KILL);
            wait_for_death(manager);
        }
        if dying != "manager" {
            kill(recording.pid(), Signal::KILL);
            wait_for_death(recording.pid());
        }
        kill(recorded.pid(), Signal::KILL);
        wait_for_death(recorded.pid());
        if dying == "client" {
            kill(manager, Signal::CONT);
            wait_for_death(manager);
        } else if dying == "manager" {
            recording.finish();
        }
        let output = sandbox.trace(["recover", "-o", "recovered.fxt"]);
        let trace = "recovered.fxt";
        let found = programs(&sandbox, trace);
        let expected = json!(["first", null, GAVE_UP, "not recorded ?"]);
        assert!(found.contains(&expected), "{dying}: {found:?}, {output:?}");
        is_missing_at_every_door(&sandbox, trace, "not recorded");
    }
}

/// No program had a buffer.
//= docs/recovery.md#what-is-recovered
#[test]
fn a_recording_that_has_nothing_but_a_note_is_recovered() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start"]).status.success());
    let manager = recorder(&sandbox);
    gives_up(&sandbox);
    kill(manager, Signal::KILL);
    wait_for_death(manager);
    let output = sandbox.trace(["recover", "-o", "recovered.fxt"]);
    assert!(output.status.success(), "{output:?}");
    let expected = [json!(["first", null, GAVE_UP, "not recorded ?"])];
    assert_eq!(programs(&sandbox, "recovered.fxt"), expected);
    is_missing_at_every_door(&sandbox, "recovered.fxt", "not recorded");
    // The note went with it.
    let left = sandbox.trace(["recover"]);
    assert!(stderr(&left).contains("there is nothing to recover"), "{left:?}");
}

/// Half a packet ends its part in a recording, and nothing that it does later is recorded.
#[test]
fn a_program_that_breaks_the_protocol_is_no_program_that_has_lost_nothing() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start"]).status.success());
    let mut rogue = sandbox.spawn("hostile", &["fifo", "half"]);
    rogue.line();
    let log = sandbox.runtime_dir().join("manager.log");
    wait_for("the end of its part", || {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        said.contains("bad packet: ").then_some(())
    });
    let text = stderr(&stop(&sandbox));
    assert!(text.contains("broke the protocol"), "{text}");
    let found = programs(&sandbox, "trace.fxt");
    let [program] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&program[0], &program[1]), (&json!("hostile"), &json!(null)), "{program}");
    assert!(
        program[2].as_str().is_some_and(|text| text.starts_with("broke the protocol: bad packet: ")),
        "{program}"
    );
    assert_eq!(program[3], "the rest is missing ?");
    is_missing_at_every_door(&sandbox, "trace.fxt", "the rest is missing");
}

/// Fifty programs find a manager that may have few descriptors.
#[test]
fn programs_that_are_refused_for_lack_of_descriptors_are_in_the_archive() {
    const PROGRAMS: usize = 50;
    let sandbox = Sandbox::new();
    let prepared = sandbox.command("trace");
    let mut command = Command::new("prlimit");
    command.arg("--nofile=160").arg(prepared.get_program()).arg("manager").current_dir(sandbox.work_dir());
    command.envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    let manager = Sandbox::spawn_command(command);
    wait_for("the manager", || sandbox.runtime_dir().join("registry").exists().then_some(()));
    assert!(sandbox.trace(["start"]).status.success());
    let mut programs: Vec<Process> =
        (0..PROGRAMS).map(|_| sandbox.spawn("emit", &["1", "1", "--wait"])).collect();
    programs.iter_mut().for_each(|program| drop(program.line()));
    let text = stderr(&stop(&sandbox));
    let found = self::programs(&sandbox, "trace.fxt");
    let of_kind = |losses: &serde_json::Value| found.iter().filter(|program| program[3] == *losses).count();
    let refused = of_kind(&json!("not recorded ?"));
    // One that is refused tries again, and may find a place.
    let late = of_kind(&json!("joined late ?"));
    assert!(refused > 0 && found.len() == PROGRAMS + late, "{refused} of {}: {text}", found.len());
    assert_eq!(of_kind(&json!(null)) + refused, PROGRAMS, "{found:?}");
    // Connections that it could not accept waited in its queue, for as long as their programs did.
    // One for which the last descriptors did not suffice was accepted, and is not traced.
    let ends = [
        "refused: the trace manager has too few descriptors left",
        "not traced: cannot make a socket pair: Too many open files (os error 24)",
        GAVE_UP,
    ];
    let ends = ends.map(|end| json!(end));
    let is_known = |program: &serde_json::Value| ends.contains(&program[2]);
    assert!(found.iter().all(|program| program[3] != "not recorded ?" || is_known(program)), "{found:?}");
    is_missing_at_every_door(&sandbox, "trace.fxt", "not recorded");
    drop((programs, manager));
}

/// Perfetto reads a trace that names a program without a section, and finds nothing wrong.
#[test]
fn perfetto_does_not_mind_programs_without_records() {
    let test = "perfetto_does_not_mind_programs_without_records";
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start"]).status.success());
    sandbox.spawn("first", &["10"]).succeed();
    gives_up(&sandbox);
    kill(manager(&sandbox), Signal::CONT);
    stop(&sandbox);
    let errors = "SELECT (SELECT count(*) FROM slice WHERE name = 'event') AS events, \
                  (SELECT count(*) FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0) AS errors";
    let converted = sandbox.trace(["convert", "trace.fxt", "trace.pftrace"]);
    assert!(converted.status.success(), "{converted:?}");
    for trace in ["trace.fxt", "trace.pftrace"] {
        let Some(found) = query(test, &sandbox.file(trace), errors) else { return };
        assert_eq!(found, [json!({"events": 10, "errors": 0})], "{trace}");
    }
}
