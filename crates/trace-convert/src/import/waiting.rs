//! Ends of flows that wait for the next slice of their thread.
//= docs/import.md#events
//= docs/import.md#track-events

use foldhash::HashMap;
use std::collections::BTreeMap;
use trace_reader::Thread;

/// Maximum number of waiting ends, and of the bytes of their texts; later ones are not moved.
const MAX_WAITING: usize = 100_000;
const MAX_WAITING_BYTES: usize = 64 << 20;

/// An end's time, and the number of ends before it.
type Key = (u64, u64);

#[derive(Debug, Default)]
pub(super) struct Waiting {
    threads: HashMap<Thread, BTreeMap<Key, Box<[u8]>>>,
    count: usize,
    bytes: usize,
    /// How many ends came so far.
    came: u64,
    /// How many waiting ends were examined so far.
    #[cfg(test)]
    looked_at: u64,
}

impl Waiting {
    /// Adds an end; false if there is no room.
    pub fn push(&mut self, thread: Thread, at: u64, text: &[u8]) -> bool {
        if self.count >= MAX_WAITING || self.bytes + text.len() > MAX_WAITING_BYTES {
            return false;
        }
        self.count += 1;
        self.bytes += text.len();
        self.came += 1;
        self.threads.entry(thread).or_default().insert((at, self.came), text.into());
        true
    }

    /// Removes the ends of a thread up to a time, in the order in which they came.
    pub fn take(&mut self, thread: Thread, at: u64) -> Vec<Box<[u8]>> {
        let Some(waiting) = self.threads.get_mut(&thread) else {
            return Vec::new();
        };
        let mut ends = Vec::new();
        while let Some(first) = waiting.first_entry() {
            #[cfg(test)]
            {
                self.looked_at += 1;
            }
            if first.key().0 > at {
                break;
            }
            let ((_, number), text) = first.remove_entry();
            self.count -= 1;
            self.bytes -= text.len();
            ends.push((number, text));
        }
        if waiting.is_empty() {
            self.threads.remove(&thread);
        }
        ends.sort_unstable_by_key(|(number, _)| *number);
        ends.into_iter().map(|(_, text)| text).collect()
    }

    /// All waiting ends, with their threads and times, in the order of the times.
    pub fn rest(&mut self) -> Vec<(Thread, u64, Box<[u8]>)> {
        let mut rest = Vec::new();
        for (thread, ends) in std::mem::take(&mut self.threads) {
            rest.extend(ends.into_iter().map(|(key, text)| (key, thread, text)));
        }
        rest.sort_unstable_by_key(|(key, ..)| *key);
        rest.into_iter().map(|((at, _), thread, text)| (thread, at, text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::units::Koid;

    const THREAD: Thread = Thread { process: Koid(1), thread: Koid(2) };

    #[test]
    fn ends_up_to_a_time_are_taken_in_the_order_in_which_they_came() {
        let mut waiting = Waiting::default();
        let other = Thread { process: Koid(1), thread: Koid(3) };
        for (thread, at, text) in
            [(THREAD, 30, "a"), (THREAD, 10, "b"), (other, 5, "c"), (THREAD, 50, "d"), (THREAD, 10, "e")]
        {
            assert!(waiting.push(thread, at, text.as_bytes()));
        }
        let texts = |ends: Vec<Box<[u8]>>| ends.concat();
        assert_eq!(texts(waiting.take(THREAD, 9)), b"");
        assert_eq!(texts(waiting.take(THREAD, 30)), b"abe");
        assert_eq!(texts(waiting.take(THREAD, 30)), b"");
        let rest = waiting.rest();
        assert_eq!(rest, [(other, 5, b"c"[..].into()), (THREAD, 50, b"d"[..].into())]);
    }

    #[test]
    fn there_is_room_for_so_many_and_for_so_much() {
        let mut waiting = Waiting::default();
        for number in 0..MAX_WAITING {
            assert!(waiting.push(THREAD, number as u64, b"end"));
        }
        assert!(!waiting.push(THREAD, 0, b"end"));
        assert_eq!(waiting.take(THREAD, 0).len(), 1);
        assert!(waiting.push(THREAD, 0, b"end"));

        let mut waiting = Waiting::default();
        let half = vec![b' '; MAX_WAITING_BYTES / 2];
        assert!(waiting.push(THREAD, 1, &half));
        assert!(waiting.push(THREAD, 2, &half));
        assert!(!waiting.push(THREAD, 3, b" "));
    }

    /// However many wait for later, each slice examines one of them.
    #[test]
    fn slices_do_not_look_at_what_waits_for_later() {
        let mut waiting = Waiting::default();
        for number in 0..50_000 {
            waiting.push(THREAD, 1_000_000 + number, b"end");
        }
        for at in 0..50_000 {
            assert!(waiting.take(THREAD, at).is_empty());
        }
        assert_eq!(waiting.looked_at, 50_000);
        assert_eq!(waiting.take(THREAD, 2_000_000).len(), 50_000);
        assert_eq!(waiting.looked_at, 100_000);
    }
}
