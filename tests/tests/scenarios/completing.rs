//! Completion of command lines.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use trace_tests::Sandbox;
use trace_tests::build::program;

/// What the last word of a command line is completed to.
pub fn completed(sandbox: &Sandbox, words: &[&str]) -> BTreeSet<String> {
    let mut command = sandbox.command("trace");
    command.env("TRACE_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    let output = command.arg("--").args(words).output().expect("trace runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

//= docs/install.md#completion
#[test]
fn categories_programs_and_traces_are_completed() {
    let sandbox = Sandbox::new();
    // Without a manager, those of the kernel and groups; and none is started.
    assert_eq!(
        completed(&sandbox, &["trace", "record", "--categories", "kernel:sc"]),
        set(&["kernel:sched"])
    );
    assert_eq!(completed(&sandbox, &["trace", "record", "--categories", "a,-#d"]), set(&["a,-#default"]));
    assert_eq!(sandbox.manager_pid(), None);
    let mut emit = sandbox.spawn("emit", &["1", "1", "--wait"]);
    emit.line();
    assert!(sandbox.trace(["list-programs"]).status.success());
    assert_eq!(completed(&sandbox, &["trace", "start", "--categories", "em"]), set(&["emit"]));
    assert_eq!(completed(&sandbox, &["trace", "record", "--categories", "x,ot"]), set(&["x,other"]));
    assert_eq!(completed(&sandbox, &["trace", "record", "--program-buffer-size", "e"]), set(&["emit:"]));
    emit.succeed();
    for name in ["a.fxt", "b.json.gz", "c.txt", "d.pftrace"] {
        fs::write(sandbox.file(name), "").expect("a file");
    }
    fs::create_dir(sandbox.file("e")).expect("a directory");
    let expected = set(&["a.fxt", "b.json.gz", "d.pftrace", "e/"]);
    for command in ["check", "dump", "convert"] {
        let mut found = completed(&sandbox, &["trace", command, ""]);
        found.retain(|word| !word.starts_with('-'));
        assert_eq!(found, expected, "{command}");
    }
}

/// As bash does it, which splits words at colons and equals signs.
//= docs/install.md#completion
#[test]
fn the_script_works_in_bash() {
    let sandbox = Sandbox::new();
    let script = sandbox.trace(["completions", "bash"]).stdout;
    fs::write(sandbox.file("completions"), script).expect("a file");
    fs::write(sandbox.file("my file.fxt"), "").expect("a file");
    let directory = program("trace").parent().expect("a directory");
    for (line, words, expected) in [
        ("trace rec", "trace rec", "record|recover"),
        ("trace record --categories kernel:sc", "trace record --categories kernel : sc", "sched"),
        ("trace record --categories kernel:", "trace record --categories kernel :", "meta|sched"),
        ("trace record --categories app,-kernel:sc", "trace record --categories app,-kernel : sc", "sched"),
        ("trace record --buffering-mode=c", "trace record --buffering-mode = c", "circular"),
        ("trace dump my", "trace dump my", "my file.fxt"),
    ] {
        let command_line = format!(
            "source ./completions && COMP_LINE='{line}' && COMP_WORDS=({words}) && \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) && _trace_complete_trace && \
             printf '%s|' \"${{COMPREPLY[@]}}\""
        );
        let mut command = Command::new("bash");
        command.current_dir(sandbox.work_dir()).env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
        let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
        let output = command.env("PATH", path).args(["-c", &command_line]).output().expect("bash runs");
        let found = String::from_utf8(output.stdout).expect("text");
        let found: BTreeSet<String> = found.trim_end_matches('|').split('|').map(str::to_owned).collect();
        let expected: BTreeSet<String> = expected.split('|').map(str::to_owned).collect();
        if line.ends_with(':') {
            assert!(found.is_superset(&expected), "{line}: {found:?}");
            assert!(!found.iter().any(|word| word.starts_with('-')), "{line}: {found:?}");
        } else {
            assert_eq!(found, expected, "{line}");
        }
    }
}
