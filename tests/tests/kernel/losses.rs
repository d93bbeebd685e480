//! What the kernel could not keep.

use rustix::process::Signal;
use trace_format::event::EventKind;
use trace_format::slab::LossReason;
use trace_tests::archive::Value;
use trace_tests::kernel::{ROOT, alone, instance_of, instances, sum};
use trace_tests::sandbox::kill;
use trace_tests::scene::freeze;
use trace_tests::{Archive, Requirement, Sandbox, native, wait_for};

/// Two writers, each on its own CPU, fill a tiny buffer again and again.
//= docs/kernel.md#losses
#[test]
fn the_ledgers_overruns_are_tracefss() {
    if !Requirement::Markers.is_met("the_ledgers_overruns_are_tracefss") {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    // Its manager comes with the recording.
    let provide = |size| sandbox.spawn("trace", &["ktrace", "--kernel-buffer-size", size]);
    let kernel = provide("16KiB");
    let writer = |cpu: u8| {
        format!("yes \"I|1|full\" | head -c 2000000 | taskset -c {cpu} tee {ROOT}/trace_marker > /dev/null")
    };
    let script = format!("{} & {}; wait; echo written; read end", writer(0), writer(1));
    let manager = sandbox.spawn("trace", &["manager"]);
    wait_for("the kernel's provider to be known", || {
        let listed = sandbox.trace(["list-programs"]);
        String::from_utf8_lossy(&listed.stdout).contains("ktrace_provider").then_some(())
    });
    let mut recording =
        sandbox.spawn("trace", &["record", "--categories", "atrace", "--", "sh", "-c", &script]);
    assert_eq!(recording.line(), "written");
    let instance = instance_of(kernel.pid());
    assert_eq!(instances(), std::slice::from_ref(&instance));
    let told = ["overrun", "dropped events", "commit overrun"].map(|name| sum(&instance, name));
    recording.say("end");
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let reasons = [LossReason::KernelOverrun, LossReason::KernelDropped, LossReason::KernelCommitOverrun];
    assert_eq!(reasons.map(|reason| archive.lost(reason)), told);
    assert!(told[0] > 100, "{told:?}");
    // Everything adds up, what the kernel lost included.
    let _ = archive.generated();
    let gaps = archive.events.iter().filter(|event| event.name() == "drop_stats");
    let counts: Vec<u64> = gaps
        .map(|event| {
            assert!(matches!(event.event.kind, EventKind::DurationComplete { .. }));
            match event.event.argument("num_records") {
                Some(Value::Uint32(count)) => u64::from(*count),
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert!(!counts.is_empty());
    assert!(counts.iter().sum::<u64>() <= told[0], "{counts:?} of {told:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("kernel buffer overrun"), "{said}");
    assert!(said.contains("with larger ones: trace ktrace --kernel-buffer-size"), "{said}");
    // As advised: larger than all that is written.
    drop(kernel);
    let is_known = || {
        let listed = sandbox.trace(["list-programs"]);
        String::from_utf8_lossy(&listed.stdout).contains("ktrace_provider")
    };
    wait_for("the kernel's provider to be forgotten", || (!is_known()).then_some(()));
    let kernel = provide("64MiB");
    wait_for("the kernel's provider to be known", || is_known().then_some(()));
    let mut recording =
        sandbox.spawn("trace", &["record", "--categories", "atrace", "--", "sh", "-c", &script]);
    assert_eq!(recording.line(), "written");
    recording.say("end");
    let output = recording.finish();
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    assert_eq!(reasons.map(|reason| archive.lost(reason)), [0; 3], "{output:?}");
    drop((kernel, manager));
}

/// While streaming, a record waits for room, also at the end: what is lost, the kernel itself had no room
/// for.
//= docs/kernel.md#records
#[test]
fn a_stream_loses_nothing_that_came_out_of_the_kernel() {
    let test = "a_stream_loses_nothing_that_came_out_of_the_kernel";
    if !Requirement::Tracefs.is_met(test) || !Requirement::Compilers.is_met(test) {
        return;
    }
    let _alone = alone();
    let sandbox = Sandbox::new();
    let program = sandbox.file("busy");
    native::program("gcc", &["busy.c"], &["-O1", "-pthread"], &program);
    let script = format!("echo begun; read go; {}; echo done; read end", program.display());
    let options =
        ["record", "--buffering-mode", "streaming", "--program-buffer-size", "ktrace_provider:1MiB"];
    // On a busy machine it takes longer than usual to hand over what has piled up.
    let command = ["--stop-timeout", "60s", "--categories", "kernel", "--", "sh", "-c", &script];
    let mut recording = sandbox.spawn("trace", &[&options[..], &command].concat());
    assert_eq!(recording.line(), "begun");
    // The buffer is not drained, while the kernel has many times as much to report.
    let manager = sandbox.manager_pid().expect("a manager runs");
    freeze(manager);
    recording.say("go");
    assert!(recording.line().starts_with("0x"));
    assert_eq!(recording.line(), "done");
    kill(manager, Signal::CONT);
    recording.say("end");
    let output = recording.finish();
    assert!(output.status.success(), "{output:?}");
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    // Many times what the buffer holds.
    assert!(std::fs::metadata(sandbox.file("trace.fxt")).unwrap().len() > 2 << 20);
    let reasons = [LossReason::NotSaved, LossReason::NotRetired, LossReason::Full];
    assert_eq!(reasons.map(|reason| archive.lost(reason)), [0; 3], "{:?}", archive.losses);
    let _ = archive.generated();
}
