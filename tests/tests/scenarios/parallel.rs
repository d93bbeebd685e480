//! Work on the threads of rayon.

use std::collections::BTreeMap;
use trace_format::event::EventKind;
use trace_tests::archive::Event;
use trace_tests::{Archive, Sandbox};

/// A duration; times in ticks.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    name: String,
    thread: u64,
    begin: u64,
    end: u64,
}

/// Durations of the program, and arrows as indices of the durations in which they begin and end.
#[derive(Debug)]
struct Work {
    runs: Vec<Run>,
    arrows: Vec<[usize; 2]>,
}

fn record(mode: &str) -> Work {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["-o", "work.fxt"], "parallel", &[mode]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "as expected\n", "{output:?}");
    let checked = sandbox.trace(["check", "work.fxt"]);
    assert!(checked.status.success(), "{checked:?}");
    let archive = Archive::read(&sandbox.file("work.fxt"));
    let (mut runs, mut flows) = (Vec::new(), BTreeMap::<u64, [Option<(u64, u64)>; 2]>::new());
    for event in &archive.events {
        let (thread, at) = (event.event.thread.0, event.event.timestamp.0);
        let (id, part) = match event.event.kind {
            EventKind::DurationComplete { end } => {
                runs.push(Run { name: event.name(), thread, begin: at, end: end.0 });
                continue;
            }
            EventKind::FlowBegin { id } => (id, 0),
            EventKind::FlowEnd { id } => (id, 1),
            ref other => panic!("{other:?}"),
        };
        let before = flows.entry(id).or_default()[part].replace((thread, at));
        assert_eq!(before, None, "{id}");
    }
    let innermost = |(thread, at): (u64, u64)| {
        let is_around = |run: &Run| run.thread == thread && run.begin <= at && at <= run.end;
        let around = runs.iter().enumerate().filter(|(_, run)| is_around(run));
        around.max_by_key(|(_, run)| run.begin).expect("a duration around it").0
    };
    let arrows = flows.values().map(|parts| parts.map(|part| innermost(part.expect("both parts"))));
    let arrows = arrows.collect();
    Work { runs, arrows }
}

impl Work {
    /// Durations of each name.
    fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        self.runs.iter().for_each(|run| *counts.entry(&*run.name).or_default() += 1);
        counts
    }

    /// The durations in which the arrows to a duration begin.
    fn origins(&self, run: usize) -> Vec<&Run> {
        self.arrows.iter().filter(|arrow| arrow[1] == run).map(|arrow| &self.runs[arrow[0]]).collect()
    }
}

/// No thread of the pool is the main one: an arrow leads to each closure.
#[test]
fn an_arrow_leads_to_each_closure_on_another_thread() {
    let work = record("flat");
    let expected =
        [("installed", 1), ("joined", 2), ("panics", 2), ("spawned", 3), ("square", 20), ("submit", 1)];
    assert_eq!(work.counts(), BTreeMap::from(expected));
    assert_eq!(work.arrows.len(), 28);
    let submit = work.runs.iter().find(|run| run.name == "submit").unwrap();
    for (number, run) in work.runs.iter().enumerate().filter(|(_, run)| *run != submit) {
        assert_eq!(work.origins(number), [submit], "{run:?}");
        assert_ne!(run.thread, submit.thread, "{run:?}");
    }
}

/// A closure of `join` that rayon runs on the caller's thread is inside of the caller's duration; all others
/// have an arrow from there.
#[test]
fn every_closure_is_inside_of_its_caller_or_has_an_arrow_from_there() {
    let work = record("nested");
    let expected = [("in scope", 10), ("root", 2), ("submit", 1), ("sum", 126)];
    assert_eq!(work.counts(), BTreeMap::from(expected));
    let mut arrows = 0;
    for (number, run) in work.runs.iter().enumerate() {
        let is_during = |outer: &Run| outer.begin < run.begin && run.end < outer.end;
        let is_caller = |outer: &Run| ["root", "sum"].contains(&&*outer.name);
        let origins = work.origins(number);
        arrows += origins.len();
        match (&*run.name, &origins[..]) {
            ("submit", []) => {}
            ("sum", []) => {
                let is_around =
                    |outer: &Run| outer.thread == run.thread && is_during(outer) && is_caller(outer);
                assert!(work.runs.iter().any(is_around), "{run:?}");
            }
            ("sum", [origin]) => {
                assert!(origin.thread != run.thread && is_during(origin) && is_caller(origin), "{run:?}");
            }
            ("root", [origin]) => assert!(origin.name == "submit" && is_during(origin), "{run:?}"),
            ("in scope", [origin]) => assert!(["root", "in scope"].contains(&&*origin.name), "{run:?}"),
            (_, others) => panic!("{run:?} has {others:?}"),
        }
    }
    assert_eq!(arrows, work.arrows.len());
}

/// What they record begins in the operation from which they were handed out.
//= docs/rust.md#programs-that-use-rayon
#[test]
fn closures_belong_to_the_operation_that_hands_them_out() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["-o", "work.fxt"], "parallel", &["request"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "as expected\n", "{output:?}");
    let sql = "SELECT c.name, c.kind, p.name AS parent, count(*) AS times FROM slices c \
               LEFT JOIN slices p ON p.kind = 'operation' AND p.operation_id = c.parent_operation_id \
               WHERE c.kind <> 'poll' GROUP BY 1, 2, 3";
    let output = sandbox.trace(["query", "--format", "csv", sql, "work.fxt"]);
    let expected = "name,kind,parent,times\njoined,slice,request,2\noutside,slice,,2\n\
                    part,operation,request,2\nrequest,operation,,1\nspawned,slice,request,1\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    let sql =
        "SELECT step, count(*) AS times FROM steps WHERE name = 'request' AND step IS NOT NULL GROUP BY 1";
    let output = sandbox.trace(["query", "--format", "csv", sql, "work.fxt"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "step,times\njoined,2\npart,2\nspawned,1\n");
}

#[test]
fn without_their_category_closures_are_not_recorded() {
    let sandbox = Sandbox::new();
    sandbox.record(&["-o", "work.fxt", "--categories", "app"], "parallel", &["nested"]);
    let archive = Archive::read(&sandbox.file("work.fxt"));
    assert!(archive.events.iter().map(Event::name).eq(["submit"]));
}
