//! The page of `trace report`: what a person sees in it is what `trace query` answers.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use trace_format::argument::Arguments;
use trace_format::event::{Event, EventKind};
use trace_format::initialization::Initialization;
use trace_format::metadata::Metadata;
use trace_format::record::Record;
use trace_format::refs::{StringRef, ThreadRef};
use trace_format::sink::Sink;
use trace_format::units::{Koid, ProcessKoid, ProviderId, ThreadKoid, Ticks, TicksPerSecond};
use trace_tests::build::{program, workspace};
use trace_tests::report::{Accessibility, drive};
use trace_tests::{Requirement, Sandbox};

/// Rectangles of a picture at most.
const MOST_RECTANGLES: u64 = 20_000;

/// Writes the page of a trace, and uses it.
fn page(test: &str, sandbox: &Sandbox, trace: &str, name: &str) -> Option<Value> {
    page_of(test, sandbox, trace, name, Accessibility::NotJudged)
}

fn page_of(
    test: &str,
    sandbox: &Sandbox,
    trace: &str,
    name: &str,
    accessibility: Accessibility,
) -> Option<Value> {
    let output = sandbox.trace(["report", trace, "-o", "page.html"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = drive(test, &sandbox.file("page.html"), name, accessibility)?;
    assert_eq!(found["errors"], json!([]), "{trace}");
    assert_eq!(found["requests"], json!([]), "{trace}");
    assert_eq!(found["accessibility"], json!([]), "{trace}");
    let rectangles = found["frames"]["rectangles"].as_u64().unwrap();
    assert!(rectangles <= MOST_RECTANGLES, "{trace}: {rectangles}");
    Some(found)
}

fn query(sandbox: &Sandbox, trace: &str, sql: &str) -> Vec<Value> {
    let output = sandbox.trace(["query", "--format", "json", sql, trace]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    trace_tests::json(&output)
}

/// How often threads run, and for how long in all: when CPUs run them. Where the record of a switch is
/// missing, a CPU seems to run a thread until its next one, though another CPU runs it by then. Rows come
/// when CPUs stop running threads, and time that a row before has is not counted again.
fn running(sandbox: &Sandbox, trace: &str) -> (u64, u64) {
    let (mut count, mut sum) = (0, 0);
    let mut ends = BTreeMap::new();
    for row in query(sandbox, trace, "SELECT tid, ts, dur FROM sched") {
        let end = ends.entry(row["tid"].as_u64()).or_insert(0);
        let ts = row["ts"].as_u64().unwrap();
        let from = ts.max(*end);
        match row["dur"].as_u64() {
            None => count += 1,
            Some(dur) if ts + dur > from => {
                count += 1;
                sum += ts + dur - from;
                *end = ts + dur;
            }
            Some(_) => {}
        }
    }
    (count, sum)
}

/// Compares everything that the page can be asked for with the tables.
fn compare(sandbox: &Sandbox, trace: &str, found: &Value) {
    let number = |sql: &str| query(sandbox, trace, sql)[0]["n"].as_u64().unwrap();
    let count = |table: &str| number(&format!("SELECT count(*) AS n FROM {table}"));
    let counted = |place: usize| found["counts"][place].as_u64().unwrap();
    assert_eq!(counted(0), count("slices WHERE async_id IS NULL"), "{trace}: slices");
    assert_eq!(counted(1), count("slices WHERE async_id IS NOT NULL"), "{trace}: operations");
    assert_eq!(counted(2), count("sched"), "{trace}: sched");
    assert_eq!(counted(3), count("instants"), "{trace}: instants");
    assert_eq!(counted(4), count("logs"), "{trace}: logs");
    assert_eq!(counted(5), count("counters"), "{trace}: counters");
    assert_eq!(found["flows"].as_u64().unwrap(), count("flows"), "{trace}: flows");
    if found["folding"].is_null() {
        let seen = |place: usize| found["states"]["running"][place].as_f64().unwrap_or(0.0) as u64;
        assert_eq!((seen(0), seen(1)), running(sandbox, trace), "{trace}: running");
    }
    // Number, sum and greatest depth of the slices of each name.
    let key = |row: &Value, category: &str, name: &str| {
        format!("{}\n{}", row[category].as_str().unwrap(), row[name].as_str().unwrap())
    };
    let expected: BTreeMap<String, [u64; 2]> = query(
        sandbox,
        trace,
        "SELECT category, name, count(*) AS n, coalesce(sum(dur), 0) AS sum FROM slices GROUP BY category, name",
    )
    .iter()
    .map(|row| (key(row, "category", "name"), [row["n"].as_u64().unwrap(), row["sum"].as_u64().unwrap()]))
    .collect();
    let seen: BTreeMap<String, [u64; 2]> = found["slices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let key = format!("{}\n{}", row[0].as_str().unwrap(), row[1].as_str().unwrap());
            (key, [row[2].as_u64().unwrap(), row[3].as_f64().unwrap() as u64])
        })
        .collect();
    assert_eq!(seen, expected, "{trace}");
    let deepest = number("SELECT coalesce(max(depth), 0) AS n FROM slices");
    let seen = found["slices"].as_array().unwrap().iter().map(|row| row[4].as_u64().unwrap()).max();
    assert!(seen.unwrap_or(0) >= deepest, "{trace}: depth");
    // The question of the range of everything gives the rows of its table, also as it is copied.
    let rows = query(sandbox, trace, found["sql"].as_str().unwrap());
    let shown = found["rows"].as_array().unwrap();
    assert_eq!(shown.len(), rows.len().min(200), "{trace}");
    if rows.len() <= 200 {
        compare_rows(trace, shown, &rows);
    }
    assert_eq!(found["copied"]["button"], "Copied", "{trace}");
    let copied = run_copied(sandbox, found["copied"]["command"].as_str().unwrap());
    assert_eq!(copied, rows, "{trace}");
}

/// Compares the rows of the table of a range with what its question answers: by name, category and kind how
/// many slices there are, and how much of their time is in the range, to the digits that are shown.
fn compare_rows(trace: &str, shown: &[Value], rows: &[Value]) {
    let text = |row: &Value, place: usize| row[place].as_str().unwrap().to_owned();
    let seen: BTreeMap<(String, String, String), (u64, String)> = shown
        .iter()
        .map(|row| {
            let count = text(row, 3).replace('\u{202f}', "").parse().unwrap();
            ((text(row, 1), text(row, 0), text(row, 2)), (count, text(row, 4)))
        })
        .collect();
    assert_eq!(seen.len(), shown.len(), "{trace}");
    for row in rows {
        let key = ["category", "name", "kind"].map(|member| row[member].as_str().unwrap().to_owned());
        let name = if key[1].is_empty() { "(no name)".to_owned() } else { escaped(&key[1], 120) };
        let key = (escaped(&key[0], 60), name, key[2].clone());
        let (count, time) = seen.get(&key).unwrap_or_else(|| panic!("{trace}: no row of {key:?}"));
        assert_eq!(Some(*count), row["n"].as_u64(), "{trace}: {key:?}");
        let expected = row["ns"].as_f64().unwrap();
        let words: Vec<&str> = time.split(' ').collect();
        let factor = |unit: &str| match unit {
            "ns" => 1.0,
            "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "min" => 6e10,
            "h" => 3.6e12,
            _ => panic!("{trace}: {time}"),
        };
        let seen: f64 = words.chunks(2).map(|part| part[0].parse::<f64>().unwrap() * factor(part[1])).sum();
        assert!((seen - expected).abs() <= 6e-4 * expected, "{trace}: {key:?}: {time} for {expected} ns");
    }
}

/// A name as a page shows it: no character controls or hides, and of a long name the beginning.
fn escaped(name: &str, most: usize) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut text = String::new();
    for c in name.chars().take(most) {
        if is_hidden(c) {
            text += &format!("\\u{{{:x}}}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    if name.chars().count() > most { text + "…" } else { text }
}

/// Runs a command as it was copied, in a shell, and returns its rows.
fn run_copied(sandbox: &Sandbox, command: &str) -> Vec<Value> {
    let arguments = command.strip_prefix("trace query ").unwrap_or_else(|| panic!("{command}"));
    let trace = program("trace");
    let line = format!("'{}' query --format json {arguments}", trace.display());
    let mut shell = sandbox.command("trace");
    let environment: Vec<_> =
        shell.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    shell = Command::new("sh");
    shell.arg("-c").arg(line).current_dir(sandbox.work_dir());
    shell.envs(environment.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let output = shell.output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    trace_tests::json(&output)
}

fn ends(found: &Value, member: &str) -> [f64; 2] {
    [0, 1].map(|place| found[member][place].as_f64().unwrap())
}

#[test]
fn the_page_of_the_demo_is_used_by_wheel_search_click_and_range() {
    let test = "the_page_of_the_demo_is_used_by_wheel_search_click_and_range";
    let sandbox = Sandbox::new();
    sandbox.record(&["--output-file", "demo.fxt"], "demo", &[]);
    let Some(found) = page_of(test, &sandbox, "demo.fxt", "raster tile", Accessibility::Judged) else {
        return;
    };
    compare(&sandbox, "demo.fxt", &found);
    assert_eq!(found["title"], "demo.fxt · trace report");
    assert!(
        found["overview"].as_str().unwrap().contains("Nothing is missing: the records of 3 programs add up.")
    );
    // The wheel zooms in around the middle, a drag to the left and a key pan to the right.
    let [whole, zoomed, panned, keyed] =
        ["whole", "zoomed", "panned", "keyed"].map(|member| ends(&found, member));
    assert!(zoomed[1] - zoomed[0] < 0.7 * (whole[1] - whole[0]), "{zoomed:?}");
    let middle = |[from, to]: [f64; 2]| (from + to) / 2.0;
    assert!((middle(zoomed) - middle(whole)).abs() < 0.01 * (whole[1] - whole[0]), "{zoomed:?}");
    assert!(panned[0] > zoomed[0] && keyed[0] > panned[0], "{panned:?} {keyed:?}");
    // Every tile is found, and the next one follows.
    let tiles = query(&sandbox, "demo.fxt", "SELECT count(*) AS n FROM slices WHERE name = 'raster tile'");
    let tiles = tiles[0]["n"].as_u64().unwrap();
    let place = |member: &str| {
        let text = found[member].as_str().unwrap().to_owned();
        let (place, all) = text.split_once(" of ").unwrap_or_else(|| panic!("{text}"));
        assert_eq!(all, tiles.to_string());
        place.parse::<u64>().unwrap()
    };
    assert_eq!(place("next"), place("search") % tiles + 1);
    let details = found["details"].as_str().unwrap();
    for part in [
        "raster tile",
        "Duration",
        "Self time",
        "demo-renderer › raster-",
        "frame",
        "tile",
        "← from schedule tile",
    ] {
        assert!(details.contains(part), "{part}: {details}");
    }
    assert_eq!(found["clicked"], "raster tile");
    assert_eq!(found["again"], "raster tile");
    assert!(found["tip"].as_str().unwrap().starts_with("raster tile"));
    // The question of the selection has one answer, which is the selection.
    let rows = query(&sandbox, "demo.fxt", found["selectedSql"].as_str().unwrap());
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&row["name"], &row["thread"].as_str().unwrap()[..7]), (&json!("raster tile"), "raster-"));
    assert!(details.contains(&format!("{} ns", row["ts"])), "{row}: {details}");
    let args: Value = serde_json::from_str(row["args"].as_str().unwrap()).unwrap();
    assert!(details.contains(&args["tile"].to_string()), "{args}: {details}");
    tracks_are_pinned_and_hidden_and_two_fingers_zoom(&found);
}

fn tracks_are_pinned_and_hidden_and_two_fingers_zoom(found: &Value) {
    // A pinned track is at the top, and in the address.
    let pinned = &found["pinned"];
    let own = pinned["own"].as_str().unwrap();
    assert_eq!((&pinned["keys"], &pinned["top"], &pinned["left"]), (&json!([own]), &json!(0), &json!(0)));
    assert!(pinned["hash"].as_str().unwrap().contains(&format!("pin={own}")), "{pinned}");
    // A hidden one leaves its place to the next, and comes back.
    let hidden = &found["hidden"];
    let keys = |member: &str| hidden[member].as_array().unwrap().clone();
    let (before, after) = (keys("before"), keys("after"));
    let gone: Vec<&Value> = before.iter().filter(|key| !after.contains(key)).collect();
    let [gone] = gone[..] else { panic!("{hidden}") };
    assert!(
        hidden["hash"].as_str().unwrap().contains(&format!("hide={}", gone.as_str().unwrap())),
        "{hidden}"
    );
    assert_eq!(hidden["button"], "Show 1 hidden");
    assert_eq!((keys("again"), &hidden["isButtonLeft"]), (before, &json!(false)));
    // From 80 pixels to 320, and back.
    let [whole, pinched, back] = ["whole", "pinched", "pinchedBack"].map(|member| ends(found, member));
    let size = |[from, to]: [f64; 2]| to - from;
    assert!((size(whole) / size(pinched) - 4.0).abs() < 0.2, "{whole:?} {pinched:?}");
    assert!((size(back) / size(whole) - 1.0).abs() < 0.05, "{whole:?} {back:?}");
    // What was between the fingers stays there.
    let between = |[from, to]: [f64; 2]| from + (to - from) / 4.0;
    assert!((between(pinched) - between(whole)).abs() < 0.02 * size(pinched), "{whole:?} {pinched:?}");
}

/// Writes so many slices on eight threads, most of them short and every hundredth long, one around those of a
/// thread, and a thread with nothing but short ones.
fn write_many(path: &Path, slices: u64) {
    let mut bytes = Words(Vec::new());
    let mut write = |record: Record<'_>| record.encode(&mut bytes).expect("a valid record");
    write(Record::Metadata(Metadata::TraceInfoMagic));
    write(Record::Metadata(Metadata::ProviderInfo { id: ProviderId(1), name: b"many" }));
    write(Record::Initialization(Initialization {
        ticks_per_second: TicksPerSecond::new(1_000_000_000).expect("not 0"),
    }));
    let mut slice = |thread: u64, name: &str, begin: u64, end: u64| {
        write(Record::Event(Event {
            timestamp: Ticks(begin),
            thread: ThreadRef::Inline {
                process: ProcessKoid(Koid(7)),
                thread: ThreadKoid(Koid(100 + thread)),
            },
            category: StringRef::Inline(b"c"),
            name: StringRef::Inline(name.as_bytes()),
            kind: EventKind::DurationComplete { end: Ticks(end) },
            arguments: Arguments::from_slice(&[]),
        }));
    };
    let mut at = [1000_u64; 8];
    for number in 0..slices {
        let thread = (number % 8) as usize;
        let length = if number % 100 == 99 { 50_000 + number % 1000 } else { 1 + number % 300 };
        let name = format!("name {}", number * 31 % 12);
        slice(thread as u64, &name, at[thread], at[thread] + length);
        at[thread] += length + number % 7;
    }
    slice(0, "around", 500, at[0] + 500);
    (0..1000).for_each(|number| slice(8, "short", 1000 + 9 * number, 1003 + 9 * number));
    fs::write(path, bytes.0).expect("room");
}

struct Words(Vec<u8>);

impl Sink for Words {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }
}

//= docs/report.md#what-is-in-the-file
#[test]
fn of_more_than_a_million_slices_the_long_ones_stay_and_sums_are_exact() {
    let test = "of_more_than_a_million_slices_the_long_ones_stay_and_sums_are_exact";
    let sandbox = Sandbox::new();
    write_many(&sandbox.file("many.fxt"), 1_100_000);
    let Some(found) = page(test, &sandbox, "many.fxt", "around") else { return };
    let number = |sql: &str| query(&sandbox, "many.fxt", sql)[0]["n"].as_u64().unwrap();
    let cut = found["folding"]["cut"].as_u64().expect("it is folded");
    let member = |member: &str, place: usize| found[member][place].as_u64().unwrap();
    // One by one there are exactly those that are long enough, and the others are in folds.
    let long = number(&format!("SELECT count(*) AS n FROM slices WHERE dur >= {cut}"));
    assert_eq!(member("counts", 0), long);
    assert!((500_000..=600_000).contains(&long), "{long}");
    let short = |what: &str| number(&format!("SELECT {what} AS n FROM slices WHERE dur < {cut}"));
    assert_eq!((member("folded", 0), member("folded", 1)), (short("count(*)"), short("sum(dur)")));
    assert_eq!(found["folding"]["count"].as_u64(), Some(short("count(*)")));
    let kept: u64 =
        found["slices"].as_array().unwrap().iter().map(|row| row[3].as_f64().unwrap() as u64).sum();
    assert_eq!(kept + member("folded", 1), number("SELECT sum(dur) AS n FROM slices"));
    // The sums of the overview are of all slices.
    let rows = query(
        &sandbox,
        "many.fxt",
        "SELECT name, count(*) AS n, sum(dur) AS total, sum(self_dur) AS own FROM slices GROUP BY name",
    );
    assert_eq!(rows.len(), 14);
    for row in rows {
        let shown =
            found["reported"].as_array().unwrap().iter().find(|of| of[1] == row["name"]).expect("a row");
        let shown = [2, 3, 4].map(|place| shown[place].as_f64().unwrap() as u64);
        assert_eq!(shown, ["n", "total", "own"].map(|member| row[member].as_u64().unwrap()), "{row}");
    }
    let overview = found["overview"].as_str().unwrap();
    assert!(overview.contains("This trace has more slices than are drawn one by one"), "{overview}");
    assert!(overview.contains("All sums are of all slices."), "{overview}");
    assert_eq!(found["clicked"], "around");
    // The same trace makes the same page.
    let first = fs::read(sandbox.file("page.html")).unwrap();
    assert!(sandbox.trace(["report", "many.fxt", "-o", "page.html"]).status.success());
    assert!(fs::read(sandbox.file("page.html")).unwrap() == first, "the page differs");
}

#[test]
fn pages_of_imported_traces_and_of_the_kernel_agree_with_their_tables() {
    let test = "pages_of_imported_traces_and_of_the_kernel_agree_with_their_tables";
    let sandbox = Sandbox::new();
    for (sample, name) in [
        ("fuchsia_device_window.fxt", "PatchRelocation"),
        ("linux_tracebox_sched.pftrace", "softirq"),
        ("catapult_nestable_async.json", "URL_REQUEST"),
    ] {
        fs::copy(workspace().join("tests/data/samples").join(sample), sandbox.file(sample)).unwrap();
        let Some(found) = page(test, &sandbox, sample, name) else { return };
        compare(&sandbox, sample, &found);
        let has_states = ["running", "ready", "waiting"].map(|state| !found["states"][state].is_null());
        assert_eq!(has_states, [sample != "catapult_nestable_async.json"; 3], "{sample}");
    }
    // What else runs here would have millions of system calls and page faults.
    let categories = "kernel:sched,#default,frames,ipc,layout,raster,render,startup,storage";
    let recorded = sandbox.record(&["--categories", categories, "-o", "kernel.fxt"], "demo", &[]);
    assert!(recorded.status.success());
    let Some(found) = page_of(test, &sandbox, "kernel.fxt", "frame", Accessibility::Judged) else { return };
    compare(&sandbox, "kernel.fxt", &found);
}

#[test]
fn hostile_names_and_times_do_not_break_the_page() {
    let test = "hostile_names_and_times_do_not_break_the_page";
    let sandbox = Sandbox::new();
    let names = [
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a\u{202e}b\u{2066}c\u{1}\u{1b}[31md",
        "<!--",
        "'\"`${1}",
        "",
        "__proto__",
    ];
    let long = "x".repeat(20_000);
    let mut events = Vec::new();
    for (place, name) in names.into_iter().chain([long.as_str()]).enumerate() {
        let at = 1000 + 10 * place;
        let args = json!({name: name, "place": place});
        events.push(json!({"ph": "X", "pid": 1, "tid": 1, "ts": at, "dur": 5, "name": name, "cat": name, "args": args}));
        events.push(json!({"ph": "i", "pid": 1, "tid": 1, "ts": at, "name": name, "cat": "c", "s": "t"}));
        events.push(json!({"ph": "C", "pid": 1, "ts": at, "name": name, "args": {name: place}}));
        events.push(json!({"ph": "b", "pid": 1, "tid": 1, "ts": at, "name": name, "cat": "c", "id": place}));
        events.push(
            json!({"ph": "e", "pid": 1, "tid": 1, "ts": at + 2, "name": name, "cat": "c", "id": place}),
        );
        events.push(
            json!({"ph": "s", "pid": 1, "tid": 1, "ts": at + 1, "name": name, "cat": "c", "id": place}),
        );
        events.push(json!({"ph": "X", "pid": 1, "tid": 2, "ts": at + 3, "dur": 4, "name": name, "cat": "c"}));
        events.push(json!({"ph": "f", "bp": "e", "pid": 1, "tid": 2, "ts": at + 4, "name": name, "cat": "c", "id": place}));
    }
    for (name, ts, dur) in
        [("zero", 2000, 0), ("a", 2000, 50), ("overlapping", 2020, 90), ("negative", 2200, -5)]
    {
        events.push(json!({"ph": "X", "pid": 2, "tid": 3, "ts": ts, "dur": dur, "name": name, "cat": "c"}));
    }
    events.push(json!({"ph": "B", "pid": 2, "tid": 3, "ts": 2300, "name": "open", "cat": "c"}));
    for (what, name) in [("process_name", names[1]), ("thread_name", names[0])] {
        events.push(json!({"ph": "M", "pid": 1, "tid": 1, "name": what, "args": {"name": name}}));
    }
    fs::write(sandbox.file("names.json"), Value::from(events).to_string()).unwrap();
    let Some(found) = page_of(test, &sandbox, "names.json", "img", Accessibility::Judged) else { return };
    compare(&sandbox, "names.json", &found);
    assert_eq!(found["clicked"], "<img src=x onerror=alert(1)>");
    // No events, and times that a double cannot hold.
    fs::write(sandbox.file("empty.json"), "[]").unwrap();
    let Some(found) = page(test, &sandbox, "empty.json", "x") else { return };
    assert!(found["overview"].as_str().unwrap().contains("There are no events in this trace."));
    assert_eq!(found["search"], "nothing");
    let far = json!([
        {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 3, "name": "early", "cat": "c"},
        {"ph": "X", "pid": 1, "tid": 1, "ts": 9_223_372_036_000_000_u64, "dur": 3, "name": "late", "cat": "c"},
    ]);
    fs::write(sandbox.file("far.json"), far.to_string()).unwrap();
    let Some(found) = page(test, &sandbox, "far.json", "late") else { return };
    assert_eq!(found["counts"][0], 2);
    assert_eq!(found["clicked"], "late");
}

#[test]
fn a_hundred_thousand_tracks_are_a_page() {
    let test = "a_hundred_thousand_tracks_are_a_page";
    let sandbox = Sandbox::new();
    let events = (0..100_000_u32).map(|i| json!({"ph": "X", "pid": i % 500, "tid": i, "ts": i, "dur": 3, "name": format!("n{}", i % 7), "cat": "c"}));
    fs::write(sandbox.file("tracks.json"), Value::from(events.collect::<Vec<_>>()).to_string()).unwrap();
    let Some(found) = page(test, &sandbox, "tracks.json", "n3") else { return };
    assert_eq!(found["counts"][0], 100_000);
    assert!(found["search"].as_str().unwrap().ends_with(" of 14\u{202f}286"), "{}", found["search"]);
}

//= docs/report.md#the-command
#[test]
fn a_recording_has_its_report_beside_it() {
    let sandbox = Sandbox::new();
    let output = sandbox.record(&["--report", "-o", "app.fxt"], "demo", &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("trace: report in app.html"), "{output:?}");
    assert!(sandbox.files().contains(&"app.html".to_owned()), "{:?}", sandbox.files());
    let page = fs::read_to_string(sandbox.file("app.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let policy = "default-src 'none'; script-src 'sha256-";
    assert!(page.contains(policy), "{}", &page[..300]);
}

//= docs/report.md#what-is-in-the-file
#[test]
fn half_a_million_slices_are_less_than_four_megabytes() {
    let sandbox = Sandbox::new();
    for (arguments, most) in [(false, 4_000_000), (true, 6_000_000)] {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let mut at = [0_u64; 8];
        let mut text = String::from("[");
        for number in 0..500_000_u64 {
            let thread = next(8) as usize;
            let length = 100 + next(20_000);
            let args =
                if arguments { format!(",\"args\":{{\"size\":{}}}", next(65_536)) } else { String::new() };
            let comma = if number == 0 { "" } else { "," };
            text += &format!(
                "{comma}{{\"ph\":\"X\",\"pid\":1,\"tid\":{thread},\"ts\":{}.{:03},\"dur\":{}.{:03},\"cat\":\"c\",\"name\":\"name {}\"{args}}}",
                at[thread] / 1000,
                at[thread] % 1000,
                length / 1000,
                length % 1000,
                next(48)
            );
            at[thread] += length + next(5_000);
        }
        fs::write(sandbox.file("large.json"), text + "]").unwrap();
        let output = sandbox.trace(["report", "large.json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let size = fs::metadata(sandbox.file("large.html")).unwrap().len();
        assert!(size <= most, "{size} bytes");
    }
    // An input is not replaced by its page.
    assert_eq!(sandbox.trace(["report", "large.json", "-o", "large.json"]).status.code(), Some(2));
}

#[test]
fn modules_are_typed_and_tested() {
    let test = "modules_are_typed_and_tested";
    if !Requirement::Node.is_met(test) {
        return;
    }
    let root = workspace();
    let node = |arguments: &[&str]| {
        Command::new("node").args(arguments).current_dir(root).output().expect("node runs")
    };
    let tests = node(&["--test", "tests/report/modules.mjs", "tests/report/live.mjs"]);
    assert!(tests.status.success(), "{}", String::from_utf8_lossy(&tests.stdout));
    if !Requirement::Ui.is_met(test) {
        return;
    }
    let modules = std::env::var_os("TRACE_TEST_UI").expect("it was tried");
    let tool =
        |path: &str| Path::new(&modules).join("node_modules").join(path).to_str().expect("UTF-8").to_owned();
    let ui = "crates/trace-report/ui";
    let types = node(&[&tool("typescript/bin/tsc"), "-p", ui]);
    assert!(types.status.success(), "{}", String::from_utf8_lossy(&types.stdout));
    let config = format!("{ui}/.prettierrc.json");
    let patterns = ["*.js", "live/*.js"].map(|pattern| format!("{ui}/{pattern}"));
    let prettier = tool("prettier/bin/prettier.cjs");
    let format = node(&[&prettier, "--config", &config, "--check", &patterns[0], &patterns[1]]);
    assert!(format.status.success(), "{}", String::from_utf8_lossy(&format.stderr));
}
