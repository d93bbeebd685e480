//! Rows of the kernel's scheduler.

use super::{Filler, Rows, integer, nanos};
use crate::tables::{Cell, Kind};
use std::io;
use trace_format::scheduling::{WAKER_ARGUMENT, WEIGHT_ARGUMENT};
use trace_format::units::Koid;
use trace_reader::item::Scheduling;
use trace_reader::{Arguments, Names, Switch, Switched, Thread, Time, Value};

/// The thread that a CPU runs.
pub struct Running {
    pub since: u64,
    pub thread: Thread,
    pub prio: Option<i64>,
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
        if let Some(switch) = kind.switch(arguments) {
            return self.switch(time, &switch, names);
        }
        match kind {
            Scheduling::ThreadWakeup { cpu, thread } => {
                let whose = self.whose(Kind::Wakeups, of(*thread), names);
                self.number(whose.thread);
                let [pid, tid, process, name] = whose.cells();
                let prio = Cell::from(arguments.integer(WEIGHT_ARGUMENT));
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
                self.rows.row(Kind::Wakeups, &cells)
            }
            _ => {
                self.skip("fiber switches");
                Ok(())
            }
        }
    }

    fn switch(&mut self, time: Time, switch: &Switch, names: &Names) -> io::Result<()> {
        let Switch { cpu, state, outgoing, incoming } = *switch;
        let of = |Switched { thread, process, .. }: Switched| {
            let process = process.or_else(|| names.process_of(thread)).unwrap_or_default();
            Thread { process, thread }
        };
        // The number of an idle thread is no thread's.
        let outgoing = Some(outgoing).filter(|outgoing| !outgoing.is_idle || outgoing.process.is_some());
        let at = time.nanos().0;
        if let Some(running) = self.running.remove(&cpu) {
            // An unreported switch lies between.
            let is_same = outgoing.is_some_and(|outgoing| outgoing.thread == running.thread.thread);
            let state = if is_same { Cell::from(state.text()) } else { Cell::Null };
            self.ran(cpu, &running, at, state, names)?;
        }
        if !incoming.is_idle {
            let (thread, prio) = (of(incoming), incoming.priority);
            self.number(thread);
            self.running.insert(cpu, Running { since: at, thread, prio });
        }
        Ok(())
    }

    fn ran(
        &mut self,
        cpu: u16,
        running: &Running,
        end: u64,
        state: Cell<'_>,
        names: &Names,
    ) -> io::Result<()> {
        // Its process may have become known meanwhile.
        let Thread { process, thread } = running.thread;
        let process = if process == Koid(0) { names.process_of(thread).unwrap_or(process) } else { process };
        let whose = self.whose(Kind::Sched, Thread { process, thread }, names);
        let length = integer(end.saturating_sub(running.since));
        self.sched_row(cpu, running, whose.cells(), [length, state])
    }

    pub(super) fn sched_row(
        &mut self,
        cpu: u16,
        running: &Running,
        [pid, tid, process, name]: [Cell<'_>; 4],
        [length, state]: [Cell<'_>; 2],
    ) -> io::Result<()> {
        let (cpu, prio) = (Cell::Integer(cpu.into()), Cell::from(running.prio));
        let (since, utc) = (integer(running.since), self.utc(running.since));
        self.rows.row(Kind::Sched, &[since, length, cpu, pid, tid, process, name, prio, state, utc])
    }
}
