//! The files that commands write: who may read them, and which symbolic links lead to them.
//= docs/recording.md#files

use super::places::state;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use trace_tests::build::copy_program;
use trace_tests::scene::Scene;
use trace_tests::{Archive, Requirement, Sandbox, native, wait_for};

const ALICE: u32 = 4_008;
const MALLORY: u32 = 4_009;

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A user's shell in a directory, where `trace` and `emit` are programs.
struct Shell {
    sandbox: Sandbox,
    uid: u32,
}

impl Shell {
    fn new(sandbox: Sandbox, uid: u32) -> Self {
        let programs = sandbox.runtime_dir().with_file_name("");
        for name in ["trace", "emit", "recorder", "local"] {
            copy_program(name, &programs.join(name));
        }
        if Requirement::Compilers.is_met("writing: the library for C") {
            let source = native::source("recorder.c");
            let output = programs.join("recorder-c");
            native::static_client_program("gcc", &[source.to_str().unwrap()], &native::STRICT, &output);
        } else {
            copy_program("recorder", &programs.join("recorder-c"));
        }
        Self { sandbox, uid }
    }

    /// The user of this process, or another where that is possible.
    fn of(test: &str, uid: u32) -> Self {
        let for_all_users = if uid == 0 { None } else { Sandbox::for_all_users(test) };
        let Some(sandbox) = for_all_users else {
            return Self::new(Sandbox::new(), rustix::process::geteuid().as_raw());
        };
        let shell = Self::new(sandbox, uid);
        for directory in [shell.sandbox.runtime_dir(), shell.sandbox.work_dir()] {
            shell.give(&directory);
            set_mode(&directory, 0o700);
        }
        shell
    }

    /// Gives the user a file of this process's user.
    fn give(&self, path: &Path) {
        if self.uid != rustix::process::geteuid().as_raw() {
            chown(path, Some(self.uid), Some(self.uid)).unwrap();
        }
    }

    fn run(&self, script: &str) -> Output {
        let programs = self.sandbox.runtime_dir().with_file_name("");
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(self.sandbox.work_dir()).env("PATH", path);
        shell.env("TRACE_RUNTIME_DIR", self.sandbox.runtime_dir()).env("XDG_CONFIG_HOME", "/nonexistent");
        if self.uid != rustix::process::geteuid().as_raw() {
            shell.uid(self.uid).gid(self.uid);
        }
        shell.output().unwrap()
    }

    fn succeed(&self, script: &str) {
        let output = self.run(script);
        assert!(output.status.success(), "{script}: {output:?}");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.sandbox.file(name)
    }
}

const SPEC: &str = r#"{"measure": [
    { "type": "duration", "event_name": "scope", "event_category": "emit" }]}"#;

/// Every command and library that writes files, and what it writes.
const WRITERS: [(&str, &[&str]); 12] = [
    ("trace record -o a.fxt -- emit 1 3", &["a.fxt"]),
    ("trace record --categories emit -o a.json.gz -- emit 1 3", &["a.json.gz"]),
    ("trace convert a.fxt b.fxt.zst", &["b.fxt.zst"]),
    (
        "trace convert --format catapult --system-event-output-file system.json a.fxt b.json",
        &["b.json", "system.json"],
    ),
    ("trace convert --format csv a.fxt tables", &["tables/slices.csv", "tables/logs.csv"]),
    ("trace measure --spec-file spec.json --benchmark-results-file r.json a.fxt", &["r.json"]),
    (
        "rm -f s.fxt && trace start --buffering-mode oneshot -o s.fxt && emit 1 1 && trace snapshot -o c.fxt && \
         trace stop",
        &["s.fxt", "c.fxt"],
    ),
    ("rm -f s.fxt && trace start -o s.fxt && trace stop -o t.json", &["t.json"]),
    ("test $(recorder trace l.fxt emit 1 3 | tail -1) = 42", &["l.fxt"]),
    ("test $(recorder trace l.json.gz emit 1 3 | tail -1) = 42", &["l.json.gz"]),
    ("test $(recorder-c trace l.fxt.zst emit 1 3 | tail -1) = 42", &["l.fxt.zst"]),
    (
        "out=$(printf 'start local oneshot 1\\nevents 3\\nfile %s\\n' o.fxt | env local); echo \"$out\" | grep -q '^3 events' || { echo \"$out\" >&2; false; }",
        &["o.fxt"],
    ),
];

//= docs/recording.md#files
#[test]
fn new_files_are_their_owners_alone_whatever_the_umask() {
    let test = "new_files_are_their_owners_alone_whatever_the_umask";
    for (uid, umask) in [(ALICE, "0777"), (ALICE, "0"), (0, "022"), (0, "0777")] {
        let shell = Shell::of(test, uid);
        fs::write(shell.file("spec.json"), SPEC).unwrap();
        for (script, files) in WRITERS {
            shell.succeed(&format!("umask {umask}; {script}"));
            for file in files {
                assert_eq!(mode_of(&shell.file(file)), 0o600, "umask {umask}, user {uid}: {script}: {file}");
            }
        }
        assert_eq!(mode_of(&shell.file("tables")), 0o700);
        assert_eq!(Archive::read(&shell.file("a.fxt")).events.len(), 3 * 14);
    }
    let scene = Scene::begin("oneshot", 1_000);
    for pid in [scene.manager, scene.recording.pid(), scene.burst] {
        trace_tests::sandbox::kill(pid, rustix::process::Signal::KILL);
        trace_tests::scene::wait_for_death(pid);
    }
    assert!(scene.recover().status.success());
    assert_eq!(mode_of(&scene.sandbox.file("recovered.fxt")), 0o600);
}

//= docs/recording.md#files
#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let test = "a_file_that_is_replaced_keeps_its_mode";
    let mut shell = Shell::of(test, ALICE);
    fs::write(shell.file("spec.json"), SPEC).unwrap();
    for (umask, mode) in [("0777", 0o644), ("077", 0o640), ("0", 0o600), ("022", 0o444), ("022", 0o764)] {
        for (script, files) in WRITERS {
            // What start writes is always new.
            let replaced: Vec<_> = files.iter().filter(|file| **file != "s.fxt").collect();
            for file in &replaced {
                let path = shell.file(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                shell.give(path.parent().unwrap());
                if !path.exists() {
                    fs::write(&path, "before").unwrap();
                    shell.give(&path);
                }
                set_mode(&path, mode);
            }
            let before: Vec<_> =
                replaced.iter().map(|file| fs::metadata(shell.file(file)).unwrap().ino()).collect();
            shell.succeed(&format!("umask {umask}; {script}"));
            for (file, before) in replaced.iter().zip(before) {
                let facts = fs::metadata(shell.file(file)).unwrap();
                assert!(facts.mode() & 0o7777 == mode && facts.ino() != before, "{mode:o}: {script}: {file}");
            }
        }
    }
    if Requirement::Root.is_met(test) {
        // Its group is kept; where it cannot be, the other group is allowed nothing.
        for (uid, kept) in [(0, (0o660, 4_010)), (ALICE, (0o600, ALICE))] {
            let file = shell.file(&format!("of-{uid}.fxt"));
            fs::write(&file, "before").unwrap();
            chown(&file, Some(ALICE), Some(4_010)).unwrap();
            set_mode(&file, 0o660);
            shell.uid = uid;
            shell.succeed(&format!("trace convert a.fxt of-{uid}.fxt"));
            let facts = fs::metadata(&file).unwrap();
            assert_eq!((facts.mode() & 0o7777, facts.gid()), kept, "{uid}");
        }
        // What another user has put there decides nothing.
        let public = shell.file("public");
        fs::create_dir(&public).unwrap();
        set_mode(&public, 0o1777);
        let file = public.join("x.fxt");
        fs::write(&file, "before").unwrap();
        chown(&file, Some(MALLORY), Some(MALLORY)).unwrap();
        set_mode(&file, 0o666);
        shell.uid = 0;
        shell.succeed("trace convert a.fxt public/x.fxt");
        assert_eq!(mode_of(&file), 0o600);
        shell.uid = ALICE;
    }
    // A program that runs as its owner does not become one with other contents.
    set_mode(&shell.file("a.fxt"), 0o4755);
    shell.succeed("trace record -o a.fxt -- emit 1 3");
    assert_eq!(mode_of(&shell.file("a.fxt")), 0o755);
}

/// Commands that write where a path leads.
const FOLLOWERS: [&str; 11] = [
    "trace record -o PATH -- emit 1 3",
    "trace record --format catapult -o PATH -- emit 1 3",
    "trace convert --format catapult a.fxt PATH",
    "trace convert --format chrome a.fxt PATH",
    "trace convert --format catapult --system-event-output-file PATH a.fxt b.json",
    "trace measure --spec-file spec.json --benchmark-results-file PATH a.fxt",
    "out=$(recorder trace PATH emit 1 3) || { echo \"$out\" >&2; false; }",
    "out=$(recorder-c trace PATH emit 1 3) || { echo \"$out\" >&2; false; }",
    "out=$(printf 'start local oneshot 1\\nevents 3\\nfile %s\\n' PATH | env local); echo \"$out\" | grep -q '^3 events' || { echo \"$out\" >&2; false; }",
    "trace snapshot -o PATH",
    "trace stop -o PATH",
];

//= docs/recording.md#files
#[test]
fn links_of_others_are_not_followed() {
    let test = "links_of_others_are_not_followed";
    let Some(sandbox) = Sandbox::for_all_users(test) else { return };
    set_mode(&sandbox.runtime_dir(), 0o700);
    let shell = Shell::new(sandbox, 0);
    shell.succeed("trace record -o a.fxt -- emit 1 3");
    fs::write(shell.file("spec.json"), SPEC).unwrap();
    let (ours, theirs) = (shell.file("ours"), shell.file("theirs"));
    for directory in [&ours, &theirs] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("precious"), "as it was").unwrap();
    }
    shell.succeed("trace start -o running.fxt");
    // The manager writes it when it gets to that, and nothing more until it ends.
    let running = shell.file("running.fxt");
    wait_for("its beginning", || (fs::metadata(&running).ok()?.len() > 0).then_some(()));
    // Not even in a directory for which the kernel has no such rule.
    for (directory, mode) in [("public", 0o1777), ("plain", 0o755)] {
        let directory = shell.file(directory);
        fs::create_dir(&directory).unwrap();
        set_mode(&directory, mode);
        for (name, target) in [("file", "precious"), ("new", "missing"), ("directory", "")] {
            symlink(ours.join(target), directory.join(name)).unwrap();
            lchown(directory.join(name), Some(MALLORY), Some(MALLORY)).unwrap();
        }
        // One's own that leads to such a link.
        symlink(directory.join("file"), directory.join("own")).unwrap();
        let before = state(&shell.file(""));
        for follower in FOLLOWERS {
            for path in ["file", "new", "directory/precious", "own"] {
                let output = shell.run(&follower.replace("PATH", directory.join(path).to_str().unwrap()));
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let link = directory.join(path.split('/').next().unwrap().replace("own", "file"));
                let expected = format!(
                    "{} is a symbolic link of user {MALLORY}: a link is followed only",
                    link.display()
                );
                assert!(!output.status.success() && said.contains(&expected), "{follower}, {path}: {said}");
            }
        }
        for (script, path) in [
            ("trace start -o PATH.fxt", "new"),
            ("trace convert --format csv a.fxt PATH/tables", "directory"),
        ] {
            let name = if path == "new" { "new.fxt" } else { path };
            if path == "new" {
                symlink(ours.join("missing"), directory.join(name)).unwrap();
                lchown(directory.join(name), Some(MALLORY), Some(MALLORY)).unwrap();
            }
            let output = shell.run(&script.replace("PATH", directory.join(path).to_str().unwrap()));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("is a symbolic link of user 4009"), "{script}: {said}");
            if path == "new" {
                fs::remove_file(directory.join(name)).unwrap();
            }
        }
        let after = state(&shell.file(""));
        let changed: Vec<_> = after.iter().filter(|(path, state)| before.get(*path) != Some(state)).collect();
        // A name came and went in the directory of the links.
        assert!(changed.iter().all(|(path, _)| **path == directory), "{changed:?}");
        assert_eq!(before.len(), after.len());
    }
    shell.succeed("trace stop");
}

//= docs/recording.md#files
#[test]
fn links_of_the_user_and_of_a_directorys_owner_are_followed() {
    let test = "links_of_the_user_and_of_a_directorys_owner_are_followed";
    let shell = Shell::of(test, 0);
    shell.succeed("trace record -o a.fxt -- emit 1 3");
    fs::write(shell.file("spec.json"), SPEC).unwrap();
    let owners = if Requirement::Root.is_met(test) { &[0, ALICE][..] } else { &[shell.uid] };
    for owner in owners {
        let directory = shell.file(&format!("of-{owner}"));
        fs::create_dir_all(directory.join("below")).unwrap();
        for (target, name) in
            [("below/target", "link"), ("link", "second"), ("below", "way"), ("below/new", "new")]
        {
            symlink(target, directory.join(name)).unwrap();
            lchown(directory.join(name), Some(*owner), None).unwrap();
        }
        chown(&directory, Some(*owner), None).unwrap();
        for follower in &FOLLOWERS[..9] {
            for (path, target) in
                [("link", "target"), ("second", "target"), ("way/../way/other", "other"), ("new", "new")]
            {
                let target = directory.join("below").join(target);
                let _ = fs::remove_file(&target);
                shell.succeed(&follower.replace("PATH", directory.join(path).to_str().unwrap()));
                let facts = fs::symlink_metadata(&target).unwrap();
                assert!(facts.is_file() && facts.len() > 0, "{follower}, {path}");
                assert!(path.contains('/') || directory.join(path).is_symlink(), "{follower}, {path}");
            }
        }
        symlink("around.fxt", directory.join("around.fxt")).unwrap();
        let output = shell.run(&format!("trace convert a.fxt {}/around.fxt", directory.display()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("more than 40 symbolic links"), "{said}");
    }
}
