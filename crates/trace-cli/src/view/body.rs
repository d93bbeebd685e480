//! Bodies of responses.

use super::attendance::Attendance;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::fs::File;
use std::io::{self, Read};
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
}

/// A file that is read piece by piece, by a thread that may wait for a disk, as fast as the browser takes it.
pub struct Reading {
    state: State,
    left: u64,
    /// Notified when all of it was read.
    attendance: Option<Arc<Attendance>>,
}

enum State {
    Idle(Option<File>),
    Reading(JoinHandle<io::Result<(File, Vec<u8>)>>),
}

impl Reading {
    /// The given number of bytes of a file.
    pub fn new(file: File, bytes: u64, attendance: Option<Arc<Attendance>>) -> Self {
        Self { state: State::Idle(Some(file)), left: bytes, attendance }
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let State::Idle(file) = &mut self.state {
            let Some(mut file) = file.take().filter(|_| self.left > 0) else {
                return Poll::Ready(None);
            };
            let wanted = self.left.min(CHUNK_BYTES);
            self.state = State::Reading(tokio::task::spawn_blocking(move || {
                let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(usize::MAX)];
                file.read_exact(&mut bytes)?;
                Ok((file, bytes))
            }));
        }
        let State::Reading(reading) = &mut self.state else {
            return Poll::Ready(None);
        };
        let read = ready!(Pin::new(reading).poll(context)).map_err(io::Error::other).flatten();
        Poll::Ready(Some(match read {
            Ok((file, bytes)) => {
                self.state = State::Idle(Some(file));
                self.left -= bytes.len() as u64;
                if self.left == 0
                    && let Some(attendance) = self.attendance.take()
                {
                    attendance.note_served();
                }
                Ok(bytes.into())
            }
            Err(error) => {
                self.state = State::Idle(None);
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
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.size_hint().exact(), Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::File(reading) => SizeHint::with_exact(reading.left),
            Self::Open(_) => SizeHint::default(),
        }
    }
}
