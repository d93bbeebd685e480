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
