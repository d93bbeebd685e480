//! Providers without a thread, in a loop of the application's.

use trace_tests::{Archive, Sandbox, wait_for};

fn events(archive: &Archive) -> usize {
    archive.events.iter().filter(|event| event.name() == "step").count()
}

//= docs/internals/providers.md#providers-without-a-thread
#[test]
fn a_loop_of_tokios_records_every_event_without_a_thread() {
    for mode in ["oneshot", "streaming"] {
        let sandbox = Sandbox::new();
        let output =
            sandbox.record(&["--buffering-mode", mode, "--write-period", "10ms"], "tokio_loop", &["100"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "threads: 1\n");
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        assert_eq!(events(&archive), 100, "{mode}");
        let numbers = archive.events.iter().filter(|event| event.name() == "step");
        assert!(numbers.map(|event| event.u64("number")).eq(0..100));
    }
}

/// It runs before any manager, is recorded twice, and outlives the manager.
//= docs/internals/providers.md#providers-without-a-thread
#[test]
fn a_loop_finds_managers_that_come_and_go() {
    let sandbox = Sandbox::new();
    let mut program = sandbox.spawn("tokio_loop", &["-"]);
    for _ in 0..2 {
        let manager = sandbox.spawn("trace", &["manager"]);
        wait_for("the program to register", || {
            let listed = sandbox.trace(["list-programs"]).stdout;
            String::from_utf8_lossy(&listed).contains("tokio-loop").then_some(())
        });
        for name in ["a.fxt", "b.fxt"] {
            let output = sandbox.trace(["record", "--duration", "100ms", "-o", name]);
            assert!(output.status.success(), "{output:?}");
            assert!(events(&Archive::read(&sandbox.file(name))) > 0, "{name}");
        }
        drop(manager);
    }
    program.close_stdin();
    assert_eq!(program.line(), "threads: 1");
    program.succeed();
}

/// What a child inherits of it, it closes: the manager sees the end of the parent.
//= docs/internals/providers.md#providers-without-a-thread
#[test]
fn children_of_a_program_without_a_thread_are_recorded_and_do_not_keep_it_registered() {
    let sandbox = Sandbox::new();
    sandbox.record(&[], "forking", &["--polled", "events", "drop"]);
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(archive.providers.values().filter(|name| *name == "forking").count(), 3);
    let count = |name: &str| archive.events.iter().filter(|event| event.name() == name).count();
    assert_eq!((count("before"), count("child"), count("after")), (2, 4, 2));

    let _manager = sandbox.spawn("trace", &["manager"]);
    let listed = || {
        let listed = sandbox.trace(["list-programs"]).stdout;
        String::from_utf8_lossy(&listed).matches("forking").count()
    };
    wait_for("the manager", || sandbox.runtime_dir().join("provisioner").exists().then_some(()));
    let mut parent = sandbox.spawn("forking", &["--polled", "outlive"]);
    let child: u32 = parent.line().parse().expect("the child's number");
    wait_for("the parent to be forgotten", || (listed() == 0).then_some(()));
    assert!(std::path::Path::new(&format!("/proc/{child}")).exists());
    parent.close_stdin();
}
