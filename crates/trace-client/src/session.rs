//! A session with a manager, as a state machine: its requests and answers, and its archive on the way into a
//! sink. It never waits but in [`Session::next`], where other objects can be waited for, too.

use crate::connection::{Connection, Received, SessionChannel};
use crate::error::{Error, Result};
use crate::lending::{Arrival, Arrived, Lent};
use crate::sink::Sink;
use rustix::process::{Resource, getrlimit};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use trace_archive::confirm::Confirmer;
use trace_archive::session_info::{MAX_END_BYTES, is_ended};
use trace_protocol::controller::{FileCount, SessionRequest, SessionResponse, TraceConfig};
use zx_sim::{Event, Signals, Socket, WaitSet};

/// Keys of the session's own objects; lower ones are for [`Session::watch`].
const KEY_CHANNEL: u64 = u64::MAX;
const KEY_OUTPUT: u64 = u64::MAX - 1;
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks read at once, so that no other source waits long.
const CHUNKS_AT_ONCE: usize = 16;
/// Of a longer wait no more counts as silence of the manager: this process may have been delayed itself.
pub const LONGEST_SILENCE: Duration = Duration::from_millis(500);
/// How often to check how much of a pipe was read.
const PIPE_INTERVAL: Duration = Duration::from_millis(10);

/// What happens in a session.
#[derive(Debug)]
pub enum Happening {
    /// The manager sent a response.
    Response(SessionResponse),
    /// The manager has closed the session: it is dead, or has refused; or writing the archive has failed.
    /// [`Session::why_gone`] has the reason.
    ManagerGone,
    /// The archive is complete, or no more of it comes.
    OutputEnded,
    /// A watched object, the one with this key, has one of its signals.
    Ready(u64),
    /// The deadline has passed.
    Timeout,
}

/// A session whose archive is written into a sink as it arrives.
pub struct Session {
    channel: Option<SessionChannel>,
    output: Option<Socket>,
    arrival: Arrival,
    sink: Sink,
    /// Bytes of the archive that have arrived.
    written: u64,
    confirmer: Confirmer,
    /// Bytes that were confirmed as written: for a pipe, those that were read from it.
    confirmed: u64,
    /// The socket has no room for the last confirmation.
    is_confirmer_full: bool,
    /// The manager has written all of the file.
    is_complete: bool,
    /// The last bytes that have come through the socket.
    last: Vec<u8>,
    /// How long this process has waited since the manager last showed a sign of life.
    silence: Duration,
    waits: WaitSet,
    happened: VecDeque<Happening>,
    /// Why nothing more comes.
    failure: Option<Error>,
    chunk: Vec<u8>,
    /// The file, if the manager may be writing it. Dropped last: it waits until the manager does not.
    lent: Option<Lent>,
}

impl Session {
    /// Sets up a session. A refusal comes as a response.
    ///
    /// # Errors
    /// The manager is gone, the configuration exceeds a limit, or the process is out of descriptors.
    pub fn begin(connection: &Connection, config: TraceConfig, sink: Sink) -> Result<Self> {
        // Limits of this process are not the manager's, and that writes only what is named.
        let is_unlimited = getrlimit(Resource::Fsize).current.is_none();
        let lend = sink.lend().filter(|_| is_unlimited && config.file.is_some());
        let file = lend.as_ref().map(|(file, _)| *file);
        let (channel, output) = connection.initialize(config, file)?;
        let (arrival, lent) = match lend {
            Some((_, lending)) => (Arrival::Unknown(Vec::new()), Some(lending.begin(output.duplicate()?))),
            None => (Arrival::Archive, None),
        };
        let waits = WaitSet::new()?;
        let wanted = Signals::READABLE | Signals::PEER_CLOSED;
        waits.add(&channel, KEY_CHANNEL, wanted)?;
        waits.add(&output, KEY_OUTPUT, wanted)?;
        Ok(Self {
            channel: Some(channel),
            output: Some(output),
            arrival,
            sink,
            written: 0,
            confirmer: Confirmer::default(),
            confirmed: 0,
            is_confirmer_full: false,
            is_complete: false,
            last: Vec::new(),
            silence: Duration::ZERO,
            waits,
            happened: VecDeque::new(),
            failure: None,
            chunk: vec![0; CHUNK_BYTES],
            lent,
        })
    }

    /// Also waits for an object to be readable. It leaves when its last handle is closed. The two largest
    /// keys are the session's own.
    ///
    /// # Errors
    /// The object cannot be waited for.
    pub fn watch(&self, object: &impl AsFd, key: u64) -> Result<()> {
        Ok(self.waits.add(object, key, Signals::READABLE)?)
    }

    /// Does not wait for an object any more.
    ///
    /// # Errors
    /// It is not watched.
    pub fn unwatch(&self, object: &impl AsFd) -> Result<()> {
        Ok(self.waits.remove(object)?)
    }

    /// Sends a request to the manager.
    ///
    /// # Errors
    /// The request exceeds a limit of the protocol. A manager that is gone is a [`Happening`].
    pub fn request(&mut self, request: SessionRequest) -> Result<()> {
        match &mut self.channel {
            Some(channel) => match channel.request(request) {
                Err(error @ Error::Request(_)) => Err(error),
                // A manager that is gone shows soon enough.
                Ok(()) | Err(_) => Ok(()),
            },
            // Nothing else will happen: the caller that waits for the answer learns that.
            None => {
                self.happened.push_back(Happening::ManagerGone);
                Ok(())
            }
        }
    }

    /// The next thing that happens, until a deadline.
    ///
    /// # Errors
    /// The operating system's, or the manager sends what is no message. The session is of no use then.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Happening> {
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
                    KEY_CHANNEL => self.read_channel()?,
                    KEY_OUTPUT => self.read_output()?,
                    key => self.happened.push_back(Happening::Ready(key)),
                }
            }
        }
    }

    /// Waits for an event, and meanwhile confirms what was read of a pipe.
    fn wait(&mut self, events: &mut Vec<Event>, deadline: Option<Instant>) -> Result<()> {
        let next_look = || Instant::now() + PIPE_INTERVAL;
        let look = (self.output.is_some() && self.confirmed < self.written).then(next_look);
        let deadline = deadline.into_iter().chain(look).min();
        let begin = Instant::now();
        self.waits.wait(events, deadline)?;
        self.silence += begin.elapsed().min(LONGEST_SILENCE);
        self.confirm();
        Ok(())
    }

    /// Confirms how much of the archive is written.
    //= docs/protocol.md#confirmations
    fn confirm(&mut self) {
        if let Err(error) = self.sink.take_news()
            && self.output.is_some()
        {
            return self.fail(Error::Write(error));
        }
        let read = self.written.saturating_sub(self.sink.unread());
        self.confirmed = self.confirmed.max(read);
        if self.confirmed < self.written && self.sink.is_closed() {
            self.fail(Error::ReaderGone);
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
    fn fail(&mut self, why: Error) {
        self.failure.get_or_insert(why);
        self.close_output();
        self.channel = None;
        self.happened.push_back(Happening::ManagerGone);
    }

    fn read_channel(&mut self) -> Result<()> {
        let Some(channel) = &self.channel else {
            return Ok(());
        };
        match channel.receive()? {
            Received::Message(_, response) => {
                self.silence = Duration::ZERO;
                self.happened.push_back(Happening::Response(response));
            }
            Received::Nothing => {}
            Received::Closed => {
                self.channel = None;
                self.happened.push_back(Happening::ManagerGone);
            }
        }
        Ok(())
    }

    /// Copies data from the archive's socket into the sink, or reads how far the manager has written it.
    fn read_output(&mut self) -> Result<()> {
        for _ in 0..CHUNKS_AT_ONCE {
            let Some(output) = &self.output else {
                return Ok(());
            };
            match output.read(&mut self.chunk) {
                Ok(0) | Err(zx_sim::Error::PeerClosed) => self.end_output(),
                Ok(length) => {
                    self.silence = Duration::ZERO;
                    self.take_in(length);
                }
                Err(zx_sim::Error::ShouldWait) => break,
                Err(error) => return Err(error.into()),
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
        if !self.is_complete && !is_ended(&self.last) {
            self.failure.get_or_insert(Error::ManagerGone);
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
            Arrived::More => {
                note_last(&mut self.last, chunk);
                let taken = self.sink.check(self.written).and_then(|()| self.sink.take(chunk));
                self.has_taken(taken, length);
            }
            Arrived::First(bytes) => {
                if let Some(lent) = self.lent.take() {
                    lent.end();
                }
                note_last(&mut self.last, &bytes);
                let taken = self.sink.take(&bytes);
                self.has_taken(taken, bytes.len());
            }
            Arrived::Counts(counts) => counts.into_iter().for_each(|count| self.take_count(count)),
        }
    }

    fn has_taken(&mut self, taken: std::io::Result<()>, length: usize) {
        match taken {
            Ok(()) => self.written += length as u64,
            Err(error) => self.fail(Error::Write(error)),
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
                let error = match (self.sink.check(self.written), i32::try_from(errno)) {
                    (Err(error), _) => error,
                    (Ok(()), Ok(errno @ 1..)) => std::io::Error::from_raw_os_error(errno),
                    (Ok(()), _) => std::io::Error::other("the trace manager does not write it any more"),
                };
                return self.fail(Error::Write(error));
            }
        };
        (self.written, self.confirmed) = (bytes, bytes);
        self.is_complete |= is_complete;
    }

    /// Bytes of the archive that have arrived.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How long this process has waited since the manager last showed a sign of life.
    pub fn silence(&self) -> Duration {
        self.silence
    }

    /// Forgets it: the manager had nothing to answer, or has shown otherwise that it is alive.
    pub fn reset_silence(&mut self) {
        self.silence = Duration::ZERO;
    }

    /// The sink.
    pub fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// Why nothing more comes, after [`Happening::ManagerGone`].
    pub fn why_gone(&self) -> &Error {
        self.failure.as_ref().unwrap_or(&Error::ManagerGone)
    }

    /// The same, to pass on.
    pub(crate) fn take_failure(&mut self) -> Error {
        self.failure.take().unwrap_or(Error::ManagerGone)
    }

    /// Ends the session. What is left of the archive comes until [`Happening::OutputEnded`].
    pub fn end(&mut self) {
        self.channel = None;
    }

    /// More of the archive may come.
    pub fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// Finishes the sink and returns it, once there is no more [output](Self::has_output).
    ///
    /// # Errors
    /// The archive is not complete, or could not be written.
    pub fn finish(mut self) -> Result<Sink> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.sink.check(self.written).and_then(|()| self.sink.finish()).map_err(Error::Write)?;
        Ok(self.sink)
    }
}

/// Keeps the last bytes of an archive, from the beginning of a word on.
fn note_last(last: &mut Vec<u8>, bytes: &[u8]) {
    last.extend_from_slice(&bytes[bytes.len().saturating_sub(MAX_END_BYTES)..]);
    last.drain(..last.len().saturating_sub(MAX_END_BYTES));
}
