use super::*;
use crate::assertion::Assertion;
use crate::assertion::evaluate::Evaluation;
use crate::stats::{Options, Stats};
use crate::testing::Archive;
use proptest::prelude::*;
use trace_format::event::EventKind;

/// Number, time and self time of the durations with a name.
fn of(archive: &Archive, name: &str) -> (u64, u128, u128) {
    let disorder = Disorder::find(archive.bytes()).unwrap();
    let stats = Stats::of(archive.bytes(), &disorder, &Options::default()).unwrap();
    let rows = stats.durations.iter().filter(|row| row.group.name.as_deref() == Some(name));
    rows.map(|row| (row.spread.count, row.spread.total, row.spread.own)).next().unwrap_or_default()
}

//= docs/stats.md#self-time
#[test]
fn what_lies_directly_inside_is_not_self_time() {
    let archive = Archive::new()
        .complete(1, "leaf", 2, 3)
        .complete(1, "inner", 1, 5)
        .complete(2, "leaf", 2, 9)
        .complete(1, "inner", 6, 8)
        .complete(1, "outer", 0, 10)
        .complete(1, "outer", 10, 12);
    assert_eq!(of(&archive, "outer"), (2, 12, 6));
    assert_eq!(of(&archive, "inner"), (2, 6, 5));
    assert_eq!(of(&archive, "leaf"), (2, 8, 8));
}

//= docs/stats.md#self-time
#[test]
fn the_order_of_the_file_does_not_matter() {
    // Sorted by their begins, as other tools write them; the last two end together with what is around them.
    let archive = Archive::new()
        .complete(1, "outer", 0, 10)
        .complete(1, "inner", 1, 5)
        .complete(1, "leaf", 2, 3)
        .complete(1, "inner", 6, 10)
        .complete(1, "leaf", 9, 10);
    assert_eq!((of(&archive, "outer"), of(&archive, "inner")), ((1, 10, 2), (2, 8, 6)));
    let (begin, end) = (EventKind::DurationBegin, EventKind::DurationEnd);
    let archive = Archive::new()
        .event(1, "", end, 10)
        .event(1, "inner", begin, 2)
        .event(1, "", end, 5)
        .complete(1, "leaf", 3, 4)
        .event(1, "outer", begin, 0);
    assert_eq!((of(&archive, "outer"), of(&archive, "inner")), ((1, 10, 7), (1, 3, 2)));
}

//= docs/stats.md#self-time
#[test]
fn what_overlaps_is_not_inside() {
    let archive =
        Archive::new().complete(1, "first", 0, 10).complete(1, "second", 5, 15).complete(1, "all", 0, 20);
    assert_eq!((of(&archive, "first"), of(&archive, "second")), ((1, 10, 10), (1, 10, 10)));
    assert_eq!(of(&archive, "all"), (1, 20, 5));
    let archive = Archive::new().complete(1, "A", 0, 20).complete(1, "B", 10, 40);
    assert_eq!((of(&archive, "A"), of(&archive, "B")), ((1, 20, 20), (1, 30, 30)));
    // Around both, the time in which they overlap counts once.
    let archive = archive.complete(1, "C", 0, 50);
    assert_eq!(
        (of(&archive, "A"), of(&archive, "B"), of(&archive, "C")),
        ((1, 20, 20), (1, 30, 30), (1, 50, 10))
    );
    // It ends before it begins.
    let archive = Archive::new().complete(1, "back", 10, 5).complete(1, "all", 0, 20);
    assert_eq!((of(&archive, "back"), of(&archive, "all")), ((1, 0, 0), (1, 20, 20)));
}

//= docs/stats.md#self-time
#[test]
fn any_number_of_durations_may_be_inside() {
    let count = 100_000;
    let mut archive = Archive::new();
    for number in 0..count {
        archive = archive.complete(1, "inner", 10 * number + 1, 10 * number + 8);
    }
    let archive =
        archive.complete(1, "last", 10 * (count - 3), 10 * count).complete(1, "outer", 0, 10 * count);
    assert_eq!(of(&archive, "last"), (1, 30, 9));
    assert_eq!(of(&archive, "outer"), (1, 1_000_000, u128::from(10 * count - 7 * (count - 3) - 30)));
}

//= docs/stats.md#self-time
#[test]
fn so_many_durations_are_kept_apart() {
    let disorder = Disorder::default();
    let mut spans = Spans::new(&disorder);
    let thread = spans.thread(thread(1, 1));
    let mut put = |begin, end| {
        let span = spans.complete(Open { at: begin, what: 0, thread, is_poll: false }, end);
        (span.unwrap().own, spans.threads[0].roots.len())
    };
    let most = MAX_WAITING_OF_THREAD as u64;
    for number in 0..most {
        assert_eq!(put(10 * number, 10 * number + 1), (1, number as usize + 1));
    }
    // One more, and pairs of the older half become one.
    assert_eq!(put(10 * most, 10 * most + 1), (1, MAX_WAITING_OF_THREAD * 3 / 4 + 1));
    // It begins between two that are one, so that neither is inside.
    assert_eq!(put(5, 10 * most + 5), (10 * most - (most - 1), 2));
}

const fn thread(process: u64, thread: u64) -> Thread {
    Thread { process: Koid(process), thread: Koid(thread) }
}

#[test]
fn threads_and_processes_are_numbered_as_they_come() {
    let disorder = Disorder::default();
    let mut spans = Spans::new(&disorder);
    let all = [thread(5, 1), thread(6, 2), thread(5, 3)];
    assert_eq!(all.map(|thread| spans.thread(thread)), [0, 1, 2]);
    assert_eq!(spans.thread(all[1]), 1);
    assert!(spans.threads().eq(all) && spans.threads_with_processes().eq(all.into_iter().zip([0, 1, 0])));
    assert_eq!(spans.processes(), [Koid(5), Koid(6)]);
    // The more threads there are, the fewer durations of each wait.
    assert_eq!(spans.waiting_of_thread, MAX_WAITING_OF_THREAD);
    for number in 3..1024 {
        assert_eq!(spans.thread(thread(7, number)), number as u32);
    }
    assert_eq!(spans.waiting_of_thread, 1365);
    let last = MAX_THREADS as u64 - 1;
    for (number, expected) in (1024..last + 3).zip((1024..last).chain([last; 3])) {
        assert_eq!(spans.thread(thread(7, number)), expected as u32);
    }
}

/// A begin or an end.
fn part((what, thread): (u32, u32), at: u64, is_end: bool, id: Option<u64>) -> Part {
    Part { open: Open { at, what, thread, is_poll: false }, is_end, id }
}

//= docs/meaning.md#which-begin-an-end-belongs-to
#[test]
fn begins_beyond_the_limit_are_dropped() {
    let (disorder, whats) = (Disorder::default(), Whats::default());
    let mut spans = Spans::new(&disorder);
    spans.thread(thread(1, 1));
    let mut put = |at, is_end| {
        let span = spans.part(part((0, 0), at, is_end, None), &whats);
        (span.map(|span| span.begin), spans.refused())
    };
    let most = trace_model::MAX_OPEN as u64;
    for at in 0..most {
        assert_eq!(put(at, false), (None, 0));
    }
    assert_eq!([put(most, false), put(most, false)], [(None, 1), (None, 2)]);
    // Their ends end nothing else.
    assert_eq!([put(most, true), put(most, true)], [(None, 2), (None, 2)]);
    assert_eq!(put(most, true), (Some(most - 1), 2));
    assert_eq!([put(most, false), put(most, false)], [(None, 2), (None, 3)]);
    assert_eq!([put(most, true), put(most, true)], [(None, 3), (Some(most), 3)]);
    assert_eq!(spans.unmatched(), 0);
}

//= docs/tables.md#tables
#[test]
fn an_operation_ends_in_its_process_and_by_its_name_if_it_can() {
    let mut whats = Whats::default();
    let [a, b] = ["a", "b"].map(|name| whats.number(Text(b"c"), Text(name.as_bytes())));
    let disorder = Disorder::default();
    let (here, there) = (0, 1);
    let cases = [
        (vec![(a, here), (b, here), (a, there)], Some(0)),
        (vec![(b, here), (a, there)], Some(0)),
        (vec![(a, there), (b, there)], Some(0)),
        (vec![(b, there)], None),
    ];
    for (begun, expected) in cases {
        let mut spans = Spans::new(&disorder);
        [1, 2].into_iter().for_each(|process| _ = spans.thread(thread(process, process)));
        for (at, begun) in (0..).zip(&begun) {
            assert_eq!(spans.part(part(*begun, at, false, Some(7)), &whats), None);
        }
        let ended = spans.part(part((a, here), 10, true, Some(7)), &whats);
        assert_eq!(ended.map(|span| span.begin), expected, "{begun:?}");
        assert_eq!(spans.unmatched(), u64::from(expected.is_none()));
    }
}

//= docs/stats.md#self-time
#[test]
fn what_comes_late_is_sorted_and_keeps_all_that_it_says() {
    let (begin, end) = (EventKind::DurationBegin, EventKind::DurationEnd);
    let archive = Archive::new()
        .event(3, "", end, 10)
        .event(3, "b", begin, 2)
        .event(2, "a", EventKind::AsyncEnd { id: 7 }, 30)
        .event(2, "a", EventKind::AsyncBegin { id: 7 }, 5);
    let disorder = Disorder::find(archive.bytes()).unwrap();
    let mut whats = Whats::default();
    let [a, b] = ["a", "b"].map(|name| whats.number(Text(b"c"), Text(name.as_bytes())));
    let mut spans = Spans::new(&disorder);
    let [_, in_order, late] = [1, 2, 3].map(|number| spans.thread(thread(1, number)));
    for (who, at, is_end, id) in [
        ((a, late), 10, true, None),
        ((b, late), 2, false, None),
        ((b, late), 40, false, None),
        ((a, in_order), 30, true, Some(7)),
        ((a, in_order), 5, false, Some(7)),
        ((b, in_order), 50, false, Some(7)),
    ] {
        assert_eq!(spans.part(part(who, at, is_end, id), &whats), None);
    }
    for (begin, end) in [(12, 14), (0, 20)] {
        assert_eq!(spans.complete(Open { at: begin, what: a, thread: late, is_poll: false }, end), None);
    }
    let (mut ended, mut unfinished) = (Vec::new(), Vec::new());
    spans.finish(&whats, |span| ended.push(*span), |open| unfinished.push(*open)).unwrap();
    let span =
        |what, thread, shape, begin, end, own| Span { what, thread, process: 0, shape, begin, end, own };
    let expected = [
        span(a, in_order, Shape::Operation, 5, 30, 25),
        span(b, late, Shape::Pair, 2, 10, 8),
        span(a, late, Shape::Complete, 12, 14, 2),
        span(a, late, Shape::Complete, 0, 20, 10),
    ];
    assert_eq!(ended, expected);
    let open =
        |what, thread, begin, shape| Unfinished { what, thread, process: 0, begin, shape, ending: None };
    assert_eq!(unfinished, [open(b, late, 40, Shape::Pair), open(b, in_order, 50, Shape::Operation)]);
}

//= docs/tables.md#tables
#[test]
fn operations_are_paired_as_in_tables() {
    let (begin, end) = (EventKind::AsyncBegin { id: 7 }, EventKind::AsyncEnd { id: 7 });
    let archive = Archive::new()
        .event(1, "a", begin, 0)
        .event(1, "b", begin, 1)
        .event(2, "a", end, 10)
        .event(2, "other", end, 12)
        .event(2, "none", end, 13);
    let disorder = Disorder::find(archive.bytes()).unwrap();
    let stats = Stats::of(archive.bytes(), &disorder, &Options::default()).unwrap();
    let found = stats.operations.iter().map(|row| (row.group.name.clone().unwrap(), row.spread.total));
    assert_eq!(found.collect::<Vec<_>>(), [("a".to_owned(), 10), ("b".to_owned(), 11)]);
    assert_eq!(stats.walked.unmatched_ends, 1);
}

//= docs/meaning.md#what-is-inside-what
#[test]
fn of_durations_that_begin_or_end_together_one_is_inside() {
    let own = |archive: &Archive| ["A", "B"].map(|name| of(archive, name).2);
    let begin_together = Archive::new().complete(1, "A", 0, 50).complete(1, "B", 0, 200);
    assert_eq!(own(&begin_together), [50, 150]);
    let end_together = Archive::new().complete(1, "A", 0, 50).complete(1, "B", 10, 50);
    assert_eq!(own(&end_together), [10, 40]);
    let equal = Archive::new().complete(1, "A", 0, 50).complete(1, "B", 0, 50);
    assert_eq!(own(&equal), [0, 50]);
    let (begin, end) = (EventKind::DurationBegin, EventKind::DurationEnd);
    // A pair around a complete one and inside of it.
    let around = Archive::new().event(1, "A", begin, 0).complete(1, "B", 0, 50).event(1, "", end, 50);
    assert_eq!(own(&around), [0, 50]);
    let inside = Archive::new().complete(1, "A", 0, 50).event(1, "B", begin, 0).event(1, "", end, 50);
    assert_eq!(own(&inside), [0, 50]);
    // One of length 0 takes no time, wherever it is.
    let point = Archive::new().complete(1, "A", 5, 5).complete(1, "B", 5, 9);
    assert_eq!(own(&point), [0, 4]);
}

//= docs/check.md#order
#[test]
fn operations_are_paired_in_the_order_of_time() {
    let (begin, end) = (EventKind::AsyncBegin { id: 7 }, EventKind::AsyncEnd { id: 7 });
    let archive = Archive::new()
        .event(1, "a", begin, 0)
        .event(1, "a", end, 4000)
        .event(1, "a", begin, 2000)
        .event(1, "a", end, 5000);
    let disorder = Disorder::find(archive.bytes()).unwrap();
    let stats = Stats::of(archive.bytes(), &disorder, &Options::default()).unwrap();
    let [row] = &stats.operations[..] else { panic!("one name") };
    assert_eq!((row.spread.min, row.spread.max), (2000, 5000));
}

/// A record of a thread.
#[derive(Clone, Copy, Debug)]
enum Made {
    Complete { begin: u64, end: u64 },
    Begin { at: u64 },
    End { at: u64 },
}

impl Made {
    fn at(self) -> u64 {
        match self {
            Self::Complete { begin: at, .. } | Self::Begin { at } | Self::End { at } => at,
        }
    }
}

/// Records of a thread, most of them in the order in which a program makes them.
fn made() -> impl Strategy<Value = Vec<Made>> {
    let late = || prop_oneof![12 => Just(0), 1 => 1..4_u64];
    let record = (0..7_u8, 0..3_u64, 0..7_u64, late());
    proptest::collection::vec(record, 0..24).prop_map(|records| {
        let mut now = 20;
        let record = |(kind, pause, length, late)| {
            now += pause;
            let at = now - late;
            match kind {
                0..3 => Made::Complete { begin: at - length, end: at },
                3..5 => Made::Begin { at },
                _ => Made::End { at },
            }
        };
        records.into_iter().map(record).collect()
    })
}

/// The own time of each duration that has ended, by a look at all others; each has the number of the record
/// that begins it.
//= docs/meaning.md#own-time
fn own_by_definition(records: &[Made]) -> Vec<(usize, u64)> {
    let mut sorted: Vec<(usize, Made)> = records.iter().copied().enumerate().collect();
    sorted.sort_by_key(|(_, record)| record.at());
    let mut open: Vec<(usize, u64, u64)> = Vec::new();
    let mut slices: Vec<(usize, Interval)> = Vec::new();
    for (number, (name, record)) in (1..).zip(sorted) {
        match record {
            Made::Complete { begin, end } => {
                slices.push((name, Interval { begin, end, begun: number, ended: number }));
            }
            Made::Begin { at } => open.push((name, at, number)),
            Made::End { at: end } => slices.extend(
                open.pop().map(|(name, begin, begun)| (name, Interval { begin, end, begun, ended: number })),
            ),
        }
    }
    let parent = |(_, inner): &(usize, Interval)| {
        let around = slices.iter().filter(|(_, outer)| outer.encloses(inner));
        let parent = around.min_by_key(|(_, outer)| {
            let ended = if inner.is_instant() && outer.end == inner.end { outer.ended } else { 0 };
            (outer.end, ended, std::cmp::Reverse((outer.begin, outer.begun)))
        });
        parent.map(|(name, _)| *name)
    };
    let parents: Vec<Option<usize>> = slices.iter().map(parent).collect();
    let own = |(name, slice): &(usize, Interval)| {
        let inside = slices.iter().zip(&parents).filter(|(_, parent)| **parent == Some(*name));
        let inside: Vec<_> = inside.map(|((_, inner), _)| inner.begin..inner.end).collect();
        let own = (slice.begin..slice.end).filter(|at| !inside.iter().any(|inner| inner.contains(at)));
        (*name, own.count() as u64)
    };
    let mut owns: Vec<(usize, u64)> = slices.iter().map(own).collect();
    owns.sort_unstable();
    owns
}

/// Reads bytes for statistics and for assertions of each kind.
fn read(bytes: &[u8]) {
    let Ok(disorder) = Disorder::find(bytes) else { return };
    let limits = ["p99(*) < 1s and max(gap(*)) < 1s", "mean(self(*)) < 1s or p50(counter(*)) < 5"];
    let limits = limits.map(|text| Assertion::parse(text).unwrap());
    for disorder in [&disorder, &Disorder::default()] {
        let _ = Stats::of(bytes, disorder, &Options::default());
        if let Ok(evaluation) = Evaluation::of(bytes, disorder, None, &limits) {
            limits.iter().for_each(|limit| _ = evaluation.verdict(limit));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn own_times_are_those_of_the_definition(records in made()) {
        let mut archive = Archive::new();
        for (name, record) in records.iter().enumerate() {
            let name = name.to_string();
            archive = match *record {
                Made::Complete { begin, end } => archive.complete(1, &name, begin, end),
                Made::Begin { at } => archive.event(1, &name, EventKind::DurationBegin, at),
                Made::End { at } => archive.event(1, "", EventKind::DurationEnd, at),
            };
        }
        let disorder = Disorder::find(archive.bytes()).unwrap();
        let stats = Stats::of(archive.bytes(), &disorder, &Options::default()).unwrap();
        let ended = stats.durations.iter().filter(|row| row.spread.count > 0);
        let own = ended.map(|row| {
            (row.group.name.as_ref().unwrap().parse::<usize>().unwrap(), row.spread.own as u64)
        });
        let mut own: Vec<(usize, u64)> = own.collect();
        own.sort_unstable();
        prop_assert_eq!(own, own_by_definition(&records));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read(&[Archive::new().bytes(), &bytes].concat());
    }

    #[test]
    fn a_damaged_archive_is_read(place in 0..10_000_usize, byte in any::<u8>(), length in 0..10_000_usize) {
        let archive = Archive::new()
            .complete(1, "leaf", 2, 3)
            .event(1, "outer", EventKind::DurationBegin, 0)
            .event(1, "op", EventKind::AsyncBegin { id: 7 }, 0)
            .event(2, "op", EventKind::AsyncEnd { id: 7 }, 5)
            .sample("load", "n", 0.5, 4)
            .event(1, "outer", EventKind::DurationEnd, 9)
            .loss(7);
        let mut bytes = archive.bytes().to_vec();
        let (place, length) = (place % bytes.len(), length % bytes.len());
        bytes[place] = byte;
        read(&bytes);
        read(&bytes[..length]);
    }
}

/// A scope that was open when its recording was stopped, and ends in the next one.
//= docs/format.md#open-scopes
#[test]
fn what_has_ended_in_a_later_recording_is_not_open() {
    let disorder = Disorder::default();
    let mut whats = Whats::default();
    let a = whats.number(Text(b"c"), Text(b"a"));
    let mut spans = Spans::new(&disorder);
    let [one, other] = [1, 2].map(|number| spans.thread(thread(1, number)));
    for (thread, at) in [(one, 5), (one, 6), (other, 5)] {
        spans.unended(Open { at, what: a, thread, is_poll: false }, (Ending::Stop, Some(1)));
    }
    let _ = spans.complete(Open { at: 5, what: a, thread: one, is_poll: false }, 9);
    let left: Vec<(u32, u64)> = spans.unfinished().map(|open| (open.thread, open.begin)).collect();
    assert_eq!(left, [(one, 6), (other, 5)]);
    let reasons: Vec<_> = spans.unfinished().map(|open| open.ending).collect();
    assert_eq!(reasons, [Some((Ending::Stop, Some(1))); 2]);
}
