//! Hosts that take all numbers of descriptors for themselves.

use crate::begun::Host;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use trace_provider::local;

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

/// Closes all descriptors in a loop, on a thread, while the guest is asked for everything that it can do.
/// What this thread opens is its own until it closes it.
pub fn closes(host: &mut Host) {
    let is_over = AtomicBool::new(false);
    if !matches!(&*host.way, "local" | "startup") {
        host.begin();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                open_and_close();
            }
        });
        // A panic, too, ends the thread.
        let _over = Over(&is_over);
        if host.guest.is_some() {
            host.record("before");
            host.record("after");
            host.end();
            return;
        }
        for _ in 0..ROUNDS {
            host.begin();
            host.record("before");
            if host.way == "local" {
                local::snapshot_to_file(&host.file(), None).expect("a snapshot");
            }
            host.record("after");
            host.end();
            if host.way == "local" {
                host.begin();
                host.record("before");
                let mut bytes = 0;
                local::flush(|piece, _| bytes += piece.len()).expect("an archive");
                assert!(bytes > 1000, "{bytes}");
            }
        }
    });
}

/// How often a recording begins and ends while all descriptors are closed.
const ROUNDS: usize = 30;

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn open_and_close() {
    let mut pipe = [0; 2];
    // SAFETY: a place for two numbers.
    assert_eq!(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_NONBLOCK) }, 0);
    for _ in 0..20 {
        let mut byte = 0_u8;
        // SAFETY: a place for a byte.
        let read = unsafe { libc::read(pipe[0], (&raw mut byte).cast(), 1) };
        let error = std::io::Error::last_os_error();
        assert_eq!((read, error.raw_os_error()), (-1, Some(libc::EAGAIN)), "a pipe that nothing writes to");
    }
    // SAFETY: numbers of this function's.
    let closed = pipe.map(|number| unsafe { libc::close(number) });
    assert_eq!(closed, [0; 2], "closed by another");
    // SAFETY: what programs do that want to have no descriptors but those they know.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) }, 0);
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
