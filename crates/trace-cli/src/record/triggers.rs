//! Actions that alerts trigger while a recording runs.

use super::destination::snapshot_name;
use super::recording::Recording;
use crate::args::record::Recording as Options;
use crate::args::values::{Action, Span, Trigger};
use crate::connection::Connection;
use crate::counted::Counted;
use crate::exit::Failure;
use crate::output::OutputFile;
use crate::stdio::say;
use crate::{dump_memory, snapshot};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trace_protocol::controller::Alert;
use trace_protocol::memory::MemoryDumpLevel;

/// Maximum number of alerts that wait for their actions; further ones are ignored.
const MAX_WAITING: usize = 16;

/// The cooldown when --cooldown is not given.
const COOLDOWN: Duration = Duration::from_secs(10);

/// An alert after its snapshot.
#[derive(Debug, Default)]
struct Resting {
    until: Option<Instant>,
    /// Alerts that were raised before then.
    skipped: u64,
}

/// The triggers of a recording. Their actions run in a thread of its own: the recording goes on.
pub struct Triggers {
    triggers: Vec<Trigger>,
    /// How long further snapshots of the same alert are ignored.
    cooldown: Duration,
    /// By alert.
    resting: BTreeMap<String, Resting>,
    /// Alerts that the manager has dropped.
    dropped: u64,
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
    pub fn new(options: &Options, recording: &Recording<'_>) -> Result<Self, Failure> {
        let output_file = options.output_file.clone().unwrap_or_else(|| PathBuf::from("trace.fxt"));
        let (wanted, orders) = sync_channel(MAX_WAITING);
        let (say, done) = channel();
        let news = recording.news()?;
        let mut worker = Worker { output_file, snapshots: 0 };
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
        let triggers = options.trigger.clone();
        Ok(Self { triggers, cooldown, resting, dropped: 0, wanted, done, thread })
    }

    /// Whether any alert triggers an action.
    pub fn is_needed(&self) -> bool {
        !self.triggers.is_empty()
    }

    /// An alert was raised; true if recording ends.
    pub fn handle(&mut self, alert: &Alert) -> bool {
        self.dropped = self.dropped.saturating_add(alert.dropped);
        let alert = alert.name.as_str();
        let Some(trigger) = self.triggers.iter().find(|trigger| trigger.alert == alert) else {
            return false;
        };
        if trigger.action == Action::Stop {
            say!("trace: alert {alert}: stopping");
            return true;
        }
        if trigger.is_snapshot() {
            let now = Instant::now();
            let resting = self.resting.entry(alert.to_owned()).or_default();
            if resting.until.is_some_and(|until| now < until) {
                resting.skipped += 1;
                return false;
            }
            resting.until = Some(now + self.cooldown);
        }
        if self.wanted.try_send(trigger.clone()).is_err() {
            say!("trace: alert {alert}: ignored, as {MAX_WAITING} earlier alerts are still waiting");
        }
        false
    }

    /// Handles an alert that is received after the recording has ended.
    pub fn handle_late(&mut self, alert: &Alert) {
        self.dropped = self.dropped.saturating_add(alert.dropped);
        if !self.triggers.iter().any(|trigger| trigger.alert == alert.name) {
            return;
        }
        match self.resting.get_mut(&alert.name) {
            Some(resting) if resting.until.is_some_and(|until| Instant::now() < until) => {
                resting.skipped += 1
            }
            _ => self.dropped += 1,
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
        for (alert, Resting { skipped, .. }) in self.resting.iter().filter(|(_, resting)| resting.skipped > 0)
        {
            let cooldown = Span(self.cooldown);
            say!("trace: alert {alert}: {skipped} more within {cooldown} of a snapshot were ignored");
        }
        if let Some(text) = dropped(self.dropped) {
            say!("{text}");
        }
    }
}

/// Reports alerts that the manager has dropped, once for all of them.
fn dropped(alerts: u64) -> Option<String> {
    (alerts > 0).then(|| format!("trace: dropped {} that came too fast", Counted(alerts, "alerts")))
}

/// Runs the actions of alerts, one after the other.
struct Worker {
    output_file: PathBuf,
    snapshots: u32,
}

impl Worker {
    /// Runs an action, and returns its result. A failure does not end the recording.
    fn obey(&mut self, trigger: &Trigger) -> String {
        let alert = &trigger.alert;
        let done = match trigger.action {
            Action::Stop => return String::new(),
            Action::DumpMemory => {
                // A connection of its own, as for a snapshot.
                Connection::open()
                    .and_then(|mut connection| dump_memory::take(&mut connection, MemoryDumpLevel::Detailed))
                    .map(|dump| format!("memory dump {}", dump.id))
                    .map_err(|failure| format!("no memory dump: {}", failure.text))
            }
            Action::Snapshot => self
                .snapshot()
                .map(|path| format!("snapshot in {}", path.display()))
                .map_err(|failure| format!("no snapshot: {}", failure.text)),
        };
        format!("trace: alert {alert}: {}", done.unwrap_or_else(|why| why))
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
        let mut connection = Connection::open()?;
        snapshot::take(&mut connection, output.file())?;
        output.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_alerts_are_reported_in_one_line() {
        let text = |alerts| dropped(alerts).unwrap_or_default();
        assert_eq!(text(0), "");
        assert_eq!(text(1), "trace: dropped 1 alert that came too fast");
        assert_eq!(text(20), "trace: dropped 20 alerts that came too fast");
    }
}
