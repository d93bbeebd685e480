//! Tasks: recordings that the manager holds itself, so that they outlive the client that asked for them.
//!
//! Each takes the place of a client's session. Requests come on the provisioner channel.

use super::alert::Alert;
use super::config::{ArchiveFile, TraceConfig};
use super::progress::{self, ProviderProgress};
use super::refusal::Refusal;
use super::stats::{ProviderStats, StopResult};
use crate::error::{ProtocolError, check_limit};
use crate::limits::{
    MAX_ALERT_NAME_BYTES, MAX_ENDED_PROVIDERS, MAX_PATH_BYTES, MAX_REASON_BYTES, MAX_TASK_NAME_BYTES,
    MAX_TASKS, MAX_TRIGGERS, cut,
};
use crate::message::{Encoded, Message, Method, Txid, decode_header};
use crate::strict_enum::strict_enum;
use crate::table::{Field, ListLimits, Table, TableWriter};

const START: Method = Method::two_way("StartTraceSession", 0x0501);
const END: Method = Method::two_way("EndTraceSession", 0x0502);
const ABORT: Method = Method::two_way("AbortTraceSession", 0x0503);
const STATUS: Method = Method::two_way("Status", 0x0504);
const FLUSH: Method = Method::two_way("FlushTraceSession", 0x0505);
pub(super) const METHODS: [Method; 5] = [START, END, ABORT, STATUS, FLUSH];

const CONFIG: Field = Field::new(1, "config");
const OPTIONS: Field = Field::new(2, "options");
const TASK: Field = Field::new(1, "task");

const ERROR: Field = Field::new(1, "error");
const REASON: Field = Field::new(2, "reason bytes");
const STARTED_TASK: Field = Field::new(3, "task");
const ENDED_OPTIONS: Field = Field::new(3, "options");
const RESULT: Field = Field::new(4, "result");
const TRIGGERED: Field = Field::new(5, "triggered");
const ENDED_FILE: Field = Field::new(6, "file");
const RECORDER: Field = Field::new(7, "recorder");
const LIMIT: Field = Field::new(8, "limit");
const TRIGGERED_ALERT: Field = Field::new(1, "alert");
const TRIGGERED_ELAPSED: Field = Field::new(2, "elapsed_ns");
const TRIGGERED_WALL_CLOCK: Field = Field::new(3, "wall_clock_ns");

const DURATION: Field = Field::new(1, "duration_ns");
const TRIGGERS: Field = Field::new(2, "triggers");
const REQUESTED: Field = Field::new(3, "requested_categories");
const NAME: Field = Field::new(100, "task name bytes");
const FILE: Field = Field::new(101, "file path bytes");

const TRIGGER_ALERT: Field = Field::new(1, "alert name bytes");
const TRIGGER_ACTION: Field = Field::new(2, "action");

const STATUS_TASK: Field = Field::new(3, "status");
const STATUS_ID: Field = Field::new(1, "task");
const STATUS_OPTIONS: Field = Field::new(2, "options");
const STATUS_ELAPSED: Field = Field::new(3, "elapsed_ns");
const STATUS_REMAINING: Field = Field::new(4, "remaining_ns");
const STATUS_CONFIG: Field = Field::new(5, "config");
const STATUS_PID: Field = Field::new(6, "pid");
const STATUS_UID: Field = Field::new(7, "uid");
const STATUS_PROGRESS: Field = Field::new(8, "progress");
const STATUS_ENDED: Field = Field::new(9, "ended");
const STATUS_ENDED_LEFT_OUT: Field = Field::new(10, "ended providers left out");
const STATUS_OTHERS: Field = Field::new(11, "other tasks");

/// Client → manager, on the provisioner channel.
#[expect(clippy::large_enum_variant, reason = "one exists at a time")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskRequest<H> {
    /// Begins a recording; answered when all providers record. Handle: the file, open for writing.
    Start {
        /// What to trace and how.
        config: TraceConfig,
        /// When it ends, and its name.
        options: TaskOptions,
        /// Where the archive goes.
        file: H,
    },
    /// Ends it, or waits for its end if it has a duration; answered when the file is complete. 0 is the only
    /// task that the user may see.
    End(u64),
    /// Ends it, and discards what it has recorded.
    Abort(u64),
    /// Queries what is being recorded by a task; 0 is the first one that the user may see.
    Status(u64),
    /// Has every provider hand over what it has recorded so far, while streaming.
    Flush(u64),
}

/// When a task ends, and its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskOptions {
    /// How long it records, in nanoseconds; until it is ended when absent.
    pub duration_ns: Option<u64>,
    /// Alerts that end it, at most 100.
    pub triggers: Vec<Trigger>,
    /// Categories as requested, including groups.
    pub requested_categories: Vec<String>,
    /// For people, at most 100 bytes.
    pub name: String,
    /// Where the file is, for people; at most 4096 bytes.
    pub file: String,
}

/// The action for an alert that a provider raises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// The alert's name, at most 14 bytes.
    pub alert: String,
    /// The action.
    pub action: TriggerAction,
}

strict_enum! {
    /// The action that an alert triggers.
    TriggerAction {
        /// The recording ends.
        Terminate = 1,
    }
}

strict_enum! {
    /// Why a request about a task failed.
    TaskError {
        /// It could not be started.
        Start = 1,
        /// Something is being recorded already.
        AlreadyStarted = 2,
        /// It could not be ended, or its file could not be written.
        Stop = 3,
        /// There is no such task.
        NoSuchTask = 5,
        /// There are several tasks, and the request does not name one.
        Several = 6,
    }
}

/// A failure, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFailure {
    /// Its kind.
    pub error: TaskError,
    /// Its reason.
    pub refusal: Refusal,
}

/// Manager → client, on the provisioner channel.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskResponse {
    /// Answer to [`TaskRequest::Start`]: the task's number.
    Start(Result<u64, TaskFailure>),
    /// Answer to [`TaskRequest::End`].
    End(Result<TaskEnd, TaskFailure>),
    /// Answer to [`TaskRequest::Abort`].
    Abort(Result<(), TaskFailure>),
    /// Answer to [`TaskRequest::Status`]; none while there is no task.
    Status(Option<Box<TaskStatus>>),
    /// Answer to [`TaskRequest::Flush`].
    Flush(Result<(), TaskFailure>),
}

/// A task that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEnd {
    /// The options of its start.
    pub options: TaskOptions,
    /// The findings in each buffer.
    pub result: StopResult,
    /// The alert that ended it, if one did.
    pub triggered: Option<Triggered>,
    /// The file that was written, which is not necessarily at the path in the options; none from a manager of
    /// an earlier release.
    pub file: Option<ArchiveFile>,
}

/// The alert that has ended a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggered {
    /// The alert, and the provider that raised it.
    pub alert: Alert,
    /// When, since the task was started, in nanoseconds.
    pub elapsed_ns: u64,
    /// When, in nanoseconds since 1970.
    pub wall_clock_ns: u64,
}

/// A running task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStatus {
    /// Its number; the first of a manager is 100.
    pub task: u64,
    /// When it ends, and what it is called.
    pub options: TaskOptions,
    /// Since it was started, in nanoseconds.
    pub elapsed_ns: u64,
    /// Until it ends by itself, in nanoseconds.
    pub remaining_ns: Option<u64>,
    /// The configuration of the recording.
    pub config: TraceConfig,
    /// The process that started it.
    pub pid: u32,
    /// The user who started it.
    pub uid: u32,
    /// The progress of the providers that take part.
    pub progress: Vec<ProviderProgress>,
    /// Statistics of providers that no longer take part, or never did. Of more than 1000, the last ones.
    pub ended: Vec<ProviderStats>,
    /// How many of them are not in the list.
    pub ended_left_out: u64,
    /// The numbers of other tasks that the user may see, at most 64.
    pub others: Vec<u64>,
}

impl<H> Message<H> for TaskRequest<H> {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        let of_task = |method: Method, task: u64| {
            let mut table = TableWriter::new(method.name);
            table.put(TASK, &task);
            Ok::<_, ProtocolError>((method, table, Vec::new()))
        };
        let (method, table, handles) = match self {
            TaskRequest::Start { config, options, file } => {
                let mut table = TableWriter::new(START.name);
                table.put_table(CONFIG, config.encode()?);
                table.put_table(OPTIONS, options.encode()?);
                (START, table, vec![file])
            }
            TaskRequest::End(task) => of_task(END, task)?,
            TaskRequest::Abort(task) => of_task(ABORT, task)?,
            TaskRequest::Status(task) => {
                let mut table = TableWriter::new(STATUS.name);
                table.put_some(TASK, Some(&task).filter(|task| **task > 0));
                (STATUS, table, Vec::new())
            }
            TaskRequest::Flush(task) => of_task(FLUSH, task)?,
        };
        method.encode(txid, table.finish(), handles)
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        let (txid, method, body) = decode_header(bytes, "task request", &METHODS)?;
        let table = Table::decode(method.name, body)?;
        if method.ordinal == START.ordinal {
            let [file] = method.take_handles(handles)?;
            let config = TraceConfig::decode(&table.table(CONFIG)?)?;
            let options = TaskOptions::decode(&table.table(OPTIONS)?)?;
            return Ok((txid, TaskRequest::Start { config, options, file }));
        }
        let [] = method.take_handles(handles)?;
        let task = table.find(TASK)?.unwrap_or(0);
        let request = if method.ordinal == END.ordinal {
            TaskRequest::End(task)
        } else if method.ordinal == ABORT.ordinal {
            TaskRequest::Abort(task)
        } else if method.ordinal == STATUS.ordinal {
            TaskRequest::Status(task)
        } else {
            TaskRequest::Flush(task)
        };
        Ok((txid, request))
    }
}

impl TaskOptions {
    fn encode(&self) -> Result<TableWriter, ProtocolError> {
        check_limit(TRIGGERS.name, MAX_TRIGGERS, self.triggers.len())?;
        check_limit(NAME.name, MAX_TASK_NAME_BYTES, self.name.len())?;
        check_limit(FILE.name, MAX_PATH_BYTES, self.file.len())?;
        let mut table = TableWriter::new("TaskOptions");
        table.put_some(DURATION, self.duration_ns.as_ref());
        let triggers = self.triggers.iter().map(Trigger::encode).collect::<Result<Vec<_>, _>>()?;
        table.put_tables(TRIGGERS, triggers);
        table.put_strings(REQUESTED, &self.requested_categories, ListLimits::CATEGORIES)?;
        table.put(NAME, &self.name);
        table.put(FILE, &self.file);
        Ok(table)
    }

    fn decode(table: &Table<'_>) -> Result<Self, ProtocolError> {
        let triggers = table.tables(TRIGGERS)?;
        check_limit(TRIGGERS.name, MAX_TRIGGERS, triggers.len())?;
        Ok(Self {
            duration_ns: table.find(DURATION)?,
            triggers: triggers.iter().map(Trigger::decode).collect::<Result<_, _>>()?,
            requested_categories: table.strings(REQUESTED, ListLimits::CATEGORIES)?,
            name: table.string(NAME, MAX_TASK_NAME_BYTES)?.unwrap_or_default(),
            file: table.string(FILE, MAX_PATH_BYTES)?.unwrap_or_default(),
        })
    }
}

impl Trigger {
    fn encode(&self) -> Result<TableWriter, ProtocolError> {
        check_limit(TRIGGER_ALERT.name, MAX_ALERT_NAME_BYTES, self.alert.len())?;
        let mut table = TableWriter::new("Trigger");
        table.put(TRIGGER_ALERT, &self.alert);
        table.put(TRIGGER_ACTION, &self.action.value());
        Ok(table)
    }

    fn decode(table: &Table<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            alert: table.require_string(TRIGGER_ALERT, MAX_ALERT_NAME_BYTES)?,
            action: TriggerAction::from_value(table.require(TRIGGER_ACTION)?)?,
        })
    }
}

impl TaskEnd {
    fn put(&self, table: &mut TableWriter) -> Result<(), ProtocolError> {
        table.put_table(ENDED_OPTIONS, self.options.encode()?);
        table.put_table(RESULT, self.result.encode()?);
        if let Some(Triggered { alert, elapsed_ns, wall_clock_ns }) = &self.triggered {
            let mut of_alert = TableWriter::new("Alert");
            alert.put(&mut of_alert)?;
            let mut triggered = TableWriter::new("Triggered");
            triggered.put_table(TRIGGERED_ALERT, of_alert);
            triggered.put(TRIGGERED_ELAPSED, elapsed_ns);
            triggered.put(TRIGGERED_WALL_CLOCK, wall_clock_ns);
            table.put_table(TRIGGERED, triggered);
        }
        if let Some(file) = &self.file {
            table.put_table(ENDED_FILE, file.encode()?);
        }
        Ok(())
    }

    fn find(table: &Table<'_>) -> Result<Self, ProtocolError> {
        let triggered = table.has(TRIGGERED).then(|| {
            let table = table.table(TRIGGERED)?;
            Ok::<_, ProtocolError>(Triggered {
                alert: Alert::find(&table.table(TRIGGERED_ALERT)?)?,
                elapsed_ns: table.require(TRIGGERED_ELAPSED)?,
                wall_clock_ns: table.require(TRIGGERED_WALL_CLOCK)?,
            })
        });
        Ok(Self {
            options: TaskOptions::decode(&table.table(ENDED_OPTIONS)?)?,
            result: StopResult::decode(&table.table(RESULT)?)?,
            triggered: triggered.transpose()?,
            file: match table.has(ENDED_FILE) {
                true => Some(ArchiveFile::decode(&table.table(ENDED_FILE)?)?),
                false => None,
            },
        })
    }
}

impl TaskStatus {
    fn encode(&self) -> Result<TableWriter, ProtocolError> {
        let mut table = TableWriter::new("TaskStatus");
        table.put(STATUS_ID, &self.task);
        table.put_table(STATUS_OPTIONS, self.options.encode()?);
        table.put(STATUS_ELAPSED, &self.elapsed_ns);
        table.put_some(STATUS_REMAINING, self.remaining_ns.as_ref());
        table.put_table(STATUS_CONFIG, self.config.encode()?);
        table.put(STATUS_PID, &self.pid);
        table.put(STATUS_UID, &self.uid);
        let mut progress = TableWriter::new("Progress");
        progress::put(&mut progress, &self.progress)?;
        table.put_table(STATUS_PROGRESS, progress);
        let first = self.ended.len().saturating_sub(MAX_ENDED_PROVIDERS);
        if let Some(last) = self.ended.get(first..).filter(|last| !last.is_empty()) {
            let ended = StopResult { provider_stats: last.to_vec() };
            table.put_table(STATUS_ENDED, ended.encode()?);
        }
        let left_out = self.ended_left_out.saturating_add(first as u64);
        table.put_some(STATUS_ENDED_LEFT_OUT, Some(&left_out).filter(|count| **count > 0));
        let others: Vec<u64> = self.others.iter().copied().take(MAX_TASKS).collect();
        table.put_some(STATUS_OTHERS, Some(&others).filter(|others| !others.is_empty()));
        Ok(table)
    }

    fn decode(table: &Table<'_>) -> Result<Self, ProtocolError> {
        Ok(Self {
            task: table.require(STATUS_ID)?,
            options: TaskOptions::decode(&table.table(STATUS_OPTIONS)?)?,
            elapsed_ns: table.require(STATUS_ELAPSED)?,
            remaining_ns: table.find(STATUS_REMAINING)?,
            config: TraceConfig::decode(&table.table(STATUS_CONFIG)?)?,
            pid: table.require(STATUS_PID)?,
            uid: table.require(STATUS_UID)?,
            progress: progress::find(&table.table(STATUS_PROGRESS)?)?,
            ended: match table.has(STATUS_ENDED) {
                true => StopResult::decode(&table.table(STATUS_ENDED)?)?.provider_stats,
                false => Vec::new(),
            },
            ended_left_out: table.find(STATUS_ENDED_LEFT_OUT)?.unwrap_or(0),
            others: {
                let others: Vec<u64> = table.find(STATUS_OTHERS)?.unwrap_or_default();
                check_limit(STATUS_OTHERS.name, MAX_TASKS, others.len())?;
                others
            },
        })
    }
}

fn put_failure(table: &mut TableWriter, failure: Option<&TaskFailure>) -> Result<(), ProtocolError> {
    if let Some(failure) = failure {
        table.put(ERROR, &failure.error.value());
        table.put(REASON, cut(&failure.refusal.reason, MAX_REASON_BYTES));
        failure.refusal.put_details(table, [RECORDER, LIMIT]);
    }
    Ok(())
}

fn failure(table: &Table<'_>) -> Result<Option<TaskFailure>, ProtocolError> {
    let Some(error) = table.find(ERROR)? else {
        return Ok(None);
    };
    let reason = table.string(REASON, MAX_REASON_BYTES)?.unwrap_or_default();
    let refusal = Refusal::with_details(reason, table, [RECORDER, LIMIT])?;
    Ok(Some(TaskFailure { error: TaskError::from_value(error)?, refusal }))
}

impl<H> Message<H> for TaskResponse {
    fn encode(self, txid: Txid) -> Result<Encoded<H>, ProtocolError> {
        let begin = |method: Method, failure: Option<&TaskFailure>| {
            let mut table = TableWriter::new(method.name);
            put_failure(&mut table, failure).map(|()| (method, table))
        };
        let (method, table) = match self {
            TaskResponse::Start(result) => {
                let (method, mut table) = begin(START, result.as_ref().err())?;
                table.put_some(STARTED_TASK, result.ok().as_ref());
                (method, table)
            }
            TaskResponse::End(result) => {
                let (method, mut table) = begin(END, result.as_ref().err())?;
                if let Ok(end) = result {
                    end.put(&mut table)?;
                }
                (method, table)
            }
            TaskResponse::Abort(result) => begin(ABORT, result.err().as_ref())?,
            TaskResponse::Status(status) => {
                let (method, mut table) = begin(STATUS, None)?;
                if let Some(status) = status {
                    table.put_table(STATUS_TASK, status.encode()?);
                }
                (method, table)
            }
            TaskResponse::Flush(result) => begin(FLUSH, result.err().as_ref())?,
        };
        method.encode(txid, table.finish(), Vec::new())
    }

    fn decode(bytes: &[u8], handles: Vec<H>) -> Result<(Txid, Self), ProtocolError> {
        let (txid, method, body) = decode_header(bytes, "task response", &METHODS)?;
        let [] = method.take_handles(handles)?;
        let table = Table::decode(method.name, body)?;
        let failure = failure(&table)?;
        let response = if method.ordinal == START.ordinal {
            TaskResponse::Start(match failure {
                Some(failure) => Err(failure),
                None => Ok(table.require(STARTED_TASK)?),
            })
        } else if method.ordinal == END.ordinal {
            TaskResponse::End(match failure {
                Some(failure) => Err(failure),
                None => Ok(TaskEnd::find(&table)?),
            })
        } else if method.ordinal == ABORT.ordinal {
            TaskResponse::Abort(failure.map_or(Ok(()), Err))
        } else if method.ordinal == STATUS.ordinal {
            let status = table.has(STATUS_TASK).then(|| TaskStatus::decode(&table.table(STATUS_TASK)?));
            TaskResponse::Status(status.transpose()?.map(Box::new))
        } else {
            TaskResponse::Flush(failure.map_or(Ok(()), Err))
        };
        Ok((txid, response))
    }
}
