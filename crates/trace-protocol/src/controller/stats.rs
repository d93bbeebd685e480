//! The report of a Stop about each provider.

use crate::buffering::BufferingMode;
use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_PROVIDER_NAME_BYTES, MAX_REASON_BYTES, cut};
use crate::table::{Field, Table, TableWriter};

const PROVIDER_STATS: Field = Field::new(1, "provider_stats");

const NAME: Field = Field::new(1, "provider name bytes");
const PID: Field = Field::new(2, "pid");
const MODE: Field = Field::new(3, "buffering_mode");
const WRAPPED_COUNT: Field = Field::new(4, "buffer_wrapped_count");
const RECORDS_DROPPED: Field = Field::new(5, "records_dropped");
const DURABLE_USED: Field = Field::new(6, "percentage_durable_buffer_used");
const NON_DURABLE_BYTES: Field = Field::new(7, "non_durable_bytes_written");
const EVENTS_ARCHIVED: Field = Field::new(100, "events_archived");
const BYTES_ARCHIVED: Field = Field::new(101, "bytes_archived");
const MALFORMED_RECORDS: Field = Field::new(102, "malformed_records");
const DISPOSITION: Field = Field::new(103, "disposition bytes");
const PROBLEM: Field = Field::new(104, "problem bytes");
const ID: Field = Field::new(105, "id");
const RECORDS_GENERATED: Field = Field::new(106, "records_generated");
const LOSSES: Field = Field::new(107, "losses");
const ROLLING_USED: Field = Field::new(108, "percentage_rolling_buffer_used");
const BUFFER_BYTES: Field = Field::new(109, "buffer_bytes");
const NEEDED_ROLLING: Field = Field::new(110, "needed_rolling_bytes");
const NEEDED_DURABLE: Field = Field::new(111, "needed_durable_bytes");
const NEEDED_RECORD: Field = Field::new(112, "needed_record_bytes");
const RECORDED: Field = Field::new(113, "recorded_ns");
const ENDED: Field = Field::new(114, "ended_ticks");
const OUT_OF_SPACE: Field = Field::new(115, "is_out_of_space");
const OPEN_SCOPES: Field = Field::new(116, "open scopes bytes");

/// More than the number of reasons.
const MAX_REASONS: usize = 256;

/// Answer to StopTracing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StopResult {
    /// One entry for each provider that took part since the last Start.
    pub provider_stats: Vec<ProviderStats>,
}

/// Statistics of one provider. Counts are absent when nothing was transferred.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProviderStats {
    /// The manager's number for it, as in the archive's provider records.
    pub id: u32,
    /// Name, at most 100 bytes.
    pub name: String,
    /// Process id.
    pub pid: u64,
    /// How its buffer was used.
    pub buffering_mode: Option<BufferingMode>,
    /// How often the rolling halves were switched.
    pub buffer_wrapped_count: Option<u32>,
    /// Records that found no room.
    pub records_dropped: Option<u64>,
    /// How full the durable region is, in percent.
    pub percentage_durable_buffer_used: Option<f32>,
    /// Bytes in the rolling region or regions.
    pub non_durable_bytes_written: Option<u64>,
    /// Events written to the archive.
    pub events_archived: Option<u64>,
    /// Bytes written to the archive.
    pub bytes_archived: Option<u64>,
    /// Records dropped because they were malformed.
    pub malformed_records: Option<u64>,
    /// Records that its threads wrote or tried to write, definitions not included.
    pub records_generated: Option<u64>,
    /// Missing records, by reason; includes those that a circular buffer has overwritten.
    pub losses: Vec<Lost>,
    /// The highest fill level of its rolling region, in percent.
    pub percentage_rolling_buffer_used: Option<f32>,
    /// Size of its buffer.
    pub buffer_bytes: Option<u64>,
    /// Bytes of slabs with which no record would have been refused: for a stream in each half, else in all
    /// rolling regions. Absent if no record was refused.
    pub needed_rolling_bytes: Option<u64>,
    /// Bytes of durable region with which all definitions would have fitted. Absent if they did.
    pub needed_durable_bytes: Option<u64>,
    /// Bytes of the largest record that the buffer was too small for; the largest number if it was too large
    /// for any buffer. Absent if there was none.
    pub needed_record_bytes: Option<u64>,
    /// Time from the making of the buffer to its reading, in nanoseconds.
    pub recorded_ns: Option<u64>,
    /// When its process ended, in ticks. Absent while it runs, and in the answer to a Stop.
    pub ended_ticks: Option<u64>,
    /// How its recording ended, in a few words: "stopped", "ended", "did not stop".
    pub disposition: String,
    /// Why its data is missing or incomplete; empty if it is neither. Cut at 1000 bytes.
    pub problem: String,
    /// The problem is that the file system with the buffers is full.
    pub is_out_of_space: bool,
    /// What its threads were in when it ended, in words, if it ended while it was recorded; cut at 1000
    /// bytes.
    pub open_scopes: String,
}

/// Records that are missing for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The reason's number, as in the archive's loss blobs.
    pub reason: u16,
    /// How many.
    pub records: u64,
}

impl StopResult {
    pub(super) fn encode(&self) -> Result<TableWriter, ProtocolError> {
        let stats = self.provider_stats.iter().map(ProviderStats::encode).collect::<Result<Vec<_>, _>>()?;
        let mut table = TableWriter::new("StopResult");
        table.put_tables(PROVIDER_STATS, stats);
        Ok(table)
    }

    pub(super) fn decode(table: &Table<'_>) -> Result<StopResult, ProtocolError> {
        let provider_stats =
            table.tables(PROVIDER_STATS)?.iter().map(ProviderStats::decode).collect::<Result<Vec<_>, _>>()?;
        Ok(StopResult { provider_stats })
    }
}

impl ProviderStats {
    fn encode(&self) -> Result<TableWriter, ProtocolError> {
        check_limit(NAME.name, MAX_PROVIDER_NAME_BYTES, self.name.len())?;
        check_limit(DISPOSITION.name, MAX_REASON_BYTES, self.disposition.len())?;
        let mode = self.buffering_mode.map(BufferingMode::value);
        let mut table = TableWriter::new("ProviderStats");
        table.put(NAME, &self.name);
        table.put(PID, &self.pid);
        table.put_some(MODE, mode.as_ref());
        table.put_some(WRAPPED_COUNT, self.buffer_wrapped_count.as_ref());
        table.put_some(RECORDS_DROPPED, self.records_dropped.as_ref());
        table.put_some(DURABLE_USED, self.percentage_durable_buffer_used.as_ref());
        table.put_some(NON_DURABLE_BYTES, self.non_durable_bytes_written.as_ref());
        table.put_some(EVENTS_ARCHIVED, self.events_archived.as_ref());
        table.put_some(BYTES_ARCHIVED, self.bytes_archived.as_ref());
        table.put_some(MALFORMED_RECORDS, self.malformed_records.as_ref());
        table.put(DISPOSITION, &self.disposition);
        table.put(PROBLEM, cut(&self.problem, MAX_REASON_BYTES));
        table.put(ID, &self.id);
        table.put_some(RECORDS_GENERATED, self.records_generated.as_ref());
        if !self.losses.is_empty() {
            check_limit(LOSSES.name, MAX_REASONS, self.losses.len())?;
            let losses: Vec<(u16, u64)> =
                self.losses.iter().map(|lost| (lost.reason, lost.records)).collect();
            table.put(LOSSES, &losses);
        }
        table.put_some(ROLLING_USED, self.percentage_rolling_buffer_used.as_ref());
        table.put_some(BUFFER_BYTES, self.buffer_bytes.as_ref());
        table.put_some(NEEDED_ROLLING, self.needed_rolling_bytes.as_ref());
        table.put_some(NEEDED_DURABLE, self.needed_durable_bytes.as_ref());
        table.put_some(NEEDED_RECORD, self.needed_record_bytes.as_ref());
        table.put_some(RECORDED, self.recorded_ns.as_ref());
        table.put_some(ENDED, self.ended_ticks.as_ref());
        table.put_some(OUT_OF_SPACE, self.is_out_of_space.then_some(&true));
        if !self.open_scopes.is_empty() {
            table.put(OPEN_SCOPES, cut(&self.open_scopes, MAX_REASON_BYTES));
        }
        Ok(table)
    }

    fn decode(table: &Table<'_>) -> Result<ProviderStats, ProtocolError> {
        let buffering_mode = match table.find(MODE)? {
            Some(value) => Some(BufferingMode::from_value(value)?),
            None => None,
        };
        let losses: Vec<(u16, u64)> = table.find(LOSSES)?.unwrap_or_default();
        check_limit(LOSSES.name, MAX_REASONS, losses.len())?;
        Ok(ProviderStats {
            losses: losses.into_iter().map(|(reason, records)| Lost { reason, records }).collect(),
            percentage_rolling_buffer_used: table.find(ROLLING_USED)?,
            buffer_bytes: table.find(BUFFER_BYTES)?,
            needed_rolling_bytes: table.find(NEEDED_ROLLING)?,
            needed_durable_bytes: table.find(NEEDED_DURABLE)?,
            needed_record_bytes: table.find(NEEDED_RECORD)?,
            recorded_ns: table.find(RECORDED)?,
            ended_ticks: table.find(ENDED)?,
            is_out_of_space: table.find(OUT_OF_SPACE)?.unwrap_or(false),
            open_scopes: table.string(OPEN_SCOPES, MAX_REASON_BYTES)?.unwrap_or_default(),
            id: table.find(ID)?.unwrap_or(0),
            name: table.require_string(NAME, MAX_PROVIDER_NAME_BYTES)?,
            pid: table.require(PID)?,
            buffering_mode,
            buffer_wrapped_count: table.find(WRAPPED_COUNT)?,
            records_dropped: table.find(RECORDS_DROPPED)?,
            percentage_durable_buffer_used: table.find(DURABLE_USED)?,
            non_durable_bytes_written: table.find(NON_DURABLE_BYTES)?,
            events_archived: table.find(EVENTS_ARCHIVED)?,
            bytes_archived: table.find(BYTES_ARCHIVED)?,
            malformed_records: table.find(MALFORMED_RECORDS)?,
            records_generated: table.find(RECORDS_GENERATED)?,
            disposition: table.string(DISPOSITION, MAX_REASON_BYTES)?.unwrap_or_default(),
            problem: table.string(PROBLEM, MAX_REASON_BYTES)?.unwrap_or_default(),
        })
    }
}
