//! Names of a thread and its process.

use super::Filler;
use crate::tables::{Cell, Kind, Rows};
use std::borrow::Cow;
use std::collections::BTreeMap;
use trace_format::units::Koid;
use trace_reader::{Names, Text, Thread};

/// A thread with its names as they are known now.
pub struct Whose<'a> {
    pub thread: Thread,
    process_name: Option<Cow<'a, str>>,
    thread_name: Option<Cow<'a, str>>,
}

impl<'a> Whose<'a> {
    pub fn new(thread: Thread, names: &'a Names) -> Self {
        Self {
            thread,
            process_name: names.process(thread.process).map(Text::to_str),
            thread_name: names.thread(thread).map(Text::to_str),
        }
    }

    /// Where the names are not wanted.
    pub fn unnamed(thread: Thread) -> Self {
        Self { thread, process_name: None, thread_name: None }
    }

    /// The four columns.
    pub fn cells(&self) -> [Cell<'_>; 4] {
        [
            Cell::Unsigned(self.thread.process.0),
            Cell::Unsigned(self.thread.thread.0),
            self.process_name.as_deref().into(),
            self.thread_name.as_deref().into(),
        ]
    }
}

impl<'a, R: Rows> Filler<'a, R> {
    /// A thread with its names, of which the last ones count.
    //= docs/meaning.md#names
    pub(super) fn whose<'n>(&self, kind: Kind, thread: Thread, names: &'n Names) -> Whose<'n>
    where
        'a: 'n,
    {
        match self.has_names[kind as usize] {
            true => Whose::new(thread, self.names.unwrap_or(names)),
            false => Whose::unnamed(thread),
        }
    }

    /// A process is named, behind rows of its own or ahead of them.
    pub(super) fn name_process(&mut self, process: Koid, name: Text<'_>) {
        let name = name.to_str();
        let is_new = self.processes.get(&process).is_none_or(|known| *known != name);
        self.is_named_late |= is_new && self.wants_names() && self.seen_processes.contains(&process);
        self.processes.insert(process, name.into_owned());
    }

    /// The same of a thread. Without its process, it is every one with the number.
    pub(super) fn name_thread(&mut self, thread: Koid, process: Option<Koid>, name: Text<'_>) {
        let name = name.to_str();
        let has_rows = match process.map(|process| Thread { process, thread }) {
            Some(thread) => self.threads.get(thread) != Some(&name) && self.seen.contains_key(&thread),
            None => self.wants_names() && self.seen.keys().any(|seen| seen.thread == thread),
        };
        self.is_named_late |= has_rows && self.wants_names();
        self.threads.insert(thread, process, name.into_owned());
    }

    /// Whether rows have names, of which only those so far are known: those of the table of threads come
    /// last.
    fn wants_names(&self) -> bool {
        let has_names = |kind: &Kind| *kind != Kind::Threads && self.has_names[*kind as usize];
        self.names.is_none() && Kind::ALL.iter().any(has_names)
    }
}

/// The last name of each thread, by number and process. A name that was recorded without a process applies to
/// all threads with its number, as in [`Names`].
#[derive(Default)]
pub struct ThreadNames(BTreeMap<(Koid, Option<Koid>), String>);

impl ThreadNames {
    pub fn insert(&mut self, thread: Koid, process: Option<Koid>, name: String) {
        let Self(names) = self;
        match process {
            Some(_) => _ = names.remove(&(thread, None)),
            None => {
                let all = (thread, None)..=(thread, Some(Koid(u64::MAX)));
                let old: Vec<_> = names.range(all).map(|(key, _)| *key).collect();
                old.iter().for_each(|key| _ = names.remove(key));
            }
        }
        names.insert((thread, process), name);
    }

    pub fn get(&self, Thread { process, thread }: Thread) -> Option<&str> {
        let Self(names) = self;
        let name = names.get(&(thread, Some(process))).or_else(|| names.get(&(thread, None)));
        name.map(String::as_str)
    }

    /// All of them, of process 0 where that is not known.
    pub fn iter(&self) -> impl Iterator<Item = (Thread, &str)> {
        let thread = |(thread, process): &(Koid, Option<Koid>)| Thread {
            process: process.unwrap_or_default(),
            thread: *thread,
        };
        self.0.iter().map(move |(key, name)| (thread(key), name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_with_one_number_have_their_own_names() {
        let mut names = ThreadNames::default();
        let of = |names: &ThreadNames, process: u64| {
            let thread = Thread { process: Koid(process), thread: Koid(7) };
            names.get(thread).map(str::to_owned)
        };
        let some = |name: &str| Some(name.to_owned());
        names.insert(Koid(7), Some(Koid(1)), "a".to_owned());
        names.insert(Koid(7), Some(Koid(2)), "b".to_owned());
        names.insert(Koid(8), Some(Koid(2)), "c".to_owned());
        assert_eq!([1, 2, 3].map(|process| of(&names, process)), [some("a"), some("b"), None]);
        names.insert(Koid(7), None, "any".to_owned());
        assert_eq!([1, 3].map(|process| of(&names, process)), [some("any"), some("any")]);
        assert_eq!(names.iter().count(), 2);
        names.insert(Koid(7), Some(Koid(3)), "d".to_owned());
        assert_eq!([1, 3].map(|process| of(&names, process)), [None, some("d")]);
        assert_eq!(names.iter().map(|(thread, _)| thread.process.0).collect::<Vec<_>>(), [3, 2]);
    }
}
