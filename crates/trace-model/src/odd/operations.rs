//! Finds operations whose parts do not nest, or end in another process.

use super::{MAX_KNOWN, OddFinder, OperationKey};

/// Operations that have ended and may have parts again.
const MAX_ENDED: usize = 100_000;

/// An operation that has begun.
#[derive(Debug, Default)]
pub(super) struct Operation {
    last: u64,
    /// The names of its open parts.
    open: Vec<u64>,
}

impl OddFinder {
    pub(super) fn operation(&mut self, key: OperationKey, name: u64, at: u64, is_end: bool) {
        if self.odd.has_id(&key) {
            return;
        }
        let operation = self.operations.entry(key).or_insert_with(|| {
            let last = self.ended.remove(&key).unwrap_or(0);
            Operation { last, open: Vec::new() }
        });
        if at < operation.last || is_end && operation.open.is_empty() {
            // An end of this process may belong to another one, whatever the names of those before.
            self.operations.remove(&key);
            self.odd.ids.insert((key.category, key.id));
        } else {
            operation.last = at;
            if !is_end {
                operation.open.push(name);
            } else if operation.open.pop() != Some(name) {
                // It has another name, or is not the innermost.
                self.odd.operations.insert(key);
            }
            if operation.open.is_empty() {
                self.operations.remove(&key);
                if self.ended.len() >= MAX_ENDED {
                    self.ended.clear();
                }
                self.ended.insert(key, at);
            }
        }
        let Self { operations, odd, .. } = self;
        if operations.len().max(odd.operations.len()).max(odd.ids.len()) > MAX_KNOWN {
            odd.is_all = true;
        }
    }
}
