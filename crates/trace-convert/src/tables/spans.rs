//! Spans that are open.

use std::collections::HashMap;
use trace_format::units::Koid;
use trace_reader::Thread;

/// So many are kept; later ones are left out.
const MAX_OPEN: usize = 500_000;

/// A span's beginning.
#[derive(Debug)]
pub(super) struct Open {
    pub at: u64,
    pub thread: Thread,
    pub category: Box<str>,
    pub name: Box<str>,
    pub async_id: Option<u64>,
    pub args: Box<str>,
}

/// What an operation is known by.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Operation {
    process: Koid,
    category: Box<str>,
    id: u64,
}

#[derive(Default)]
pub(super) struct Spans {
    durations: HashMap<Thread, Vec<Open>>,
    operations: HashMap<Operation, Vec<Open>>,
    count: usize,
}

impl Spans {
    fn key(open: &Open, id: u64) -> Operation {
        Operation { process: open.thread.process, category: open.category.clone(), id }
    }

    /// False if there are too many.
    pub fn begin(&mut self, open: Open) -> bool {
        if self.count >= MAX_OPEN {
            return false;
        }
        self.count += 1;
        match open.async_id {
            Some(id) => self.operations.entry(Self::key(&open, id)).or_default().push(open),
            None => self.durations.entry(open.thread).or_default().push(open),
        }
        true
    }

    /// The innermost span of a thread.
    pub fn end(&mut self, thread: Thread) -> Option<Open> {
        let stack = self.durations.get_mut(&thread)?;
        let open = stack.pop();
        if stack.is_empty() {
            self.durations.remove(&thread);
        }
        self.count -= usize::from(open.is_some());
        open
    }

    /// Of an operation the last of a name, or the last if there is none of the name.
    pub fn end_async(&mut self, process: Koid, category: &str, name: &str, id: u64) -> Option<Open> {
        let key = Operation { process, category: category.into(), id };
        let stack = self.operations.get_mut(&key)?;
        let place = stack.iter().rposition(|open| *open.name == *name).unwrap_or(stack.len() - 1);
        let open = stack.remove(place);
        if stack.is_empty() {
            self.operations.remove(&key);
        }
        self.count -= 1;
        Some(open)
    }

    /// Those that never ended, in the order of their beginnings.
    pub fn rest(self) -> Vec<Open> {
        let mut rest: Vec<Open> =
            self.durations.into_values().chain(self.operations.into_values()).flatten().collect();
        rest.sort_by(|a, b| {
            let key = |open: &Open| (open.at, open.thread, open.async_id);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        rest
    }
}
