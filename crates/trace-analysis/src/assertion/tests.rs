use super::evaluate::{Evaluation, Verdict};
use super::*;
use crate::testing::{Archive, INSTANT};
use proptest::collection::vec;
use proptest::prelude::*;
use trace_format::argument::ArgumentValue;
use trace_format::event::EventKind;
use trace_reader::Disorder;

fn of(text: &str) -> Assertion {
    Assertion::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn shown(text: &str) -> String {
    of(text).to_string()
}

//= docs/stats.md#assertions
#[test]
fn texts_become_assertions() {
    for (text, expected) in [
        ("p99(render:frame)<16ms", "p99(render:frame) < 16ms"),
        ("lost==0", "lost == 0"),
        ("lost( app* ) == 0 # none", "lost(app*) == 0"),
        ("errors == 0", "errors == 0"),
        ("max( gap(frame) ) < 50 ms", "max(gap(frame)) < 50ms"),
        ("p99.9(self(a)) <= 1.5µs", "p99.9(self(a)) <= 1.5us"),
        ("mean(counter(cpu.user)) < 50%", "mean(counter(cpu.user)) < 50%"),
        ("max(counter(m:heap)) < 2MiB", "max(counter(m:heap)) < 2MiB"),
        ("min(counter(x)) > -5", "min(counter(x)) > -5"),
        ("count(kernel:sched:wake) > 1", "count(\"kernel:sched\":wake) > 1"),
        ("count(app:Pool::run) > 1", "count(app:\"Pool::run\") > 1"),
        ("count(Pool::run) > 1", "count(\"Pool::run\") > 1"),
        ("count(\"a b\":\"c (d)*\"*) > 1", "count(\"a b\":\"c (d)*\"*) > 1"),
        ("count(gap) > 1", "count(gap) > 1"),
        ("count(a)>1 and count(b)>1 or lost==0", "(count(a) > 1 and count(b) > 1) or lost == 0"),
        ("count(a)>1 and (count(b)>1 or lost==0)", "count(a) > 1 and (count(b) > 1 or lost == 0)"),
    ] {
        assert_eq!(shown(text), expected);
        assert_eq!(of(expected), of(text), "{text}");
    }
    let colon = of("count(app:Pool::run) > 1");
    let Assertion::Comparison(Comparison { value: Value::Of(_, source), .. }) = colon else { panic!() };
    assert!(source.selector().matches("app", "Pool::run"));
}

//= docs/stats.md#assertions
#[test]
fn what_is_wrong_is_shown_with_its_place() {
    for (text, column, expected, found) in [
        ("", 1, "count, sum, min, max, mean, rate, a percentile such as p99, lost or errors", "the end"),
        ("p0.99(a) < 1ms", 1, "a percentile from p1 to p100", "\"p0.99\""),
        (
            "median(a) < 1ms",
            1,
            "count, sum, min, max, mean, rate, a percentile such as p99, lost or errors",
            "\"median\"",
        ),
        ("p99(render:frame < 16ms", 18, "\")\"", "\"<\""),
        ("p99(a) 16ms", 8, "<, <=, >, >=, == or !=", "\"16ms\""),
        ("p99(a) = 16ms", 8, "<, <=, >, >=, == or !=", "\"=\""),
        ("p99(a) < ms", 10, "a number", "\"ms\""),
        ("p99(a) < 16", 12, "a unit of time: ns, us, ms or s", "the end"),
        ("p99(a) < 16 MB", 13, "a unit of time: ns, us, ms or s", "\"MB\""),
        (
            "lost == 1234567890123456",
            9,
            "a whole number of at most 15 digits, because values are compared as doubles",
            "\"1234567890123456\"",
        ),
        ("count(a) < 16ms", 14, "no unit: this value is a plain number", "\"ms\""),
        (
            "max(counter(a)) < 16ms",
            21,
            "B, kB, MB, KiB, MiB, % or no unit: the value of a counter is no time",
            "\"ms\"",
        ),
        ("count(a) < 16 lost", 15, "and, or, or the end", "\"lost\""),
        ("count() < 16", 7, "a name", "\")\""),
        ("count(:a) < 16", 7, "a category before the colon", "\":\""),
        ("count(a:) < 16", 9, "a name behind the colon", "\")\""),
        ("count(\"a) < 16", 15, "a closing quote", "the end"),
        ("(lost == 0", 11, "\")\"", "the end"),
    ] {
        let error = Assertion::parse(text).unwrap_err();
        let got = (error.column, error.expected.as_str(), error.found.as_str());
        assert_eq!(got, (column, expected, found), "{text}");
    }
    let error = Assertion::parse_all("# none\n\nlost == 0\n\tlost <> 0\n").unwrap_err();
    assert_eq!(error.to_string(), "line 4, column 8: expected a number, found \">\"");
    assert_eq!(error.shown(), "\tlost <> 0\n\t      ^");
    assert_eq!(Assertion::parse("lost\n= 0").unwrap_err().shown(), "lost\u{fffd}= 0\n     ^");
    // Of a long line there is what is around the place.
    let long = format!("{}lost = 0{}", "(".repeat(3), " and lost == 0".repeat(100_000));
    let error = Assertion::parse(&long).unwrap_err();
    assert_eq!(error.shown(), format!("{}...\n        ^", &long[..208]));
    let long = format!("{}lost = 0", "lost == 0 and ".repeat(100_000));
    let error = Assertion::parse(&long).unwrap_err();
    assert_eq!(error.shown(), format!("...{}\n{}^", &long[error.column - 201..], " ".repeat(203)));
    let deep = "(".repeat(100_000);
    assert_eq!(Assertion::parse(&deep).unwrap_err().expected, "fewer parentheses");
    let lines = Assertion::parse_all("# none\n\nlost == 0\n errors == 0 # at all\n").unwrap();
    assert_eq!(lines.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4]);
}

fn names() -> impl Strategy<Value = Pattern> {
    let piece = prop_oneof![
        "[a-z:. \"\\\\*()µ]{1,6}".prop_map(Piece::Text),
        "[a-z]{1,6}".prop_map(Piece::Text),
        Just(Piece::Any),
    ];
    vec(piece, 0..4).prop_map(Pattern::new)
}

fn kinds() -> impl Strategy<Value = Option<Kind>> {
    prop_oneof![Just(None), proptest::sample::select(&Kind::ALL).prop_map(Some)]
}

fn sources() -> impl Strategy<Value = Source> {
    let selector = (proptest::option::of(names()), names());
    let selector = (kinds(), selector).prop_map(|(kind, (category, name))| Selector { kind, category, name });
    (selector, 0..5, names()).prop_map(|(selector, kind, series)| match kind {
        0 => Source::Events(selector),
        1 => Source::SelfTime(selector),
        2 => Source::Gap(selector),
        3 => Source::Counter(Selector { kind: None, ..selector }, None),
        _ => Source::Counter(Selector { kind: None, ..selector }, Some(series)),
    })
}

fn comparisons() -> impl Strategy<Value = Assertion> {
    let functions = prop_oneof![
        Just(Function::Count),
        Just(Function::Rate),
        Just(Function::Sum),
        Just(Function::Min),
        Just(Function::Max),
        Just(Function::Mean),
        (10..=1000_u32).prop_map(|tenths| Function::Percentile(f64::from(tenths) / 10.0)),
    ];
    let values = prop_oneof![
        8 => (functions, sources()).prop_map(|(function, source)| Value::Of(function, source)),
        1 => proptest::option::of(names()).prop_map(Value::Lost),
        1 => Just(Value::Errors),
    ];
    (values, 0..6_usize, -1e9..1e9_f64, 0..10_usize).prop_map(|(value, operator, number, unit)| {
        let unit = match &value {
            value if value.is_time() => Some(Unit::ALL[unit % 4]),
            value if value.is_number() => None,
            _ => Some(Unit::ALL[4 + unit % 6]),
        };
        let limit = Limit { number, unit };
        Assertion::Comparison(Comparison { value, operator: Operator::ALL[operator], limit })
    })
}

fn assertions() -> impl Strategy<Value = Assertion> {
    comparisons().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Assertion::And),
            vec(inner, 2..4).prop_map(Assertion::Or),
        ]
    })
}

proptest! {
    //= docs/stats.md#assertions
    #[test]
    fn what_is_written_is_read_again(assertion in assertions()) {
        let text = assertion.to_string();
        prop_assert_eq!(Assertion::parse(&text), Ok(assertion), "{}", text);
    }

    #[test]
    fn any_text_is_an_assertion_or_an_error(text in "[a-z0-9 ().:*\"\\\\<>=!#µ%-]{0,40}") {
        if let Err(error) = Assertion::parse_all(&text) {
            prop_assert!(error.column <= error.text.chars().count() + 1);
            prop_assert!(error.shown().ends_with('^'));
        }
    }

    #[test]
    fn any_cut_of_an_assertion_is_one_or_an_error(assertion in assertions(), length in 0..200_usize) {
        let text: String = assertion.to_string().chars().take(length).collect();
        let _ = Assertion::parse(&text);
    }
}

/// The verdict on an assertion, the value of its first comparison, and why it is incomplete.
fn verdict(archive: &Archive, text: &str) -> (Verdict, Option<f64>, String) {
    let disorder = Disorder::find(archive.bytes()).unwrap();
    let assertion = of(text);
    let evaluation =
        Evaluation::of(archive.bytes(), &disorder, None, std::slice::from_ref(&assertion)).unwrap();
    let outcome = evaluation.verdict(&assertion);
    let why = outcome.findings.iter().flat_map(|finding| finding.why.clone()).collect::<Vec<_>>().join("; ");
    (outcome.verdict, outcome.findings[0].value, why)
}

fn frames() -> Archive {
    // Gaps of 4, 0 and 10 on thread 1.
    Archive::new()
        .complete(1, "frame", 0, 10)
        .complete(1, "part", 14, 20)
        .complete(1, "frame", 14, 24)
        .complete(1, "frame", 24, 30)
        .complete(1, "frame", 40, 44)
        .complete(2, "frame", 31, 33)
        .event(1, "retry", INSTANT, 44)
        .event(1, "retry", INSTANT, 45)
        .counter("depth", "n", 3, 46)
        .counter("depth", "n", -5, 47)
        .counter("depth", "m", 100, 48)
}

//= docs/stats.md#gaps
#[test]
fn values_are_those_of_the_trace() {
    use Verdict::{Failed, Incomplete, Passed};
    for (text, expected, value) in [
        ("count(frame) == 5", Passed, Some(5.0)),
        ("count(c:frame) == 5 and count(d:frame) == 0", Passed, Some(5.0)),
        ("sum(frame) == 32ns", Passed, Some(32.0)),
        ("min(frame) == 2ns", Passed, Some(2.0)),
        ("max(frame) < 10ns", Failed, Some(10.0)),
        ("max(frame) <= 10ns", Passed, Some(10.0)),
        ("mean(frame) == 6.4ns", Passed, Some(6.4)),
        ("p50(frame) == 6ns", Passed, Some(6.0)),
        ("sum(self(frame)) == 26ns", Passed, Some(26.0)),
        ("max(gap(frame)) == 10ns", Passed, Some(10.0)),
        ("count(gap(frame)) == 3", Passed, Some(3.0)),
        ("sum(gap(frame)) == 14ns", Passed, Some(14.0)),
        ("count(retry) <= 1", Failed, Some(2.0)),
        ("max(gap(retry)) == 1ns", Passed, Some(1.0)),
        ("max(retry) < 1s", Incomplete, None),
        ("count(net:retry) <= 3", Passed, Some(0.0)),
        ("p99(fame) < 1s", Incomplete, None),
        ("sum(counter(depth.n)) == -2", Passed, Some(-2.0)),
        ("max(counter(depth)) == 100", Passed, Some(100.0)),
        ("max(counter(deep)) == 100", Incomplete, None),
        ("lost == 0 and errors == 0", Passed, Some(0.0)),
        ("max(frame) < 5ns or min(frame) < 5ns", Passed, Some(10.0)),
        ("max(frame) < 5ns and max(fame) < 5ns", Failed, Some(10.0)),
        ("max(frame) < 5ns or max(fame) < 5ns", Incomplete, Some(10.0)),
    ] {
        let (found, of, why) = verdict(&frames(), text);
        assert_eq!((found, of), (expected, value), "{text}: {why}");
    }
    assert_eq!(verdict(&frames(), "max(retry) < 1s").2, "none of them has a duration");
    assert_eq!(verdict(&frames(), "p99(fame) < 1s").2, "no such event");
    let rate = verdict(&frames(), "rate(frame) > 100000000");
    assert_eq!((rate.0, rate.1), (Verdict::Passed, Some(5.0 / 48e-9)));
}

//= docs/meaning.md#polls
#[test]
fn a_name_means_operations_or_durations_and_never_polls() {
    use Verdict::{Failed, Incomplete, Passed};
    let archive = Archive::new().operation(7).operation(8);
    for (text, expected, value) in [
        ("count(job) == 2", Passed, 2.0),
        ("max(job) == 3000ns", Passed, 3000.0),
        ("p50(job) < 1us", Failed, 3000.0),
        ("count(operation(job)) == 2", Passed, 2.0),
        ("count(slice(job)) == 0", Passed, 0.0),
        ("count(poll(job)) == 6", Passed, 6.0),
        ("sum(poll(c:job)) == 1200ns", Passed, 1200.0),
        ("sum(self(poll(*))) == 600ns", Passed, 600.0),
        ("sum(self(operation(job))) < 1s", Incomplete, 0.0),
        ("count(gap(operation(job))) == 0", Passed, 0.0),
    ] {
        let (found, of, why) = verdict(&archive, text);
        assert_eq!((found, of.unwrap_or(0.0)), (expected, value), "{text}: {why}");
    }
    let mixed = archive.complete(1, "job", 5000, 5010).event(1, "job", INSTANT, 5020);
    let why = "job is the name of operations (2) and of durations (1): write operation(job) or slice(job)";
    for text in ["p50(job) < 1us", "count(job) == 3", "max(gap(c:job)) < 1s", "sum(*) > 1s"] {
        assert_eq!(verdict(&mixed, text), (Incomplete, None, why.to_owned()), "{text}");
    }
    assert_eq!(verdict(&mixed, "max(slice(job)) == 10ns").0, Passed);
    assert_eq!(verdict(&mixed, "count(operation(job)) == 2 and count(poll(job)) == 6").0, Passed);
    // What has not ended is counted, too.
    let open = Archive::new().operation(7).event(5, "job", EventKind::DurationBegin, 5000);
    assert_eq!(verdict(&open, "max(job) < 1s").0, Incomplete);
    let open = Archive::new()
        .with(5, "job", EventKind::DurationBegin, 5000, ("poll-of", ArgumentValue::Uint64(9)))
        .operation(7);
    assert_eq!(verdict(&open, "max(job) < 1s").0, Passed);
}

/// The table of the page.
//= docs/stats.md#verdicts
#[test]
fn what_is_missing_may_be_what_was_asked_for() {
    use Verdict::{Failed, Incomplete, Passed};
    let archive = frames().event(3, "pair", EventKind::DurationBegin, 50);
    let archive = archive.event(3, "pair", EventKind::DurationEnd, 90).loss(7);
    for (text, expected) in [
        ("count(frame) <= 3", Failed),
        ("count(frame) <= 5", Incomplete),
        ("count(frame) >= 5", Incomplete),
        ("count(frame) == 5", Incomplete),
        ("count(frame) == 4", Failed),
        ("max(frame) < 10ns", Failed),
        ("max(frame) < 50ns", Incomplete),
        ("min(frame) > 5ns", Failed),
        ("min(frame) > 1ns", Incomplete),
        ("sum(frame) < 30ns", Failed),
        ("sum(frame) < 40ns", Incomplete),
        ("mean(frame) < 1ns", Incomplete),
        ("p99(frame) < 1ns", Incomplete),
        ("max(self(frame)) < 1ns", Incomplete),
        ("max(gap(frame)) < 5ns", Incomplete),
        ("count(gap(frame)) < 1", Incomplete),
        // An end that was lost would have made it longer than it was.
        ("max(pair) < 10ns", Incomplete),
        ("count(none) == 0", Incomplete),
        ("max(counter(depth.n)) < 3", Failed),
        ("sum(counter(depth.n)) < -100", Incomplete),
        ("lost == 0", Failed),
        ("lost <= 7", Passed),
        ("lost(app) == 7 and lost(app) < 8", Passed),
        ("lost(app) == 7 and lost(other) == 0", Incomplete),
        ("errors == 0", Passed),
    ] {
        let (found, _, why) = verdict(&archive, text);
        assert_eq!(found, expected, "{text}: {why}");
    }
    assert_eq!(verdict(&archive, "p99(frame) < 1s").2, "app (program 1) lost 7: overwritten");
}

//= docs/stats.md#verdicts
#[test]
fn what_has_not_ended_has_no_duration_yet() {
    let archive = frames().event(1, "frame", EventKind::DurationBegin, 60);
    let of = |text| {
        let (verdict, value, why) = verdict(&archive, text);
        (verdict, value, why)
    };
    assert_eq!(of("count(frame) == 6"), (Verdict::Passed, Some(6.0), String::new()));
    let incomplete = (Verdict::Incomplete, Some(10.0), "one of them has not ended".to_owned());
    assert_eq!(of("max(frame) < 50ns"), incomplete);
    assert_eq!(of("max(frame) < 10ns"), (Verdict::Failed, Some(10.0), String::new()));
    assert_eq!(of("max(gap(frame)) < 50ns").0, Verdict::Incomplete);
    assert_eq!(of("max(gap(frame)) < 5ns").0, Verdict::Incomplete);
}

/// Values of counters may be anything.
#[test]
fn values_that_are_no_numbers_fulfill_nothing() {
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    for (values, text, expected) in [
        (&[nan, nan][..], "p50(counter(load)) < 1", Verdict::Incomplete),
        (&[nan, nan], "max(counter(load)) < 1", Verdict::Incomplete),
        (&[1.0, infinite], "p99(counter(load)) < 5", Verdict::Failed),
        (&[1.0, -infinite], "min(counter(load)) < -5", Verdict::Passed),
    ] {
        for times in [1, 300] {
            let mut archive = Archive::new();
            for (at, value) in values.repeat(times).into_iter().enumerate() {
                archive = archive.sample("load", "n", value, at as u64);
            }
            assert_eq!(verdict(&archive, text).0, expected, "{text} of {values:?}");
        }
    }
}

/// A trace that is cut off between two records looks whole.
//= docs/stats.md#verdicts
#[test]
fn a_recording_without_an_end_may_have_had_what_was_asked_for() {
    let cut_off = frames().recording("recording");
    for (archive, expected) in [(&cut_off, Verdict::Incomplete), (&frames(), Verdict::Passed)] {
        assert_eq!(verdict(archive, "lost == 0").0, expected);
        assert_eq!(verdict(archive, "max(frame) < 1s").0, expected);
    }
    assert_eq!(verdict(&cut_off, "errors == 0").0, Verdict::Failed);
    let whole = cut_off.recording("recording_end");
    assert_eq!(verdict(&whole, "lost == 0 and errors == 0").0, Verdict::Passed);
}

#[test]
fn what_cannot_be_read_may_have_been_asked_for() {
    let mut archive = frames();
    archive.0.0.truncate(archive.bytes().len() - 8);
    assert_eq!(verdict(&archive, "count(frame) == 5").0, Verdict::Incomplete);
    assert_eq!(verdict(&archive, "count(frame) == 4").0, Verdict::Failed);
    assert_eq!(verdict(&archive, "lost == 0").0, Verdict::Incomplete);
    let errors = verdict(&archive, "errors == 0");
    assert_eq!((errors.0, errors.1), (Verdict::Failed, Some(1.0)));
}
