//! Rows mean what the rules say.

use super::*;

/// An earlier end of the same id is no reason to leave the order of the file.
//= docs/tables.md#tables
#[test]
fn operations_are_paired_in_the_order_of_time() {
    let part = |phase: &str, name: &str, ts: u64| {
        format!(r#"{{"ph":"{phase}","ts":{ts},"pid":1,"tid":1,"name":"{name}","id":"1"}}"#)
    };
    let parts = [part("b", "n", 0), part("e", "n", 4000), part("b", "n", 2000), part("e", "n", 5000)];
    let csv = String::from_utf8(csv_of(&format!("[{}]", parts.join(","))).remove(0)).unwrap();
    let rows: Vec<&str> = csv.lines().skip(1).map(|line| &line[..line.find(",1,1").unwrap()]).collect();
    assert_eq!(rows, ["2000000,2000000", "0,5000000"]);
}

/// An end whose name no open one has ends the innermost of its process.
//= docs/tables.md#tables
#[test]
fn an_operation_may_end_with_another_name() {
    let part = |phase: &str, name: &str, pid: u64, ts: u64| {
        format!(r#"{{"ph":"{phase}","ts":{ts},"pid":{pid},"tid":1,"cat":"c","name":"{name}","id":"1"}}"#)
    };
    let parts = [
        part("b", "outer", 1, 0),
        part("b", "A", 1, 1),
        part("b", "other", 2, 2),
        part("e", "B", 1, 11),
        part("e", "outer", 1, 12),
        part("e", "other", 2, 13),
    ];
    let archive = archive(&format!("[{}]", parts.join(",")));
    let mut lines = Lines::default();
    let summary = fill(&archive[..], &Disorder::default(), &mut lines, Filter::default()).unwrap();
    let slices: Vec<&str> = lines.0.lines().filter(|line| line.starts_with("slices")).collect();
    insta::assert_snapshot!(slices.join("\n"), @r#"
    slices: 1000 10000 1 1 - - "c" "A" 1 - 1 - - - 1 1 -
    slices: 0 12000 1 1 - - "c" "outer" 1 - 2 - - - 1 1 -
    slices: 2000 11000 2 1 - - "c" "other" 1 - 3 - - - 2 1 -
    "#);
    let misnamed = "asynchronous operations end with another name than they began with";
    assert_eq!(summary.remarks, [(misnamed.to_owned(), 1)]);
    assert_eq!(summary.skipped, []);
}

/// Numbers of threads may be those of a container, which others have, too.
//= docs/tables.md#tables
#[test]
fn threads_with_one_number_have_their_own_names() {
    let name = |pid: u64, name: &str| {
        format!(r#"{{"ph":"M","name":"thread_name","pid":{pid},"tid":7,"args":{{"name":"{name}"}}}}"#)
    };
    let event = |phase: &str, pid: u64| {
        format!(r#"{{"ph":"{phase}","ts":10,"dur":5,"pid":{pid},"tid":7,"name":"k{pid}"}}"#)
    };
    let events = [name(1, "stream A"), name(2, "stream B"), event("X", 1), event("X", 2), event("B", 3)];
    let archive = archive(&format!("[{}]", events.join(",")));
    let mut lines = Lines::default();
    fill(&archive[..], &Disorder::default(), &mut lines, Filter::default()).unwrap();
    let of_threads = |line: &&str| line.starts_with("slices") || line.starts_with("threads");
    insta::assert_snapshot!(lines.0.lines().filter(of_threads).collect::<Vec<_>>().join("\n"), @r#"
    slices: 10000 5000 1 7 - "stream A" "" "k1" - - 1 - - - 1 1 -
    slices: 10000 5000 2 7 - "stream B" "" "k2" - - 2 - - - 2 1 -
    slices: 10000 - 3 7 - - "" "k3" - - 3 - - - 3 1 -
    threads: 1 7 - "stream A" 1
    threads: 2 7 - "stream B" 2
    threads: 3 7 - - 3
    "#);
}
