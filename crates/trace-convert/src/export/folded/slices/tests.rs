//! Lines of small traces.

use super::*;
use crate::ConvertError;
use crate::export::threads::testing::{EVENTS, empty, missing, of_json};

fn lines(trace: Trace, roots: Roots) -> (String, Summary) {
    let mut output = Vec::new();
    let summary = convert_slices(trace, &mut output, Filter::default(), roots).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

fn counts(list: &[(String, u64)]) -> Vec<(&str, u64)> {
    list.iter().map(|(kind, count)| (kind.as_str(), *count)).collect()
}

//= docs/folded.md#slices
#[test]
fn each_stack_of_slices_has_its_own_time_in_nanoseconds() {
    let (text, summary) = lines(of_json(EVENTS), Roots::Processes);
    let expected = "9;a:b_7_ 4000\n\
                    app;first 10000\n\
                    app;open;inner 1000\n\
                    app;other 1000\n\
                    app;outer 7000\n\
                    app;outer;inner 2500\n\
                    app;outer;inner;leaf 500\n\
                    app;second 10000\n";
    assert_eq!(text, expected);
    assert_eq!(summary.events, 9);
    let skipped = [
        ("asynchronous operations", 1),
        ("counter values", 2),
        ("flow events", 2),
        ("instants", 1),
        ("sets of arguments", 1),
    ];
    assert_eq!(counts(&summary.skipped), skipped);
    let remarks = [("slices without an end: their own time is not counted", 1)];
    assert_eq!(counts(&summary.remarks), remarks);
}

/// A slice that is not selected still encloses others, and its time is not own time of its parent.
//= docs/folded.md#slices
#[test]
fn selected_slices_keep_their_stacks_and_their_own_time() {
    let of = |patterns: &[&str]| {
        let mut output = Vec::new();
        let filter = crate::filter::testing::filter(patterns, &[]);
        let summary = convert_slices(of_json(EVENTS), &mut output, filter, Roots::Processes).unwrap();
        (String::from_utf8(output).unwrap(), summary.events)
    };
    assert_eq!(of(&["inner"]), ("app;open;inner 1000\napp;outer;inner 2500\n".to_owned(), 2));
    assert_eq!(of(&["out.*", "leaf"]), ("app;outer 7000\napp;outer;inner;leaf 500\n".to_owned(), 2));
}

//= docs/folded.md#slices
#[test]
fn threads_are_in_their_processes_if_that_is_asked_for() {
    let (text, _) = lines(of_json(EVENTS), Roots::Threads);
    let expected = "9;thread_9;a:b_7_ 4000\n\
                    app;main;first 10000\n\
                    app;main;open;inner 1000\n\
                    app;main;outer 7000\n\
                    app;main;outer;inner 2500\n\
                    app;main;outer;inner;leaf 500\n\
                    app;main;second 10000\n\
                    app;thread_3;other 1000\n";
    assert_eq!(text, expected);
}

#[test]
fn equal_stacks_are_one_line_and_times_may_go_back() {
    let events = r##"
        {"ph":"X","ts":50,"dur":2,"pid":1,"tid":1,"name":"x"},
        {"ph":"X","ts":10,"dur":3,"pid":1,"tid":1,"name":"x"},
        {"ph":"X","ts":10,"dur":3,"pid":1,"tid":1,"name":"y"},
        {"ph":"X","ts":10,"dur":0,"pid":1,"tid":2,"name":"#z"},
        {"ph":"X","ts":5,"dur":100,"pid":1,"tid":2,"name":"x"}"##;
    // Of two that are equal, the earlier record is around the other.
    assert_eq!(lines(of_json(events), Roots::Processes).0, "1;x 102000\n1;x;y 3000\n");
}

#[test]
fn there_may_be_nothing() {
    assert_eq!(lines(empty(), Roots::Threads), (String::new(), Summary::default()));
    let error = convert_slices(missing(), Vec::new(), Filter::default(), Roots::Processes);
    assert!(matches!(error, Err(ConvertError::Write(_))), "{error:?}");
}
