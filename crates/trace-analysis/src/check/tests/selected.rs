//! Problems of what is selected.

use super::*;
use trace_format::loss::LossRecord;
use trace_format::scopes;
use trace_model::selection::Moment;
use trace_model::{Choice, Selection, Survey};

/// Kinds whose problems are of an event or a span.
const OF_EVENTS: [&str; 16] = [
    "crossing-async",
    "empty-counter",
    "end-before-begin",
    "mismatched-async-end",
    "mismatched-end",
    "open-scope",
    "overlapping-durations",
    "time-outlier",
    "unmatched-async-begin",
    "unmatched-async-end",
    "unmatched-begin",
    "unmatched-end",
    "unmatched-flow-begin",
    "unmatched-flow-end",
    "unmatched-flow-step",
    "clock-skew",
];

/// The places of problems and remarks, by kind; each has as many as it counts.
fn found(archive: &Archive, selection: &Selection) -> BTreeMap<&'static str, Vec<u64>> {
    let trace = bytes(&archive.0);
    let (disorder, survey) = Survey::find(&trace[..]).unwrap();
    let chosen = selection.choose(survey).unwrap();
    assert_eq!(chosen.is_none(), selection.is_all());
    let limits = Limits { clock_times: 1000, ..Limits::default() };
    let report = check_chosen(&trace[..], limits, &disorder, chosen.as_ref()).unwrap();
    let all = report.problems.into_iter().chain(report.remarks);
    all.map(|problem| {
        let places: Vec<u64> = problem.first.iter().map(|finding| finding.offset.0).collect();
        assert_eq!(places.len() as u64, problem.count, "{}", problem.kind);
        (problem.kind, places)
    })
    .collect()
}

fn of_thread(thread: &str) -> Selection {
    Selection { threads: Choice::of([thread]), ..Selection::default() }
}

/// Each problem of an event once, on one thread of a provider.
fn problems_of(archive: &mut Archive, thread: u64) {
    let at = |place: u64| thread * 1000 + place;
    let mut event = |place, kind| _ = archive.event(thread, at(place), kind);
    event(0, EventKind::DurationEnd);
    event(10, complete(at(30)));
    event(20, complete(at(40)));
    event(50, complete(at(45)));
    event(61, EventKind::AsyncEnd { id: thread });
    event(62, EventKind::AsyncBegin { id: 20 + thread });
    event(63, EventKind::AsyncBegin { id: 30 + thread });
    event(64, EventKind::FlowBegin { id: 100 + thread });
    event(65, EventKind::FlowStep { id: 200 + thread });
    event(66, EventKind::FlowEnd { id: 300 + thread });
    event(67, EventKind::Counter { id: 0 });
    archive.event_of(6, 60, at(68), EventKind::AsyncEnd { id: 20 + thread }, &[]);
    archive.of("cat", "one", thread, at(70), EventKind::AsyncBegin { id: 40 + thread });
    archive.of("cat", "two", thread, at(71), EventKind::AsyncEnd { id: 40 + thread });
    archive.of("cat", "one", thread, at(72), EventKind::DurationBegin);
    archive.of("cat", "two", thread, at(73), EventKind::DurationEnd);
    let why = StringRef::inline(scopes::END_ARGUMENT);
    let ending =
        Argument { name: why, value: ArgumentValue::String(StringRef::inline(scopes::Ending::Death.text())) };
    archive.event_of(5, thread, at(80), EventKind::DurationBegin, &[ending]);
    archive.event(thread, at(90), EventKind::DurationBegin);
    archive.event(
        thread,
        40 * 24 * 3600 * 1_000_000_000 + thread,
        EventKind::Instant { scope: Scope::Thread },
    );
}

//= docs/check.md#a-part-of-a-trace
#[test]
fn problems_of_events_count_where_they_are_selected_and_others_always() {
    let mut archive = Archive::new();
    for thread in [1, 2] {
        archive.provider(thread);
        problems_of(&mut archive, u64::from(thread));
    }
    // The threads run before and after their events.
    switches(&mut archive, &[(1, 0, 1), (2, 1, 2), (3, 2, 0), (9000, 0, 3)]);
    let loss = LossRecord {
        provider: ProviderId(2),
        reason: LossCode(0),
        count: 7,
        first: Ticks(1),
        last: Ticks(2),
    };
    archive.write(Record::Blob(LossRecord::blob(&loss.to_bytes())));
    archive.write(Record::Metadata(Metadata::ProviderSection { id: ProviderId(77) }));
    archive.0.extend([0, 0x11, 0x21]);
    let of_file = ["loss", "malformed", "truncated", "unknown-provider", "zero-words"];
    let mut expected: Vec<&str> = OF_EVENTS.into_iter().chain(of_file).collect();
    expected.sort_unstable();
    let whole = found(&archive, &Selection::default());
    assert_eq!(whole.keys().copied().collect::<Vec<_>>(), expected);
    let [one, two] = ["1", "2"].map(|thread| found(&archive, &of_thread(thread)));
    for (kind, places) in &whole {
        if of_file.contains(kind) {
            assert_eq!([&one[kind], &two[kind]], [places; 2], "{kind}");
        } else {
            assert_eq!([&one[kind][..], &two[kind][..]], [&places[..1], &places[1..]], "{kind}");
            assert_eq!((places.len(), one[kind].len()), (2, 1), "{kind}");
        }
    }
    let none = found(&archive, &of_thread("99"));
    assert_eq!(none.keys().copied().collect::<Vec<_>>(), of_file);
}

//= docs/check.md#a-part-of-a-trace
#[test]
fn a_span_is_selected_by_its_begin_in_whichever_order_it_is_found() {
    // Thread 1 is in order; thread 2 has everything in the reverse order.
    let events = [
        (100, "a", EventKind::DurationBegin),
        (200, "b", EventKind::DurationEnd),
        (300, "a", complete(500)),
        (400, "b", complete(600)),
        (700, "b", EventKind::DurationBegin),
        (710, "a", EventKind::DurationBegin),
    ];
    let mut archive = Archive::new();
    let mut places: Vec<[u64; 6]> = vec![events.map(|(at, name, kind)| archive.of("c", name, 1, at, kind))];
    let mut reversed = events;
    reversed.reverse();
    let mut of_two = reversed.map(|(at, name, kind)| archive.of("c", name, 2, at, kind));
    of_two.reverse();
    places.push(of_two);
    // By thread, the places of the events that problems are at.
    let at = |event: usize| -> Vec<u64> { places.iter().map(|of| of[event]).collect() };
    let both = |events: [usize; 2]| -> Vec<u64> {
        let mut all: Vec<u64> = events.into_iter().flat_map(at).collect();
        all.sort_unstable();
        all
    };
    let (mismatched, overlapping, open) = ("mismatched-end", "overlapping-durations", "unmatched-begin");
    let until = |to| Selection { to: Some(Moment::At(to)), ..Selection::default() };
    let since = |from| Selection { from: Some(Moment::At(from)), ..Selection::default() };
    let named = |name| Selection { names: Choice::of([name]), ..Selection::default() };
    let all = [(mismatched, at(1)), (overlapping, at(3)), (open, both([4, 5]))];
    for (selection, expected) in [
        (Selection::default(), all.to_vec()),
        // The end is behind the time, and its begin is not.
        (until(150), vec![(mismatched, at(1))]),
        (since(150), all[1..].to_vec()),
        (since(350), all[1..].to_vec()),
        (until(350), vec![(mismatched, at(1))]),
        (since(705), vec![(open, at(5))]),
        (named("a"), vec![(mismatched, at(1)), (open, at(5))]),
        (named("b"), vec![(overlapping, at(3)), (open, at(4))]),
    ] {
        assert_eq!(found(&archive, &selection), BTreeMap::from_iter(expected), "{selection:?}");
    }
}
