//! Memory and faults of each process.

use super::parse::{self, Resident};
use super::{PROCESSES, PSS, counter, read};
use crate::processes::{name, numbers};
use std::collections::BTreeMap;
use trace_format::argument::ArgumentValue;
use trace_format::units::{Koid, Thread};
use trace_linux::{Kernel, Records};

/// The last reported values of each process: unchanged ones are not repeated.
#[derive(Debug, Default)]
pub struct Processes(BTreeMap<u32, Told>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    resident: Option<Resident>,
    faults: Option<(u64, u64)>,
    pss: Option<u64>,
}

impl Processes {
    /// Reports what has changed since the last time.
    pub fn sample(&mut self, at: u64, kernel: &mut Kernel<impl Records>, has_memory: bool, has_pss: bool) {
        let before = std::mem::take(&mut self.0);
        for process in numbers("/proc") {
            let directory = format!("/proc/{process}");
            let Some(resident) = parse::resident(&read(&format!("{directory}/status"))) else {
                continue;
            };
            let known = before.get(&process).copied();
            if known.is_none() {
                // A new process, or a thread of the kernel's until now.
                kernel.belongs(process, process);
                name(kernel, process);
            }
            let known = known.unwrap_or_default();
            let mut current = known;
            let koid = Koid(process.into());
            let thread = Thread { process: koid, thread: koid };
            let value = ArgumentValue::Uint64;
            if has_memory {
                current.resident = Some(resident);
                current.faults = parse::faults(&read(&format!("{directory}/stat")));
                if current.resident != known.resident {
                    let Resident { anon, file, shmem, swap } = resident;
                    let values = [("anon", anon), ("file", file), ("shmem", shmem), ("swap", swap)]
                        .map(|(name, bytes)| (name, value(bytes)));
                    counter(at, kernel, thread, PROCESSES, "resident memory", 0, &values);
                }
                if let Some((minor, major)) = current.faults.filter(|_| current.faults != known.faults) {
                    let values = [("minor", value(minor)), ("major", value(major))];
                    counter(at, kernel, thread, PROCESSES, "page faults", 0, &values);
                }
            }
            if has_pss {
                current.pss = parse::kilobytes(&read(&format!("{directory}/smaps_rollup")), "Pss");
                if let Some(pss) = current.pss.filter(|_| current.pss != known.pss) {
                    counter(at, kernel, thread, PSS, "proportional memory", 0, &[("pss", value(pss))]);
                }
            }
            self.0.insert(process, current);
        }
    }
}
