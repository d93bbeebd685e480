//! Which thread each CPU runs, from records of the scheduler.

use std::collections::BTreeMap;
use trace_format::scheduling::{IDLE_WEIGHT, INCOMING_WEIGHT_ARGUMENT};
use trace_format::units::Koid;
use trace_reader::item::Scheduling;
use trace_reader::{Arguments, Names, Thread};

/// CPUs with the thread that each of them runs, and since when.
#[derive(Debug, Default)]
pub struct Running(BTreeMap<u16, (u64, Thread)>);

/// A thread that a CPU has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    pub cpu: u16,
    pub thread: Thread,
    pub from: u64,
    pub to: u64,
}

impl Running {
    /// Takes a record; what the CPU has run until then.
    pub fn switch(
        &mut self,
        at: u64,
        kind: &Scheduling,
        arguments: &Arguments<'_>,
        names: &Names,
    ) -> Option<Ran> {
        let of = |thread: Koid| Thread { process: names.process_of(thread).unwrap_or_default(), thread };
        let (cpu, incoming, is_idle) = match kind {
            Scheduling::ContextSwitch { cpu, incoming, .. } => {
                let is_idle = arguments.integer(INCOMING_WEIGHT_ARGUMENT) == Some(IDLE_WEIGHT.into());
                (*cpu, of(*incoming), is_idle)
            }
            Scheduling::LegacyContextSwitch { cpu, incoming, incoming_priority, .. } => {
                (u16::from(*cpu), *incoming, incoming.process == Koid(0) && *incoming_priority == 0)
            }
            _ => return None,
        };
        let before = self.0.remove(&cpu);
        if !is_idle {
            self.0.insert(cpu, (at, incoming));
        }
        before.map(|(from, thread)| Ran { cpu, thread, from, to: at })
    }
}
