//! Copies of the buffers of a recording, which goes on.

use crate::connection::Connection;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{Seek, Write};
use std::time::Duration;
use trace_archive::output::Bounded;
use trace_protocol::controller::ProviderStats;
use trace_reader::item::ProviderId;
use trace_reader::tail::{Copied, Coverage, Tail, TailError};

/// What is copied. The default is all of the only recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub(crate) program: Option<String>,
    pub(crate) last: Option<Duration>,
}

impl Snapshot {
    /// Copies the recording in which a program takes part that has this name or process id: several may run.
    #[must_use]
    pub fn of(program: &str) -> Self {
        Self { program: Some(program.to_owned()), last: None }
    }

    /// Leaves out events that ended earlier than this before the snapshot; for a program that has ended,
    /// before its end.
    #[must_use]
    pub fn last(mut self, time: Duration) -> Self {
        self.last = Some(time);
        self
    }

    /// Copies the buffers into a temporary file.
    ///
    /// # Errors
    /// As of [`Connection::snapshot`].
    pub fn take(&self, connection: &mut Connection) -> Result<Taken> {
        let mut whole = tempfile::tempfile().map_err(Error::Snapshot)?;
        let now = zx_sim::ticks::now();
        let providers = connection.snapshot(self.program.as_deref(), &mut Bounded::new(&whole))?;
        whole.rewind().map_err(Error::Snapshot)?;
        Ok(Taken { whole, now, last: self.last, providers })
    }
}

/// A snapshot that is not written into its output yet.
#[derive(Debug)]
pub struct Taken {
    whole: File,
    now: u64,
    last: Option<Duration>,
    /// What was found in the buffer of each program.
    pub providers: Vec<ProviderStats>,
}

impl Taken {
    /// Writes the part that is wanted, and returns which time and how many events it has of each program.
    ///
    /// # Errors
    /// [`Error::Snapshot`] if it cannot be written, [`Error::UnreadableSnapshot`] if the manager sent no
    /// archive.
    pub fn write(&self, output: impl Write) -> Result<Vec<Coverage>> {
        let ended = |stats: &ProviderStats| Some((ProviderId(stats.id), stats.ended_ticks?));
        let ended = self.providers.iter().filter_map(ended).collect();
        let mut tail = Tail { now: self.now, ended, last: self.last, ..Tail::default() };
        tail.note_begins(&self.whole).map_err(Error::UnreadableSnapshot)?;
        (&self.whole).rewind().map_err(Error::Snapshot)?;
        let Copied { coverage, stopped } = tail.copy(&self.whole, output).map_err(|error| match error {
            TailError::Write(error) => Error::Snapshot(error),
            TailError::Read(error) => Error::UnreadableSnapshot(error),
        })?;
        stopped.map_or(Ok(coverage), |error| Err(Error::UnreadableSnapshot(error)))
    }
}
