//! Rows mean what the rules say.

use super::*;
use crate::export::perfetto::tests::archive as archive_of;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use trace_format::event::EventKind;

/// The columns of slices by name, from CSV.
fn slices_of(events: &str) -> HashMap<String, HashMap<String, String>> {
    let csv = csv_of(&format!("[{events}]")).remove(0);
    let mut reader = ::csv::Reader::from_reader(&csv[..]);
    let mut rows = HashMap::new();
    for row in reader.deserialize::<HashMap<String, String>>().map(Result::unwrap) {
        assert!(rows.insert(row["name"].clone(), row).is_none(), "a name for each slice");
    }
    rows
}

/// The name of the slice that each is in, how deep, and its own time.
fn places_of(events: &str) -> Vec<String> {
    let rows = slices_of(events);
    let parent = |row: &HashMap<String, String>| {
        let of_parent = rows.values().find(|parent| parent["id"] == row["parent_id"]);
        of_parent.map_or("-".to_owned(), |parent| parent["name"].clone())
    };
    let place = |row: &HashMap<String, String>| {
        format!("{} in {} {} own {}", row["name"], parent(row), row["depth"], row["self_dur"])
    };
    let mut places: Vec<String> = rows.values().map(place).collect();
    places.sort();
    places
}

fn complete(name: &str, ts: u64, dur: u64) -> String {
    format!(r#"{{"ph":"X","ts":{ts},"dur":{dur},"pid":1,"tid":2,"name":"{name}"}}"#)
}

fn part(phase: &str, name: &str, ts: u64) -> String {
    format!(r#"{{"ph":"{phase}","ts":{ts},"pid":1,"tid":2,"name":"{name}"}}"#)
}

//= docs/meaning.md#overlap
#[test]
fn slices_that_overlap_keep_their_own_times() {
    let places = places_of(&[complete("a", 0, 20), complete("b", 10, 30)].join(","));
    assert_eq!(places, ["a in - 0 own 20000", "b in - 0 own 30000"]);
    let both = [complete("a", 0, 50), complete("b", 30, 50), complete("c", 0, 100)];
    let expected = ["a in c 1 own 50000", "b in c 1 own 50000", "c in - 0 own 20000"];
    assert_eq!(places_of(&both.join(",")), expected);
}

//= docs/meaning.md#what-is-inside-what
#[test]
fn the_order_of_records_decides_about_equal_times() {
    // The second pair is behind the first one, at the same time; the third is around the fourth.
    let parts = [
        part("B", "a", 5),
        part("E", "a", 5),
        part("B", "b", 5),
        part("E", "b", 5),
        part("B", "c", 5),
        part("B", "d", 5),
        part("E", "d", 9),
        part("E", "c", 9),
    ];
    let expected = ["a in - 0 own 0", "b in - 0 own 0", "c in - 0 own 0", "d in c 1 own 4000"];
    assert_eq!(places_of(&parts.join(",")), expected);
    // A slice of length 0 is in what an earlier record begins and a later one ends.
    let instants = [
        complete("before", 5, 0),
        complete("long", 5, 4),
        complete("behind", 5, 0),
        part("B", "pair", 20),
        complete("in pair", 20, 0),
        part("E", "pair", 20),
        complete("behind pair", 20, 0),
    ];
    let expected = [
        "before in - 0 own 0",
        "behind in long 1 own 0",
        "behind pair in - 0 own 0",
        "in pair in pair 1 own 0",
        "long in - 0 own 4000",
        "pair in - 0 own 0",
    ];
    assert_eq!(places_of(&instants.join(",")), expected);
    // The longer one is around the other, in either order; of equal ones, the first record.
    let equal = [complete("short", 0, 5), complete("long", 0, 9), complete("equal", 0, 9)];
    let expected = ["equal in long 1 own 4000", "long in - 0 own 0", "short in equal 2 own 5000"];
    assert_eq!(places_of(&equal.join(",")), expected);
}

/// What does not end is around what begins behind it, also of those that begin together.
//= docs/meaning.md#what-is-inside-what
#[test]
fn slices_that_do_not_end_are_in_each_other_in_the_order_of_their_records() {
    let parts = [
        part("B", "z", 5),
        part("B", "y", 5),
        complete("c", 5, 1),
        part("B", "d", 6),
        part("E", "d", 7),
        part("B", "x", 7),
    ];
    let expected =
        ["c in y 2 own 1000", "d in y 2 own 1000", "x in y 2 own ", "y in z 1 own ", "z in - 0 own "];
    assert_eq!(places_of(&parts.join(",")), expected);
}

/// An earlier end of the same id is no reason to leave the order of the file.
//= docs/meaning.md#operations
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
//= docs/meaning.md#operations
#[test]
fn an_operation_may_end_with_another_name() {
    let [begin, end] = [EventKind::AsyncBegin { id: 1 }, EventKind::AsyncEnd { id: 1 }];
    let archive = archive_of(&[
        (0, "outer", begin, &[]),
        (1, "A", begin, &[]),
        (11, "B", end, &[]),
        (12, "outer", end, &[]),
    ]);
    let mut lines = Lines::default();
    let summary = fill(&archive[..], &Disorder::default(), &mut lines, Filter::default()).unwrap();
    let slices: Vec<&str> = lines.0.lines().filter(|line| line.starts_with("slices")).collect();
    insta::assert_snapshot!(slices.join("\n"), @r#"
    slices: 1 10 5 6 - - "c" "A" 1 - 1 - - - 1 0 - "operation" 1 - -
    slices: 0 12 5 6 - - "c" "outer" 1 - 2 - - - 1 0 - "operation" 1 - -
    "#);
    let misnamed = "asynchronous operations with another name at their end";
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
    slices: 10000 5000 1 7 - "stream A" "" "k1" - - 1 - - - 1 1 - "slice" - - -
    slices: 10000 5000 2 7 - "stream B" "" "k2" - - 2 - - - 2 1 - "slice" - - -
    slices: 10000 - 3 7 - - "" "k3" - - 3 - - - 3 1 - "slice" - - -
    threads: 1 7 - "stream A" 1
    threads: 2 7 - "stream B" 2
    threads: 3 7 - - 3
    "#);
}

/// A name of process 1, or of its thread 2.
pub(super) fn name_of(what: &str, name: &str) -> String {
    format!(r#"{{"ph":"M","name":"{what}_name","pid":1,"tid":2,"args":{{"name":"{name}"}}}}"#)
}

/// Also for what stands before it in the file.
//= docs/meaning.md#names
#[test]
fn the_last_name_counts_for_all_of_the_trace() {
    let slices = [complete("a", 0, 10), complete("b", 20, 10)];
    let [first, second] = ["first", "second"].map(|name| [name_of("process", name), name_of("thread", name)]);
    // In front, behind, between, and twice.
    let [none, one, two] = [&[][..], &first[..], &second[..]];
    for (around, expected) in [
        ([one, none, none], "first"),
        ([none, none, one], "first"),
        ([none, one, none], "first"),
        ([one, two, none], "second"),
        ([one, none, two], "second"),
    ] {
        let [before, between, behind] = around.map(<[String]>::to_vec);
        let all = [before, vec![slices[0].clone()], between, vec![slices[1].clone()], behind].concat();
        let rows = slices_of(&all.join(","));
        for row in [&rows["a"], &rows["b"]] {
            assert_eq!((row["process"].as_str(), row["thread"].as_str()), (expected, expected), "{around:?}");
        }
    }
}

/// A record on a thread.
#[derive(Clone, Copy, Debug)]
enum Record {
    Complete { length: u64, late: u64 },
    Begin,
    End,
}

fn records() -> impl Strategy<Value = Vec<(Record, u64, usize)>> {
    let record = prop_oneof![
        6 => (0..7_u64).prop_map(|length| Record::Complete { length, late: 0 }),
        1 => (0..7_u64, 0..3_u64).prop_map(|(length, late)| Record::Complete { length, late }),
        3 => Just(Record::Begin),
        3 => Just(Record::End),
    ];
    vec((record, 0..3_u64, 0..2_usize), 0..50)
}

/// A slice as the rules see it: its thread, its times, and the numbers of its records.
#[derive(Clone, Copy, Debug)]
struct Slice {
    thread: usize,
    times: (u64, u64),
    records: (usize, usize),
}

impl Slice {
    /// Whether another slice is inside of it.
    //= docs/meaning.md#what-is-inside-what
    fn encloses(&self, inner: &Self) -> bool {
        let (outer, of_inner) = (self.times, inner.times);
        let [is_pair, both] = [self, inner].map(|of| of.records.0 != of.records.1);
        if self.thread != inner.thread {
            return false;
        }
        if is_pair && both {
            return self.records.0 < inner.records.0 && inner.records.1 < self.records.1;
        }
        if of_inner.0 == of_inner.1 {
            let has_begun = (outer.0, self.records.0) < (of_inner.0, inner.records.0);
            let is_open =
                outer.1 > of_inner.1 || is_pair && outer.1 == of_inner.1 && self.records.1 > inner.records.1;
            return has_begun && is_open;
        }
        let key = |times: (u64, u64), record: usize| (times.0, std::cmp::Reverse(times.1), record);
        outer.1 >= of_inner.1 && key(outer, self.records.0) < key(of_inner, inner.records.0)
    }
}

/// Records as JSON, whose names are the numbers of their slices, and the slices.
fn trace_of(records: &[(Record, u64, usize)]) -> (String, Vec<Slice>) {
    let (mut now, mut events, mut slices, mut open) = (10, Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for (number, (record, pause, thread)) in records.iter().copied().enumerate() {
        now += pause;
        let mut add = |phase: &str, ts: u64, dur: u64, name: usize| {
            events.push(format!(
                r#"{{"ph":"{phase}","ts":{ts},"dur":{dur},"pid":1,"tid":{thread},"name":"{name}"}}"#
            ));
        };
        let of = |times, records| Slice { thread, times, records };
        match record {
            Record::Complete { length, late } => {
                let begin = now - length - late;
                add("X", begin, length, slices.len());
                slices.push(of((begin, begin + length), (number, number)));
            }
            Record::Begin => {
                add("B", now, 0, slices.len());
                open[thread].push(slices.len());
                slices.push(of((now, u64::MAX), (number, usize::MAX - number)));
            }
            Record::End => {
                let Some(begun) = open[thread].pop() else { continue };
                add("E", now, 0, begun);
                let Slice { times, records, .. } = &mut slices[begun];
                (times.1, records.1) = (now, number);
            }
        }
    }
    (format!("[{}]", events.join(",")), slices)
}

/// The parent, the depth and the own time of each slice.
//= docs/meaning.md#own-time
fn by_definition(slices: &[Slice]) -> Vec<[String; 3]> {
    let parent = |inner: &Slice| {
        let around = (0..slices.len()).filter(|place| slices[*place].encloses(inner));
        around.min_by_key(|place| {
            let Slice { times, records, .. } = slices[*place];
            let is_at_end = inner.times.0 == inner.times.1 && times.1 == inner.times.1;
            let ended = if is_at_end { records.1 } else { 0 };
            (times.1, ended, std::cmp::Reverse((times.0, records.0)))
        })
    };
    let parents: Vec<Option<usize>> = slices.iter().map(parent).collect();
    let depth = |place: usize| std::iter::successors(parents[place], |place| parents[*place]).count();
    let own = |place: usize| {
        let (begin, end) = slices[place].times;
        let is_inside = |at: u64| {
            let mut inside = slices.iter().zip(&parents).filter(|(_, parent)| **parent == Some(place));
            inside.any(|(inner, _)| (inner.times.0..inner.times.1).contains(&at))
        };
        (end != u64::MAX).then(|| 1000 * (begin..end).filter(|at| !is_inside(*at)).count())
    };
    let text = |value: Option<usize>| value.map_or(String::new(), |value| value.to_string());
    let place = |place: usize| [text(parents[place]), depth(place).to_string(), text(own(place))];
    (0..slices.len()).map(place).collect()
}

/// The same by rows, whose names are the numbers of the slices.
fn by_rows<'r>(rows: impl Iterator<Item = [&'r str; 5]>, count: usize) -> Vec<[String; 3]> {
    let rows: Vec<[&str; 5]> = rows.collect();
    let mut found = vec![[const { String::new() }; 3]; count];
    for [name, _, parent, depth, own] in &rows {
        let parent = rows.iter().find(|[_, id, ..]| id == parent).map_or("", |[name, ..]| name);
        found[name.parse::<usize>().unwrap()] = [parent, depth, own].map(str::to_owned);
    }
    found
}

const COLUMNS: [usize; 5] = [7, 10, slices::PARENT_ID, slices::DEPTH, slices::SELF_DUR];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In CSV, in what `query` keeps, and in Parquet.
    #[test]
    fn slices_are_where_they_are_by_definition(records in records()) {
        let (text, slices) = trace_of(&records);
        let expected = by_definition(&slices);
        let csv = csv_of(&text).remove(0);
        let rows: Vec<_> = ::csv::Reader::from_reader(&csv[..]).into_records().map(Result::unwrap).collect();
        let found = by_rows(rows.iter().map(|row| COLUMNS.map(|place| &row[place])), slices.len());
        prop_assert_eq!(&found, &expected);
        #[cfg(feature = "parquet")]
        {
            let rows = files::slices_written(archive(&text));
            let found = by_rows(rows.iter().map(|row| COLUMNS.map(|place| &*row[place])), slices.len());
            prop_assert_eq!(&found, &expected);
        }
        #[cfg(feature = "sqlite")]
        {
            let rows = questions::slices_asked(archive(&text));
            let found = by_rows(rows.iter().map(|row| [0, 1, 2, 3, 4].map(|place| &*row[place])), slices.len());
            prop_assert_eq!(&found, &expected);
        }
    }
}
