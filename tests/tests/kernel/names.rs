//! Who is who.

use trace_tests::archive::Scheduled;
use trace_tests::kernel::alone;
use trace_tests::{Archive, Requirement, Sandbox};

/// Processes that come and go are known by the names that they had at the end.
//= docs/kernel.md#categories
#[test]
fn a_program_that_comes_and_goes_has_its_name() {
    if !Requirement::Tracefs.is_met("a_program_that_comes_and_goes_has_its_name") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    for mode in ["oneshot", "circular", "streaming"] {
        let options = ["record", "--buffering-mode", mode, "--categories", "kernel:sched,kernel:syscall"];
        let command = ["--", "sh", "-c", "echo $$ > shell; sleep 0.01 & echo $! > sleeper; wait; exec true"];
        let output = sandbox.trace([&options[..], &command].concat());
        assert!(output.status.success(), "{output:?}");
        let number = |file: &str| -> u64 {
            std::fs::read_to_string(sandbox.file(file)).unwrap().trim().parse().unwrap()
        };
        let (shell, sleeper) = (number("shell"), number("sleeper"));
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        assert_eq!(archive.processes[&shell], "true", "{mode}");
        assert_eq!(
            (&archive.processes[&sleeper][..], &archive.threads[&sleeper][..]),
            ("sleep", "sleep"),
            "{mode}"
        );
        assert_eq!(archive.threads[&0x7fff_0001], "cpu-1");
        assert_eq!(archive.threads[&2], "kthreadd");
        let runs = |thread: u64| {
            archive.scheduling.iter().any(
                |scheduled| matches!(scheduled, Scheduled::Switch { outgoing, .. } if *outgoing == thread),
            )
        };
        assert!(runs(shell) && runs(sleeper), "{mode}");
        // The sleep itself, by the name of the call that makes it.
        let mut calls = archive.events.iter().filter(|event| event.event.thread.0 == sleeper);
        assert!(calls.any(|event| event.name() == "clock_nanosleep"), "{mode}");
        // The process of a thread is known in all its events.
        let processes = archive.events.iter().filter(|event| event.event.thread.0 == sleeper);
        assert!(processes.clone().all(|event| event.event.process.0 == sleeper), "{mode}");
    }
}

/// The provider of one recording is not that of the next, which may begin while it leaves.
#[test]
fn recordings_one_right_after_the_other_have_the_kernel_each() {
    if !Requirement::Tracefs.is_met("recordings_one_right_after_the_other_have_the_kernel_each") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    for number in 0..8 {
        let output = sandbox.trace(["record", "--categories", "kernel:meta", "--", "true"]);
        assert!(output.status.success(), "{output:?}");
        let archive = Archive::read(&sandbox.file("trace.fxt"));
        assert_eq!(archive.threads.get(&2).map(String::as_str), Some("kthreadd"), "recording {number}");
    }
}
