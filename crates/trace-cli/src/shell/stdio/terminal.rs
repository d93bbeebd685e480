//! The terminal that progress is drawn on. A frame that it does not accept at once is skipped.

use super::{MESSAGES, PATIENCE};
use indicatif::{ProgressDrawTarget, TermLike};
use std::fmt::Write as _;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Frames per second.
const HERTZ: u8 = 20;

/// A target on stderr, if that is a terminal that moves its cursor.
pub(super) fn draw_target() -> ProgressDrawTarget {
    match super::has_terminal() && !super::is_dumb() {
        true => ProgressDrawTarget::term_like_with_hz(Box::new(Terminal::default()), HERTZ),
        false => ProgressDrawTarget::hidden(),
    }
}

/// Collects a frame, and writes it whole.
#[derive(Debug, Default)]
struct Terminal {
    frame: Mutex<String>,
}

impl Terminal {
    fn add(&self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        let written = self.frame.lock().unwrap_or_else(PoisonError::into_inner).write_fmt(text);
        written.map_err(io::Error::other)
    }

    /// Moves the cursor; the terminal would take a distance of 0 for 1.
    fn step(&self, distance: usize, direction: char) -> io::Result<()> {
        if distance == 0 { Ok(()) } else { self.add(format_args!("\x1b[{distance}{direction}")) }
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        console::Term::stderr().size().1
    }

    fn height(&self) -> u16 {
        console::Term::stderr().size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.step(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.step(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.step(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.step(n, 'D')
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.add(format_args!("{s}\n"))
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        self.add(format_args!("{s}"))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.add(format_args!("\r\x1b[2K"))
    }

    fn flush(&self) -> io::Result<()> {
        let frame = std::mem::take(&mut *self.frame.lock().unwrap_or_else(PoisonError::into_inner));
        if !frame.is_empty() {
            MESSAGES.draw(frame.as_bytes(), PATIENCE);
        }
        Ok(())
    }
}
