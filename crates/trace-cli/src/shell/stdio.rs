//! Standard output and standard error: nothing else in this program writes to them.
//!
//! Messages go to stderr. A message that cannot be written is lost: a recording neither fails nor waits
//! because a pipe is full, a disk is full, or a terminal is gone. The results of a command go to stdout: the
//! program waits for a slow reader, stops quietly if the reader closes its end, and reports every other
//! error.

mod messages;
mod terminal;

use crate::shell::exit::Failure;
use crate::shell::table;
use messages::Messages;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use trace_client::pipe::write;
use trace_format::shown::{Escaper, Shown};

/// How long to wait for one message after each byte that was accepted.
const PATIENCE: Duration = Duration::from_millis(100);
/// At the end of the program: how long to wait for remaining messages after each byte that was accepted.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// How long to wait then altogether.
const LAST_WAIT: Duration = Duration::from_secs(10);

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| Messages::to(Arc::new(io::stderr())));

/// Prints one line on stderr, as `eprintln!` does; a line that cannot be written is lost.
macro_rules! say {
    ($($argument:tt)*) => { $crate::shell::stdio::line(format_args!($($argument)*)) };
}
pub(crate) use say;

/// The function behind [`say!`]: prints one line, whatever the names in it contain.
pub fn line(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    MESSAGES.write(format!("{}\n", Shown(&text)).as_bytes(), PATIENCE);
}

/// Prints text of any number of lines on stderr; text that cannot be written is lost.
pub fn report(text: &str) {
    MESSAGES.write(for_people(text).as_bytes(), PATIENCE);
}

/// Escapes all terminal controls other than line ends and colours. Names are escaped when they are put into a
/// text, so that they have neither; this is a second line of defence.
//= docs/dump.md#names-of-others
fn for_people(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut escaper = Escaper::default();
    while let Some(char) = rest.chars().next() {
        let kept = if char == '\n' { 1 } else { colour_bytes(rest) };
        if kept > 0 {
            shown.push_str(&rest[..kept]);
            rest = &rest[kept..];
            escaper = Escaper::default();
            continue;
        }
        // A string takes everything.
        let _ = escaper.write(char, &mut shown);
        rest = &rest[char.len_utf8()..];
    }
    shown
}

/// Length of the sequence at the beginning of a text that changes the colour; 0 if it is something else.
fn colour_bytes(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = parameters.find(|char: char| !char.is_ascii_digit() && char != ';').unwrap_or(0);
    if parameters[end..].starts_with('m') { "\u{1b}[".len() + end + 1 } else { 0 }
}

/// At the end of the program: waits for remaining messages, for a bounded time.
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

/// Whether terminals are to get lines that stay as they are: they cannot move their cursor.
//= docs/command-line.md#environment
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb" || term.is_empty())
}

/// Sets whether text has colours where `NO_COLOR` is set, which counts unless it is empty. The package that
/// writes colours takes an empty one for one that counts.
//= docs/command-line.md#environment
pub fn choose_colours() {
    if let Some(value) = std::env::var_os("NO_COLOR") {
        let is_wanted = value.is_empty() && !is_dumb();
        console::set_colors_enabled(is_wanted && is_stdout_terminal());
        console::set_colors_enabled_stderr(is_wanted && has_terminal());
    }
}

/// The width of the terminal that stdout is; none elsewhere.
pub fn stdout_width() -> Option<usize> {
    is_stdout_terminal().then(|| terminal_size().0)
}

/// The width of the terminal that stderr is; none elsewhere.
pub fn stderr_width() -> Option<usize> {
    has_terminal().then(|| usize::from(console::Term::stderr().size().1))
}

/// Width and height of the terminal that stdout is.
pub fn terminal_size() -> (usize, usize) {
    let (height, width) = console::Term::stdout().size();
    (usize::from(width), usize::from(height))
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

impl AsFd for Stdout {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // Standard output stays open for as long as the program runs.
        static STDOUT: LazyLock<io::Stdout> = LazyLock::new(io::stdout);
        STDOUT.as_fd()
    }
}

/// Prints a result for people on stdout.
pub fn print(text: &str) -> Result<(), Failure> {
    print_document(&for_people(text))
}

/// The same with lines that are folded at a terminal.
pub fn print_folded(text: &str) -> Result<(), Failure> {
    print_document(&table::folded(&for_people(text), stdout_width()))
}

/// Prints a result for programs on stdout, unchanged: its format escapes what has to be escaped.
pub fn print_document(text: &str) -> Result<(), Failure> {
    closed_is_enough(Stdout.write_all(text.as_bytes()))
}

/// The result of writing to stdout: a reader that has closed its end is no failure.
pub fn closed_is_enough(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/dump.md#names-of-others
    #[test]
    fn lines_and_colours_stay_and_nothing_else() {
        for (text, shown) in [
            ("a\nb\n", "a\nb\n"),
            ("\u{1b}[1;31mred\u{1b}[0m, \u{1b}[mplain\n", "\u{1b}[1;31mred\u{1b}[0m, \u{1b}[mplain\n"),
            ("\u{1b}[2J\u{1b}]52;c;x\u{7}\u{1b}[31", "\\u{1b}[2J\\u{1b}]52;c;x\\u{7}\\u{1b}[31"),
            ("\u{202e}größer\r\n", "\\u{202e}größer\\r\n"),
        ] {
            assert_eq!(for_people(text), shown);
        }
    }
}
