//! Pages and pictures of what is selected.

use super::*;
use serde_json::json;
use std::path::PathBuf;

/// Writes a page, and returns its first screen.
pub(super) fn page(sandbox: &Sandbox, options: &[&str], name: &str) -> Value {
    printed(sandbox, &[&["report", "trace.fxt", "-o", name], options].concat());
    let page = fs::read_to_string(sandbox.file(name)).unwrap();
    // The command that looks for a page of the whole trace does not take that of a part.
    let is_whole = page.contains("content=\"trace report\"");
    assert_eq!(is_whole, options.is_empty(), "{options:?}");
    let (_, meta) = page.split_once("id=\"meta\">").unwrap();
    let meta: Value = serde_json::from_str(meta.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(meta["is_part"], !is_whole, "{options:?}");
    meta
}

//= docs/selecting.md#rules
//= docs/report.md#the-command
#[test]
fn a_page_has_the_slices_and_the_sums_that_other_commands_have() {
    let Asked { sandbox, whole } = asked();
    let mut pages: Vec<PathBuf> = Vec::new();
    for (number, (options, is_selected)) in CASES.into_iter().enumerate() {
        let name = format!("{number}.html");
        let meta = page(&sandbox, options, &name);
        let mut found = Sums::new();
        for (kind, list) in [("duration", "slices"), ("operation", "operations")] {
            for row in meta[list]["rows"].as_array().unwrap() {
                let text = |place: usize| row[place].as_str().unwrap().to_owned();
                let number = |place: usize| row[place].as_f64().unwrap() as u64;
                // Operations have no own time in other commands.
                let own = if kind == "duration" { number(4) } else { 0 };
                let sums = [number(2), number(9), number(3), own];
                found.insert((kind.to_owned(), text(0), text(1)), sums);
            }
        }
        assert_eq!(found, sums(&whole, is_selected), "{options:?}");
        let stats = printed(&sandbox, &[&["stats", "--json"], options, &["trace.fxt"]].concat());
        let stats: Value = trace_tests::Answer::parse(&stats).into_result();
        let instants = stats["instants"].as_array().unwrap().iter();
        let instants = instants.map(|of| of["count"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(meta["instants"], instants, "{options:?}");
        // The trace itself stays what it is.
        assert_eq!((&meta["base"], &meta["length"]), (&json!("500"), &json!(3600)), "{options:?}");
        assert_eq!(meta["events"], stats["events"], "{options:?}");
        pages.push(sandbox.file(&name));
    }
    let test = "a_page_has_the_slices_and_the_sums_that_other_commands_have";
    let Some(pages) = trace_tests::report::rows(test, &pages) else { return };
    for ((options, is_selected), page) in CASES.into_iter().zip(pages) {
        let whole_number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
        let slices = page["slices"].as_array().unwrap().iter().map(|row| {
            let name = row[3].as_str().unwrap().to_owned();
            (whole_number(&row[0]), whole_number(&row[1]), name, whole_number(&row[4]), row[5].as_u64())
        });
        let operations = page["operations"].as_array().unwrap().iter().map(|row| {
            let name = row[2].as_str().unwrap().to_owned();
            (whole_number(&row[0]), 0, name, whole_number(&row[3]), row[4].as_u64())
        });
        let selected = whole.iter().filter(|slice| is_selected(slice));
        assert_eq!(sorted(slices.chain(operations)), sorted(selected.map(shown)), "{options:?}");
    }
}

/// A CPU that runs two threads in turns, between which flows lead.
fn scheduled() -> Vec<u8> {
    let mut bytes = Bytes(MAGIC_WORD.to_le_bytes().to_vec());
    bytes.record(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(1), name: b"app" }));
    bytes.object(TYPE_PROCESS, 10, "app", None);
    bytes.object(TYPE_THREAD, 11, "main", Some(10));
    bytes.object(TYPE_THREAD, 12, "worker", Some(10));
    for (thread, category, kind, at) in [
        (11, "net", EventKind::FlowBegin { id: 1 }, 110),
        (11, "net", EventKind::FlowBegin { id: 2 }, 120),
        (12, "disk", EventKind::FlowStep { id: 1 }, 210),
        (12, "net", EventKind::FlowEnd { id: 2 }, 250),
        (11, "net", EventKind::FlowEnd { id: 1 }, 410),
    ] {
        bytes.event((10, thread), (category, "go"), kind, at, &[]);
    }
    let arguments = Arguments::from_slice(&[]);
    for (at, outgoing, incoming) in
        [(100, 0, 11), (200, 11, 12), (300, 12, 0), (400, 0, 11), (500, 11, 12), (600, 12, 0)]
    {
        let (timestamp, outgoing_state) = (Ticks(at), ThreadState::BLOCKED);
        let [outgoing, incoming] = [outgoing, incoming].map(|thread| ThreadKoid(Koid(thread)));
        let switch =
            Scheduling::ContextSwitch { timestamp, cpu: 0, outgoing_state, outgoing, incoming, arguments };
        bytes.record(Record::Scheduling(switch));
        // Each is woken before it runs for the second time.
        if let Some(thread) =
            [(300, 11), (400, 12)].iter().find(|(of, _)| *of == at).map(|(_, thread)| *thread)
        {
            let (timestamp, thread) = (Ticks(at + 30), ThreadKoid(Koid(thread)));
            bytes.record(Record::Scheduling(Scheduling::ThreadWakeup {
                timestamp,
                cpu: 0,
                thread,
                arguments,
            }));
        }
    }
    bytes.0
}

/// Options; of which thread, and from when on and before when they select; whether they select the step of
/// the flow; and the lengths of waits that are, for a CPU and along flows.
type ScheduledCase = (&'static [&'static str], &'static str, u64, u64, bool, &'static [u64], &'static [u64]);

//= docs/selecting.md#other-records
//= docs/report.md#the-command
#[test]
fn states_and_waits_of_a_page_are_selected_by_their_threads_and_begins() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.fxt"), scheduled()).unwrap();
    let cases: [ScheduledCase; 6] = [
        (&[], "", 0, 1000, true, &[70, 70], &[200, 130, 100]),
        (&["--thread", "main"], "11", 0, 1000, true, &[70], &[]),
        (&["--thread", "worker"], "12", 0, 1000, true, &[70], &[]),
        (&["--from", "@205"], "", 205, 1000, true, &[70, 70], &[200]),
        (&["--to", "@400"], "", 0, 400, true, &[70], &[130, 100]),
        // What is between two parts that are selected does not make them neighbours.
        (&["--category", "net"], "", 0, 1000, false, &[70, 70], &[130]),
    ];
    let mut pages = Vec::new();
    for (number, (options, .., ready, flows)) in cases.into_iter().enumerate() {
        let name = format!("{number}.html");
        let meta = page(&sandbox, options, &name);
        assert_eq!((&meta["base"], &meta["length"]), (&json!("100"), &json!(500)), "{options:?}");
        let lengths = |waits: &Value| -> Vec<u64> {
            waits.as_array().unwrap().iter().map(|wait| wait[0].as_u64().unwrap()).collect()
        };
        assert_eq!(
            (&lengths(&meta["ready"])[..], &lengths(&meta["flows"])[..]),
            (ready, flows),
            "{options:?}"
        );
        let sum = ready.iter().sum::<u64>() as f64;
        assert_eq!(meta["waited"], json!([ready.len(), sum]), "{options:?}");
        pages.push(sandbox.file(&name));
    }
    let test = "states_and_waits_of_a_page_are_selected_by_their_threads_and_begins";
    let Some(pages) = trace_tests::report::rows(test, &pages) else { return };
    // Tracks come in the order in which they begin.
    let rows = |page: &Value, table: &str| {
        let mut rows = page[table].as_array().unwrap().clone();
        if table == "states" {
            rows.sort_by_key(Value::to_string);
        }
        rows
    };
    let whole = &pages[0];
    let count = |table: &str| rows(whole, table).len();
    assert_eq!(["cpus", "states", "flows"].map(count), [6, 13, 5], "{whole}");
    for ((options, thread, from, to, has_step, ..), page) in cases.into_iter().zip(&pages) {
        let is_selected = |of: &Value, at: &Value| {
            let at = at.as_str().unwrap().parse::<u64>().unwrap();
            (thread.is_empty() || of == thread) && (from..to).contains(&at)
        };
        let expected = |table: &str, at: usize| -> Vec<Value> {
            rows(whole, table).into_iter().filter(|row| is_selected(&row[1], &row[at])).collect()
        };
        assert_eq!(rows(page, "cpus"), expected("cpus", 2), "{options:?}");
        assert_eq!(rows(page, "states"), expected("states", 3), "{options:?}");
        // An arrow leads to a part if the one before it is selected, too.
        let mut parts = Vec::new();
        let mut has_before = false;
        for mut row in rows(whole, "flows") {
            let is_part = is_selected(&row[1], &row[3]) && (has_step || row[3] != "210");
            row[4] = json!(row[4] == true && has_before);
            has_before = is_part;
            parts.extend(is_part.then_some(row));
        }
        assert_eq!(rows(page, "flows"), parts, "{options:?}");
    }
}

/// The slices of a picture: their names and when they begin.
fn drawn(picture: &str) -> Vec<(String, String)> {
    let mut drawn: Vec<_> = picture
        .split("<g><title>")
        .skip(1)
        .map(|slice| {
            let mut lines = slice.split("</title>").next().unwrap().lines();
            (lines.next().unwrap().to_owned(), lines.nth(1).unwrap().to_owned())
        })
        .collect();
    drawn.sort();
    drawn
}

//= docs/svg.md#the-command
#[test]
fn a_picture_has_what_is_selected_of_its_window() {
    let Asked { sandbox, whole } = asked();
    let picture = |options: &[&str]| {
        printed(&sandbox, &[&["report", "trace.fxt", "-o", "picture.svg"], options].concat());
        fs::read_to_string(sandbox.file("picture.svg")).unwrap()
    };
    let window = picture(&["--from", "505ns", "--to", "990ns"]);
    for (options, is_selected) in CASES {
        // A picture has a time of its own.
        if options.iter().any(|option| ["--from", "--to", "--last"].contains(option)) {
            continue;
        }
        let found = drawn(&picture(&[options, &["--from", "505ns", "--to", "990ns"]].concat()));
        // At least partly.
        let is_in = |slice: &&Slice| slice.ts < 1490 && slice.dur.is_none_or(|dur| slice.ts + dur >= 1005);
        let of_window = whole.iter().filter(is_in).filter(|slice| is_selected(slice));
        let mut expected: Vec<_> =
            of_window.map(|slice| (slice.name.clone(), format!("at {} ns", slice.ts - BEGIN))).collect();
        expected.sort();
        assert_eq!(found, expected, "{options:?}");
    }
    for same in [
        ["--from", "@1005", "--to", "@1490"],
        ["--from", "2026-03-01T00:00:00.000000505Z", "--to", "990ns"],
        ["--from", "505ns", "--to", "2026-03-01T00:00:00.00000099Z"],
    ] {
        assert_eq!(picture(&same), window, "{same:?}");
    }
    assert_eq!(picture(&["--last", "1us"]), picture(&["--from", "2600ns"]));
    assert_eq!(picture(&["--name", "re*", "--last", "1us"]), picture(&["--from", "@3100", "--name", "re*"]));
}
