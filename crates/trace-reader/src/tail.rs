//! The end of an archive: everything that was still going on, or happened, in the last so many seconds.

use crate::item::{EventKind, Item, ProviderId};
use crate::reader::Reader;
use crate::records::ReadError;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Read, Write};
use std::time::Duration;
use trace_format::units::{Ticks, TicksPerSecond};

/// How much is written at once.
const WRITE_BYTES: usize = 256 << 10;

/// Which end is wanted.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    /// The time that counts as now, in the ticks of the archive.
    pub now: u64,
    /// The same for providers that have ended before.
    pub ended: BTreeMap<ProviderId, u64>,
    /// How far back; everything when absent.
    pub last: Option<Duration>,
}

/// What of a provider there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Who it is.
    pub provider: ProviderId,
    /// How far its first record lies back, from now or from its end, at most what was asked for; none if it
    /// has no event.
    pub covered: Option<Duration>,
    /// How long ago it ended; 0 if it has not.
    pub ended: Duration,
    /// Its events.
    pub events: u64,
}

/// What a copy has.
#[derive(Debug)]
pub struct Copied {
    /// Each provider.
    pub coverage: Vec<Coverage>,
    /// Why the rest of the archive could not be read.
    pub stopped: Option<ReadError>,
}

/// Why a copy failed.
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// The input is no archive, or nothing could be read of it.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The copy cannot be written.
    #[error("cannot write")]
    Write(#[from] io::Error),
}

fn span(ticks: u64, rate: TicksPerSecond) -> Duration {
    Duration::from_nanos(Ticks(ticks).to_nanos(rate).0)
}

impl Tail {
    /// Copies an archive without events that ended before; definitions and everything else stay.
    ///
    /// # Errors
    /// The input is no archive, or the copy cannot be written.
    pub fn copy(&self, input: impl Read, output: impl Write) -> Result<Copied, TailError> {
        let mut reader = Reader::new(input)?;
        let mut output = BufWriter::with_capacity(WRITE_BYTES, output);
        let mut coverage: BTreeMap<ProviderId, Coverage> = BTreeMap::new();
        let mut has_content = false;
        let stopped = loop {
            let resolved = match reader.next_item() {
                Ok(Some(resolved)) => resolved,
                Ok(None) => break None,
                Err(error) if has_content => break Some(error),
                Err(error) => return Err(error.into()),
            };
            has_content |= resolved.item.is_content();
            let provider = resolved.provider;
            let now = self.ended.get(&provider).copied().unwrap_or(self.now);
            // What says that it has no end has not ended before.
            if let Item::Event(event) = resolved.item
                && event.ending().is_none()
            {
                let rate = event.time.rate;
                let end = match event.kind {
                    EventKind::DurationComplete { end } => end,
                    _ => event.time.ticks,
                };
                let age = span(now.saturating_sub(end.0), rate);
                let has_ended_before = self.last.is_some_and(|last| age > last);
                let ended = span(self.now.saturating_sub(now), rate);
                let found = Coverage { provider, covered: None, ended, events: 0 };
                let found = coverage.entry(provider).or_insert(found);
                // An event that ended before the tail begins proves that the buffer covers all of the tail.
                let covered = span(now.saturating_sub(event.time.ticks.0), rate);
                let covered = self.last.map_or(covered, |last| covered.min(last));
                found.covered = Some(found.covered.map_or(covered, |before| before.max(covered)));
                if has_ended_before {
                    continue;
                }
                found.events += 1;
            }
            output.write_all(resolved.bytes)?;
        };
        output.flush()?;
        Ok(Copied { coverage: coverage.into_values().collect(), stopped })
    }
}
