//! Names of functions that are not in any file: the kernel's, those of the code that it maps into programs,
//! and those that programs have compiled themselves. Each is written before the first sample that needs it.
//= docs/kernel.md#functions-without-a-file

use super::modules::Modules;
use super::perf_map::PerfMaps;
use crate::symbols::Functions;
use std::collections::HashMap;
use trace_format::function::{FunctionRecord, KERNEL};
use trace_format::units::Koid;

/// Maximum number of functions remembered as written; beyond it, they are written again.
const MAX_WRITTEN: usize = 1 << 18;

/// The names, and the set of written ones.
#[derive(Debug, Default)]
pub struct Names {
    kernel: Functions,
    maps: PerfMaps,
    /// By process and address.
    written: HashMap<(Koid, u64), Box<[u8]>>,
}

impl Names {
    /// Begins with the functions of the kernel.
    pub fn new(kernel: Functions) -> Self {
        Self { kernel, ..Self::default() }
    }

    /// Passes on the functions of a stack that were not written yet; false if some are unknown, but may
    /// become known later.
    pub fn write_new(
        &mut self,
        process: u32,
        frames: &[u64],
        modules: &Modules,
        mut write: impl FnMut(FunctionRecord<'_>),
    ) -> bool {
        let koid = Koid(process.into());
        let mut write = |record: FunctionRecord<'_>, written: &mut HashMap<_, Box<[u8]>>| {
            if written.len() >= MAX_WRITTEN {
                written.clear();
            }
            let key = (record.process, record.start);
            if written.get(&key).is_none_or(|name| **name != *record.name) {
                written.insert(key, record.name.into());
                write(record);
            }
        };
        let mut has_looked = false;
        let mut is_complete = true;
        for (depth, frame) in frames.iter().enumerate() {
            // A caller is at the instruction before its return address.
            let address = frame.saturating_sub(u64::from(depth > 0));
            if let Some(function) = self.kernel.find(address) {
                let name = function.name.as_bytes();
                let record =
                    FunctionRecord { process: KERNEL, start: function.start, length: function.length, name };
                write(record, &mut self.written);
                continue;
            }
            if let Some((code, start, linked_at)) = modules.code(address) {
                let within = address - start;
                let found = code.functions.as_ref().and_then(|all| all.find(linked_at.wrapping_add(within)));
                if let Some(function) = found {
                    let start = start.wrapping_add(function.start.wrapping_sub(linked_at));
                    let name = function.name.as_bytes();
                    let record = FunctionRecord { process: koid, start, length: function.length, name };
                    write(record, &mut self.written);
                }
                continue;
            }
            let Some(map) = self.maps.of(process) else {
                continue;
            };
            if map.find(address).is_none() && !std::mem::replace(&mut has_looked, true) {
                map.read_on();
            }
            match map.find(address) {
                Some((start, length, name)) => {
                    write(FunctionRecord { process: koid, start, length, name }, &mut self.written);
                }
                None => is_complete = false,
            }
        }
        is_complete
    }

    /// Whether a process has recorded more functions since the last call.
    pub fn has_more(&mut self, process: u32) -> bool {
        self.maps.of(process).is_some_and(|map| map.read_on())
    }

    /// A process has ended, or runs another program.
    pub fn remove(&mut self, process: u32) {
        self.maps.remove(process);
        let koid = Koid(process.into());
        self.written.retain(|(of, _), _| *of != koid);
    }
}
