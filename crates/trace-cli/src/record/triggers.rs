//! What alerts lead to while a recording runs.

use super::destination::snapshot_name;
use crate::args::record::Recording as Options;
use crate::args::values::{Action, Trigger};
use crate::connection::Connection;
use crate::exit::Failure;
use crate::output::OutputFile;
use crate::{dump_memory, snapshot};
use std::path::PathBuf;
use trace_protocol::memory::MemoryDumpLevel;

/// The triggers of a recording.
pub struct Triggers {
    triggers: Vec<Trigger>,
    output_file: PathBuf,
    snapshots: u32,
}

impl Trigger {
    /// It leads to a snapshot.
    pub fn is_snapshot(&self) -> bool {
        self.action == Action::Snapshot
    }
}

impl Triggers {
    pub fn new(options: &Options) -> Self {
        let output_file = options.output_file.clone().unwrap_or_else(|| PathBuf::from("trace.fxt"));
        Self { triggers: options.trigger.clone(), output_file, snapshots: 0 }
    }

    /// Somebody has to listen for alerts.
    pub fn is_needed(&self) -> bool {
        !self.triggers.is_empty()
    }

    /// An alert was raised; true if recording ends. A snapshot that fails is no reason to end it.
    pub fn handle(&mut self, alert: &str, say: impl Fn(&str)) -> Result<bool, Failure> {
        let Some(trigger) = self.triggers.iter().find(|trigger| trigger.alert == alert) else {
            return Ok(false);
        };
        match trigger.action {
            Action::Stop => {
                say(&format!("trace: alert {alert}: stopping"));
                Ok(true)
            }
            Action::DumpMemory => {
                // A connection of its own, as for a snapshot.
                let taken = Connection::open()
                    .and_then(|mut connection| dump_memory::take(&mut connection, MemoryDumpLevel::Detailed));
                match taken {
                    Ok(dump) => say(&format!("trace: alert {alert}: memory dump {}", dump.id)),
                    Err(failure) => say(&format!("trace: alert {alert}: no memory dump: {}", failure.text)),
                }
                Ok(false)
            }
            Action::Snapshot => {
                match self.snapshot() {
                    Ok(path) => say(&format!("trace: alert {alert}: snapshot in {}", path.display())),
                    Err(failure) => say(&format!("trace: alert {alert}: no snapshot: {}", failure.text)),
                }
                Ok(false)
            }
        }
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
