//! Options that select a part of a trace: all commands choose the same, and nothing of it means anything else
//! than in the whole trace.

mod check;
mod report;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use trace_format::argument::{Argument, ArgumentValue, Arguments};
use trace_format::event::{Event, EventKind, Scope};
use trace_format::kernel_object::{KernelObject, PROCESS_ARGUMENT, TYPE_PROCESS, TYPE_THREAD};
use trace_format::log::Log;
use trace_format::loss::{LossCode, LossRecord};
use trace_format::metadata::{MAGIC_WORD, Metadata};
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::scheduling::{Scheduling, ThreadState};
use trace_format::sink::Sink;
use trace_format::slab::LossReason;
use trace_format::units::{Koid, ProcessKoid, ProviderId, ThreadKoid, Ticks};
use trace_tests::{Answer, Sandbox};

/// The wall clock at the first event, 2026-03-01T00:00:00Z, and the time of that event.
const WALL_CLOCK_NS: u64 = 1_772_323_200_000_000_000;
const BEGIN: u64 = 500;

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }
}

fn inline(text: &str) -> StringRef<'_> {
    StringRef::Inline(text.as_bytes())
}

impl Bytes {
    fn record(&mut self, record: Record<'_>) {
        record.encode(self).unwrap();
    }

    fn event(
        &mut self,
        thread: (u64, u64),
        of: (&str, &str),
        kind: EventKind,
        at: u64,
        arguments: &[Argument<'_>],
    ) {
        let (process, thread) = (ProcessKoid(Koid(thread.0)), ThreadKoid(Koid(thread.1)));
        self.record(Record::Event(Event {
            timestamp: Ticks(at),
            thread: ThreadRef::Inline { process, thread },
            category: inline(of.0),
            name: inline(of.1),
            kind,
            arguments: Arguments::from_slice(arguments),
        }));
    }

    fn object(&mut self, object_type: u8, koid: u64, name: &str, process: Option<u64>) {
        let process = process.map(|process| Argument {
            name: inline(PROCESS_ARGUMENT),
            value: ArgumentValue::Koid(Koid(process)),
        });
        let arguments = Vec::from_iter(process);
        let arguments = Arguments::from_slice(&arguments);
        self.record(Record::KernelObject(KernelObject {
            object_type,
            koid: Koid(koid),
            name: inline(name),
            arguments,
        }));
    }
}

/// Two processes, of which one has threads with one name in common with the other and one has no name. Their
/// last names come behind what they name, and ends have other categories and names than their begins.
fn archive() -> Vec<u8> {
    let mut bytes = Bytes(MAGIC_WORD.to_le_bytes().to_vec());
    let (begin, end, instant) =
        (EventKind::DurationBegin, EventKind::DurationEnd, EventKind::Instant { scope: Scope::Thread });
    bytes.record(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(0), name: b"trace_manager" }));
    let clock = Argument { name: inline("wall_clock_ns"), value: ArgumentValue::Uint64(WALL_CLOCK_NS) };
    bytes.event((9, 9), ("trace", "recording"), instant, BEGIN, &[clock]);
    bytes.record(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(1), name: b"app" }));
    // The last names count.
    for (thread, process) in [(11, 10), (12, 10), (21, 20)] {
        bytes.object(TYPE_PROCESS, process, "early process", None);
        bytes.object(TYPE_THREAD, thread, "early thread", Some(process));
    }
    for round in 0..6 {
        let at = 1000 + round * 500;
        for (place, thread) in [(10, 11), (10, 12), (20, 21), (20, 22)].into_iter().enumerate() {
            let at = at + place as u64;
            bytes.event(thread, ("net", "request"), begin, at, &[]);
            bytes.event(thread, ("net:tcp", "read"), begin, at + 10, &[]);
            bytes.event(
                thread,
                ("io,disk", "flush"),
                EventKind::DurationComplete { end: Ticks(at + 40) },
                at + 20,
                &[],
            );
            bytes.event(thread, ("", ""), end, at + 60, &[]);
            bytes.event(thread, ("net", "write"), begin, at + 70, &[]);
            bytes.event(thread, ("io", "read"), end, at + 90, &[]);
            bytes.event(thread, ("", "request"), end, at + 100, &[]);
            bytes.event(thread, ("net", "retry"), instant, at + 5, &[]);
            let value = Argument { name: inline("n"), value: ArgumentValue::Uint64(round) };
            bytes.event(thread, ("net", "depth"), EventKind::Counter { id: 0 }, at + 5, &[value]);
            let id = round * 10 + place as u64;
            bytes.event(thread, ("disk", "job"), EventKind::AsyncBegin { id }, at + 30, &[]);
            bytes.event(thread, ("disk", "job"), EventKind::AsyncEnd { id }, at + 450, &[]);
        }
    }
    bytes.event((10, 11), ("net", "hang"), begin, 4100, &[]);
    // Out of order: the inner one is recorded before the outer one, and both after later ones.
    bytes.event((10, 12), ("late", "inner"), begin, 610, &[]);
    bytes.event((10, 12), ("", ""), end, 620, &[]);
    bytes.event((10, 12), ("late", "outer"), begin, 600, &[]);
    bytes.event((10, 12), ("", ""), end, 700, &[]);
    bytes.record(Record::Metadata(Metadata::ProviderSection { id: ProviderId(0) }));
    bytes.event((9, 9), ("trace", "recording_end"), instant, 4100, &[]);
    bytes.record(Record::Metadata(Metadata::ProviderSection { id: ProviderId(1) }));
    for (thread, at) in [(11, 4000), (12, 4001), (21, 4002), (22, 4003)] {
        let process = ProcessKoid(Koid(if thread < 20 { 10 } else { 20 }));
        let thread = ThreadRef::Inline { process, thread: ThreadKoid(Koid(thread)) };
        bytes.record(Record::Log(Log { timestamp: Ticks(at), thread, message: b"said" }));
    }
    let arguments = Arguments::from_slice(&[]);
    for (incoming, at) in [(11, 4000), (12, 4001), (21, 4002)] {
        let (outgoing, incoming) =
            (ThreadKoid(Koid(if incoming == 11 { 11 } else { 0 })), ThreadKoid(Koid(incoming)));
        let (timestamp, outgoing_state) = (Ticks(at), ThreadState::BLOCKED);
        let switch =
            Scheduling::ContextSwitch { timestamp, cpu: 0, outgoing_state, outgoing, incoming, arguments };
        bytes.record(Record::Scheduling(switch));
    }
    for (thread, at) in [(11, 3999), (21, 4001)] {
        let thread = ThreadKoid(Koid(thread));
        bytes.record(Record::Scheduling(Scheduling::ThreadWakeup {
            timestamp: Ticks(at),
            cpu: 0,
            thread,
            arguments,
        }));
    }
    bytes.object(TYPE_PROCESS, 10, "server", None);
    bytes.object(TYPE_PROCESS, 20, "client", None);
    bytes.object(TYPE_THREAD, 11, "main", Some(10));
    bytes.object(TYPE_THREAD, 12, "worker 1", Some(10));
    bytes.object(TYPE_THREAD, 21, "main", Some(20));
    bytes.0
}

/// A slice of the whole trace.
#[derive(Clone, Debug)]
struct Slice {
    ts: u64,
    dur: Option<u64>,
    own: Option<u64>,
    pid: u64,
    tid: u64,
    process: String,
    thread: String,
    category: String,
    name: String,
    is_operation: bool,
}

impl Slice {
    fn is_of(&self, category: &str) -> bool {
        self.category.split(',').any(|one| one == category)
    }
}

/// Options, and what they select of slices.
type Case = (&'static [&'static str], fn(&Slice) -> bool);

const CASES: [Case; 16] = [
    (&[], |_| true),
    (&["--category", "net"], |slice| slice.is_of("net")),
    (&["--categories", "net*,-net:tcp"], |slice| slice.is_of("net")),
    (&["--category", "disk", "--category", "late"], |slice| slice.is_of("disk") || slice.is_of("late")),
    (&["--category", "-io"], |slice| !slice.is_of("io")),
    (&["--name", "re*"], |slice| slice.name.starts_with("re")),
    (&["--name", "-r*", "--name", "-flush"], |slice| !slice.name.starts_with('r') && slice.name != "flush"),
    (&["--process", "serv*"], |slice| slice.process == "server"),
    (&["--process", "20"], |slice| slice.pid == 20),
    (&["--thread", "main"], |slice| slice.thread == "main"),
    (&["--thread", "22", "--thread", "worker*"], |slice| slice.tid == 22 || slice.thread == "worker 1"),
    (&["--process", "-client", "--thread", "-main", "--name", "read"], |slice| {
        slice.process != "client" && slice.thread != "main" && slice.name == "read"
    }),
    // From 1510 to 2010, between a begin and its end.
    (&["--from", "1010ns", "--to", "@2010"], |slice| (1510..2010).contains(&slice.ts)),
    (&["--from", "2026-03-01T00:00:00.000001010Z"], |slice| slice.ts >= 1510),
    (&["--last", "1us", "--category", "net"], |slice| slice.ts >= 3100 && slice.is_of("net")),
    (&["--to", "200ns"], |slice| slice.ts < 700),
];

struct Asked {
    sandbox: Sandbox,
    whole: Vec<Slice>,
}

fn asked() -> Asked {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.fxt"), archive()).unwrap();
    let sql = "SELECT ts, dur, self_dur, pid, tid, process, thread, category, name, kind FROM slices";
    let rows: Vec<Value> =
        Answer::parse(&printed(&sandbox, &["query", "--json", sql, "trace.fxt"])).into_result();
    let slice = |row: &Value| {
        let text = |column: &str| row[column].as_str().unwrap_or_default().to_owned();
        Slice {
            ts: row["ts"].as_u64().unwrap(),
            dur: row["dur"].as_u64(),
            own: row["self_dur"].as_u64(),
            pid: row["pid"].as_u64().unwrap(),
            tid: row["tid"].as_u64().unwrap(),
            process: text("process"),
            thread: text("thread"),
            category: text("category"),
            name: text("name"),
            is_operation: row["kind"] == "operation",
        }
    };
    let whole: Vec<Slice> = rows.iter().map(slice).collect();
    assert_eq!(whole.len(), 6 * 4 * 5 + 3);
    Asked { sandbox, whole }
}

fn printed(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.trace(arguments);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Of each kind, category and name of the selected slices: their number, the number without an end, and the
/// sums of their times and own times.
type Sums = BTreeMap<(String, String, String), [u64; 4]>;

fn sums(slices: &[Slice], is_selected: impl Fn(&Slice) -> bool) -> Sums {
    let mut sums = Sums::new();
    for slice in slices.iter().filter(|slice| is_selected(slice)) {
        let kind = if slice.is_operation { "operation" } else { "duration" };
        let key = (kind.to_owned(), slice.category.clone(), slice.name.clone());
        let [count, open, total, own] = sums.entry(key).or_default();
        *(if slice.dur.is_some() { count } else { open }) += 1;
        *total += slice.dur.unwrap_or(0);
        *own += slice.own.unwrap_or(0);
    }
    sums
}

//= docs/selecting.md#rules
#[test]
fn statistics_are_of_what_is_selected_with_its_meaning_in_the_whole_trace() {
    let Asked { sandbox, whole } = asked();
    for (options, is_selected) in CASES {
        let expected = sums(&whole, is_selected);
        let csv = printed(&sandbox, &[&["stats", "--csv"], options, &["trace.fxt"]].concat());
        let mut found = Sums::new();
        for line in csv.lines().skip(1) {
            // A category with a comma is quoted.
            let line = line.replace("\"io,disk\"", "io;disk");
            let cells: Vec<&str> = line.split(',').collect();
            let [kind, category, name] = [cells[0], &cells[1].replace(';', ","), cells[2]].map(str::to_owned);
            let number = |cell: &str| cell.parse().unwrap_or(0);
            found.insert((kind, category, name), [3, 4, 5, 6].map(|place| number(cells[place])));
        }
        assert_eq!(found, expected, "{options:?}");
        assert!(!found.is_empty(), "{options:?}");
    }
}

/// What of a slice each format has: its process, the number of its thread (0 of an operation, which some
/// formats have without one), its name, and its times.
type Shown = (u64, u64, String, u64, Option<u64>);

fn shown(slice: &Slice) -> Shown {
    let tid = if slice.is_operation { 0 } else { slice.tid };
    (slice.pid, tid, slice.name.clone(), slice.ts, slice.dur)
}

fn sorted(slices: impl Iterator<Item = Shown>) -> Vec<Shown> {
    let mut sorted: Vec<Shown> = slices.collect();
    sorted.sort();
    sorted
}

/// The slices of the lines of `dump`: a begin and the next end of its thread that is not another one's.
fn dumped(lines: &str) -> Vec<Shown> {
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut records: Vec<&Value> = records.iter().filter(|record| record["category"].is_string()).collect();
    records.sort_by_key(|record| record["ns"].as_u64());
    let (mut open, mut slices) = (BTreeMap::<_, Vec<Shown>>::new(), Vec::new());
    for record in records {
        let kind = record["kind"].as_str().unwrap();
        let number = |member: &str| record[member].as_u64().unwrap();
        let tid = if kind.starts_with("async") { 0 } else { number("thread") };
        let name = record["name"].as_str().unwrap_or_default().to_owned();
        let begun = (number("process"), tid, name, number("ns"), None);
        let key = (begun.0, tid, record["id"].as_u64().filter(|_| tid == 0));
        match kind {
            "begin" | "async-begin" => open.entry(key).or_default().push(begun),
            "complete" => slices.push((begun.0, tid, begun.2, begun.3, Some(number("end_ns") - begun.3))),
            "end" | "async-end" => {
                let slice = open.entry(key).or_default().pop().unwrap_or_else(|| panic!("{record}"));
                slices.push((slice.0, slice.1, slice.2, slice.3, Some(number("ns") - slice.3)));
            }
            _ => {}
        }
    }
    slices.extend(open.into_values().flatten());
    sorted(slices.into_iter())
}

/// The slices of a query's answer.
fn answered(rows: &str) -> Vec<Shown> {
    let rows: Vec<Value> = Answer::parse(rows).into_result();
    sorted(rows.iter().map(|row| {
        let tid = if row["kind"] == "operation" { 0 } else { row["tid"].as_u64().unwrap() };
        let name = row["name"].as_str().unwrap().to_owned();
        (row["pid"].as_u64().unwrap(), tid, name, row["ts"].as_u64().unwrap(), row["dur"].as_u64())
    }))
}

/// Perfetto's format has the instants of a thread that is out of order as slices.
const SLICES: &str = "SELECT pid, tid, name, ts, dur, kind FROM slices WHERE name <> 'retry'";

//= docs/selecting.md#rules
#[test]
fn all_commands_choose_the_same_slices() {
    let Asked { sandbox, whole } = asked();
    printed(&sandbox, &["convert", "--format", "csv", "trace.fxt", "whole"]);
    let csv = fs::read_to_string(sandbox.file("whole/slices.csv")).unwrap();
    let of_whole: Vec<&str> = csv.lines().skip(1).collect();
    for (options, is_selected) in CASES {
        let selected: Vec<&Slice> = whole.iter().filter(|slice| is_selected(slice)).collect();
        let expected = sorted(selected.iter().map(|slice| shown(slice)));
        let query = |sql| printed(&sandbox, &[&["query", "--json"], options, &[sql, "trace.fxt"]].concat());
        assert_eq!(answered(&query(SLICES)), expected, "query {options:?}");
        assert_eq!(answered(&query("SELECT * FROM slices GROUP BY id")), expected, "groups {options:?}");
        let joined = "SELECT b.* FROM slices a JOIN slices b ON a.id = b.id AND a.ts = b.ts";
        assert_eq!(answered(&query(joined)), expected, "join {options:?}");
        let lines = printed(&sandbox, &[&["dump", "--json"], options, &["trace.fxt"]].concat());
        assert_eq!(dumped(&lines), expected, "dump {options:?}");
        for format in ["perfetto", "chrome"] {
            // The importer reads what was written.
            let output = format!("trace.{format}");
            printed(&sandbox, &[&["convert", "--format", format], options, &["trace.fxt", &output]].concat());
            let found = answered(&printed(&sandbox, &["query", "--json", SLICES, &output]));
            assert_eq!(found, expected, "{format} {options:?}");
        }
        printed(&sandbox, &[&["convert", "--format", "csv"], options, &["trace.fxt", "tables"]].concat());
        // A row is what it is in the whole trace, with its number, its parent and its own time.
        let rows = fs::read_to_string(sandbox.file("tables/slices.csv")).unwrap();
        let found: Vec<&str> = rows.lines().skip(1).collect();
        let rows = whole.iter().zip(&of_whole).filter(|(slice, _)| is_selected(slice)).map(|(_, row)| *row);
        assert_eq!(found, rows.collect::<Vec<_>>(), "csv {options:?}");
        fs::remove_dir_all(sandbox.file("tables")).unwrap();
    }
}

/// Rows, and the lines of a dump, for each of some options: what has no column for an option is not asked.
//= docs/selecting.md#other-records
//= docs/selecting.md#tables
#[test]
fn records_without_a_name_are_selected_by_what_they_have() {
    let sandbox = Sandbox::new();
    let mut bytes = Bytes(archive());
    let reason = LossCode::from(LossReason::ALL[1]);
    let loss = LossRecord { provider: ProviderId(1), reason, count: 7, first: Ticks(1), last: Ticks(2) };
    LossRecord::blob(&loss.to_bytes()).encode(&mut bytes).unwrap();
    fs::write(sandbox.file("trace.fxt"), bytes.0).unwrap();
    for (options, logs, wakeups, switches, threads) in [
        (&[][..], 4, 2, 3, 4),
        (&["--name", "read"], 4, 2, 3, 4),
        (&["--process", "server"], 2, 1, 2, 2),
        (&["--thread", "worker*"], 1, 0, 1, 1),
        (&["--from", "@4001"], 3, 1, 2, 4),
    ] {
        let lines = printed(&sandbox, &[&["dump"], options, &["trace.fxt"]].concat());
        let count = |kind: &str| lines.lines().filter(|line| line.split(' ').nth(3) == Some(kind)).count();
        let found = [count("log"), count("thread-wakeup"), count("context-switch")];
        assert_eq!(found, [logs, wakeups, switches], "{options:?}");
        // Losses are of the whole trace; names of threads are not printed with a selection.
        assert_eq!((count("kernel-object") > 0, count("loss")), (options.is_empty(), 1), "{options:?}");
        printed(&sandbox, &[&["convert", "--format", "csv"], options, &["trace.fxt", "tables"]].concat());
        let rows = |table: &str| {
            let csv = fs::read_to_string(sandbox.file(&format!("tables/{table}.csv"))).unwrap();
            csv.lines().count() - 1
        };
        let found = [rows("logs"), rows("wakeups"), rows("threads"), rows("losses")];
        assert_eq!(found, [logs, wakeups, threads, 1], "{options:?}");
        let sql = "SELECT (SELECT count(*) FROM logs), (SELECT count(*) FROM wakeups), (SELECT count(*) FROM threads), \
                   (SELECT count(*) FROM losses)";
        let counts =
            printed(&sandbox, &[&["query", "--format", "csv"], options, &[sql, "trace.fxt"]].concat());
        let counts = counts.lines().nth(1).unwrap();
        assert_eq!(counts, format!("{logs},{wakeups},{threads},1"), "{options:?}");
        fs::remove_dir_all(sandbox.file("tables")).unwrap();
    }
}

/// Each trace has its own begin and its own names.
//= docs/selecting.md#tables
#[test]
fn rows_of_several_traces_are_selected_by_the_times_of_each() {
    let Asked { sandbox, .. } = asked();
    let json = r#"[{"ph": "X", "pid": 1, "tid": 2, "ts": 50, "dur": 1, "name": "early", "cat": "c"},
                   {"ph": "X", "pid": 1, "tid": 2, "ts": 53, "dur": 1, "name": "later", "cat": "c"},
                   {"ph": "X", "pid": 1, "tid": 3, "ts": 53, "dur": 1, "name": "read", "cat": "c"},
                   {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "main"}}]"#;
    fs::write(sandbox.file("other.json"), json).unwrap();
    let sql = "SELECT trace, name, count(*) FROM slices GROUP BY trace, name";
    let found = |options: &[&str]| {
        let arguments = [&["query", "--format", "csv"], options, &[sql, "trace.fxt", "other.json"]].concat();
        printed(&sandbox, &arguments).lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        found(&["--from", "3us", "--thread", "main"]),
        [
            "other.json,later,1",
            "trace.fxt,flush,2",
            "trace.fxt,hang,1",
            "trace.fxt,job,2",
            "trace.fxt,read,2",
            "trace.fxt,request,2",
            "trace.fxt,write,2",
        ]
    );
    assert_eq!(found(&["--name", "read", "--from", "3us"]), ["other.json,read,1", "trace.fxt,read,4"]);
}

//= docs/selecting.md#selecting
#[test]
fn instants_samples_limits_and_differences_are_of_what_is_selected() {
    let Asked { sandbox, .. } = asked();
    for (options, instants, samples) in [
        (&["--process", "server", "--thread", "main"][..], 6, 6),
        (&["--name", "depth"], 0, 24),
        (&["--category", "net", "--from", "@1500", "--to", "@2000"], 4, 4),
    ] {
        let stats = printed(&sandbox, &[&["stats", "--json"], options, &["trace.fxt"]].concat());
        let answer = Answer::parse(&stats);
        let stats = &answer.result;
        let sum = |list: &Value| {
            list.as_array().unwrap().iter().map(|of| of["count"].as_u64().unwrap()).sum::<u64>()
        };
        assert_eq!((sum(&stats["instants"]), sum(&stats["counters"])), (instants, samples), "{options:?}");
        // The trace itself stays what it is.
        assert_eq!(
            (&answer.traces[0]["start_ns"], &answer.traces[0]["end_ns"]),
            (&BEGIN.into(), &4100.into())
        );
    }
    let judged = |options: &[&str], limit: &str| {
        printed(&sandbox, &[&["assert"], options, &["trace.fxt", limit]].concat())
    };
    let server = ["--process", "server", "--thread", "-worker*"];
    assert_eq!(judged(&server, "count(read) == 6"), "passed      count(read) == 6: 6\n");
    // Per second of the selected time: 4 in 500 ns.
    let found = judged(&["--from", "@1500", "--to", "@2000"], "rate(read) > 1");
    assert_eq!(found, "passed      rate(read) > 1: 8000000\n");
    let csv =
        printed(&sandbox, &["diff", "--csv", "--name", "write", "--last", "1us", "trace.fxt", "trace.fxt"]);
    let row = csv.lines().nth(1).unwrap();
    assert_eq!((csv.lines().count(), row), (2, "duration,net,write,80,80,20,20,20,20,4,4"));
}

//= docs/selecting.md#times
#[test]
fn a_time_that_makes_no_sense_is_an_error() {
    let Asked { sandbox, .. } = asked();
    let json = r#"[{"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 10, "name": "frame", "cat": "render"}]"#;
    fs::write(sandbox.file("trace.json"), json).unwrap();
    for (options, why) in [
        (
            &["--from", "2026-03-01T00:00:00Z", "trace.json"][..],
            "trace.json: the trace does not have the wall clock, so no time of day can be selected",
        ),
        (
            &["--from", "1s", "--to", "@700", "trace.fxt"],
            "trace.fxt: the end of the selected time is not behind its begin",
        ),
        (
            &["--category", "#al", "trace.fxt"],
            "--category: no category group found for #al; there are #default",
        ),
    ] {
        let output = sandbox.trace([&["stats"], options].concat());
        let found = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), found), (Some(2), format!("trace: {why}\n")), "{options:?}");
    }
}
