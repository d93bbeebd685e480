//! Rows of the kernel's scheduler.

use super::{Filler, Rows, integer, nanos};
use crate::tables::{Cell, Kind};
use std::io;
use trace_format::scheduling::{
    IDLE_WEIGHT, INCOMING_WEIGHT_ARGUMENT, OUTGOING_WEIGHT_ARGUMENT, WAKER_ARGUMENT, WEIGHT_ARGUMENT,
};
use trace_format::units::Koid;
use trace_reader::item::{Scheduling, ThreadState};
use trace_reader::{Arguments, Names, Thread, Time, Value};

/// The thread that a CPU runs.
pub struct Running {
    pub since: u64,
    pub thread: Thread,
    pub prio: Option<i64>,
}

fn state_text(state: ThreadState) -> Cell<'static> {
    state.text().map_or(Cell::Null, Cell::Text)
}

impl<R: Rows> Filler<'_, R> {
    //= docs/tables.md#scheduling
    pub(super) fn scheduling(
        &mut self,
        time: Time,
        kind: &Scheduling,
        arguments: &Arguments<'_>,
        names: &Names,
    ) -> io::Result<()> {
        let of = |thread: Koid| Thread { process: names.process_of(thread).unwrap_or_default(), thread };
        let (cpu, outgoing, state, incoming, prio, is_idle) = match kind {
            Scheduling::ContextSwitch { cpu, outgoing_state, outgoing, incoming } => {
                let prio = arguments.integer(INCOMING_WEIGHT_ARGUMENT);
                let is_idle = prio == Some(IDLE_WEIGHT.into());
                let went_idle = arguments.integer(OUTGOING_WEIGHT_ARGUMENT) == Some(IDLE_WEIGHT.into());
                let outgoing = (!went_idle).then(|| of(*outgoing));
                (*cpu, outgoing, *outgoing_state, of(*incoming), prio, is_idle)
            }
            Scheduling::LegacyContextSwitch {
                cpu,
                outgoing_state,
                outgoing,
                incoming,
                incoming_priority,
                ..
            } => {
                let is_idle = incoming.process.0 == 0 && *incoming_priority == 0;
                let prio = Some(i64::from(*incoming_priority));
                (u16::from(*cpu), Some(*outgoing), *outgoing_state, *incoming, prio, is_idle)
            }
            Scheduling::ThreadWakeup { cpu, thread } => {
                let whose = self.whose(Kind::Wakeups, of(*thread), names);
                self.number(whose.thread);
                let [pid, tid, process, name] = whose.cells();
                let prio = arguments.integer(WEIGHT_ARGUMENT).map_or(Cell::Null, Cell::Integer);
                let waker = match arguments.find(WAKER_ARGUMENT) {
                    Some(Value::Koid(waker)) => Cell::Unsigned(waker.0),
                    _ => Cell::Null,
                };
                let cpu = Cell::Integer((*cpu).into());
                let cells = [
                    Cell::Integer(nanos(time)),
                    cpu,
                    pid,
                    tid,
                    process,
                    name,
                    prio,
                    waker,
                    self.utc(time.nanos().0),
                ];
                return self.rows.row(Kind::Wakeups, &cells);
            }
            Scheduling::FiberSwitch { .. } => {
                self.skip("fiber switches");
                return Ok(());
            }
        };
        let at = time.nanos().0;
        if let Some(running) = self.running.remove(&cpu) {
            // An unreported switch lies between.
            let is_same = outgoing.is_some_and(|outgoing| outgoing.thread == running.thread.thread);
            let state = if is_same { state_text(state) } else { Cell::Null };
            self.ran(cpu, &running, Some(at), state, names)?;
        }
        if !is_idle {
            self.number(incoming);
            self.running.insert(cpu, Running { since: at, thread: incoming, prio });
        }
        Ok(())
    }

    fn ran(
        &mut self,
        cpu: u16,
        running: &Running,
        end: Option<u64>,
        state: Cell<'_>,
        names: &Names,
    ) -> io::Result<()> {
        // Its process may have become known meanwhile.
        let Thread { process, thread } = running.thread;
        let process = if process == Koid(0) { names.process_of(thread).unwrap_or(process) } else { process };
        let whose = self.whose(Kind::Sched, Thread { process, thread }, names);
        let [pid, tid, process, name] = whose.cells();
        let length = end.map_or(Cell::Null, |end| integer(end.saturating_sub(running.since)));
        let prio = running.prio.map_or(Cell::Null, Cell::Integer);
        let cpu = Cell::Integer(cpu.into());
        let (since, utc) = (integer(running.since), self.utc(running.since));
        self.rows.row(Kind::Sched, &[since, length, cpu, pid, tid, process, name, prio, state, utc])
    }
}
