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
    assert_eq!(of(&archive, "all"), (1, 20, 0));
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
    let mut state = ThreadState {
        thread: Thread::default(),
        process: 0,
        is_late: false,
        is_sorted_later: false,
        open: Vec::new(),
        waiting: Vec::new(),
    };
    for number in 0..10_000 {
        let (begin, end) = (10 * number, 10 * number + 1);
        let span = Span { what: 0, thread: 0, process: 0, shape: Shape::Complete, begin, end, own: 0 };
        state.own_time(&span, 64);
        let waiting = state.waiting.len() as u64;
        assert!(if number < 64 { waiting == number + 1 } else { waiting <= 64 });
    }
    // Pairs of the older half become one.
    state.waiting = (0..64).map(|number| (10 * number, 1)).collect();
    state.thin();
    let joined = (0..16).map(|pair| (20 * pair, 2)).chain((32..64).map(|number| (10 * number, 1)));
    assert!(joined.eq(state.waiting));
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
    assert_eq!(spans.waiting_of_thread, 4096);
    let last = MAX_THREADS as u64 - 1;
    for (number, expected) in (1024..last + 3).zip((1024..last).chain([last; 3])) {
        assert_eq!(spans.thread(thread(7, number)), expected as u32);
    }
}

/// A begin or an end.
fn part((what, thread): (u32, u32), at: u64, is_end: bool, id: Option<u64>) -> Part {
    Part { open: Open { at, what, thread }, is_end, id }
}

#[test]
fn begins_beyond_the_limit_are_dropped() {
    let (disorder, whats) = (Disorder::default(), Whats::default());
    let mut spans = Spans::new(&disorder);
    spans.thread(thread(1, 1));
    let mut put = |at, is_end| {
        let span = spans.part(part((0, 0), at, is_end, None), &whats);
        (span.map(|span| span.begin), spans.dropped)
    };
    let most = MAX_OPEN as u64;
    for at in 0..most {
        assert_eq!(put(at, false), (None, 0));
    }
    assert_eq!([put(most, false), put(most, false)], [(None, 1), (None, 2)]);
    assert_eq!(put(most, true), (Some(most - 1), 2));
    assert_eq!([put(most, false), put(most, false)], [(None, 2), (None, 3)]);
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
        assert_eq!(spans.unmatched, u64::from(expected.is_none()));
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
        assert_eq!(spans.complete(Open { at: begin, what: a, thread: late }, end), None);
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
        |what, thread, begin, is_operation| Unfinished { what, thread, process: 0, begin, is_operation };
    assert_eq!(unfinished, [open(b, late, 40, false), open(b, in_order, 50, true)]);
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

/// Reads bytes for statistics and for assertions of each kind.
fn read(bytes: &[u8]) {
    let Ok(disorder) = Disorder::find(bytes) else { return };
    let limits = ["p99(*) < 1s and max(gap(*)) < 1s", "mean(self(*)) < 1s or p50(counter(*)) < 5"];
    let limits = limits.map(|text| Assertion::parse(text).unwrap());
    for disorder in [&disorder, &Disorder::default()] {
        let _ = Stats::of(bytes, disorder, &Options::default());
        if let Ok(evaluation) = Evaluation::of(bytes, disorder, &limits) {
            limits.iter().for_each(|limit| _ = evaluation.verdict(limit));
        }
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
