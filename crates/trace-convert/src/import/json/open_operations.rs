//! Open asynchronous operations, so that an end that has the name of none ends none.
//!
//! In an archive such an end ends the innermost one of its process, category and id; in JSON it is without a
//! begin.
//= docs/import.md#events

use foldhash::HashMap;
use trace_format::units::Koid;
use trace_linux::hash;

/// Operations that are remembered.
const MAX_OPERATIONS: usize = 500_000;

/// Process, category and id.
type Key = (Koid, u64, u64);

#[derive(Debug, Default)]
struct Open {
    names: Vec<u64>,
    last: u64,
    /// Times are not in order: a begin may follow its end.
    is_unknown: bool,
}

#[derive(Debug, Default)]
pub(super) struct OpenOperations {
    open: HashMap<Key, Open>,
    count: usize,
}

impl OpenOperations {
    /// Remembers a part.
    pub fn begin(&mut self, process: Koid, category: &str, id: u64, name: &str, at: u64) {
        if self.count >= MAX_OPERATIONS {
            return;
        }
        self.count += 1;
        let open = self.open.entry((process, hash(category.as_bytes()), id)).or_default();
        open.is_unknown |= at < open.last;
        open.last = at;
        open.names.push(hash(name.as_bytes()));
    }

    /// The id with which an end is written: another one if no open part has its name.
    pub fn end(&mut self, process: Koid, category: &str, id: u64, name: &str, at: u64) -> u64 {
        let key = (process, hash(category.as_bytes()), id);
        let Some(open) = self.open.get_mut(&key) else { return id };
        open.is_unknown |= at < open.last;
        open.last = at;
        let named = hash(name.as_bytes());
        let place = match open.names.iter().rposition(|name| *name == named) {
            None if !open.is_unknown && !name.is_empty() && self.count < MAX_OPERATIONS => {
                return hash(&[id.to_le_bytes(), named.to_le_bytes()].concat());
            }
            place => place.unwrap_or(open.names.len() - 1),
        };
        open.names.remove(place);
        self.count -= 1;
        if open.names.is_empty() {
            self.open.remove(&key);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/import.md#events
    #[test]
    fn an_end_with_another_name_ends_nothing() {
        let mut operations = OpenOperations::default();
        let process = Koid(1);
        assert_eq!(operations.end(process, "c", 7, "a", 1), 7);
        operations.begin(process, "c", 7, "a", 2);
        operations.begin(process, "c", 7, "b", 3);
        assert_ne!(operations.end(process, "c", 7, "x", 4), 7);
        // Operations of other processes and categories are not affected.
        assert_eq!(operations.end(Koid(2), "c", 7, "x", 4), 7);
        assert_eq!(operations.end(process, "d", 7, "x", 4), 7);
        assert_eq!(operations.end(process, "c", 7, "a", 5), 7);
        // Without a name it ends the last one.
        assert_eq!(operations.end(process, "c", 7, "", 6), 7);
        assert_eq!((operations.count, operations.open.len()), (0, 0));
    }

    #[test]
    fn out_of_order_nothing_is_known() {
        let mut operations = OpenOperations::default();
        operations.begin(Koid(1), "c", 7, "a", 5);
        assert_eq!(operations.end(Koid(1), "c", 7, "b", 4), 7);
        assert_eq!(operations.count, 0);
    }
}
