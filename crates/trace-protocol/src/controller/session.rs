//! The session channel: start, stop, alerts, changes of state.

use super::alert::Alert;
use super::progress::{self, ProviderProgress};
use super::refusal::Refusal;
use super::stats::StopResult;
use crate::buffering::BufferDisposition;
use crate::categories::KnownCategories;
use crate::error::{ProtocolError, check_limit};
use crate::limits::{MAX_PROVIDER_NAME_BYTES, MAX_REASON_BYTES, cut};
use crate::message::{Encoded, Header, Message, Method, Txid, decode_header, decode_header_any_version};
use crate::strict_enum::strict_enum;
use crate::table::{Field, ListLimits, Table, TableWriter};

const START_TRACING: Method = Method::two_way("StartTracing", 0x0401);
const STOP_TRACING: Method = Method::two_way("StopTracing", 0x0402);
const WATCH_ALERT: Method = Method::two_way("WatchAlert", 0x0403);
const FLUSH_BUFFERS: Method = Method::two_way("FlushBuffers", 0x0404);
const GET_PROGRESS: Method = Method::two_way("GetProgress", 0x0405);
const ON_SESSION_STATE_CHANGE: Method = Method::one_way("OnSessionStateChange", 0x0480);
const ON_WAITING: Method = Method::one_way("OnWaiting", 0x0482);
const ON_UNTRACED: Method = Method::one_way("OnUntraced", 0x0483);
const ON_KNOWN_CATEGORIES: Method = Method::one_way("OnKnownCategories", 0x0484);
const REFUSED: Method = Method::one_way("Refused", 0x0481);

const DISPOSITION: Field = Field::new(1, "buffer_disposition");
const ADDITIONAL_CATEGORIES: Field = Field::new(2, "additional_categories");
const WRITE_RESULTS: Field = Field::new(1, "write_results");

const ERROR: Field = Field::new(1, "error");
const RESULT: Field = Field::new(2, "result");
const NAMES: Field = Field::new(1, "names");
const STATE: Field = Field::new(1, "state");
const UNTRACED_NAME: Field = Field::new(1, "provider name bytes");
const UNTRACED_PID: Field = Field::new(2, "pid");
const UNTRACED_REASON: Field = Field::new(3, "reason bytes");

/// Client → manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRequest {
    /// Start every provider; answered by [`SessionResponse::StartTracing`] when all have started.
    StartTracing(StartOptions),
    /// Stop every provider; answered by [`SessionResponse::StopTracing`] when all data was handed over.
    StopTracing(StopOptions),
    /// Answered by [`SessionResponse::WatchAlert`] when a provider raises an alert.
    WatchAlert,
    /// Have every provider hand over what it has recorded so far, while streaming; answered by
    /// [`SessionResponse::FlushBuffers`] at once.
    FlushBuffers,
    /// Queries the progress of the recording; answered by [`SessionResponse::Progress`] at once.
    GetProgress,
}

/// How to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOptions {
    /// How the buffers' previous content is treated. Default retain.
    pub buffer_disposition: BufferDisposition,
    /// Categories added to the session's for this run, at most 5000 of 100 bytes.
    pub additional_categories: Vec<String>,
}

impl Default for StartOptions {
    fn default() -> StartOptions {
        StartOptions { buffer_disposition: BufferDisposition::Retain, additional_categories: Vec::new() }
    }
}

/// How to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopOptions {
    /// Whether the data is written to the output now. Default false.
    pub write_results: bool,
}

/// Manager → client.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionResponse {
    /// Answer to [`SessionRequest::StartTracing`].
    StartTracing(Result<(), StartError>),
    /// Answer to [`SessionRequest::StopTracing`].
    StopTracing(Result<StopResult, StopError>),
    /// Answer to [`SessionRequest::WatchAlert`].
    WatchAlert(Alert),
    /// Answer to [`SessionRequest::FlushBuffers`]: the providers were asked.
    FlushBuffers(Result<(), FlushError>),
    /// Answer to [`SessionRequest::GetProgress`]: the providers that take part, at most 100.
    Progress(Vec<ProviderProgress>),
    /// Event: the session is in another state. Clients tolerate its absence.
    OnSessionStateChange(SessionState),
    /// Event: a Start or a Stop waits for these providers, for display: names with their processes. At most
    /// 100.
    OnWaiting(Vec<String>),
    /// Event: a provider cannot be recorded. Only for clients whose configuration asks for it.
    OnUntraced(Untraced),
    /// Event: categories of providers that take part, each once. Only for clients whose configuration asks
    /// for it.
    OnKnownCategories(KnownCategories),
    /// Event: the session was refused or ends for a reason the client should show; the channel closes next.
    /// Decoded whatever its version.
    Refused(Refusal),
}

/// A provider that cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untraced {
    /// Its name, at most 100 bytes.
    pub name: String,
    /// Process id.
    pub pid: u64,
    /// Why, in one sentence; cut at 1000 bytes.
    pub reason: String,
}

strict_enum! {
    /// The state of a session.
    SessionState {
        /// Set up, no provider asked yet.
        Ready = 1,
        /// Providers have their buffers.
        Initialized = 2,
        /// Waiting for providers to start.
        Starting = 3,
        /// Recording.
        Started = 4,
        /// Waiting for providers to stop and for their data.
        Stopping = 5,
        /// Not recording; may be started again.
        Stopped = 6,
        /// Ending.
        Terminating = 7,
    }
}

strict_enum! {
    /// Why StartTracing failed.
    StartError {
        /// There is no session.
        NotInitialized = 1,
        /// The session is started, or starting.
        AlreadyStarted = 2,
        /// The session is stopping.
        Stopping = 3,
        /// The session is terminating.
        Terminating = 4,
    }
}

strict_enum! {
    /// Why StopTracing failed.
    StopError {
        /// There is no session.
        NotInitialized = 1,
        /// The session is not started.
        NotStarted = 2,
        /// The session ended before its data was written.
        Aborted = 3,
    }
}

strict_enum! {
    /// Why FlushBuffers failed.
    FlushError {
        /// There is no session.
        NotInitialized = 1,
        /// The session is not started yet.
        NotStarted = 2,
        /// The session stops, or has stopped.
        Aborted = 3,
    }
}

impl<H> Message<H> for SessionRequest {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        let (method, table) = match self {
            SessionRequest::StartTracing(options) => {
                let mut table = TableWriter::new(START_TRACING.name);
                table.put(DISPOSITION, &options.buffer_disposition.value());
                table.put_strings(
                    ADDITIONAL_CATEGORIES,
                    &options.additional_categories,
                    ListLimits::CATEGORIES,
                )?;
                (START_TRACING, table)
            }
            SessionRequest::StopTracing(options) => {
                let mut table = TableWriter::new(STOP_TRACING.name);
                table.put(WRITE_RESULTS, &options.write_results);
                (STOP_TRACING, table)
            }
            SessionRequest::WatchAlert => (WATCH_ALERT, TableWriter::new(WATCH_ALERT.name)),
            SessionRequest::FlushBuffers => (FLUSH_BUFFERS, TableWriter::new(FLUSH_BUFFERS.name)),
            SessionRequest::GetProgress => (GET_PROGRESS, TableWriter::new(GET_PROGRESS.name)),
        };
        method.encode(txid, table.finish(), Vec::new())
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        let methods = [START_TRACING, STOP_TRACING, WATCH_ALERT, FLUSH_BUFFERS, GET_PROGRESS];
        let (txid, method, body) = decode_header(bytes, "session request", &methods)?;
        let [] = method.take_handles(handles)?;
        let table = Table::decode(method.name, body)?;
        let request = if method.ordinal == START_TRACING.ordinal {
            let buffer_disposition = match table.find(DISPOSITION)? {
                Some(value) => BufferDisposition::from_value(value)?,
                None => StartOptions::default().buffer_disposition,
            };
            SessionRequest::StartTracing(StartOptions {
                buffer_disposition,
                additional_categories: table.strings(ADDITIONAL_CATEGORIES, ListLimits::CATEGORIES)?,
            })
        } else if method.ordinal == STOP_TRACING.ordinal {
            SessionRequest::StopTracing(StopOptions {
                write_results: table.find(WRITE_RESULTS)?.unwrap_or(false),
            })
        } else if method.ordinal == WATCH_ALERT.ordinal {
            SessionRequest::WatchAlert
        } else if method.ordinal == FLUSH_BUFFERS.ordinal {
            SessionRequest::FlushBuffers
        } else {
            SessionRequest::GetProgress
        };
        Ok((txid, request))
    }
}

impl<H> Message<H> for SessionResponse {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        let (method, table) = match self {
            SessionResponse::StartTracing(result) => {
                let mut table = TableWriter::new(START_TRACING.name);
                let error = result.err().map(StartError::value);
                table.put_some(ERROR, error.as_ref());
                (START_TRACING, table)
            }
            SessionResponse::StopTracing(result) => {
                let mut table = TableWriter::new(STOP_TRACING.name);
                match result {
                    Ok(result) => table.put_table(RESULT, result.encode()?),
                    Err(error) => table.put(ERROR, &error.value()),
                }
                (STOP_TRACING, table)
            }
            SessionResponse::WatchAlert(alert) => {
                let mut table = TableWriter::new(WATCH_ALERT.name);
                alert.put(&mut table)?;
                (WATCH_ALERT, table)
            }
            SessionResponse::FlushBuffers(result) => {
                let mut table = TableWriter::new(FLUSH_BUFFERS.name);
                let error = result.err().map(FlushError::value);
                table.put_some(ERROR, error.as_ref());
                (FLUSH_BUFFERS, table)
            }
            SessionResponse::Progress(providers) => {
                let mut table = TableWriter::new(GET_PROGRESS.name);
                progress::put(&mut table, &providers)?;
                (GET_PROGRESS, table)
            }
            SessionResponse::OnSessionStateChange(state) => {
                let mut table = TableWriter::new(ON_SESSION_STATE_CHANGE.name);
                table.put(STATE, &state.value());
                (ON_SESSION_STATE_CHANGE, table)
            }
            SessionResponse::OnWaiting(names) => {
                let mut table = TableWriter::new(ON_WAITING.name);
                table.put_strings(NAMES, &names, ListLimits::WAITED_FOR)?;
                (ON_WAITING, table)
            }
            SessionResponse::OnUntraced(Untraced { name, pid, reason }) => {
                check_limit(UNTRACED_NAME.name, MAX_PROVIDER_NAME_BYTES, name.len())?;
                let mut table = TableWriter::new(ON_UNTRACED.name);
                table.put(UNTRACED_NAME, &name);
                table.put(UNTRACED_PID, &pid);
                table.put(UNTRACED_REASON, cut(&reason, MAX_REASON_BYTES));
                (ON_UNTRACED, table)
            }
            SessionResponse::OnKnownCategories(categories) => {
                let mut table = TableWriter::new(ON_KNOWN_CATEGORIES.name);
                categories.put(&mut table)?;
                (ON_KNOWN_CATEGORIES, table)
            }
            SessionResponse::Refused(refusal) => (REFUSED, refusal.encode()?),
        };
        method.encode(txid, table.finish(), Vec::new())
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        const PROTOCOL: &str = "session response";
        let (header, _) = Header::decode(bytes)?;
        if header.ordinal == REFUSED.ordinal {
            let (txid, method, body) = decode_header_any_version(bytes, PROTOCOL, &[REFUSED])?;
            let [] = method.take_handles(handles)?;
            return Ok((txid, SessionResponse::Refused(Refusal::decode(body)?)));
        }
        let methods = [
            START_TRACING,
            STOP_TRACING,
            WATCH_ALERT,
            FLUSH_BUFFERS,
            GET_PROGRESS,
            ON_SESSION_STATE_CHANGE,
            ON_WAITING,
            ON_UNTRACED,
            ON_KNOWN_CATEGORIES,
        ];
        let (txid, method, body) = decode_header(bytes, PROTOCOL, &methods)?;
        let [] = method.take_handles(handles)?;
        let table = Table::decode(method.name, body)?;
        let response = if method.ordinal == START_TRACING.ordinal {
            SessionResponse::StartTracing(match table.find(ERROR)? {
                Some(error) => Err(StartError::from_value(error)?),
                None => Ok(()),
            })
        } else if method.ordinal == STOP_TRACING.ordinal {
            SessionResponse::StopTracing(match table.find(ERROR)? {
                Some(error) => Err(StopError::from_value(error)?),
                None => Ok(StopResult::decode(&table.table(RESULT)?)?),
            })
        } else if method.ordinal == WATCH_ALERT.ordinal {
            SessionResponse::WatchAlert(Alert::find(&table)?)
        } else if method.ordinal == FLUSH_BUFFERS.ordinal {
            SessionResponse::FlushBuffers(match table.find(ERROR)? {
                Some(error) => Err(FlushError::from_value(error)?),
                None => Ok(()),
            })
        } else if method.ordinal == GET_PROGRESS.ordinal {
            SessionResponse::Progress(progress::find(&table)?)
        } else if method.ordinal == ON_WAITING.ordinal {
            SessionResponse::OnWaiting(table.strings(NAMES, ListLimits::WAITED_FOR)?)
        } else if method.ordinal == ON_UNTRACED.ordinal {
            SessionResponse::OnUntraced(Untraced {
                name: table.require_string(UNTRACED_NAME, MAX_PROVIDER_NAME_BYTES)?,
                pid: table.require(UNTRACED_PID)?,
                reason: table.require_string(UNTRACED_REASON, MAX_REASON_BYTES)?,
            })
        } else if method.ordinal == ON_KNOWN_CATEGORIES.ordinal {
            SessionResponse::OnKnownCategories(KnownCategories::find(&table)?)
        } else {
            let state = SessionState::from_value(table.require(STATE)?)?;
            SessionResponse::OnSessionStateChange(state)
        };
        Ok((txid, response))
    }
}
