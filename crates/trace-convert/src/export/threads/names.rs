//! Names, and the threads that have them.

use foldhash::HashMap;
use trace_format::units::Koid;
use trace_reader::{Thread, ThreadNumbers};

/// Names of threads and processes are cut behind so many bytes.
const MAX_NAME_BYTES: usize = 1000;
/// Threads with a timeline of their own; the events of further ones are counted.
pub(crate) const MAX_THREADS: usize = 100_000;

/// Memory for different names.
const MAX_BYTES: usize = 64 << 20;

/// Pairs of texts with numbers, such as category and name. Number 0 stands for all that there is no room for.
pub(crate) struct Names {
    numbers: HashMap<(Box<str>, Box<str>), u32>,
    list: Vec<(Box<str>, Box<str>)>,
    room: usize,
    /// How often there was no room.
    pub dropped: u64,
}

impl Default for Names {
    fn default() -> Self {
        Self::new(MAX_BYTES)
    }
}

impl Names {
    /// The number of further names.
    const OTHER: u32 = 0;
    /// How those are shown.
    const OTHER_NAME: &str = "<too many names>";

    /// Names that take at most so many bytes.
    pub fn new(room: usize) -> Self {
        let list = vec![("".into(), Self::OTHER_NAME.into())];
        Self { numbers: HashMap::default(), list, room, dropped: 0 }
    }

    /// The number of a pair.
    pub fn number(&mut self, group: &str, name: &str) -> u32 {
        let key = (group.into(), name.into());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        // In the list and in the table.
        let Some(room) = self.room.checked_sub(2 * (group.len() + name.len()) + 100) else {
            self.dropped += 1;
            return Self::OTHER;
        };
        self.room = room;
        let number = self.list.len() as u32;
        self.list.push(key.clone());
        self.numbers.insert(key, number);
        number
    }

    /// The number of a text by itself.
    pub fn text(&mut self, text: &str) -> u32 {
        self.number("", text)
    }

    /// All pairs.
    pub fn list(&self) -> &[(Box<str>, Box<str>)] {
        &self.list
    }

    /// The pair of a number.
    pub fn get(&self, number: u32) -> (&str, &str) {
        self.list.get(number as usize).map_or(("", ""), |(group, name)| (group, name))
    }
}

/// A thread and its names, which may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadName {
    pub pid: u64,
    pub tid: u64,
    pub process: String,
    pub thread: String,
}

impl ThreadName {
    /// The name of the process, or its number.
    pub fn process(&self) -> String {
        if self.process.is_empty() { format!("process {}", self.pid) } else { self.process.clone() }
    }

    /// Both names, with their numbers.
    pub fn title(&self) -> String {
        let of = |name: &str, other: &str, number: u64| match name {
            "" => format!("{other} {number}"),
            name => format!("{name} {number}"),
        };
        let (process, thread) =
            (of(&self.process, "process", self.pid), of(&self.thread, "thread", self.tid));
        format!("{process} / {thread}")
    }

    /// The name of the thread, or its number.
    pub fn thread(&self) -> String {
        if self.thread.is_empty() { format!("thread {}", self.tid) } else { self.thread.clone() }
    }
}

/// Threads, numbered in the order in which they occur.
#[derive(Default)]
pub(crate) struct Threads {
    numbers: ThreadNumbers,
    list: Vec<ThreadName>,
}

fn thread(pid: u64, tid: u64) -> Thread {
    Thread { process: Koid(pid), thread: Koid(tid) }
}

impl Threads {
    /// The number of a thread; none if there are too many.
    pub fn number(&mut self, pid: u64, tid: u64) -> Option<u32> {
        let number = self.numbers.number(thread(pid, tid), MAX_THREADS)?;
        if number == self.list.len() {
            self.list.push(ThreadName { pid, tid, ..ThreadName::default() });
        }
        Some(number as u32)
    }

    /// Names a thread that occurs.
    pub fn name(&mut self, pid: u64, tid: u64, process: &str, name: &str) {
        let number = self.numbers.number(thread(pid, tid), self.list.len());
        if let Some(known) = number.and_then(|number| self.list.get_mut(number)) {
            cut(process).clone_into(&mut known.process);
            cut(name).clone_into(&mut known.thread);
        }
    }

    /// The numbers of all threads, by process and thread number.
    pub fn in_order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.list.len() as u32).collect();
        order.sort_by_key(|number| (self.get(*number).pid, self.get(*number).tid));
        order
    }

    /// A thread.
    pub fn get(&self, number: u32) -> &ThreadName {
        &self.list[number as usize]
    }
}

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_room_have_a_number_in_common() {
        let mut names = Names::new(250);
        let numbers = ["a", "b", "a", "c", "d"].map(|name| names.number("g", name));
        assert_eq!(numbers, [1, 2, 1, 0, 0]);
        assert_eq!((names.get(2), names.get(0)), (("g", "b"), ("", "<too many names>")));
        assert_eq!((names.dropped, names.get(9)), (2, ("", "")));
    }

    #[test]
    fn threads_are_in_the_order_of_their_numbers_whenever_they_occur() {
        let mut threads = Threads::default();
        let numbers = [(9, 1), (2, 7), (2, 3), (9, 1)].map(|(pid, tid)| threads.number(pid, tid));
        assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(0)]);
        assert_eq!(threads.in_order(), [2, 1, 0]);
        threads.name(2, 7, "app", "");
        threads.name(5, 5, "never seen", "");
        let named = threads.get(1);
        assert_eq!((named.process(), named.thread()), ("app".to_owned(), "thread 7".to_owned()));
        assert_eq!((threads.get(0).process(), threads.list.len()), ("process 9".to_owned(), 3));
        assert_eq!(
            [0, 1].map(|number| threads.get(number).title()),
            ["process 9 / thread 1", "app 2 / thread 7"]
        );
        threads.name(2, 7, &"ä".repeat(600), "t");
        assert_eq!(threads.get(1).process, "ä".repeat(500));
    }
}
