//! Commands around recordings: measurements, the doctor, the clock, what is installed; and the
//! terminal.

use nix::pty::{Winsize, openpty};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use trace_tests::build::{program, workspace};
use trace_tests::{Archive, Sandbox, pages, wait_for};

fn path(name: &str) -> &'static str {
    program(name).to_str().expect("a path in UTF-8")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeds(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    let output = sandbox.trace(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

const SPEC: &str = r#"{
    // Of the program emit, which has a thread here.
    "app": "APP", "args": ["1", "5"],
    "test_suite_name": "emits",
    "measure": [
        { "type": "duration", "event_name": "scope", "event_category": "emit", "expected_sample_count": 5 },
        { "type": "time_between", "output_test_name": "pause", "split_first": true,
          "first_event_name": "process instant", "first_event_category": "emit",
          "second_event_name": "global instant", "second_event_category": "emit" },
        { "type": "argument_value", "event_name": "instant", "event_category": "emit",
          "argument_name": "u64", "argument_unit": "pieces" },
    ],
}"#;

//= docs/measure.md#measurements
#[test]
fn a_specification_records_and_measures() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("spec.json"), SPEC.replace("APP", path("emit"))).unwrap();
    let output = succeeds(
        &sandbox,
        &["record", "--spec-file", "spec.json", "--benchmark-results-file", "results.json"],
    );
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with(char::is_numeric)).collect();
    assert!(
        lines[0].starts_with("scope (emit) -> avg ") && lines[0].contains("ms out of 5 samples. (std dev "),
        "{said}"
    );
    assert_eq!(lines[1], "pause");
    assert!(lines[2].starts_with("  sample 0: ") && lines[2].ends_with("ms"), "{said}");
    assert!(
        lines[3].starts_with("  samples 1 to 4: avg ") && lines[3].contains("out of 4 samples"),
        "{said}"
    );
    let huge = "18446744073709551616pieces";
    assert!(lines[4].starts_with("instant (emit), u64 -> avg ") && lines[4].contains(huge), "{said}");
    assert!(text(&output.stderr).contains("Benchmark results written to results.json"));
    let results: serde_json::Value =
        serde_json::from_slice(&fs::read(sandbox.file("results.json")).unwrap()).unwrap();
    assert_eq!(results.as_array().unwrap().len(), 3);
    for (result, (label, unit, count)) in results.as_array().unwrap().iter().zip([
        ("scope (emit)", "ms", 5),
        ("pause", "ms", 5),
        ("instant (emit), u64", "pieces", 5),
    ]) {
        assert_eq!(
            (&result["label"], &result["unit"], &result["test_suite"]),
            (&label.into(), &unit.into(), &"emits".into())
        );
        assert_eq!(result["values"].as_array().unwrap().len(), count, "{result}");
    }
    // As the archive has them.
    let archive = Archive::read(&sandbox.file("trace.fxt"));
    let of = |name: &str| archive.events.iter().filter(|event| event.name() == name).collect::<Vec<_>>();
    let millis = |from: u64, to: u64| (to - from) as f64 / 1e6;
    let pauses: Vec<f64> = of("process instant")
        .iter()
        .zip(of("global instant"))
        .map(|(first, second)| millis(first.event.nanos().0, second.event.nanos().0))
        .collect();
    let found: Vec<f64> =
        results[1]["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(found, pauses);

    // The same of the finished trace, and what is not there.
    let again = succeeds(&sandbox, &["measure", "--spec-file", "spec.json", "trace.fxt"]);
    assert_eq!(text(&again.stdout).lines().collect::<Vec<_>>(), lines);
    let other = SPEC.replace("\"expected_sample_count\": 5", "\"expected_sample_count\": 6");
    let other = other.replace("APP", path("emit"));
    fs::write(sandbox.file("other.json"), other).unwrap();
    let output = sandbox.trace(["measure", "--spec-file", "other.json", "trace.fxt"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let expected = "trace: measurement scope of category emit has 5 samples, expected 6\n";
    assert!(said.ends_with(expected), "{said}");
    // A recording with the same specification has the same exit code.
    let output = sandbox.trace(["record", "--spec-file", "other.json", "-o", "other.fxt"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).ends_with(expected), "{output:?}");
}

#[test]
fn the_doctor_tries_everything_and_says_what_helps() {
    let sandbox = Sandbox::new();
    let output = sandbox.trace(["doctor", "--json"]);
    let findings: serde_json::Value = trace_tests::json(&output);
    let find = |name: &str| {
        let all = findings.as_array().unwrap();
        all.iter().find(|finding| finding["capability"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let recording = find("recording");
    assert_eq!(recording["works"], true, "{recording}");
    let detail = recording["detail"].as_str().unwrap();
    assert!(detail.starts_with("two programs in two seconds, one killed by kill -9: "), "{detail}");
    assert_eq!(find("runtime directory")["detail"], sandbox.runtime_dir().to_str().unwrap());
    for finding in findings.as_array().unwrap() {
        assert!(finding["works"] == false || finding["fix"].is_null(), "{finding}");
    }
    assert!(output.status.success(), "{findings}");
    // A directory that cannot be used is named, with what helps.
    fs::set_permissions(sandbox.runtime_dir(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let output = sandbox.trace(["doctor", "--no-self-trace"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected = format!("FAIL  runtime directory    {}: has mode 0777", sandbox.runtime_dir().display());
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("fix: export TRACE_RUNTIME_DIR="), "{said}");
}

#[test]
fn the_clock_is_that_of_traces() {
    let sandbox = Sandbox::new();
    succeeds(&sandbox, &["list-programs"]);
    let now = || text(&succeeds(&sandbox, &["time"]).stdout).trim().parse::<f64>().unwrap();
    let before = now();
    sandbox.record(&[], "emit", &["1", "1"]);
    let after = now();
    for event in &Archive::read(&sandbox.file("trace.fxt")).events {
        let micros = event.event.nanos().0 as f64 / 1e3;
        assert!((before..after).contains(&micros), "{before} {micros} {after}");
    }
    let mut asked = sandbox.spawn("trace", &["time", "--interactive"]);
    asked.say("t");
    let line = asked.line();
    assert!(line.split_once('.').is_some_and(|(_, places)| places.len() == 3), "{line}");
    asked.say("q");
    asked.succeed();
}

/// Between releases the commit stands behind the version, so that a report of a problem names what was run.
#[test]
fn the_version_names_the_commit_between_releases() {
    let sandbox = Sandbox::new();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(workspace()).output().ok()?;
        output.status.success().then(|| text(&output.stdout).trim().to_owned())
    };
    let version = env!("CARGO_PKG_VERSION");
    let commit = git(&["ls-files", "--error-unmatch", "Cargo.toml"])
        .and_then(|_| git(&["tag", "--points-at", "HEAD"]))
        .filter(|tags| tags.lines().all(|tag| tag != format!("v{version}")))
        .and_then(|_| git(&["rev-parse", "--short=10", "HEAD"]))
        .map(|commit| format!(" ({commit})"));
    let shown = text(&succeeds(&sandbox, &["--version"]).stdout);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], format!("trace {version}{}", commit.unwrap_or_default()));
    assert_eq!(lines[1..], ["protocol 1", "buffer header 1", "format FXT 0.1"]);
}

//= docs/command-line.md#environment
#[test]
fn groups_completions_and_pages_come_from_one_place() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.file("../config/trace")).unwrap();
    let config = sandbox.file("../config/trace/config.toml");
    fs::write(config, "[category-groups]\nmine = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']\n").unwrap();
    assert_eq!(
        text(&succeeds(&sandbox, &["list-category-groups"]).stdout),
        "Name      Categories\n#mine     a, b, c, d, e, f, g\n          h\n\
         #default  app, benchmark, gfx, input, kernel:meta, kernel:sched, memory:kernel\n          net, storage, system_metrics\n"
    );
    let groups: serde_json::Value =
        trace_tests::json(&succeeds(&sandbox, &["list-category-groups", "--json"]));
    assert_eq!(groups["mine"][7], "h");

    for (shell, words) in
        [("bash", "-F _trace_complete_trace trace"), ("zsh", "#compdef trace"), ("fish", "--command trace")]
    {
        let script = text(&succeeds(&sandbox, &["completions", shell]).stdout);
        assert!(script.contains(words), "{shell}");
        let name = format!("trace.{shell}");
        fs::write(sandbox.file(&name), script).unwrap();
        if shell == "bash" {
            let checked = Command::new("bash").arg("-n").arg(sandbox.file(&name)).status().unwrap();
            assert!(checked.success());
        }
    }
    succeeds(&sandbox, &["man", "pages"]);
    let page = fs::read_to_string(sandbox.file("pages/trace-record.1")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let header = format!(".TH TRACE-RECORD 1 \"\" \"trace {version}\" \"User Commands\"");
    assert!(page.replace("  ", " ").contains(&header) && page.contains("buffer\\-size"), "{page}");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    let expected = [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "EXAMPLES",
        "\"EXIT STATUS\"",
        "ENVIRONMENT",
        "FILES",
        "\"SEE ALSO\"",
    ];
    assert_eq!(sections, expected);
    assert!(page.contains("\\fB\\-\\-max\\-size\\fR \\fISIZE\\fR"), "{page}");
    // The tables are those of the manual. A command has only its own exit codes.
    let plain =
        |page: &str| page.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\fR", "").replace("\\fB", "");
    let of_dump = plain(&fs::read_to_string(sandbox.file("pages/trace-dump.1")).unwrap());
    assert!(of_dump.contains("\n6\n") && !of_dump.contains("\n4\n"), "{of_dump}");
    let plain = plain(&fs::read_to_string(sandbox.file("pages/trace.1")).unwrap());
    let manual = pages::read("docs/command-line.md").replace('`', "");
    let rows = ["\n## Exit codes\n", "\n## Environment\n"].map(|heading| {
        let (_, section) = manual.split_once(heading).expect("a section");
        let rows = section.lines().skip_while(|line| !line.starts_with('|')).skip(2);
        rows.take_while(|line| line.starts_with('|')).map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(rows.each_ref().map(Vec::len), [10, 13]);
    for row in rows.iter().flatten() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert!(plain.contains(&format!("\n{}\n{}\n", cells[1], cells[2])), "{row}: {plain}");
    }
    for (arguments, what) in [(["man"], "<DIR>"), (["completions"], "<SHELL>")] {
        let output = sandbox.trace(arguments);
        let expected =
            format!("trace: the following required arguments were not provided: {what}; see --help\n");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), expected));
    }
    let commands =
        [&["--help"][..], &["help", "plumbing"]].map(|arguments| text(&succeeds(&sandbox, arguments).stdout));
    let pages = fs::read_dir(sandbox.file("pages")).unwrap().map(|page| page.unwrap().file_name());
    let pages: Vec<String> = pages.map(|page| page.into_string().unwrap()).collect();
    assert!(pages.len() > 20, "{pages:?}");
    for command in pages.iter().filter_map(|page| page.strip_prefix("trace-")?.strip_suffix(".1")) {
        assert!(commands.iter().any(|text| text.contains(&format!(" {command} "))), "{command}");
        let help = text(&succeeds(&sandbox, &["help", command]).stdout);
        assert!(help.contains("Example"), "{command}");
    }
}

/// A program at a terminal of its own, of 80 columns.
pub struct Terminal {
    child: Child,
    master: File,
    seen: Arc<Mutex<Vec<u8>>>,
    /// Ends when no process has the terminal any more.
    reading: JoinHandle<()>,
}

impl Terminal {
    /// `setsid` gives it the terminal, so that a Ctrl-C reaches all of its processes.
    pub fn new(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::with(sandbox, arguments, &[])
    }

    pub fn with(sandbox: &Sandbox, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).expect("a terminal");
        // Else the manager, which outlives the recording, would have it too.
        for end in [&pty.master, &pty.slave] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC).expect("a descriptor");
        }
        let end = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
        let template = sandbox.command("trace");
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(template.get_program()).args(arguments);
        command.current_dir(sandbox.work_dir()).env("TERM", "xterm").env_remove("NO_COLOR");
        command.envs(variables.iter().copied());
        for (name, value) in template.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("setsid runs");
        drop(command);
        drop(pty.slave);
        let master = File::from(pty.master);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, collected) = (master.try_clone().expect("a descriptor"), seen.clone());
        let reading = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut chunk) {
                collected.lock().expect("no panic").extend_from_slice(&chunk[..length]);
            }
        });
        Self { child, master, seen, reading }
    }

    fn seen(&self) -> String {
        text(&self.seen.lock().expect("no panic"))
    }

    fn wait_for(&self, words: &str) {
        let mut last = String::new();
        wait_for(&format!("{words:?} on the terminal"), || {
            last = self.seen();
            last.contains(words).then_some(())
        });
    }

    fn press_ctrl_c(&mut self) {
        self.master.write_all(&[3]).expect("the terminal takes it");
    }

    pub fn finish(mut self) -> (Option<i32>, String) {
        let status =
            wait_for("the end of the program", || self.child.try_wait().expect("it can be waited for"));
        wait_for("the end of what it said", || self.reading.is_finished().then_some(()));
        (status.code(), self.seen())
    }
}

#[test]
fn a_line_shows_how_the_recording_goes() {
    let sandbox = Sandbox::new();
    let options = ["record", "--buffering-mode", "oneshot", "--buffer-size", "1"];
    let options = [&options[..], &["--", path("stream"), "1", "120000", "60000"]].concat();
    let terminal = Terminal::new(&sandbox, &options);
    terminal.wait_for("1 program |");
    terminal.wait_for("events/s | ");
    terminal.wait_for("buffer 100 % |");
    terminal.wait_for(" | 1 of 1 FULL, no longer recorded | ");
    let (code, seen) = terminal.finish();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("recording 0."), "{seen}");
    // In red, and without a needless place.
    assert!(seen.contains("\u{1b}[31m") && seen.contains(" lost\u{1b}[0m"), "{seen:?}");
    // Not for those who do not want it.
    let terminal = Terminal::with(&sandbox, &options, &[("NO_COLOR", "1")]);
    terminal.wait_for("buffer 100 % |");
    let (_, seen) = terminal.finish();
    assert!(seen.contains(" lost") && !seen.contains("\u{1b}[31m"), "{seen:?}");
    // There is none where it would not be seen.
    let output = sandbox.record(&["--buffer-size", "1"], "stream", &["1", "30000", "60000"]);
    assert!(!text(&output.stderr).contains("events/s"), "{output:?}");
}

//= docs/command-line.md#environment
#[test]
fn an_empty_no_color_leaves_colours() {
    let sandbox = Sandbox::new();
    for (value, has_colours) in [(None, true), (Some(""), true), (Some("0"), false)] {
        let variable: Vec<(&str, &str)> = value.iter().map(|value| ("NO_COLOR", *value)).collect();
        let (_, seen) = Terminal::with(&sandbox, &["stats", "--help"], &variable).finish();
        assert_eq!(seen.contains("\u{1b}["), has_colours, "{value:?}: {seen:?}");
    }
}

#[test]
fn ctrl_c_once_keeps_the_recording_and_waits_for_the_command() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::new(&sandbox, &["record", "--", path("emit"), "1", "2", "--wait", "--on"]);
    terminal.wait_for("on\r\n");
    terminal.press_ctrl_c();
    let (code, seen) = terminal.finish();
    assert_eq!(code, Some(130), "{seen}");
    assert!(seen.contains("events of 1 program in trace.fxt"), "{seen}");
    assert_eq!(Archive::read(&sandbox.file("trace.fxt")).providers.len(), 2);
}

#[test]
fn ctrl_c_twice_gives_up_and_loses_nothing() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.fxt"), "what was there before").unwrap();
    let mut terminal = Terminal::new(&sandbox, &["record", "-o", "trace.fxt"]);
    terminal.wait_for("press Ctrl-C to stop");
    // It does not answer a Stop, which takes five seconds.
    let mut stopped = sandbox.spawn_recorded("stubborn", &["stop"]);
    assert_eq!(stopped.line(), "ready");
    trace_tests::scene::wait_until_frozen(stopped.pid());
    terminal.press_ctrl_c();
    terminal.wait_for("waiting for stubborn");
    terminal.press_ctrl_c();
    let (code, seen) = terminal.finish();
    assert_eq!(code, Some(130), "{seen}");
    let words = "trace: aborted; trace.partial.fxt has the data that had arrived; trace recover adds what is \
                 still in the programs' buffers";
    assert!(seen.contains(words), "{seen}");
    assert_eq!(fs::read_to_string(sandbox.file("trace.fxt")).unwrap(), "what was there before");
    let log = sandbox.runtime_dir().join("manager.log");
    wait_for("the buffers to be left", || {
        fs::read_to_string(&log).ok()?.contains("trace recover").then_some(())
    });
    assert!(sandbox.trace(["recover"]).status.success());
    assert_eq!(Archive::read(&sandbox.file("recovered.fxt")).events.len(), 1);
}
