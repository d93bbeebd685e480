//! Rows mean what the rules say.

use super::*;

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
