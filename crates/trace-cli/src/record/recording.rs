//! A running recording: everything that can happen during it, one thing at a time, while the archive goes
//! into its file.

use crate::command::RecordedCommand;
use crate::connection::{Connection, Received, SessionChannel, system};
use crate::exit::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::VecDeque;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use trace_protocol::controller::{SessionRequest, SessionResponse, TraceConfig};
use zx_sim::{Error, ProcessFd, Signals, Socket, WaitSet};

const KEY_SESSION: u64 = 0;
const KEY_OUTPUT: u64 = 1;
const KEY_SIGNAL: u64 = 2;
const KEY_COMMAND: u64 = 3;
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks read at once, so that nothing else waits long.
const CHUNKS_AT_ONCE: usize = 16;

/// What happened.
#[derive(Debug)]
pub enum Happening {
    /// The manager said something.
    Response(SessionResponse),
    /// The manager has closed the session: it is dead, or has refused; or the archive cannot be written any
    /// further.
    ManagerGone,
    /// The archive is complete.
    OutputEnded,
    /// The command has ended.
    CommandEnded,
    /// The archive has the size that it is to have at most.
    Enough,
    /// The user wants to stop.
    Signal,
    /// The deadline has passed.
    Timeout,
}

/// A session whose archive is written into a file as it comes.
pub struct Recording<'a> {
    session: Option<SessionChannel>,
    output: Option<Socket>,
    sink: &'a mut dyn Write,
    written: u64,
    /// When [`Happening::Enough`] is due.
    limit: Option<u64>,
    command: Option<ProcessFd>,
    signals: Socket,
    was_terminated: Arc<AtomicBool>,
    /// Signals that have come.
    interrupts: usize,
    waits: WaitSet,
    happened: VecDeque<Happening>,
    /// Why the archive could not be written any further.
    failure: Option<String>,
    chunk: Vec<u8>,
}

impl<'a> Recording<'a> {
    /// Sets a session up. From here on signals are happenings.
    pub fn begin(
        connection: &Connection,
        config: TraceConfig,
        sink: &'a mut dyn Write,
    ) -> Result<Self, Failure> {
        let failed = |error: Error| system(&error);
        let (signals, writer) = Socket::pair().map_err(failed)?;
        let signal_failed = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
        let was_terminated = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGTERM, was_terminated.clone()).map_err(signal_failed)?;
        for signal in [SIGINT, SIGTERM] {
            let writer = OwnedFd::from(writer.duplicate().map_err(failed)?);
            signal_hook::low_level::pipe::register(signal, writer).map_err(signal_failed)?;
        }
        let (session, output) = connection.initialize(config)?;
        let waits = WaitSet::new().map_err(failed)?;
        let wanted = Signals::READABLE | Signals::PEER_CLOSED;
        waits.add(&session, KEY_SESSION, wanted).map_err(failed)?;
        waits.add(&output, KEY_OUTPUT, wanted).map_err(failed)?;
        waits.add(&signals, KEY_SIGNAL, Signals::READABLE).map_err(failed)?;
        Ok(Self {
            session: Some(session),
            output: Some(output),
            sink,
            written: 0,
            limit: None,
            command: None,
            signals,
            was_terminated,
            interrupts: 0,
            waits,
            happened: VecDeque::new(),
            failure: None,
            chunk: vec![0; CHUNK_BYTES],
        })
    }

    /// Waits for a command, too.
    pub fn watch(&mut self, command: Option<&mut RecordedCommand>) -> Result<(), Failure> {
        self.command = command.and_then(RecordedCommand::take_process);
        if let Some(process) = &self.command {
            let added = self.waits.add(process, KEY_COMMAND, Signals::READABLE);
            added.map_err(|error| system(&error))?;
        }
        Ok(())
    }

    /// Asks the manager for something.
    pub fn request(&mut self, request: SessionRequest) -> Result<(), Failure> {
        match &mut self.session {
            // A manager that is gone shows as such soon enough.
            Some(session) => session.request(request).or(Ok(())),
            None => Ok(()),
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
            self.waits.wait(&mut events, deadline).map_err(|error| system(&error))?;
            for event in &events {
                match event.key {
                    KEY_SESSION => self.read_session()?,
                    KEY_OUTPUT => self.read_output()?,
                    KEY_SIGNAL => self.read_signals(),
                    // Closed with it, it is not waited for any more.
                    _ if self.command.take().is_some() => self.happened.push_back(Happening::CommandEnded),
                    _ => {}
                }
            }
        }
    }

    fn read_session(&mut self) -> Result<(), Failure> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        match session.receive()? {
            Received::Message(_, response) => self.happened.push_back(Happening::Response(response)),
            Received::Nothing => {}
            Received::Closed => {
                self.session = None;
                self.happened.push_back(Happening::ManagerGone);
            }
        }
        Ok(())
    }

    /// Takes what the archive's socket has into the file.
    fn read_output(&mut self) -> Result<(), Failure> {
        for _ in 0..CHUNKS_AT_ONCE {
            let Some(output) = &self.output else {
                return Ok(());
            };
            match output.read(&mut self.chunk) {
                Ok(0) | Err(Error::PeerClosed) => {
                    self.output = None;
                    self.happened.push_back(Happening::OutputEnded);
                }
                Ok(length) => {
                    self.written += length as u64;
                    if self.limit.take_if(|limit| self.written >= *limit).is_some() {
                        self.happened.push_back(Happening::Enough);
                    }
                    if let Err(error) = self.sink.write_all(&self.chunk[..length]) {
                        // The manager sees that nobody reads, and leaves what it has not sent where it is.
                        self.failure = Some(format!("cannot write the trace: {error}"));
                        self.output = None;
                        self.session = None;
                        self.happened.push_back(Happening::ManagerGone);
                    }
                }
                Err(Error::ShouldWait) => return Ok(()),
                Err(error) => return Err(system(&error)),
            }
        }
        Ok(())
    }

    fn read_signals(&mut self) {
        let mut signals = [0; 16];
        if let Ok(count) = self.signals.read(&mut signals) {
            self.interrupts += count;
            self.happened.extend((0..count).map(|_| Happening::Signal));
        }
    }

    /// Has it told when the archive has this size.
    pub fn set_limit(&mut self, bytes: u64) {
        self.limit = Some(bytes);
    }

    /// The user has wanted to stop more than once.
    pub fn has_given_up(&self) -> bool {
        self.interrupts > 1
    }

    /// Bytes of the archive that have come.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Why nothing more comes, after [`Happening::ManagerGone`].
    pub fn why_gone(&self) -> &str {
        self.failure.as_deref().unwrap_or("the trace manager is gone")
    }

    /// Ends the session and takes the rest of the archive. Why it is not whole, if it is not.
    pub fn finish(mut self) -> Result<Option<String>, Failure> {
        self.session = None;
        // One that has ended the command before is no wish to end this too.
        let before = self.interrupts;
        while self.output.is_some() {
            self.happened.clear();
            let mut events = Vec::new();
            self.waits.wait(&mut events, None).map_err(|error| system(&error))?;
            self.read_signals();
            if self.interrupts > before && self.has_given_up() {
                return Err(super::aborted());
            }
            self.read_output()?;
        }
        if self.failure.is_none()
            && let Err(error) = self.sink.flush()
        {
            self.failure = Some(format!("cannot write the trace: {error}"));
        }
        Ok(self.failure)
    }
}
