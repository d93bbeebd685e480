//! Controller: a client sets up a session, and starts and stops it.
//!
//! Two channels: the *provisioner*, on which any process that may connect queries providers and sets up a
//! session; and the *session*, whose other end is a handle of `InitializeTracing`. Dropping the session
//! channel ends the session; its results are still written to the output.

pub mod alert;
pub mod config;
pub mod disposition;
pub mod file_count;
pub mod observer;
pub mod progress;
pub mod refusal;
pub mod session;
pub mod stats;
pub mod task;

pub use alert::Alert;
pub use config::{ArchiveFile, EventCosts, ProviderSpec, TraceConfig};
pub use disposition::ProviderDisposition;
pub use file_count::FileCount;
pub use observer::{Counts, FrameKind, ObserveError, ObserveOptions, ObservedProvider, Observing};
pub use progress::ProviderProgress;
pub use refusal::{Recorder, Refusal};
pub use session::{
    FlushError, SessionRequest, SessionResponse, SessionState, StartError, StartOptions, StopError,
    StopOptions, Untraced,
};
pub use stats::{Lost, ProviderStats, StopResult};
pub use task::{
    TaskEnd, TaskError, TaskFailure, TaskOptions, TaskRequest, TaskResponse, TaskStatus, Trigger,
    TriggerAction, Triggered,
};

use crate::categories::KnownCategories;
use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_LISTED_PROVIDERS, MAX_PROVIDER_NAME_BYTES, MAX_PROVIDERS, MAX_RECORDING_BYTES, cut};
use crate::memory::{MemoryDump, MemoryDumpLevel};
use crate::message::{Encoded, Header, Message, Method, Txid, decode_header, decode_header_any_version};
use crate::provider::{decode_refusal, refusal};
use crate::strict_enum::strict_enum;
use crate::table::{Field, Table, TableWriter};

const INITIALIZE_TRACING: Method = Method::one_way("InitializeTracing", 0x0301);
const GET_PROVIDERS: Method = Method::two_way("GetProviders", 0x0302);
const GET_KNOWN_CATEGORIES: Method = Method::two_way("GetKnownCategories", 0x0303);
const TAKE_SNAPSHOT: Method = Method::two_way("TakeSnapshot", 0x0305);
const DUMP_MEMORY: Method = Method::two_way("DumpMemory", 0x0306);
const OBSERVE: Method = Method::two_way("Observe", 0x0307);
const REFUSED: Method = Method::one_way("Refused", 0x0304);

const CONFIG: Field = Field::new(1, "config");
const SNAPSHOT_ERROR: Field = Field::new(1, "error");
const SNAPSHOT_RESULT: Field = Field::new(2, "result");
const DUMP_LEVEL: Field = Field::new(1, "level");
const DUMP_ID: Field = Field::new(1, "dump");
const DUMP_PROVIDERS: Field = Field::new(2, "providers");
const DUMP_WRITTEN: Field = Field::new(3, "written");
const PROVIDERS: Field = Field::new(1, "providers");
const FURTHER_PROVIDERS: Field = Field::new(2, "further providers");
const PROVIDERS_LEFT_OUT: Field = Field::new(3, "providers left out");
const PROVIDER_ID: Field = Field::new(1, "id");
const PROVIDER_PID: Field = Field::new(2, "pid");
const PROVIDER_NAME: Field = Field::new(3, "provider name bytes");
const PROVIDER_RECORDED_BY: Field = Field::new(4, "recorded by");
const PROVIDER_RECORDING: Field = Field::new(5, "recording bytes");
const PROVIDER_UID: Field = Field::new(6, "uid");
const SNAPSHOT_PROGRAM: Field = Field::new(1, "program name bytes");

/// Client → manager, on the provisioner channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvisionerRequest<H> {
    /// Sets up a session; there is no answer. Handles: session channel, output socket.
    ///
    /// A refusal arrives on the session channel as [`SessionResponse::Refused`]; then both handles are
    /// closed.
    InitializeTracing {
        /// The manager's end of the session channel.
        session: H,
        /// What to trace and how.
        config: TraceConfig,
        /// Where the archive goes.
        output: H,
    },
    /// Which providers are registered? Answered by [`ProvisionerResponse::Providers`].
    GetProviders,
    /// Which categories are known? Answered by [`ProvisionerResponse::KnownCategories`].
    GetKnownCategories,
    /// Copies the data in the buffers of a running session, without stopping any program; answered by
    /// [`ProvisionerResponse::TakeSnapshot`] when the output has accepted all of it. Handle: output socket.
    TakeSnapshot {
        /// A program that takes part in the session, by its name or its process; none means the only
        /// session.
        program: Option<String>,
        /// Where the archive goes.
        output: H,
    },
    /// Has the programs of the running sessions write down what they use memory for; answered by
    /// [`ProvisionerResponse::DumpMemory`] when the requests were sent.
    DumpMemory(MemoryDumpLevel),
    /// Sends what a running session records into a socket too, as far as it is read; answered by
    /// [`ProvisionerResponse::Observe`]. Handle: output socket.
    Observe {
        /// What is wanted.
        options: ObserveOptions,
        /// Where the frames go.
        output: H,
    },
    /// About a recording that the manager holds itself; answered by [`ProvisionerResponse::Task`].
    Task(TaskRequest<H>),
}

/// Manager → client, on the provisioner channel.
#[derive(Debug, Clone, PartialEq)]
pub enum ProvisionerResponse {
    /// Registered providers in order of their ids, at most [`MAX_LISTED_PROVIDERS`].
    Providers {
        /// The listed ones.
        listed: Vec<ProviderInfo>,
        /// How many more are registered.
        left_out: u32,
    },
    /// Known categories of all providers that the client may see.
    KnownCategories(KnownCategories),
    /// Answer to [`ProvisionerRequest::TakeSnapshot`]: the findings in each buffer.
    TakeSnapshot(Result<StopResult, SnapshotError>),
    /// Answer to [`ProvisionerRequest::DumpMemory`]; none if nothing is being recorded.
    DumpMemory(Option<MemoryDump>),
    /// Answer to [`ProvisionerRequest::Observe`].
    Observe(Observing),
    /// Answer to [`ProvisionerRequest::Task`].
    Task(TaskResponse),
    /// The client cannot be served (its version, for example), in one sentence; the channel closes next. Has
    /// no transaction id, and is decoded whatever its version.
    Refused {
        /// What was expected and what was found; cut at 1000 bytes.
        reason: String,
    },
}

strict_enum! {
    /// Why TakeSnapshot failed.
    SnapshotError {
        /// There is no session, or it was not started yet.
        NotStarted = 1,
        /// Another snapshot is being taken.
        Busy = 2,
        /// The output has lost its reader.
        Aborted = 3,
        /// There are several sessions, and the request does not say which one.
        Several = 4,
    }
}

/// A registered provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderInfo {
    /// The manager's number for it, as in the archive's provider records. Never used again.
    pub id: u32,
    /// Process id.
    pub pid: u64,
    /// At most 100 bytes.
    pub name: String,
    /// The process of the client whose session it takes part in, if the asking user may see that.
    pub recorded_by: Option<u64>,
    /// That session, for people; at most 200 bytes.
    pub recording: Option<String>,
    /// The user of its process, as the kernel has reported it to the manager; none of managers of earlier
    /// releases.
    pub uid: Option<u32>,
}

impl<H> Message<H> for ProvisionerRequest<H> {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        match self {
            ProvisionerRequest::InitializeTracing { session, config, output } => {
                let mut table = TableWriter::new(INITIALIZE_TRACING.name);
                table.put_table(CONFIG, config.encode()?);
                INITIALIZE_TRACING.encode(txid, table.finish(), vec![session, output])
            }
            ProvisionerRequest::GetProviders => empty(GET_PROVIDERS, txid),
            ProvisionerRequest::GetKnownCategories => empty(GET_KNOWN_CATEGORIES, txid),
            ProvisionerRequest::TakeSnapshot { program, output } => {
                let mut table = TableWriter::new(TAKE_SNAPSHOT.name);
                put_program(&mut table, SNAPSHOT_PROGRAM, program.as_ref())?;
                TAKE_SNAPSHOT.encode(txid, table.finish(), vec![output])
            }
            ProvisionerRequest::DumpMemory(level) => {
                let mut table = TableWriter::new(DUMP_MEMORY.name);
                table.put(DUMP_LEVEL, &level.value());
                DUMP_MEMORY.encode(txid, table.finish(), Vec::new())
            }
            ProvisionerRequest::Observe { options, output } => {
                OBSERVE.encode(txid, options.encode()?.finish(), vec![output])
            }
            ProvisionerRequest::Task(request) => request.encode(txid),
        }
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        if is_about_tasks(bytes)? {
            let (txid, request) = TaskRequest::decode(bytes, handles)?;
            return Ok((txid, ProvisionerRequest::Task(request)));
        }
        let methods =
            [INITIALIZE_TRACING, GET_PROVIDERS, GET_KNOWN_CATEGORIES, TAKE_SNAPSHOT, DUMP_MEMORY, OBSERVE];
        let (txid, method, body) = decode_header(bytes, "provisioner request", &methods)?;
        let table = Table::decode(method.name, body)?;
        if method.ordinal == INITIALIZE_TRACING.ordinal {
            let [session, output] = method.take_handles(handles)?;
            let config = TraceConfig::decode(&table.table(CONFIG)?)?;
            let request = ProvisionerRequest::InitializeTracing { session, config, output };
            return Ok((txid, request));
        }
        if method.ordinal == TAKE_SNAPSHOT.ordinal {
            let [output] = method.take_handles(handles)?;
            let program = table.string(SNAPSHOT_PROGRAM, MAX_PROVIDER_NAME_BYTES)?;
            return Ok((txid, ProvisionerRequest::TakeSnapshot { program, output }));
        }
        if method.ordinal == OBSERVE.ordinal {
            let [output] = method.take_handles(handles)?;
            let options = ObserveOptions::decode(&table)?;
            return Ok((txid, ProvisionerRequest::Observe { options, output }));
        }
        let [] = method.take_handles(handles)?;
        let request = if method.ordinal == GET_PROVIDERS.ordinal {
            ProvisionerRequest::GetProviders
        } else if method.ordinal == DUMP_MEMORY.ordinal {
            let level = table.require(DUMP_LEVEL)?;
            ProvisionerRequest::DumpMemory(MemoryDumpLevel::from_value(level)?)
        } else {
            ProvisionerRequest::GetKnownCategories
        };
        Ok((txid, request))
    }
}

impl<H> Message<H> for ProvisionerResponse {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        let (method, table) = match self {
            ProvisionerResponse::Providers { listed, left_out } => {
                check_limit(FURTHER_PROVIDERS.name, MAX_LISTED_PROVIDERS, listed.len())?;
                let infos = listed.iter().map(ProviderInfo::encode).collect::<Result<Vec<_>, _>>()?;
                let mut table = TableWriter::new(GET_PROVIDERS.name);
                put_in_two(&mut table, PROVIDERS, FURTHER_PROVIDERS, infos);
                table.put_some(PROVIDERS_LEFT_OUT, Some(&left_out).filter(|count| **count > 0));
                (GET_PROVIDERS, table)
            }
            ProvisionerResponse::KnownCategories(categories) => {
                let mut table = TableWriter::new(GET_KNOWN_CATEGORIES.name);
                categories.put(&mut table)?;
                (GET_KNOWN_CATEGORIES, table)
            }
            ProvisionerResponse::TakeSnapshot(result) => {
                let mut table = TableWriter::new(TAKE_SNAPSHOT.name);
                match result {
                    Ok(result) => table.put_table(SNAPSHOT_RESULT, result.encode()?),
                    Err(error) => table.put(SNAPSHOT_ERROR, &error.value()),
                }
                (TAKE_SNAPSHOT, table)
            }
            ProvisionerResponse::DumpMemory(dump) => {
                let mut table = TableWriter::new(DUMP_MEMORY.name);
                if let Some(dump) = dump {
                    table.put(DUMP_ID, &dump.id);
                    table.put(DUMP_PROVIDERS, &dump.providers);
                    table.put_some(DUMP_WRITTEN, dump.written.as_ref());
                }
                (DUMP_MEMORY, table)
            }
            ProvisionerResponse::Observe(observing) => (OBSERVE, observing.encode()?),
            ProvisionerResponse::Task(response) => return response.encode(txid),
            ProvisionerResponse::Refused { reason } => (REFUSED, refusal(&reason)?),
        };
        method.encode(txid, table.finish(), Vec::new())
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        const PROTOCOL: &str = "provisioner response";
        let (header, _) = Header::decode(bytes)?;
        if header.ordinal == REFUSED.ordinal {
            let (txid, method, body) = decode_header_any_version(bytes, PROTOCOL, &[REFUSED])?;
            let [] = method.take_handles(handles)?;
            let reason = decode_refusal(body)?;
            return Ok((txid, ProvisionerResponse::Refused { reason }));
        }
        if is_about_tasks(bytes)? {
            let (txid, response) = TaskResponse::decode(bytes, handles)?;
            return Ok((txid, ProvisionerResponse::Task(response)));
        }
        let (txid, method, body) = decode_header(
            bytes,
            PROTOCOL,
            &[GET_PROVIDERS, GET_KNOWN_CATEGORIES, TAKE_SNAPSHOT, DUMP_MEMORY, OBSERVE],
        )?;
        let [] = method.take_handles(handles)?;
        let table = Table::decode(method.name, body)?;
        let response = if method.ordinal == GET_PROVIDERS.ordinal {
            let infos = tables_in_two(&table, PROVIDERS, FURTHER_PROVIDERS, MAX_LISTED_PROVIDERS)?;
            let listed = infos.iter().map(ProviderInfo::decode).collect::<Result<Vec<_>, _>>()?;
            let left_out = table.find(PROVIDERS_LEFT_OUT)?.unwrap_or(0);
            ProvisionerResponse::Providers { listed, left_out }
        } else if method.ordinal == GET_KNOWN_CATEGORIES.ordinal {
            ProvisionerResponse::KnownCategories(KnownCategories::find(&table)?)
        } else if method.ordinal == DUMP_MEMORY.ordinal {
            ProvisionerResponse::DumpMemory(match table.find(DUMP_ID)? {
                Some(id) => Some(MemoryDump {
                    id,
                    providers: table.require(DUMP_PROVIDERS)?,
                    written: table.find(DUMP_WRITTEN)?,
                }),
                None => None,
            })
        } else if method.ordinal == OBSERVE.ordinal {
            ProvisionerResponse::Observe(Observing::decode(&table)?)
        } else {
            ProvisionerResponse::TakeSnapshot(match table.find(SNAPSHOT_ERROR)? {
                Some(error) => Err(SnapshotError::from_value(error)?),
                None => Ok(StopResult::decode(&table.table(SNAPSHOT_RESULT)?)?),
            })
        };
        Ok((txid, response))
    }
}

impl ProviderInfo {
    fn encode(&self) -> Result<TableWriter, ProtocolError> {
        check_limit(PROVIDER_NAME.name, MAX_PROVIDER_NAME_BYTES, self.name.len())?;
        let mut table = TableWriter::new("ProviderInfo");
        table.put(PROVIDER_ID, &self.id);
        table.put(PROVIDER_PID, &self.pid);
        table.put(PROVIDER_NAME, &self.name);
        table.put_some(PROVIDER_RECORDED_BY, self.recorded_by.as_ref());
        let recording = self.recording.as_ref().map(|text| cut(text, MAX_RECORDING_BYTES).to_owned());
        table.put_some(PROVIDER_RECORDING, recording.as_ref());
        table.put_some(PROVIDER_UID, self.uid.as_ref());
        Ok(table)
    }

    fn decode(table: &Table<'_>) -> Result<ProviderInfo, ProtocolError> {
        Ok(ProviderInfo {
            id: table.require(PROVIDER_ID)?,
            pid: table.require(PROVIDER_PID)?,
            name: table.require_string(PROVIDER_NAME, MAX_PROVIDER_NAME_BYTES)?,
            recorded_by: table.find(PROVIDER_RECORDED_BY)?,
            recording: table.string(PROVIDER_RECORDING, MAX_RECORDING_BYTES)?,
            uid: table.find(PROVIDER_UID)?,
        })
    }
}

/// Adds the name of the program whose session is meant.
fn put_program(table: &mut TableWriter, field: Field, program: Option<&String>) -> Result<(), ProtocolError> {
    check_limit(field.name, MAX_PROVIDER_NAME_BYTES, program.map_or(0, String::len))?;
    table.put_some(field, program);
    Ok(())
}

fn is_about_tasks(bytes: &[u8]) -> Result<bool, ProtocolError> {
    let (header, _) = Header::decode(bytes)?;
    Ok(task::METHODS.iter().any(|method| method.ordinal == header.ordinal))
}

/// Adds a list in two fields: earlier releases read the first [`MAX_PROVIDERS`] entries, and skip the field
/// with the rest.
fn put_in_two(table: &mut TableWriter, first: Field, further: Field, mut entries: Vec<TableWriter>) {
    let rest = entries.split_off(entries.len().min(MAX_PROVIDERS));
    table.put_tables(first, entries);
    table.put_tables(further, rest);
}

/// The list that [`put_in_two`] has added, of at most `limit` entries.
fn tables_in_two<'a>(
    table: &Table<'a>,
    first: Field,
    further: Field,
    limit: usize,
) -> Result<Vec<Table<'a>>, ProtocolError> {
    let mut entries = table.tables(first)?;
    check_limit(first.name, MAX_PROVIDERS, entries.len())?;
    entries.extend(table.tables(further)?);
    check_limit(further.name, limit, entries.len())?;
    Ok(entries)
}

/// A message without fields.
fn empty<H>(method: Method, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
    method.encode(txid, TableWriter::new(method.name).finish(), Vec::new())
}
