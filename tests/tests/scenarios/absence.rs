//! The message of a recording without programs names the cause, and what helps; each is applied. Every case
//! has processes of its own, so that no other ones are found.
//= docs/troubleshooting.md#no-program-took-part

use super::meeting::{ALICE, Session, World, may_mount};
use trace_tests::{Archive, Sandbox};

const NONE: &str = "trace: no program took part: ";

/// Runs a command that records nothing, for root; what it said of the cause.
fn cause(world: &mut World, command: &str) -> String {
    world.run(&format!("{command}; [ $? = 5 ]"));
    line(world)
}

fn line(world: &World) -> String {
    let said = world.said();
    let line = said.lines().find_map(|line| line.strip_prefix(NONE));
    line.unwrap_or_else(|| panic!("{said}")).to_owned()
}

/// What helps is applied, and then `emit` takes part.
fn assert_helps(world: &mut World, command: &str) {
    world.run(&format!("{command} --duration 1s -o helped.fxt"));
    let archive = Archive::read(&world.sandbox.file("helped.fxt"));
    assert!(archive.providers.into_values().any(|name| name == "emit"), "{command}: {}", world.said());
}

const SERVICE: &str =
    "(sleep 1000 | $E ./emit 1 5 --wait > service.out) & until [ -s service.out ]; do sleep 0.01; done";

#[test]
fn a_program_without_a_provider() {
    if !may_mount("a_program_without_a_provider") {
        return;
    }
    let mut world = World::new();
    let call =
        |name: &str| format!("link libtrace, and call trace_provider_start({name:?}) first thing in main");
    let said = cause(&mut world, "./trace record -o none.fxt -- true");
    assert_eq!(said, format!("true does not link the trace library; {}", call("true")));
    assert!(
        world.said().ends_with("trace: 0 events of 0 programs; none.fxt is not made\n"),
        "{}",
        world.said()
    );
    assert!(!world.sandbox.file("none.fxt").exists());
    // The command's own code wins; with the option it is a success, and there is a file.
    world.run("./trace record -o none.fxt -- false; [ $? = 1 ] && [ ! -e none.fxt ]");
    world.run("./trace record --allow-empty -o none.fxt -- true");
    assert_eq!(Archive::read(&world.sandbox.file("none.fxt")).events.len(), 0);
    // Limits that nothing could break are not kept.
    world.run("./trace assert none.fxt 'lost == 0' 'count(app:frame) <= 3'; [ $? = 3 ]");
    assert_eq!(world.said().matches("no program was recorded").count(), 1, "{}", world.said());
    assert_eq!(world.said().matches("incomplete").count(), 2, "{}", world.said());
    world.run("printf '#!/bin/sh\\ntrue\\n' > script; chmod +x script");
    let said = cause(&mut world, "./trace record -- ./script");
    let none = "script is a script, and no program that it ran has registered: none that it names links the \
                trace library; call ";
    assert!(said.starts_with(none), "{said}");
    // One that is named in it, and ran in vain or not at all.
    let named = " is a script that names ./emit, which links the trace library and has not registered: it was not run, did \
                 not register, or looked for a manager elsewhere; record it alone: trace record -- ./emit";
    world.run("printf '#!/bin/sh\\nfalse && ./emit 1 5\\ntrue\\n' > script");
    for command in ["./script", "sh script", "sh -c 'true; false && ./emit 1 5; true'"] {
        let said = cause(&mut world, &format!("./trace record -- {command}"));
        let shell = if command == "./script" { "script" } else { "sh" };
        assert_eq!(said, format!("{shell}{named}"));
    }
    world.run("./trace record --duration 1s -o t.fxt");
    assert_eq!(line(&world), "no running program links the trace library");
}

/// A category that was not recorded is not silent.
//= docs/stats.md#verdicts
#[test]
fn a_category_that_was_left_out() {
    let sandbox = Sandbox::new();
    let verdict = |assertion: &str| sandbox.trace(["assert", "trace.fxt", assertion]).status.code();
    sandbox.record(&["--categories", "other,emit/fine"], "emit", &["1", "5"]);
    assert_eq!(verdict("count(emit:scope) <= 3"), Some(3));
    for silent in ["other:x", "fine:x", "trace:alert", "x"] {
        assert_eq!(verdict(&format!("count({silent}) <= 3")), Some(0), "{silent}");
    }
    std::fs::remove_file(sandbox.file("trace.fxt")).unwrap();
    sandbox.record(&["--categories", "emit/fine"], "emit", &["1", "5"]);
    assert_eq!((verdict("count(emit:scope) <= 3"), verdict("count(fine:x) <= 3")), (Some(3), Some(0)));
    std::fs::remove_file(sandbox.file("trace.fxt")).unwrap();
    sandbox.record(&[], "emit", &["1", "5"]);
    assert_eq!((verdict("count(emit:scope) <= 3"), verdict("count(quiet:x) <= 3")), (Some(1), Some(0)));
}

#[test]
fn a_program_that_crashes_before_it_joins() {
    if !may_mount("a_program_that_crashes_before_it_joins") {
        return;
    }
    let mut world = World::new();
    world.run("ulimit -c 0; ./trace record -o t.fxt -- ./emit --abort; [ $? = 134 ]");
    let call = "call trace_provider::TraceProvider::new(\"emit\") first thing in main";
    let expected =
        format!("emit links the trace library, and was killed by SIGABRT before it registered; {call}");
    assert_eq!(line(&world), expected);
}

#[test]
fn a_launcher_that_goes_to_the_background() {
    if !may_mount("a_launcher_that_goes_to_the_background") {
        return;
    }
    let mut world = World::new();
    // What it has started does not join before the launcher has ended.
    std::fs::write(
        world.sandbox.file("launcher"),
        "until [ -e over ]; do sleep 0.01; done; exec ./emit 1 5 --wait",
    )
    .unwrap();
    let said = cause(
        &mut world,
        "./trace record -o t.fxt -- bash -c '(sleep 1000 | bash launcher) > service.out &'",
    );
    assert!(said.starts_with("bash has ended, but "), "{said}");
    assert!(said.ends_with(", which it started, runs on; record what runs: trace record"), "{said}");
    world.run("touch over; until [ -s service.out ]; do sleep 0.01; done");
    assert_helps(&mut world, "./trace record");
}

#[test]
fn a_program_with_another_place() {
    if !may_mount("a_program_with_another_place") {
        return;
    }
    let mut world = World::new();
    world.run("mkdir -m 700 /run/elsewhere");
    world.run(&SERVICE.replace("$E", "env TRACE_RUNTIME_DIR=/run/elsewhere"));
    world.run("./trace record --duration 1s -o t.fxt");
    let said = line(&world);
    let help = "TRACE_RUNTIME_DIR=/run/elsewhere trace record";
    assert!(
        said.ends_with(&format!(" looks for a manager in /run/elsewhere; record there: {help}")),
        "{said}"
    );
    assert!(said.starts_with("emit (pid "), "{said}");
    assert_helps(&mut world, "TRACE_RUNTIME_DIR=/run/elsewhere ./trace record");
    // In a text of a shell's, too.
    let said =
        cause(&mut world, "./trace record -o t.fxt -- sh -c 'TRACE_RUNTIME_DIR=/run/elsewhere ./emit 1 5'");
    let named = "sh has the program look for a manager in /run/elsewhere; record there: ";
    assert_eq!(said, format!("{named}{help}"));
}

#[test]
fn a_program_of_another_user() {
    if !may_mount("a_program_of_another_user") {
        return;
    }
    let mut world = World::new();
    world.alice(Session::None, &SERVICE.replace("$E", ""));
    world.run("./trace record --duration 1s -o t.fxt");
    let said = line(&world);
    let help = format!("record as that user: sudo -u '#{ALICE}' trace record");
    assert!(
        said.starts_with("emit (pid ") && said.ends_with(&format!(" belongs to user {ALICE}; {help}")),
        "{said}"
    );
    // Without sudo the same is:
    assert_helps(
        &mut world,
        &format!("setpriv --reuid {ALICE} --regid {ALICE} --clear-groups ./trace record"),
    );
}

#[test]
fn a_program_without_its_environment() {
    if !may_mount("a_program_without_its_environment") {
        return;
    }
    let mut world = World::new();
    world.run("mkdir -m 700 /run/own");
    let said = cause(&mut world, "TRACE_RUNTIME_DIR=/run/own ./trace record -o t.fxt -- env -i ./emit 1 5");
    let expected = "env has ended, and emit has not registered: in an environment without TRACE_RUNTIME_DIR it looks in \
                    other directories; pass it on: TRACE_RUNTIME_DIR=/run/own";
    assert_eq!(said, expected);
    world.run(
        "TRACE_RUNTIME_DIR=/run/own ./trace record -o t.fxt -- env -i TRACE_RUNTIME_DIR=/run/own ./emit 1 5",
    );
    let said = cause(
        &mut world,
        "TRACE_RUNTIME_DIR=/run/own ./trace record -o t.fxt -- sh -c 'env -i ./emit 1 5; true'",
    );
    assert_eq!(said, expected.replace("env has", "sh has"));
    // In the usual directory the environment does not matter.
    world.run("./trace record -o t.fxt -- env -i ./emit 1 5");
    assert_eq!(Archive::read(&world.sandbox.file("t.fxt")).events.len(), 14 * 5);
    // A service without the variable, and a shell that has it.
    world.run(&SERVICE.replace("$E", ""));
    world.run("TRACE_RUNTIME_DIR=/run/own ./trace record --duration 1s -o t.fxt");
    let said = line(&world);
    assert!(
        said.ends_with("looks in the usual directories; record there: env -u TRACE_RUNTIME_DIR trace record"),
        "{said}"
    );
    assert_helps(&mut world, "env -u TRACE_RUNTIME_DIR ./trace record");
}
