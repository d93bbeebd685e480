//! Paths that agents ask for.

use super::TRACE;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use trace_tests::Sandbox;
use trace_tests::agent::Agent;

/// A directory with traces, and one beside it that an agent may not read.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.file("in/sub")).unwrap();
    fs::create_dir(sandbox.file("out")).unwrap();
    fs::write(sandbox.file("in/a.json"), TRACE).unwrap();
    fs::write(sandbox.file("in/sub/b.json"), TRACE).unwrap();
    fs::write(sandbox.file("out/secret.json"), TRACE.replace("frame", "secret")).unwrap();
    sandbox
}

//= docs/mcp.md#security
#[test]
fn no_path_leads_out_of_the_directory() {
    let sandbox = sandbox();
    let path = |name: &str| sandbox.file(name).to_str().unwrap().to_owned();
    symlink("sub/b.json", sandbox.file("in/inside.json")).unwrap();
    symlink("../out/secret.json", sandbox.file("in/outside.json")).unwrap();
    symlink(path("in/a.json"), sandbox.file("in/absolute.json")).unwrap();
    symlink("../out", sandbox.file("in/directory")).unwrap();
    symlink("/dev/zero", sandbox.file("in/zero.json")).unwrap();
    symlink("loop.json", sandbox.file("in/loop.json")).unwrap();
    mknodat(CWD, sandbox.file("in/fifo.json"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _listener = UnixListener::bind(sandbox.file("in/socket.json")).unwrap();
    let mut agent = Agent::new(&sandbox, &["in"]);
    let long = "x/".repeat(600);
    for (trace, expected) in [
        ("../out/secret.json", "leads out"),
        ("..", "leads out"),
        ("sub/../../out/secret.json", "leads out"),
        ("outside.json", "leads out"),
        ("directory/secret.json", "leads out"),
        ("zero.json", "leads out"),
        // Beneath the directory, but by way of `/`.
        ("absolute.json", "leads out"),
        (&path("out/secret.json"), "outside the directories"),
        (&path("in/../out/secret.json"), "leads out"),
        (&path("inn/a.json"), "outside the directories"),
        ("/proc/self/environ", "outside the directories"),
        ("/dev/stdin", "outside the directories"),
        ("fifo.json", "it is a FIFO"),
        ("socket.json", "it is a socket"),
        ("sub", "it is a directory"),
        (".", "it is a directory"),
        ("loop.json", "symbolic link"),
        ("missing.json", "there is no such file"),
        ("", "expected a path of 1 to 1000 bytes"),
        ("a\0.json", "expected a path of 1 to 1000 bytes"),
        (&long, "expected a path of 1 to 1000 bytes"),
    ] {
        let why = agent.call("overview", &json!({"trace": trace})).expect_err(trace);
        assert!(why.contains(expected) && why.len() < 700, "{trace}: {why}");
        let arguments = json!({"before": "a.json", "after": trace});
        agent.call("compare", &arguments).expect_err(trace);
    }
    for trace in [
        "a.json",
        "./a.json",
        "sub/../a.json",
        "sub/b.json",
        "inside.json",
        &path("in/a.json"),
        &path("in/sub/../a.json"),
    ] {
        let answer = agent.object("top", &json!({"trace": trace}));
        assert_eq!(answer["rows"][0][2], "frame", "{trace}");
    }
    // Links are not listed, nor what is no file.
    let list = agent.object("overview", &json!({}));
    let names: Vec<&str> =
        list["rows"].as_array().unwrap().iter().map(|row| row[0].as_str().unwrap()).collect();
    assert_eq!(names, ["a.json", "sub/b.json"]);
    assert_eq!(agent.finish().code(), Some(0));
}

//= docs/mcp.md#security
#[test]
fn several_directories_may_be_read_and_nothing_special_in_them() {
    let sandbox = sandbox();
    let mut agent = Agent::new(&sandbox, &["in/sub", "out", "/dev", "/proc"]);
    assert_eq!(agent.object("top", &json!({"trace": "b.json"}))["rows"][0][2], "frame");
    assert_eq!(agent.object("top", &json!({"trace": "secret.json"}))["rows"][0][2], "secret");
    for (trace, expected) in [
        ("/dev/zero", "it is a device"),
        ("zero", "it is a device"),
        // A link of the kernel's to whatever is open.
        ("self/fd/0", "symbolic link"),
        ("self/root/etc/passwd", "symbolic link"),
        ("a.json", "there is no such file"),
    ] {
        let why = agent.call("overview", &json!({"trace": trace})).expect_err(trace);
        assert!(why.contains(expected), "{trace}: {why}");
    }
    let output = sandbox.trace(["mcp", "missing"]);
    assert_eq!(output.status.code(), Some(125));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "trace: cannot use missing: No such file or directory (os error 2)\n");
}

/// Ends what another thread repeats.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// While a file and a link that leads out change places, either is asked for, and only the file is read.
//= docs/mcp.md#security
#[test]
fn what_changes_places_does_not_lead_out_either() {
    let sandbox = sandbox();
    symlink("../out", sandbox.file("in/link")).unwrap();
    fs::copy(sandbox.file("in/a.json"), sandbox.file("in/sub/secret.json")).unwrap();
    let mut agent = Agent::new(&sandbox, &["in"]);
    let is_over = AtomicBool::new(false);
    let (mut answered, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let (one, other) = (sandbox.file("in/sub"), sandbox.file("in/link"));
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        // Also if an assertion fails: the scope waits for the thread.
        let _over = Over(&is_over);
        while answered < 20 || refused < 20 {
            match agent.call("top", &json!({"trace": "sub/secret.json"})) {
                Ok(text) => {
                    assert!(text.contains("frame") && !text.contains("\"secret\""), "{text}");
                    answered += 1;
                }
                Err(why) => {
                    assert!(why.contains("leads out") || why.contains("try again"), "{why}");
                    refused += 1;
                }
            }
        }
    });
}
