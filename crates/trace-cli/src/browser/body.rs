//! Bodies of responses.

use super::attendance::Attendance;
use super::hub::Events;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// Bytes of a file that are read at once.
const CHUNK_BYTES: u64 = 256 << 10;

/// The body of a response.
pub enum Content {
    /// Some bytes, or none.
    Bytes(Bytes),
    /// A file.
    File(Reading),
    /// These bytes, and then nothing for as long as the connection is open.
    Open(Bytes),
    /// What a recording records, while it does.
    Events(Events),
}

/// A file that is read piece by piece, by a thread that may wait for a disk, as fast as the browser takes it.
pub struct Reading {
    /// Other bodies may read the same file.
    file: Arc<File>,
    state: State,
    offset: u64,
    left: u64,
    /// Notified when all of it was read.
    attendance: Option<Arc<Attendance>>,
}

enum State {
    Idle,
    Reading(JoinHandle<io::Result<Vec<u8>>>),
    Failed,
}

impl Reading {
    /// The given number of bytes of a file.
    pub fn new(file: Arc<File>, bytes: u64, attendance: Option<Arc<Attendance>>) -> Self {
        Self { file, state: State::Idle, offset: 0, left: bytes, attendance }
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let State::Idle = self.state {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            let (file, offset) = (self.file.clone(), self.offset);
            let wanted = self.left.min(CHUNK_BYTES);
            self.state = State::Reading(tokio::task::spawn_blocking(move || {
                let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(usize::MAX)];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }));
        }
        let State::Reading(reading) = &mut self.state else {
            return Poll::Ready(None);
        };
        let read = ready!(Pin::new(reading).poll(context)).map_err(io::Error::other).flatten();
        Poll::Ready(Some(match read {
            Ok(bytes) => {
                self.state = State::Idle;
                self.offset += bytes.len() as u64;
                self.left -= bytes.len() as u64;
                if self.left == 0
                    && let Some(attendance) = self.attendance.take()
                {
                    attendance.note_served();
                }
                Ok(bytes.into())
            }
            Err(error) => {
                self.state = State::Failed;
                Err(error)
            }
        }))
    }
}

impl Content {
    fn take(bytes: &mut Bytes) -> Option<io::Result<Frame<Bytes>>> {
        let bytes = std::mem::take(bytes);
        (!bytes.is_empty()).then(|| Ok(Frame::data(bytes)))
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Bytes(bytes) => Poll::Ready(Self::take(bytes)),
            Self::File(reading) => {
                reading.poll_chunk(context).map(|chunk| chunk.map(|read| read.map(Frame::data)))
            }
            // The end of the connection is noticed by the server.
            Self::Open(bytes) => Self::take(bytes).map_or(Poll::Pending, |frame| Poll::Ready(Some(frame))),
            Self::Events(events) => {
                events.poll(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.size_hint().exact(), Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::File(reading) => SizeHint::with_exact(reading.left),
            Self::Open(_) | Self::Events(_) => SizeHint::default(),
        }
    }
}
