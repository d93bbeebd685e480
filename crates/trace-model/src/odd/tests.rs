use super::flows::MAX_FLOWS;
use super::*;
use crate::testing::{by_definition, slices};
use proptest::prelude::*;
use trace_reader::item::{Ending, Scale};

const THREAD: Thread = Thread { process: Koid(1), thread: Koid(2) };

impl OddFinder {
    /// A complete record of a clock of nanoseconds.
    fn lasts(&mut self, thread: Thread, begin: u64, end: u64) {
        self.lasts_by(1, thread, begin, end);
    }

    fn flows_at(&mut self, at: u64) {
        let rate = TicksPerSecond::NANOSECONDS;
        self.flow(THREAD, Time { ticks: Ticks(at), rate, scale: Scale::of(rate) });
    }

    /// A complete record of a clock that has several ticks in each nanosecond.
    fn lasts_by(&mut self, ticks: u64, thread: Thread, begin: u64, end: u64) {
        let rate = TicksPerSecond::new(ticks * 1_000_000_000).unwrap();
        let at = |nanos: u64| Ticks(nanos.saturating_mul(ticks).saturating_add((nanos + begin * 7) % ticks));
        self.complete(thread, Time { ticks: at(begin), rate, scale: Scale::of(rate) }, at(end));
    }
}

/// A record of a slice: its number, its time, the slice, and whether it ends that.
type Record = (u64, u64, usize, bool);

fn records(slices: &[Interval]) -> Vec<Record> {
    let begins = (0..).zip(slices).map(|(of, slice)| (slice.begun, slice.begin, of, false));
    let ends = (0..).zip(slices).filter(|(_, slice)| slice.is_pair() && slice.end != u64::MAX);
    let mut records: Vec<Record> =
        begins.chain(ends.map(|(of, slice)| (slice.ended, slice.end, of, true))).collect();
    records.sort_unstable();
    records
}

/// What it keeps is what its threads do.
fn assert_counted(finder: &OddFinder) {
    assert_eq!(finder.kept, finder.threads.iter().map(ThreadState::kept).sum::<usize>());
    assert_eq!(finder.flows, finder.threads.iter().map(|state| state.flows.len()).sum::<usize>());
}

fn is_odd_for(finder: OddFinder, slices: &[Interval]) -> bool {
    is_odd_by(1, finder, slices)
}

fn is_odd_by(ticks: u64, mut finder: OddFinder, slices: &[Interval]) -> bool {
    for (_, at, of, is_end) in records(slices) {
        let slice = slices[of];
        match (slice.is_pair(), is_end) {
            (false, _) => finder.lasts_by(ticks, THREAD, slice.begin, slice.end),
            (true, false) => finder.begin(THREAD, at),
            (true, true) => finder.end(THREAD, at),
        }
        assert_counted(&finder);
    }
    finder.finish().has_thread(THREAD)
}

fn is_odd(slices: &[Interval]) -> bool {
    is_odd_for(OddFinder::default(), slices)
}

/// The end of each slice and the one that it is directly in.
type Read = Vec<(u64, Option<usize>)>;

/// For a reader that sorts begins and ends by their times and keeps a stack.
fn read_parts(slices: &[Interval]) -> Read {
    let parts = |(_, at, of, is_end): Record| {
        let end = (!slices[of].is_pair()).then_some((slices[of].end, of, true));
        [(at, of, is_end)].into_iter().chain(end)
    };
    let mut parts: Vec<_> = records(slices).into_iter().flat_map(parts).collect();
    parts.sort_by_key(|(at, ..)| *at);
    let mut stack: Vec<usize> = Vec::new();
    let mut read = vec![(u64::MAX, None); slices.len()];
    for (at, of, is_end) in parts {
        if !is_end {
            read[of].1 = stack.last().copied();
            stack.push(of);
        } else if let Some(innermost) = stack.pop() {
            read[innermost].0 = at;
        }
    }
    read
}

/// For a reader of whole slices, which takes ends first, and whole slices that last before other begins.
fn read_whole(slices: &[Interval]) -> Read {
    let mut records = records(slices);
    records.sort_by_key(|(_, at, of, is_end)| {
        let slice = &slices[*of];
        let is_first = !slice.is_pair() && !slice.is_instant();
        (*at, !is_end, if is_first { u64::MAX - slice.duration() } else { u64::MAX })
    });
    let mut stack: Vec<usize> = Vec::new();
    let mut read = vec![(u64::MAX, None); slices.len()];
    for (_, at, of, is_end) in records {
        let is_instant = slices[of].is_instant() && !slices[of].is_pair();
        let has_ended = |open: &Interval| !open.is_pair() && open.end <= at;
        let stays = |open: &Interval| is_instant && open.is_instant() && open.end == at;
        while stack.pop_if(|open| has_ended(&slices[*open]) && !stays(&slices[*open])).is_some() {}
        if is_end {
            if let Some(innermost) = stack.iter().rposition(|open| slices[*open].is_pair()) {
                read[stack[innermost]].0 = at;
                stack.truncate(innermost);
            }
        } else {
            read[of].1 = stack.last().copied();
            if !slices[of].is_pair() {
                read[of].0 = slices[of].end;
            }
            stack.push(of);
        }
    }
    read
}

fn meaning(slices: &[Interval]) -> Read {
    let nested = by_definition(slices).into_iter().zip(slices);
    nested.map(|(nested, slice)| (slice.end, nested.parent.map(|parent| parent as usize))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    /// What is not odd is read as it is.
    #[test]
    fn readers_with_stacks_see_what_is_not_odd(slices in slices(), ticks in 1..5_u64) {
        if !is_odd_by(ticks, OddFinder::default(), &slices) {
            prop_assert_eq!(read_parts(&slices), meaning(&slices));
        }
        if !is_odd_by(ticks, OddFinder::of_whole_slices(), &slices) {
            prop_assert_eq!(read_whole(&slices), meaning(&slices));
        }
    }

    /// Slices of one kind that nest, in the order of ends or begins, are not odd.
    #[test]
    fn what_nests_is_not_odd(slices in slices(), is_by_begin in any::<bool>()) {
        let complete = |slice: &&Interval| slice.begin < slice.end && slice.end != u64::MAX;
        let mut slices: Vec<Interval> = slices.iter().filter(complete).copied().collect();
        slices.sort_by_key(|slice| (slice.begin, std::cmp::Reverse(slice.end)));
        slices.dedup_by_key(|slice| slice.begin);
        let mut nested: Vec<Interval> = Vec::new();
        for slice in slices {
            if nested.iter().all(|other| other.end <= slice.begin || other.end >= slice.end) {
                nested.push(slice);
            }
        }
        if !is_by_begin {
            nested.sort_by_key(|slice| (slice.end, std::cmp::Reverse(slice.begin)));
        }
        for (record, slice) in (1..).zip(&mut nested) {
            (slice.begun, slice.ended) = (record, record);
        }
        prop_assert!(!is_odd(&nested));
    }
}

const fn complete(begin: u64, end: u64, record: u64) -> Interval {
    Interval { begin, end, begun: record, ended: record }
}

#[test]
fn overlaps_ties_and_unordered_slices_are_odd() {
    assert!(is_odd(&[complete(0, 20, 1), complete(10, 40, 2)]));
    assert!(is_odd(&[complete(0, 50, 1), complete(0, 200, 2)]));
    assert!(!is_odd(&[complete(0, 200, 1), complete(0, 50, 2)]));
    // Neither in the order of begins nor in that of ends.
    assert!(is_odd(&[complete(0, 9, 1), complete(2, 4, 2), complete(1, 6, 3)]));
    assert!(!is_odd(&[complete(0, 9, 1), complete(1, 6, 2), complete(2, 4, 3)]));
    assert!(is_odd(&[complete(10, 20, 1), complete(0, 30, 2), complete(25, 28, 3)]));
    // In the order of begins alone.
    assert!(is_odd(&[complete(0, 50, 1), complete(10, 40, 2), complete(45, 60, 3)]));
    assert!(is_odd(&[complete(0, 50, 1), complete(10, 40, 2), complete(20, 45, 3)]));
    // What never ends overlaps what ends behind its begin.
    let open = Interval { begin: 5, end: u64::MAX, begun: 1, ended: 100 };
    assert!(is_odd(&[complete(3, 9, 2), open]));
    assert!(!is_odd(&[complete(5, 9, 2), open]));
}

#[test]
fn what_readers_of_whole_slices_mistake_is_odd_for_them() {
    let pair = |begin, end, begun, ended| Interval { begin, end, begun, ended };
    let cases = [
        // A pair that takes no time.
        (vec![pair(10, 10, 1, 2)], [false, true]),
        // One that begins with what is in it, and one that does not.
        (vec![pair(5, 9, 1, 3), complete(5, 7, 2)], [false, true]),
        (vec![pair(5, 9, 1, 3), complete(6, 7, 2)], [false, false]),
        (vec![pair(5, u64::MAX, 1, 9), complete(5, 7, 2)], [false, true]),
        // A moment before what begins there, behind it, and alone.
        (vec![complete(5, 5, 1), complete(5, 7, 2)], [false, true]),
        (vec![complete(5, 7, 1), complete(5, 5, 2)], [false, false]),
        (vec![complete(5, 5, 1)], [false, false]),
        // Two moments of a time.
        (vec![complete(5, 5, 1), complete(5, 5, 2)], [false, true]),
        // One at the end of the pair that it is in.
        (vec![pair(2, 5, 1, 3), complete(5, 5, 2)], [false, true]),
        (vec![pair(2, 5, 1, 2), complete(5, 5, 3)], [false, false]),
        // A slice that is recorded behind the begin of one that begins at its end.
        (vec![pair(6, 9, 1, 3), complete(3, 6, 2)], [true, true]),
        (vec![complete(3, 6, 1), pair(6, 9, 2, 3)], [false, false]),
    ];
    for (slices, expected) in cases {
        let found =
            [OddFinder::default(), OddFinder::of_whole_slices()].map(|finder| is_odd_for(finder, &slices));
        assert_eq!(found, expected, "{slices:?}");
    }
}

/// A part of a flow at 50 behind slices, and others around it or behind it.
#[test]
fn flows_behind_whole_slices_are_odd() {
    let find = |before: &[(u64, u64)], after: &[(u64, u64)], pair: Option<(u64, u64)>| {
        [OddFinder::default(), OddFinder::of_whole_slices()].map(|mut finder| {
            before.iter().for_each(|(begin, end)| finder.lasts(THREAD, *begin, *end));
            if let Some((begin, _)) = pair {
                finder.begin(THREAD, begin);
            }
            finder.flows_at(50);
            assert_counted(&finder);
            if let Some((_, end)) = pair {
                finder.end(THREAD, end);
            }
            after.iter().for_each(|(begin, end)| finder.lasts(THREAD, *begin, *end));
            assert_counted(&finder);
            finder.finish().has_thread(THREAD)
        })
    };
    // In nothing at all, and in nothing behind something.
    assert_eq!(find(&[], &[], None), [false, false]);
    assert_eq!(find(&[(10, 20)], &[], None), [true, true]);
    assert_eq!(find(&[(10, 20)], &[(60, 70)], None), [true, true]);
    // In what began behind the last one, or at its end, and in what is around that.
    assert_eq!(find(&[(10, 20)], &[(30, 60)], None), [false, false]);
    assert_eq!(find(&[(10, 20)], &[(20, 50)], None), [false, false]);
    assert_eq!(find(&[(10, 20)], &[(50, 60), (0, 90)], None), [false, false]);
    assert_eq!(find(&[(10, 20)], &[(10, 60)], None), [true, true]);
    assert_eq!(find(&[(10, 20)], &[(5, 60)], None), [true, true]);
    // In the order of begins.
    assert_eq!(find(&[(0, 90), (10, 20)], &[], None), [true, true]);
    assert_eq!(find(&[(0, 90), (10, 60)], &[], None), [false, false]);
    // The begin of a pair has ended it.
    assert_eq!(find(&[(10, 20)], &[], Some((30, 60))), [false, false]);
    assert_eq!(find(&[(10, 20)], &[], Some((20, 60))), [false, false]);
    // What begins behind it comes before it in the file.
    assert_eq!(find(&[(10, 20), (60, 70)], &[(0, 90)], None), [true, true]);
    assert_eq!(find(&[(10, 20)], &[], Some((60, 70))), [true, true]);
    assert_eq!(find(&[(20, 30), (10, 60)], &[], None), [true, true]);
    // Behind an instant in a slice.
    let has_odd = |instant: u64| {
        let mut finder = OddFinder::default();
        finder.lasts(THREAD, 10, 90);
        finder.instant(THREAD, instant);
        finder.flows_at(50);
        finder.finish().has_thread(THREAD)
    };
    assert_eq!([5, 20, 60].map(has_odd), [false, true, true]);
    // It comes in the file behind a part of a flow.
    let has_odd_before = |instant: u64| {
        let mut finder = OddFinder::default();
        finder.flows_at(50);
        finder.instant(THREAD, instant);
        finder.finish().has_thread(THREAD)
    };
    assert_eq!([49, 50, 60].map(has_odd_before), [true, false, false]);
}

/// An end for which nothing is open ends a whole slice for readers that get begins and ends.
#[test]
fn unmatched_ends_in_whole_slices_are_odd() {
    let find = |before: Option<(u64, u64)>, after: Option<(u64, u64)>| {
        [OddFinder::default(), OddFinder::of_whole_slices()].map(|mut finder| {
            before.into_iter().for_each(|(begin, end)| finder.lasts(THREAD, begin, end));
            finder.end(THREAD, 50);
            after.into_iter().for_each(|(begin, end)| finder.lasts(THREAD, begin, end));
            assert_counted(&finder);
            finder.finish().has_thread(THREAD)
        })
    };
    assert_eq!(find(None, None), [false, false]);
    assert_eq!(find(Some((10, 50)), Some((50, 60))), [false, false]);
    assert_eq!(find(Some((10, 51)), None), [true, false]);
    let mut finder = OddFinder::default();
    [(0, 60), (10, 20)].into_iter().for_each(|(begin, end)| finder.lasts(THREAD, begin, end));
    finder.end(THREAD, 50);
    assert!(!finder.has_nothing());
    assert_eq!(find(None, Some((49, 50))), [true, false]);
    assert_eq!(find(None, Some((49, 60))), [true, false]);
}

#[test]
fn many_parts_of_flows_that_wait_make_a_thread_odd() {
    let mut finder = OddFinder::of_whole_slices();
    finder.lasts(THREAD, 10, 20);
    (0..MAX_FLOWS).for_each(|_| finder.flows_at(50));
    assert!(finder.has_nothing());
    finder.flows_at(50);
    assert!(!finder.has_nothing());
    assert_counted(&finder);
}

#[test]
fn parts_before_an_earlier_one_are_odd() {
    let mut finder = OddFinder::default();
    finder.begin(THREAD, 10);
    finder.end(THREAD, 9);
    assert!(!finder.has_nothing());
    let odd = finder.finish();
    assert!(odd.has_thread(THREAD) && !odd.has_thread(Thread::default()) && !odd.is_empty());
    assert!(Odd::default().is_empty());
}

/// A begin that there was no room for has an end that ends nothing.
#[test]
fn refused_begins_have_ends() {
    let mut finder = OddFinder::default();
    let most = 2 * MAX_KEPT;
    (0..most as u64 + 5).for_each(|at| finder.begin(THREAD, at));
    assert_eq!((finder.threads[0].open.len(), finder.threads[0].refused), (most, 5));
    (0..5).for_each(|at| finder.end(THREAD, 4000 + at));
    assert_eq!((finder.threads[0].open.len(), finder.threads[0].refused), (most, 0));
    assert_counted(&finder);
    finder.end(THREAD, 4010);
    assert_eq!(finder.threads[0].open.len(), most - 1);
}

/// They are looked at however many there are.
#[test]
fn old_pairs_are_merged() {
    let mut finder = OddFinder::default();
    for at in 0..10 * MAX_KEPT as u64 {
        finder.begin(THREAD, 10 * at);
        finder.end(THREAD, 10 * at + 5);
        assert_eq!(finder.threads[0].refused, 0);
    }
    assert_counted(&finder);
    assert!(finder.kept <= 2 * MAX_KEPT && finder.has_nothing());
    // One around the last of them, and one that overlaps the last.
    let end = 100 * MAX_KEPT as u64;
    finder.lasts(THREAD, end - 25, end);
    assert!(finder.has_nothing());
    finder.begin(THREAD, end + 10);
    finder.end(THREAD, end + 20);
    finder.lasts(THREAD, end + 15, end + 30);
    assert!(finder.finish().has_thread(THREAD));
}

#[test]
fn old_slices_are_merged() {
    let mut finder = OddFinder::default();
    (0..10 * MAX_KEPT as u64).for_each(|at| finder.lasts(THREAD, 10 * at, 10 * at + 5));
    assert!(finder.kept <= 2 * MAX_KEPT && finder.has_nothing());
    // One around the last ones, and one that begins among merged ones.
    let end = 100 * MAX_KEPT as u64;
    finder.lasts(THREAD, end - 25, end);
    assert!(finder.has_nothing());
    finder.lasts(THREAD, 25, end);
    assert!(finder.finish().has_thread(THREAD));
}

/// Of slices in the order of their begins, none that is around others can be merged.
#[test]
fn threads_that_are_too_deep_are_odd() {
    for (depth, expected) in [(MAX_KEPT as u64 - 10, false), (MAX_KEPT as u64 + 10, true)] {
        let mut finder = OddFinder::default();
        (0..depth).for_each(|at| finder.lasts(THREAD, at, 100_000 - at));
        assert_counted(&finder);
        assert_eq!(finder.finish().has_thread(THREAD), expected, "{depth}");
    }
}

/// An exporter says why what is open has no end when it writes it last.
#[test]
fn threads_with_begins_of_which_the_archive_says_why_are_odd() {
    for (process, at, begins, expected) in [
        (1, 100, &[50][..], true),
        (1, 100, &[150, 160], false),
        (1, 100, &[], false),
        (2, 100, &[50], false),
    ] {
        let partings = Partings::of_remark(Koid(process), at, Ending::Death);
        let mut finder = OddFinder { odd: Odd { partings, ..Odd::default() }, ..OddFinder::default() };
        finder.begin(THREAD, 10);
        finder.end(THREAD, 20);
        begins.iter().for_each(|at| finder.begin(THREAD, *at));
        let odd = finder.finish();
        assert_eq!(odd.has_thread(THREAD), expected, "{process} {begins:?}");
        assert_eq!(odd.partings().of(Koid(process), 90), Some((Ending::Death, 10)));
    }
}

mod events {
    use super::*;

    const BEGIN: u64 = 0x2_0044;
    const END: u64 = 0x3_0044;
    const COMPLETE: u64 = 0x4_0054;
    const OPERATION_BEGIN: u64 = 0x5_0054;
    const OPERATION_INSTANT: u64 = 0x6_0054;
    const OPERATION_END: u64 = 0x7_0054;

    /// Whether a thread of process 1, and an operation of it, are odd: header, time, and an end or an id.
    fn odd(events: &[(u64, u64, u64)]) -> [bool; 2] {
        let mut words = vec![0x0016_5478_4604_0010];
        for (header, time, last) in events {
            words.extend([*header, *time, 1, 2]);
            words.extend((header >> 4 & 0xf == 5).then_some(last));
        }
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let odd = Odd::find(&bytes[..], OddFinder::default()).unwrap();
        assert_eq!(Odd::find_in(&bytes, OddFinder::default()).unwrap(), odd);
        let operation = OperationKey { process: Koid(1), category: token(Text(b"")), id: 7 };
        [odd.has_thread(THREAD), odd.has_operation(&operation)]
    }

    #[test]
    fn slices_and_operations_of_an_archive_are_found() {
        assert_eq!(odd(&[(COMPLETE, 0, 20), (COMPLETE, 10, 40)]), [true, false]);
        assert_eq!(odd(&[(COMPLETE, 0, 20), (COMPLETE, 20, 40)]), [false; 2]);
        assert_eq!(odd(&[(BEGIN, 10, 0), (END, 5, 0)]), [true, false]);
        assert_eq!(odd(&[(BEGIN, 10, 0), (END, 15, 0), (BEGIN, 15, 0)]), [false; 2]);
        // The pair is around what overlaps the end of another.
        assert_eq!(odd(&[(BEGIN, 10, 0), (END, 15, 0), (COMPLETE, 12, 20)]), [true, false]);
        assert_eq!(odd(&[(OPERATION_END, 10, 7)]), [false, true]);
        assert_eq!(odd(&[(OPERATION_BEGIN, 10, 7), (OPERATION_INSTANT, 11, 7)]), [false; 2]);
        assert_eq!(odd(&[(OPERATION_BEGIN, 10, 7), (OPERATION_END, 11, 7)]), [false; 2]);
    }

    #[test]
    fn what_is_no_archive_is_an_error() {
        assert!(Odd::find(&b"text"[..], OddFinder::default()).is_err());
        assert!(Odd::find_in(b"text", OddFinder::default()).is_err());
    }
}

mod operations {
    use super::*;
    use crate::pairing::Pairing;

    /// A part: process, name, time, and whether it ends.
    type Part = (u64, &'static str, u64, bool);

    fn key(process: u64) -> OperationKey {
        OperationKey { process: Koid(process), category: 3, id: 7 }
    }

    fn name(name: &str) -> u64 {
        token(Text(name.as_bytes()))
    }

    /// Which of the processes 1 and 2 has an odd operation 7.
    fn odd(parts: &[Part]) -> [bool; 2] {
        let mut finder = OddFinder::default();
        for (process, named, at, is_end) in parts {
            finder.operation(key(*process), name(named), *at, *is_end);
        }
        let odd = finder.finish();
        [1, 2].map(|process| odd.has_operation(&key(process)))
    }

    #[test]
    fn parts_that_nest_in_order_are_not_odd() {
        assert_eq!(
            odd(&[(1, "a", 1, false), (1, "b", 2, false), (1, "b", 3, true), (1, "a", 4, true)]),
            [false; 2]
        );
        // All at one time.
        assert_eq!(odd(&[(1, "a", 1, false), (1, "b", 1, false), (1, "b", 1, true)]), [false; 2]);
        // The id is used again, and by another process.
        let again = [(1, "a", 1, false), (1, "a", 2, true), (1, "b", 3, false), (1, "b", 4, true)];
        assert_eq!(odd(&again), [false; 2]);
        assert_eq!(odd(&[again[0], (2, "a", 1, false), again[1], (2, "a", 2, true)]), [false; 2]);
    }

    #[test]
    fn parts_that_overlap_are_odd() {
        assert_eq!(odd(&[(1, "a", 1, false), (1, "b", 2, false), (1, "a", 3, true)]), [true, false]);
        // The end has another name.
        assert_eq!(odd(&[(1, "a", 1, false), (1, "x", 2, true)]), [true, false]);
        let overlapping = [(2, "a", 1, false), (1, "a", 2, false), (1, "x", 3, true), (1, "a", 4, true)];
        assert_eq!(odd(&overlapping[..3]), [true, false]);
        // An odd one goes on.
        assert_eq!(odd(&overlapping), [true; 2]);
    }

    /// An end may belong to another process then.
    #[test]
    fn parts_that_come_late_are_odd_in_all_processes() {
        let all: [&[Part]; 8] = [
            &[(2, "a", 4, true)],
            &[(2, "a", 4, true), (1, "a", 2, false)],
            &[(1, "a", 5, false), (1, "b", 4, false)],
            // One that was over.
            &[(1, "a", 1, false), (1, "a", 5, true), (1, "a", 3, false)],
            &[(1, "a", 1, false), (2, "a", 2, true)],
            &[(1, "a", 1, false), (1, "a", 2, true), (2, "a", 2, true)],
            // The end comes before the begin of another name.
            &[(1, "p", 3, false), (2, "q", 1, false), (1, "q", 1, true)],
            // The late end takes the begin of the first one.
            &[(1, "p", 1, false), (1, "p", 3, true), (2, "p", 1, false), (1, "q", 2, true)],
        ];
        for parts in all {
            assert_eq!(odd(parts), [true; 2], "{parts:?}");
        }
    }

    /// The places of the begins and ends of a process that belong together in the order of the file.
    fn read(parts: &[Part], process: u64) -> Vec<(usize, usize)> {
        let (mut open, mut pairs) = (Vec::new(), Vec::new());
        for (place, part) in parts.iter().enumerate().filter(|(_, part)| part.0 == process) {
            if part.3 {
                pairs.extend(open.pop().map(|begin| (begin, place)));
            } else {
                open.push(place);
            }
        }
        pairs
    }

    /// The pairs of begins and ends in all processes, by the rules of docs/meaning.md.
    fn meant(parts: &[Part]) -> Vec<(usize, usize)> {
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|place| parts[*place].2);
        let (mut pairing, mut pairs) = (Pairing::default(), Vec::new());
        for place in order {
            let (process, named, _, is_end) = parts[place];
            if is_end {
                let begun = pairing.end_operation(&key(process), name(named)).begun();
                pairs.extend(begun.map(|begin: usize| (begin, place)));
            } else {
                pairing.begin_operation(&key(process), name(named), place);
            }
        }
        pairs
    }

    impl crate::pairing::Begin for usize {}

    fn part() -> impl Strategy<Value = Part> {
        let named = any::<bool>().prop_map(|is_first| if is_first { "p" } else { "q" });
        (1..3_u64, named, 0..4_u64, any::<bool>())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// What is not odd is read as it is.
        #[test]
        fn readers_in_the_order_of_the_file_see_what_is_not_odd(
            parts in proptest::collection::vec(part(), 0..7),
        ) {
            let odd = odd(&parts);
            for process in [1, 2].into_iter().filter(|process| !odd[*process as usize - 1]) {
                let is_of = |(begin, end): &(usize, usize)| {
                    parts[*begin].0 == process || parts[*end].0 == process
                };
                let mut meant: Vec<_> = meant(&parts).into_iter().filter(is_of).collect();
                meant.sort_unstable_by_key(|(_, end)| *end);
                prop_assert_eq!(read(&parts, process), meant);
            }
        }
    }
}
