//! The terminal as a screen of its own, which is left as it was.

use super::feed::Picture;
use super::keys::RawMode;
use super::layout::{View, lines};
use super::own::State;
use crate::shell::exit::Failure;
use crate::shell::stdio::{Stdout, terminal_size};
use std::io::Write;
use trace_format::units::ProviderId;

/// The other screen, no cursor, no wrapping.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// From the first line on.
const HOME: &str = "\x1b[H";
const NEXT_LINE: &str = "\r\n";
/// Before a line is written: behind its last column, it would clear that one.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_REST: &str = "\x1b[J";

/// The screen.
pub struct Screen {
    _raw: RawMode,
    size: (usize, usize),
    only: Option<ProviderId>,
}

impl Screen {
    pub fn open() -> Result<Self, Failure> {
        // Dropped if the terminal takes nothing.
        let screen = Self { _raw: RawMode::enter(), size: (0, 0), only: None };
        write(ENTER)?;
        Ok(screen)
    }

    /// Whether the size has changed since it was drawn.
    pub fn has_new_size(&self) -> bool {
        terminal_size() != self.size
    }

    /// Shows one program after the other, and then all again.
    pub fn show_next(&mut self, picture: Option<&Picture>) {
        let providers = picture.into_iter().flat_map(|picture| &picture.counts.providers);
        let mut ids: Vec<u32> = providers.map(|provider| provider.progress.id).collect();
        ids.sort_unstable();
        let after = self.only.map_or(0, |only| only.0 + 1);
        self.only = ids.into_iter().find(|id| *id >= after).map(ProviderId);
    }

    /// Draws a picture.
    pub fn draw(&mut self, picture: Option<&Picture>, own: Option<State>) -> Result<(), Failure> {
        self.size = terminal_size();
        let (width, height) = self.size;
        let lines = lines(picture, View { width, height, only: self.only, own });
        let mut text = String::from(HOME);
        for (place, line) in lines.iter().enumerate() {
            // Without a line end behind the last, which would move all of them up.
            text.push_str(if place > 0 { NEXT_LINE } else { "" });
            text.push_str(CLEAR_LINE);
            text.push_str(line);
        }
        if lines.len() < height {
            text.push_str(NEXT_LINE);
            text.push_str(CLEAR_REST);
        }
        write(&text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write(LEAVE);
    }
}

fn write(text: &str) -> Result<(), Failure> {
    Stdout
        .write_all(text.as_bytes())
        .map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))
}
