//! A running recording: handles everything that can happen during it, one event at a time, while the archive
//! is written into its file, here or by the manager.

use super::destination::Sink;
use super::lending::{Arrival, Arrived, Lent};
use super::limited::{LeftOut, Limited};
use crate::command::RecordedCommand;
use crate::connection::{Connection, Received, SessionChannel, system};
use crate::exit::Failure;
use crate::signals;
use crate::verify::Expected;
use rustix::process::{Resource, getrlimit};
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_archive::confirm::Confirmer;
use trace_format::shown::Shown;
use trace_protocol::controller::{
    FileCount, ProviderStats, SessionRequest, SessionResponse, TraceConfig, Untraced,
};
use zx_sim::{Error, Event, ProcessFd, Signals, Socket, WaitSet};

const KEY_SESSION: u64 = 0;
const KEY_OUTPUT: u64 = 1;
const KEY_SIGNAL: u64 = 2;
const KEY_COMMAND: u64 = 3;
const KEY_NEWS: u64 = 4;
const KEY_COMPRESSED: u64 = 5;
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks read at once, so that no other source waits long.
const CHUNKS_AT_ONCE: usize = 16;
/// Signals within this time of another count as one.
const SAME_INTERRUPT: Duration = Duration::from_millis(100);
/// How long a manager may be silent after the user asked to stop.
const SILENCE: Duration = Duration::from_secs(3);
/// How often the manager is asked to respond then. Of a longer wait no more counts as silence: this process
/// may have been delayed itself.
pub const ASK_INTERVAL: Duration = Duration::from_millis(500);
/// How often to check how much of a pipe was read.
const PIPE_INTERVAL: Duration = Duration::from_millis(10);

/// Why nothing more comes, if there is no other reason.
const MANAGER_GONE: &str = "the trace manager is gone";

/// An event of a recording.
#[derive(Debug)]
pub enum Happening {
    /// The manager sent a response.
    Response(SessionResponse),
    /// A message about a program that the user should read at once.
    Warning(String),
    /// The manager has closed the session: it is dead, or has refused; or writing the archive has failed.
    ManagerGone,
    /// The archive is complete.
    OutputEnded,
    /// The command has ended.
    CommandEnded,
    /// The user wants to stop.
    Signal,
    /// A byte came through [`Recording::news`].
    News,
    /// The deadline has passed.
    Timeout,
}

/// A session whose archive is written into a file as it arrives.
pub struct Recording<'a> {
    session: Option<SessionChannel>,
    output: Option<Socket>,
    arrival: Arrival,
    sink: Sink<'a>,
    written: u64,
    /// The same without what was dropped.
    in_sink: u64,
    confirmer: Confirmer,
    /// Bytes that were confirmed as written: for a pipe, those that were read from it.
    confirmed: u64,
    /// The socket has no room for the last confirmation.
    is_confirmer_full: bool,
    /// The manager has written all of the file.
    is_complete: bool,
    /// Limits the size of the archive.
    limited: Option<Limited>,
    /// The requested categories, compared with those of programs.
    expected: Expected,
    /// That was done since the command was started.
    was_compared: bool,
    /// Requests for progress that have not been answered yet.
    unanswered: u32,
    command: Option<ProcessFd>,
    signals: Socket,
    news: (Socket, Socket),
    was_terminated: Arc<AtomicBool>,
    /// How often the user has asked to stop.
    interrupts: usize,
    /// When the user last asked.
    interrupted: Option<Instant>,
    /// How long this process has waited since the manager last showed a sign of life.
    silence: Duration,
    waits: WaitSet,
    happened: VecDeque<Happening>,
    /// Why writing the archive failed.
    failure: Option<String>,
    chunk: Vec<u8>,
    /// The file, if the manager may be writing it. Dropped last: it waits until the manager does not.
    lent: Option<Lent>,
}

impl<'a> Recording<'a> {
    /// Sets up a session. From here on signals are reported as events.
    pub fn begin(
        connection: &Connection,
        config: TraceConfig,
        mut sink: Sink<'a>,
        max_bytes: Option<u64>,
        expected: Expected,
    ) -> Result<Self, Failure> {
        let failed = |error: Error| system(&error);
        let (signals, writer) = Socket::pair().map_err(failed)?;
        let signal_failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
        let was_terminated = Arc::new(AtomicBool::new(false));
        let ending = signals::ending();
        for signal in [SIGTERM, SIGHUP].into_iter().filter(|signal| ending.contains(signal)) {
            signal_hook::flag::register(signal, was_terminated.clone()).map_err(signal_failed)?;
        }
        for signal in ending {
            let writer = OwnedFd::from(writer.duplicate().map_err(failed)?);
            signal_hook::low_level::pipe::register(signal, writer).map_err(signal_failed)?;
        }
        // What is limited is counted here, limits of this process are not the manager's, and that writes only
        // what is named.
        let is_unlimited = max_bytes.is_none() && getrlimit(Resource::Fsize).current.is_none();
        let lend = sink.lend().filter(|_| is_unlimited && config.file.is_some());
        let file = lend.as_ref().map(|(file, _)| file.as_fd());
        let (session, output) = connection.initialize(config, file)?;
        let (arrival, lent) = match lend {
            Some((_, lending)) => {
                (Arrival::Unknown(Vec::new()), Some(lending.begin(output.duplicate().map_err(failed)?)))
            }
            None => (Arrival::Archive, None),
        };
        let waits = WaitSet::new().map_err(failed)?;
        let wanted = Signals::READABLE | Signals::PEER_CLOSED;
        waits.add(&session, KEY_SESSION, wanted).map_err(failed)?;
        waits.add(&output, KEY_OUTPUT, wanted).map_err(failed)?;
        waits.add(&signals, KEY_SIGNAL, Signals::READABLE).map_err(failed)?;
        let news = Socket::pair().map_err(failed)?;
        waits.add(&news.0, KEY_NEWS, Signals::READABLE).map_err(failed)?;
        if let Some(compressed) = sink.news() {
            waits.add(compressed, KEY_COMPRESSED, Signals::READABLE).map_err(failed)?;
        }
        Ok(Self {
            session: Some(session),
            output: Some(output),
            arrival,
            sink,
            written: 0,
            in_sink: 0,
            confirmer: Confirmer::default(),
            confirmed: 0,
            is_confirmer_full: false,
            is_complete: false,
            limited: max_bytes.map(Limited::new),
            expected,
            was_compared: false,
            unanswered: 0,
            command: None,
            signals,
            news,
            was_terminated,
            interrupts: 0,
            interrupted: None,
            silence: Duration::ZERO,
            waits,
            happened: VecDeque::new(),
            failure: None,
            chunk: vec![0; CHUNK_BYTES],
            lent,
        })
    }

    /// Also waits for a command.
    pub fn watch(&mut self, command: Option<&mut RecordedCommand>) -> Result<(), Failure> {
        self.command = command.and_then(RecordedCommand::take_process);
        if let Some(process) = &self.command {
            let added = self.waits.add(process, KEY_COMMAND, Signals::READABLE);
            added.map_err(|error| system(&error))?;
        }
        Ok(())
    }

    /// Each byte that is written into it is a [`Happening::News`].
    pub fn news(&self) -> Result<Socket, Failure> {
        self.news.1.duplicate().map_err(|error| system(&error))
    }

    /// A request for progress has not been answered yet.
    pub fn waits_for_answer(&self) -> bool {
        self.unanswered > 0
    }

    /// Sends a request to the manager.
    pub fn request(&mut self, request: SessionRequest) -> Result<(), Failure> {
        self.unanswered += u32::from(matches!(request, SessionRequest::GetProgress));
        match &mut self.session {
            // A manager that is gone shows soon enough.
            Some(session) => session.request(request).or(Ok(())),
            // Nothing else will happen: the caller that waits for the answer learns that.
            None => {
                self.happened.push_back(Happening::ManagerGone);
                Ok(())
            }
        }
    }

    /// The last signal came to this process alone, not from the terminal.
    pub fn was_terminated(&self) -> bool {
        self.was_terminated.swap(false, Ordering::Relaxed)
    }

    /// The next thing that happens, until a deadline.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Happening, Failure> {
        let mut events = Vec::new();
        loop {
            if let Some(happening) = self.happened.pop_front() {
                return Ok(happening);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Happening::Timeout);
            }
            self.wait(&mut events, deadline)?;
            for event in &events {
                match event.key {
                    KEY_SESSION => self.read_session()?,
                    KEY_OUTPUT => self.read_output()?,
                    KEY_SIGNAL => self.read_signals(),
                    KEY_NEWS => self.read_news(),
                    // It is confirmed already.
                    KEY_COMPRESSED => {}
                    // Closed with it, it is no longer waited for.
                    _ if self.command.take().is_some() => self.happened.push_back(Happening::CommandEnded),
                    _ => {}
                }
            }
        }
    }

    /// Waits for an event, and meanwhile confirms what was read of a pipe.
    fn wait(&mut self, events: &mut Vec<Event>, deadline: Option<Instant>) -> Result<(), Failure> {
        let next_look = || Instant::now() + PIPE_INTERVAL;
        let look = (self.output.is_some() && self.confirmed < self.written).then(next_look);
        let deadline = deadline.into_iter().chain(look).min();
        let begin = Instant::now();
        self.waits.wait(events, deadline).map_err(|error| system(&error))?;
        self.silence += begin.elapsed().min(ASK_INTERVAL);
        self.confirm();
        Ok(())
    }

    /// Confirms how much of the archive is written.
    //= docs/protocol.md#confirmations
    fn confirm(&mut self) {
        if let Err(error) = self.sink.take_news()
            && self.output.is_some()
        {
            return self.fail(format!("cannot write the trace: {error}"));
        }
        let read = self.written.saturating_sub(self.sink.unread());
        self.confirmed = self.confirmed.max(read);
        if self.confirmed < self.written && self.sink.is_closed() {
            self.fail("cannot write the trace: its reader is gone".to_owned());
        }
        let (Some(output), Arrival::Archive) = (&self.output, &self.arrival) else { return };
        let is_full = !self.confirmer.confirm(output, self.confirmed);
        if is_full != self.is_confirmer_full {
            self.is_confirmer_full = is_full;
            let mut wanted = Signals::READABLE | Signals::PEER_CLOSED;
            wanted.set(Signals::WRITABLE, is_full);
            // If that is not possible now, it is confirmed with the next data.
            let _ = self.waits.modify(output, KEY_OUTPUT, wanted);
        }
    }

    /// Handles a failure to write the archive. The manager sees the closed socket, and keeps unconfirmed data
    /// in the buffers.
    fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
        self.close_output();
        self.session = None;
        self.happened.push_back(Happening::ManagerGone);
    }

    fn read_news(&mut self) {
        let mut bytes = [0; 16];
        if let Ok(count) = self.news.0.read(&mut bytes) {
            self.happened.extend((0..count).map(|_| Happening::News));
        }
    }

    fn read_session(&mut self) -> Result<(), Failure> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        match session.receive()? {
            Received::Message(_, response) => {
                self.silence = Duration::ZERO;
                self.take_response(response);
            }
            Received::Nothing => {}
            Received::Closed => {
                self.session = None;
                self.happened.push_back(Happening::ManagerGone);
            }
        }
        Ok(())
    }

    fn take_response(&mut self, response: SessionResponse) {
        let happening = match response {
            SessionResponse::OnUntraced(Untraced { name, pid, reason }) => {
                let (name, reason) = (Shown(&name), Shown(&reason));
                Happening::Warning(format!("trace: warning: {name} (pid {pid}) is not recorded: {reason}"))
            }
            SessionResponse::OnKnownCategories(categories) => {
                self.expected.add(categories);
                // The first program that answers after the command was started is usually the command.
                let is_first = self.command.is_some() && !std::mem::replace(&mut self.was_compared, true);
                let warnings = if is_first { self.expected.warnings() } else { Vec::new() };
                return self.happened.extend(warnings.into_iter().map(Happening::Warning));
            }
            response => {
                let is_progress = matches!(response, SessionResponse::Progress(_));
                self.unanswered = self.unanswered.saturating_sub(u32::from(is_progress));
                Happening::Response(response)
            }
        };
        self.happened.push_back(happening);
    }

    /// Copies data from the archive's socket into the file, or reads how far the manager has written it.
    fn read_output(&mut self) -> Result<(), Failure> {
        for _ in 0..CHUNKS_AT_ONCE {
            let Some(output) = &self.output else {
                return Ok(());
            };
            match output.read(&mut self.chunk) {
                Ok(0) | Err(Error::PeerClosed) => self.end_output(),
                Ok(length) => {
                    self.silence = Duration::ZERO;
                    self.take_in(length);
                }
                Err(Error::ShouldWait) => break,
                Err(error) => return Err(system(&error)),
            }
        }
        self.confirm();
        Ok(())
    }

    /// Nothing more comes out of the socket.
    fn end_output(&mut self) {
        if let Some(lent) = self.lent.take() {
            lent.end();
        }
        if matches!(self.arrival, Arrival::Counts(_)) && !self.is_complete {
            self.failure.get_or_insert(MANAGER_GONE.to_owned());
        }
        self.close_output();
        self.happened.push_back(Happening::OutputEnded);
    }

    fn close_output(&mut self) {
        if let Some(output) = self.output.take() {
            // Another handle may keep it open.
            let _ = self.waits.remove(&output);
        }
    }

    /// Takes in what was read from the socket.
    fn take_in(&mut self, length: usize) {
        let chunk = &self.chunk[..length];
        match self.arrival.take_in(chunk) {
            Arrived::Nothing => {}
            Arrived::More => self.write(None, length),
            Arrived::First(bytes) => {
                if let Some(lent) = self.lent.take() {
                    lent.end();
                }
                let length = bytes.len();
                self.write(Some(bytes), length);
            }
            Arrived::Counts(counts) => counts.into_iter().for_each(|count| self.take_count(count)),
        }
    }

    /// Writes bytes of the archive into its file, those given or those in the chunk.
    fn write(&mut self, bytes: Option<Vec<u8>>, length: usize) {
        let bytes = bytes.map_or(Cow::Borrowed(&self.chunk[..length]), Cow::Owned);
        let bytes = match &mut self.limited {
            Some(limited) => Cow::Owned(limited.take(&bytes)),
            None => bytes,
        };
        let written = self.sink.check(self.in_sink).and_then(|()| self.sink.write_all(&bytes));
        self.in_sink += bytes.len() as u64;
        match written {
            Ok(()) => self.written += length as u64,
            Err(error) => self.fail(format!("cannot write the trace: {error}")),
        }
    }

    /// The manager reports how far it has written the file.
    //= docs/protocol.md#files-that-are-handed-over
    fn take_count(&mut self, count: FileCount) {
        let (bytes, is_complete) = match count {
            FileCount::Written(bytes) => (bytes, false),
            FileCount::Complete(bytes) => (bytes, true),
            FileCount::Failed { errno } => {
                // What is wrong with the file shows here, too.
                let error = match (self.sink.check(self.in_sink), i32::try_from(errno)) {
                    (Err(error), _) => error,
                    (Ok(()), Ok(errno @ 1..)) => std::io::Error::from_raw_os_error(errno),
                    (Ok(()), _) => std::io::Error::other("the trace manager does not write it any more"),
                };
                return self.fail(format!("cannot write the trace: {error}"));
            }
        };
        (self.written, self.in_sink, self.confirmed) = (bytes, bytes, bytes);
        self.is_complete |= is_complete;
    }

    fn read_signals(&mut self) {
        let mut signals = [0; 16];
        if self.signals.read(&mut signals).is_ok() {
            let now = Instant::now();
            // `timeout` signals the process, and right after that its group.
            let is_same = self.interrupted.is_some_and(|before| now < before + SAME_INTERRUPT);
            if self.interrupted.replace(now).is_none() {
                // Until now the manager had nothing to answer, so its silence means nothing.
                self.silence = Duration::ZERO;
            }
            if !is_same {
                self.interrupts += 1;
                self.happened.push_back(Happening::Signal);
            }
        }
    }

    /// The user wants to stop, and the manager shows no sign of life.
    pub fn is_in_vain(&self) -> bool {
        self.interrupted.is_some() && self.silence > SILENCE
    }

    /// The user has asked to stop more than once.
    pub fn has_given_up(&self) -> bool {
        self.interrupts > 1
    }

    /// Bytes of the archive that have arrived.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The requested categories, and those that programs know.
    pub fn take_expected(&mut self) -> Expected {
        std::mem::take(&mut self.expected)
    }

    /// From here on the written data is kept, even if something fails.
    pub fn keep(&mut self) {
        self.sink.keep();
    }

    /// Why nothing more comes, after [`Happening::ManagerGone`].
    pub fn why_gone(&self) -> &str {
        self.failure.as_deref().unwrap_or(MANAGER_GONE)
    }

    /// Ends the session and reads the rest of the archive. Returns the dropped records, and removes them from
    /// the statistics.
    pub fn finish(
        mut self,
        connection: &mut Connection,
        stats: &mut [ProviderStats],
    ) -> Result<LeftOut, Failure> {
        self.session = None;
        // It had nothing to answer while the command was waited for.
        self.silence = Duration::ZERO;
        // A signal that has ended the command before does not end this wait, too.
        let before = self.interrupts;
        while self.output.is_some() {
            self.happened.clear();
            let mut events = Vec::new();
            self.wait(&mut events, Some(Instant::now() + ASK_INTERVAL))?;
            self.read_signals();
            if self.interrupts > before && self.has_given_up() {
                return Err(super::aborted());
            }
            // The manager is silent while it waits for programs that do not stop.
            if self.is_in_vain() {
                if !connection.is_alive() {
                    return Err(super::frozen());
                }
                self.silence = Duration::ZERO;
            }
            self.read_output()?;
        }
        let written = match &mut self.limited {
            Some(limited) if self.failure.is_none() => self.sink.write_all(&limited.accounts()),
            _ => Ok(()),
        };
        if self.failure.is_none()
            && let Err(error) =
                written.and_then(|()| self.sink.check(self.in_sink)).and_then(|()| self.sink.finish())
        {
            self.failure = Some(format!("cannot write the trace: {error}"));
        }
        match (self.failure, self.limited) {
            (Some(failure), _) => Err(Failure::new(failure)),
            (None, None) => Ok(LeftOut::default()),
            (None, Some(limited)) => {
                limited.correct(stats);
                Ok(limited.left_out())
            }
        }
    }
}
