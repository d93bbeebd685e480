//! Names of functions that are not in any file, as recorded in the trace.

use crate::item::{self, Text};
use crate::tables::{Budget, Provider};
use std::collections::{BTreeMap, HashMap};
use trace_format::blob::Blob;
use trace_format::function::{FUNCTION_BLOB_NAME, FunctionRecord, KERNEL};
use trace_format::units::Koid;

/// Memory of an entry besides its text.
const ENTRY_BYTES: usize = 64;

/// Functions of one process by start address, with their length and name; none overlap.
type OfProcess = BTreeMap<u64, (u64, Box<[u8]>)>;

/// Functions of all processes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Functions(HashMap<Koid, OfProcess>);

/// The function that a blob names, if it does.
pub(crate) fn function_of<'a>(provider: &Provider, blob: &Blob<'a>) -> Option<FunctionRecord<'a>> {
    let name = item::resolve(provider, blob.name);
    FunctionRecord::decode(blob.payload).ok().flatten().filter(|_| name == FUNCTION_BLOB_NAME)
}

impl Functions {
    /// The name of the function at an address of a process.
    pub fn find(&self, process: Koid, address: u64) -> Option<Text<'_>> {
        let find = |process| {
            let (start, (length, name)) = self.0.get(&process)?.range(..=address).next_back()?;
            (address - start < *length).then_some(Text(name))
        };
        find(process).or_else(|| find(KERNEL))
    }

    /// Adds a function, and replaces those that it overlaps. False if there is no room left for the name.
    pub fn insert(&mut self, function: &FunctionRecord<'_>, budget: &mut Budget) -> bool {
        let &FunctionRecord { process, start, length, name } = function;
        self.remove(process, start, length, budget);
        let is_kept = budget.replace(0, name.len() + ENTRY_BYTES);
        if is_kept {
            self.0.entry(process).or_default().insert(start, (length, name.into()));
        }
        is_kept
    }

    /// Other code is at these addresses now.
    pub fn remove(&mut self, process: Koid, start: u64, length: u64, budget: &mut Budget) {
        let Some(functions) = self.0.get_mut(&process) else {
            return;
        };
        let end = start.saturating_add(length);
        let known = functions.range(..end).rev();
        let overlapped = known.take_while(|(other, (length, _))| other.saturating_add(*length) > start);
        let mut overlapped: Vec<u64> = overlapped.map(|(other, _)| *other).collect();
        // One without bytes overlaps nothing, but replaces one at the same address.
        overlapped.extend(functions.contains_key(&start).then_some(start));
        for other in overlapped {
            if let Some((_, name)) = functions.remove(&other) {
                budget.replace(name.len() + ENTRY_BYTES, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: Koid = Koid(7);

    fn function(process: Koid, start: u64, length: u64, name: &str) -> FunctionRecord<'_> {
        FunctionRecord { process, start, length, name: name.as_bytes() }
    }

    //= docs/format.md#function-blob
    #[test]
    fn the_last_name_of_an_address_holds() {
        let (mut functions, mut budget) = (Functions::default(), Budget::new(10_000));
        let full = budget.clone();
        let mut insert = |record| assert!(functions.insert(&record, &mut budget));
        insert(function(PROCESS, 0x1000, 0x100, "first"));
        insert(function(PROCESS, 0x1100, 0x100, "second"));
        insert(function(KERNEL, 0x1_0000, 0x100, "kernel"));
        insert(function(Koid(8), 0x1000, 0x100, "another's"));
        let name =
            |functions: &Functions, at| functions.find(PROCESS, at).map(|name| name.to_str().into_owned());
        assert_eq!(name(&functions, 0xfff), None);
        assert_eq!(name(&functions, 0x10ff).as_deref(), Some("first"));
        assert_eq!(name(&functions, 0x1100).as_deref(), Some("second"));
        assert_eq!(name(&functions, 0x1_00ff).as_deref(), Some("kernel"));
        // Over the end of one and the beginning of the other.
        assert!(functions.insert(&function(PROCESS, 0x10ff, 2, "third"), &mut budget));
        assert_eq!(
            [0x1000, 0x10ff, 0x1101].map(|at| name(&functions, at)),
            [None, Some("third".to_owned()), None]
        );
        functions.remove(PROCESS, 0, 0x2000, &mut budget);
        assert_eq!(name(&functions, 0x10ff), None);
        functions.remove(KERNEL, 0, u64::MAX, &mut budget);
        functions.remove(Koid(8), 0x1000, 1, &mut budget);
        assert_eq!(format!("{budget:?}"), format!("{full:?}"));
    }

    #[test]
    fn names_have_a_limit() {
        let (mut functions, mut budget) = (Functions::default(), Budget::new(100));
        assert!(functions.insert(&function(PROCESS, 0, 1, "a"), &mut budget));
        assert!(!functions.insert(&function(PROCESS, 1, 1, "b"), &mut budget));
        assert!(functions.insert(&function(PROCESS, 0, 1, "c"), &mut budget));
        // Of no bytes.
        assert!(functions.insert(&function(PROCESS, 0, 0, "d"), &mut budget));
        assert!(functions.insert(&function(PROCESS, 0, 0, "e"), &mut budget));
        assert_eq!(functions.find(PROCESS, 0), None);
    }
}
