//! A recording, on a thread of its own.

use crate::client::spawn_with;
use crate::config::Config;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::output::{OpenOutput, Output};
use crate::pending::{Completer, Pending, pending};
use crate::session::{Happening, LONGEST_SILENCE, Session};
use crate::snapshot::Snapshot;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};
use trace_protocol::controller::{
    Alert, ProviderProgress, ProviderStats, SessionRequest, SessionResponse, StartOptions, StopOptions,
};
use zx_sim::Waker;

/// How long a manager may exceed its own timeouts, and be silent at the end.
const GRACE: Duration = Duration::from_secs(10);
/// How long it may take to answer a request while it records.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Requests of one kind that wait for the manager at once.
const MAX_UNANSWERED: usize = 16;
const KEY_COMMANDS: u64 = 0;

/// What was recorded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Of each program that took part, or was to.
    pub providers: Vec<ProviderStats>,
    /// The file, if the archive went into one.
    pub path: Option<PathBuf>,
    /// The size of the archive in bytes.
    pub bytes: u64,
}

impl Report {
    /// Events in the archive.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.providers.iter().filter_map(|provider| provider.events_archived).sum()
    }

    /// Records that found no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.providers.iter().filter_map(|provider| provider.records_dropped).sum()
    }

    /// No program has lost anything, or was not recorded.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.providers.iter().any(has_lost)
    }
}

/// Whether data of a program is missing.
#[must_use]
pub fn has_lost(provider: &ProviderStats) -> bool {
    provider.records_dropped.is_some_and(|records| records > 0) || !provider.problem.is_empty()
}

enum Command {
    Stop(Completer<Report>),
    Flush(Completer<()>),
    Progress(Completer<Vec<ProviderProgress>>),
    Alert(Completer<Alert>),
}

/// A running recording. When this is dropped, it ends as by [`Recording::stop`], which is not waited for.
//= docs/client.md#a-library-that-records
#[derive(Debug)]
pub struct Recording {
    commands: Option<Sender<Command>>,
    waker: Arc<Waker>,
}

impl Recording {
    /// Ends the recording: answered when its archive is complete.
    ///
    /// # Errors
    /// [`Error::Incomplete`] with the reason, if something had arrived.
    pub fn stop(self) -> Pending<Report> {
        self.request(Command::Stop)
    }

    /// Has programs hand over what they have recorded so far, in a stream; answered when they were asked. In
    /// other modes they keep it.
    ///
    /// # Errors
    /// [`Error::Over`] if the recording has ended, [`Error::Flush`] if it is not possible.
    pub fn flush(&self) -> Pending<()> {
        self.request(Command::Flush)
    }

    /// How far each program is.
    ///
    /// # Errors
    /// [`Error::Over`] if the recording has ended.
    pub fn progress(&self) -> Pending<Vec<ProviderProgress>> {
        self.request(Command::Progress)
    }

    /// The next alert that a program raises. The manager keeps some until they are asked for.
    ///
    /// # Errors
    /// [`Error::Over`] if the recording has ended.
    pub fn alert(&self) -> Pending<Alert> {
        self.request(Command::Alert)
    }

    fn request<T>(&self, command: impl FnOnce(Completer<T>) -> Command) -> Pending<T> {
        let (completer, answer) = pending();
        if let Some(commands) = &self.commands {
            // A recording that is over drops it, which answers it.
            let _ = commands.send(command(completer));
            self.waker.wake();
        }
        answer
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.commands = None;
        self.waker.wake();
    }
}

/// Copies the buffers of a recording, or their end.
pub(crate) fn snapshot(connection: &mut Connection, snapshot: &Snapshot, output: Output) -> Result<Report> {
    let mut output = output.open()?;
    let mut counted = Counted { to: output.writer(), bytes: 0 };
    let taken = match snapshot.last {
        None => connection.snapshot(snapshot.program.as_deref(), &mut counted),
        Some(_) => snapshot.take(connection).and_then(|mut taken| {
            let coverage = taken.write(&mut counted)?;
            for provider in &mut taken.providers {
                let found = coverage.iter().find(|found| found.provider.0 == provider.id);
                provider.events_archived = Some(found.map_or(0, |found| found.events));
            }
            Ok(taken.providers)
        }),
    };
    let bytes = counted.bytes;
    match taken {
        Ok(providers) => Ok(Report { providers, path: output.complete()?, bytes }),
        Err(error) => {
            output.discard();
            Err(error)
        }
    }
}

struct Counted<'a> {
    to: &'a mut (dyn std::io::Write + Send),
    bytes: u64,
}

impl std::io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Sets a session up, and starts it on a thread of its own.
pub(crate) fn begin(
    connection: &mut Connection,
    config: Config,
    output: Output,
    completer: Completer<Recording>,
) {
    match prepare(connection, config, output) {
        Ok((work, recording)) => {
            spawn_with("trace-recording", completer, move |completer| work.run(recording, completer));
        }
        Err(error) => completer.complete(Err(error)),
    }
}

fn prepare(connection: &mut Connection, config: Config, output: Output) -> Result<(Work, Recording)> {
    config.check()?;
    let mut config = config.config;
    let output = output.open()?;
    let partial = output.partial();
    (config.confirms, config.file) = (true, output.named());
    let start_wait = Duration::from_millis(config.start_timeout_milliseconds).saturating_add(GRACE);
    let discard = || partial.iter().for_each(|path| drop(std::fs::remove_file(path)));
    let made = Session::begin(connection, config, output).and_then(|session| {
        let waker = Arc::new(Waker::new()?);
        session.watch(&*waker, KEY_COMMANDS)?;
        Ok((session, waker))
    });
    let (session, waker) = made.inspect_err(|_| discard())?;
    let (commands, to_do) = channel();
    let recording = Recording { commands: Some(commands), waker: waker.clone() };
    let answers = Answers::default();
    Ok((Work { session, commands: to_do, waker, partial, start_wait, answers }, recording))
}

/// The requests that were not answered.
#[derive(Default)]
struct Answers {
    flushes: Requests<()>,
    progress: Requests<Vec<ProviderProgress>>,
    alerts: VecDeque<Completer<Alert>>,
    /// The manager was asked for an alert.
    is_watching: bool,
    /// Came when nothing waited for it any more.
    early: Option<Alert>,
}

/// Requests of one kind, which are answered in their order: until when, and whether anything waits for the
/// answer.
struct Requests<T>(VecDeque<(Instant, Option<Completer<T>>)>);

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Requests<T> {
    fn push(&mut self, completer: Option<Completer<T>>) {
        self.0.push_back((Instant::now() + ANSWER_WAIT, completer));
    }

    fn answer(&mut self, answer: Result<T>) {
        if let Some((_, Some(completer))) = self.0.pop_front() {
            completer.complete(answer);
        }
    }

    /// The manager has as many as it may have: it hangs, and they would fill the channel.
    fn is_full(&self) -> bool {
        self.0.len() >= MAX_UNANSWERED
    }

    /// When the first of those has to be answered that something waits for.
    fn deadline(&self) -> Option<Instant> {
        self.0.iter().find(|(_, completer)| completer.is_some()).map(|(deadline, _)| *deadline)
    }

    /// Gives up those that should have been answered. Their answers may come all the same.
    fn give_up(&mut self, now: Instant) {
        for (_, completer) in self.0.iter_mut().take_while(|(deadline, _)| *deadline <= now) {
            if let Some(completer) = completer.take() {
                completer.complete(Err(Error::NoAnswer));
            }
        }
    }
}

/// A recording's thread.
struct Work {
    session: Session<OpenOutput>,
    commands: Receiver<Command>,
    waker: Arc<Waker>,
    partial: Option<PathBuf>,
    start_wait: Duration,
    answers: Answers,
}

impl Work {
    fn run(mut self, recording: Recording, completer: Completer<Recording>) {
        if let Err(error) = self.start() {
            let error = self.abandon(error);
            return completer.complete(Err(error));
        }
        completer.complete(Ok(recording));
        let (stop, ended) = match self.record() {
            Ok(stop) => {
                let result = self.stop();
                (stop, result)
            }
            Err(error) => (None, Err(error)),
        };
        let Self { session, commands, partial, answers, .. } = self;
        // Whatever waits for one of these learns that the recording is over, before it is asked to end.
        drop(answers);
        let report = match ended {
            Ok(providers) => finish(session, providers, partial),
            Err(error) => Err(incomplete(session, partial, error)),
        };
        // What failed before it was to end is reported then. All other requests are too late.
        let stop = stop.or_else(|| {
            commands.into_iter().find_map(|command| match command {
                Command::Stop(completer) => Some(completer),
                Command::Flush(_) | Command::Progress(_) | Command::Alert(_) => None,
            })
        });
        if let Some(stop) = stop {
            stop.complete(report);
        }
    }

    /// Waits until all providers record, or have timed out.
    fn start(&mut self) -> Result<()> {
        self.session.request(SessionRequest::StartTracing(StartOptions::default()))?;
        let deadline = Instant::now().checked_add(self.start_wait);
        loop {
            match self.session.next(deadline)? {
                Happening::Response(SessionResponse::StartTracing(Ok(()))) => return Ok(()),
                Happening::Response(SessionResponse::StartTracing(Err(error))) => {
                    return Err(Error::Start(format!("{error:?}").into()));
                }
                Happening::Response(SessionResponse::Refused(refusal)) => return Err(Error::Start(refusal)),
                Happening::ManagerGone => return Err(self.take_failure()),
                Happening::Timeout => return Err(Error::NoAnswer),
                Happening::Response(_) | Happening::OutputEnded | Happening::Ready(_) => {}
            }
        }
    }

    /// Records until that is to end; returns what is answered then, if anything waits for it.
    fn record(&mut self) -> Result<Option<Completer<Report>>> {
        loop {
            let deadline =
                self.answers.flushes.deadline().into_iter().chain(self.answers.progress.deadline());
            match self.session.next(deadline.min())? {
                Happening::Ready(_) => {
                    if let Some(end) = self.take_commands()? {
                        return Ok(end);
                    }
                }
                Happening::Response(response) => self.take_response(response)?,
                Happening::ManagerGone => return Err(self.take_failure()),
                Happening::Timeout => {
                    self.answers.flushes.give_up(Instant::now());
                    self.answers.progress.give_up(Instant::now());
                }
                Happening::OutputEnded => {}
            }
        }
    }

    /// Takes what was asked for; not none if the recording is to end.
    fn take_commands(&mut self) -> Result<Option<Option<Completer<Report>>>> {
        self.waker.reset();
        loop {
            match self.commands.try_recv() {
                Ok(Command::Stop(completer)) => return Ok(Some(Some(completer))),
                Ok(Command::Flush(completer)) if self.answers.flushes.is_full() => {
                    completer.complete(Err(Error::NoAnswer));
                }
                Ok(Command::Progress(completer)) if self.answers.progress.is_full() => {
                    completer.complete(Err(Error::NoAnswer));
                }
                Ok(Command::Flush(completer)) => {
                    self.session.request(SessionRequest::FlushBuffers)?;
                    self.answers.flushes.push(Some(completer));
                }
                Ok(Command::Progress(completer)) => {
                    self.session.request(SessionRequest::GetProgress)?;
                    self.answers.progress.push(Some(completer));
                }
                Ok(Command::Alert(completer)) => {
                    self.answers.alerts.push_back(completer);
                    self.watch_alerts()?;
                }
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => return Ok(Some(None)),
            }
        }
    }

    /// Delivers an alert that came early, and asks for one if something waits.
    fn watch_alerts(&mut self) -> Result<()> {
        let answers = &mut self.answers;
        while let Some(alert) = answers.early.take() {
            let Some(completer) = answers.alerts.pop_front() else {
                answers.early = Some(alert);
                return Ok(());
            };
            answers.early = completer.offer(alert);
        }
        if !answers.alerts.is_empty() && !answers.is_watching {
            answers.is_watching = true;
            self.session.request(SessionRequest::WatchAlert)?;
        }
        Ok(())
    }

    fn take_response(&mut self, response: SessionResponse) -> Result<()> {
        match response {
            SessionResponse::FlushBuffers(result) => {
                self.answers.flushes.answer(result.map_err(|error| Error::Flush(format!("{error:?}"))));
            }
            SessionResponse::Progress(progress) => {
                self.answers.progress.answer(Ok(progress));
            }
            SessionResponse::WatchAlert(alert) => {
                self.answers.is_watching = false;
                self.answers.early = Some(alert);
                self.watch_alerts()?;
            }
            SessionResponse::Refused(refusal) => return Err(Error::Refused(refusal)),
            _ => {}
        }
        Ok(())
    }

    /// Stops, and waits until the data of all providers has come.
    fn stop(&mut self) -> Result<Vec<ProviderStats>> {
        self.session.request(SessionRequest::StopTracing(StopOptions { write_results: true }))?;
        self.session.reset_silence();
        // Nothing can be asked for any more.
        self.session.unwatch(&*self.waker)?;
        loop {
            match self.session.next(Some(Instant::now() + LONGEST_SILENCE))? {
                Happening::Response(SessionResponse::StopTracing(Ok(result))) => {
                    return Ok(result.provider_stats);
                }
                Happening::Response(SessionResponse::StopTracing(Err(error))) => {
                    return Err(Error::Stop(format!("{error:?}")));
                }
                Happening::Response(response) => self.take_response(response)?,
                Happening::ManagerGone => return Err(self.take_failure()),
                // A manager that is alive answers this at once, even while it waits for providers.
                Happening::Timeout if self.session.silence() < GRACE => {
                    self.session.request(SessionRequest::GetProgress)?;
                    self.answers.progress.push(None);
                }
                Happening::Timeout => return Err(Error::NoAnswer),
                Happening::OutputEnded | Happening::Ready(_) => {}
            }
        }
    }

    fn take_failure(&mut self) -> Error {
        self.session.take_failure()
    }

    /// Ends a recording that has not begun.
    fn abandon(self, error: Error) -> Error {
        incomplete(self.session, self.partial, error)
    }
}

/// Reads the rest of the archive, and gives it its name.
fn finish(
    mut session: Session<OpenOutput>,
    providers: Vec<ProviderStats>,
    partial: Option<PathBuf>,
) -> Result<Report> {
    session.end();
    session.reset_silence();
    while session.has_output() {
        match session.next(Some(Instant::now() + LONGEST_SILENCE)) {
            Ok(Happening::Timeout) if session.silence() >= GRACE => {
                return Err(incomplete(session, partial, Error::NoAnswer));
            }
            Ok(_) => {}
            Err(error) => return Err(incomplete(session, partial, error)),
        }
    }
    let bytes = session.written();
    match session.finish() {
        Ok(output) => Ok(Report { providers, path: output.complete()?, bytes }),
        Err(error) => Err(keep(partial, bytes, error)),
    }
}

/// Keeps what has arrived of a recording that has failed.
fn incomplete(session: Session<OpenOutput>, partial: Option<PathBuf>, error: Error) -> Error {
    let written = session.written();
    // Waits until the manager does not write it any more.
    drop(session);
    keep(partial, written, error)
}

fn keep(partial: Option<PathBuf>, written: u64, error: Error) -> Error {
    let Some(path) = partial else {
        return error;
    };
    match std::fs::metadata(&path) {
        Ok(found) if found.len() > 0 || written > 0 => {}
        Ok(_) => {
            let _ = std::fs::remove_file(&path);
            return error;
        }
        // It was deleted meanwhile.
        Err(_) => return error,
    }
    Error::Incomplete { path, source: Box::new(error) }
}
