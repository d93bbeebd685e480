//! Finds operations whose parts do not nest, or end in another process.

use super::{MAX_KNOWN, OddFinder, OperationKey};
use trace_reader::item::Koid;

/// Operations that have ended and may have parts again.
const MAX_ENDED: usize = 100_000;

/// Category, name and id of an operation.
pub(super) type Named = (u64, u64, u64);

/// An operation that has begun.
#[derive(Debug, Default)]
pub(super) struct Operation {
    last: u64,
    /// The names of its open parts.
    open: Vec<u64>,
}

impl OddFinder {
    pub(super) fn operation(&mut self, key: OperationKey, name: u64, at: u64, is_end: bool) {
        let named = (key.category, name, key.id);
        if self.odd.has_operation(&key) {
            if is_end {
                self.end_elsewhere(named, key);
            }
            return;
        }
        if is_end && !self.operations.contains_key(&key) {
            // It began in another process, or its begin may follow.
            self.odd.operations.insert(key);
            self.end_elsewhere(named, key);
            return;
        }
        if !is_end && !self.early.is_empty() && self.early.contains(&named) {
            self.operations.remove(&key);
            self.odd.operations.insert(key);
            return;
        }
        let operation = self.operations.entry(key).or_insert_with(|| {
            let last = self.ended.remove(&key).unwrap_or(0);
            Operation { last, open: Vec::new() }
        });
        let mut is_odd = at < operation.last;
        operation.last = at;
        if is_end {
            // Another name, or not the innermost.
            is_odd |= operation.open.last() != Some(&name);
            if !is_odd {
                operation.open.pop();
            }
        } else {
            operation.open.push(name);
        }
        if is_odd || operation.open.is_empty() {
            self.operations.remove(&key);
            if self.ended.len() >= MAX_ENDED {
                self.ended.clear();
            }
            self.ended.insert(key, at);
        }
        if is_odd {
            self.odd.operations.insert(key);
        } else {
            self.count(named, key.process, if is_end { -1 } else { 1 });
        }
        if self.operations.len().max(self.odd.operations.len()) > MAX_KNOWN {
            self.odd.is_all = true;
        }
    }

    /// An end may belong to another process. Its operation may begin later in the file.
    fn end_elsewhere(&mut self, named: Named, key: OperationKey) {
        if self.early.len() < MAX_KNOWN {
            self.early.insert(named);
        } else {
            self.odd.is_all = true;
        }
        for (process, _) in self.begun.remove(&named).into_iter().flatten() {
            let other = OperationKey { process, ..key };
            self.operations.remove(&other);
            self.odd.operations.insert(other);
        }
    }

    /// Counts open operations with a name in a process.
    fn count(&mut self, named: Named, process: Koid, change: i64) {
        let begun = self.begun.entry(named).or_default();
        match begun.iter_mut().find(|(of, _)| *of == process) {
            Some((_, count)) => *count += change,
            None => begun.push((process, change)),
        }
        begun.retain(|(_, count)| *count > 0);
        if begun.is_empty() {
            self.begun.remove(&named);
        }
        if self.begun.len() > MAX_KNOWN {
            self.odd.is_all = true;
        }
    }
}
