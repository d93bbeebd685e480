//! The frames of an observer as a stream of records, as a reader of archives takes it.
//!
//! Counts come between the records. In their place the stream has a magic number record, which is legal
//! anywhere, and counts are taken out when the reader has come by there: what they say is then true of the
//! records before. More magic number records follow, as many as a reader wants to have at hand behind a
//! record before it takes that: it would wait for the next update otherwise.
//= docs/protocol.md#observers

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trace_format::metadata::MAGIC_WORD;
use trace_format::record::MAX_RECORD_WORDS;
use trace_format::units::Words;
use trace_protocol::controller::observer::FRAME_HEADER_BYTES;
use trace_protocol::controller::{Counts, FrameKind};
use trace_reader::ReadError;
use zx_sim::{Error, Signals, Socket, wait_one};

/// Why a recording cannot be followed to its end.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// A record cannot be read.
    #[error("what the trace manager sends cannot be read")]
    Unreadable(#[from] ReadError),
    /// The connection was closed.
    #[error("the trace manager closed the connection before the recording ended")]
    Closed,
}

/// How many bytes a reader has at hand behind a record, at most: five of the largest ordinary records.
const AHEAD_BYTES: usize = 5 * Words(MAX_RECORD_WORDS).bytes();

/// The first of these records is in the place of the counts.
const MARKER_BYTES: usize = size_of::<u64>() + AHEAD_BYTES;

/// Counts, with the position in the stream of the record in their place.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    counts: Arc<Mutex<VecDeque<(u64, Counts)>>>,
    has_end: Arc<AtomicBool>,
}

impl Pending {
    /// The next counts in front of a position in the stream.
    pub fn take(&self, position: u64) -> Option<Counts> {
        let mut pending = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        pending.pop_front_if(|(place, _)| *place < position).map(|(_, counts)| counts)
    }

    /// Whether the recording is over, and the stream has not only been cut off.
    fn has_end(&self) -> bool {
        self.has_end.load(Ordering::Acquire)
    }

    /// The end of the stream.
    ///
    /// # Errors
    /// The recording is not over.
    pub fn finish(&self) -> Result<(), FollowError> {
        if self.has_end() { Ok(()) } else { Err(FollowError::Closed) }
    }

    fn push(&self, position: u64, counts: Counts) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).push_back((position, counts));
    }
}

/// The records in the frames that arrive from a source.
pub struct Frames<R> {
    source: R,
    /// Bytes of the present frame that are still to come.
    records: usize,
    /// Bytes of magic number records that are still to come in the place of counts.
    marker: usize,
    position: u64,
    pending: Pending,
    is_over: bool,
}

impl<R: Read> Frames<R> {
    pub fn new(source: R, pending: Pending) -> Self {
        Self { source, records: 0, marker: 0, position: 0, pending, is_over: false }
    }

    /// Reads frames up to records; false at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        while self.records == 0 && self.marker == 0 && !self.is_over {
            let mut header = [0; FRAME_HEADER_BYTES];
            if !self.fill(&mut header)? {
                self.is_over = true;
                break;
            }
            let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
            let (kind, bytes) = FrameKind::of_header(header).map_err(invalid)?;
            match kind {
                FrameKind::Records => self.records = bytes,
                FrameKind::End => {
                    self.pending.has_end.store(true, Ordering::Release);
                    self.is_over = true;
                }
                FrameKind::Counts | FrameKind::OpenScopes | FrameKind::Unknown(_) => {
                    let mut contents = vec![0; bytes];
                    if !self.fill(&mut contents)? {
                        self.is_over = true;
                    } else if kind == FrameKind::Counts {
                        let counts = Counts::decode(&contents).map_err(invalid)?;
                        self.pending.push(self.position, counts);
                        self.marker = MARKER_BYTES;
                    }
                }
            }
        }
        Ok(!self.is_over)
    }

    /// Reads all of it; false if the source ends before.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<bool> {
        match self.source.read_exact(bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            read => read.map(|()| true),
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() || !self.next_frame()? {
            return Ok(0);
        }
        let read = if self.marker == 0 {
            let wanted = bytes.len().min(self.records);
            let read = self.source.read(&mut bytes[..wanted])?;
            self.records -= read;
            self.is_over = read == 0;
            read
        } else {
            let read = bytes.len().min(self.marker);
            let magic = MAGIC_WORD.to_le_bytes();
            // A reader may take any number of bytes at a time.
            let begun = MARKER_BYTES - self.marker;
            for (place, byte) in bytes[..read].iter_mut().enumerate() {
                *byte = magic[(begun + place) % magic.len()];
            }
            self.marker -= read;
            read
        };
        self.position += read as u64;
        Ok(read)
    }
}

/// A socket that is read as it comes.
pub struct Waiting(pub Socket);

impl Read for Waiting {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(bytes) {
                Ok(read) => return Ok(read),
                Err(Error::PeerClosed) => return Ok(0),
                Err(Error::ShouldWait) => {
                    let wanted = Signals::READABLE | Signals::PEER_CLOSED;
                    wait_one(&self.0, wanted, None).map_err(io::Error::other)?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_protocol::BufferingMode;
    use trace_protocol::controller::SessionState;

    fn frame(kind: FrameKind, contents: &[u8]) -> Vec<u8> {
        [&kind.header(contents.len()).unwrap()[..], contents].concat()
    }

    fn counts(update: u64) -> Counts {
        Counts {
            update,
            dropped_updates: 0,
            ticks: 1,
            ticks_per_second: 1,
            state: SessionState::Started,
            mode: BufferingMode::Oneshot,
            providers: Vec::new(),
            left_out: 0,
        }
    }

    /// Hands out so many bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let wanted = bytes.len().min(self.1);
            self.0.read(&mut bytes[..wanted])
        }
    }

    //= docs/protocol.md#observers
    #[test]
    fn counts_are_there_when_the_records_before_them_are_read() {
        let counts_frame = |update| frame(FrameKind::Counts, &counts(update).encode().unwrap());
        let stream = [
            counts_frame(1),
            frame(FrameKind::Records, b"recordsA"),
            frame(FrameKind::Unknown(9), b"later version"),
            frame(FrameKind::Records, b"recordsB"),
            counts_frame(2),
            frame(FrameKind::End, b""),
            frame(FrameKind::Records, b"never"),
        ]
        .concat();
        let marker = MAGIC_WORD.to_le_bytes().repeat(MARKER_BYTES / 8);
        let expected = [&marker[..], b"recordsArecordsB", &marker].concat();
        for step in [1, 2, 3, 7, 8, 20, 100_000] {
            let pending = Pending::default();
            let mut read = Vec::new();
            Frames::new(Slowly(&stream, step), pending.clone()).read_to_end(&mut read).unwrap();
            assert!(read == expected, "{step}");
            assert!(pending.has_end());
            assert_eq!(pending.take(0), None);
            assert_eq!(pending.take(8).map(|counts| counts.update), Some(1));
            let second = MARKER_BYTES as u64 + 16;
            assert_eq!(pending.take(second), None);
            assert_eq!(pending.take(second + 8).map(|counts| counts.update), Some(2));
        }
    }

    /// The reader takes all records before counts, and the one in their place, before it asks for more.
    #[test]
    fn a_reader_does_not_wait_for_what_comes_later() {
        struct Ends<'a>(&'a [u8]);
        impl Read for Ends<'_> {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                assert!(!self.0.is_empty(), "it would wait");
                self.0.read(bytes)
            }
        }
        let records = MAGIC_WORD.to_le_bytes().repeat(3);
        let counts = frame(FrameKind::Counts, &counts(1).encode().unwrap());
        let stream = [counts.clone(), frame(FrameKind::Records, &records), counts].concat();
        let pending = Pending::default();
        let mut reader = trace_reader::Reader::new(Frames::new(Ends(&stream), pending.clone())).unwrap();
        let mut updates = 0;
        while updates < 2 {
            reader.next_item().unwrap();
            updates += u32::from(pending.take(reader.position().0).is_some());
        }
    }

    #[test]
    fn what_is_cut_off_or_no_frame_is_no_panic() {
        let stream =
            [frame(FrameKind::Records, b"recordsA"), frame(FrameKind::Counts, &counts(1).encode().unwrap())]
                .concat();
        for cut in 0..stream.len() {
            let mut read = Vec::new();
            let pending = Pending::default();
            Frames::new(&stream[..cut], pending.clone()).read_to_end(&mut read).unwrap();
            assert!(!pending.has_end());
            assert_eq!(read, b"recordsA"[..cut.saturating_sub(8).min(8)]);
        }
        for bad in [frame(FrameKind::Counts, b"no table"), vec![0xff; 8]] {
            let mut frames = Frames::new(&bad[..], Pending::default());
            let error = frames.read(&mut [0; 100]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
