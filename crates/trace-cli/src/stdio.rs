//! Standard output and standard error: nothing else in this program writes to them.
//!
//! Messages go to stderr. One that cannot be written is lost: a recording neither fails nor waits because a
//! pipe is full, a disk is full, or a terminal is gone. What a command was asked for goes to stdout: a slow
//! reader is waited for, a reader that has closed its end has seen enough, and every other error is reported.

mod messages;
mod terminal;

use crate::exit::Failure;
use messages::Messages;
use rustix::event::{PollFd, PollFlags, poll};
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// How long one message may take to be written before the program goes on without waiting for it.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long the end of the program waits for what is left, from each byte that was still taken.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// How long it waits altogether.
const LAST_WAIT: Duration = Duration::from_secs(10);

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| Messages::to(Arc::new(io::stderr())));

/// Prints one line on stderr, as `eprintln!` does; the line is lost where it cannot be written.
macro_rules! say {
    ($($argument:tt)*) => { $crate::stdio::line(format_args!($($argument)*)) };
}
pub(crate) use say;

/// What [`say!`] prints.
pub fn line(text: fmt::Arguments<'_>) {
    tell(&format!("{text}\n"));
}

/// Prints text of any number of lines on stderr, as it is; lost where it cannot be written.
pub fn tell(text: &str) {
    MESSAGES.write(text.as_bytes(), PATIENCE);
}

/// Waits for messages that are still to be written, for a bounded time: the end of the program.
pub fn finish() {
    MESSAGES.finish(LAST_PATIENCE, LAST_WAIT);
}

/// Where progress is drawn: at the terminal that stderr is, or nowhere.
pub fn progress_target() -> indicatif::ProgressDrawTarget {
    terminal::draw_target()
}

/// Whether stderr is a terminal.
pub fn has_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether stdout is a terminal.
pub fn is_stdout_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Another descriptor of stderr, for a process that is started.
pub fn duplicate_stderr() -> io::Result<OwnedFd> {
    io::stderr().as_fd().try_clone_to_owned()
}

/// Standard output, without a buffer. A write waits for a slow reader.
#[derive(Debug, Default)]
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write(io::stdout().as_fd(), bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Prints a result on stdout.
pub fn print(text: &str) -> Result<(), Failure> {
    closed_is_enough(Stdout.write_all(text.as_bytes()))
}

/// What became of a result that was written to stdout: a reader that has closed its end is no failure.
pub fn closed_is_enough(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes some bytes. Another process that shares the descriptor may have made it non-blocking: then this
/// waits.
fn write(output: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match rustix::io::write(output, bytes) {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                // An error shows in the next write.
                let _ = poll(&mut [PollFd::new(&output, PollFlags::OUT)], None);
            }
            written => return Ok(written?),
        }
    }
}
