//! One line that names the thing and the cause, an exit code, and nothing left behind.

use std::fs;
use trace_tests::{Requirement, Sandbox, build::program};

/// Runs the tool, which must fail with this code and one line that holds these words.
fn fails(sandbox: &Sandbox, arguments: &[&str], code: i32, words: &[&str]) {
    let before = sandbox.files();
    let output = sandbox.trace(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("trace: "), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?}: no {word:?} in {stderr}");
    }
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert_eq!(sandbox.files(), before, "{arguments:?}");
}

#[test]
fn wrong_command_lines() {
    let sandbox = Sandbox::new();
    let output = sandbox.trace::<&str>([]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("Begin with:  trace record -- ./app"),
        "{output:?}"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "trace: no command given\n");
    fails(&sandbox, &["frobnicate"], 2, &["frobnicate"]);
    fails(&sandbox, &["record", "--frobnicate"], 2, &["--frobnicate"]);
    fails(&sandbox, &["record", "--duration", "soon"], 2, &["--duration", "soon", "seconds"]);
    fails(&sandbox, &["record", "--duration", "0"], 2, &["--duration", "above 0"]);
    fails(&sandbox, &["record", "--categories", "a b"], 2, &["--categories", "a b"]);
    fails(&sandbox, &["dump"], 2, &["FILE"]);
    fails(&sandbox, &["convert", "trace.fxt"], 2, &["--format", "such as --format catapult"]);
    fails(&sandbox, &["convert", "trace.fxt", "trace.txt"], 2, &["--format", "such as --format catapult"]);
    fails(
        &sandbox,
        &["convert", "--format", "catapult", "--container", "array", "a"],
        2,
        &["--container is for --format chrome"],
    );
    fails(&sandbox, &["convert", "--format", "nothing", "trace.fxt"], 2, &["nothing", "catapult"]);
}

//= docs/import.md#importing
#[test]
fn inputs_that_are_no_traces() {
    let sandbox = Sandbox::new();
    fails(&sandbox, &["dump", "missing.fxt"], 6, &["missing.fxt", "No such file"]);
    fails(&sandbox, &["convert", "--format", "catapult", "missing.fxt"], 6, &["missing.fxt", "No such file"]);
    fs::write(sandbox.file("text.fxt"), "once upon a time").unwrap();
    let formats =
        ["text.fxt: expected", "Fuchsia trace", "JSON", "ftrace", "Perfetto", "tar archive; found text"];
    for command in [&["dump"][..], &["convert", "--format", "catapult"], &["check"], &["query", "SELECT 1"]] {
        fails(&sandbox, &[command, &["text.fxt"]].concat(), 6, &formats);
    }
    let profile = r#"{"nodes":[],"startTime":1,"endTime":2,"samples":[],"timeDeltas":[]}"#;
    fs::write(sandbox.file("v8.cpuprofile"), profile).unwrap();
    let words = ["v8.cpuprofile: expected a trace, found what looks like a CPU profile of V8 (.cpuprofile)"];
    fails(&sandbox, &["dump", "v8.cpuprofile"], 6, &words);
    fails(&sandbox, &["convert", "--format", "catapult", "v8.cpuprofile", "v8.json"], 6, &words);
    fs::write(sandbox.file("empty.fxt"), "").unwrap();
    fails(&sandbox, &["dump", "empty.fxt"], 6, &["empty.fxt", "empty"]);
    fails(&sandbox, &["dump", "."], 6, &["directory"]);
    fails(
        &sandbox,
        &["convert", "--format", "catapult", "text.fxt", "text.fxt"],
        2,
        &["both input and output"],
    );
}

#[test]
fn outputs_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    let emit = program("emit").to_str().unwrap();
    let record = |output: &'static str, words: &[&str]| {
        fails(&sandbox, &["record", "--output-file", output, "--", emit, "1", "1"], 125, words);
    };
    record("missing/trace.fxt", &["missing/trace.fxt", "No such file"]);
    record(".", &[".", "directory"]);
    record("/proc/trace.fxt", &["/proc/trace.fxt"]);
    record("/dev/null", &["/dev/null", "regular file"]);
    assert!(fs::metadata("/dev/null").is_ok_and(|metadata| !metadata.is_file()));
    // Nothing was started for it.
    assert_eq!(sandbox.manager_pid(), None);
}

#[test]
fn commands_that_cannot_be_run() {
    let sandbox = Sandbox::new();
    fails(&sandbox, &["record", "--", "no-such-command"], 127, &["no-such-command", "not found"]);
    fs::write(sandbox.file("data"), "not a program").unwrap();
    fails(&sandbox, &["record", "--", "./data"], 126, &["./data", "cannot be executed"]);
}

#[test]
fn an_existing_file_is_replaced_only_on_success() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.file("trace.fxt"), "precious").unwrap();
    fails(&sandbox, &["record", "-o", "trace.fxt", "--", "no-such-command"], 127, &["not found"]);
    assert_eq!(fs::read(sandbox.file("trace.fxt")).unwrap(), b"precious");
    sandbox.record(&["-o", "trace.fxt"], "emit", &["1", "1"]);
    assert_ne!(fs::read(sandbox.file("trace.fxt")).unwrap(), b"precious");
}

#[test]
fn a_runtime_directory_of_another_user_is_refused() {
    let test = "a_runtime_directory_of_another_user_is_refused";
    let Some(sandbox) = Sandbox::for_all_users(test) else { return };
    std::os::unix::fs::chown(sandbox.runtime_dir(), Some(12_345), None).unwrap();
    let directory = sandbox.runtime_dir();
    let directory = directory.to_str().unwrap();
    fails(&sandbox, &["record", "--duration", "1"], 125, &[directory, "12345"]);
    fails(&sandbox, &["list-programs"], 125, &[directory, "12345"]);
    std::os::unix::fs::chown(sandbox.runtime_dir(), Some(0), None).unwrap();
}

#[test]
fn a_managers_socket_of_another_user_is_refused() {
    if !Requirement::Root.is_met("a_managers_socket_of_another_user_is_refused") {
        return;
    }
    let sandbox = Sandbox::new();
    use std::os::unix::process::CommandExt;
    use trace_tests::wait_for;
    // A manager of another user, in a directory that this user may enter.
    std::os::unix::fs::chown(sandbox.runtime_dir(), Some(12_345), None).unwrap();
    let mut command = sandbox.command("trace");
    command.arg("manager").uid(12_345).current_dir("/");
    let mut manager = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    wait_for("the other user's manager", || sandbox.runtime_dir().join("provisioner").exists().then_some(()));
    let directory = sandbox.runtime_dir();
    fails(&sandbox, &["record", "--duration", "1"], 125, &[directory.to_str().unwrap(), "12345"]);
    manager.kill().unwrap();
    manager.wait().unwrap();
}

/// Tables, of which writing fails at some byte, early or late: the error names the directory, the table and
/// the cause, and nothing is left.
//= docs/tables.md#csv
#[test]
fn tables_that_cannot_be_written_any_further_leave_nothing() {
    let sandbox = Sandbox::new();
    let events = |number: u64| {
        let (ts, begin) = (10 * number, 10 * number % 50_000);
        format!(
            r#"{{"ph":"X","ts":{ts},"dur":7,"pid":1,"tid":2,"cat":"c","name":"n{}","args":{{"i":{number}}}}},
               {{"ph":"i","ts":{begin},"pid":1,"tid":3,"cat":"c","name":"late","s":"t"}}"#,
            number * 7919 % 10_007
        )
    };
    let events: Vec<String> = (0..10_000).map(events).collect();
    fs::write(sandbox.file("trace.json"), format!("[{}]", events.join(","))).unwrap();
    assert!(sandbox.trace(["convert", "trace.json", "trace.fxt"]).status.success());
    fs::remove_file(sandbox.file("trace.json")).unwrap();
    let trace = program("trace");
    for (options, limits) in [
        (&["--format", "csv"][..], [0, 100, 70_000, 400_000]),
        (&["--format", "parquet"], [0, 100, 5000, 40_000]),
        (&["--format", "parquet", "--partitioned"], [0, 100, 5000, 40_000]),
    ] {
        for limit in limits {
            let mut command = std::process::Command::new("prlimit");
            command.arg(format!("--fsize={limit}:{limit}")).arg(trace).arg("convert").args(options);
            command.args(["trace.fxt", "tables"]).current_dir(sandbox.work_dir());
            let output = command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir()).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(125), "{options:?} {limit}: {stderr}");
            let words = ["cannot write tables: slices", "cannot write tables: instants"];
            assert!(words.iter().any(|word| stderr.contains(word)), "{options:?} {limit}: {stderr}");
            assert!(stderr.contains("File too large"), "{options:?} {limit}: {stderr}");
            assert_eq!(sandbox.files(), ["trace.fxt"], "{options:?} {limit}");
        }
    }
}

/// Events that wait for numbers, and copies of what is read twice, name the directory that they need.
//= docs/import.md#processes-and-threads
#[test]
fn without_a_place_for_temporary_files() {
    let sandbox = Sandbox::new();
    let event = |name: usize| format!(r#"{{"ph":"i","ts":{name},"pid":"p","tid":1,"name":"{name:100}"}}"#);
    let events: Vec<_> = (0..20_000).map(event).collect();
    fs::write(sandbox.file("text.json"), format!("[{}]", events.join(","))).unwrap();
    for (command, problem) in [
        ("dump", "cannot store a part of the input in a temporary file; TMPDIR may name another directory"),
        ("stats", "cannot create a file in /missing ($TMPDIR): No such file"),
    ] {
        let mut tool = sandbox.command("trace");
        let output = tool.args([command, "text.json"]).env("TMPDIR", "/missing").output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{command}: {output:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(problem), "{command}: {stderr}");
    }
    // Files may have 50 KiB here.
    fs::write(sandbox.file("limits.txt"), "errors == 0").unwrap();
    for command in [
        &["stats"][..],
        &["check"],
        &["query", "SELECT count(*) FROM instants"],
        &["dump"],
        &["assert", "--file", "limits.txt"],
        &["convert", "--format", "csv", "-o", "tables"],
    ] {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -f 100; exec \"$@\"", "sh"]).arg(program("trace")).args(command);
        shell
            .arg("text.json")
            .current_dir(sandbox.work_dir())
            .env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
        let output = shell.output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{command:?}: {output:?}");
    }
}
