//! Where the archive of a session goes while it arrives.

#[cfg(feature = "convert")]
use crate::compressor::{Compressor, Manner, Place};
use crate::lending::Lending;
use crate::limited::{LeftOut, Limited};
use crate::pipe::Pipe;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use trace_archive::confirm::check_file;
use trace_archive::output::Bounded;
use trace_protocol::controller::ProviderStats;
use zx_sim::Socket;

/// What a pipe that is ready takes at least, without a wait (`PIPE_BUF`).
const PIECE_BYTES: usize = 4096;

/// Waits for a reader that may take nothing any more.
pub trait Patience: Send {
    /// Waits until something is true: it is called again and again with the longest time that it may take.
    /// It also says how many bytes the reader has taken so far.
    ///
    /// # Errors
    /// The reader is not waited for any longer.
    fn wait_until(&self, is_true: &mut dyn FnMut(Duration) -> io::Result<(bool, u64)>) -> io::Result<()>;
}

/// Takes the archive of a [`Session`](crate::session::Session) as it arrives.
pub struct Sink {
    out: Out,
    /// Whether the manager writes the file, if it may.
    lending: Option<Lending>,
    limited: Option<Limited>,
    /// Bytes without what was dropped, if there is a limit.
    in_sink: u64,
    patience: Option<Box<dyn Patience>>,
}

pub(crate) enum Out {
    File(Bounded<File>),
    Pipe(Pipe),
    /// What it has taken counts as written.
    Writer(Box<dyn Write + Send>),
    /// A thread compresses, and writes into what is not a file of its own.
    #[cfg(feature = "convert")]
    Compressed(Compressor, Option<Pipe>, Vec<u8>),
}

impl Sink {
    pub(crate) fn new(out: Out, lending: Option<Lending>) -> Self {
        Self { out, lending, limited: None, in_sink: 0, patience: None }
    }

    /// Compresses what is written into a file or a pipe.
    #[cfg(feature = "convert")]
    pub(crate) fn compressed(out: Out, level: i32) -> io::Result<Self> {
        let (place, pipe) = match out {
            Out::File(file) => (Place::File(file), None),
            Out::Pipe(pipe) => (Place::Pipe(pipe.try_clone()?), Some(pipe)),
            Out::Writer(_) | Out::Compressed(..) => return Err(io::ErrorKind::Unsupported.into()),
        };
        let compressor = Compressor::start(place, Manner { level, has_records: true }, true)?;
        Ok(Self::new(Out::Compressed(compressor, pipe, Vec::new()), None))
    }

    /// Cuts the archive at the first record with which it would have more bytes.
    pub fn limit(&mut self, bytes: u64) {
        self.limited = Some(Limited::new(bytes));
        // What is limited is counted here.
        self.lending = None;
    }

    /// How long a pipe's reader is waited for.
    pub fn set_patience(&mut self, patience: Box<dyn Patience>) {
        self.patience = Some(patience);
    }

    /// What was dropped because of the limit. Corrects the statistics of what was received to those of the
    /// archive.
    pub fn left_out(&self, stats: &mut [ProviderStats]) -> LeftOut {
        self.limited.as_ref().map_or_else(LeftOut::default, |limited| {
            limited.correct(stats);
            limited.left_out()
        })
    }

    /// Bytes of the archive, if it is limited.
    pub(crate) fn limited_bytes(&self) -> Option<u64> {
        self.limited.as_ref().map(|_| self.in_sink)
    }

    /// A socket that is readable when something was compressed and written, or cannot be.
    #[must_use]
    pub fn news(&self) -> Option<&Socket> {
        #[cfg(feature = "convert")]
        if let Out::Compressed(compressor, ..) = &self.out {
            return Some(compressor.news());
        }
        None
    }

    /// Takes the next bytes, all of them.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(limited) = &mut self.limited else {
            return self.out.write_all(bytes, self.patience.as_deref());
        };
        let bytes = limited.take(bytes);
        self.in_sink += bytes.len() as u64;
        self.out.write_all(&bytes, self.patience.as_deref())
    }

    /// The file, if the manager may write it, which is faster.
    pub(crate) fn lend(&self) -> Option<(BorrowedFd<'_>, Lending)> {
        match (&self.out, &self.lending) {
            (Out::File(file), Some(lending)) => Some((file.file().as_fd(), lending.clone())),
            _ => None,
        }
    }

    /// Checks that what was written is still there: another process may have deleted the file, or made it
    /// shorter. `written` is the number of bytes that have arrived.
    pub(crate) fn check(&self, written: u64) -> io::Result<()> {
        match &self.out {
            Out::File(file) => {
                check_file(file.file(), if self.limited.is_some() { self.in_sink } else { written })
            }
            // The thread checks it.
            _ => Ok(()),
        }
    }

    /// Bytes that a reader has not taken, and those that are being compressed: they are not confirmed to the
    /// manager.
    pub(crate) fn unread(&self) -> u64 {
        match &self.out {
            Out::File(_) | Out::Writer(_) => 0,
            Out::Pipe(pipe) => pipe.unread(),
            #[cfg(feature = "convert")]
            Out::Compressed(compressor, pipe, _) => {
                compressor.pending(|| pipe.as_ref().map_or(0, Pipe::unread))
            }
        }
    }

    /// Nothing reads what is written.
    pub(crate) fn is_closed(&self) -> bool {
        self.out.pipe().is_some_and(Pipe::is_closed)
    }

    /// Reports what has failed in the background since the last call.
    pub(crate) fn take_news(&self) -> io::Result<()> {
        match &self.out {
            #[cfg(feature = "convert")]
            Out::Compressed(compressor, ..) => compressor.take_news(),
            Out::File(_) | Out::Pipe(_) | Out::Writer(_) => Ok(()),
        }
    }

    /// All of the archive was taken.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Some(limited) = &mut self.limited {
            let accounts = limited.accounts();
            self.in_sink += accounts.len() as u64;
            self.out.write_all(&accounts, self.patience.as_deref())?;
        }
        self.out.finish(self.patience.as_deref())
    }
}

/// For what is there as a whole before it is written.
impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Out {
    fn pipe(&self) -> Option<&Pipe> {
        match self {
            Self::Pipe(pipe) => Some(pipe),
            #[cfg(feature = "convert")]
            Self::Compressed(_, pipe, _) => pipe.as_ref(),
            Self::File(_) | Self::Writer(_) => None,
        }
    }

    fn write_all(&mut self, bytes: &[u8], patience: Option<&dyn Patience>) -> io::Result<()> {
        let patience = patience.filter(|_| self.pipe().is_some_and(Pipe::has_reader));
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Writer(writer) => writer.write_all(bytes),
            Self::Pipe(pipe) => match patience {
                None => pipe.write_all(bytes),
                Some(patience) => write_patiently(pipe, bytes, patience),
            },
            #[cfg(feature = "convert")]
            Self::Compressed(compressor, pipe, chunk) => {
                chunk.extend_from_slice(bytes);
                let Some(patience) = patience else { return compressor.push(chunk) };
                patience.wait_until(&mut |wait| {
                    let is_pushed = compressor.push_within(wait, chunk)?;
                    Ok((is_pushed, compressor.written().wrapping_sub(pipe.as_ref().map_or(0, Pipe::unread))))
                })
            }
        }
    }

    #[cfg_attr(not(feature = "convert"), allow(unused_variables))]
    fn finish(&mut self, patience: Option<&dyn Patience>) -> io::Result<()> {
        match self {
            Self::File(_) | Self::Pipe(_) => Ok(()),
            Self::Writer(writer) => writer.flush(),
            #[cfg(feature = "convert")]
            Self::Compressed(compressor, pipe, _) => {
                let waited = pipe.as_ref().filter(|pipe| pipe.has_reader());
                if let (Some(pipe), Some(patience)) = (waited, patience) {
                    patience.wait_until(&mut |wait| {
                        let is_over = compressor.end_within(wait);
                        Ok((is_over, compressor.written().wrapping_sub(pipe.unread())))
                    })?;
                }
                compressor.finish()
            }
        }
    }
}

/// Writes all of something, as fast as its reader takes it.
fn write_patiently(pipe: &mut Pipe, bytes: &[u8], patience: &dyn Patience) -> io::Result<()> {
    for piece in bytes.chunks(PIECE_BYTES) {
        patience.wait_until(&mut |wait| {
            let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
            let is_ready = match poll(&mut [PollFd::new(&*pipe, PollFlags::OUT)], Some(&wait)) {
                Ok(count) => count > 0,
                Err(rustix::io::Errno::INTR) => false,
                Err(error) => return Err(error.into()),
            };
            // A connection is ready when a large part of what it holds was read.
            Ok((is_ready, 0_u64.wrapping_sub(pipe.unread())))
        })?;
        pipe.write_all(piece)?;
    }
    Ok(())
}
