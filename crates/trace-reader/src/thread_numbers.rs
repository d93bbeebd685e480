//! Numbers for threads, in the order in which they first occur, to keep something for each in a list.

use crate::item::Thread;
use std::collections::HashMap;

/// Threads that are found without hashing, a power of two.
const RECENT: usize = 64;

/// The numbers of all threads so far.
#[derive(Debug)]
pub struct ThreadNumbers {
    numbers: HashMap<Thread, usize>,
    /// The last thread of each place.
    recent: [Option<(Thread, usize)>; RECENT],
}

impl Default for ThreadNumbers {
    fn default() -> Self {
        Self { numbers: HashMap::new(), recent: [None; RECENT] }
    }
}

impl ThreadNumbers {
    /// A thread's number. None for a new one where there are `limit` already.
    #[inline]
    pub fn number(&mut self, thread: Thread, limit: usize) -> Option<usize> {
        let place = (thread.thread.0 ^ thread.process.0 << 3) as usize % RECENT;
        if let Some((recent, number)) = self.recent[place]
            && recent == thread
        {
            return Some(number);
        }
        let new = self.numbers.len();
        let number = match self.numbers.get(&thread) {
            Some(number) => *number,
            None if new >= limit => return None,
            None => *self.numbers.entry(thread).or_insert(new),
        };
        self.recent[place] = Some((thread, number));
        Some(number)
    }
}
