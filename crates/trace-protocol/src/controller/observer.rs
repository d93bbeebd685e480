//! Observers: clients that see a recording of another client's while it runs.
//!
//! An observer gets frames through a socket, each with its kind and length, so that a frame of a later
//! version can be skipped. Records and counts come as far as the observer reads them: the manager drops
//! updates for one that does not.

use super::progress::ProviderProgress;
use super::put_program;
use super::session::SessionState;
use crate::buffering::BufferingMode;
use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_FRAME_BYTES, MAX_OBSERVED_PROVIDERS, MAX_PROVIDER_NAME_BYTES};
use crate::registry::{put_range, require_range};
use crate::strict_enum::strict_enum;
use crate::table::{Field, Table, TableWriter};
use crate::version::VersionRange;

/// The version of the frames that this crate writes.
pub const OBSERVER_VERSION: u16 = 1;
/// Bytes of the header of a frame.
pub const FRAME_HEADER_BYTES: usize = 8;

const VERSIONS: Field = Field::new(1, "observer versions");
const INTERVAL: Field = Field::new(2, "interval milliseconds");
const WANTS_RECORDS: Field = Field::new(3, "wants records");
const PROGRAM: Field = Field::new(4, "program name bytes");
const OPEN_FOR: Field = Field::new(5, "open for nanoseconds");
const DEFAULT_INTERVAL: u64 = 500;

const ERROR: Field = Field::new(1, "error");
const VERSION: Field = Field::new(2, "observer version");
const SERVED: Field = Field::new(3, "served observer versions");

const UPDATE: Field = Field::new(1, "update");
const DROPPED_UPDATES: Field = Field::new(2, "dropped updates");
const NOW: Field = Field::new(3, "ticks");
const RATE: Field = Field::new(4, "ticks per second");
const STATE: Field = Field::new(5, "session state");
const MODE: Field = Field::new(6, "buffering mode");
const PROVIDERS: Field = Field::new(7, "observed providers");
const LEFT_OUT: Field = Field::new(8, "providers left out");

const PROGRESS: Field = Field::new(1, "progress");
const MISSED: Field = Field::new(2, "missed");
const HAS_ENDED: Field = Field::new(3, "has ended");

/// How a client wants to observe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveOptions {
    /// The versions of frames that it understands.
    pub versions: VersionRange,
    /// The interval between updates. The manager keeps it within limits.
    pub interval_milliseconds: u64,
    /// It wants the records of the providers, and not only their counts.
    pub wants_records: bool,
    /// A program that takes part in the session, by its name or its process; none means the only session.
    pub program: Option<String>,
    /// It wants the open scopes of threads of which one has been open for longer than this, in nanoseconds.
    pub open_for_ns: Option<u64>,
}

impl Default for ObserveOptions {
    fn default() -> Self {
        Self {
            versions: VersionRange::only(OBSERVER_VERSION),
            interval_milliseconds: DEFAULT_INTERVAL,
            wants_records: false,
            program: None,
            open_for_ns: None,
        }
    }
}

strict_enum! {
    /// Why a client cannot observe.
    ObserveError {
        /// Nothing is being recorded that it may see.
        NothingRecorded = 1,
        /// There are as many observers as the manager serves.
        Busy = 2,
        /// No version of the frames is common to both.
        Version = 3,
        /// There are several sessions, and the request does not say which one.
        Several = 4,
    }
}

/// The answer to an observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observing {
    /// The version of the frames that follow.
    pub result: Result<u16, ObserveError>,
    /// The versions that the manager serves.
    pub served: VersionRange,
}

/// The kinds of frames. Others belong to later versions, and are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// Whole records of one provider, behind a magic number and the record that names the provider.
    Records,
    /// The end of an update: what has been counted so far.
    Counts,
    /// The recording is over; nothing follows.
    End,
    /// The scopes that threads of one provider have open, as an archive of its own.
    OpenScopes,
    /// A frame of a later version.
    Unknown(u16),
}

/// What an update says of the recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// The number of the update, counted from 1, dropped ones included.
    pub update: u64,
    /// How many updates before this one were dropped, because the observer had not read those before them.
    pub dropped_updates: u64,
    /// When it was made.
    pub ticks: u64,
    /// The rate of ticks; not 0.
    pub ticks_per_second: u64,
    /// The state of the session.
    pub state: SessionState,
    /// How buffers are used.
    pub mode: BufferingMode,
    /// The providers that take part, and those that have ended since the last update.
    pub providers: Vec<ObservedProvider>,
    /// Providers that have ended without being read to their end, and those beyond the limit of a list.
    pub left_out: u64,
}

/// What an update says of a provider.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObservedProvider {
    /// Its counts so far. If the observer wants records, these include what threads are still writing to.
    pub progress: ProviderProgress,
    /// Records that were written and that this observer did not get: they were written over before they were
    /// read for it, or are older than it.
    pub missed: u64,
    /// It takes no more part; this is the last that comes of it.
    pub has_ended: bool,
}

impl ObserveOptions {
    pub(super) fn encode(&self) -> Result<TableWriter, ProtocolError> {
        let mut table = TableWriter::new("Observe");
        put_range(&mut table, VERSIONS, self.versions)?;
        table.put(INTERVAL, &self.interval_milliseconds);
        table.put_some(WANTS_RECORDS, self.wants_records.then_some(&true));
        put_program(&mut table, PROGRAM, self.program.as_ref())?;
        table.put_some(OPEN_FOR, self.open_for_ns.as_ref());
        Ok(table)
    }

    pub(super) fn decode(table: &Table<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            versions: require_range(table, VERSIONS)?,
            interval_milliseconds: table.find(INTERVAL)?.unwrap_or(DEFAULT_INTERVAL),
            wants_records: table.find(WANTS_RECORDS)?.unwrap_or(false),
            program: table.string(PROGRAM, MAX_PROVIDER_NAME_BYTES)?,
            open_for_ns: table.find(OPEN_FOR)?,
        })
    }
}

impl Observing {
    pub(super) fn encode(&self) -> Result<TableWriter, ProtocolError> {
        let mut table = TableWriter::new("Observe");
        match self.result {
            Ok(version) => table.put(VERSION, &version),
            Err(error) => table.put(ERROR, &error.value()),
        }
        put_range(&mut table, SERVED, self.served)?;
        Ok(table)
    }

    pub(super) fn decode(table: &Table<'_>) -> Result<Self, ProtocolError> {
        let result = match table.find(ERROR)? {
            Some(error) => Err(ObserveError::from_value(error)?),
            None => Ok(table.require(VERSION)?),
        };
        Ok(Self { result, served: require_range(table, SERVED)? })
    }
}

impl FrameKind {
    const fn value(self) -> u16 {
        match self {
            Self::Records => 1,
            Self::Counts => 2,
            Self::End => 3,
            Self::OpenScopes => 4,
            Self::Unknown(value) => value,
        }
    }

    const fn of_value(value: u16) -> Self {
        match value {
            1 => Self::Records,
            2 => Self::Counts,
            3 => Self::End,
            4 => Self::OpenScopes,
            value => Self::Unknown(value),
        }
    }

    /// The header of a frame whose contents have so many bytes.
    ///
    /// # Errors
    ///
    /// It is longer than a frame may be.
    pub fn header(self, bytes: usize) -> Result<[u8; FRAME_HEADER_BYTES], ProtocolError> {
        check_limit("frame bytes", MAX_FRAME_BYTES, bytes)?;
        let mut header = [0; FRAME_HEADER_BYTES];
        let (length, rest) = header.split_at_mut(4);
        length.copy_from_slice(&(bytes as u32).to_le_bytes());
        if let Some(kind) = rest.get_mut(..2) {
            kind.copy_from_slice(&self.value().to_le_bytes());
        }
        Ok(header)
    }

    /// The kind of a frame and how many bytes follow its header.
    ///
    /// # Errors
    ///
    /// It is longer than a frame may be.
    pub fn of_header(header: [u8; FRAME_HEADER_BYTES]) -> Result<(Self, usize), ProtocolError> {
        let [l0, l1, l2, l3, k0, k1, ..] = header;
        let bytes = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        check_limit("frame bytes", MAX_FRAME_BYTES, bytes)?;
        Ok((Self::of_value(u16::from_le_bytes([k0, k1])), bytes))
    }
}

impl Counts {
    /// The contents of a frame.
    ///
    /// # Errors
    ///
    /// Something exceeds its limit.
    pub fn encode(&self) -> Result<Vec<u8>, ProtocolError> {
        check_limit(PROVIDERS.name, MAX_OBSERVED_PROVIDERS, self.providers.len())?;
        let mut table = TableWriter::new("Counts");
        table.put(UPDATE, &self.update);
        table.put(DROPPED_UPDATES, &self.dropped_updates);
        table.put(NOW, &self.ticks);
        table.put(RATE, &self.ticks_per_second);
        table.put(STATE, &self.state.value());
        table.put(MODE, &self.mode.value());
        let providers = self.providers.iter().map(ObservedProvider::encode);
        table.put_tables(PROVIDERS, providers.collect::<Result<Vec<_>, _>>()?);
        table.put_some(LEFT_OUT, Some(&self.left_out).filter(|count| **count > 0));
        Ok(table.finish())
    }

    /// Reads the contents of a frame.
    ///
    /// # Errors
    ///
    /// It is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let table = Table::decode("Counts", bytes)?;
        let providers = table.tables(PROVIDERS)?;
        check_limit(PROVIDERS.name, MAX_OBSERVED_PROVIDERS, providers.len())?;
        let ticks_per_second = table.require(RATE)?;
        if ticks_per_second == 0 {
            return Err(ProtocolError::InvalidValue { field: RATE.name, expected: "1 or more", found: 0 });
        }
        Ok(Self {
            update: table.require(UPDATE)?,
            dropped_updates: table.require(DROPPED_UPDATES)?,
            ticks: table.require(NOW)?,
            ticks_per_second,
            state: SessionState::from_value(table.require(STATE)?)?,
            mode: BufferingMode::from_value(table.require(MODE)?)?,
            providers: providers.iter().map(ObservedProvider::decode).collect::<Result<Vec<_>, _>>()?,
            left_out: table.find(LEFT_OUT)?.unwrap_or(0),
        })
    }
}

impl ObservedProvider {
    fn encode(&self) -> Result<TableWriter, ProtocolError> {
        let mut table = TableWriter::new("ObservedProvider");
        table.put_table(PROGRESS, self.progress.encode()?);
        table.put_some(MISSED, Some(&self.missed).filter(|count| **count > 0));
        table.put_some(HAS_ENDED, self.has_ended.then_some(&true));
        Ok(table)
    }

    fn decode(table: &Table<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            progress: ProviderProgress::decode(&table.table(PROGRESS)?)?,
            missed: table.find(MISSED)?.unwrap_or(0),
            has_ended: table.find(HAS_ENDED)?.unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        let progress =
            ProviderProgress { id: 7, name: "demo".to_owned(), pid: 42, ..ProviderProgress::default() };
        Counts {
            update: 3,
            dropped_updates: 1,
            ticks: 1 << 40,
            ticks_per_second: 1_000_000_000,
            state: SessionState::Started,
            mode: BufferingMode::Circular,
            providers: vec![
                ObservedProvider { progress: progress.clone(), missed: 12, has_ended: true },
                ObservedProvider { progress, ..ObservedProvider::default() },
            ],
            left_out: 9,
        }
    }

    //= docs/protocol.md#observers
    #[test]
    fn counts_come_back_as_they_were() {
        let bytes = counts().encode().unwrap();
        assert_eq!(Counts::decode(&bytes), Ok(counts()));
        for cut in 0..bytes.len() {
            assert!(Counts::decode(&bytes[..cut]).is_err(), "{cut}");
        }
        let without_rate = Counts { ticks_per_second: 0, ..counts() }.encode().unwrap();
        assert!(Counts::decode(&without_rate).is_err());
    }

    //= docs/protocol.md#observers
    #[test]
    fn frames_have_kinds_and_bounded_lengths() {
        assert_eq!(FrameKind::Records.header(0x1234), Ok([0x34, 0x12, 0, 0, 1, 0, 0, 0]));
        for kind in [FrameKind::Records, FrameKind::Counts, FrameKind::End, FrameKind::Unknown(77)] {
            assert_eq!(FrameKind::of_header(kind.header(5).unwrap()), Ok((kind, 5)));
        }
        assert!(FrameKind::Counts.header(MAX_FRAME_BYTES + 1).is_err());
        assert!(FrameKind::of_header([0xff; 8]).is_err());
        // Behind the kind, later versions may say more.
        assert_eq!(FrameKind::of_header([1, 0, 0, 0, 3, 0, 9, 9]), Ok((FrameKind::End, 1)));
    }

    /// As many providers as a list may have, with the longest names, fit into a frame.
    //= docs/protocol.md#observers
    #[test]
    fn the_largest_counts_fit() {
        let progress = ProviderProgress {
            id: u32::MAX,
            name: "x".repeat(100),
            pid: u64::MAX,
            records: u64::MAX,
            bytes: u64::MAX,
            dropped: u64::MAX,
            fill: 100.0,
            is_damaged: true,
            held: u64::MAX,
        };
        let observed = ObservedProvider { progress, missed: u64::MAX, has_ended: true };
        let counts = Counts { providers: vec![observed; MAX_OBSERVED_PROVIDERS], ..counts() };
        let bytes = counts.encode().unwrap();
        assert!(FrameKind::Counts.header(bytes.len()).is_ok(), "{} bytes", bytes.len());
        let more =
            Counts { providers: vec![ObservedProvider::default(); MAX_OBSERVED_PROVIDERS + 1], ..counts };
        assert!(more.encode().is_err());
    }
}
