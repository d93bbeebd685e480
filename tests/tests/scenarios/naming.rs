//! What the file of a recording is called, and what it may replace.

use nix::pty::openpty;
use std::fs;
use std::process::{Output, Stdio};
use trace_tests::build::program;
use trace_tests::{Archive, Sandbox};

fn emit() -> &'static str {
    program("emit").to_str().expect("a path in UTF-8")
}

/// As it is run by a user: the harness's own way forgets the trace before.
fn trace(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    sandbox.command("trace").args(arguments).output().expect("trace runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

//= docs/recording.md#where-the-trace-goes
#[test]
fn a_recording_without_a_name_replaces_nothing() {
    let sandbox = Sandbox::new();
    let mut first = Vec::new();
    for (options, name) in [
        (&[][..], "trace.fxt"),
        (&[], "trace-1.fxt"),
        (&["--format", "chrome"], "trace.json"),
        (&["--binary=false"], "trace-1.json"),
        (&["--compress"], "trace.fxt.gz"),
        (&["--format", "perfetto", "--compress"], "trace.pftrace.gz"),
        (&[], "trace-2.fxt"),
    ] {
        let output = trace(&sandbox, &[&["record"], options, &["--", emit(), "1", "1"]].concat());
        assert!(output.status.success(), "{output:?}");
        let line = format!("trace: 14 events of 1 program in {name} (");
        assert!(stderr(&output).contains(&line), "{}", stderr(&output));
        if first.is_empty() {
            first = fs::read(sandbox.file("trace.fxt")).expect("the trace");
        }
        assert_eq!(fs::read(sandbox.file("trace.fxt")).expect("the trace"), first);
    }
}

/// Another program makes a file of the name while something is recorded.
//= docs/recording.md#where-the-trace-goes
#[test]
fn a_name_that_is_taken_meanwhile_is_left_alone() {
    let sandbox = Sandbox::new();
    let script = "\"$0\" 1 1 && echo mine > trace.fxt";
    let output = trace(&sandbox, &["record", "--", "sh", "-c", script, emit()]);
    assert!(stderr(&output).contains(" in trace-1.fxt ("), "{}", stderr(&output));
    assert_eq!(fs::read(sandbox.file("trace.fxt")).expect("the file"), b"mine\n");
    assert_eq!(Archive::read(&sandbox.file("trace-1.fxt")).events.len(), 14);
}

//= docs/recording.md#where-the-trace-goes
#[test]
fn a_recording_without_events_leaves_a_good_trace_alone() {
    let sandbox = Sandbox::new();
    for name in ["good.fxt", "good.json.gz"] {
        let record = |command: &[&str]| {
            let output = trace(&sandbox, &[&["record", "--allow-empty", "-o", name, "--"], command].concat());
            assert!(output.status.success(), "{output:?}");
            (stderr(&output), fs::read(sandbox.file(name)).expect("a file"))
        };
        let (_, good) = record(&[emit(), "1", "1"]);
        let (said, kept) = record(&["true"]);
        assert_eq!(kept, good);
        let line = format!("trace: 0 events of 0 programs; {name} stays as it was\n");
        assert!(said.ends_with(&line), "{said}");
        // A file with nothing in it is none that is worth more.
        fs::write(sandbox.file(name), "").expect("a file");
        let (said, new) = record(&["true"]);
        assert!(!new.is_empty(), "{said}");
    }
    assert_eq!(sandbox.files(), ["good.fxt", "good.json.gz"]);
}

//= docs/recording.md#where-the-trace-goes
#[test]
fn a_name_that_selects_no_format_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    for (name, ending) in [("x.foo", ".foo"), ("x.foo.gz", ".foo"), ("trace.fxt.old", ".old")] {
        let output = trace(&sandbox, &["record", "-o", name, "--", "touch", "run"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let expected = format!(
            "trace: -o {name}: {ending} is no format of traces; end the name in .fxt, .json, .pftrace or .folded, or add --format\n"
        );
        assert_eq!(stderr(&output), expected);
    }
    assert!(sandbox.files().is_empty(), "{:?}", sandbox.files());
    for name in ["x", "y.foo"] {
        let output = trace(&sandbox, &["record", "--format", "fxt", "-o", name, "--", emit(), "1", "1"]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(Archive::read(&sandbox.file(name)).events.len(), 14);
    }
}

//= docs/recording.md#where-the-trace-goes
#[test]
fn no_trace_is_written_to_a_terminal() {
    let sandbox = Sandbox::new();
    let pty = openpty(None, None).expect("a terminal");
    let mut command = sandbox.command("trace");
    command.args(["record", "-o", "-", "--", "touch", "run"]).stdout(Stdio::from(pty.slave));
    let output =
        command.stderr(Stdio::piped()).spawn().expect("it runs").wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(stderr(&output), "trace: -o -: stdout is a terminal; redirect it, or name a file\n");
    assert!(sandbox.files().is_empty(), "{:?}", sandbox.files());
    assert!(trace(&sandbox, &["record", "--", emit(), "1", "1"]).status.success());
    let pty = openpty(None, None).expect("a terminal");
    let mut command = sandbox.command("trace");
    command.args(["convert", "--format", "perfetto", "trace.fxt", "-"]).stdout(Stdio::from(pty.slave));
    let output =
        command.stderr(Stdio::piped()).spawn().expect("it runs").wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(stderr(&output), "trace: stdout is a terminal; redirect it, or name a file\n");
}
