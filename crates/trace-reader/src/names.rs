//! Names of processes, threads and functions.

use crate::functions::Functions;
use crate::item::{Text, Thread};
use crate::tables::Budget;
use foldhash::HashMap;
use trace_format::units::Koid;

/// Names of processes and threads, from kernel object records, and of functions. Koids are unique on a
/// machine, so the names are valid for all providers. Imported traces may have threads of one number in
/// several processes, of which each has its name. The last name of an object counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    processes: HashMap<Koid, Box<[u8]>>,
    threads: HashMap<Koid, NamedThread>,
    pub(crate) functions: Functions,
}

/// The names of the threads with one number.
#[derive(Debug, PartialEq, Eq)]
struct NamedThread {
    /// The process of the thread that was named last; none if the record did not say it.
    process: Option<Koid>,
    name: Box<[u8]>,
    /// Threads of other processes; none if the process is not known.
    others: Option<Box<HashMap<Koid, Box<[u8]>>>>,
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
        let named = self.threads.get(&thread)?;
        if named.process.is_none_or(|owner| owner == process) {
            return Some(Text(&named.name));
        }
        named.others.as_ref()?.get(&process).map(|name| Text(name))
    }

    /// The function at an address of a process, if the trace names it.
    #[must_use]
    pub fn function(&self, process: Koid, address: u64) -> Option<Text<'_>> {
        self.functions.find(process, address)
    }

    /// The process of a thread; of several threads with the number, that of the one that was named last.
    #[must_use]
    pub fn process_of(&self, thread: Koid) -> Option<Koid> {
        self.threads.get(&thread)?.process
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
        let cost = |name: &[u8]| name.len() + ENTRY_BYTES;
        let Some(named) = self.threads.get_mut(&thread) else {
            let is_kept = budget.replace(0, cost(name));
            if is_kept {
                self.threads.insert(thread, NamedThread { process, name: name.into(), others: None });
            }
            return is_kept;
        };
        let (Some(before), Some(new)) = (named.process, process) else {
            // Whose name it is, is not known of one of the two: the last one is the name of all.
            let others = named.others.iter().flat_map(|others| others.values());
            let old = others.map(|name| cost(name)).sum::<usize>() + cost(&named.name);
            let is_kept = budget.replace(old, cost(name));
            if is_kept {
                *named = NamedThread { process, name: name.into(), others: None };
            }
            return is_kept;
        };
        if before == new {
            let is_kept = budget.replace(cost(&named.name), cost(name));
            if is_kept {
                named.name = name.into();
            }
            return is_kept;
        }
        let old = named.others.as_ref().and_then(|others| others.get(&new));
        let is_kept = budget.replace(old.map_or(0, |old| cost(old)), cost(name));
        if is_kept {
            let others = named.others.get_or_insert_default();
            others.remove(&new);
            others.insert(before, std::mem::replace(&mut named.name, name.into()));
            named.process = process;
        }
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(names: &Names, process: u64, thread: u64) -> Option<&[u8]> {
        let thread = Thread { process: Koid(process), thread: Koid(thread) };
        names.thread(thread).map(|name| name.as_bytes())
    }

    #[test]
    fn threads_with_one_number_have_their_own_names() {
        let (mut names, mut budget) = (Names::default(), Budget::new(1000));
        let mut put = |names: &mut Names, process: Option<u64>, name: &str| {
            assert!(names.name_thread(Koid(7), process.map(Koid), name.as_bytes(), &mut budget));
        };
        put(&mut names, Some(1), "a");
        put(&mut names, Some(2), "b");
        assert_eq!([1, 2, 3].map(|process| name(&names, process, 7)), [Some(&b"a"[..]), Some(b"b"), None]);
        assert_eq!((names.process_of(Koid(7)), name(&names, 1, 8)), (Some(Koid(2)), None));
        put(&mut names, Some(2), "b2");
        put(&mut names, Some(3), "c");
        put(&mut names, Some(1), "a2");
        let all = [1, 2, 3].map(|process| name(&names, process, 7));
        assert_eq!(all, [Some(&b"a2"[..]), Some(b"b2"), Some(b"c")]);
        assert_eq!(names.process_of(Koid(7)), Some(Koid(1)));
        // A name without a process is that of all, until a later one has a process.
        put(&mut names, None, "any");
        let any = Some(&b"any"[..]);
        assert_eq!([1, 2, 9].map(|process| name(&names, process, 7)), [any, any, any]);
        put(&mut names, Some(2), "b3");
        assert_eq!([1, 2, 3].map(|process| name(&names, process, 7)), [None, Some(&b"b3"[..]), None]);
    }

    /// What is forgotten gives its room back, and a name without room changes nothing.
    #[test]
    fn names_of_threads_take_room_as_long_as_they_are_known() {
        let entry = ENTRY_BYTES + 1;
        let (mut names, mut budget) = (Names::default(), Budget::new(3 * entry));
        for process in [1, 2, 3, 1, 2] {
            assert!(names.name_thread(Koid(7), Some(Koid(process)), b"x", &mut budget));
        }
        assert!(!names.name_thread(Koid(7), Some(Koid(4)), b"y", &mut budget));
        assert!(!names.name_thread(Koid(7), Some(Koid(3)), b"yy", &mut budget));
        assert_eq!([1, 2, 3, 4].map(|process| name(&names, process, 7).is_some()), [true, true, true, false]);
        assert!(names.name_thread(Koid(7), None, b"z", &mut budget));
        assert!(names.name_thread(Koid(8), None, b"z", &mut budget));
        assert!(names.name_thread(Koid(9), Some(Koid(1)), b"z", &mut budget));
        assert!(!names.name_thread(Koid(10), None, b"z", &mut budget));
    }
}
