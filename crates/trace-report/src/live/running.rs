//! Which thread each CPU runs, from records of the scheduler.

use std::collections::BTreeMap;
use trace_reader::item::Scheduling;
use trace_reader::{Arguments, Names, Switch, Switched, Thread};

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
        let Switch { cpu, incoming, .. } = kind.switch(arguments)?;
        let before = self.0.remove(&cpu);
        if !incoming.is_idle {
            let Switched { thread, process, .. } = incoming;
            let process = process.or_else(|| names.process_of(thread)).unwrap_or_default();
            self.0.insert(cpu, (at, Thread { process, thread }));
        }
        before.map(|(from, thread)| Ran { cpu, thread, from, to: at })
    }
}
