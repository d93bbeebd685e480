//! A running recording: everything that can happen during it, one event at a time. Its session takes the
//! archive; what is here are signals, the command, and limits.

use super::patience::{Patience, Shared};
use crate::connection::{Connection, system};
use crate::record::command::RecordedCommand;
use crate::record::verify::Expected;
use crate::shell::exit::Failure;
use crate::shell::signals;
use signal_hook::consts::{SIGHUP, SIGTERM};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_client::limited::LeftOut;
use trace_client::session::{Happening as SessionHappening, LONGEST_SILENCE, Session};
use trace_client::sink::Sink;
use trace_format::shown::Shown;
use trace_protocol::controller::{ProviderStats, SessionRequest, SessionResponse, TraceConfig, Untraced};
use zx_sim::{Error, ProcessFd, Socket};

const KEY_SIGNAL: u64 = 2;
const KEY_COMMAND: u64 = 3;
const KEY_NEWS: u64 = 4;
const KEY_COMPRESSED: u64 = 5;
/// Signals within this time of another count as one.
pub const SAME_INTERRUPT: Duration = Duration::from_millis(100);
/// How long a manager may be silent after the user asked to stop.
pub const SILENCE: Duration = Duration::from_secs(3);
/// How often the manager is asked to respond then.
pub const ASK_INTERVAL: Duration = LONGEST_SILENCE;

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
pub struct Recording {
    session: Session,
    patience: Arc<Patience>,
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
    happened: VecDeque<Happening>,
}

impl Recording {
    /// Sets up a session. From here on signals are reported as events.
    pub fn begin(
        connection: &Connection,
        config: TraceConfig,
        mut sink: Sink,
        expected: Expected,
    ) -> Result<Self, Failure> {
        let failed = |error: Error| system(&error);
        let (signals, writer) = Socket::pair().map_err(failed)?;
        let signal_failed = |error: io::Error| Failure::new(format!("cannot handle signals: {error}"));
        let was_terminated = Arc::new(AtomicBool::new(false));
        let ending = signals::ending();
        for signal in [SIGTERM, SIGHUP].into_iter().filter(|signal| ending.contains(signal)) {
            signal_hook::flag::register(signal, was_terminated.clone()).map_err(signal_failed)?;
        }
        for signal in ending {
            let writer = OwnedFd::from(writer.duplicate().map_err(failed)?);
            signal_hook::low_level::pipe::register(signal, writer).map_err(signal_failed)?;
        }
        let news = Socket::pair().map_err(failed)?;
        let patience = Arc::new(Patience::new(signals.duplicate().map_err(failed)?));
        sink.set_patience(Box::new(Shared(patience.clone())));
        let mut session = Session::begin(connection, config, sink)?;
        session.watch(&signals, KEY_SIGNAL)?;
        session.watch(&news.0, KEY_NEWS)?;
        let compressed = session.sink().news().map(Socket::duplicate).transpose().map_err(failed)?;
        if let Some(compressed) = compressed {
            session.watch(&compressed, KEY_COMPRESSED)?;
        }
        Ok(Self {
            session,
            patience,
            expected,
            was_compared: false,
            unanswered: 0,
            command: None,
            signals,
            news,
            was_terminated,
            interrupts: 0,
            interrupted: None,
            happened: VecDeque::new(),
        })
    }

    /// Also waits for a command.
    pub fn watch(&mut self, command: Option<&mut RecordedCommand>) -> Result<(), Failure> {
        self.command = command.and_then(RecordedCommand::take_process);
        if let Some(process) = &self.command {
            self.session.watch(process, KEY_COMMAND)?;
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
        Ok(self.session.request(request)?)
    }

    /// The last signal came to this process alone, not from the terminal.
    pub fn was_terminated(&self) -> bool {
        self.was_terminated.swap(false, Ordering::Relaxed)
    }

    /// The next thing that happens, until a deadline.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Happening, Failure> {
        loop {
            if let Some(happening) = self.happened.pop_front() {
                return Ok(happening);
            }
            match self.session.next(deadline)? {
                SessionHappening::Response(response) => self.take_response(response),
                SessionHappening::ManagerGone => return Ok(Happening::ManagerGone),
                SessionHappening::OutputEnded => return Ok(Happening::OutputEnded),
                SessionHappening::Timeout => return Ok(Happening::Timeout),
                SessionHappening::Ready(KEY_SIGNAL) => self.read_signals(),
                SessionHappening::Ready(KEY_NEWS) => self.read_news(),
                // It is confirmed already.
                SessionHappening::Ready(KEY_COMPRESSED) => {}
                // Closed with it, it is no longer waited for.
                SessionHappening::Ready(_) if self.command.take().is_some() => {
                    return Ok(Happening::CommandEnded);
                }
                SessionHappening::Ready(_) => {}
            }
        }
    }

    fn read_news(&mut self) {
        let mut bytes = [0; 16];
        if let Ok(count) = self.news.0.read(&mut bytes) {
            self.happened.extend((0..count).map(|_| Happening::News));
        }
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

    fn read_signals(&mut self) {
        let mut signals = [0; 16];
        if self.signals.read(&mut signals).is_ok() {
            let now = Instant::now();
            // `timeout` signals the process, and right after that its group.
            let is_same = self.interrupted.is_some_and(|before| now < before + SAME_INTERRUPT);
            self.patience.note_signal(now);
            if self.interrupted.replace(now).is_none() {
                // Until now the manager had nothing to answer, so its silence means nothing.
                self.session.reset_silence();
            }
            if !is_same {
                self.interrupts += 1;
                self.happened.push_back(Happening::Signal);
            }
        }
    }

    /// The user wants to stop, and the manager shows no sign of life.
    pub fn is_in_vain(&self) -> bool {
        self.interrupted.is_some() && self.session.silence() > SILENCE
    }

    /// The user has asked to stop more than once.
    pub fn has_given_up(&self) -> bool {
        self.interrupts > 1
    }

    /// Bytes of the archive that have arrived.
    pub fn written(&self) -> u64 {
        self.session.written()
    }

    /// The requested categories, and those that programs know.
    pub fn take_expected(&mut self) -> Expected {
        std::mem::take(&mut self.expected)
    }

    /// Why nothing more comes, after [`Happening::ManagerGone`].
    pub fn why_gone(&self) -> Failure {
        self.session.why_gone().into()
    }

    /// Ends the session and reads the rest of the archive. Returns the dropped records, and removes them from
    /// the statistics.
    pub fn finish(
        mut self,
        connection: &mut Connection,
        stats: &mut [ProviderStats],
    ) -> Result<LeftOut, Failure> {
        self.session.end();
        // It had nothing to answer while the command was waited for.
        self.session.reset_silence();
        // A signal that has ended the command before does not end this wait, too.
        let before = self.interrupts;
        while self.session.has_output() {
            if let SessionHappening::Ready(KEY_SIGNAL) =
                self.session.next(Some(Instant::now() + ASK_INTERVAL))?
            {
                self.read_signals();
            }
            if self.interrupts > before && self.has_given_up() {
                return Err(super::aborted());
            }
            // The manager is silent while it waits for programs that do not stop.
            if self.is_in_vain() {
                if !connection.is_alive() {
                    return Err(super::frozen());
                }
                self.session.reset_silence();
            }
        }
        Ok(self.session.finish()?.left_out(stats))
    }
}
