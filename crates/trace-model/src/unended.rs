//! Begins of which the trace says that they have no end.

use crate::pairing::Begin;
use std::collections::BTreeMap;

/// Such begins of threads, as far as there is room: of one thread and time there is one, the last that came.
#[derive(Debug)]
pub struct Unended<T, B> {
    begins: BTreeMap<(T, u64), B>,
    bytes: usize,
    max_count: usize,
    max_bytes: usize,
}

impl<T: Ord, B: Begin> Unended<T, B> {
    /// For so many, with so many bytes on the heap.
    #[must_use]
    pub const fn new(max_count: usize, max_bytes: usize) -> Self {
        Self { begins: BTreeMap::new(), bytes: 0, max_count, max_bytes }
    }

    /// False if there are too many.
    pub fn begin(&mut self, thread: T, at: u64, begun: B) -> bool {
        let bytes = begun.heap_bytes();
        if self.begins.len() >= self.max_count || bytes > self.max_bytes - self.bytes {
            return false;
        }
        self.bytes += bytes;
        let replaced = self.begins.insert((thread, at), begun);
        self.bytes -= replaced.map_or(0, |replaced| replaced.heap_bytes());
        true
    }

    /// A duration of a thread that began at this time has a record: it was open in an earlier recording.
    #[inline]
    pub fn has_ended(&mut self, thread: T, at: u64) {
        if !self.begins.is_empty() {
            let ended = self.begins.remove(&(thread, at));
            self.bytes -= ended.map_or(0, |ended| ended.heap_bytes());
        }
    }

    /// What has no end, by thread and time.
    pub fn rest(&self) -> impl Iterator<Item = &B> {
        self.begins.values()
    }

    /// Takes what has no end, by thread and time.
    pub fn take(&mut self) -> impl Iterator<Item = B> {
        self.bytes = 0;
        std::mem::take(&mut self.begins).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Begin for String {
        fn heap_bytes(&self) -> usize {
            self.len()
        }
    }

    fn rest(unended: &Unended<u32, String>) -> Vec<&str> {
        unended.rest().map(String::as_str).collect()
    }

    //= docs/format.md#open-scopes
    #[test]
    fn of_a_thread_and_a_time_there_is_one_until_it_has_a_record() {
        let mut unended = Unended::new(10, 100);
        for (thread, at, name) in [(2, 5, "c"), (1, 5, "a"), (1, 6, "b"), (1, 5, "again")] {
            assert!(unended.begin(thread, at, name.to_owned()));
        }
        assert_eq!(rest(&unended), ["again", "b", "c"]);
        for (thread, at) in [(1, 5), (2, 6), (3, 5)] {
            unended.has_ended(thread, at);
        }
        assert_eq!(rest(&unended), ["b", "c"]);
        assert_eq!(unended.take().collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn both_their_number_and_their_bytes_are_bounded() {
        let mut unended = Unended::new(3, 10);
        assert!(unended.begin(1, 1, "four".to_owned()) && unended.begin(1, 2, "four".to_owned()));
        assert!(!unended.begin(1, 3, "four".to_owned()), "12 bytes");
        unended.has_ended(1, 1);
        assert!(unended.begin(1, 3, "four".to_owned()) && unended.begin(1, 4, String::new()));
        assert!(!unended.begin(1, 5, String::new()), "the fourth");
        assert_eq!(rest(&unended), ["four", "four", ""]);
    }
}
