//! One recorder behind three doors: the command, the library, and the library for C. Outputs have the same
//! rules at each.
//= docs/client.md#a-library-that-records

use super::full::Mounted;
use rustix::fs::{CWD, FileType, mknodat};
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Output;
use trace_tests::build::program;
use trace_tests::sandbox::Process;
use trace_tests::scene::Scene;
use trace_tests::{Archive, Requirement, Sandbox, native, wait_for};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Command,
    Library,
    C,
}

/// The doors that there are.
fn doors(test: &str) -> impl Iterator<Item = Door> {
    let has_c = Requirement::Compilers.is_met(test);
    [Door::Command, Door::Library, Door::C].into_iter().filter(move |door| *door != Door::C || has_c)
}

/// A recording through a door.
struct Recording {
    door: Door,
    process: Process,
}

impl Door {
    /// Has a shell record into a file. `limits` stand before the command.
    fn spawn(self, sandbox: &Sandbox, limits: &str, name: &str) -> Process {
        let tool = program("trace").display();
        let script = match self {
            Self::Command => format!("{tool} record -o {name}"),
            Self::Library => format!("{} {tool} {name}", program("recorder").display()),
            Self::C => {
                let (source, output) = (native::source("recorder.c"), sandbox.runtime_dir().join("c"));
                if !output.exists() {
                    fs::create_dir_all(sandbox.runtime_dir()).unwrap();
                    native::client_program("gcc", &[source.to_str().unwrap()], &native::STRICT, &output);
                }
                format!("{} {tool} {name}", output.display())
            }
        };
        let mut shell = sandbox.command("trace");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("{limits} exec {script}")]);
        for (name, value) in shell.env_remove("MAX_SIZE").get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(sandbox.work_dir());
        Sandbox::spawn_command(command)
    }

    /// Begins to record.
    fn begin(self, sandbox: &Sandbox, limits: &str, name: &str) -> Recording {
        let mut process = self.spawn(sandbox, limits, name);
        match self {
            Self::Command => wait_for("the recording to begin", || {
                process.stderr_so_far().contains("press Ctrl-C").then_some(())
            }),
            Self::Library | Self::C => assert_eq!(process.line(), "recording", "{self:?}"),
        }
        Recording { door: self, process }
    }
}

impl Recording {
    /// Ends it: whether that has gone well, and what was said.
    fn end(mut self) -> (bool, String) {
        match self.door {
            Door::Command => self.process.signal(Signal::INT),
            Door::Library | Door::C => self.process.say("stop"),
        }
        said(&self.process.finish())
    }
}

fn said(output: &Output) -> (bool, String) {
    let text = [&output.stdout[..], &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    // A program that was ended by a signal has no code.
    assert!(output.status.code().is_some(), "{output:?}");
    (output.status.success(), text.concat())
}

/// A manager that no recorder has started: it has limits of its own.
fn manager(sandbox: &Sandbox) -> Process {
    let manager = sandbox.spawn("trace", &["manager"]);
    let socket = sandbox.runtime_dir().join("provisioner");
    wait_for("the manager", || socket.exists().then_some(()));
    manager
}

/// Recovers what is left, once the manager has left it.
fn recover(sandbox: &Sandbox) -> Output {
    let is_left = |session: &PathBuf| {
        let manifest = fs::read_to_string(session.join("manifest.jsonl")).unwrap_or_default();
        !session.exists() || manifest.contains("\"ended\"")
    };
    wait_for("the manager to leave it", || Scene::sessions_of(sandbox).iter().all(is_left).then_some(()));
    sandbox.trace(["recover", "-o", "recovered.fxt"])
}

fn emit(sandbox: &Sandbox, count: u32) {
    sandbox.spawn_recorded("emit", &["1", &count.to_string()]).succeed();
}

/// The bytes of a file, without its compression.
fn plain(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).unwrap();
    trace_reader::Plain::open(file).unwrap().0.read_to_end(&mut bytes).unwrap();
    bytes
}

//= docs/recording.md#where-the-trace-goes
#[test]
fn a_recording_without_events_replaces_nothing_at_any_door() {
    for door in doors("a_recording_without_events_replaces_nothing_at_any_door") {
        let sandbox = Sandbox::new();
        let file = sandbox.file("a.fxt");
        let record = |events: u32| {
            let recording = door.begin(&sandbox, "", "a.fxt");
            assert!(sandbox.files().contains(&"a.partial.fxt".to_owned()), "{door:?}");
            if events > 0 {
                emit(&sandbox, events);
            }
            let (is_success, text) = recording.end();
            assert!(is_success, "{door:?}: {text}");
            assert_eq!(sandbox.files(), ["a.fxt"], "{door:?}");
            text
        };
        // Where there is no file, or an empty one, there is one then.
        record(0);
        assert_eq!(Archive::read(&file).events.len(), 0);
        fs::write(&file, "").unwrap();
        record(0);
        assert_eq!(Archive::read(&file).events.len(), 0);
        fs::write(&file, "precious").unwrap();
        let text = record(0);
        assert!(text.contains("unchanged") || text.contains("stays as it was"), "{door:?}: {text}");
        assert_eq!(fs::read(&file).unwrap(), b"precious", "{door:?}");
        record(10);
        assert_eq!(Archive::read(&file).events.len(), 140, "{door:?}");
    }
}

//= docs/recording.md#where-the-trace-goes
#[test]
fn a_name_selects_the_format_at_any_door() {
    for door in doors("a_name_selects_the_format_at_any_door") {
        let sandbox = Sandbox::new();
        for name in ["a", "a.fxt", "a.fxt.zst", "a.fxt.gz", "a.json", "a.json.gz", "a.pftrace"] {
            let recording = door.begin(&sandbox, "", name);
            emit(&sandbox, 10);
            let (is_success, text) = recording.end();
            assert!(is_success, "{door:?} {name}: {text}");
            assert_eq!(sandbox.files(), [name], "{door:?}");
            let path = sandbox.file(name);
            let bytes = plain(&path);
            let is_packed = fs::read(&path).unwrap() != bytes;
            assert_eq!(is_packed, name.ends_with(".zst") || name.ends_with(".gz"), "{door:?} {name}");
            match name.split('.').nth(1) {
                None | Some("fxt") => assert_eq!(Archive::of_bytes(&bytes).events.len(), 140, "{name}"),
                Some("json") => {
                    let events: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                    let events = events["traceEvents"].as_array().unwrap();
                    let scopes = events.iter().filter(|event| event["name"] == "scope");
                    assert_eq!(scopes.count(), 10, "{door:?} {name}");
                }
                _ => {
                    let output =
                        sandbox.trace(["query", name, "select count(*) from slices where name = 'scope'"]);
                    assert!(String::from_utf8_lossy(&output.stdout).contains("10"), "{door:?}: {output:?}");
                }
            }
            fs::remove_file(path).unwrap();
        }
        for name in ["a.bin", "a.txt.zst"] {
            let (is_success, text) = said(&door.spawn(&sandbox, "", name).finish());
            assert!(!is_success && text.contains(" is no format of traces; end the name in .fxt"), "{text}");
            assert_eq!(sandbox.files(), [""; 0], "{door:?}");
        }
    }
}

//= docs/recording.md#files
#[test]
fn what_is_no_file_is_refused_at_any_door() {
    for door in doors("what_is_no_file_is_refused_at_any_door") {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.file("directory")).unwrap();
        mknodat(CWD, sandbox.file("fifo"), FileType::Fifo, 0o600.into(), 0).unwrap();
        for (name, expected) in [
            ("directory", "cannot write directory: it is a directory"),
            ("fifo", "cannot write fifo: it is not a regular file"),
            ("missing/a.fxt", "missing: No such file or directory"),
            ("a.partial.fxt", "cannot write a.partial.fxt: recordings that are not complete have such names"),
        ] {
            let (is_success, text) = said(&door.spawn(&sandbox, "", name).finish());
            // The library makes names absolute: its program may go elsewhere.
            let text = text.replace(&format!("{}/", sandbox.work_dir().display()), "");
            assert!(!is_success && text.contains(expected), "{door:?} {name}: {text}");
        }
        assert_eq!(sandbox.files(), ["directory", "fifo"], "{door:?}");
    }
}

/// A file that may not grow is an error, and no signal: what does not fit stays in the program's buffer.
//= docs/client.md#a-library-that-records
#[test]
fn a_file_that_may_not_grow_is_an_error_at_any_door() {
    for door in doors("a_file_that_may_not_grow_is_an_error_at_any_door") {
        for name in ["a.fxt", "a.fxt.zst", "a.json"] {
            let sandbox = Sandbox::new();
            let _manager = manager(&sandbox);
            let recording = door.begin(&sandbox, "ulimit -f 8;", name);
            emit(&sandbox, 400);
            let (is_success, text) = recording.end();
            assert!(!is_success && text.contains("File too large"), "{door:?} {name}: {text}");
            let output = recover(&sandbox);
            let found = match output.status.success() {
                true => Archive::read(&sandbox.file("recovered.fxt")),
                // All of the archive was there, and its conversion has failed.
                false => Archive::read(&sandbox.file(&sandbox.files()[0])),
            };
            assert_eq!(found.events.len(), 400 * 14, "{door:?} {name}: {output:?}");
        }
    }
}

/// A full disk is an error: what does not fit stays in the program's buffer.
//= docs/client.md#a-library-that-records
#[test]
fn a_full_disk_is_an_error_at_any_door() {
    let test = "a_full_disk_is_an_error_at_any_door";
    if !Requirement::Mounts.is_met(test) {
        return;
    }
    for door in doors(test) {
        let sandbox = Sandbox::new();
        let _manager = manager(&sandbox);
        let small = sandbox.file("small");
        fs::create_dir(&small).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&small);
        assert!(mount.status().unwrap().success());
        let _mounted = Mounted(small);
        let recording = door.begin(&sandbox, "", "small/a.fxt");
        emit(&sandbox, 1000);
        let (is_success, text) = recording.end();
        assert!(!is_success && text.contains("No space left on device"), "{door:?}: {text}");
        let output = recover(&sandbox);
        assert!(output.status.success(), "{door:?}: {output:?}");
        assert_eq!(Archive::read(&sandbox.file("recovered.fxt")).events.len(), 14_000, "{door:?}");
    }
}

/// A recorder that is killed leaves its file under the name that shows what it is, and the next takes
/// another.
//= docs/recording.md#while-it-is-recorded
#[test]
fn a_killed_recorder_leaves_a_partial_file_at_any_door() {
    for door in doors("a_killed_recorder_leaves_a_partial_file_at_any_door") {
        let sandbox = Sandbox::new();
        let Recording { process, .. } = door.begin(&sandbox, "", "a.fxt");
        emit(&sandbox, 10);
        process.signal(Signal::KILL);
        trace_tests::scene::wait_for_death(process.pid());
        assert_eq!(sandbox.files(), ["a.partial.fxt"], "{door:?}");
        let is_over = || !trace_client::connection::announces_recording(&sandbox.runtime_dir());
        wait_for("the recording to end", || is_over().then_some(()));
        let recording = door.begin(&sandbox, "", "a.fxt");
        assert_eq!(sandbox.files(), ["a-1.partial.fxt", "a.partial.fxt"], "{door:?}");
        emit(&sandbox, 10);
        assert!(recording.end().0);
        assert_eq!(sandbox.files(), ["a.fxt", "a.partial.fxt"], "{door:?}");
        assert_eq!(Archive::read(&sandbox.file("a.fxt")).events.len(), 140);
    }
}

/// The file is deleted, or made shorter, while it is written.
//= docs/recording.md#files
#[test]
fn a_file_that_is_taken_away_is_an_error_at_any_door() {
    for door in doors("a_file_that_is_taken_away_is_an_error_at_any_door") {
        for (is_deleted, expected) in
            [(true, "deleted while it was written"), (false, "made shorter while it was written")]
        {
            let sandbox = Sandbox::new();
            let recording = door.begin(&sandbox, "", "a.fxt");
            let partial: PathBuf = sandbox.file("a.partial.fxt");
            wait_for("its beginning", || (fs::metadata(&partial).ok()?.len() > 0).then_some(()));
            match is_deleted {
                true => fs::remove_file(&partial).unwrap(),
                false => fs::write(&partial, "").unwrap(),
            }
            emit(&sandbox, 10);
            let (is_success, text) = recording.end();
            assert!(!is_success && text.contains(expected), "{door:?}: {text}");
            let output = recover(&sandbox);
            assert!(output.status.success(), "{door:?}: {output:?}");
            assert_eq!(Archive::read(&sandbox.file("recovered.fxt")).events.len(), 140, "{door:?}");
        }
    }
}

/// What another has put in the place of an archive is not taken for it, and stays.
//= docs/recording.md#files
#[test]
fn what_stands_in_the_place_of_an_archive_is_neither_read_nor_deleted_at_any_door() {
    for door in doors("what_stands_in_the_place_of_an_archive_is_neither_read_nor_deleted_at_any_door") {
        let sandbox = Sandbox::new();
        let (output, partial, moved) =
            (sandbox.file("a.json"), sandbox.file("a.json.partial.fxt"), sandbox.file("moved"));
        sandbox.record(&["-o", "secret.fxt"], "emit", &["1", "33"]);
        for what in ["link", "file", "fifo"] {
            fs::write(&output, "before").unwrap();
            let recording = door.begin(&sandbox, "", "a.json");
            emit(&sandbox, 10);
            fs::rename(&partial, &moved).unwrap();
            match what {
                "link" => std::os::unix::fs::symlink(sandbox.file("secret.fxt"), &partial).unwrap(),
                "file" => drop(fs::copy(sandbox.file("secret.fxt"), &partial).unwrap()),
                _ => mknodat(CWD, &partial, FileType::Fifo, 0o600.into(), 0).unwrap(),
            }
            let (is_success, text) = recording.end();
            let expected = format!("has been moved; it is now {}", moved.display());
            assert!(!is_success && text.contains(&expected), "{door:?} {what}: {text}");
            assert_eq!(fs::read(&output).unwrap(), b"before", "{door:?} {what}");
            assert!(fs::symlink_metadata(&partial).is_ok(), "{door:?} {what}");
            assert_eq!(Archive::read(&moved).events.len(), 140, "{door:?} {what}");
            [&partial, &moved].into_iter().for_each(|path| fs::remove_file(path).unwrap());
        }
        // One of which nothing is left is not deleted by its name alone.
        let recording = door.begin(&sandbox, "", "b.fxt");
        let partial = sandbox.file("b.partial.fxt");
        wait_for("its beginning", || (fs::metadata(&partial).ok()?.len() > 0).then_some(()));
        fs::write(&partial, "").unwrap();
        fs::rename(&partial, &moved).unwrap();
        fs::write(&partial, "mine").unwrap();
        emit(&sandbox, 1);
        assert!(!recording.end().0, "{door:?}");
        assert_eq!(fs::read(&partial).unwrap(), b"mine", "{door:?}");
    }
}

/// A format that has nothing for what was recorded replaces no file, and what was recorded stays.
//= docs/recording.md#where-the-trace-goes
#[test]
fn an_empty_result_replaces_nothing_at_any_door() {
    for door in doors("an_empty_result_replaces_nothing_at_any_door") {
        let sandbox = Sandbox::new();
        fs::write(sandbox.file("a.folded"), "precious").unwrap();
        let recording = door.begin(&sandbox, "", "a.folded");
        emit(&sandbox, 10);
        let (is_success, text) = recording.end();
        assert!(!is_success && text.contains("can be expressed in this format"), "{door:?}: {text}");
        assert_eq!(fs::read(sandbox.file("a.folded")).unwrap(), b"precious", "{door:?}");
        assert_eq!(Archive::read(&sandbox.file("a.folded.partial.fxt")).events.len(), 140, "{door:?}");
    }
}

//= docs/recording.md#how-a-recording-ends
#[test]
fn a_limit_ends_the_librarys_recording_and_cuts_its_archive() {
    let sandbox = Sandbox::new();
    let recording = Door::Library.begin(&sandbox, "MAX_SIZE=20000", "a.fxt");
    emit(&sandbox, 1000);
    let (is_success, text) = recording.end();
    assert!(is_success, "{text}");
    let archive = Archive::read(&sandbox.file("a.fxt"));
    let (bytes, kept) = (fs::metadata(sandbox.file("a.fxt")).unwrap().len(), archive.events.len() as u64);
    assert!((15_000..=20_000).contains(&bytes) && kept < 14_000, "{bytes} bytes, {kept} events");
    assert_eq!(text.trim(), kept.to_string());
    let lost: u64 = archive.losses.iter().map(|loss| loss.count).sum();
    // What the program recorded after the end is not counted.
    assert!(kept + lost <= 14_000, "{:?}", archive.losses);
}
