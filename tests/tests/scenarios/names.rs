//! Names of others reach no terminal as they are, whichever command prints them.

use super::completing::completed;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::process::Output;
use trace_format::shown::is_hidden;
use trace_protocol::registry::{Registration, RegistryRequest};
use trace_protocol::{Message, Txid, VersionRange};
use trace_tests::build::program;
use trace_tests::{Sandbox, spoof, wait_for};
use zx_sim::Channel;

/// What is wrong with what was printed, for people.
fn flaw(text: &str) -> Option<String> {
    if text.lines().any(|line| line.starts_with("spoofed line")) {
        return Some("a name made a line of its own".to_owned());
    }
    let mut previous = None;
    text.chars().find_map(|char| {
        let before = previous.replace(char);
        (char != '\n' && is_hidden(before, char)).then(|| format!("{char:?}"))
    })
}

/// Runs commands of a scenario, and looks at what they print.
struct Commands {
    sandbox: Sandbox,
    /// Those that have run.
    ran: BTreeSet<String>,
    /// How often a name was printed.
    names: usize,
}

impl Commands {
    fn new() -> Self {
        Self { sandbox: Sandbox::new(), ran: BTreeSet::new(), names: 0 }
    }

    fn look(&mut self, arguments: &[&str], stream: &str, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap_or_else(|_| panic!("{arguments:?}: {bytes:?}"));
        assert_eq!(flaw(text), None, "{arguments:?}, {stream}: {text:?}");
        self.names += text.matches("spoofed line").count();
    }

    /// Its output is for people.
    fn run(&mut self, arguments: &[&str]) -> Output {
        let output = self.run_document(arguments);
        self.look(arguments, "stdout", &output.stdout);
        output
    }

    /// Its output is a document of a format that escapes in its own way; what is said beside is for people.
    fn run_document(&mut self, arguments: &[&str]) -> Output {
        let output = self.sandbox.trace(arguments);
        self.ran.insert(arguments[0].to_owned());
        self.look(arguments, "stderr", &output.stderr);
        output
    }

    /// It prints the name, too.
    fn names(&mut self, arguments: &[&str]) {
        let before = self.names;
        let output = self.run(arguments);
        assert!(self.names > before, "{arguments:?} prints no name: {output:?}");
    }

    /// All commands that there are, as they are completed.
    fn all(&self) -> BTreeSet<String> {
        let mut commands = completed(&self.sandbox, &["trace", ""]);
        commands.retain(|command| !command.starts_with('-'));
        assert!(commands.len() > 20 && commands.contains("list-programs"), "{commands:?}");
        commands
    }
}

/// A trace of other software, whose names are the same.
fn document() -> String {
    let [name, category, value] = [spoof!("name"), spoof!("category"), spoof!("value")];
    let names =
        |what: &str| serde_json::json!({"ph": "M", "pid": 1, "tid": 2, "name": what, "args": {"name": name}});
    let event = |phase: &str, at: u64| {
        serde_json::json!({"ph": phase, "ts": at, "dur": 5, "pid": 1, "tid": 2, "id": 3, "name": name, "cat": category,
            "args": {spoof!("argument"): value}})
    };
    let mut events = vec![names("process_name"), names("thread_name"), names(spoof!("metadata"))];
    events.extend(
        ["X", "B", "i", "b", "s", "t", "f", spoof!("phase")]
            .iter()
            .zip(1..)
            .map(|(phase, at)| event(phase, at)),
    );
    serde_json::json!({"traceEvents": events, spoof!("member"): 1}).to_string()
}

/// A registration that is refused, with that in the manager's log.
fn register_in_vain(sandbox: &Sandbox) -> Channel {
    let registry = sandbox.runtime_dir().join("registry");
    let registry = wait_for("a manager to listen", || Channel::connect(&registry).ok());
    let (_ours, theirs) = Channel::pair().expect("channels");
    let registration = Registration {
        provider: theirs.into_handle(),
        pid: 1,
        name: spoof!("refused").to_owned(),
        protocol: VersionRange::PROTOCOL,
        buffer_header: VersionRange::only(1),
        tick_source: spoof!("clock").chars().take(10).collect(),
        dumps_memory: false,
        parent: None,
        records_alerts: true,
        numbers_threads: false,
        backs_buffer: false,
        redacts: false,
        has_scopes: false,
        answers_dumps: false,
        command_line: None,
    };
    let message = RegistryRequest::RegisterProvider(registration).encode(Txid::ONE_WAY).expect("it fits");
    registry.write(&message.bytes, message.handles).expect("the manager listens");
    // The manager reads before the connection ends.
    registry
}

/// Whatever a command prints of names, for people: no control, no sequence for the terminal, no override of
/// the direction of text and no line that a name has made.
//= docs/dump.md#names-of-others
#[test]
fn no_command_prints_names_as_they_are() {
    let mut commands = Commands::new();
    let manager = commands.sandbox.spawn("trace", &["manager"]);
    let held = register_in_vain(&commands.sandbox);
    wait_for("the refusal", || manager.stderr_so_far().contains("refused").then_some(()));
    drop(held);
    let spoofing = program("spoofing").to_string_lossy().into_owned();
    let (fxt, json, missing) = (spoof!("trace", ".fxt"), spoof!("trace", ".json"), spoof!("missing", ".fxt"));
    fs::write(commands.sandbox.file(json), document()).expect("a file");
    let spec = spoof!("spec.json");
    let measure = |event: &str| {
        serde_json::json!({"type": "duration", "event_name": event, "event_category": spoof!("category"),
            "output_test_name": spoof!("label")})
    };
    let measures = serde_json::json!({"measure": [measure(spoof!("span")), measure(spoof!("name"))]});
    fs::write(commands.sandbox.file(spec), measures.to_string()).expect("a file");

    let runs = spoof!("runs");
    fs::create_dir(commands.sandbox.file(runs)).expect("a directory");
    // A program that is recorded with its names.
    commands.names(&["record", "--output-file", fxt, "--categories", spoof!("asked"), "--", &spoofing]);
    commands.names(&["record", "--output-file", fxt, "--", &spoofing]);
    commands.names(&["record", "--output-file", "x.fxt", "--", spoof!("no such program")]);
    for trace in [fxt, json] {
        commands.names(&["dump", trace]);
        commands.names(&["check", trace]);
        commands.names(&["convert", "--format", "chrome", trace, spoof!("out", ".json")]);
        commands.names(&["convert", "--format", "perfetto", trace, spoof!("out", ".pftrace")]);
        commands.names(&["filter", "--strip-args", trace, spoof!("less", ".fxt")]);
        commands.names(&["query", "SELECT * FROM slices", trace]);
        commands.names(&["query", "SELECT 1 AS \"a\u{1b}]52;c;aGk=\u{7}\n\u{202e}spoofed line\"", trace]);
        // Its error shows the first statement, which ends before the name does.
        commands.run(&["query", spoof!("SELEKT"), trace]);
        commands.names(&["measure", "--spec-file", spec, trace]);
        commands.names(&["measure", "--spec-file", spoof!("none.json"), trace]);
        commands.names(&["report", trace, "-o", spoof!("page", ".html")]);
        commands.names(&["stats", trace]);
        commands.names(&["stats", "--by", "thread", trace]);
        commands.names(&["assert", trace, "count(*) < 0", &format!("max({:?}) < 0s", spoof!("spam"))]);
        commands.names(&["assert", trace, spoof!("count(")]);
        commands.names(&["diff", fxt, trace]);
        for run in ["0001-old.fxt", "0001-new.fxt", "0002-old.fxt", "0002-new.fxt"] {
            fs::copy(commands.sandbox.file(trace), commands.sandbox.file(runs).join(run)).expect("a file");
        }
        commands.names(&["ab", "--judge", runs]);
    }
    for arguments in [
        &["dump", missing][..],
        &["check", missing],
        &["convert", missing, "x.json"],
        &["trace2json", "--input-file", missing, "--output-file", "x.json"],
        &["query", "SELECT 1", missing],
        &["ab", "--judge", missing],
        &["ab", "--", spoof!("no such program"), "--", "true"],
        &["view", missing],
        &["mcp", missing],
        &["recover", missing],
        &["man", spoof!("pages")],
        &["completions", spoof!("shell")],
        &["time", spoof!("clock")],
        &["doctor", spoof!("what")],
        &["manager", spoof!("what")],
        &["ktrace", spoof!("what")],
        &["flush", spoof!("what")],
        &["help", spoof!("what")],
    ] {
        commands.names(arguments);
    }
    commands.run_document(&["record", "--print-config", "--categories", spoof!("asked")]);
    commands.run_document(&["live", "--json", "--output-file", spoof!("live", ".fxt"), "--", &spoofing]);
    commands.run(&["list-category-groups"]);

    // A recording in the background, and what is said of it.
    let mut live = commands.sandbox.spawn("spoofing", &[]);
    assert_eq!(live.line(), "ready");
    commands.names(&["list-programs"]);
    commands.names(&["list-categories"]);
    let (file, name) = (spoof!("night", ".fxt"), spoof!("night"));
    commands.names(&[
        "start",
        "--label",
        name,
        "--output-file",
        file,
        "--categories",
        "memory_dump,category*",
    ]);
    commands.names(&["status"]);
    commands.run(&["flush"]);
    commands.run(&["dump-memory"]);
    commands.names(&["snapshot", "--output-file", spoof!("snapshot", ".fxt")]);
    commands.names(&["stop", "--verbose"]);

    // One that is cut off, and what every command says of it then.
    commands.names(&["start", "--output-file", spoof!("cut", ".fxt")]);
    commands.names(&["status"]);
    let log = manager.stderr_so_far();
    assert!(log.contains("refused") && flaw(&log).is_none(), "{log:?}");
    manager.signal(Signal::KILL);
    drop(manager);
    drop(live);
    let is_left = |commands: &mut Commands| {
        let output = commands.run(&["list-category-groups"]);
        String::from_utf8_lossy(&output.stderr).contains("was cut off").then_some(())
    };
    wait_for("it to be left behind", || is_left(&mut commands));
    commands.names(&["recover", "--list"]);
    commands.names(&["recover", "--output-file", spoof!("recovered", ".fxt")]);

    let all = commands.all();
    let forgotten: Vec<_> = all.difference(&commands.ran).collect();
    assert!(forgotten.is_empty(), "what do these print of names? {forgotten:?}");
    assert!(commands.names > 100, "{}", commands.names);
}
