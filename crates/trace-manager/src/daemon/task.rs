//! A task: a recording that the manager holds itself, and writes into a file that a client has opened for it.
//!
//! To the core it is a client like any other, whose requests are made here and whose answers come here. Each
//! user may have several, as far as they ask for different programs.

mod spool;

use super::file_writer::FileWriter;
use super::log::log;
use crate::core::{ClientId, Event, Uid};
use spool::Spool;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trace_archive::problem;
use trace_protocol::Txid;
use trace_protocol::controller::{
    Alert, ProviderProgress, ProviderStats, Refusal, SessionResponse, StartOptions, StopOptions, StopResult,
    TaskEnd, TaskError, TaskFailure, TaskOptions, TaskResponse, TaskStatus, TraceConfig, Triggered,
};
use zx_sim::{Handle, Socket};

/// How long the result of a task that has ended by itself is kept for a client to ask for it.
const UNREPORTED_WAIT: Duration = Duration::from_hours(24);
/// Number of a manager's first task.
const FIRST_TASK: u32 = 100;
/// Ends of a user's tasks that are remembered for clients to ask for them.
const MAX_UNREPORTED: usize = 16;

/// A task's client number in the core.
fn client(id: u32) -> ClientId {
    ClientId(ClientId::FIRST_TASK + u64::from(id))
}

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

/// The tasks of a manager.
#[derive(Debug)]
pub(super) struct Tasks {
    next: u32,
    running: BTreeMap<u32, Task>,
    /// How the last ones ended for whose end no client waited, the newest last.
    unreported: VecDeque<UnreportedEnd>,
}

/// The end of a task that has not been reported to any client.
#[derive(Debug)]
struct UnreportedEnd {
    id: u32,
    uid: Uid,
    end: Result<TaskEnd, TaskFailure>,
    since: Instant,
}

#[derive(Debug)]
struct Task {
    id: u32,
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
    TaskFailure { error, refusal: Refusal::from(reason.into()) }
}

fn no_such_task() -> TaskFailure {
    failure(TaskError::NoSuchTask, "no such recording is running")
}

impl Tasks {
    pub fn new() -> Self {
        Self { next: FIRST_TASK, running: BTreeMap::new(), unreported: VecDeque::new() }
    }

    /// A task is running, or its file is still being written.
    pub fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// A task has ended by itself within the last day, and no client was informed.
    //= docs/protocol.md#tasks
    pub fn has_unreported_end(&self, now: Instant) -> bool {
        self.unreported.iter().any(|unreported| now < unreported.since + UNREPORTED_WAIT)
    }

    /// A task's socket that becomes readable when its file is complete.
    pub fn spool(&self, id: u32) -> Option<&Socket> {
        self.running.get(&id).map(|task| task.spool.done())
    }

    /// When [`Tasks::handle_time`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.running.values().filter_map(|task| task.deadline).min()
    }

    /// Begins a task, whose archive goes to the writer; returns its number too.
    pub fn start(
        &mut self,
        requester: Requester,
        mut config: TraceConfig,
        options: TaskOptions,
        file: Handle,
        effects: &mut Effects,
    ) -> Option<(u32, FileWriter)> {
        let (spool, output, written) = match Spool::start(file, options.file.clone()) {
            Ok(spool) => spool,
            Err(reason) => {
                let refused = Err(failure(TaskError::Start, problem(&reason)));
                effects.answers.push((requester, TaskResponse::Start(refused)));
                return None;
            }
        };
        let id = self.next;
        self.next = id.wrapping_add(1);
        // The client's values are ignored: the file is written here.
        (config.confirms, config.file) = (true, Some(written));
        effects.events.push(Event::Initialize {
            client: client(id),
            pid: requester.pid,
            uid: requester.uid,
            config: config.clone(),
        });
        effects.events.push(Event::Start { client: client(id), options: StartOptions::default() });
        let task = Task {
            id,
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
        };
        self.running.insert(id, task);
        Some((id, output))
    }

    /// Refuses a task that cannot begin now.
    pub fn refuse(&mut self, requester: Requester, refusal: Refusal, effects: &mut Effects) {
        let failure = TaskFailure { error: TaskError::AlreadyStarted, refusal };
        effects.answers.push((requester, TaskResponse::Start(Err(failure))));
    }

    /// The tasks of a user, as clients of the core, until their files are complete.
    pub fn clients_of(&self, uid: Uid) -> impl Iterator<Item = ClientId> + '_ {
        self.running.values().filter(move |task| task.uid == uid).map(|task| client(task.id))
    }

    /// The core refused one: another client records.
    pub fn refused(&mut self, client: ClientId, refusal: Refusal, effects: &mut Effects) {
        if let Some(Task { phase: Phase::Starting(requester), .. }) = self.take(client) {
            self.refuse(requester, refusal, effects);
        }
    }

    fn take(&mut self, client: ClientId) -> Option<Task> {
        self.running.remove(&u32::try_from(client.0.checked_sub(ClientId::FIRST_TASK)?).ok()?)
    }

    /// The tasks that are meant by a request: all that its user may see if it names none.
    fn meant(&self, id: u64, requester: Requester, owner: Uid) -> Vec<u32> {
        let is_meant = |task: &&Task| {
            (id == 0 || id == u64::from(task.id))
                && requester.uid.may_see(task.uid, owner)
                && !matches!(task.phase, Phase::Starting(_))
        };
        self.running.values().filter(is_meant).map(|task| task.id).collect()
    }

    fn find(&mut self, id: u64, requester: Requester, owner: Uid) -> Result<&mut Task, TaskFailure> {
        let meant = self.meant(id, requester, owner);
        match meant[..] {
            [id] => self.running.get_mut(&id).ok_or_else(no_such_task),
            [] => Err(no_such_task()),
            [..] => {
                let numbers: Vec<String> = meant.iter().map(ToString::to_string).collect();
                let reason = format!("recordings {} are running: give the number of one", numbers.join(", "));
                Err(failure(TaskError::Several, reason))
            }
        }
    }

    /// Ends a task, or waits for its end.
    pub fn end(&mut self, id: u64, requester: Requester, owner: Uid, effects: &mut Effects) {
        let is_meant = |unreported: &UnreportedEnd| {
            (id == 0 || id == u64::from(unreported.id)) && requester.uid.may_see(unreported.uid, owner)
        };
        if self.meant(id, requester, owner).is_empty()
            && let Some(place) = self.unreported.iter().rposition(is_meant)
            && let Some(unreported) = self.unreported.remove(place)
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
        let result = self.find(id, requester, owner).map(|task| {
            effects.events.push(Event::Flush { client: client(task.id) });
        });
        effects.answers.push((requester, TaskResponse::Flush(result)));
    }

    /// The task whose status is asked for, as a client of the core: the first one, if the request names none.
    pub fn of_status(&self, id: u64, requester: Requester, owner: Uid) -> Option<ClientId> {
        self.meant(id, requester, owner).first().copied().map(client)
    }

    /// Reports what a task records.
    pub fn status(
        &mut self,
        requester: Requester,
        owner: Uid,
        asked: Option<ClientId>,
        progress: Vec<ProviderProgress>,
        ended: Vec<ProviderStats>,
        effects: &mut Effects,
    ) {
        let others = self.meant(0, requester, owner);
        let task = asked.and_then(|asked| self.running.values().find(|task| client(task.id) == asked));
        let status = task.map(|task| {
            let now = Instant::now();
            let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            Box::new(TaskStatus {
                task: u64::from(task.id),
                options: task.options.clone(),
                elapsed_ns: nanos(now - task.started),
                remaining_ns: task.deadline.map(|deadline| nanos(deadline.saturating_duration_since(now))),
                config: task.config.clone(),
                pid: task.pid,
                uid: task.uid.0,
                progress,
                ended,
                ended_left_out: 0,
                others: others.into_iter().filter(|other| *other != task.id).map(u64::from).collect(),
            })
        });
        effects.answers.push((requester, TaskResponse::Status(status)));
    }

    /// Handles the core's responses to a task.
    pub fn handle_response(&mut self, to: ClientId, response: SessionResponse, effects: &mut Effects) {
        let Some(task) = self.running.values_mut().find(|task| client(task.id) == to) else {
            return;
        };
        match (response, task.phase) {
            (SessionResponse::StartTracing(Ok(())), Phase::Starting(requester)) => {
                task.phase = Phase::Recording;
                let uid = task.uid;
                self.unreported.retain(|unreported| unreported.uid != uid);
                task.started = Instant::now();
                task.deadline =
                    task.options.duration_ns.map(|nanos| task.started + Duration::from_nanos(nanos));
                if !task.options.triggers.is_empty() {
                    effects.events.push(Event::WatchAlert { client: to });
                }
                effects.answers.push((requester, TaskResponse::Start(Ok(u64::from(task.id)))));
            }
            (SessionResponse::StartTracing(Err(error)), Phase::Starting(requester)) => {
                let failure = failure(TaskError::Start, format!("{error:?}"));
                effects.answers.push((requester, TaskResponse::Start(Err(failure))));
                task.phase = Phase::Ending;
                effects.events.push(Event::ClientClosed { client: to });
            }
            (SessionResponse::StopTracing(result), _) => {
                match result {
                    Ok(result) => task.result = result,
                    Err(error) => task.failure = Some(format!("it could not be stopped: {error:?}")),
                }
                effects.events.push(Event::ClientClosed { client: to });
            }
            (SessionResponse::WatchAlert(alert), _) => {
                if alert.dropped > 0 {
                    let (id, dropped) = (task.id, alert.dropped);
                    log(&format!("task {id}: dropped {dropped} alerts that came too fast"));
                }
                if task.options.triggers.iter().any(|trigger| trigger.alert == alert.name) {
                    task.end_by(alert, effects);
                } else {
                    effects.events.push(Event::WatchAlert { client: to });
                }
            }
            _ => {}
        }
    }

    /// Ends a task whose time is over.
    pub fn handle_time(&mut self, now: Instant, effects: &mut Effects) {
        let is_due = |task: &&mut Task| task.deadline.is_some_and(|deadline| deadline <= now);
        self.running.values_mut().filter(is_due).for_each(|task| task.stop(effects));
    }

    /// The file of a task is complete, or could not be written.
    pub fn finish(&mut self, id: u32, effects: &mut Effects) {
        let Some(mut task) = self.running.remove(&id) else {
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
                let (triggered, file) = (task.triggered.clone(), task.config.file);
                Ok(TaskEnd { options: task.options, result: task.result, triggered, file })
            }
        };
        if let Err(failure) = &result {
            log(&format!("task {}: {}", task.id, failure.refusal));
        }
        let has_discarded = !task.aborting.is_empty();
        if task.ending.is_empty() && !has_discarded {
            let (id, uid, end) = (task.id, task.uid, result.clone());
            // Of this user: others have theirs.
            let is_theirs = |unreported: &UnreportedEnd| unreported.uid == uid;
            if self.unreported.iter().filter(|unreported| is_theirs(unreported)).count() >= MAX_UNREPORTED
                && let Some(oldest) = self.unreported.iter().position(is_theirs)
            {
                self.unreported.remove(oldest);
            }
            self.unreported.push_back(UnreportedEnd { id, uid, end, since: Instant::now() });
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
            let options = StopOptions { write_results: true };
            effects.events.push(Event::Stop { client: client(self.id), options });
        }
    }
}
