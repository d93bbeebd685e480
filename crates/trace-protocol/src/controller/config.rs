//! Configuration of a session.

use crate::buffering::BufferingMode;
use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_COMMAND_LINE_BYTES, MAX_PATH_BYTES, MAX_PROVIDER_NAME_BYTES, MAX_PROVIDERS};
use crate::memory::{MemoryDumpLevel, MemoryDumps};
use crate::table::{Field, ListLimits, Table, TableWriter};

const CATEGORIES: Field = Field::new(1, "categories");
const BUFFER_SIZE: Field = Field::new(2, "buffer_size_megabytes_hint");
const START_TIMEOUT: Field = Field::new(3, "start_timeout_milliseconds");
const MODE: Field = Field::new(4, "buffering_mode");
const SPECS: Field = Field::new(5, "provider_specs");
// 6 is the version of the format, which is fixed here.
const DEFER_TRANSFER: Field = Field::new(7, "defer_transfer");
const STOP_TIMEOUT: Field = Field::new(100, "stop_timeout_milliseconds");
const METADATA: Field = Field::new(101, "metadata");
const COMMAND_LINE: Field = Field::new(102, "command_line");
const DUMP_INTERVAL: Field = Field::new(103, "memory_dump_interval_milliseconds");
const DUMP_LEVEL: Field = Field::new(104, "memory_dump_level");
const CONFIRMS: Field = Field::new(105, "confirms");
const FILE: Field = Field::new(106, "file");
const WRITE_PERIOD: Field = Field::new(107, "write_period_milliseconds");
const KEEP_ENDED: Field = Field::new(108, "keep_ended_bytes");
const THREAD_TIME: Field = Field::new(109, "thread_time");
const WANTS_UNTRACED: Field = Field::new(110, "wants_untraced");
const WANTS_CATEGORIES: Field = Field::new(111, "wants_known_categories");

const INSTANT_COST: Field = Field::new(112, "instant_cost_picoseconds");
const DURATION_COST: Field = Field::new(113, "duration_cost_picoseconds");
const COUNTER_COST: Field = Field::new(114, "counter_cost_picoseconds");
const MIRROR_MARKERS: Field = Field::new(115, "mirror_markers");
const PROGRAMS: Field = Field::new(116, "programs");
const USER: Field = Field::new(117, "user");

const SPEC_NAME: Field = Field::new(1, "provider name bytes");
const SPEC_BUFFER_SIZE: Field = Field::new(2, "buffer_size_megabytes_hint");
const SPEC_CATEGORIES: Field = Field::new(3, "categories");

const FILE_PATH: Field = Field::new(1, "file path bytes");
const FILE_DEVICE: Field = Field::new(2, "device");
const FILE_INODE: Field = Field::new(3, "inode");
const FILE_OWNER: Field = Field::new(4, "owner");

/// The limit for all arguments together is [`MAX_COMMAND_LINE_BYTES`].
const COMMAND_LINE_LIMITS: ListLimits = ListLimits {
    list: "command line arguments",
    entries: MAX_COMMAND_LINE_BYTES,
    entry: "command line argument bytes",
    bytes: MAX_COMMAND_LINE_BYTES,
};

/// Programs are named as their providers are.
const PROGRAM_LIMITS: ListLimits = ListLimits {
    list: "programs",
    entries: MAX_PROVIDERS,
    entry: "program name bytes",
    bytes: MAX_PROVIDER_NAME_BYTES,
};

/// The configuration of a session. [`TraceConfig::default`] has the defaults of missing fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceConfig {
    /// Enabled categories, at most 5000 of 100 bytes; none means all, `prefix*` all with that prefix.
    pub categories: Vec<String>,
    /// Size of each provider's buffer in MiB; 0 counts as 1. Default 4.
    pub buffer_size_megabytes_hint: u32,
    /// How long Start waits for providers. Default 5000.
    pub start_timeout_milliseconds: u64,
    /// How long Stop waits for providers. Default 5000.
    pub stop_timeout_milliseconds: u64,
    /// How buffers are used. Default oneshot.
    pub buffering_mode: BufferingMode,
    /// Settings for single providers, at most 100 entries.
    pub provider_specs: Vec<ProviderSpec>,
    /// Whether the archive is kept back until the session stops. Default false.
    pub defer_transfer: bool,
    /// Whether the manager writes facts about the recording into the archive: what, where and when. Default
    /// true.
    pub metadata: bool,
    /// The client's command line, for the metadata; at most 32 000 bytes together.
    pub command_line: Vec<String>,
    /// Periodic memory dumps. Default none.
    pub memory_dumps: Option<MemoryDumps>,
    /// Whether the recipient of the archive confirms how much of it is written. Default false.
    pub confirms: bool,
    /// The file that the archive is written into, so that a recovery can join it with the buffers if manager
    /// and client both die.
    pub file: Option<ArchiveFile>,
    /// How often programs hand over their data while they stream and little happens. Default never.
    pub write_period_milliseconds: Option<u64>,
    /// How much data of ended programs is kept in memory for snapshots. Default 64 MiB.
    pub keep_ended_bytes: u64,
    /// Whether events of providers have the processor time of their thread as arguments. Default false.
    pub thread_time: bool,
    /// Whether the client takes
    /// [`SessionResponse::OnUntraced`](super::SessionResponse::OnUntraced). Default false.
    pub wants_untraced: bool,
    /// Whether the client takes
    /// [`SessionResponse::OnKnownCategories`](super::SessionResponse::OnKnownCategories), for which each
    /// provider is asked when it joins. Default false.
    pub wants_known_categories: bool,
    /// What events cost on this machine, for the metadata, if the client has measured that.
    pub event_costs: Option<EventCosts>,
    /// Whether programs write a mark of each event into the kernel's trace. Default false.
    pub mirror_markers: bool,
    /// Whether programs record only texts that their call sites mark as literals. Default false.
    pub privacy: bool,
    /// Names of the providers that take part, at most 100 of 100 bytes; none means all that the user may see.
    pub programs: Vec<String>,
    /// Only programs of this user and of the client's user take part; none means all that the client may see.
    pub user: Option<u32>,
}

/// What an event takes of its thread's time, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventCosts {
    /// An instant.
    pub instant_picoseconds: u64,
    /// A complete duration.
    pub duration_picoseconds: u64,
    /// A counter.
    pub counter_picoseconds: u64,
}

/// A file that an archive is written into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Its absolute path, at most 4096 bytes.
    pub path: String,
    /// The device it is on, as `stat` numbers it.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// The user that owns it, if that is another one than the client's: believed of root alone.
    pub owner: Option<u32>,
}

/// Settings for the providers with one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSpec {
    /// Name of the providers, at most 100 bytes.
    pub name: String,
    /// Size of their buffers in MiB, if it differs.
    pub buffer_size_megabytes_hint: Option<u32>,
    /// Categories added to the session's, at most 5000 of 100 bytes.
    pub categories: Vec<String>,
}

impl Default for TraceConfig {
    fn default() -> TraceConfig {
        TraceConfig {
            categories: Vec::new(),
            buffer_size_megabytes_hint: 4,
            start_timeout_milliseconds: 5000,
            stop_timeout_milliseconds: 5000,
            buffering_mode: BufferingMode::Oneshot,
            provider_specs: Vec::new(),
            defer_transfer: false,
            metadata: true,
            command_line: Vec::new(),
            memory_dumps: None,
            confirms: false,
            file: None,
            write_period_milliseconds: None,
            keep_ended_bytes: 64 << 20,
            thread_time: false,
            wants_untraced: false,
            wants_known_categories: false,
            event_costs: None,
            mirror_markers: false,
            privacy: false,
            programs: Vec::new(),
            user: None,
        }
    }
}

/// Added to the buffering mode of a private recording: managers of earlier releases do not know such modes,
/// and refuse the recording.
//= docs/protocol.md#provisioner
const PRIVATE: u8 = 16;
/// The same for a recording of some programs only.
const OF_PROGRAMS: u8 = 32;
/// The same for a recording that is limited to one user.
const OF_USER: u8 = 64;

impl TraceConfig {
    pub(super) fn encode(&self) -> Result<TableWriter, ProtocolError> {
        check_limit(SPECS.name, MAX_PROVIDERS, self.provider_specs.len())?;
        check_command_line(&self.command_line)?;
        let specs = self.provider_specs.iter().map(ProviderSpec::encode).collect::<Result<Vec<_>, _>>()?;
        let mut table = TableWriter::new("TraceConfig");
        table.put_strings(CATEGORIES, &self.categories, ListLimits::CATEGORIES)?;
        table.put(BUFFER_SIZE, &self.buffer_size_megabytes_hint);
        table.put(START_TIMEOUT, &self.start_timeout_milliseconds);
        let private = if self.privacy { PRIVATE } else { 0 };
        let of_programs = if self.programs.is_empty() { 0 } else { OF_PROGRAMS };
        let of_user = if self.user.is_none() { 0 } else { OF_USER };
        table.put(MODE, &(self.buffering_mode.value() + private + of_programs + of_user));
        table.put_tables(SPECS, specs);
        table.put(DEFER_TRANSFER, &self.defer_transfer);
        table.put(STOP_TIMEOUT, &self.stop_timeout_milliseconds);
        table.put(METADATA, &self.metadata);
        table.put_strings(COMMAND_LINE, &self.command_line, COMMAND_LINE_LIMITS)?;
        if let Some(dumps) = self.memory_dumps {
            table.put(DUMP_INTERVAL, &dumps.interval_milliseconds);
            table.put(DUMP_LEVEL, &dumps.level.value());
        }
        if self.confirms {
            table.put(CONFIRMS, &self.confirms);
        }
        if let Some(file) = &self.file {
            table.put_table(FILE, file.encode()?);
        }
        table.put_some(WRITE_PERIOD, self.write_period_milliseconds.as_ref());
        let is_usual = self.keep_ended_bytes == TraceConfig::default().keep_ended_bytes;
        table.put_some(KEEP_ENDED, (!is_usual).then_some(&self.keep_ended_bytes));
        table.put_some(THREAD_TIME, self.thread_time.then_some(&true));
        table.put_some(WANTS_UNTRACED, self.wants_untraced.then_some(&true));
        table.put_some(WANTS_CATEGORIES, self.wants_known_categories.then_some(&true));
        if let Some(costs) = self.event_costs {
            table.put(INSTANT_COST, &costs.instant_picoseconds);
            table.put(DURATION_COST, &costs.duration_picoseconds);
            table.put(COUNTER_COST, &costs.counter_picoseconds);
        }
        table.put_some(MIRROR_MARKERS, self.mirror_markers.then_some(&true));
        table.put_strings(PROGRAMS, &self.programs, PROGRAM_LIMITS)?;
        table.put_some(USER, self.user.as_ref());
        Ok(table)
    }

    pub(super) fn decode(table: &Table<'_>) -> Result<TraceConfig, ProtocolError> {
        let default = TraceConfig::default();
        let (mode, privacy) = match table.find::<u8>(MODE)? {
            Some(value) => {
                let mode = BufferingMode::from_value(value & !(PRIVATE | OF_PROGRAMS | OF_USER))?;
                (mode, value & PRIVATE != 0)
            }
            None => (default.buffering_mode, default.privacy),
        };
        let specs = table.tables(SPECS)?;
        check_limit(SPECS.name, MAX_PROVIDERS, specs.len())?;
        let mut provider_specs = Vec::with_capacity(specs.len());
        for spec in &specs {
            provider_specs.extend(ProviderSpec::decode(spec)?);
        }
        let command_line = table.strings(COMMAND_LINE, COMMAND_LINE_LIMITS)?;
        check_command_line(&command_line)?;
        Ok(TraceConfig {
            categories: table.strings(CATEGORIES, ListLimits::CATEGORIES)?,
            buffer_size_megabytes_hint: table
                .find(BUFFER_SIZE)?
                .unwrap_or(default.buffer_size_megabytes_hint),
            start_timeout_milliseconds: table
                .find(START_TIMEOUT)?
                .unwrap_or(default.start_timeout_milliseconds),
            stop_timeout_milliseconds: table.find(STOP_TIMEOUT)?.unwrap_or(default.stop_timeout_milliseconds),
            buffering_mode: mode,
            provider_specs,
            defer_transfer: table.find(DEFER_TRANSFER)?.unwrap_or(default.defer_transfer),
            metadata: table.find(METADATA)?.unwrap_or(default.metadata),
            command_line,
            memory_dumps: memory_dumps(table)?,
            confirms: table.find(CONFIRMS)?.unwrap_or(default.confirms),
            file: match table.has(FILE) {
                true => Some(ArchiveFile::decode(&table.table(FILE)?)?),
                false => None,
            },
            write_period_milliseconds: table.find(WRITE_PERIOD)?,
            keep_ended_bytes: table.find(KEEP_ENDED)?.unwrap_or(default.keep_ended_bytes),
            thread_time: table.find(THREAD_TIME)?.unwrap_or(default.thread_time),
            wants_untraced: table.find(WANTS_UNTRACED)?.unwrap_or(default.wants_untraced),
            wants_known_categories: table.find(WANTS_CATEGORIES)?.unwrap_or(default.wants_known_categories),
            event_costs: event_costs(table)?,
            mirror_markers: table.find(MIRROR_MARKERS)?.unwrap_or(default.mirror_markers),
            privacy,
            programs: table.strings(PROGRAMS, PROGRAM_LIMITS)?,
            user: table.find(USER)?,
        })
    }
}

impl ProviderSpec {
    fn encode(&self) -> Result<TableWriter, ProtocolError> {
        check_limit(SPEC_NAME.name, MAX_PROVIDER_NAME_BYTES, self.name.len())?;
        let mut table = TableWriter::new("ProviderSpec");
        table.put(SPEC_NAME, &self.name);
        table.put_some(SPEC_BUFFER_SIZE, self.buffer_size_megabytes_hint.as_ref());
        table.put_strings(SPEC_CATEGORIES, &self.categories, ListLimits::CATEGORIES)?;
        Ok(table)
    }

    /// A spec without a name is skipped.
    fn decode(table: &Table<'_>) -> Result<Option<ProviderSpec>, ProtocolError> {
        let Some(name) = table.string(SPEC_NAME, MAX_PROVIDER_NAME_BYTES)? else {
            return Ok(None);
        };
        Ok(Some(ProviderSpec {
            name,
            buffer_size_megabytes_hint: table.find(SPEC_BUFFER_SIZE)?,
            categories: table.strings(SPEC_CATEGORIES, ListLimits::CATEGORIES)?,
        }))
    }
}

impl ArchiveFile {
    pub(super) fn encode(&self) -> Result<TableWriter, ProtocolError> {
        check_limit(FILE_PATH.name, MAX_PATH_BYTES, self.path.len())?;
        let mut table = TableWriter::new("ArchiveFile");
        table.put(FILE_PATH, &self.path);
        table.put(FILE_DEVICE, &self.device);
        table.put(FILE_INODE, &self.inode);
        table.put_some(FILE_OWNER, self.owner.as_ref());
        Ok(table)
    }

    pub(super) fn decode(table: &Table<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            path: table.require_string(FILE_PATH, MAX_PATH_BYTES)?,
            device: table.require(FILE_DEVICE)?,
            inode: table.require(FILE_INODE)?,
            owner: table.find(FILE_OWNER)?,
        })
    }
}

fn event_costs(table: &Table<'_>) -> Result<Option<EventCosts>, ProtocolError> {
    let costs = (table.find(INSTANT_COST)?, table.find(DURATION_COST)?, table.find(COUNTER_COST)?);
    let (Some(instant_picoseconds), Some(duration_picoseconds), Some(counter_picoseconds)) = costs else {
        return Ok(None);
    };
    Ok(Some(EventCosts { instant_picoseconds, duration_picoseconds, counter_picoseconds }))
}

fn memory_dumps(table: &Table<'_>) -> Result<Option<MemoryDumps>, ProtocolError> {
    let Some(interval_milliseconds) = table.find(DUMP_INTERVAL)? else {
        return Ok(None);
    };
    if interval_milliseconds == 0 {
        return Err(ProtocolError::InvalidValue {
            field: DUMP_INTERVAL.name,
            expected: "1 or more",
            found: 0,
        });
    }
    let level = MemoryDumpLevel::from_value(table.require(DUMP_LEVEL)?)?;
    Ok(Some(MemoryDumps { interval_milliseconds, level }))
}

fn check_command_line(arguments: &[String]) -> Result<(), ProtocolError> {
    let bytes = arguments.iter().map(String::len).sum();
    check_limit("command line bytes", MAX_COMMAND_LINE_BYTES, bytes)
}
