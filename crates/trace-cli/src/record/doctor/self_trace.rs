//! A test recording of two programs, one of which is killed: the trace must have every event of both.

use super::Finding;
use crate::connection::announces_recording;
use crate::connection::scratch::Scratch;
use crate::shell::exit::{Failure, INTERRUPTED};
use crate::shell::signals::note_signals;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
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
///
/// # Errors
/// The user wants to stop.
pub(super) fn run() -> Result<Finding, Failure> {
    let was_interrupted = note_signals()?;
    match record(&was_interrupted) {
        Ok(text) => Ok(Finding::works(NAME, text)),
        Err(Problem::Interrupted) => Err(Failure::with_code(INTERRUPTED, Problem::Interrupted.to_string())),
        Err(problem) => Ok(Finding::fails(NAME, problem.to_string(), None)),
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
    #[error("interrupted before the recording was complete")]
    Interrupted,
}

/// A process that is killed when this is dropped, if it has not ended.
struct Process(Child);

impl Process {
    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn record(was_interrupted: &AtomicBool) -> Result<String, Problem> {
    let scratch = Scratch::in_memory("trace-doctor-")?;
    let directory = scratch.path();
    let tool = std::env::current_exe()?;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&tool);
        command.args(arguments).env(RUNTIME_VARIABLE, directory).current_dir(directory);
        // What the user has configured for recordings is for others.
        command.env("XDG_CONFIG_HOME", directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let wait = |limit, condition: &mut dyn FnMut() -> bool| wait(limit, was_interrupted, condition);
    // It ends before the directory is removed, and after the processes that are declared later.
    let _manager = scratch.start_manager(&tool);
    let printed = directory.join("stderr");
    let this = std::process::id().to_string();
    let mut recorder =
        command(&["record", "--parent", &this, "--user", "root", "--duration", "2s", "-o", "self.fxt"]);
    let mut recorder = Process(recorder.stderr(File::create(&printed)?).spawn()?);
    // As under a recorder: each waits until it is recorded.
    let provider = || command(&["doctor-provider"]).env("TRACE_RECORD", "1").spawn().map(Process);
    wait(DEADLINE, &mut || announces_recording(directory) || recorder.has_ended())?;
    let mut providers = [provider()?, provider()?];
    wait(KILLED_AFTER, &mut || false)?;
    providers[0].0.kill()?;
    if !wait(DEADLINE + DURATION, &mut || recorder.has_ended())? {
        return Err(Problem::Endless);
    }
    if !recorder.0.wait()?.success() {
        let printed = std::fs::read_to_string(&printed).unwrap_or_default();
        let last = printed.lines().last().unwrap_or("the recorder has failed");
        return Err(Problem::Recorder(last.to_owned()));
    }
    let [killed, other] = providers.each_ref().map(|provider| u64::from(provider.0.id()));
    let found = read(&directory.join("self.fxt"))?;
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

/// Waits for a condition, and returns whether it has come true in time.
fn wait(
    limit: Duration,
    was_interrupted: &AtomicBool,
    condition: &mut dyn FnMut() -> bool,
) -> Result<bool, Problem> {
    let deadline = Instant::now() + limit;
    loop {
        if was_interrupted.load(Ordering::Relaxed) {
            return Err(Problem::Interrupted);
        }
        if condition() {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
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
