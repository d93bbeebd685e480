//! One run: `trace record` as a process of its own, under a manager of the comparison's own.
//!
//! So nothing else is recorded than what the command starts, and a Ctrl-C at the terminal reaches neither the
//! client nor the command: a run that has begun is complete.
//= docs/ab.md#order-of-runs

use super::recordings::Side;
use crate::args::ab::Ab;
use crate::connection::scratch::{Manager, Scratch, terminate};
use crate::shell::exit::Failure;
use crate::shell::signals;
use crate::shell::stdio::say;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use trace_format::shown::Shown;
use trace_protocol::names::RUNTIME_VARIABLE;
use zx_sim::process::end_in_words;
use zx_sim::{ProcessFd, wait_one};

/// How often signals are looked for during a run.
const INTERVAL: Duration = Duration::from_millis(50);
/// How many of the last lines of a failed run are shown.
const LINES: usize = 10;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Complete,
    /// Because the user does not want to wait for it.
    Interrupted,
}

/// Makes the recordings.
#[derive(Debug)]
pub struct Recorder {
    tool: PathBuf,
    options: Vec<String>,
    commands: [Vec<String>; 2],
    /// How many signals have asked for the end.
    signals: Arc<AtomicUsize>,
    /// None if it did not start. It ends before its directory is removed.
    _manager: Option<Manager>,
    /// The manager's runtime directory, and what a run prints.
    directory: Scratch,
}

impl Recorder {
    /// Makes the recordings of two commands.
    pub fn new(options: &Ab, commands: &[Vec<String>; 2]) -> Result<Self, Failure> {
        let cannot = |what: &str, error: &dyn std::fmt::Display| Failure::new(format!("{what}: {error}"));
        let directory = Scratch::in_memory("trace-ab-")
            .map_err(|error| cannot("cannot make a temporary directory", &error))?;
        let tool = std::env::current_exe().map_err(|error| cannot("cannot find this program", &error))?;
        let signals = Arc::new(AtomicUsize::new(0));
        let mut incoming = signal_hook::iterator::Signals::new(signals::ending())
            .map_err(|error| cannot("cannot handle signals", &error))?;
        let count = signals.clone();
        std::thread::spawn(move || {
            for _ in incoming.forever() {
                if count.fetch_add(1, Ordering::Relaxed) == 0 {
                    say!("trace: judging after this run; press Ctrl-C again to end it now");
                }
            }
        });
        let mut more = Vec::new();
        if let Some(list) = &options.categories {
            more.extend(["--categories".to_owned(), list.0.join(",")]);
        }
        if let Some(size) = options.buffer_size {
            more.extend(["--buffer-size".to_owned(), size.0.to_string()]);
        }
        // What is kept is the user's who has called `sudo`; the rest is in a directory of root's.
        if options.save_runs.is_none() {
            more.extend(["--user", "root"].map(str::to_owned));
        }
        // It would start on demand, too, and stay for a while after the last run.
        let manager = directory.start_manager(&tool);
        let commands = commands.clone();
        Ok(Self { tool, options: more, commands, signals, _manager: manager, directory })
    }

    /// Whether the user wants no further runs.
    pub fn is_interrupted(&self) -> bool {
        self.signals.load(Ordering::Relaxed) > 0
    }

    /// Records a command into a file.
    pub fn record(&self, side: Side, path: &Path, what: &str) -> Result<Ended, Failure> {
        let command = &self.commands[side as usize];
        let printed = self.directory.path().join("stderr");
        let failed = |why: &dyn std::fmt::Display| {
            let name = Shown(command.first().map_or("", String::as_str)).to_string();
            Failure::new(format!("{what} of {name} ({}): {why}", side.text()))
        };
        let stderr = File::create(&printed).map_err(|error| failed(&error))?;
        let mut child = Command::new(&self.tool)
            .args(["record", "--parent", &std::process::id().to_string(), "--no-verify-trace", "-o"])
            .arg(path)
            .args(&self.options)
            .arg("--")
            .args(command)
            .env(RUNTIME_VARIABLE, self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .map_err(|error| failed(&error))?;
        let status = self.wait(&mut child).map_err(|error| failed(&error))?;
        let Some(status) = status else { return Ok(Ended::Interrupted) };
        if status.success() {
            return Ok(Ended::Complete);
        }
        let text = fs::read_to_string(&printed).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            say!("{}", Shown(line));
        }
        Err(failed(&end_in_words(status)))
    }

    /// Waits until a run is over; none if it was ended because the user does not want to wait.
    fn wait(&self, child: &mut Child) -> Result<Option<ExitStatus>, Box<dyn std::error::Error>> {
        let process = ProcessFd::open(child.id())?;
        let mut is_ended = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((!is_ended).then_some(status));
            }
            if !is_ended && self.signals.load(Ordering::Relaxed) > 1 {
                is_ended = true;
                terminate(child);
            }
            // A signal may interrupt it, which is as good as a timeout.
            let _ = wait_one(&process, zx_sim::Signals::READABLE, Some(Instant::now() + INTERVAL));
        }
    }
}
