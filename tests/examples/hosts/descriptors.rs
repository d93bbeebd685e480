//! Hosts that take all numbers of descriptors for themselves.

use crate::begun::Host;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

/// Numbers that the program takes: more than a guest would have.
const NUMBERS: std::ops::Range<RawFd> = 3..64;
const SENT: &[u8; 8] = b"untouchd";

/// A socket of the host's under many numbers.
pub struct Own {
    peer: UnixStream,
    socket: UnixStream,
    numbers: std::ops::Range<RawFd>,
}

impl Own {
    /// Puts it at all numbers, whatever is there.
    pub fn take(numbers: std::ops::Range<RawFd>) -> Self {
        let (socket, peer) = UnixStream::pair().expect("sockets");
        let [socket, peer] = [socket, peer].map(|socket| {
            // SAFETY: a number of this program's, out of the way.
            let number = unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_DUPFD, NUMBERS.end) };
            assert!(number >= NUMBERS.end);
            // SAFETY: the call just returned it.
            unsafe { std::os::fd::FromRawFd::from_raw_fd(number) }
        });
        let own = Self { peer, socket, numbers };
        for number in own.numbers.clone() {
            // SAFETY: numbers; whatever stood there is not this program's.
            assert_eq!(unsafe { libc::dup2(own.socket.as_raw_fd(), number) }, number);
        }
        rustix::io::write(&own.peer, SENT).expect("room");
        own
    }

    /// All numbers lead to it still, nothing was written into it, and nothing was read.
    pub fn check(&self) {
        let link = |number: RawFd| {
            let link = std::fs::read_link(format!("/proc/thread-self/fd/{number}"));
            link.unwrap_or_else(|error| panic!("{number}: {error}"))
        };
        let expected = link(self.socket.as_raw_fd());
        self.numbers.clone().for_each(|number| assert_eq!(link(number), expected, "{number}"));
        for socket in [&self.peer, &self.socket] {
            socket.set_nonblocking(true).expect("a socket");
        }
        let mut bytes = [0; 64];
        let found = rustix::io::read(&self.peer, &mut bytes);
        assert_eq!(found, Err(rustix::io::Errno::AGAIN), "foreign bytes: {bytes:?}");
        let found = rustix::io::read(&self.socket, &mut bytes);
        assert_eq!((found, &bytes[..8]), (Ok(8), &SENT[..]), "read by another");
    }
}

/// Closes all descriptors but the standard ones, and puts a socket of its own in their places.
pub fn close(host: &mut Host) {
    host.begin();
    host.record("before");
    // SAFETY: what programs do that want to have no descriptors but those they know.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
    let own = Own::take(NUMBERS);
    host.record("after");
    host.end();
    own.check();
}

/// Closes standard input, output and error, and opens files of its own there later.
pub fn standard(host: &mut Host) {
    for number in 0..3 {
        // SAFETY: a number; nothing prints any more.
        unsafe { libc::close(number) };
    }
    host.begin();
    trace_provider::atrace::instant("here");
    host.record("before");
    for number in 0..3 {
        // SAFETY: a number.
        assert_eq!(unsafe { libc::fcntl(number, libc::F_GETFD) }, -1, "{number} was taken");
    }
    let own = Own::take(0..3);
    trace_provider::atrace::instant("there");
    host.record("after");
    host.end();
    own.check();
}
