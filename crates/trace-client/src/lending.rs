//! A file that the manager writes itself, while the session's socket has counts of what is written.
//= docs/protocol.md#files-that-are-handed-over

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_protocol::controller::FileCount;
use zx_sim::{Error, Signals, Socket, wait_one};

const COUNT_BYTES: usize = size_of::<u64>();
/// How long the manager may take to let a file go that is not written to its end.
const RETURN_WAIT: Duration = Duration::from_secs(1);

/// Whether a file is with the manager, which may be writing it.
#[derive(Clone, Debug, Default)]
pub struct Lending(Arc<AtomicBool>);

impl Lending {
    /// The manager may be writing the file.
    #[must_use]
    pub fn is_lent(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Offers the file to the manager at the other end of a socket.
    pub(crate) fn begin(&self, socket: Socket) -> Lent {
        self.0.store(true, Ordering::Relaxed);
        Lent { socket, lending: self.clone() }
    }
}

/// A file that was offered to the manager. When this is dropped, the manager is asked to let it go.
#[derive(Debug)]
pub(crate) struct Lent {
    socket: Socket,
    lending: Lending,
}

impl Lent {
    /// The manager does not write the file, or does not any more.
    pub fn end(&self) {
        self.lending.0.store(false, Ordering::Relaxed);
    }
}

impl Drop for Lent {
    //= docs/protocol.md#files-that-are-handed-over
    fn drop(&mut self) {
        if !self.lending.is_lent() {
            return;
        }
        self.socket.end_writing();
        let deadline = Instant::now() + RETURN_WAIT;
        let mut bytes = vec![0; 1 << 16];
        while Instant::now() < deadline {
            match self.socket.read(&mut bytes) {
                Ok(1..) => {}
                Err(Error::ShouldWait) => {
                    let _ = wait_one(&self.socket, Signals::READABLE | Signals::PEER_CLOSED, Some(deadline));
                }
                Ok(0) | Err(_) => return self.end(),
            }
        }
    }
}

/// What comes through the socket of a recording.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// The archive.
    Archive,
    /// That shows with the first bytes, which are here.
    Unknown(Vec<u8>),
    /// Counts. Here is the beginning of one.
    Counts(Vec<u8>),
}

/// What has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// Not enough to tell.
    Nothing,
    /// The first bytes of the archive.
    First(Vec<u8>),
    /// Bytes of the archive.
    More,
    /// Counts.
    Counts(Vec<FileCount>),
}

impl Arrival {
    /// Takes in the next bytes.
    pub fn take_in(&mut self, bytes: &[u8]) -> Arrived {
        match self {
            Self::Archive => Arrived::More,
            Self::Unknown(first) => {
                first.extend_from_slice(bytes);
                let first = match first.first_chunk::<COUNT_BYTES>() {
                    None => return Arrived::Nothing,
                    Some(count) if *count == [0; COUNT_BYTES] => std::mem::take(first),
                    Some(_) => {
                        let first = std::mem::take(first);
                        *self = Self::Archive;
                        return Arrived::First(first);
                    }
                };
                *self = Self::Counts(Vec::new());
                self.take_in(&first)
            }
            Self::Counts(rest) => {
                rest.extend_from_slice(bytes);
                let (counts, behind) = rest.as_chunks::<COUNT_BYTES>();
                let counts = counts.iter().map(|count| FileCount::from_value(u64::from_le_bytes(*count)));
                let counts = counts.collect();
                *rest = behind.to_vec();
                Arrived::Counts(counts)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/protocol.md#files-that-are-handed-over
    #[test]
    fn the_first_eight_bytes_show_whether_the_manager_writes_the_file() {
        let mut arrival = Arrival::Unknown(Vec::new());
        let counts: Vec<u8> = [0, 8, 1 << 63 | 300].into_iter().flat_map(u64::to_le_bytes).collect();
        let arrived: Vec<_> = counts.iter().map(|byte| arrival.take_in(&[*byte])).collect();
        let counts = |arrived: &Arrived| match arrived {
            Arrived::Counts(counts) => counts.clone(),
            _ => Vec::new(),
        };
        let counts: Vec<_> = arrived.iter().flat_map(counts).collect();
        assert_eq!(counts, [FileCount::Written(0), FileCount::Written(8), FileCount::Complete(300)]);
        assert!(matches!(arrival, Arrival::Counts(rest) if rest.is_empty()));

        let archive = [0x10, 0, 4, 0x46, 0x78, 0x54, 0x16, 0];
        let mut arrival = Arrival::Unknown(Vec::new());
        assert_eq!(arrival.take_in(&archive[..7]), Arrived::Nothing);
        assert_eq!(arrival.take_in(&archive[7..]), Arrived::First(archive.to_vec()));
        assert_eq!(arrival.take_in(&[0; 8]), Arrived::More);
    }

    #[test]
    fn a_file_is_back_when_the_manager_has_closed_the_socket() {
        let lending = Lending::default();
        let (ours, theirs) = Socket::pair().unwrap();
        theirs.write(&[0; 24]).unwrap();
        let lent = lending.begin(ours);
        assert!(lending.is_lent());
        rustix::net::shutdown(&theirs, rustix::net::Shutdown::Both).unwrap();
        drop(lent);
        assert!(!lending.is_lent());
        // A manager that does not let it go.
        let (ours, theirs) = Socket::pair().unwrap();
        drop(lending.begin(ours));
        assert!(lending.is_lent());
        assert_eq!(theirs.read(&mut [0; 8]).unwrap(), 0);
    }
}
