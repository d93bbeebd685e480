//! The scheduler's events, as Linux's own.
//= docs/perfetto.md#scheduling

use super::messages::{FtraceEvent, FtraceEventBundle, SchedSwitch, SchedWaking};
use trace_format::scheduling::{
    IDLE_WEIGHT, INCOMING_WEIGHT_ARGUMENT, OUTGOING_WEIGHT_ARGUMENT, ThreadState, WAKER_ARGUMENT,
    WEIGHT_ARGUMENT,
};
use trace_format::units::Koid;
use trace_reader::Thread;
use trace_reader::item::Scheduling;
use trace_reader::{Arguments, Names, Value};

const IDLE_PRIORITY: i32 = 120;

/// Linux's codes for a thread that may run, sleeps, is stopped, is a zombie, is dead.
fn state(state: ThreadState) -> i64 {
    match state {
        ThreadState::BLOCKED => 1,
        ThreadState::SUSPENDED => 4,
        ThreadState::DYING => 32,
        ThreadState::DEAD => 16,
        _ => 0,
    }
}

fn weight(arguments: &Arguments<'_>, name: &str) -> Option<i32> {
    match arguments.find(name) {
        Some(Value::Int32(weight)) => Some(weight),
        Some(Value::Uint32(weight)) => i32::try_from(weight).ok(),
        Some(Value::Int64(weight)) => i32::try_from(weight).ok(),
        _ => None,
    }
}

/// A thread's number, which has 32 bits here; the idle one's is 0.
fn number(thread: Koid, weight: Option<i32>) -> i32 {
    if weight == Some(IDLE_WEIGHT) { 0 } else { thread.0 as i32 }
}

/// The idle thread has a usual thread's priority on Linux.
fn priority(weight: Option<i32>) -> Option<i32> {
    weight.map(|weight| if weight == IDLE_WEIGHT { IDLE_PRIORITY } else { weight })
}

fn name(thread: Koid, process: Option<Koid>, names: &Names) -> Option<String> {
    let process = process.or_else(|| names.process_of(thread))?;
    names.thread(Thread { process, thread }).map(|name| name.to_str().into_owned())
}

/// None if Linux has no equivalent.
pub(super) fn bundle(
    at: u64,
    kind: &Scheduling,
    arguments: &Arguments<'_>,
    names: &Names,
) -> Option<FtraceEventBundle> {
    let event = |cpu: u32, pid: i32, sched_switch, sched_waking| FtraceEventBundle {
        cpu: Some(cpu),
        event: vec![FtraceEvent {
            timestamp: Some(at),
            pid: Some(pid as u32),
            sched_switch,
            sched_waking,
            ..FtraceEvent::default()
        }],
        ..FtraceEventBundle::default()
    };
    match kind {
        Scheduling::ContextSwitch { cpu, outgoing_state, outgoing, incoming } => {
            let out = weight(arguments, OUTGOING_WEIGHT_ARGUMENT);
            let into = weight(arguments, INCOMING_WEIGHT_ARGUMENT);
            let prev = number(*outgoing, out);
            let switch = SchedSwitch {
                prev_comm: name(*outgoing, None, names),
                prev_pid: Some(prev),
                prev_prio: priority(out),
                prev_state: Some(state(*outgoing_state)),
                next_comm: name(*incoming, None, names),
                next_pid: Some(number(*incoming, into)),
                next_prio: priority(into),
            };
            Some(event(u32::from(*cpu), prev, Some(switch), None))
        }
        Scheduling::LegacyContextSwitch {
            cpu,
            outgoing_state,
            outgoing,
            incoming,
            outgoing_priority,
            incoming_priority,
        } => {
            let idle = |thread: &Thread, priority: u8| {
                (thread.process.0 == 0 && priority == 0).then_some(IDLE_WEIGHT)
            };
            let prev = number(outgoing.thread, idle(outgoing, *outgoing_priority));
            let switch = SchedSwitch {
                prev_comm: name(outgoing.thread, Some(outgoing.process), names),
                prev_pid: Some(prev),
                prev_prio: Some(i32::from(*outgoing_priority)),
                prev_state: Some(state(*outgoing_state)),
                next_comm: name(incoming.thread, Some(incoming.process), names),
                next_pid: Some(number(incoming.thread, idle(incoming, *incoming_priority))),
                next_prio: Some(i32::from(*incoming_priority)),
            };
            Some(event(u32::from(*cpu), prev, Some(switch), None))
        }
        Scheduling::ThreadWakeup { cpu, thread } => {
            let waking = SchedWaking {
                comm: name(*thread, None, names),
                pid: Some(number(*thread, None)),
                prio: weight(arguments, WEIGHT_ARGUMENT),
                success: Some(1),
                target_cpu: Some(i32::from(*cpu)),
            };
            // Perfetto's reader drops a wakeup without a waker; thread 0, which wakes no thread, stands for
            // none.
            let waker = match arguments.find(WAKER_ARGUMENT) {
                Some(Value::Koid(waker)) => waker.0 as i32,
                _ => 0,
            };
            Some(event(u32::from(*cpu), waker, None, Some(waking)))
        }
        Scheduling::FiberSwitch { .. } => None,
    }
}
