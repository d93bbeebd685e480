//! Why a manager does not begin a recording: a sentence for people, and what a program can act on.

use crate::error::ProtocolError;
use crate::limits::{MAX_PROVIDER_NAME_BYTES, MAX_REASON_BYTES, cut};
use crate::provider::{REASON, refusal};
use crate::table::{Field, Table, TableWriter};
use std::fmt;

const RECORDER: Field = Field::new(2, "recorder");
const LIMIT: Field = Field::new(3, "limit");

const PID: Field = Field::new(1, "pid");
const STARTED: Field = Field::new(2, "started");
const UID: Field = Field::new(3, "uid");
const IS_TASK: Field = Field::new(4, "is_task");
const PROGRAM: Field = Field::new(5, "program name bytes");

/// Why a manager refuses a client. Managers of earlier releases send the sentence alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// What was expected and what was found, in one sentence; cut at 1000 bytes.
    pub reason: String,
    /// The recording that is in the way.
    pub recorder: Option<Recorder>,
    /// The most that there may be of what was asked for, if so many are there.
    pub limit: Option<u64>,
}

/// Who has a recording, as far as the asking user may know that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    /// The process that has asked for it.
    pub pid: Option<u64>,
    /// When that process was started, in clock ticks since the machine was, as in `/proc/PID/stat`: another
    /// one may have its number by now.
    pub started: Option<u64>,
    /// The user.
    pub uid: u32,
    /// The manager holds the recording itself, so that it is no matter whether that process is alive.
    pub is_task: bool,
    /// A program that both recordings ask for by name; at most 100 bytes.
    pub program: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// With a sentence alone.
impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, ..Self::default() }
    }
}

impl Refusal {
    pub(super) fn encode(&self) -> Result<TableWriter, ProtocolError> {
        let mut table = refusal(&self.reason)?;
        self.put_details(&mut table, [RECORDER, LIMIT]);
        Ok(table)
    }

    /// Adds what stands beside the sentence.
    pub(super) fn put_details(&self, table: &mut TableWriter, [recorder, limit]: [Field; 2]) {
        if let Some(found) = &self.recorder {
            table.put_table(recorder, found.encode());
        }
        table.put_some(limit, self.limit.as_ref());
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self, ProtocolError> {
        let table = Table::decode("Refused", body)?;
        let reason = table.require_string(REASON, MAX_REASON_BYTES)?;
        Self::with_details(reason, &table, [RECORDER, LIMIT])
    }

    /// A sentence, with what stands beside it.
    pub(super) fn with_details(
        reason: String,
        table: &Table<'_>,
        [recorder, limit]: [Field; 2],
    ) -> Result<Self, ProtocolError> {
        let recorder = table.find_table(recorder)?.map(|found| Recorder::decode(&found)).transpose()?;
        Ok(Self { reason, recorder, limit: table.find(limit)? })
    }
}

impl Recorder {
    fn encode(&self) -> TableWriter {
        let mut table = TableWriter::new("Recorder");
        table.put_some(PID, self.pid.as_ref());
        table.put_some(STARTED, self.started.as_ref());
        table.put(UID, &self.uid);
        table.put(IS_TASK, &self.is_task);
        if let Some(program) = &self.program {
            table.put(PROGRAM, cut(program, MAX_PROVIDER_NAME_BYTES));
        }
        table
    }

    fn decode(table: &Table<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            pid: table.find(PID)?,
            started: table.find(STARTED)?,
            uid: table.require(UID)?,
            is_task: table.find(IS_TASK)?.unwrap_or(false),
            program: table.string(PROGRAM, MAX_PROVIDER_NAME_BYTES)?,
        })
    }
}
