//! `trace view --live`: the page of a recording that is still running.

use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;
use trace_tests::build::{program, workspace};
use trace_tests::report::drive_live;
use trace_tests::sandbox::Process;
use trace_tests::{Archive, Sandbox, pages, wait_for};

/// A running `trace view --live`, and its address: port and token.
struct View {
    process: Process,
    port: u16,
    token: String,
}

impl View {
    fn begin(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let process = sandbox.spawn("trace", &[&["view", "--live", "--no-open"], arguments].concat());
        let address = wait_for("the address", || {
            let said = process.stderr_so_far();
            let (said, _) = said.rsplit_once('\n')?;
            said.lines().find_map(|line| line.strip_prefix("trace: http://127.0.0.1:")).map(str::to_owned)
        });
        let (port, token) = address.split_once('/').expect("a path");
        let token = token.strip_suffix('/').expect("a slash at the end").to_owned();
        Self { port: port.parse().unwrap(), token, process }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    fn ask(&self, path: &str, headers: &str) -> TcpStream {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{headers}\r\n", self.port);
        connection.write_all(request.as_bytes()).unwrap();
        connection
    }

    fn status(&self, path: &str, headers: &str) -> String {
        let mut answer = String::new();
        BufReader::new(self.ask(path, headers)).read_line(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// The stream of a page.
    fn stream(&self) -> Stream {
        Stream(BufReader::new(self.ask(&format!("/{}/events", self.token), "")))
    }
}

/// A stream of events, in chunks of HTTP.
struct Stream(BufReader<TcpStream>);

impl Stream {
    /// The next event: its name, which is empty for an update, and its data. None at the end.
    fn next(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(of) = line.strip_prefix("event: ") {
                of.trim_end().clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).expect("JSON")));
            }
        }
    }

    /// The first event for which this is true.
    fn until(&mut self, what: &str, is_true: impl Fn(&str, &Value) -> bool) -> Value {
        loop {
            let (name, data) = self.next().unwrap_or_else(|| panic!("{what} before the end"));
            if is_true(&name, &data) {
                return data;
            }
        }
    }
}

fn query(sandbox: &Sandbox, trace: &str, sql: &str) -> Vec<Value> {
    let output = sandbox.trace(["query", "--format", "json", sql, trace]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    trace_tests::json(&output)
}

fn count(sandbox: &Sandbox, trace: &str, table: &str) -> u64 {
    query(sandbox, trace, &format!("SELECT count(*) AS n FROM {table}"))[0]["n"].as_u64().unwrap()
}

/// The page follows the recording, stands still when it is paused, and at its end has the numbers of the
/// archive.
//= docs/live.md#in-a-browser
#[test]
fn the_page_follows_its_recording_and_agrees_with_the_archive() {
    let test = "the_page_follows_its_recording_and_agrees_with_the_archive";
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("wait"), "").unwrap();
    let living = program("living");
    let view = View::begin(&sandbox, &["-o", "a.fxt", "--", living.to_str().unwrap(), "wait", "3"]);
    let Some(mut browser) = drive_live(test, &view.address()) else { return };
    assert_eq!(browser.line(), "following");
    fs::remove_file(sandbox.file("wait")).unwrap();
    let output = browser.finish();
    assert!(output.status.success(), "{output:?}");
    let found: Value = trace_tests::json(&output);
    assert_eq!(found["errors"], json!([]));
    assert_eq!(found["requests"], json!([]));
    assert_eq!(found["accessibility"], json!([]));
    assert_eq!(found["title"], "recording · trace view");

    // The right edge is the newest moment; the picture is ten seconds wide.
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
    let is_newest = |of: &Value| number(of, "to") == number(of, "now");
    for state in found["followed"].as_array().unwrap() {
        assert!(is_newest(state) && number(state, "to") - number(state, "from") == 10e9, "{state}");
    }
    for (how, states) in found["paused"].as_object().unwrap() {
        let (before, after) = (&states["before"], &states["after"]);
        assert_eq!((&before["from"], &before["to"]), (&after["from"], &after["to"]), "{how}: {states}");
        assert!(
            number(after, "now") > number(before, "now") && states["button"] == "Follow",
            "{how}: {states}"
        );
        assert!(states["again"].as_array().unwrap().iter().all(is_newest), "{how}: {states}");
    }
    let paused = &found["paused"]["drag"];
    assert!(!is_newest(&paused["before"]), "dragging moves the picture: {paused}");

    // All numbers are those of the archive.
    assert_eq!(found["state"], "recording");
    assert_eq!(found["ended"], "The recording has ended and is saved.");
    let rows = |table: &str| count(&sandbox, "a.fxt", table);
    let total = |name: &str| found["totals"][name].as_u64().unwrap();
    assert_eq!((total("slices"), rows("slices WHERE async_id IS NULL")), (1500, 1500));
    assert_eq!((total("operations"), rows("slices WHERE async_id IS NOT NULL")), (3, 3));
    assert_eq!((total("counters"), rows("counters")), (3, 3));
    assert_eq!((total("instants"), rows("instants WHERE category = 'live'")), (0, 0));
    assert_eq!(found["counts"], json!([1500, 3, 0, 0, 0, 3, 0, 0]));
    assert_eq!((&found["open"], &found["missed"], &found["losses"]), (&json!(0), &json!(0), &json!([])));
    let sql = "SELECT category, name, count(*) AS n, sum(dur) AS sum, max(dur) AS longest FROM slices GROUP BY 1, 2";
    let expected: BTreeMap<String, [u64; 3]> = query(&sandbox, "a.fxt", sql)
        .iter()
        .map(|row| {
            let numbers = ["n", "sum", "longest"].map(|member| row[member].as_u64().unwrap());
            (format!("{}/{}", row["category"].as_str().unwrap(), row["name"].as_str().unwrap()), numbers)
        })
        .collect();
    assert_eq!(expected.len(), 2);
    let seen = |member: &str| -> BTreeMap<String, Vec<u64>> {
        let rows = found[member].as_array().unwrap().iter();
        rows.map(|row| {
            let numbers = row.as_array().unwrap()[2..].iter().map(|number| number.as_u64().unwrap());
            (format!("{}/{}", row[0].as_str().unwrap(), row[1].as_str().unwrap()), numbers.collect())
        })
        .collect()
    };
    let first = |count: usize| -> BTreeMap<String, Vec<u64>> {
        expected.iter().map(|(name, numbers)| (name.clone(), numbers[..count].to_vec())).collect()
    };
    assert_eq!(seen("sums"), first(3));
    assert_eq!(seen("slices"), first(2));
    // The question of the selection has one answer.
    let selected = &found["selected"];
    let rows = query(&sandbox, "a.fxt", selected["sql"].as_str().unwrap());
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(row["name"], selected["name"]);
    let details = found["details"].as_str().unwrap();
    assert!(details.contains(&format!("{} ns", row["ts"])), "{row}: {details}");
    let overview = found["overview"].as_str().unwrap();
    for part in ["Nothing is missing so far.", "3 operations", "1\u{202f}509", "queue · depth"] {
        assert!(overview.contains(part), "{part}: {overview}");
    }
    // The command ends when its page is closed, with what the program has printed.
    let output = view.process.finish();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "printed by the program\n");
}

//= docs/live.md#in-a-browser
#[test]
fn the_stream_is_for_the_page_alone_and_costs_the_recording_nothing() {
    let sandbox = Sandbox::new();
    let stream = program("stream");
    let events = 600_000;
    let view =
        View::begin(&sandbox, &["-o", "a.fxt", "--", stream.to_str().unwrap(), "1", "600000", "200000"]);
    let place = format!("/{}/", view.token);
    for wrong in ["/", "/events", "/0123456789abcdef0123456789abcdef/events"] {
        assert_eq!(view.status(wrong, ""), "404", "{wrong}");
    }
    for path in [place.clone(), format!("{place}events")] {
        assert_eq!(view.status(&path, "Origin: http://evil.example\r\n"), "403", "{path}");
        assert_eq!(
            view.status(&path, &format!("Origin: http://127.0.0.1:{}\r\n", view.port)),
            "200",
            "{path}"
        );
    }
    assert_eq!(view.status(&place, "Host: evil.example\r\n"), "403", "two hosts");
    // One that never reads, some that go away, and one that reads.
    let _never_reads = view.stream();
    for _ in 0..20 {
        drop(view.stream());
    }
    let mut reader = view.stream();
    let mut last = Value::Null;
    let how = loop {
        let (name, data) = reader.next().expect("the end");
        match name.as_str() {
            "" => last = data,
            "end" => break data,
            _ => {}
        }
    };
    assert_eq!(how["how"], "The recording has ended and is saved.");
    // What was seen and what was missed is what was recorded, which is in the archive, and with what
    // found no room all that the program wrote.
    let program = &last["table"]["programs"][0];
    let of = |member: &str| program[member].as_u64().unwrap();
    assert_eq!(last["totals"]["instants"].as_u64().unwrap() + of("missed"), of("records"), "{program}");
    assert_eq!(of("records") + of("lost"), events, "{program}");
    assert_eq!(count(&sandbox, "a.fxt", "instants WHERE category = 'stream'"), of("records"));
    let output = view.process;
    output.signal(Signal::INT);
    let output = output.finish();
    assert!(output.status.success(), "{output:?}");
}

/// Ctrl-C ends a recording of its own, which is saved, and the stream gets to know it. The program does
/// not get the terminal's signal.
//= docs/live.md#in-a-browser
#[test]
fn ctrl_c_saves_the_recording_and_tells_the_page() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("wait"), "").unwrap();
    let living = program("living");
    let view = View::begin(&sandbox, &["-o", "a.fxt", "--", living.to_str().unwrap(), "wait", "2"]);
    let mut stream = view.stream();
    stream.until("all durations", |name, data| name.is_empty() && data["totals"]["slices"] == 1000);
    view.process.signal_group(Signal::INT);
    let end = stream.until("the end", |name, _| name == "end");
    assert_eq!(end["how"], "The recording has ended and is saved.");
    assert_eq!(stream.next(), None);
    drop(stream);
    let output = view.process.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let archive = Archive::read(&sandbox.file("a.fxt"));
    assert_eq!(archive.events.iter().filter(|event| event.name() == "work").count(), 1000);
}

/// The recording that runs is shown, also to a second page that comes later, and goes on.
//= docs/live.md#in-a-browser
#[test]
fn the_running_recording_is_shown_in_the_browser_and_goes_on() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("wait"), "").unwrap();
    let started = sandbox.trace(["start", "--buffering-mode", "oneshot", "-o", "b.fxt"]);
    assert!(started.status.success(), "{started:?}");
    let file = sandbox.file("wait");
    let mut living = sandbox.spawn_recorded("living", &[file.to_str().unwrap()]);
    assert_eq!(living.line(), "printed by the program");
    let view = View::begin(&sandbox, &[]);
    let all = |name: &str, data: &Value| name.is_empty() && data["totals"]["slices"] == 500;
    let mut first = view.stream();
    first.until("all durations", all);
    let mut second = view.stream();
    let names = second.until("names", |name, data| name == "names" && data.get("threads").is_some());
    assert_eq!(names["process_names"], json!([[0, "living"]]));
    let update = second.until("all durations", all);
    assert_eq!(update["totals"]["counters"], 1);
    view.process.signal(Signal::INT);
    for stream in [&mut first, &mut second] {
        let end = stream.until("the end", |name, _| name == "end");
        assert_eq!(end["how"], "trace view has ended. The recording goes on.");
    }
    drop((first, second));
    assert_eq!(view.process.finish().status.code(), Some(0));
    // Pages get to know the end of the recording, too.
    let view = View::begin(&sandbox, &[]);
    let mut stream = view.stream();
    stream.until("all durations", all);
    fs::remove_file(&file).unwrap();
    living.succeed();
    assert!(sandbox.trace(["stop"]).status.success());
    let end = stream.until("the end", |name, _| name == "end");
    assert_eq!(end["how"], "The recording has ended.");
    drop(stream);
    let output = view.process.finish();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(count(&sandbox, "b.fxt", "slices WHERE name = 'work'"), 500);
}

/// Peers without the token use up neither the memory nor the connections of the page.
//= docs/live.md#in-a-browser
#[test]
fn half_requests_do_not_keep_the_page_from_its_connection() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("wait"), "").unwrap();
    let living = program("living");
    let view = View::begin(&sandbox, &["-o", "a.fxt", "--", living.to_str().unwrap(), "wait"]);
    let connect = || {
        let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, view.port)).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        connection
    };
    let mut stream = view.stream();
    stream.until("the first update", |name, _| name.is_empty());
    let mut large = connect();
    let line = format!("X: {}\r\n", "a".repeat(1000));
    // The answer comes while it still writes, or the connection is closed.
    let _ = large.write_all(format!("GET / HTTP/1.1\r\n{}", line.repeat(40)).as_bytes());
    let mut answer = String::new();
    if BufReader::new(large).read_line(&mut answer).is_ok() {
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    let mut half: Vec<TcpStream> = (0..100).map(|_| connect()).collect();
    half.iter_mut().for_each(|connection| _ = connection.write_all(b"GET / HTTP/1.1\r\n"));
    // The oldest ones are closed, long before a request is too late.
    assert!(matches!(BufReader::new(&half[0]).read_line(&mut answer), Ok(0) | Err(_)));
    assert_eq!(view.status(&format!("/{}/", view.token), ""), "200");
    stream.until("another update", |name, _| name.is_empty());
    fs::remove_file(sandbox.file("wait")).unwrap();
    stream.until("the end", |name, _| name == "end");
    drop((stream, half));
    assert!(view.process.finish().status.success());
}

/// A recording that was killed is not called saved, and one that was stopped ends all the same.
//= docs/live.md#in-a-browser
#[test]
fn pages_get_to_know_how_the_recording_has_ended() {
    let how = |signal: Signal, is_quit: bool| {
        let sandbox = Sandbox::new();
        fs::write(sandbox.file("wait"), "").unwrap();
        let living = program("living");
        let view = View::begin(&sandbox, &["-o", "a.fxt", "--", living.to_str().unwrap(), "wait"]);
        let mut stream = view.stream();
        stream.until("all durations", |name, data| name.is_empty() && data["totals"]["slices"] == 500);
        let pid = view.process.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let recorder = children.split_whitespace().next().expect("trace record").parse().unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(recorder).unwrap(), signal).unwrap();
        if is_quit {
            view.process.signal(Signal::INT);
        }
        let end = stream.until("the end", |name, _| name == "end");
        fs::remove_file(sandbox.file("wait")).unwrap();
        drop(stream);
        let code = view.process.finish().status.code();
        (end["how"].as_str().unwrap().to_owned(), code, sandbox.file("a.fxt").exists())
    };
    let unknown = "The recording has ended. What is saved is said where trace view was started.".to_owned();
    assert_eq!(how(Signal::KILL, false), (unknown, Some(137), false));
    assert_eq!(how(Signal::STOP, true), ("The recording has ended and is saved.".to_owned(), Some(0), true));
}

#[test]
fn what_does_not_go_together_is_said() {
    let sandbox = Sandbox::new();
    let said = |arguments: &[&str]| {
        let output = sandbox.trace([&["view", "--no-open"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(
        said(&["--live", "./app"]),
        "trace: --live takes no FILE; a command to record comes after --, as in trace view --live -- ./app\n"
    );
    for arguments in [&["--live", "--ui", "."][..], &[], &["-o", "a.fxt", "b.fxt"], &["b.fxt", "--", "./app"]]
    {
        assert!(said(arguments).starts_with("trace: "), "{arguments:?}");
    }
    // A command that cannot be run, and one whose recording is in the way of another.
    let output = sandbox.trace(["view", "--live", "--no-open", "--", "./missing"]);
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert!(sandbox.trace(["start", "-o", "b.fxt"]).status.success());
    let output = sandbox.trace(["view", "--live", "--no-open", "-o", "a.fxt"]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("; trace stop ends it"), "{output:?}");
}

/// A command is recorded beside what is being recorded.
//= docs/recording.md#a-manager-of-a-recordings-own
#[test]
fn a_command_is_shown_while_something_else_is_recorded() {
    let sandbox = Sandbox::new();
    assert!(sandbox.trace(["start", "-o", "b.fxt"]).status.success());
    fs::write(sandbox.file("wait"), "").unwrap();
    let living = program("living");
    let view = View::begin(&sandbox, &["-o", "a.fxt", "--", living.to_str().unwrap(), "wait"]);
    let mut stream = view.stream();
    stream.until("all durations", |name, data| name.is_empty() && data["totals"]["slices"] == 500);
    fs::remove_file(sandbox.file("wait")).unwrap();
    let end = stream.until("the end", |name, _| name == "end");
    assert_eq!(end["how"], "The recording has ended and is saved.");
    view.process.signal(Signal::INT);
    drop(stream);
    view.process.succeed();
    assert_eq!(Archive::read(&sandbox.file("a.fxt")).events.len(), 503);
    assert!(sandbox.trace(["stop"]).status.success());
    assert_eq!(Archive::read(&sandbox.file("b.fxt")).events.len(), 0);
}

/// The page shows the lines that `trace live --json` prints; a member that it reads and that is not there
/// would be shown as nothing.
//= docs/json.md#live
#[test]
fn the_page_reads_members_that_lines_have() {
    let script = fs::read_to_string(workspace().join("crates/trace-report/ui/live/tables.js")).unwrap();
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let behind = |mark: &str| -> Vec<String> {
        let found = script.split(mark).skip(1).map(|rest| rest.split(|letter| !is_letter(letter)).next());
        found.flatten().map(str::to_owned).collect()
    };
    let (_, taken) = script.split_once("function lossesOf(app, {").unwrap();
    let (taken, _) = taken.split_once('}').unwrap();
    let taken = taken.split(", ").map(|name| name.split(':').next().unwrap_or_default().to_owned());
    let mut read: BTreeSet<String> =
        ["now.", "of.", "sum('"].iter().flat_map(|mark| behind(mark)).chain(taken).collect();
    // `now` and the values of tiles are the model's own, and `p50_ns` and others are made of a number.
    read.retain(|name| !name.is_empty() && name != "p");
    let page = pages::read("docs/json.md");
    let (_, section) = page.split_once("\n## `live`\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let words: BTreeSet<&str> = section.split(|letter| !is_letter(letter)).collect();
    let unknown: Vec<&String> = read.iter().filter(|name| !words.contains(name.as_str())).collect();
    assert!(unknown.is_empty() && read.len() > 15, "{unknown:?} of {read:?}");
}
