//! Which begin an end belongs to.
//!
//! Begins and ends come in the order of their times. A begin is what its caller keeps of it.
//= docs/meaning.md#which-begin-an-end-belongs-to

use crate::odd::OperationKey;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Begins without an end so far, of threads and operations together.
pub const MAX_OPEN: usize = 500_000;
/// Those of operations with one category and id, which are searched one after the other.
pub const MAX_OPEN_OF_ID: usize = if cfg!(test) { 100 } else { 10_000 };

/// What is kept of a begin until its end comes.
pub trait Begin {
    /// How many bytes it has on the heap.
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Begin for bool {}

/// What becomes of an end.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended<B> {
    /// It ends this.
    Begun(B),
    /// It ends this operation, which began with another name.
    Misnamed(B),
    /// It ends this operation, which began in another process.
    Crossing(B),
    /// There was no room for its begin.
    Refused,
    /// Nothing is open that it could end.
    Nothing,
}

impl<B> Ended<B> {
    /// What it ends.
    pub fn begun(self) -> Option<B> {
        match self {
            Self::Begun(begun) | Self::Misnamed(begun) | Self::Crossing(begun) => Some(begun),
            Self::Refused | Self::Nothing => None,
        }
    }
}

/// What has begun and not ended. Threads are known by numbers.
#[derive(Debug)]
pub struct Pairing<B> {
    threads: Vec<Open<B>>,
    /// By category and id; the last one is the innermost.
    operations: HashMap<(u64, u64), Vec<Operation<B>>, RandomState>,
    /// How many begins of operations there was no room for, which have not ended, as far as there is room for
    /// that.
    refused_operations: HashMap<Refused, u64, RandomState>,
    count: usize,
    bytes: usize,
    max_count: usize,
    max_bytes: usize,
    refused: u64,
    unmatched: u64,
}

/// Category, id, process and name of an operation.
type Refused = (u64, u64, u64, u64);

/// Begins of a thread.
#[derive(Debug)]
struct Open<B> {
    /// The last one is the innermost.
    begun: Vec<B>,
    /// How many begins inside of these there was no room for, which have not ended.
    refused: u64,
}

#[derive(Debug)]
struct Operation<B> {
    process: u64,
    name: u64,
    begun: B,
}

impl<B> Default for Open<B> {
    fn default() -> Self {
        Self { begun: Vec::new(), refused: 0 }
    }
}

impl<B> Default for Pairing<B> {
    fn default() -> Self {
        Self {
            threads: Vec::new(),
            operations: HashMap::default(),
            refused_operations: HashMap::default(),
            count: 0,
            bytes: 0,
            max_count: MAX_OPEN,
            max_bytes: usize::MAX,
            refused: 0,
            unmatched: 0,
        }
    }
}

impl<B: Begin> Pairing<B> {
    /// One for so many begins at a time.
    #[must_use]
    pub fn with_count(self, max_count: usize) -> Self {
        Self { max_count, ..self }
    }

    /// One for begins with so many bytes on the heap at a time.
    #[must_use]
    pub fn with_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// How many begins have no end so far.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.count
    }

    /// How many begins there was no room for.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// How many ends found nothing that they could end.
    #[must_use]
    pub const fn unmatched(&self) -> u64 {
        self.unmatched
    }

    /// A slice of a thread begins. False if there is no room for it: what begins inside of it has none,
    /// either, and as many ends belong to nothing.
    #[inline]
    pub fn begin(&mut self, thread: usize, begun: B) -> bool {
        let bytes = begun.heap_bytes();
        let has_room = self.has_room(bytes);
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Open::default);
        }
        let open = &mut self.threads[thread];
        if !has_room || open.refused > 0 {
            open.refused += 1;
            self.refused += 1;
            return false;
        }
        open.begun.push(begun);
        self.count += 1;
        self.bytes += bytes;
        true
    }

    /// The innermost slice of a thread ends.
    #[inline]
    pub fn end(&mut self, thread: usize) -> Ended<B> {
        if let Some(open) = self.threads.get_mut(thread) {
            if open.refused > 0 {
                open.refused -= 1;
                return Ended::Refused;
            }
            if let Some(begun) = open.begun.pop() {
                self.count -= 1;
                self.bytes -= begun.heap_bytes();
                return Ended::Begun(begun);
            }
        }
        self.unmatched += 1;
        Ended::Nothing
    }

    /// An operation with a name begins. False if there is no room for it.
    pub fn begin_operation(&mut self, key: &OperationKey, name: u64, begun: B) -> bool {
        let bytes = begun.heap_bytes();
        let is_known = self.operations.get(&(key.category, key.id));
        if !self.has_room(bytes) || is_known.is_some_and(|open| open.len() >= MAX_OPEN_OF_ID) {
            self.refuse_operation((key.category, key.id, key.process.0, name));
            return false;
        }
        let open = self.operations.entry((key.category, key.id)).or_default();
        open.push(Operation { process: key.process.0, name, begun });
        self.count += 1;
        self.bytes += bytes;
        true
    }

    /// When its end comes, it must not end another operation with this id.
    #[cold]
    fn refuse_operation(&mut self, operation: Refused) {
        self.refused += 1;
        if self.refused_operations.len() < MAX_OPEN || self.refused_operations.contains_key(&operation) {
            *self.refused_operations.entry(operation).or_default() += 1;
        }
    }

    /// Whether an end is that of a begin that there was no room for: the last one with its name.
    fn ends_refused(&mut self, operation: Refused) -> bool {
        if self.refused_operations.is_empty() {
            return false;
        }
        let Some(count) = self.refused_operations.get_mut(&operation) else { return false };
        *count -= 1;
        if *count == 0 {
            self.refused_operations.remove(&operation);
        }
        true
    }

    /// An operation ends: the last one with the name in the process, or the last one there; else the last one
    /// with the name in another process.
    //= docs/meaning.md#operations
    pub fn end_operation(&mut self, key: &OperationKey, name: u64) -> Ended<B> {
        let of = (key.category, key.id);
        if self.ends_refused((key.category, key.id, key.process.0, name)) {
            return Ended::Refused;
        }
        let found = self.operations.get_mut(&of).and_then(|open| Some((place(open, key, name)?, open)));
        let Some((place, open)) = found else {
            self.unmatched += 1;
            return Ended::Nothing;
        };
        let Operation { process, name: begun_as, begun } = open.remove(place);
        if open.is_empty() {
            self.operations.remove(&of);
        }
        self.count -= 1;
        self.bytes -= begun.heap_bytes();
        match (process == key.process.0, begun_as == name) {
            (true, true) => Ended::Begun(begun),
            (true, false) => Ended::Misnamed(begun),
            (false, _) => Ended::Crossing(begun),
        }
    }

    /// The operation that an end would end.
    #[must_use]
    pub fn operation(&self, key: &OperationKey, name: u64) -> Option<&B> {
        let open = self.operations.get(&(key.category, key.id))?;
        open.get(place(open, key, name)?).map(|operation| &operation.begun)
    }

    const fn has_room(&self, bytes: usize) -> bool {
        self.count < self.max_count && bytes <= self.max_bytes - self.bytes
    }
}

impl<B> Pairing<B> {
    /// What is open on threads, by their numbers; what is inside of another one comes behind it.
    pub fn on_threads(&self) -> impl Iterator<Item = (usize, &B)> {
        let threads = self.threads.iter().enumerate();
        threads.flat_map(|(thread, open)| open.begun.iter().map(move |begun| (thread, begun)))
    }

    /// The operations that are open.
    pub fn operations(&self) -> impl Iterator<Item = &B> {
        self.operations.values().flatten().map(|operation| &operation.begun)
    }

    /// Removes what is open on threads, and returns it as [`Pairing::on_threads`] does.
    pub fn take_threads(&mut self) -> impl DoubleEndedIterator<Item = (usize, B)> + use<B> {
        let threads = std::mem::take(&mut self.threads).into_iter().enumerate();
        threads.flat_map(|(thread, open)| open.begun.into_iter().map(move |begun| (thread, begun)))
    }

    /// Removes the operations that are open, and returns them.
    pub fn take_operations(&mut self) -> impl Iterator<Item = B> + use<B> {
        let operations = std::mem::take(&mut self.operations);
        operations.into_values().flatten().map(|operation| operation.begun)
    }
}

/// The place of the operation that an end ends.
fn place<B>(open: &[Operation<B>], key: &OperationKey, name: u64) -> Option<usize> {
    let is_here = |operation: &Operation<B>| operation.process == key.process.0;
    let is_named = |operation: &Operation<B>| operation.name == name;
    open.iter()
        .rposition(|operation| is_here(operation) && is_named(operation))
        .or_else(|| open.iter().rposition(is_here))
        .or_else(|| open.iter().rposition(is_named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_reader::item::Koid;

    fn key(process: u64) -> OperationKey {
        OperationKey { process: Koid(process), category: 1, id: 2 }
    }

    impl Begin for &str {
        fn heap_bytes(&self) -> usize {
            self.len()
        }
    }

    //= docs/meaning.md#which-begin-an-end-belongs-to
    #[test]
    fn an_end_ends_the_innermost_begin_of_its_thread() {
        let mut pairing = Pairing::default();
        assert!(pairing.begin(1, "a") && pairing.begin(3, "b") && pairing.begin(1, "c"));
        assert_eq!(pairing.open(), 3);
        assert_eq!(pairing.on_threads().collect::<Vec<_>>(), [(1, &"a"), (1, &"c"), (3, &"b")]);
        assert_eq!(pairing.end(1), Ended::Begun("c"));
        assert_eq!([pairing.end(0), pairing.end(9)], [Ended::Nothing, Ended::Nothing]);
        assert_eq!(pairing.end(1), Ended::Begun("a"));
        assert_eq!(pairing.end(1), Ended::Nothing);
        assert_eq!((pairing.open(), pairing.unmatched(), pairing.refused()), (1, 3, 0));
        assert_eq!(pairing.take_threads().collect::<Vec<_>>(), [(3, "b")]);
        assert_eq!(pairing.take_threads().count(), 0);
    }

    //= docs/meaning.md#bounds
    #[test]
    fn what_there_is_no_room_for_ends_nothing_else() {
        let mut pairing = Pairing::default().with_count(2);
        assert!(pairing.begin(0, "a") && pairing.begin(1, "b"));
        assert!(!pairing.begin(0, "c") && !pairing.begin(0, "d"));
        assert_eq!(pairing.end(1), Ended::Begun("b"));
        // There is room, but it is inside of what there was none for.
        assert!(!pairing.begin(0, "e"));
        assert_eq!([0; 3].map(|thread| pairing.end(thread)), [const { Ended::Refused }; 3]);
        assert!(pairing.begin(0, "f"));
        assert_eq!([pairing.end(0), pairing.end(0)], [Ended::Begun("f"), Ended::Begun("a")]);
        assert_eq!((pairing.open(), pairing.unmatched(), pairing.refused()), (0, 0, 3));
    }

    //= docs/meaning.md#bounds
    #[test]
    fn bytes_are_bounded_too() {
        let mut pairing = Pairing::default().with_bytes(5);
        assert!(pairing.begin(0, "abc") && pairing.begin_operation(&key(1), 1, "de"));
        assert!(pairing.begin(1, "") && !pairing.begin(1, "f") && !pairing.begin_operation(&key(1), 1, "g"));
        assert_eq!(pairing.refused(), 2);
        assert_eq!(pairing.end_operation(&key(1), 1), Ended::Refused);
        assert_eq!(pairing.end_operation(&key(1), 1), Ended::Begun("de"));
        assert!(pairing.begin(0, "hi"));
        assert_eq!([pairing.end(0), pairing.end(0)], [Ended::Begun("hi"), Ended::Begun("abc")]);
        assert!(pairing.begin(0, "abcde"));
    }

    //= docs/meaning.md#operations
    #[test]
    fn an_operation_ends_by_its_name_and_process() {
        let mut pairing = Pairing::default();
        for (process, name, begun) in [(1, 1, "a"), (1, 2, "b"), (2, 1, "c"), (2, 3, "d"), (1, 1, "e")] {
            assert!(pairing.begin_operation(&key(process), name, begun));
        }
        assert_eq!(pairing.operations().collect::<Vec<_>>(), [&"a", &"b", &"c", &"d", &"e"]);
        // The last one with the name in the process, and not another one.
        assert_eq!(pairing.operation(&key(1), 1), Some(&"e"));
        assert_eq!(pairing.end_operation(&key(1), 1), Ended::Begun("e"));
        // There is none with the name there.
        assert_eq!(pairing.operation(&key(1), 3), Some(&"b"));
        assert_eq!(pairing.end_operation(&key(1), 3), Ended::Misnamed("b"));
        // Nothing is open there.
        assert_eq!(pairing.end_operation(&key(7), 1), Ended::Crossing("c"));
        assert_eq!(pairing.end_operation(&key(7), 1), Ended::Crossing("a"));
        assert_eq!(pairing.end_operation(&key(7), 1), Ended::Nothing);
        let other = OperationKey { id: 3, ..key(2) };
        assert_eq!(pairing.end_operation(&other, 3), Ended::Nothing);
        assert_eq!(pairing.operation(&other, 3), None);
        let other = OperationKey { category: 3, ..key(2) };
        assert_eq!(pairing.end_operation(&other, 3), Ended::Nothing);
        assert_eq!((pairing.open(), pairing.unmatched(), pairing.refused()), (1, 3, 0));
        assert_eq!(pairing.take_operations().collect::<Vec<_>>(), ["d"]);
        assert_eq!(pairing.operations().count(), 0);
    }

    //= docs/meaning.md#bounds
    #[test]
    fn operations_with_one_id_are_bounded() {
        let mut pairing = Pairing::default();
        assert!((0..100).all(|_| pairing.begin_operation(&key(1), 1, true)));
        assert!(!pairing.begin_operation(&key(1), 1, true));
        assert!(pairing.begin_operation(&OperationKey { id: 3, ..key(1) }, 1, true));
        assert_eq!(pairing.end_operation(&key(1), 1), Ended::Refused);
        assert!((0..100).all(|_| pairing.end_operation(&key(1), 1) == Ended::Begun(true)));
        assert_eq!(pairing.end_operation(&key(1), 1), Ended::Nothing);
        assert_eq!((pairing.open(), pairing.unmatched(), pairing.refused()), (1, 1, 1));
    }

    #[test]
    fn what_an_end_ends_is_there_whatever_its_name() {
        let all = [Ended::Begun(1), Ended::Misnamed(2), Ended::Crossing(3), Ended::Refused, Ended::Nothing];
        assert_eq!(all.map(Ended::begun), [Some(1), Some(2), Some(3), None, None]);
    }

    //= docs/meaning.md#bounds
    #[test]
    fn the_end_of_a_refused_operation_ends_no_other() {
        let mut pairing = Pairing::default();
        for name in 0..=MAX_OPEN_OF_ID as u64 {
            assert_eq!(pairing.begin_operation(&key(1), name, "a"), name < MAX_OPEN_OF_ID as u64);
        }
        for name in 0..MAX_OPEN_OF_ID as u64 {
            assert_eq!(pairing.end_operation(&key(1), name), Ended::Begun("a"), "{name}");
        }
        assert_eq!(pairing.end_operation(&key(1), MAX_OPEN_OF_ID as u64), Ended::Refused);
        assert_eq!(pairing.end_operation(&key(1), MAX_OPEN_OF_ID as u64), Ended::Nothing);
        assert_eq!((pairing.refused(), pairing.unmatched()), (1, 1));
    }
}
