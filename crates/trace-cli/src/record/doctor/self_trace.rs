//! A test recording of two programs, one of which is killed: the trace must have every event of both.

use super::Finding;
use crate::connection::announces_recording;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trace_protocol::names::RUNTIME_VARIABLE;
use trace_provider::{Scope, TraceProvider, category_enabled, instant};
use trace_reader::{Item, Reader, Value};

const NAME: &str = "recording";
/// The category of its events, which lists of categories omit.
pub const CATEGORY: &str = "trace_doctor";
/// Pause between two events of a program.
const PAUSE: Duration = Duration::from_millis(1);
const DURATION: Duration = Duration::from_secs(2);
/// When one of the programs is killed.
const KILLED_AFTER: Duration = Duration::from_secs(1);
/// Timeout of the whole test.
const DEADLINE: Duration = Duration::from_secs(20);

/// Records, and examines the trace.
pub(super) fn run() -> Finding {
    match record() {
        Ok(text) => Finding::works(NAME, text),
        Err(problem) => Finding::fails(NAME, problem.to_string(), None),
    }
}

/// What is wrong with the recording.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Recorder(String),
    #[error("the recorder does not end")]
    Endless,
    #[error("there is no trace: {0}")]
    NoTrace(std::io::Error),
    #[error(transparent)]
    Trace(#[from] trace_reader::ReadError),
    #[error("{program} recorded only {events} events")]
    Few { program: &'static str, events: u64 },
    #[error("{program} lacks events")]
    Gaps { program: &'static str },
}

fn record() -> Result<String, Problem> {
    let base = if Path::new("/dev/shm").is_dir() { Path::new("/dev/shm") } else { Path::new("/tmp") };
    let directory = tempfile::Builder::new()
        .prefix("trace-doctor-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(base)?;
    let tool = std::env::current_exe()?;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&tool);
        command.args(arguments).env(RUNTIME_VARIABLE, directory.path()).current_dir(directory.path());
        // What the user has configured for recordings is for others.
        command.env("XDG_CONFIG_HOME", directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let printed = directory.path().join("stderr");
    let this = std::process::id().to_string();
    let mut recorder =
        command(&["record", "--parent", &this, "--user", "root", "--duration", "2s", "-o", "self.fxt"]);
    let mut recorder = recorder.stderr(File::create(&printed)?).spawn()?;
    // As under a recorder: each waits until it is recorded.
    let provider = || command(&["doctor-provider"]).env("TRACE_RECORD", "1").spawn();
    let has_begun = || announces_recording(directory.path());
    let began = Instant::now();
    while !has_begun() && began.elapsed() < DEADLINE {
        std::thread::sleep(PAUSE);
    }
    let mut providers = [provider()?, provider()?];
    std::thread::sleep(KILLED_AFTER);
    let killed = providers[0].kill();
    let status = wait(&mut recorder, DEADLINE + DURATION);
    for provider in &mut providers {
        let _ = provider.kill();
        let _ = provider.wait();
    }
    killed?;
    match status {
        Some(true) => {}
        Some(false) => {
            let printed = std::fs::read_to_string(&printed).unwrap_or_default();
            let last = printed.lines().last().unwrap_or("the recorder has failed");
            return Err(Problem::Recorder(last.to_owned()));
        }
        None => return Err(Problem::Endless),
    }
    let [killed, other] = providers.map(|provider| u64::from(provider.id()));
    let found = read(&directory.path().join("self.fxt"))?;
    let of = |pid: u64| found.iter().filter(move |(process, _)| *process == pid).map(|(_, number)| *number);
    for (pid, program) in [(killed, "the killed program"), (other, "the other program")] {
        let events = of(pid).count() as u64;
        if events < 10 {
            return Err(Problem::Few { program, events });
        }
        if !of(pid).eq(0..events) {
            return Err(Problem::Gaps { program });
        }
    }
    Ok(format!(
        "two programs in two seconds, one killed by kill -9: {} and {} events, none missing",
        of(killed).count(),
        of(other).count()
    ))
}

/// Whether it has succeeded; none if it has not ended in time.
fn wait(child: &mut Child, limit: Duration) -> Option<bool> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.success());
        }
        std::thread::sleep(PAUSE);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Process and number of each test event.
fn read(path: &Path) -> Result<Vec<(u64, u64)>, Problem> {
    let file = File::open(path).map_err(Problem::NoTrace)?;
    let mut reader = Reader::new(file)?;
    let mut found = Vec::new();
    while let Some(resolved) = reader.next_item()? {
        if let Item::Event(event) = resolved.item
            && event.category == CATEGORY
            && let Some(Value::Uint64(number)) = event.arguments.find("n")
        {
            found.push((event.thread.process.0, number));
        }
    }
    Ok(found)
}

/// The program that is recorded: numbered events until it is killed, or its recording is over.
pub fn provide() {
    let _provider = TraceProvider::new(CATEGORY);
    let mut number = 0_u64;
    while category_enabled!("trace_doctor") {
        instant!("trace_doctor", "event", Scope::Thread, "n" => number);
        number += 1;
        std::thread::sleep(PAUSE);
    }
}
