//! Programs that record others with the library.

use rustix::process::Signal;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trace_client::connection::announces_recording;
use trace_client::{BufferingMode, Client, Config, Error, Output, Recording, Snapshot, Tool};
use trace_tests::build::program;
use trace_tests::sandbox::{Process, kill};
use trace_tests::scene::{freeze, wait_for_death};
use trace_tests::{Archive, Sandbox, wait_for};
use zx_sim::Listener;

/// The tool, in which the manager is.
fn tool() -> Tool {
    Tool::At(program("trace").to_owned())
}

fn client(sandbox: &Sandbox) -> Client {
    Client::open_in(sandbox.runtime_dir(), tool()).wait().unwrap()
}

fn record(sandbox: &Sandbox, client: &Client, name: &str) -> Recording {
    client.record(Config::default(), sandbox.file(name)).wait().unwrap()
}

/// A program that has recorded 503 events, and runs on.
fn living(sandbox: &Sandbox) -> Process {
    fs::write(sandbox.file("wait"), "").unwrap();
    let mut living = sandbox.spawn("living", &["wait"]);
    assert_eq!(living.line(), "printed by the program");
    living
}

/// What is written into it can be read elsewhere.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//= docs/client.md#a-library-that-records
#[test]
fn a_program_records_others() {
    let sandbox = Sandbox::new();
    let client = client(&sandbox);
    assert_eq!(client.directory(), sandbox.runtime_dir());
    let recording = client.record(Config::of("emit"), sandbox.file("a.fxt")).wait().unwrap();
    assert_eq!(sandbox.files(), ["a.partial.fxt"]);
    let mut waiting = sandbox.spawn_recorded("emit", &["1", "10", "--wait"]);
    let pid: u64 = waiting.line().parse().unwrap();
    let progress = recording.progress().wait().unwrap();
    assert_eq!((progress[0].name.as_str(), progress[0].pid, progress.len()), ("emit", pid, 1));
    let listed = client.providers().wait().unwrap();
    assert_eq!((listed.listed[0].pid, listed.listed.len(), listed.left_out), (pid, 1, 0));
    let known = client.known_categories().wait().unwrap();
    assert!(known.listed.iter().any(|category| category.name == "emit"), "{known:?}");
    let mut emit = Command::new(program("emit"));
    assert!(emit.args(["2", "100"]).envs(client.environment()).output().unwrap().status.success());
    waiting.close_stdin();
    waiting.succeed();
    let report = recording.stop().wait().unwrap();
    let events = 13 * (2 * 100 + 10);
    assert_eq!((report.events(), report.dropped(), report.is_complete()), (events, 0, true));
    assert_eq!(report.path, Some(sandbox.file("a.fxt")));
    let metadata = fs::metadata(sandbox.file("a.fxt")).unwrap();
    assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (report.bytes, 0o600));
    assert_eq!(sandbox.files(), ["a.fxt"]);
    assert_eq!(Archive::read(&sandbox.file("a.fxt")).events.len() as u64, events);
    let output = sandbox.trace(["check", "a.fxt"]);
    assert!(output.status.success(), "{output:?}");
    // The same client records again, and the manager's other clients see that.
    let recording = record(&sandbox, &client, "b.fxt");
    let refused = sandbox.trace(["record", "-o", "c.fxt"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains(" is in use by "), "{refused:?}");
    assert_eq!(recording.stop().wait().unwrap().events(), 0);
    assert_eq!(sandbox.files(), ["a.fxt", "b.fxt"]);
}

/// In an executor, into memory, from a stream.
//= docs/client.md#waiting-and-awaiting
#[test]
fn answers_can_be_awaited() {
    let sandbox = Sandbox::new();
    let memory = Shared::default();
    let archive = memory.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let report = runtime.block_on(async {
        let client = Client::open_in(sandbox.runtime_dir(), tool()).await?;
        let config = Config::of("stubborn").mode(BufferingMode::Streaming);
        let recording = client.record(config, Output::writer(memory)).await?;
        let mut raising = sandbox.spawn_recorded("stubborn", &["alert", "stall"]);
        let raise = |raising: &mut Process| {
            raising.say("now");
            assert_eq!(raising.line(), "raised");
        };
        let alert = recording.alert();
        raise(&mut raising);
        let alert = alert.await?;
        let pid = u64::from(raising.pid());
        assert_eq!((&*alert.name, &*alert.provider, alert.pid), ("stall", "stubborn", pid));
        // One that nothing waits for any more is there for the next that asks.
        drop(recording.alert());
        raise(&mut raising);
        assert_eq!(recording.alert().await?.name, "stall");
        // Asked for afterwards.
        raise(&mut raising);
        assert_eq!(recording.alert().await?.name, "stall");
        recording.flush().await?;
        assert_eq!(recording.progress().await?[0].pid, pid);
        raising.close_stdin();
        raising.succeed();
        recording.stop().await
    });
    let report = report.unwrap();
    assert_eq!((report.events(), report.dropped(), report.path), (4, 0, None));
    let bytes = archive.0.lock().unwrap();
    assert_eq!(bytes.len() as u64, report.bytes);
    let archive = Archive::of_bytes(&bytes);
    let names: Vec<String> = archive.events.iter().map(trace_tests::archive::Event::name).collect();
    assert_eq!(names, ["here", "alert", "alert", "alert"]);
}

//= docs/client.md#a-library-that-records
#[test]
fn a_recording_that_is_dropped_is_saved() {
    let sandbox = Sandbox::new();
    let client = client(&sandbox);
    let recording = record(&sandbox, &client, "a.fxt");
    let _living = living(&sandbox);
    let late = recording.alert();
    drop(recording);
    // The client does not have to be there.
    drop(client);
    wait_for("the archive", || sandbox.file("a.fxt").exists().then_some(()));
    assert_eq!(Archive::read(&sandbox.file("a.fxt")).events.len(), 503);
    assert!(matches!(late.wait(), Err(Error::Over)));
}

#[test]
fn a_recording_that_cannot_begin_leaves_nothing() {
    let sandbox = Sandbox::new();
    let client = client(&sandbox);
    let running = record(&sandbox, &client, "a.fxt");
    let error = client.record(Config::default(), sandbox.file("b.fxt")).wait().unwrap_err();
    assert!(error.to_string().starts_with("unable to start trace: "), "{error}");
    assert!(error.to_string().contains(" is in use by "), "{error}");
    let error = client.record(Config::of(" ,"), sandbox.file("b.fxt")).wait().unwrap_err();
    assert!(error.to_string().contains("no category is named"), "{error}");
    let missing = sandbox.file("missing/b.fxt");
    let error = client.record(Config::default(), &missing).wait().unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write {}", missing.display()));
    let error = client.record(Config::default(), sandbox.runtime_dir()).wait().unwrap_err();
    assert!(trace_client::problem(&error).ends_with(": it is a directory"), "{error}");
    assert_eq!(sandbox.files(), ["a.partial.fxt"]);
    running.stop().wait().unwrap();
    assert_eq!(sandbox.files(), ["a.fxt"]);
    let error = client.snapshot(Snapshot::default(), sandbox.file("b.fxt")).wait().unwrap_err();
    assert!(matches!(error, Error::NothingRecorded), "{error}");
    assert_eq!(sandbox.files(), ["a.fxt"]);
}

/// A service may try until it is its turn.
#[test]
fn recordings_that_are_refused_leave_no_descriptors() {
    let sandbox = Sandbox::new();
    let tool = program("trace").to_str().unwrap();
    let mut command = sandbox.command("recorder");
    command.args([tool, "a.fxt"]).env("REFUSED", "1");
    let mut recorder = Sandbox::spawn_command(command);
    assert_eq!(recorder.line(), "recording");
    recorder.say("stop");
    recorder.succeed();
    assert_eq!(sandbox.files(), ["a.fxt"]);
}

//= docs/client.md#a-library-that-records
#[test]
fn a_snapshot_leaves_the_recording_as_it_is() {
    let sandbox = Sandbox::new();
    let client = client(&sandbox);
    let config = Config::default().mode(BufferingMode::Circular);
    let recording = client.record(config, sandbox.file("a.fxt")).wait().unwrap();
    let _living = living(&sandbox);
    // Of an hour, all of it; of no time, no event, but the rest.
    let hour = Duration::from_secs(3600);
    for (what, events) in [(Snapshot::default(), 503), (Snapshot::of("living").last(hour), 503)] {
        let snapshot = client.snapshot(what, sandbox.file("b.fxt")).wait().unwrap();
        assert_eq!((snapshot.events(), snapshot.path.clone()), (events, Some(sandbox.file("b.fxt"))));
        assert_eq!(fs::metadata(sandbox.file("b.fxt")).unwrap().len(), snapshot.bytes);
        let archive = Archive::read(&sandbox.file("b.fxt"));
        assert_eq!(archive.events.len() as u64, events);
        assert!(archive.providers.values().any(|name| name == "living"), "{:?}", archive.providers);
    }
    // One without events replaces nothing.
    let before = fs::read(sandbox.file("b.fxt")).unwrap();
    let nothing = || Snapshot::default().last(Duration::ZERO);
    let snapshot = client.snapshot(nothing(), sandbox.file("b.fxt")).wait().unwrap();
    assert_eq!((snapshot.events(), snapshot.is_unchanged, snapshot.path), (0, true, None));
    assert_eq!(fs::read(sandbox.file("b.fxt")).unwrap(), before);
    let snapshot = client.snapshot(nothing(), sandbox.file("new.fxt")).wait().unwrap();
    assert_eq!((snapshot.events(), snapshot.is_unchanged), (0, false));
    assert_eq!(Archive::read(&sandbox.file("new.fxt")).events.len(), 0);
    fs::remove_file(sandbox.file("new.fxt")).unwrap();
    let other = client.snapshot(Snapshot::of("other").last(hour), sandbox.file("c.fxt")).wait().unwrap_err();
    assert!(matches!(other, Error::NothingRecorded), "{other}");
    assert_eq!(sandbox.files(), ["a.partial.fxt", "b.fxt", "wait"]);
    assert_eq!(recording.stop().wait().unwrap().events(), 503);
    assert_eq!(Archive::read(&sandbox.file("a.fxt")).events.len(), 503);
}

/// The manager dies: what is in the program's buffer is recovered.
//= docs/client.md#when-something-dies
#[test]
fn the_death_of_the_manager_is_an_error_and_loses_nothing() {
    let sandbox = Sandbox::new();
    let client = client(&sandbox);
    let recording = record(&sandbox, &client, "a.fxt");
    let living = living(&sandbox);
    let manager = sandbox.manager_pid().unwrap();
    let alert = recording.alert();
    kill(manager, Signal::KILL);
    wait_for_death(manager);
    // What waits for an alert waits no longer, though the recording was not asked to end.
    assert!(matches!(alert.wait(), Err(Error::Over)));
    // At any time, and also if it was there to be noticed before.
    let error = recording.stop().wait().unwrap_err();
    let Error::Incomplete { path, source } = error else { panic!("{error}") };
    assert_eq!(path, sandbox.file("a.partial.fxt"));
    assert!(matches!(*source, Error::ManagerGone), "{source}");
    let error = client.providers().wait().unwrap_err();
    assert!(matches!(error, Error::Closed), "{error}");
    living.signal(Signal::KILL);
    wait_for_death(living.pid());
    let output = sandbox.trace(["recover", "-o", "recovered.fxt"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(Archive::read(&sandbox.file("recovered.fxt")).events.len(), 503);
    // Another client has another manager, which the first left none of its children as a zombie for.
    let again = self::client(&sandbox);
    assert_eq!(again.providers().wait().unwrap().listed.len(), 0);
    wait_for("the manager to be reaped", || (!fs::exists(format!("/proc/{manager}")).unwrap()).then_some(()));
}

/// The program that records dies: the rest is recovered.
//= docs/client.md#when-something-dies
#[test]
fn the_death_of_the_program_that_records_loses_nothing() {
    for is_killed in [true, false] {
        let sandbox = Sandbox::new();
        let tool = program("trace").to_str().unwrap();
        let mut recorder = sandbox.spawn("recorder", &[tool, "a.fxt"]);
        assert_eq!(recorder.line(), "recording");
        let living = living(&sandbox);
        if is_killed {
            recorder.signal(Signal::KILL);
        } else {
            recorder.close_stdin();
        }
        wait_for_death(recorder.pid());
        fs::remove_file(sandbox.file("wait")).unwrap();
        living.succeed();
        let is_over = || !announces_recording(&sandbox.runtime_dir());
        wait_for("the recording to end", || is_over().then_some(()));
        let files = sandbox.files();
        assert_eq!(files, ["a.partial.fxt"], "{is_killed}");
        let saved = Archive::read_prefix(&sandbox.file("a.partial.fxt")).events.len();
        let output = sandbox.trace(["recover", "-o", "recovered.fxt"]);
        let found = match output.status.success() {
            true => Archive::read(&sandbox.file("recovered.fxt")).events.len(),
            // The manager had written all of it.
            false => saved,
        };
        assert_eq!(found, 503, "{is_killed}: {saved}, {output:?}");
    }
}

/// A manager that hangs: each request fails, and the end keeps what there is.
//= docs/client.md#when-something-dies
#[test]
fn a_manager_that_hangs_is_not_waited_for() {
    let sandbox = Sandbox::new();
    let client = client(&sandbox);
    let recording = record(&sandbox, &client, "a.fxt");
    let _living = living(&sandbox);
    let alert = recording.alert();
    freeze(sandbox.manager_pid().unwrap());
    let (flush, progress) = (recording.flush(), recording.progress());
    // However many ask, only some of them wait.
    let asked: Vec<_> = (0..100).map(|_| recording.progress()).collect();
    for error in asked.into_iter().map(|asked| asked.wait().unwrap_err()) {
        assert!(matches!(error, Error::NoAnswer), "{error}");
    }
    for error in [flush.wait().unwrap_err(), progress.wait().unwrap_err()] {
        assert!(matches!(error, Error::NoAnswer), "{error}");
    }
    let error = recording.stop().wait().unwrap_err();
    let Error::Incomplete { path, source } = error else { panic!("{error}") };
    assert_eq!(path, sandbox.file("a.partial.fxt"));
    assert!(matches!(*source, Error::NoAnswer), "{source}");
    assert!(matches!(alert.wait(), Err(Error::Over)));
}

/// A manager that sends what is no message, or nothing more.
#[test]
fn a_manager_is_not_trusted() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.runtime_dir()).unwrap();
    let listener = Listener::bind(&sandbox.runtime_dir().join("provisioner")).unwrap();
    for bytes in [&b"no message"[..], b""] {
        let client = Client::open_in(sandbox.runtime_dir(), tool());
        let theirs = wait_for("the client", || listener.accept().ok());
        let client = client.wait().unwrap();
        let asked = client.providers();
        wait_for("its request", || theirs.read().ok());
        if bytes.is_empty() {
            drop(theirs);
            let error = asked.wait().unwrap_err();
            assert!(matches!(error, Error::Closed), "{error}");
        } else {
            theirs.write(bytes, Vec::new()).unwrap();
            let error = asked.wait().unwrap_err();
            assert!(matches!(error, Error::Protocol(_)), "{error}");
        }
    }
}
