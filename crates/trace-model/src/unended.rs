//! Begins of which the trace says that they have no end.

use crate::pairing::Begin;
use std::collections::BTreeMap;

/// What the map takes for a begin beside it, in bytes; about.
const ENTRY_BYTES: usize = 32;

/// Begins of threads, in a limited number of bytes. A second begin of one thread and time replaces the first.
#[derive(Debug)]
pub struct Unended<T, B> {
    begins: BTreeMap<(T, u64), B>,
    /// Bytes that may be added.
    room: usize,
    refused: u64,
}

impl<T: Ord, B: Begin> Unended<T, B> {
    /// For begins that take so many bytes.
    #[must_use]
    pub const fn new(bytes: usize) -> Self {
        Self { begins: BTreeMap::new(), room: bytes, refused: 0 }
    }

    fn bytes_of(begun: &B) -> usize {
        ENTRY_BYTES + size_of::<B>() + begun.heap_bytes()
    }

    /// False if there is no room for it.
    pub fn begin(&mut self, thread: T, at: u64, begun: B) -> bool {
        let Some(room) = self.room.checked_sub(Self::bytes_of(&begun)) else {
            self.refused += 1;
            return false;
        };
        let replaced = self.begins.insert((thread, at), begun);
        self.room = room + replaced.as_ref().map_or(0, Self::bytes_of);
        true
    }

    /// How many there was no room for.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// A duration of a thread that began at this time has a record: it was open in an earlier recording.
    #[inline]
    pub fn has_ended(&mut self, thread: T, at: u64) {
        if self.begins.is_empty() {
            return;
        }
        let ended = self.begins.remove(&(thread, at));
        self.room += ended.as_ref().map_or(0, Self::bytes_of);
    }

    /// The begins that have no end, by thread and time.
    pub fn rest(&self) -> impl Iterator<Item = &B> {
        self.begins.values()
    }

    /// As [`Unended::rest`], by value.
    pub fn into_rest(self) -> impl Iterator<Item = B> {
        self.begins.into_values()
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
        let mut unended = Unended::new(1000);
        for (thread, at, name) in [(2, 5, "c"), (1, 5, "a"), (1, 6, "b"), (1, 5, "again")] {
            assert!(unended.begin(thread, at, name.to_owned()));
        }
        assert_eq!(rest(&unended), ["again", "b", "c"]);
        for (thread, at) in [(1, 5), (2, 6), (3, 5)] {
            unended.has_ended(thread, at);
        }
        assert_eq!((rest(&unended), unended.refused()), (vec!["b", "c"], 0));
        assert_eq!(unended.into_rest().collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn their_bytes_are_bounded() {
        let empty = ENTRY_BYTES + size_of::<String>();
        let mut unended = Unended::new(2 * empty + 8);
        assert!(unended.begin(1, 1, "four".to_owned()) && unended.begin(1, 2, "four".to_owned()));
        assert!(!unended.begin(1, 3, String::new()));
        unended.has_ended(1, 1);
        // The first one has given its room back.
        assert!(unended.begin(1, 3, "two".to_owned()));
        assert!(!unended.begin(1, 4, String::new()));
        unended.has_ended(1, 3);
        assert!(unended.begin(1, 4, "four".to_owned()) && !unended.begin(1, 5, String::new()));
        assert_eq!((rest(&unended), unended.refused()), (vec!["four", "four"], 3));
        let mut replaced = Unended::new(2 * empty);
        assert!(replaced.begin(1, 1, String::new()) && replaced.begin(1, 1, String::new()));
        assert!(replaced.begin(1, 2, String::new()), "the first one is gone");
    }
}
