//! A task: a recording that the manager holds itself, and writes into a file that a client has opened for it.
//!
//! To the core it is a client like any other, whose requests are made here and whose answers come here.

mod spool;

use super::file_writer::FileWriter;
use super::log::log;
use crate::core::{ClientId, Event, Uid};
use spool::Spool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trace_protocol::Txid;
use trace_protocol::controller::{
    Alert, ProviderProgress, ProviderStats, SessionResponse, StartOptions, StopOptions, StopResult, TaskEnd,
    TaskError, TaskFailure, TaskOptions, TaskResponse, TaskStatus, TraceConfig, Triggered,
};
use zx_sim::{Handle, Socket};

/// How long the result of a task that has ended by itself is kept for a client to ask for it.
const UNREPORTED_WAIT: Duration = Duration::from_hours(24);
/// The task's client number in the core.
pub(super) const CLIENT: ClientId = ClientId(u64::MAX);
/// Number of a manager's first task.
const FIRST_TASK: u64 = 100;

/// An answer, and its recipient.
pub(super) type Answer = (Requester, TaskResponse);

/// A request on a provisioner connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requester {
    /// The connection.
    pub connection: u32,
    pub txid: Txid,
    pub pid: u32,
    pub uid: Uid,
}

/// The only task.
#[derive(Debug)]
pub(super) struct Tasks {
    next: u64,
    current: Option<Task>,
    /// How the last one ended, if no client waited for that.
    unreported: Option<UnreportedEnd>,
}

/// The end of a task that has not been reported to any client.
#[derive(Debug)]
struct UnreportedEnd {
    id: u64,
    uid: Uid,
    end: Result<TaskEnd, TaskFailure>,
    since: Instant,
}

#[derive(Debug)]
struct Task {
    id: u64,
    options: TaskOptions,
    config: TraceConfig,
    pid: u32,
    uid: Uid,
    spool: Spool,
    phase: Phase,
    started: Instant,
    /// When it ends by itself.
    deadline: Option<Instant>,
    /// The answer to its Stop.
    result: StopResult,
    /// The clients that wait for its end.
    ending: Vec<Requester>,
    aborting: Vec<Requester>,
    /// The alert that has ended it.
    triggered: Option<Triggered>,
    /// Why it failed, if it did.
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The client that started it gets its answer when all providers record.
    Starting(Requester),
    Recording,
    Ending,
}

/// The task's requests to the rest of the manager.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub answers: Vec<Answer>,
    pub events: Vec<Event>,
}

fn failure(error: TaskError, reason: impl Into<String>) -> TaskFailure {
    TaskFailure { error, reason: reason.into() }
}

fn no_such_task() -> TaskFailure {
    failure(TaskError::NoSuchTask, "no such recording is running")
}

impl Tasks {
    pub fn new() -> Self {
        Self { next: FIRST_TASK, current: None, unreported: None }
    }

    /// A task is running, or its file is still being written.
    pub fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// A task has ended by itself within the last day, and no client was informed.
    //= docs/protocol.md#tasks
    pub fn has_unreported_end(&self, now: Instant) -> bool {
        self.unreported.as_ref().is_some_and(|unreported| now < unreported.since + UNREPORTED_WAIT)
    }

    /// A socket that becomes readable when the file is complete.
    pub fn spool(&self) -> Option<&Socket> {
        self.current.as_ref().map(|task| task.spool.done())
    }

    /// When [`Tasks::handle_time`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.current.as_ref().and_then(|task| task.deadline)
    }

    /// Begins a task, whose archive goes to the writer.
    pub fn start(
        &mut self,
        requester: Requester,
        mut config: TraceConfig,
        options: TaskOptions,
        file: Handle,
        effects: &mut Effects,
    ) -> Option<FileWriter> {
        let mut refuse = |error, reason: String| {
            effects.answers.push((requester, TaskResponse::Start(Err(failure(error, reason)))));
            None
        };
        if let Some(current) = &self.current {
            let reason = match current.phase {
                Phase::Starting(_) | Phase::Recording => {
                    "already recording; trace status shows the recording, trace stop ends it"
                }
                Phase::Ending => "the recording before is still being written",
            };
            return refuse(TaskError::AlreadyStarted, reason.to_owned());
        }
        let (spool, output, written) = match Spool::start(file, options.file.clone()) {
            Ok(spool) => spool,
            Err(reason) => return refuse(TaskError::Start, reason),
        };
        // The client's values are ignored: the file is written here.
        (config.confirms, config.file) = (true, Some(written));
        effects.events.push(Event::Initialize {
            client: CLIENT,
            pid: requester.pid,
            uid: requester.uid,
            config: config.clone(),
        });
        effects.events.push(Event::Start { client: CLIENT, options: StartOptions::default() });
        self.current = Some(Task {
            id: self.next,
            options,
            config,
            pid: requester.pid,
            uid: requester.uid,
            spool,
            phase: Phase::Starting(requester),
            started: Instant::now(),
            deadline: None,
            result: StopResult { provider_stats: Vec::new() },
            ending: Vec::new(),
            aborting: Vec::new(),
            triggered: None,
            failure: None,
        });
        self.unreported = None;
        self.next += 1;
        Some(output)
    }

    /// Refuses a task that cannot begin now.
    pub fn refuse(&mut self, requester: Requester, reason: &str, effects: &mut Effects) {
        let failure = failure(TaskError::AlreadyStarted, reason);
        effects.answers.push((requester, TaskResponse::Start(Err(failure))));
    }

    /// The core refused it: another client records.
    pub fn refused(&mut self, reason: String, effects: &mut Effects) {
        if let Some(Task { phase: Phase::Starting(requester), .. }) = self.current.take() {
            let failure = failure(TaskError::AlreadyStarted, reason);
            effects.answers.push((requester, TaskResponse::Start(Err(failure))));
        }
    }

    fn find(&mut self, id: u64, requester: Requester, owner: Uid) -> Result<&mut Task, TaskFailure> {
        let is_meant = |task: &&mut Task| {
            (id == 0 || id == task.id)
                && requester.uid.may_see(task.uid, owner)
                && !matches!(task.phase, Phase::Starting(_))
        };
        self.current.as_mut().filter(is_meant).ok_or_else(no_such_task)
    }

    /// Ends a task, or waits for its end.
    pub fn end(&mut self, id: u64, requester: Requester, owner: Uid, effects: &mut Effects) {
        let is_meant = |unreported: &mut UnreportedEnd| {
            (id == 0 || id == unreported.id) && requester.uid.may_see(unreported.uid, owner)
        };
        // While another one is being started it has no end yet.
        if self.current.is_none()
            && let Some(unreported) = self.unreported.take_if(is_meant)
        {
            effects.answers.push((requester, TaskResponse::End(unreported.end)));
            return;
        }
        match self.find(id, requester, owner) {
            Ok(task) => {
                task.ending.push(requester);
                // One that ends by itself is not cut short.
                if task.deadline.is_none() {
                    task.stop(effects);
                }
            }
            Err(failure) => effects.answers.push((requester, TaskResponse::End(Err(failure)))),
        }
    }

    /// Ends a task and discards its file.
    pub fn abort(&mut self, id: u64, requester: Requester, owner: Uid, effects: &mut Effects) {
        match self.find(id, requester, owner) {
            Ok(task) => {
                task.aborting.push(requester);
                task.spool.discard();
                task.stop(effects);
            }
            Err(failure) => effects.answers.push((requester, TaskResponse::Abort(Err(failure)))),
        }
    }

    /// Has all providers hand over what there is.
    pub fn flush(&mut self, id: u64, requester: Requester, owner: Uid, effects: &mut Effects) {
        let result = self.find(id, requester, owner).map(|_| ());
        if result.is_ok() {
            effects.events.push(Event::Flush { client: CLIENT });
        }
        effects.answers.push((requester, TaskResponse::Flush(result)));
    }

    /// Reports what is being recorded.
    pub fn status(
        &mut self,
        requester: Requester,
        owner: Uid,
        progress: Vec<ProviderProgress>,
        ended: Vec<ProviderStats>,
        effects: &mut Effects,
    ) {
        let status = self.find(0, requester, owner).ok().map(|task| {
            let now = Instant::now();
            let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            Box::new(TaskStatus {
                task: task.id,
                options: task.options.clone(),
                elapsed_ns: nanos(now - task.started),
                remaining_ns: task.deadline.map(|deadline| nanos(deadline.saturating_duration_since(now))),
                config: task.config.clone(),
                pid: task.pid,
                uid: task.uid.0,
                progress,
                ended,
                ended_left_out: 0,
            })
        });
        effects.answers.push((requester, TaskResponse::Status(status)));
    }

    /// Handles the core's responses to the task.
    pub fn handle_response(&mut self, response: SessionResponse, effects: &mut Effects) {
        let Some(task) = &mut self.current else {
            return;
        };
        match (response, task.phase) {
            (SessionResponse::StartTracing(Ok(())), Phase::Starting(requester)) => {
                task.phase = Phase::Recording;
                task.started = Instant::now();
                task.deadline =
                    task.options.duration_ns.map(|nanos| task.started + Duration::from_nanos(nanos));
                if !task.options.triggers.is_empty() {
                    effects.events.push(Event::WatchAlert { client: CLIENT });
                }
                effects.answers.push((requester, TaskResponse::Start(Ok(task.id))));
            }
            (SessionResponse::StartTracing(Err(error)), Phase::Starting(requester)) => {
                let failure = failure(TaskError::Start, format!("{error:?}"));
                effects.answers.push((requester, TaskResponse::Start(Err(failure))));
                task.phase = Phase::Ending;
                effects.events.push(Event::ClientClosed { client: CLIENT });
            }
            (SessionResponse::StopTracing(result), _) => {
                match result {
                    Ok(result) => task.result = result,
                    Err(error) => task.failure = Some(format!("it could not be stopped: {error:?}")),
                }
                effects.events.push(Event::ClientClosed { client: CLIENT });
            }
            (SessionResponse::WatchAlert(alert), _) => {
                if alert.dropped > 0 {
                    let (id, dropped) = (task.id, alert.dropped);
                    log(&format!("task {id}: dropped {dropped} alerts that came too fast"));
                }
                if task.options.triggers.iter().any(|trigger| trigger.alert == alert.name) {
                    task.end_by(alert, effects);
                } else {
                    effects.events.push(Event::WatchAlert { client: CLIENT });
                }
            }
            _ => {}
        }
    }

    /// Ends a task whose time is over.
    pub fn handle_time(&mut self, now: Instant, effects: &mut Effects) {
        if let Some(task) = self.current.as_mut().filter(|task| task.deadline.is_some_and(|at| at <= now)) {
            task.stop(effects);
        }
    }

    /// The file is complete, or could not be written.
    pub fn finish(&mut self, effects: &mut Effects) {
        let Some(mut task) = self.current.take() else {
            return;
        };
        let mut reason = task.failure;
        match task.spool.finish() {
            Ok(moved) => {
                if let Some(moved) = moved.and_then(|path| path.into_os_string().into_string().ok()) {
                    log(&format!("task {}: {} is {moved} now", task.id, task.options.file));
                    task.options.file = moved;
                }
            }
            Err(error) => _ = reason.get_or_insert(format!("cannot write {}: {error}", task.options.file)),
        }
        let result = match reason {
            Some(reason) => Err(failure(TaskError::Stop, reason)),
            None => {
                let triggered = task.triggered.clone();
                Ok(TaskEnd { options: task.options, result: task.result, triggered })
            }
        };
        if let Err(failure) = &result {
            log(&format!("task {}: {}", task.id, failure.reason));
        }
        let has_discarded = !task.aborting.is_empty();
        if task.ending.is_empty() && !has_discarded {
            let (id, uid, end) = (task.id, task.uid, result.clone());
            self.unreported = Some(UnreportedEnd { id, uid, end, since: Instant::now() });
        }
        for requester in task.ending {
            let result = match has_discarded {
                true => Err(failure(TaskError::NoSuchTask, "the recording was thrown away")),
                false => result.clone(),
            };
            effects.answers.push((requester, TaskResponse::End(result)));
        }
        effects
            .answers
            .extend(task.aborting.into_iter().map(|requester| (requester, TaskResponse::Abort(Ok(())))));
    }
}

impl Task {
    /// Handles an alert of its triggers.
    fn end_by(&mut self, alert: Alert, effects: &mut Effects) {
        // Only the first reason ends it.
        if matches!(self.phase, Phase::Ending) {
            return;
        }
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (elapsed_ns, wall_clock_ns) = (nanos(self.started.elapsed()), nanos(wall_clock));
        self.triggered = Some(Triggered { alert, elapsed_ns, wall_clock_ns });
        self.stop(effects);
    }

    /// Requests the Stop, once.
    fn stop(&mut self, effects: &mut Effects) {
        if !matches!(self.phase, Phase::Ending) {
            self.phase = Phase::Ending;
            self.deadline = None;
            effects.events.push(Event::Stop { client: CLIENT, options: StopOptions { write_results: true } });
        }
    }
}
