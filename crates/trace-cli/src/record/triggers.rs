//! Actions that alerts, signals, the memory of programs and durations trigger while a recording runs.
//= docs/recording.md#triggers

use super::destination::snapshot_name;
use super::hangs;
use super::limits::{self, Watched as WatchedLimit};
use super::recording::Recording;
use crate::args::record::Recording as Options;
use crate::args::trigger::{Action, Condition, Trigger, UserSignal};
use crate::args::values::Span;
use crate::connection;
use crate::files::output::OutputFile;
use crate::shell::exit::Failure;
use crate::shell::stdio::say;
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trace_analysis::counted::Counted;
use trace_protocol::controller::{Alert, ProviderProgress};
use trace_protocol::memory::MemoryDumpLevel;

/// Maximum number of conditions that wait for their actions; further ones are ignored.
const MAX_WAITING: usize = 16;

/// The cooldown when --cooldown is not given.
const COOLDOWN: Duration = Duration::from_secs(10);

/// A condition after its snapshot.
#[derive(Debug, Default)]
struct Resting {
    until: Option<Instant>,
    /// How often it came true before then.
    skipped: u64,
}

/// A trigger, and what is known of its condition.
struct Watched {
    trigger: Trigger,
    /// Its signal has come, or its durations have exceeded their limit.
    has_come: Arc<AtomicBool>,
    /// Its limit of memory was exceeded when that was looked at last.
    is_exceeded: bool,
}

/// The triggers of a recording. Their actions run in a thread of its own: the recording goes on.
pub struct Triggers {
    watched: Vec<Watched>,
    /// How long further snapshots of the same condition are ignored.
    cooldown: Duration,
    /// By condition.
    resting: BTreeMap<String, Resting>,
    /// When the recording ends, as one of them has come true whose action has a delay.
    ends_at: Option<Instant>,
    /// Alerts that the manager has dropped.
    dropped: u64,
    /// Alerts that came when the recording had ended.
    late: u64,
    wanted: SyncSender<Trigger>,
    done: Receiver<String>,
    thread: JoinHandle<()>,
}

impl Trigger {
    /// The action is a snapshot.
    pub fn is_snapshot(&self) -> bool {
        self.action == Action::Snapshot
    }
}

impl Triggers {
    pub fn new(options: &Options, recording: &Recording) -> Result<Self, Failure> {
        let output_file = options.output.clone().unwrap_or_else(|| PathBuf::from("trace.fxt"));
        let (wanted, orders) = sync_channel(MAX_WAITING);
        let (say, done) = channel();
        let news = recording.news()?;
        let watched = options.trigger.iter().map(|trigger| Watched::begin(trigger, recording));
        let watched = watched.collect::<Result<Vec<_>, _>>()?;
        let limits: Vec<WatchedLimit> = watched.iter().filter_map(Watched::limit).collect();
        if !limits.is_empty() {
            let program = options.program.first().map(String::as_str);
            limits::begin(limits, program, recording.news()?, say.clone())?;
        }
        let hangs: Vec<hangs::Watched> = watched.iter().filter_map(Watched::open_limit).collect();
        if !hangs.is_empty() {
            let program = options.program.first().map(String::as_str);
            hangs::begin(hangs, program, &recording.news()?, say.clone())?;
        }
        let program = options.program.first().cloned();
        let mut worker = Worker { output_file, program, snapshots: 0 };
        let work = move || {
            for trigger in orders {
                let text = worker.obey(&trigger);
                // The receiver is gone only when the recording is over.
                let _ = say.send(text);
                let _ = news.write(&[0]);
            }
        };
        let thread = std::thread::Builder::new().name("trace-triggers".to_owned()).spawn(work);
        let thread = thread.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
        let cooldown = options.cooldown.map_or(COOLDOWN, |span| span.0);
        let resting = BTreeMap::new();
        Ok(Self { watched, cooldown, resting, ends_at: None, dropped: 0, late: 0, wanted, done, thread })
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.watched.iter().map(|watched| &watched.trigger.condition)
    }

    /// When the recording ends by a trigger that has come true. Further ones change nothing.
    pub fn ends_at(&self) -> Option<Instant> {
        self.ends_at
    }

    /// Whether any alert triggers an action.
    pub fn are_alerts_needed(&self) -> bool {
        self.conditions().any(|condition| matches!(condition, Condition::Alert(_)))
    }

    /// Whether the memory of any program triggers an action.
    pub fn is_progress_needed(&self) -> bool {
        self.conditions().any(|condition| matches!(condition, Condition::Memory { .. }))
    }

    /// An alert was raised; true if recording ends.
    pub fn handle(&mut self, alert: &Alert) -> bool {
        self.dropped = self.dropped.saturating_add(alert.dropped);
        let is_it = |watched: &&Watched| watched.is_alert(&alert.name);
        match self.watched.iter().find(is_it).map(|watched| watched.trigger.clone()) {
            Some(trigger) => self.fire(&trigger),
            None => false,
        }
    }

    /// Signals may have come, and durations may have exceeded their limits; true if recording ends.
    pub fn handle_news(&mut self) -> bool {
        let has_come = |watched: &&Watched| watched.has_come.swap(false, Ordering::Relaxed);
        let came: Vec<Trigger> =
            self.watched.iter().filter(has_come).map(|watched| watched.trigger.clone()).collect();
        came.iter().any(|trigger| self.fire(trigger))
    }

    /// Looks at the memory of the programs; true if recording ends. A limit counts each time that it begins
    /// to be exceeded.
    pub fn handle_progress(&mut self, providers: &[ProviderProgress]) -> bool {
        let mut came = Vec::new();
        for watched in &mut self.watched {
            let Condition::Memory { program, limit } = &watched.trigger.condition else { continue };
            let of_program = providers.iter().filter(|provider| provider.name == *program);
            let pids: BTreeSet<u64> = of_program.map(|provider| provider.pid).collect();
            let held = pids.into_iter().filter_map(resident).fold(0, u64::saturating_add);
            let was_exceeded = std::mem::replace(&mut watched.is_exceeded, held > limit.0);
            if watched.is_exceeded && !was_exceeded {
                came.push(watched.trigger.clone());
            }
        }
        came.iter().any(|trigger| self.fire(trigger))
    }

    /// Begins the action of a trigger; true if recording ends.
    fn fire(&mut self, trigger: &Trigger) -> bool {
        let subject = subject(&trigger.condition);
        if trigger.action == Action::Stop {
            let Some(delay) = trigger.delay else {
                say!("trace: {subject}: stopping");
                return true;
            };
            let end = Instant::now().checked_add(delay.0);
            if let (None, Some(end)) = (self.ends_at, end) {
                say!("trace: {subject}: stopping in {delay}");
                self.ends_at = Some(end);
            }
            return false;
        }
        if trigger.is_snapshot() {
            let now = Instant::now();
            let resting = self.resting.entry(subject.clone()).or_default();
            if resting.until.is_some_and(|until| now < until) {
                resting.skipped += 1;
                return false;
            }
            resting.until = Some(now + self.cooldown);
        }
        if self.wanted.try_send(trigger.clone()).is_err() {
            say!("trace: {subject}: ignored, as {MAX_WAITING} earlier ones are still waiting");
        }
        false
    }

    /// Handles an alert that is received after the recording has ended.
    pub fn handle_late(&mut self, alert: &Alert) {
        self.dropped = self.dropped.saturating_add(alert.dropped);
        let Some(watched) = self.watched.iter().find(|watched| watched.is_alert(&alert.name)) else { return };
        match self.resting.get_mut(&subject(&watched.trigger.condition)) {
            Some(resting) if resting.until.is_some_and(|until| Instant::now() < until) => {
                resting.skipped += 1
            }
            _ => self.late += 1,
        }
    }

    /// Reports finished actions.
    pub fn report(&self, say: impl Fn(&str)) {
        self.done.try_iter().for_each(|text| say(&text));
    }

    /// Waits until all actions are done, and reports them.
    pub fn finish(self) {
        drop(self.wanted);
        // A panic has been reported already.
        let _ = self.thread.join();
        self.done.try_iter().for_each(|text| say!("{text}"));
        for (subject, Resting { skipped, .. }) in
            self.resting.iter().filter(|(_, resting)| resting.skipped > 0)
        {
            let cooldown = Span(self.cooldown);
            say!("trace: {subject}: {skipped} more within {cooldown} of a snapshot were ignored");
        }
        if let Some(text) = dropped(self.dropped) {
            say!("{text}");
        }
        if self.late > 0 {
            let late = Counted(self.late, "alerts");
            say!("trace: {late} came as the recording ended, which has what led to it; no action was taken");
        }
    }
}

impl Watched {
    /// A signal's handler is set, and tells the recording.
    fn begin(trigger: &Trigger, recording: &Recording) -> Result<Self, Failure> {
        let has_come = Arc::new(AtomicBool::new(false));
        if let Condition::Signal(signal) = trigger.condition {
            let signal = match signal {
                UserSignal::Usr1 => SIGUSR1,
                UserSignal::Usr2 => SIGUSR2,
            };
            let news = OwnedFd::from(recording.news()?);
            // In the order in which they are called.
            let set = signal_hook::flag::register(signal, has_come.clone());
            set.and_then(|_| signal_hook::low_level::pipe::register(signal, news))
                .map_err(|error| Failure::new(format!("cannot handle signals: {error}")))?;
        }
        Ok(Self { trigger: trigger.clone(), has_come, is_exceeded: false })
    }

    fn limit(&self) -> Option<WatchedLimit> {
        match &self.trigger.condition {
            Condition::Durations(limit) => Some(WatchedLimit::new(limit.clone(), self.has_come.clone())),
            _ => None,
        }
    }

    fn open_limit(&self) -> Option<hangs::Watched> {
        match &self.trigger.condition {
            Condition::Open(limit) => Some(hangs::Watched::new(limit.clone(), self.has_come.clone())),
            _ => None,
        }
    }

    fn is_alert(&self, name: &str) -> bool {
        matches!(&self.trigger.condition, Condition::Alert(alert) if alert == name)
    }
}

/// What messages call a condition.
fn subject(condition: &Condition) -> String {
    match condition {
        Condition::Alert(name) => format!("alert {name}"),
        other => other.to_string(),
    }
}

/// What a process holds of the memory, in bytes; none if it has ended.
fn resident(pid: u64) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Reports alerts that the manager has dropped, once for all of them.
fn dropped(alerts: u64) -> Option<String> {
    (alerts > 0).then(|| format!("trace: lost {} that came too fast", Counted(alerts, "alerts")))
}

/// Runs the actions, one after the other.
struct Worker {
    output_file: PathBuf,
    /// A program of this recording, if it is of some only.
    program: Option<String>,
    snapshots: u32,
}

impl Worker {
    /// Runs an action, and returns its result. A failure does not end the recording.
    fn obey(&mut self, trigger: &Trigger) -> String {
        let done = match trigger.action {
            Action::Stop => return String::new(),
            Action::DumpMemory => {
                // A connection of its own, as for a snapshot.
                connection::open()
                    .and_then(|mut connection| Ok(connection.dump_memory(MemoryDumpLevel::Detailed)?))
                    .map(|dump| format!("memory dump {}", dump.id))
                    .map_err(|failure| format!("no memory dump: {}", failure.text))
            }
            Action::Snapshot => self
                .snapshot()
                .map(|path| format!("snapshot in {}", path.display()))
                .map_err(|failure| format!("no snapshot: {}", failure.text)),
        };
        format!("trace: {}: {}", subject(&trigger.condition), done.unwrap_or_else(|why| why))
    }

    fn snapshot(&mut self) -> Result<PathBuf, Failure> {
        let path = loop {
            self.snapshots += 1;
            let path = snapshot_name(&self.output_file, self.snapshots);
            if !path.exists() {
                break path;
            }
        };
        let mut output = OutputFile::create(&path)?;
        // A connection of its own: this recording's channel has its own requests.
        let mut connection = connection::open()?;
        connection.snapshot(self.program.as_deref(), output.file())?;
        Ok(output.finish()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_alerts_are_reported_in_one_line() {
        let text = |alerts| dropped(alerts).unwrap_or_default();
        assert_eq!(text(0), "");
        assert_eq!(text(1), "trace: lost 1 alert that came too fast");
        assert_eq!(text(20), "trace: lost 20 alerts that came too fast");
    }
}
