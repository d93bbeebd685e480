//! Names of processes, threads and functions.

use crate::functions::Functions;
use crate::item::{Text, Thread};
use crate::tables::Budget;
use foldhash::HashMap;
use trace_format::units::Koid;

/// Names of processes and threads, from kernel object records, and of functions. Koids are unique on a
/// machine, so the names are valid for all providers. The last name of an object counts.
#[derive(Debug, Default)]
pub struct Names {
    processes: HashMap<Koid, Box<[u8]>>,
    threads: HashMap<Koid, (Option<Koid>, Box<[u8]>)>,
    pub(crate) functions: Functions,
}

/// Memory of an entry besides its text.
const ENTRY_BYTES: usize = 64;

impl Names {
    /// The name of a process.
    #[must_use]
    pub fn process(&self, process: Koid) -> Option<Text<'_>> {
        self.processes.get(&process).map(|name| Text(name))
    }

    /// The name of a thread, unless it is known to be a thread of another process.
    #[must_use]
    pub fn thread(&self, Thread { process, thread }: Thread) -> Option<Text<'_>> {
        let (owner, name) = self.threads.get(&thread)?;
        owner.is_none_or(|owner| owner == process).then_some(Text(name))
    }

    /// The function at an address of a process, if the trace names it.
    #[must_use]
    pub fn function(&self, process: Koid, address: u64) -> Option<Text<'_>> {
        self.functions.find(process, address)
    }

    /// The process of a thread.
    #[must_use]
    pub fn process_of(&self, thread: Koid) -> Option<Koid> {
        self.threads.get(&thread)?.0
    }

    /// False if there is no room left for the name.
    pub(crate) fn name_process(&mut self, process: Koid, name: &[u8], budget: &mut Budget) -> bool {
        let old = self.processes.get(&process).map_or(0, |name| name.len() + ENTRY_BYTES);
        let is_kept = budget.replace(old, name.len() + ENTRY_BYTES);
        if is_kept {
            self.processes.insert(process, name.into());
        }
        is_kept
    }

    /// False if there is no room left for the name.
    pub(crate) fn name_thread(
        &mut self,
        thread: Koid,
        process: Option<Koid>,
        name: &[u8],
        budget: &mut Budget,
    ) -> bool {
        let old = self.threads.get(&thread).map_or(0, |(_, name)| name.len() + ENTRY_BYTES);
        let is_kept = budget.replace(old, name.len() + ENTRY_BYTES);
        if is_kept {
            self.threads.insert(thread, (process, name.into()));
        }
        is_kept
    }
}
