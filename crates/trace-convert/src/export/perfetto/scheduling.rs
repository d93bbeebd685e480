//! The scheduler's events, as Linux's own.
//= docs/perfetto.md#scheduling

use super::track_event::message_key;
use super::{PACKET, SEQUENCE};
use crate::export::numbers;
use crate::output::Output;
use trace_format::scheduling::{ThreadState, WAKER_ARGUMENT, WEIGHT_ARGUMENT};
use trace_format::units::Koid;
use trace_reader::Thread;
use trace_reader::item::Scheduling;
use trace_reader::{Arguments, Names, Switch, Switched, Value};

const IDLE_PRIORITY: i32 = 120;

/// Fields of a packet, of a bundle and of an event.
const FTRACE_EVENTS: u8 = 1;
const EVENT: u8 = 2;
const SCHED_SWITCH: u8 = 4;
const SCHED_WAKING: u32 = 20;

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
    arguments.integer(name).and_then(|weight| i32::try_from(weight).ok())
}

/// A thread's number; the idle one's is 0.
fn number(of: &Switched) -> i32 {
    if of.is_idle { 0 } else { numbers::short(of.thread) as i32 }
}

/// The idle thread has a usual thread's priority on Linux.
fn priority(of: &Switched) -> Option<i32> {
    match of {
        Switched { is_idle: true, process: None, .. } => Some(IDLE_PRIORITY),
        Switched { priority, .. } => priority.and_then(|priority| i32::try_from(priority).ok()),
    }
}

fn name(output: &mut Output, field: u8, thread: Koid, process: Option<Koid>, names: &Names) {
    let process = process.or_else(|| names.process_of(thread));
    if let Some(name) = process.and_then(|process| names.thread(Thread { process, thread })) {
        output.bytes_field(field, name.to_str().as_bytes());
    }
}

fn signed(output: &mut Output, field: u8, value: Option<i32>) {
    if let Some(value) = value {
        output.varint_field(field, i64::from(value) as u64);
    }
}

/// Writes a packet; false if Linux has no equivalent.
pub(super) fn write(
    output: &mut Output,
    at: u64,
    kind: &Scheduling,
    arguments: &Arguments<'_>,
    names: &Names,
) -> bool {
    if let Some(switched) = kind.switch(arguments) {
        switch(output, at, &switched, names);
        return true;
    }
    match kind {
        Scheduling::ThreadWakeup { cpu, thread } => {
            // Perfetto's reader drops a wakeup without a waker; thread 0, which wakes no thread, stands for
            // none.
            let waker = match arguments.find(WAKER_ARGUMENT) {
                Some(Value::Koid(waker)) => numbers::short(waker),
                _ => 0,
            };
            event(output, at, u32::from(*cpu), waker, |output| {
                output.varint(u64::from(SCHED_WAKING << 3 | 2));
                output.piece([0], 1);
                let waking = output.len();
                name(output, 1, *thread, None, names);
                signed(output, 2, Some(numbers::short(*thread) as i32));
                signed(output, 3, weight(arguments, WEIGHT_ARGUMENT));
                signed(output, 4, Some(1));
                signed(output, 5, Some(i32::from(*cpu)));
                output.close(waking);
            });
        }
        _ => return false,
    }
    true
}

fn switch(output: &mut Output, at: u64, switch: &Switch, names: &Names) {
    let Switch { cpu, state: outgoing, outgoing: out, incoming: into } = *switch;
    let prev = number(&out);
    event(output, at, u32::from(cpu), prev as u32, |output| {
        let switch = output.open(message_key(SCHED_SWITCH));
        name(output, 1, out.thread, out.process, names);
        signed(output, 2, Some(prev));
        signed(output, 3, priority(&out));
        output.varint_field(4, state(outgoing) as u64);
        name(output, 5, into.thread, into.process, names);
        signed(output, 6, Some(number(&into)));
        signed(output, 7, priority(&into));
        output.close(switch);
    });
}

/// Writes a packet with a bundle of one event.
fn event(output: &mut Output, at: u64, cpu: u32, pid: u32, fields: impl FnOnce(&mut Output)) {
    let packet = output.open(message_key(PACKET));
    let bundle = output.open(message_key(FTRACE_EVENTS));
    output.varint_field(1, u64::from(cpu));
    let event = output.open(message_key(EVENT));
    output.varint_field(1, at);
    output.varint_field(2, u64::from(pid));
    fields(output);
    output.close(event);
    output.close(bundle);
    output.varint_field(10, u64::from(SEQUENCE));
    output.close(packet);
}
