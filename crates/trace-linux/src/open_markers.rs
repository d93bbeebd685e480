//! Open markers: their ends have no names of their own.
//= docs/import.md#markers

use foldhash::{HashMap, HashMapExt};
use trace_format::units::Thread;

/// Maximum number of open markers; further ones have ends without names.
const MAX_OPEN: usize = 1 << 20;
/// Maximum memory of the names of open markers; further names are forgotten.
const MAX_NAMES_BYTES: usize = 16 << 20;

/// Begins of operations that wait for their ends, and of durations of a thread, one within the other.
pub(crate) struct OpenMarkers {
    durations: HashMap<u32, Durations>,
    operations: HashMap<u64, Vec<Box<[u8]>>>,
    room: Room,
}

#[derive(Default)]
struct Durations {
    open: Vec<Duration>,
    /// The innermost ones, for which there was no room.
    beyond: u64,
}

/// A duration that has begun.
pub(crate) struct Duration {
    pub thread: Thread,
    pub name: Box<[u8]>,
}

struct Room {
    markers: usize,
    bytes: usize,
}

impl Room {
    /// Reserves room for a marker with this name; the name is empty if there is no room for it.
    fn take(&mut self, name: &[u8]) -> Option<Box<[u8]>> {
        self.markers = self.markers.checked_sub(1)?;
        let kept = if name.len() <= self.bytes { name } else { b"" };
        self.bytes -= kept.len();
        Some(kept.into())
    }

    fn give_back(&mut self, name: &[u8]) {
        self.markers += 1;
        self.bytes += name.len();
    }
}

impl OpenMarkers {
    pub(crate) fn new() -> Self {
        Self {
            durations: HashMap::new(),
            operations: HashMap::new(),
            room: Room { markers: MAX_OPEN, bytes: MAX_NAMES_BYTES },
        }
    }

    /// A thread begins a duration within those that it has begun before.
    pub(crate) fn begin(&mut self, tid: u32, thread: Thread, name: &[u8]) {
        let durations = self.durations.entry(tid).or_default();
        match self.room.take(name).filter(|_| durations.beyond == 0) {
            Some(name) => durations.open.push(Duration { thread, name }),
            None => durations.beyond += 1,
        }
    }

    /// A thread ends the innermost duration that it has begun; none if it has begun none.
    pub(crate) fn end(&mut self, tid: u32, thread: Thread) -> Option<Duration> {
        let durations = self.durations.get_mut(&tid)?;
        if let Some(left) = durations.beyond.checked_sub(1) {
            durations.beyond = left;
            return Some(Duration { thread, name: Box::default() });
        }
        let ended = durations.open.pop();
        if let Some(ended) = &ended {
            self.room.give_back(&ended.name);
        }
        if durations.open.is_empty() {
            self.durations.remove(&tid);
        }
        ended
    }

    /// An operation begins. Of several with the same id, the last one ends first.
    pub(crate) fn begin_operation(&mut self, id: u64, name: &[u8]) {
        if let Some(name) = self.room.take(name) {
            self.operations.entry(id).or_default().push(name);
        }
    }

    /// The name of the operation that ends; none if it began before the trace.
    pub(crate) fn end_operation(&mut self, id: u64) -> Option<Box<[u8]>> {
        let names = self.operations.get_mut(&id)?;
        let name = names.pop();
        if let Some(name) = &name {
            self.room.give_back(name);
        }
        if names.is_empty() {
            self.operations.remove(&id);
        }
        name
    }

    /// A thread has ended, and with it the durations that it has not ended.
    pub(crate) fn forget(&mut self, tid: u32) {
        for duration in self.durations.remove(&tid).into_iter().flat_map(|durations| durations.open) {
            self.room.give_back(&duration.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::units::Koid;

    const THREAD: Thread = Thread { process: Koid(5), thread: Koid(7) };

    fn with_room(markers: usize, bytes: usize) -> OpenMarkers {
        OpenMarkers { room: Room { markers, bytes }, ..OpenMarkers::new() }
    }

    fn ended(open: &mut OpenMarkers) -> Option<String> {
        open.end(7, THREAD).map(|duration| String::from_utf8(duration.name.into()).unwrap())
    }

    //= docs/import.md#markers
    #[test]
    fn durations_beyond_the_room_end_in_their_place_and_without_names() {
        let mut open = with_room(3, 5);
        for name in [&b"abc"[..], b"def", b"gh", b"ij", b"kl"] {
            open.begin(7, THREAD, name);
        }
        let found: Vec<_> = std::iter::from_fn(|| ended(&mut open)).collect();
        assert_eq!(found, ["", "", "gh", "", "abc"]);
        // All of the room is there again.
        assert_eq!((open.room.markers, open.room.bytes, open.durations.len()), (3, 5, 0));
    }

    //= docs/import.md#markers
    #[test]
    fn room_comes_back_from_operations_and_threads_that_are_gone() {
        let mut open = with_room(2, 8);
        open.begin_operation(1, b"get");
        open.begin_operation(1, b"put");
        open.begin_operation(1, b"no room");
        assert_eq!(open.end_operation(1).as_deref(), Some(&b"put"[..]));
        assert_eq!(open.end_operation(1).as_deref(), Some(&b"get"[..]));
        assert_eq!(open.end_operation(1), None);
        open.begin(7, THREAD, b"abc");
        open.forget(7);
        assert_eq!(ended(&mut open), None);
        assert_eq!((open.room.markers, open.room.bytes), (2, 8));
        assert!(open.durations.is_empty() && open.operations.is_empty());
    }
}
