//! The kernel's events.

use super::*;

fn bundle(events: Vec<FtraceEvent>) -> TracePacket {
    let bundle = FtraceEventBundle { cpu: Some(1), event: events, ..FtraceEventBundle::default() };
    TracePacket { ftrace_events: Some(Box::new(bundle)), ..TracePacket::default() }
}

fn at(at: u64, event: FtraceEvent) -> FtraceEvent {
    FtraceEvent { timestamp: Some(at), pid: Some(7), ..event }
}

/// Each `irq_handler_exit` says what the handler returned.
//= docs/import.md#kernel-events
#[test]
fn interrupts_and_system_calls_have_both_ends() {
    let entry = IrqHandlerEntry { irq: Some(27), name: Some("timer".to_owned()) };
    let exit = IrqHandlerExit { irq: Some(27), ret: Some(1) };
    let (found, summary) = imported(&trace(&[bundle(vec![
        at(10, FtraceEvent { irq_handler_entry: Some(entry), ..FtraceEvent::default() }),
        at(20, FtraceEvent { irq_handler_exit: Some(exit), ..FtraceEvent::default() }),
        at(30, FtraceEvent { sys_enter: Some(SysEnter { id: Some(202) }), ..FtraceEvent::default() }),
        at(
            40,
            FtraceEvent { sys_exit: Some(SysExit { id: Some(202), ret: Some(0) }), ..FtraceEvent::default() },
        ),
    ])]));
    insta::assert_snapshot!(found[1..].join("\n"), @r#"
    0.000000010 begin 0/2147418113 "kernel:irq" "irq" {"irq #"=27u32, name="timer"}
    0.000000020 end 0/2147418113 "kernel:irq" "irq"
    0.000000030 begin 0/7 "kernel:syscall" "sys_202"
    0.000000040 end 0/7 "kernel:syscall" "sys_202"
    "#);
    assert_eq!((summary.skipped, summary.warnings), (Vec::new(), 0));
}

/// A new thread's process is not known if its creator's is not, and then it is what its markers say.
//= docs/import.md#kernel-events
#[test]
fn a_new_thread_of_an_unknown_process_belongs_to_that_of_its_markers() {
    let task = TaskNewtask { pid: Some(7), comm: Some("new".to_owned()), clone_flags: Some(0x1_0000) };
    let created = FtraceEvent { task_newtask: Some(task), ..FtraceEvent::default() };
    let print = Some(Print { buf: Some("B|5|work\n".to_owned()) });
    let (found, _) = imported(&trace(&[bundle(vec![
        FtraceEvent { pid: Some(6), ..at(10, created) },
        at(20, FtraceEvent { print, ..FtraceEvent::default() }),
    ])]));
    assert_eq!(
        found,
        [
            r#"- kernel-object thread #7 "new" {process=#0}"#,
            r#"- kernel-object thread #7 "new" {process=#5}"#,
            r#"0.000000020 begin 5/7 "atrace" "work""#,
        ]
    );
}

/// They are times of the boot clock, whatever the trace's is.
//= docs/import.md#clocks-of-perfetto
#[test]
fn kernel_events_become_times_of_the_traces_clock() {
    let clock = |id, at| Clock { clock_id: Some(id), timestamp: Some(at), ..Clock::default() };
    let snapshot = ClockSnapshot {
        clocks: vec![clock(CLOCK_BOOTTIME, 5000), clock(CLOCK_MONOTONIC, 3000)],
        primary_trace_clock: Some(CLOCK_MONOTONIC),
    };
    let print = Some(Print { buf: Some("I|7|now\n".to_owned()) });
    let (found, _) = imported(&trace(&[
        TracePacket { clock_snapshot: Some(snapshot), ..TracePacket::default() },
        bundle(vec![at(5500, FtraceEvent { print, ..FtraceEvent::default() })]),
        event(3400, slice(TYPE_INSTANT, 0, "before")),
    ]));
    assert_eq!(
        found,
        [
            r#"0.000003400 instant 0/0 "a,b" "before" scope=global"#,
            r#"0.000003500 instant 7/7 "atrace" "now" scope=thread"#,
        ]
    );
}
