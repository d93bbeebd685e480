mod selected;

use super::*;
use proptest::strategy::Strategy as _;
use trace_format::argument::{Argument, ArgumentValue, Arguments as Given};
use trace_format::blob::Blob;
use trace_format::event::Scope;
use trace_format::initialization::Initialization;
use trace_format::loss::{LedgerRecord, LossCode};
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::{Scheduling, ThreadState};
use trace_format::sink::Sink;
use trace_format::units::{Koid, ProcessKoid, ThreadKoid, Ticks, TicksPerSecond};

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// An archive that is written record by record.
struct Archive(Vec<u64>);

impl Sink for Archive {
    fn word(&mut self, word: u64) {
        self.0.push(word);
    }
}

impl Archive {
    /// Provider 1 with nanoseconds.
    fn new() -> Self {
        let mut archive = Self(Vec::new());
        archive.write(Record::Metadata(Metadata::TraceInfoMagic));
        archive.provider(1);
        archive
    }

    fn write(&mut self, record: Record<'_>) -> u64 {
        let offset = self.0.len() as u64 * 8;
        record.encode(self).unwrap();
        offset
    }

    fn provider(&mut self, id: u32) {
        self.write(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(id), name: b"app" }));
        let ticks_per_second = TicksPerSecond::NANOSECONDS;
        self.write(Record::Initialization(Initialization { ticks_per_second }));
    }

    /// An event of a thread of process 5; where it stands.
    fn event(&mut self, thread: u64, timestamp: u64, kind: EventKind) -> u64 {
        self.event_of(5, thread, timestamp, kind, &[])
    }

    fn event_of(
        &mut self,
        process: u64,
        thread: u64,
        timestamp: u64,
        kind: EventKind,
        arguments: &[Argument<'_>],
    ) -> u64 {
        let arguments = Given::from_slice(arguments);
        let thread =
            ThreadRef::Inline { process: ProcessKoid(Koid(process)), thread: ThreadKoid(Koid(thread)) };
        let (category, name) = (StringRef::inline("cat"), StringRef::inline("name"));
        let timestamp = Ticks(timestamp);
        let event = trace_format::event::Event { timestamp, thread, category, name, kind, arguments };
        self.write(Record::Event(event))
    }

    /// An event whose category has the same name, of a thread of process 5.
    fn named(&mut self, name: &str, thread: u64, timestamp: u64, kind: EventKind) -> u64 {
        self.of(name, name, thread, timestamp, kind)
    }

    /// An event of category and name, of a thread of process 5.
    fn of(&mut self, category: &str, name: &str, thread: u64, timestamp: u64, kind: EventKind) -> u64 {
        let thread = ThreadRef::Inline { process: ProcessKoid(Koid(5)), thread: ThreadKoid(Koid(thread)) };
        let (category, name) = (StringRef::inline(category), StringRef::inline(name));
        let (timestamp, arguments) = (Ticks(timestamp), Given::from_slice(&[]));
        let event = trace_format::event::Event { timestamp, thread, category, name, kind, arguments };
        self.write(Record::Event(event))
    }

    fn report(&self) -> Report {
        let trace = bytes(&self.0);
        let report = check_slice(&trace, Limits::default()).unwrap();
        let disorder = Disorder::find(&trace[..]).unwrap();
        let streamed = check(&trace[..], Limits::default(), &disorder).unwrap();
        assert_eq!((&report.problems, &report.remarks), (&streamed.problems, &streamed.remarks));
        report
    }

    /// Kind, count and first offset of each problem.
    fn problems(&self) -> Vec<(&'static str, u64, u64)> {
        let problems = self.report().problems;
        for problem in &problems {
            assert!(KINDS.contains(&problem.kind), "{}", problem.kind);
        }
        problems.iter().map(|problem| (problem.kind, problem.count, problem.first[0].offset.0)).collect()
    }
}

#[test]
fn a_sound_trace_is_clean() {
    let mut archive = Archive::new();
    archive.event(7, 1000, complete(5000));
    let report = archive.report();
    assert_eq!(report.problems, []);
    assert_eq!((report.bytes, report.records, report.events), (96, 4, 1));
    let times = Some((Nanos(1000), Nanos(5000)));
    assert_eq!(report.times, times);
    let none =
        Provider { id: ProviderId(0), name: String::new(), records: 1, events: 0, times: None, rate: None };
    let app = Provider {
        id: ProviderId(1),
        name: "app".to_owned(),
        records: 3,
        events: 1,
        times,
        rate: Some(TicksPerSecond::NANOSECONDS),
    };
    assert_eq!(report.providers, [none, app]);
    assert!(report.error.is_none());
}

#[test]
//= docs/check.md#problems
fn durations_are_matched_by_thread() {
    let mut archive = Archive::new();
    let unmatched = archive.event(1, 10, EventKind::DurationBegin);
    archive.event(1, 11, EventKind::DurationBegin);
    archive.event(2, 12, EventKind::DurationBegin);
    archive.event(1, 13, EventKind::DurationEnd);
    let end = archive.event(2, 5, EventKind::DurationEnd);
    archive.event(2, 15, EventKind::DurationEnd);
    assert_eq!(archive.problems(), [("unmatched-begin", 1, unmatched), ("unmatched-end", 1, end)]);
    let report = archive.report();
    assert_eq!(report.problems[0].first[0].text, "a begin on thread 5/1 that has no end");
    assert_eq!(report.problems[1].first[0].text, "end of \"name\" on thread 5/2, which has nothing to end");
}

#[test]
//= docs/check.md#order
fn durations_are_matched_in_the_order_of_time() {
    let mut archive = Archive::new();
    // An outer call behind its inner one, as decoders write them, and an end at the time of a begin.
    archive.event(1, 20, EventKind::DurationBegin);
    archive.event(1, 30, EventKind::DurationEnd);
    archive.event(1, 40, EventKind::DurationEnd);
    archive.event(1, 10, EventKind::DurationBegin);
    archive.event(1, 30, EventKind::DurationBegin);
    archive.event(1, 35, EventKind::DurationEnd);
    assert_eq!(archive.problems(), []);
    let unmatched = archive.event(1, 5, EventKind::DurationEnd);
    assert_eq!(archive.problems(), [("unmatched-end", 1, unmatched)]);
}

#[test]
//= docs/check.md#remarks
fn an_operation_may_end_in_another_process() {
    let mut archive = Archive::new();
    archive.event_of(6, 1, 10, EventKind::AsyncBegin { id: 1 }, &[]);
    archive.event_of(6, 1, 11, EventKind::AsyncBegin { id: 1 }, &[]);
    archive.event_of(7, 1, 12, EventKind::AsyncInstant { id: 1 }, &[]);
    let end = archive.event_of(7, 1, 20, EventKind::AsyncEnd { id: 1 }, &[]);
    // The second of its two.
    archive.event_of(8, 1, 20, EventKind::AsyncEnd { id: 1 }, &[]);
    let unmatched = archive.event_of(8, 1, 21, EventKind::AsyncEnd { id: 1 }, &[]);
    let report = archive.report();
    assert_eq!(archive.problems(), [("unmatched-async-end", 1, unmatched)]);
    let remark = &report.remarks[0];
    assert_eq!((remark.kind, remark.count, remark.first[0].offset.0), ("crossing-async", 2, end));
    assert_eq!(remark.first[0].text, "id 0x1 was begun in process 6 and ended in process 7");
}

#[test]
//= docs/check.md#problems
fn flows_are_joined_by_their_ids_and_may_end_more_than_once() {
    let mut archive = Archive::new();
    archive.named("one", 1, 10, EventKind::FlowBegin { id: 1 });
    archive.named("two", 2, 11, EventKind::FlowStep { id: 1 });
    archive.named("three", 3, 12, EventKind::FlowEnd { id: 1 });
    archive.named("four", 4, 13, EventKind::FlowEnd { id: 1 });
    // The same id again, whose end stands first.
    archive.named("five", 4, 23, EventKind::FlowEnd { id: 1 });
    archive.named("six", 1, 20, EventKind::FlowBegin { id: 1 });
    assert_eq!(archive.problems(), []);
}

#[test]
//= docs/check.md#problems
fn operations_are_matched_by_process_and_flows_across() {
    let mut archive = Archive::new();
    // Process 6 has an operation of the same name and id, whose end stands before its begin; so does a flow
    // from process 6 to process 5.
    archive.event(1, 10, EventKind::AsyncBegin { id: 1 });
    archive.event_of(6, 1, 20, EventKind::AsyncEnd { id: 1 }, &[]);
    archive.event(1, 11, EventKind::AsyncInstant { id: 1 });
    archive.event(2, 12, EventKind::AsyncEnd { id: 1 });
    archive.event_of(6, 1, 13, EventKind::AsyncBegin { id: 1 }, &[]);
    archive.event(1, 30, EventKind::FlowEnd { id: 9 });
    archive.event_of(6, 1, 29, EventKind::FlowBegin { id: 9 }, &[]);
    // Steps behind both ends.
    archive.event_of(7, 1, 29, EventKind::FlowStep { id: 9 }, &[]);
    archive.event(3, 11, EventKind::AsyncInstant { id: 1 });
    assert_eq!(archive.problems(), []);
    // An instant needs no operation.
    archive.event(1, 100, EventKind::AsyncInstant { id: 3 });
    // The same, and no partner for any.
    let mut expected = Vec::new();
    for (kind, name) in [
        (EventKind::AsyncBegin { id: 2 }, "unmatched-async-begin"),
        (EventKind::AsyncEnd { id: 4 }, "unmatched-async-end"),
        (EventKind::FlowBegin { id: 2 }, "unmatched-flow-begin"),
        (EventKind::FlowStep { id: 3 }, "unmatched-flow-step"),
        (EventKind::FlowEnd { id: 4 }, "unmatched-flow-end"),
    ] {
        let offset = archive.event(1, 100, kind);
        archive.event(1, 101, kind);
        expected.push((name, 2, offset));
    }
    assert_eq!(archive.problems(), expected);
    let texts: Vec<_> =
        archive.report().problems.iter().map(|problem| problem.first[0].text.clone()).collect();
    assert_eq!(texts[0], "id 0x2 has no end");
    assert_eq!(texts[1], "end of \"name\" with id 0x4, which has nothing to end");
    assert_eq!(texts[3..], ["id 0x3 was not begun", "id 0x4 was not begun"]);
}

#[test]
//= docs/check.md#problems
fn so_many_open_spans_are_not_matched_any_more() {
    let mut archive = Archive::new();
    archive.event(1, 10, EventKind::DurationEnd);
    let mut last = 0;
    for time in 0..100 {
        last = archive.event(1, 20 + time, EventKind::FlowBegin { id: time });
    }
    let trace = bytes(&archive.0);
    let report = check_slice(&trace, Limits { open_spans: 99, ..Limits::default() }).unwrap();
    let kinds: Vec<_> = report.problems.iter().map(|problem| (problem.kind, problem.count)).collect();
    assert_eq!(kinds, [("unmatched-end", 1), ("spans-full", 1)]);
    assert_eq!(report.problems[1].first[0].offset, Offset(last));
    let report = check_slice(&trace, Limits { open_spans: 100, ..Limits::default() }).unwrap();
    let kinds: Vec<_> = report.problems.iter().map(|problem| (problem.kind, problem.count)).collect();
    assert_eq!(kinds, [("unmatched-end", 1), ("unmatched-flow-begin", 100)]);
    assert_eq!(report.problems[1].first.len(), MAX_KEPT);
}

#[test]
//= docs/meaning.md#bounds
fn so_many_open_operations_of_one_id_are_not_matched_any_more() {
    let most = trace_model::MAX_OPEN_OF_ID as u64;
    let problems = |count| {
        let mut archive = Archive::new();
        (0..count).for_each(|time| _ = archive.event(1, time, EventKind::AsyncBegin { id: 7 }));
        archive.report().problems
    };
    let [problem] = &problems(most)[..] else { panic!("one kind") };
    assert_eq!((problem.kind, problem.count), ("unmatched-async-begin", most));
    let [problem] = &problems(most + 1)[..] else { panic!("one kind") };
    assert_eq!((problem.kind, problem.count), ("spans-full", 1));
    let text = "more than 10000 operations with one id are open at a time: from here on they are not matched";
    assert_eq!(problem.first[0].text, text);
}

#[test]
//= docs/check.md#problems
fn losses_and_provider_events_are_problems() {
    let mut archive = Archive::new();
    let event = archive.write(Record::Metadata(Metadata::ProviderEvent { id: ProviderId(1), event: 0 }));
    let loss = LossRecord {
        provider: ProviderId(1),
        reason: LossCode::MALFORMED,
        count: 7,
        first: Ticks(1),
        last: Ticks(2),
    };
    let blob = archive.write(Record::Blob(LossRecord::blob(&loss.to_bytes())));
    // A payload of another version is a blob, and so is one with another name.
    let mut later = loss.to_bytes();
    later[0] = 2;
    archive.write(Record::Blob(LossRecord::blob(&later)));
    archive
        .write(Record::Blob(Blob { name: StringRef::inline("other"), ..LossRecord::blob(&loss.to_bytes()) }));
    assert_eq!(archive.problems(), [("provider-event", 1, event), ("loss", 1, blob)]);
    let report = archive.report();
    assert_eq!(report.losses, [loss]);
    assert_eq!(report.problems[0].first[0].text, "program 1 has lost records; its losses say why");
    assert_eq!(report.problems[1].first[0].text, "program 1 lost 7 records: malformed");
}

#[test]
//= docs/format.md#ledger-blob
fn what_was_generated_is_there_or_was_lost() {
    // An initialization record and two events; five were generated, of which two are missing for a reason.
    let scene = |generated, archived, records, uncertain| {
        let mut archive = Archive::new();
        archive.event(1, 10, EventKind::Instant { scope: Scope::Thread });
        archive.event(1, 11, EventKind::Instant { scope: Scope::Thread });
        let provider = ProviderId(1);
        let (first, last) = (Ticks(1), Ticks(2));
        let loss = LossRecord { provider, reason: LossCode::MALFORMED, count: 3, first, last };
        archive.write(Record::Blob(LossRecord::blob(&loss.to_bytes())));
        let ledger = LedgerRecord { provider, generated, archived, records, uncertain };
        let place = archive.write(Record::Blob(LedgerRecord::blob(&ledger.to_bytes())));
        let mut problems = archive.problems();
        problems.retain(|(kind, ..)| *kind == "unbalanced");
        assert!(problems.iter().all(|(_, _, offset)| *offset == place));
        let report = archive.report();
        let texts = report.problems.iter().filter(|problem| problem.kind == "unbalanced");
        texts.flat_map(|problem| problem.first.iter().map(|found| found.text.clone())).collect::<Vec<_>>()
    };
    assert_eq!(scene(5, 2, 3, 0), [""; 0]);
    assert_eq!(scene(6, 2, 3, 1), [""; 0]);
    assert_eq!(scene(6, 2, 3, 0), ["6 records were generated, 2 are archived and 3 lost"]);
    assert_eq!(scene(4, 2, 3, 0), ["4 records were generated, 2 are archived and 3 lost"]);
    assert_eq!(scene(5, 2, 4, 0), ["3 records up to here, of 4 that were archived"]);
}

#[test]
//= docs/check.md#problems
fn counters_need_numbers_and_times_need_sense() {
    let day = 24 * 3600 * 1_000_000_000;
    let mut archive = Archive::new();
    let argument = |value| [Argument { name: StringRef::inline("n"), value }];
    archive.event_of(5, 1, 10 * day, EventKind::Counter { id: 0 }, &argument(ArgumentValue::Int32(1)));
    let text = argument(ArgumentValue::String(StringRef::inline("1")));
    let counter = archive.event_of(5, 1, 11 * day, EventKind::Counter { id: 0 }, &text);
    archive.event(1, 0, EventKind::Instant { scope: Scope::Global });
    archive.event(1, 40 * day, EventKind::Instant { scope: Scope::Thread });
    let late = archive.event(1, 40 * day + 1, EventKind::Instant { scope: Scope::Thread });
    let never = archive.event(1, 1 << 63, EventKind::Instant { scope: Scope::Thread });
    let expected =
        [("empty-counter", 1, counter), ("time-outlier", 1, late), ("time-out-of-range", 1, never)];
    assert_eq!(archive.problems(), expected);
    assert_eq!(archive.report().times, Some((Nanos(0), Nanos(40 * day))));
}

#[test]
//= docs/check.md#problems
fn what_a_strict_reader_finds_is_a_problem() {
    let mut archive = Archive::new();
    archive.write(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(2), name: b"\xff" }));
    let first = archive.event(1, 10, EventKind::Instant { scope: Scope::Thread });
    archive.event(1, 11, EventKind::Instant { scope: Scope::Thread });
    archive.0.push(0);
    let malformed = archive.0.len() as u64 * 8;
    archive.0.push(0x11);
    archive.0.push(0x21);
    let expected = [
        ("not-utf8", 1, 40),
        ("zero-words", 1, malformed - 8),
        ("malformed", 1, malformed),
        ("truncated", 1, malformed + 8),
    ];
    assert_eq!(archive.problems(), expected);
    let report = archive.report();
    assert_eq!(report.records, 7);
    // Once for a provider.
    let remark = &report.remarks[0];
    assert_eq!((remark.kind, remark.count, remark.first[0].offset.0), ("no-rate", 1, first));
}

#[test]
//= docs/check.md#problems
fn a_lost_position_is_a_problem_and_bad_data_an_error() {
    let mut archive = Archive::new();
    let lost = archive.0.len() as u64 * 8;
    archive.0.extend([0x4, 1, 2]);
    assert_eq!(archive.problems(), [("lost", 1, lost)]);
    let trace = bytes(&archive.0);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &trace).unwrap();
    let gzip = gzip.finish().unwrap();
    let report = check(&gzip[..gzip.len() - 1], Limits::default(), &Disorder::default()).unwrap();
    assert_eq!(report.records, 3);
    assert!(matches!(report.error, Some(ReadError::Io { .. })));
    assert!(check(&b"no trace"[..], Limits::default(), &Disorder::default()).is_err());
}

/// Context switches on one processor: a time, the thread that stops running, and the one that begins.
fn switches(archive: &mut Archive, switches: &[(u64, u64, u64)]) {
    for &(timestamp, outgoing, incoming) in switches {
        let koid = |number| ThreadKoid(Koid(number));
        archive.write(Record::Scheduling(Scheduling::ContextSwitch {
            timestamp: Ticks(timestamp),
            cpu: 0,
            outgoing_state: ThreadState::BLOCKED,
            outgoing: koid(outgoing),
            incoming: koid(incoming),
            arguments: Given::from_slice(&[]),
        }));
    }
}

/// Provider 1 records context switches: thread 7 runs from 100 to 200, and is idle else.
#[test]
//= docs/check.md#clocks
fn only_what_a_thread_does_itself_is_judged_by_when_it_ran() {
    let mut archive = Archive::new();
    switches(&mut archive, &[(50, 1, 0), (100, 0, 7), (200, 7, 0), (400, 0, 1)]);
    let instant = |scope| EventKind::Instant { scope };
    let operations =
        [EventKind::AsyncBegin { id: 3 }, EventKind::AsyncInstant { id: 3 }, EventKind::AsyncEnd { id: 3 }];
    let of_processes = [EventKind::Counter { id: 0 }, instant(Scope::Process), instant(Scope::Global)];
    let all = of_processes.into_iter().chain(operations).chain([instant(Scope::Thread)]);
    for provider in [1, 2] {
        archive.provider(provider);
        all.clone().for_each(|kind| _ = archive.event(7, 150, kind));
        of_processes.iter().for_each(|kind| _ = archive.event(7, 300, *kind));
    }
    // Operations of others, which the provider of context switches has been asked to record.
    archive.provider(1);
    operations.iter().for_each(|kind| _ = archive.event(7, 300, *kind));
    let limits = Limits { clock_times: 1000, ..Limits::default() };
    let clocks = |archive: &Archive| -> Vec<_> {
        let clocks = check_slice(&bytes(&archive.0), limits).unwrap().clocks.into_iter();
        clocks.map(|(id, clock)| (id.0, clock.judged, clock.outside)).collect()
    };
    assert_eq!(clocks(&archive), [(1, 1, 0), (2, 4, 0)]);
    archive.provider(2);
    operations.iter().for_each(|kind| _ = archive.event(7, 300, *kind));
    assert_eq!(clocks(&archive), [(1, 1, 0), (2, 7, 3)]);
}

fn complete(end: u64) -> EventKind {
    EventKind::DurationComplete { end: Ticks(end) }
}

#[test]
//= docs/check.md#overlapping-durations
fn durations_that_overlap_are_found() {
    let mut archive = Archive::new();
    // In the order of their ends, as a program writes them: two siblings in a parent, and one beside it.
    for (begin, end) in [(10, 20), (20, 30), (5, 30), (30, 40)] {
        archive.event(1, begin, complete(end));
    }
    assert_eq!(archive.problems(), []);
    // Each overlaps the one before.
    let overlapping = archive.event(1, 35, complete(60));
    archive.event(1, 50, complete(70));
    archive.event(2, 35, complete(60));
    assert_eq!(archive.problems(), [(OVERLAPPING, 2, overlapping)]);
    let text = &archive.report().problems[0].first[0].text;
    let expected = "\"name\" on thread 5/1, 35 ns to 60 ns, begins in another duration and ends after it";
    assert_eq!(text, expected);
}

/// A file that has the outer ones first, and one in no order at all.
#[test]
fn durations_that_overlap_are_found_in_any_order() {
    for (order, expected) in [
        (&[(0, 100), (0, 50), (10, 20), (30, 120), (60, 70)][..], 3),
        (&[(60, 70), (30, 120), (10, 20), (0, 50), (0, 100)], 1),
        (&[(60, 70), (10, 20), (0, 100), (0, 50)], usize::MAX),
        (&[(10, 17), (8, 17), (8, 12)], 0),
        (&[(9, 14), (12, 18), (8, 18), (34, 35)], 1),
        (&[(8, 18), (9, 14), (12, 18), (34, 35)], 2),
    ] {
        let mut archive = Archive::new();
        let offsets: Vec<_> =
            order.iter().map(|(begin, end)| archive.event(1, *begin, complete(*end))).collect();
        let found: Vec<_> =
            offsets.get(expected).map(|offset| (OVERLAPPING, 1, *offset)).into_iter().collect();
        assert_eq!(archive.problems(), found, "{order:?}");
    }
}

#[test]
fn begins_and_ends_overlap_too() {
    let mut archive = Archive::new();
    // A complete one that ends after what it began in.
    archive.named("a", 3, 10, EventKind::DurationBegin);
    archive.named("a", 3, 20, EventKind::DurationEnd);
    let late = archive.event(3, 15, complete(25));
    assert_eq!(archive.problems(), [(OVERLAPPING, 1, late)]);
}

impl Archive {
    /// Kind, count and first offset of each remark.
    fn remarks(&self) -> Vec<(&'static str, u64, u64)> {
        let remarks = self.report().remarks.into_iter();
        remarks.map(|remark| (remark.kind, remark.count, remark.first[0].offset.0)).collect()
    }
}

//= docs/meaning.md#which-begin-an-end-belongs-to
#[test]
//= docs/check.md#remarks
fn an_end_of_another_name_or_category_is_a_remark() {
    let mut archive = Archive::new();
    archive.named("outer", 1, 10, EventKind::DurationBegin);
    archive.named("inner", 1, 20, EventKind::DurationBegin);
    let crossed = archive.named("outer", 1, 30, EventKind::DurationEnd);
    archive.named("inner", 1, 40, EventKind::DurationEnd);
    // An end may have neither, but not another name.
    archive.named("a", 2, 10, EventKind::DurationBegin);
    archive.named("b", 2, 20, EventKind::DurationBegin);
    archive.named("", 2, 30, EventKind::DurationEnd);
    archive.named("c", 2, 40, EventKind::DurationEnd);
    // The category alone differs, and what has to be sorted is compared, too.
    archive.of("x", "name", 3, 20, EventKind::DurationEnd);
    archive.of("y", "name", 3, 10, EventKind::DurationBegin);
    archive.of("x", "name", 3, 30, EventKind::DurationBegin);
    archive.of("x", "name", 3, 40, EventKind::DurationEnd);
    assert_eq!((archive.problems(), archive.remarks()), (vec![], vec![("mismatched-end", 4, crossed)]));
    let text = &archive.report().remarks[0].first[0].text;
    let expected = "end of \"outer\" on thread 5/1, where what began last has another name or category";
    assert_eq!(text, expected);
}

#[test]
//= docs/check.md#remarks
fn an_operation_may_end_by_another_name() {
    let (begin, end) = (EventKind::AsyncBegin { id: 1 }, EventKind::AsyncEnd { id: 1 });
    let mut archive = Archive::new();
    archive.of("cat", "a", 1, 10, begin);
    archive.of("cat", "b", 1, 11, begin);
    archive.of("cat", "a", 2, 12, end);
    let mismatched = archive.of("cat", "c", 2, 13, end);
    // Of another category, and without a name.
    archive.of("other", "a", 1, 20, begin);
    archive.of("other", "", 1, 30, end);
    assert_eq!(archive.problems(), []);
    assert_eq!(archive.remarks(), [("mismatched-async-end", 1, mismatched)]);
    let text = &archive.report().remarks[0].first[0].text;
    assert_eq!(text, "end of \"c\" with id 0x1, which was begun by another name");
}

#[test]
//= docs/check.md#order
fn operations_are_matched_in_the_order_of_time() {
    let (begin, end) = (EventKind::AsyncBegin { id: 1 }, EventKind::AsyncEnd { id: 1 });
    let mut archive = Archive::new();
    // The second one begins while the first is open, although it stands behind it.
    archive.of("cat", "a", 1, 0, begin);
    archive.of("cat", "b", 1, 40, end);
    archive.of("cat", "b", 2, 20, begin);
    archive.of("cat", "a", 2, 50, end);
    assert_eq!((archive.problems(), archive.remarks()), (vec![], vec![]));
    // In the order of time, the end comes first.
    let alone = archive.of("cat", "a", 2, 60, end);
    let open = archive.of("cat", "a", 2, 70, begin);
    let expected = [("unmatched-async-end", 1, alone), ("unmatched-async-begin", 1, open)];
    assert_eq!(archive.problems(), expected);
}

/// However deep a file nests its durations, each is compared with a bounded number of others.
#[test]
fn deep_durations_are_compared_with_the_innermost() {
    const DEPTH: u64 = 60_000;
    let mut together = Archive::new();
    let mut named = Archive::new();
    (1..DEPTH).for_each(|end| _ = together.event(1, 10, complete(10 + end)));
    together.event(1, 5, complete(9));
    assert_eq!(together.problems(), []);
    (0..DEPTH).for_each(|begin| _ = named.named("a", 1, begin, EventKind::DurationBegin));
    (0..DEPTH).for_each(|end| _ = named.named("b", 1, DEPTH + end, EventKind::DurationEnd));
    assert_eq!(named.problems(), []);
}

proptest::proptest! {
    /// In whatever order a file has them, the same durations are found.
    #[test]
    fn all_overlaps_are_found_in_all_orders(
        mut durations in proptest::collection::hash_set((0_u64..40, 1_u64..12), 0..20)
            .prop_map(|set| set.into_iter().map(|(begin, length)| (begin, begin + length)).collect::<Vec<_>>())
            .prop_shuffle(),
    ) {
        let count = |durations: &[(u64, u64)]| {
            let mut archive = Archive::new();
            durations.iter().for_each(|(begin, end)| _ = archive.event(1, *begin, complete(*end)));
            archive.problems().first().map_or(0, |(_, count, _)| *count)
        };
        let shuffled = count(&durations);
        durations.sort_by_key(|(begin, end)| (*begin, std::cmp::Reverse(*end)));
        let overlaps = |(begin, end): &&(u64, u64)| {
            durations.iter().any(|other| other.0 < *begin && *begin < other.1 && other.1 < *end)
        };
        let expected = durations.iter().filter(overlaps).count() as u64;
        proptest::prop_assert_eq!(shuffled, expected);
        proptest::prop_assert_eq!(count(&durations), expected);
        durations.sort_by_key(|(begin, end)| (*end, std::cmp::Reverse(*begin)));
        proptest::prop_assert_eq!(count(&durations), expected);
    }
}

#[test]
//= docs/check.md#problems
fn every_kind_is_described() {
    let page = include_str!("../../../../docs/check.md");
    for kind in KINDS {
        assert!(page.contains(&format!("`{kind}`")), "{kind} is not in docs/check.md");
    }
    assert!(KINDS.is_sorted());
}
