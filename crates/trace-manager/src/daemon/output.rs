//! The client's end of the archive: a socket that is never waited for, or a file that a thread writes.
//!
//! The queue takes one batch at a time: a transfer goes on only when the socket has taken everything, so a
//! client that reads slowly holds up its own session and nothing else, and memory stays at one batch. The
//! thread that writes a file takes a limited number of batches.
//!
//! Data that the socket has accepted may be lost with the client. A client that confirms reports how many
//! bytes of the archive it has written, and only these count. Of a file, what its thread has written counts.

use super::file_writer::FileWriter;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace_archive::confirm::Confirmer;
use trace_archive::{framing, session_info};
use trace_format::units::{ProviderId, TicksPerSecond};
use trace_protocol::controller::{FileCount, TraceConfig};
use zx_sim::{Error, Signals, Socket, WaitSet};

/// How long a client may take to read or write anything more when the session ends.
const OUTPUT_WAIT: Duration = Duration::from_secs(60);
/// How many confirmations are read before everything else is checked.
const CONFIRMATIONS_AT_ONCE: usize = 64;
const CONFIRMATION_BYTES: usize = size_of::<u64>();

/// How far the queue got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Everything is in the socket.
    Drained,
    /// The socket takes no more for now.
    Blocked,
}

/// A part of a buffer, once it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// Its provider.
    pub provider: ProviderId,
    /// With it, the archive has all that the buffer holds.
    pub is_archived: bool,
}

/// The output of an archive.
pub(super) struct Output {
    sink: Sink,
    queue: Vec<u8>,
    sent: usize,
    /// Bytes of the archive that the sink has taken.
    taken: u64,
    confirmations: Option<Confirmations>,
    has_metadata: bool,
    /// Parts that were read, with their ends in the archive, until they are written.
    parts: VecDeque<(Written, u64)>,
    /// The end was queued.
    is_ended: bool,
    /// When the client last accepted or confirmed something.
    moved: Instant,
}

/// Where an archive goes.
enum Sink {
    /// To a client.
    Socket(Watched),
    /// Into a file. Its client, if it has one, gets the counts.
    File(FileWriter, Option<Signals>, Option<Reader>),
}

/// A socket, with the signals that the loop is woken for.
struct Watched {
    socket: Socket,
    signals: Option<Signals>,
}

/// A client whose file is written here.
struct Reader {
    watched: Watched,
    confirmer: Confirmer,
    /// The last count is in the socket.
    is_informed: bool,
}

/// What an archive is written into.
pub(super) enum Place {
    /// The socket of a client.
    Client(Socket),
    /// The file of a task.
    Task(FileWriter),
}

impl Output {
    /// The archive of a client that asked for a snapshot.
    pub fn new(socket: Socket, config: &TraceConfig, confirms: bool) -> Self {
        let sink = Sink::Socket(Watched { socket, signals: None });
        Self::into_sink(sink, config, confirms.then(Confirmations::default))
    }

    /// The archive of a session of a user's.
    //= docs/protocol.md#files-that-are-handed-over
    pub fn of_session(place: Place, config: &TraceConfig, uid: u32) -> Self {
        let confirmations = Some(Confirmations::default());
        let socket = match place {
            Place::Task(writer) => {
                return Self::into_sink(Sink::File(writer, None, None), config, confirmations);
            }
            Place::Client(socket) if !config.confirms => return Self::new(socket, config, false),
            Place::Client(socket) => socket,
        };
        let Some(writer) = handed_over(&socket, config, uid) else {
            return Self::new(socket, config, true);
        };
        let mut confirmer = Confirmer::default();
        // There is room for a first count.
        confirmer.accept(&socket);
        let watched = Watched { socket, signals: None };
        let reader = Reader { watched, confirmer, is_informed: false };
        Self::into_sink(Sink::File(writer, None, Some(reader)), config, confirmations)
    }

    fn into_sink(sink: Sink, config: &TraceConfig, confirmations: Option<Confirmations>) -> Self {
        Self {
            sink,
            queue: Vec::new(),
            sent: 0,
            taken: 0,
            confirmations,
            has_metadata: config.metadata && !config.privacy,
            parts: VecDeque::new(),
            is_ended: false,
            moved: Instant::now(),
        }
    }

    /// Queues the head of the archive.
    pub fn begin(&mut self, config: &TraceConfig, rate: TicksPerSecond) {
        if self.has_metadata {
            session_info::begin(config, rate, &mut self.queue);
        } else {
            framing::magic(&mut self.queue);
        }
    }

    /// Queues the end of the archive; nothing comes after.
    pub fn end(&mut self) {
        match self.has_metadata {
            true => session_info::end(&mut self.queue),
            false => session_info::end_silently(&mut self.queue),
        }
        self.is_ended = true;
        self.begin_to_end();
    }

    /// From here on the client has a limited time to make progress.
    pub fn begin_to_end(&mut self) {
        self.moved = Instant::now();
    }

    /// The archive describes the recorded programs.
    pub fn has_metadata(&self) -> bool {
        self.has_metadata
    }

    /// The end was queued.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Everything that was queued is written, and the client is informed of that.
    pub fn is_written(&self) -> bool {
        let is_informed = match &self.sink {
            Sink::File(_, _, Some(reader)) => reader.is_informed,
            Sink::Socket(_) | Sink::File(_, _, None) => true,
        };
        self.written() >= self.position() && is_informed
    }

    /// When the client must have made progress, once no other client wants to record.
    pub fn deadline(&self) -> Instant {
        self.moved + OUTPUT_WAIT
    }

    /// The queue for the next batch; empty after [`Flushed::Drained`].
    pub fn queue(&mut self) -> &mut Vec<u8> {
        &mut self.queue
    }

    /// The position in the archive of the next byte that is queued.
    pub fn position(&self) -> u64 {
        self.taken + (self.queue.len() - self.sent) as u64
    }

    /// A part ends with what is queued.
    pub fn end_part(&mut self, part: Written) {
        self.parts.push_back((part, self.position()));
    }

    /// The next part that is written.
    pub fn written_part(&mut self) -> Option<Written> {
        let written = self.written();
        self.parts.pop_front_if(|(_, end)| *end <= written).map(|(part, _)| part)
    }

    /// Bytes of the archive that are written, as far as that is known.
    fn written(&self) -> u64 {
        self.confirmations.as_ref().map_or(self.taken, |confirmations| confirmations.written)
    }

    /// Hands over as much as the sink accepts. An error means that it accepts nothing any more.
    pub fn flush(&mut self) -> Result<Flushed, OutputError> {
        let socket = match &self.sink {
            Sink::Socket(watched) => &watched.socket,
            Sink::File(writer, ..) => {
                let length = self.queue.len() as u64;
                if length > 0 {
                    match writer.push(&mut self.queue) {
                        Ok(true) => self.taken += length,
                        Ok(false) => return Ok(Flushed::Blocked),
                        Err(problem) => return Err(self.fail(problem)),
                    }
                }
                return Ok(Flushed::Drained);
            }
        };
        while self.sent < self.queue.len() {
            match socket.write(&self.queue[self.sent..]) {
                Ok(written) => {
                    self.sent += written;
                    self.taken += written as u64;
                    self.moved = Instant::now();
                }
                Err(Error::ShouldWait) => return Ok(Flushed::Blocked),
                Err(Error::PeerClosed) => return Err(OutputError::NotRead),
                Err(error) => return Err(OutputError::Write(error)),
            }
        }
        self.queue.clear();
        self.sent = 0;
        Ok(Flushed::Drained)
    }

    /// Reads what is written, from the client or from the thread that writes its file. An error means that
    /// the client has gone, that its confirmation is impossible, or that the file cannot be written.
    //= docs/protocol.md#confirmations
    pub fn read_confirmations(&mut self) -> Result<(), OutputError> {
        let Some(confirmations) = &mut self.confirmations else {
            return Ok(());
        };
        let counts = match &self.sink {
            Sink::Socket(watched) => &watched.socket,
            Sink::File(writer, ..) => writer.counts(),
        };
        let mut bytes = [0; CONFIRMATIONS_AT_ONCE * CONFIRMATION_BYTES];
        match counts.read(&mut bytes) {
            Err(Error::ShouldWait) => {}
            Ok(0) | Err(Error::PeerClosed) => {
                return Err(match &self.sink {
                    Sink::Socket(_) => OutputError::NotWritten,
                    Sink::File(writer, ..) => {
                        let problem = writer.problem();
                        self.fail(problem)
                    }
                });
            }
            Ok(length) => {
                self.moved = Instant::now();
                confirmations.take_in(&bytes[..length], self.taken)?;
            }
            Err(error) => return Err(OutputError::Read(error)),
        }
        self.inform_reader()
    }

    /// Reports to the client how much of its file is written.
    //= docs/protocol.md#files-that-are-handed-over
    fn inform_reader(&mut self) -> Result<(), OutputError> {
        let (count, is_complete) = (self.written(), self.is_ended && self.written() >= self.position());
        let Sink::File(_, _, Some(reader)) = &mut self.sink else {
            return Ok(());
        };
        let socket = &reader.watched.socket;
        match socket.read(&mut [0; CONFIRMATION_BYTES]) {
            Err(Error::ShouldWait) => {}
            Ok(0) | Err(Error::PeerClosed) => return Err(OutputError::NotAwaited),
            Ok(_) => return Err(OutputError::Confirms),
            Err(error) => return Err(OutputError::Read(error)),
        }
        let count = if is_complete { FileCount::Complete(count) } else { FileCount::Written(count) };
        reader.is_informed = reader.confirmer.confirm(socket, count.value()) && is_complete;
        Ok(())
    }

    /// Reports to the client why its file is not written any more, and returns that for the log.
    fn fail(&mut self, problem: Arc<io::Error>) -> OutputError {
        self.report_failure(problem.raw_os_error().map_or(0, i32::unsigned_abs));
        OutputError::File(problem)
    }

    /// Reports to the client that its file is not written any more.
    pub fn report_failure(&mut self, errno: u32) {
        if let Sink::File(_, _, Some(reader)) = &mut self.sink {
            let count = FileCount::Failed { errno }.value();
            // A client that has not read for so long does not learn why.
            reader.confirmer.confirm(&reader.watched.socket, count);
        }
    }

    /// Wakes the loop when something is confirmed, and when the socket takes more if it has to.
    pub fn watch(&mut self, waits: &WaitSet, key: u64, flushed: Flushed) {
        let mut wanted = Signals::empty();
        wanted.set(Signals::READABLE, self.confirmations.is_some());
        match &mut self.sink {
            Sink::Socket(Watched { socket, signals }) => {
                wanted.set(Signals::WRITABLE, flushed == Flushed::Blocked);
                watch(socket, signals, waits, key, wanted);
            }
            Sink::File(writer, signals, reader) => {
                watch(writer.counts(), signals, waits, key, wanted);
                if let Some(Reader { watched, confirmer, .. }) = reader {
                    wanted.set(Signals::WRITABLE, !confirmer.is_reported());
                    watch(&watched.socket, &mut watched.signals, waits, key, wanted);
                }
            }
        }
    }

    pub fn unwatch(&mut self, waits: &WaitSet) {
        match &mut self.sink {
            Sink::Socket(Watched { socket, signals }) => unwatch(socket, signals, waits),
            Sink::File(writer, signals, reader) => {
                unwatch(writer.counts(), signals, waits);
                if let Some(Reader { watched: Watched { socket, signals }, .. }) = reader {
                    unwatch(socket, signals, waits);
                }
            }
        }
    }
}

fn watch(socket: &Socket, watched: &mut Option<Signals>, waits: &WaitSet, key: u64, wanted: Signals) {
    if wanted.is_empty() {
        unwatch(socket, watched, waits);
    } else if *watched != Some(wanted) {
        let result = match watched {
            Some(_) => waits.modify(socket, key, wanted),
            None => waits.add(socket, key, wanted),
        };
        *watched = result.is_ok().then_some(wanted);
    }
}

fn unwatch(socket: &Socket, watched: &mut Option<Signals>, waits: &WaitSet) {
    if watched.take().is_some() {
        let _ = waits.remove(socket);
    }
}

/// Begins to write the file that a client has handed over, if there is one that is suitable.
//= docs/protocol.md#files-that-are-handed-over
fn handed_over(socket: &Socket, config: &TraceConfig, uid: u32) -> Option<FileWriter> {
    let mut count = [0; CONFIRMATION_BYTES];
    let (length, handles) = socket.read_with_handles(&mut count).ok()?;
    let [file] = <[_; 1]>::try_from(handles).ok()?;
    let named = config.file.as_ref().map(|file| (file.device, file.inode))?;
    let is_suitable = length == CONFIRMATION_BYTES
        && count == [0; CONFIRMATION_BYTES]
        && file.writable_file_of(uid) == Some(named);
    FileWriter::for_client(is_suitable.then_some(file)?, socket.duplicate().ok()?)
}

/// Why an output takes nothing more.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    #[error("the client does not read any more")]
    NotRead,
    #[error("the client does not write any more")]
    NotWritten,
    #[error("the client does not wait any more")]
    NotAwaited,
    #[error("the client does not take the rest of its archive")]
    NotTaken,
    #[error("the client confirms what is written for it")]
    Confirms,
    #[error("the client says that {written} bytes are written, after {before} of {taken}")]
    Confirmed { written: u64, before: u64, taken: u64 },
    #[error("cannot write to the client")]
    Write(#[source] Error),
    #[error("cannot read from the client")]
    Read(#[source] Error),
    #[error("cannot write the archive")]
    File(#[source] Arc<io::Error>),
}

/// A client's confirmations of how far its file is written: a running count of bytes, little endian, sent as
/// often as the client chooses.
#[derive(Debug, Default)]
struct Confirmations {
    written: u64,
    /// The beginning of a count whose end has not come.
    rest: Vec<u8>,
}

impl Confirmations {
    fn take_in(&mut self, bytes: &[u8], taken: u64) -> Result<(), OutputError> {
        self.rest.extend_from_slice(bytes);
        let (counts, rest) = self.rest.as_chunks::<CONFIRMATION_BYTES>();
        for count in counts {
            let written = u64::from_le_bytes(*count);
            if !(self.written..=taken).contains(&written) {
                return Err(OutputError::Confirmed { written, before: self.written, taken });
            }
            self.written = written;
        }
        self.rest = rest.to_vec();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[u64]) -> Vec<u8> {
        counts.iter().flat_map(|count| count.to_le_bytes()).collect()
    }

    //= docs/protocol.md#confirmations
    #[test]
    fn counts_grow_up_to_what_was_sent() {
        let mut confirmations = Confirmations::default();
        let bytes = counts(&[8, 8, 300]);
        for byte in &bytes {
            confirmations.take_in(&[*byte], 300).unwrap();
        }
        assert_eq!((confirmations.written, confirmations.rest.len()), (300, 0));
        let error = confirmations.take_in(&counts(&[299]), 300).unwrap_err();
        assert_eq!(error.to_string(), "the client says that 299 bytes are written, after 300 of 300");
        let mut confirmations = Confirmations::default();
        let error = confirmations.take_in(&counts(&[400, 401]), 400).unwrap_err();
        assert_eq!(error.to_string(), "the client says that 401 bytes are written, after 400 of 400");
    }

    fn part(provider: u32) -> Written {
        Written { provider: ProviderId(provider), is_archived: false }
    }

    //= docs/protocol.md#confirmations
    #[test]
    fn a_part_is_written_when_its_end_is_confirmed() {
        let (ours, theirs) = Socket::pair().unwrap();
        let mut output = Output::new(ours, &TraceConfig::default(), true);
        for (provider, bytes) in [(1, 100), (2, 24), (3, 0)] {
            output.queue().resize(bytes, 7);
            output.end_part(part(provider));
            assert_eq!(output.flush().unwrap(), Flushed::Drained);
        }
        assert_eq!((output.position(), output.written_part(), output.is_written()), (124, None, false));
        theirs.write(&counts(&[99, 123])).unwrap();
        output.read_confirmations().unwrap();
        assert_eq!((output.written_part(), output.written_part()), (Some(part(1)), None));
        theirs.write(&counts(&[124])).unwrap();
        output.read_confirmations().unwrap();
        let parts: Vec<_> = std::iter::from_fn(|| output.written_part()).collect();
        assert_eq!((parts, output.is_written()), (vec![part(2), part(3)], true));
        rustix::net::shutdown(&theirs, rustix::net::Shutdown::Both).unwrap();
        assert!(matches!(output.read_confirmations(), Err(OutputError::NotWritten)));
    }

    #[test]
    fn of_a_client_that_confirms_nothing_what_was_sent_counts() {
        let (ours, _theirs) = Socket::pair().unwrap();
        let mut output = Output::new(ours, &TraceConfig::default(), false);
        output.queue().resize(100, 7);
        output.end_part(part(1));
        assert_eq!((output.written_part(), output.is_written()), (None, false));
        assert_eq!(output.flush().unwrap(), Flushed::Drained);
        assert_eq!((output.written_part(), output.is_written()), (Some(part(1)), true));
    }
}
