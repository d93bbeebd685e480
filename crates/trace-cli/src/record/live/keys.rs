//! Keys of the terminal, and the signals that end the command.

use crate::shell::exit::Failure;
use crate::shell::signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGWINCH;
use std::io::{IsTerminal, stdin};
use std::time::Duration;
use zx_sim::{Error, Socket};

/// How long to wait for anything before the screen is looked at again.
const WAIT: Duration = Duration::from_millis(500);

/// What a key wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `q`, Ctrl-C, Ctrl-D.
    Quit,
    /// Tab, or an arrow.
    Next,
}

/// The user's side of the terminal.
pub struct Keys {
    signals: Socket,
    _resized: Socket,
    resized: Socket,
}

/// The terminal gives keys at once, and Ctrl-C as a key; as before when this is dropped.
pub struct RawMode(Option<Termios>);

impl RawMode {
    pub fn enter() -> Self {
        let stdin = stdin();
        if !stdin.is_terminal() {
            return Self(None);
        }
        let Ok(before) = tcgetattr(&stdin) else {
            return Self(None);
        };
        let mut raw = before.clone();
        raw.make_raw();
        let entered = tcsetattr(&stdin, OptionalActions::Now, &raw);
        Self(entered.is_ok().then_some(before))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
        }
    }
}

impl Keys {
    /// From here on signals are read here.
    pub fn open() -> Result<Self, Failure> {
        let failed = |error: Error| Failure::new(error.to_string());
        let refused = |error: std::io::Error| Failure::new(format!("cannot handle signals: {error}"));
        let (signals, writer) = Socket::pair().map_err(failed)?;
        for signal in signals::ending() {
            let writer = writer.duplicate().map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, writer).map_err(refused)?;
        }
        let (resized, writer) = Socket::pair().map_err(failed)?;
        let kept = writer.duplicate().map_err(failed)?;
        signal_hook::low_level::pipe::register(SIGWINCH, writer).map_err(refused)?;
        Ok(Self { signals, _resized: kept, resized })
    }

    /// Readable when a signal has come.
    pub fn signals(&self) -> &Socket {
        &self.signals
    }

    /// Whether a signal has come since the last call.
    pub fn has_signal(&self) -> bool {
        is_readable(&self.signals)
    }

    /// The keys that were pressed since the last call.
    pub fn pressed(&self) -> Vec<Key> {
        is_readable(&self.resized);
        if !stdin().is_terminal() {
            return Vec::new();
        }
        let mut bytes = [0; 64];
        let mut polled = [PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN)];
        let is_ready = poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        match is_ready.and_then(|ready| {
            if ready > 0 { rustix::io::read(rustix::stdio::stdin(), &mut bytes) } else { Ok(0) }
        }) {
            Ok(read) => keys_of(&bytes[..read]),
            Err(_) => Vec::new(),
        }
    }

    /// Waits for a key, a signal, another size, or something else.
    pub fn wait(&self, other: &Socket) {
        let mut polled = vec![
            PollFd::new(other, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.resized, PollFlags::IN),
        ];
        if stdin().is_terminal() {
            polled.push(PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN));
        }
        let timeout = Timespec::try_from(WAIT).ok();
        // An error is that of an interrupted wait.
        let _ = poll(&mut polled, timeout.as_ref());
    }
}

fn is_readable(socket: &Socket) -> bool {
    let mut bytes = [0; 64];
    let mut has_read = false;
    while matches!(socket.read(&mut bytes), Ok(read) if read > 0) {
        has_read = true;
    }
    has_read
}

fn keys_of(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'q' | b'Q' | 3 | 4 => keys.push(Key::Quit),
            b'\t' => keys.push(Key::Next),
            0x1b => {
                // A sequence is one key: those of arrows end in a letter.
                let Some(sequence) = rest.strip_prefix(b"[") else { continue };
                let end = sequence.iter().position(u8::is_ascii_alphabetic);
                if matches!(end.and_then(|end| sequence.get(end)), Some(b'A'..=b'D')) {
                    keys.push(Key::Next);
                }
                rest = end.and_then(|end| sequence.get(end + 1..)).unwrap_or_default();
            }
            _ => {}
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_one_key() {
        assert_eq!(keys_of(b"xq"), [Key::Quit]);
        assert_eq!(keys_of(b"\x03\t"), [Key::Quit, Key::Next]);
        assert_eq!(keys_of(b"\x1b[B\x1b[1;2A"), [Key::Next, Key::Next]);
        // A key of a function is none of ours, and its letters are no keys.
        assert_eq!(keys_of(b"\x1b[15~q\x1b[q"), []);
        assert_eq!(keys_of(b"\x1b"), []);
    }
}
