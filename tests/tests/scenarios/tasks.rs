//! Tasks of tokio.

use std::collections::BTreeMap;
use trace_format::event::EventKind;
use trace_tests::archive::{Event, Value};
use trace_tests::{Archive, Sandbox, wait_for};

/// A poll, or the run of a blocking closure; times in nanoseconds.
#[derive(Debug)]
struct Poll {
    begin: u64,
    end: u64,
    delay: Option<u64>,
}

/// A task by what was recorded of it.
#[derive(Debug, Default)]
struct Task {
    name: String,
    /// In the order of time.
    polls: Vec<Poll>,
    begins: Vec<u64>,
    /// When, how, and after how many polls.
    ends: Vec<(u64, String, Option<u64>)>,
}

/// The tasks of an archive, in the order of their numbers.
fn tasks(archive: &Archive) -> Vec<Task> {
    let mut tasks: BTreeMap<u64, Task> = BTreeMap::new();
    for event in archive.events.iter().filter(|event| event.event.category.as_bytes() == b"tokio") {
        let argument = |name: &str| match event.event.argument(name) {
            Some(Value::Uint64(value)) => Some(*value),
            Some(Value::Uint32(value)) => Some(u64::from(*value)),
            None => None,
            other => panic!("{other:?}"),
        };
        let now = event.event.nanos().0;
        let number = match event.event.kind {
            EventKind::AsyncBegin { id } | EventKind::AsyncEnd { id } => id,
            _ => argument("poll-of").unwrap(),
        };
        let task = tasks.entry(number).or_default();
        assert!(task.name.is_empty() || task.name == event.name(), "{task:?}");
        task.name = event.name();
        match event.event.kind {
            EventKind::AsyncBegin { .. } => {
                task.begins.push(now);
            }
            EventKind::AsyncEnd { .. } => {
                let Some(Value::String(end)) = event.event.argument("end") else { panic!("{event:?}") };
                task.ends.push((now, end.to_str().into_owned(), argument("polls")));
            }
            EventKind::DurationComplete { end } => {
                let end = end.to_nanos(event.event.rate).0;
                task.polls.push(Poll { begin: now, end, delay: argument("delay-ns") });
            }
            ref other => panic!("{other:?}"),
        }
    }
    tasks.values_mut().for_each(|task| task.polls.sort_by_key(|poll| poll.begin));
    tasks.into_values().collect()
}

fn record(mode: &str) -> (Archive, Vec<Task>) {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["-o", "tasks.fxt"], "tasks", &[mode]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "as expected\n", "{output:?}");
    let checked = sandbox.trace(["check", "tasks.fxt"]);
    assert!(checked.status.success(), "{mode}: {checked:?}");
    let archive = Archive::read(&sandbox.file("tasks.fxt"));
    let tasks = tasks(&archive);
    (archive, tasks)
}

/// The bar encloses the polls, which follow each other, and each wait lies between the poll before and its
/// own.
fn assert_consistent(task: &Task) {
    let [begin] = task.begins[..] else { panic!("{task:?}") };
    let [(end, ..)] = task.ends[..] else { panic!("{task:?}") };
    let mut last = begin;
    for poll in &task.polls {
        assert!(last <= poll.begin && poll.begin <= poll.end && poll.end <= end, "{task:?}");
        // Two of the three numbers are rounded, and a tick is missing.
        assert!(poll.delay.unwrap() <= poll.begin - last + 2, "{task:?}");
        last = poll.end;
    }
}

#[test]
fn each_poll_is_a_duration_and_each_task_a_bar() {
    let (_, tasks) = record("kinds");
    tasks.iter().for_each(assert_consistent);
    let shown: Vec<_> =
        tasks.iter().map(|task| (&*task.name, task.polls.len(), &*task.ends[0].1, task.ends[0].2)).collect();
    let blocking = None;
    assert_eq!(
        shown,
        [
            ("polled", 5, "ready", Some(5)),
            ("waits", 2, "ready", Some(2)),
            ("sends", 1, "ready", Some(1)),
            ("aborted", 1, "dropped", Some(1)),
            ("unpolled", 0, "dropped", Some(0)),
            ("panics", 2, "panicked", Some(2)),
            ("block", 1, "ready", blocking),
            ("block panics", 1, "panicked", blocking),
            ("never runs", 0, "dropped", blocking),
            ("wrapped", 2, "ready", Some(2)),
            ("member", 3, "ready", Some(3)),
            ("member", 3, "ready", Some(3)),
            ("member", 3, "ready", Some(3)),
            ("blocking member", 1, "ready", blocking),
            ("local member", 1, "ready", Some(1)),
            ("local", 2, "ready", Some(2)),
        ]
    );
}

#[test]
fn tasks_of_several_threads_are_kept_apart() {
    let (_, tasks) = record("threads");
    assert_eq!(tasks.len(), 100);
    for task in &tasks {
        assert_consistent(task);
        assert_eq!((&*task.name, task.polls.len(), task.ends[0].2), ("task", 20, Some(20)));
    }
}

/// A task waits from the wake, but not during its own poll.
#[test]
fn the_delay_counts_from_the_moment_at_which_the_task_could_be_polled() {
    let (archive, tasks) = record("delays");
    let of = |name: &str| &tasks.iter().find(|task| task.name == name).unwrap().polls;
    let during = of("during");
    assert_eq!(during.len(), 3);
    for pair in during.windows(2) {
        let gap = pair[1].begin - pair[0].end;
        assert!(pair[1].delay.unwrap().abs_diff(gap) <= 2, "{during:?}");
    }
    let moment =
        |name: &str| archive.events.iter().find(|event| event.name() == name).unwrap().event.nanos().0;
    let (before, behind) = (moment("before the wake"), moment("behind the wake"));
    let [_, woken] = &of("between")[..] else { panic!("{tasks:?}") };
    let delay = woken.delay.unwrap();
    assert!((woken.begin - behind - 2..=woken.begin - before + 2).contains(&delay), "{woken:?}");
    // The thread was busy with the other task meanwhile.
    assert!(delay >= of("wakes")[0].end - behind, "{woken:?}");
}

/// No delay spans the beginning of a recording, and no bar begins in one recording and ends in another.
#[test]
fn recordings_begin_and_end_between_polls() {
    let sandbox = Sandbox::new();
    let _manager = sandbox.spawn("trace", &["manager"]);
    let mut program = sandbox.spawn("tasks", &["steps"]);
    let mut say = |line: &str| {
        program.say(line);
        assert_eq!(program.line(), line);
    };
    let record = |name: &str, say: &mut dyn FnMut(&str), lines: &[&str]| {
        let mut client = sandbox.spawn("trace", &["record", "-o", name]);
        wait_for("the recording", || client.stderr_so_far().contains("press Ctrl-C").then_some(()));
        say("on");
        lines.iter().for_each(|line| say(line));
        client.signal(rustix::process::Signal::INT);
        say("off");
        client.close_stdin();
        client.succeed();
        // Of a task that outlives the recording, the bar has no end.
        let checked = sandbox.trace(["check", "--allow", "unmatched-async-begin", name]);
        assert!(checked.status.success(), "{checked:?}");
        tasks(&Archive::read(&sandbox.file(name)))
    };
    let shown = |task: &Task| {
        let delays: Vec<bool> = task.polls.iter().map(|poll| poll.delay.is_some()).collect();
        let ends: Vec<_> = task.ends.iter().map(|(_, end, polls)| (end.clone(), *polls)).collect();
        (task.name.clone(), delays, task.begins.len(), ends)
    };
    let expected = |name: &str, delays: &[bool], begins, ends: &[(&str, u64)]| {
        let ends: Vec<_> = ends.iter().map(|(end, polls)| ((*end).to_owned(), Some(*polls))).collect();
        (name.to_owned(), delays.to_vec(), begins, ends)
    };
    say("early");
    say("wake");
    let first = record("first.fxt", &mut say, &["wake", "wake", "late", "wake"]);
    assert_eq!(
        first.iter().map(shown).collect::<Vec<_>>(),
        [expected("early", &[false, true, true], 0, &[]), expected("late", &[true, true], 1, &[])]
    );
    say("wake");
    let second = record("second.fxt", &mut say, &["wake", "last", "wake", "abort"]);
    assert_eq!(
        second.iter().map(shown).collect::<Vec<_>>(),
        [
            expected("early", &[false, true], 0, &[]),
            expected("late", &[false, true], 0, &[]),
            expected("last", &[true, true], 1, &[("dropped", 2)]),
        ]
    );
    program.close_stdin();
    assert_eq!(program.line(), "as expected");
    program.succeed();
}

/// Only its category is asked for.
#[test]
fn without_their_category_tasks_are_not_recorded() {
    let sandbox = Sandbox::new();
    sandbox.record(&["-o", "tasks.fxt", "--categories", "app"], "tasks", &["delays"]);
    let archive = Archive::read(&sandbox.file("tasks.fxt"));
    let names: Vec<_> = archive.events.iter().map(Event::name).collect();
    assert_eq!(names, ["before the wake", "behind the wake"]);
}

/// By tokio's hooks, every task has its polls and its bar under the place where it was spawned; one with a
/// name has its polls under that alone.
#[cfg(tokio_unstable)]
#[test]
fn all_tasks_of_a_runtime_are_recorded_by_hooks() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["-o", "tasks.fxt"], "tasks", &["all"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "as expected\n", "{output:?}");
    let checked = sandbox.trace(["check", "tasks.fxt"]);
    assert!(checked.status.success(), "{checked:?}");
    // By place or name: polls, begins and ends of bars.
    let mut found: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    for event in Archive::read(&sandbox.file("tasks.fxt")).events {
        let column = match event.event.kind {
            EventKind::DurationComplete { .. } => 0,
            EventKind::AsyncBegin { .. } => 1,
            EventKind::AsyncEnd { .. } => 2,
            _ => continue,
        };
        if event.event.category.as_bytes() == b"tokio" {
            found.entry(event.name()).or_default()[column] += 1;
        }
    }
    let named = found.remove("named");
    assert_eq!(named, Some([2000, 100, 100]), "{found:?}");
    assert!(found.keys().all(|place| place.starts_with("tests/examples/tasks.rs:")), "{found:?}");
    let mut by_place: Vec<_> = found.into_values().collect();
    by_place.sort_unstable();
    assert_eq!(by_place, [[0, 100, 100], [1, 1, 1], [2000, 100, 100]]);
}
