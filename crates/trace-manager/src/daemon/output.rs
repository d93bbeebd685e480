//! The client's end of the archive: a socket that is never waited for.
//!
//! The queue takes one batch at a time: a transfer goes on only when the socket has taken everything, so a
//! client that reads slowly holds up its own session and nothing else, and memory stays at one batch.
//!
//! Data that the socket has accepted may be lost with the client. A client that confirms reports how many
//! bytes of the archive it has written, and only these count.

use std::collections::VecDeque;
use std::time::{Duration, Instant};
use trace_archive::{framing, session_info};
use trace_format::mutants;
use trace_format::units::{ProviderId, TicksPerSecond};
use trace_protocol::controller::TraceConfig;
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
    socket: Socket,
    queue: Vec<u8>,
    sent: usize,
    /// Bytes of the archive that the socket has taken.
    taken: u64,
    /// Its size at the last query for its growth.
    asked: u64,
    confirmations: Option<Confirmations>,
    has_metadata: bool,
    /// The signals that the loop is woken for.
    watched: Option<Signals>,
    /// Parts that were read, with their ends in the archive, until they are written.
    parts: VecDeque<(Written, u64)>,
    /// The end was queued.
    is_ended: bool,
    /// When the client last accepted or confirmed something.
    moved: Instant,
}

impl Output {
    /// The archive of a client that set up a session or asked for a snapshot.
    pub fn new(socket: Socket, config: &TraceConfig, confirms: bool) -> Self {
        Self {
            socket,
            queue: Vec::new(),
            sent: 0,
            taken: 0,
            asked: 0,
            confirmations: confirms.then(Confirmations::default),
            has_metadata: config.metadata,
            watched: None,
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
        if self.has_metadata {
            session_info::end(&mut self.queue);
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

    /// Everything that was queued is written.
    pub fn is_written(&self) -> bool {
        self.written() >= self.position()
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

    /// Bytes that were queued since the last call.
    pub fn grown(&mut self) -> u64 {
        let position = self.position();
        position - std::mem::replace(&mut self.asked, position)
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
        let believed = |_: &&Confirmations| !mutants::is_on("what is sent counts as written");
        self.confirmations.as_ref().filter(believed).map_or(self.taken, |confirmations| confirmations.written)
    }

    /// Writes as much to the socket as it accepts. An error means that the reader has gone.
    pub fn flush(&mut self) -> Result<Flushed, String> {
        while self.sent < self.queue.len() {
            match self.socket.write(&self.queue[self.sent..]) {
                Ok(written) => {
                    self.sent += written;
                    self.taken += written as u64;
                    self.moved = Instant::now();
                }
                Err(Error::ShouldWait) => return Ok(Flushed::Blocked),
                Err(Error::PeerClosed) => return Err("the client does not read any more".to_owned()),
                Err(error) => return Err(format!("cannot write to the client: {error}")),
            }
        }
        self.queue.clear();
        self.sent = 0;
        Ok(Flushed::Drained)
    }

    /// Reads the client's confirmations. An error means that the client has gone, or that its confirmation is
    /// impossible.
    //= docs/protocol.md#confirmations
    pub fn read_confirmations(&mut self) -> Result<(), String> {
        let Some(confirmations) = &mut self.confirmations else {
            return Ok(());
        };
        let mut bytes = [0; CONFIRMATIONS_AT_ONCE * CONFIRMATION_BYTES];
        match self.socket.read(&mut bytes) {
            Err(Error::ShouldWait) => Ok(()),
            Ok(0) | Err(Error::PeerClosed) => Err("the client does not write any more".to_owned()),
            Ok(length) => {
                self.moved = Instant::now();
                confirmations.take_in(&bytes[..length], self.taken)
            }
            Err(error) => Err(format!("cannot read from the client: {error}")),
        }
    }

    /// Wakes the loop when the client confirms something, and when the socket takes more if it has to.
    pub fn watch(&mut self, waits: &WaitSet, key: u64, flushed: Flushed) {
        let mut wanted = Signals::empty();
        wanted.set(Signals::READABLE, self.confirmations.is_some());
        wanted.set(Signals::WRITABLE, flushed == Flushed::Blocked);
        if wanted.is_empty() {
            self.unwatch(waits);
        } else if self.watched != Some(wanted) {
            let watched = match self.watched {
                Some(_) => waits.modify(&self.socket, key, wanted),
                None => waits.add(&self.socket, key, wanted),
            };
            self.watched = watched.is_ok().then_some(wanted);
        }
    }

    pub fn unwatch(&mut self, waits: &WaitSet) {
        if self.watched.take().is_some() {
            let _ = waits.remove(&self.socket);
        }
    }
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
    fn take_in(&mut self, bytes: &[u8], taken: u64) -> Result<(), String> {
        self.rest.extend_from_slice(bytes);
        let (counts, rest) = self.rest.as_chunks::<CONFIRMATION_BYTES>();
        for count in counts {
            let written = u64::from_le_bytes(*count);
            if !(self.written..=taken).contains(&written) {
                let before = self.written;
                return Err(format!(
                    "the client says that {written} bytes are written, after {before} of {taken}"
                ));
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
        assert_eq!(
            confirmations.take_in(&counts(&[299]), 300),
            Err("the client says that 299 bytes are written, after 300 of 300".to_owned())
        );
        let mut confirmations = Confirmations::default();
        assert_eq!(
            confirmations.take_in(&counts(&[400, 401]), 400),
            Err("the client says that 401 bytes are written, after 400 of 400".to_owned())
        );
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
            assert_eq!(output.flush(), Ok(Flushed::Drained));
        }
        assert_eq!((output.position(), output.written_part(), output.is_written()), (124, None, false));
        theirs.write(&counts(&[99, 123])).unwrap();
        output.read_confirmations().unwrap();
        assert_eq!((output.written_part(), output.written_part()), (Some(part(1)), None));
        theirs.write(&counts(&[124])).unwrap();
        output.read_confirmations().unwrap();
        let parts: Vec<_> = std::iter::from_fn(|| output.written_part()).collect();
        assert_eq!((parts, output.is_written()), (vec![part(2), part(3)], true));
        drop(theirs);
        assert_eq!(output.read_confirmations(), Err("the client does not write any more".to_owned()));
    }

    #[test]
    fn of_a_client_that_confirms_nothing_what_was_sent_counts() {
        let (ours, _theirs) = Socket::pair().unwrap();
        let mut output = Output::new(ours, &TraceConfig::default(), false);
        output.queue().resize(100, 7);
        output.end_part(part(1));
        assert_eq!((output.written_part(), output.is_written()), (None, false));
        assert_eq!(output.flush(), Ok(Flushed::Drained));
        assert_eq!((output.written_part(), output.is_written()), (Some(part(1)), true));
    }
}
