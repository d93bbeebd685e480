//! Diagnostic lines on standard error, from processes that must not be affected if standard error does not
//! accept them.
//!
//! Standard error may be closed, full, a terminal that has gone, or a pipe without a reader. Then the line is
//! lost, and nothing else happens: no thread waits, panics, or gets a signal.

use crate::guest::Quiet;
use crate::guest::apart::is_apart;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use rustix::net::{SendFlags, send};
use rustix::process::{PidfdFlags, PidfdGetfdFlags};
use std::fs::File;
use std::io::IoSlice;
use std::os::fd::AsFd;

/// Longest line in bytes, its end included: what a pipe that has any room takes at once.
pub const MAX_LINE_BYTES: usize = 4096;

/// Writes a line, cut to [`MAX_LINE_BYTES`]. False if it was lost, in whole or in part.
pub fn write(text: &str) -> bool {
    write_to(&std::io::stderr(), text)
}

/// As [`write`], but to the process's current standard error, from a thread that may have [descriptors of its
/// own](crate::guest::apart).
pub fn write_for_process(text: &str) -> bool {
    match is_apart() {
        true => stderr_of_process().is_some_and(|output| write_to(&output, text)),
        false => write(text),
    }
}

fn stderr_of_process() -> Option<File> {
    const STDERR: i32 = 2;
    let process = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
    let found =
        process.and_then(|process| rustix::process::pidfd_getfd(process, STDERR, PidfdGetfdFlags::empty()));
    // Filters of containers may forbid that. A file that is opened again is written at its end; opening must
    // not wait for a reader.
    let again = || {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open("/proc/self/fd/2", flags, Mode::empty())
    };
    found.or_else(|_| again()).map(File::from).ok()
}

fn write_to(output: &impl AsFd, text: &str) -> bool {
    let mut end = text.len().min(MAX_LINE_BYTES - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    let line = [text.as_bytes(), b"\n"].concat();
    put(output, &line) == Ok(line.len())
}

/// Writes as much as there is room for, without waiting.
fn put(output: &impl AsFd, bytes: &[u8]) -> Result<usize, Errno> {
    let mut polled = [PollFd::new(output, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    if polled[0].revents() != PollFlags::OUT {
        return Err(Errno::AGAIN);
    }
    let _quiet = Quiet::new();
    match send(output, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Err(Errno::NOTSOCK) => {}
        sent => return sent,
    }
    // Whatever other processes have written since.
    let at_its_end = u64::MAX;
    match pwritev2(output, &[IoSlice::new(bytes)], at_its_end, ReadWriteFlags::NOWAIT) {
        // Terminals and some file systems do not support the flag.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => rustix::io::write(output, bytes),
        // A file whose next page is not in memory.
        Err(Errno::AGAIN) if is_file(output) => rustix::io::write(output, bytes),
        written => written,
    }
}

fn is_file(output: &impl AsFd) -> bool {
    use rustix::fs::FileType;
    rustix::fs::fstat(output).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_line_arrives() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        assert!(write_to(&writer, "hello"));
        assert!(write_to(&writer, &"ä".repeat(3000)), "a line that is too long is cut");
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        let long = "ä".repeat(MAX_LINE_BYTES / 2 - 1);
        assert_eq!(text, format!("hello\n{long}\n"));
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut log = File::options().append(true).open(file.path()).unwrap();
        assert!(write_to(&log, "one") && write_to(&log, "two"));
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "one\ntwo\n");
        log = File::options().read(true).open(file.path()).unwrap();
        assert!(!write_to(&log, "cannot be written"));
    }

    #[test]
    fn a_full_pipe_loses_lines_and_takes_them_again() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let line = "x".repeat(MAX_LINE_BYTES - 1);
        let mut lines = 0;
        while write_to(&writer, &line) {
            lines += 1;
        }
        assert!(lines > 0 && !write_to(&writer, "lost"));
        let mut bytes = vec![0; MAX_LINE_BYTES * lines];
        reader.read_exact(&mut bytes).unwrap();
        assert!(write_to(&writer, "there is room"));
    }

    #[test]
    fn a_closed_reader_ends_no_process() {
        let _alone = crate::guest::apart::COPIES.lock();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert!(!write_to(&writer, "lost"));
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert!(!write_to(&full, "lost"));
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(write_to(&ours, "heard"));
        drop(theirs);
        assert!(!write_to(&ours, "lost"));
    }
}
