//! A recording, on a thread of its own.

use crate::answers::Answers;
use crate::config::Config;
use crate::connection::Connection;
use crate::destination::{Content, Destination, Unmade, Worth};
use crate::error::{Error, Result};
use crate::limited;
use crate::output::{self, Output};
use crate::pending::{Completer, Pending, of_parent, pending};
use crate::session::{Happening, LONGEST_SILENCE, Session};
use crate::sink::Sink;
use crate::snapshot::Snapshot;
use crate::thread::{run_beside, spawn_with};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};
use trace_protocol::controller::{
    Alert, ProviderProgress, ProviderStats, SessionRequest, SessionResponse, StartOptions, StopOptions,
};
use zx_sim::guest::ClosedInChildren;
use zx_sim::guest::children::generation;
use zx_sim::{WakeReceiver, WakeSender, wake_pair};

/// How long a manager may exceed its own timeouts, and be silent at the end.
const GRACE: Duration = Duration::from_secs(10);
/// Where the program has closed what wakes the thread, it looks this often whether there are commands.
const COMMANDS_INTERVAL: Duration = Duration::from_millis(50);
const KEY_COMMANDS: u64 = 0;

/// What was recorded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Of each program that took part, or was to.
    pub providers: Vec<ProviderStats>,
    /// The file, if the archive went into one.
    pub path: Option<PathBuf>,
    /// The size of the file, or of what was written, in bytes.
    pub bytes: u64,
    /// There was no event, and a file with the name stays as it was.
    pub is_unchanged: bool,
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
    /// Before what it names, so that it is dropped first.
    _closed_in_children: ClosedInChildren,
    waker: WakeSender,
    /// The process that has the thread: a forked child has not.
    process: u32,
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
        if !self.is_own() {
            return of_parent();
        }
        let (completer, answer) = pending();
        if let Some(commands) = &self.commands {
            // A recording that is over drops it, which answers it.
            let _ = commands.send(command(completer));
            self.waker.wake();
        }
        answer
    }
}

impl Recording {
    fn is_own(&self) -> bool {
        self.process == generation()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let commands = self.commands.take();
        if self.is_own() {
            drop(commands);
            self.waker.wake();
        } else {
            // A thread of the parent's may have had it locked.
            std::mem::forget(commands);
        }
    }
}

/// Copies the buffers of a recording, or their end.
pub(crate) fn snapshot(connection: &mut Connection, snapshot: &Snapshot, output: Output) -> Result<Report> {
    let mut destination = output.open(Content::Copy)?;
    let mut counted = Counted { to: destination.sink()?, bytes: 0 };
    let providers = match snapshot.last {
        None => connection.snapshot(snapshot.program.as_deref(), &mut counted)?,
        Some(_) => {
            let mut taken = snapshot.take(connection)?;
            let coverage = taken.write(&mut counted)?;
            for provider in &mut taken.providers {
                let found = coverage.iter().find(|found| found.provider.0 == provider.id);
                provider.events_archived = Some(found.map_or(0, |found| found.events));
            }
            taken.providers
        }
    };
    counted.to.finish().map_err(Error::Write)?;
    complete(destination, providers, counted.bytes)
}

/// Gives the file of an archive its name.
fn complete(mut destination: Destination, providers: Vec<ProviderStats>, written: u64) -> Result<Report> {
    let mut report = Report { providers, path: None, bytes: written, is_unchanged: false };
    let has_events = report.events() > 0 || destination.has_events();
    let worth = if has_events { Worth::Events } else { Worth::NoEvents };
    let finished = destination.finish(worth, output::convert);
    let finished = finished.map_err(|Unmade { error, archive }: Unmade<Error>| match archive {
        Some(path) => Error::Incomplete { path, source: Box::new(error) },
        None => error,
    })?;
    report.is_unchanged = finished.is_unchanged;
    report.bytes = finished.bytes.unwrap_or(if finished.is_unchanged { 0 } else { written });
    report.path = finished.path;
    Ok(report)
}

struct Counted {
    to: Sink,
    bytes: u64,
}

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Sets a session up, and starts it, on a thread of its own: when it is its turn. The other end learns when
/// the manager knows of it.
pub(crate) fn begin(
    directory: PathBuf,
    config: Config,
    output: Output,
    its_turn: Receiver<Sender<()>>,
) -> Pending<Recording> {
    let (completer, answer) = pending();
    let made = config.check().and_then(|()| Ok(wake_pair()?));
    let (waker, wakes) = match made {
        Ok(pair) => pair,
        Err(error) => {
            completer.complete(Err(error));
            return answer;
        }
    };
    let (commands, to_do) = channel();
    let recording = Recording {
        commands: Some(commands),
        _closed_in_children: ClosedInChildren::new(&waker),
        waker,
        process: generation(),
    };
    spawn_with("trace-recording", vec![wakes.into_fd()], completer, move |completer, kept| {
        let turn = its_turn.recv();
        match prepare(&directory, config, output, kept, to_do) {
            Ok(work) => {
                drop(turn);
                work.run(recording, completer);
            }
            Err(error) => {
                run_beside(move || drop(recording));
                completer.complete(Err(error));
            }
        }
    });
    answer
}

fn prepare(
    directory: &Path,
    config: Config,
    output: Output,
    kept: Vec<OwnedFd>,
    commands: Receiver<Command>,
) -> Result<Work> {
    let Config { mut config, max_bytes, .. } = config;
    let mut destination = output.open(Content::Recording)?;
    (config.confirms, config.file) = (true, destination.archive_file());
    let start_wait = Duration::from_millis(config.start_timeout_milliseconds).saturating_add(GRACE);
    let mut sink = destination.sink()?;
    if let Some(bytes) = max_bytes {
        sink.limit(bytes);
    }
    let connection = Connection::find_in(directory)?.ok_or(Error::Closed)?;
    let session = Session::begin(&connection, config, sink)?;
    let wakes = kept.into_iter().next().map(WakeReceiver::from_fd);
    wakes.iter().try_for_each(|wakes| session.watch(wakes, KEY_COMMANDS))?;
    let answers = Answers::default();
    Ok(Work { session, destination, commands, wakes, start_wait, max_bytes, answers })
}

/// A recording's thread.
struct Work {
    session: Session,
    destination: Destination,
    commands: Receiver<Command>,
    /// None when the program has closed the other end.
    wakes: Option<WakeReceiver>,
    start_wait: Duration,
    max_bytes: Option<u64>,
    answers: Answers,
}

impl Work {
    fn run(mut self, recording: Recording, completer: Completer<Recording>) {
        if let Err(error) = self.start() {
            let error = self.abandon(error);
            // Its waker is in the program's table.
            run_beside(move || drop(recording));
            return completer.complete(Err(error));
        }
        self.destination.keep_unless_finished();
        completer.complete(Ok(recording));
        let (stop, ended) = match self.record() {
            Ok(stop) => {
                let result = self.stop();
                (stop, result)
            }
            Err(error) => (None, Err(error)),
        };
        let Self { session, destination, commands, answers, .. } = self;
        // Whatever waits for one of these learns that the recording is over, before it is asked to end.
        drop(answers);
        let report = match ended {
            Ok(providers) => finish(session, providers, destination),
            Err(error) => Err(incomplete(session, destination, error)),
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
                Happening::Ready(_) => self.reset_wakes()?,
                Happening::Response(_) | Happening::OutputEnded => {}
            }
        }
    }

    /// Takes in that there are commands, or that no wakes come any more.
    fn reset_wakes(&mut self) -> Result<()> {
        if let Some(wakes) = self.wakes.take_if(|wakes| !wakes.reset()) {
            self.session.unwatch(&wakes)?;
        }
        Ok(())
    }

    /// Records until that is to end; returns what is answered then, if anything waits for it.
    fn record(&mut self) -> Result<Option<Completer<Report>>> {
        let begun = Instant::now();
        let mut look = self.max_bytes.map(|_| begun + limited::INTERVAL);
        loop {
            let answers = [self.answers.flushes.deadline(), self.answers.progress.deadline()];
            let commands = self.wakes.is_none().then(|| Instant::now() + COMMANDS_INTERVAL);
            let deadline = answers.into_iter().chain([look, commands]).flatten().min();
            match self.session.next(deadline)? {
                Happening::Response(SessionResponse::Progress(progress)) => {
                    let held = progress.iter().map(|provider| provider.held).fold(0, u64::saturating_add);
                    let all = self.session.written().saturating_add(held);
                    if self.max_bytes.is_some_and(|limit| limited::is_near(limit, all, begun.elapsed())) {
                        return Ok(None);
                    }
                    self.answers.progress.answer(Ok(progress));
                }
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
                    if let Some(end) = self.take_commands()? {
                        return Ok(end);
                    }
                    if look.is_some_and(|look| look <= Instant::now()) {
                        look = Some(Instant::now() + limited::INTERVAL);
                        if !self.answers.progress.is_full() {
                            self.session.request(SessionRequest::GetProgress)?;
                            self.answers.progress.push(None);
                        }
                    }
                }
                Happening::OutputEnded => {}
            }
        }
    }

    /// Takes what was asked for; not none if the recording is to end.
    fn take_commands(&mut self) -> Result<Option<Option<Completer<Report>>>> {
        self.reset_wakes()?;
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
        if let Some(wakes) = self.wakes.take() {
            self.session.unwatch(&wakes)?;
        }
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

    /// Ends a recording that has not begun. What a program had recorded before, and handed over, is nowhere
    /// else.
    fn abandon(self, error: Error) -> Error {
        let Self { session, mut destination, .. } = self;
        if destination.has_events() {
            return incomplete(session, destination, error);
        }
        drop(session);
        destination.discard();
        error
    }
}

/// Reads the rest of the archive, and gives it its name.
fn finish(
    mut session: Session,
    mut providers: Vec<ProviderStats>,
    destination: Destination,
) -> Result<Report> {
    session.end();
    session.reset_silence();
    while session.has_output() {
        match session.next(Some(Instant::now() + LONGEST_SILENCE)) {
            Ok(Happening::Timeout) if session.silence() >= GRACE => {
                return Err(incomplete(session, destination, Error::NoAnswer));
            }
            Ok(_) => {}
            Err(error) => return Err(incomplete(session, destination, error)),
        }
    }
    let bytes = session.written();
    match session.finish() {
        Ok(sink) => {
            sink.left_out(&mut providers);
            complete(destination, providers, sink.limited_bytes().unwrap_or(bytes))
        }
        Err(error) => Err(keep(destination, error)),
    }
}

/// Keeps what has arrived of a recording that has failed.
fn incomplete(session: Session, destination: Destination, error: Error) -> Error {
    // Waits until the manager does not write it any more.
    drop(session);
    keep(destination, error)
}

fn keep(destination: Destination, error: Error) -> Error {
    let place = destination.place().map(Path::to_owned);
    let error = match (error, place) {
        (Error::Write(source), Some(path)) => Error::Output { path, source },
        (error, _) => error,
    };
    match destination.keep() {
        // It may have been deleted meanwhile.
        Ok(Some(path)) if path.exists() => Error::Incomplete { path, source: Box::new(error) },
        Ok(_) | Err(_) => error,
    }
}
