//! Why a program is not recorded.

use std::fmt;
use std::io;
use std::path::PathBuf;
use trace_engine::engine;
use trace_format::buffer::{BUFFER_VERSION, BadBufferSize};

/// Why a program, or its provider, is not recorded. The program runs on.
#[derive(Debug)]
pub(crate) enum Unrecorded {
    /// The manager's buffers have a header of another version.
    BufferHeader { found: u16 },
    /// The manager has another clock.
    Clock { found: String },
    /// The buffer cannot be mapped.
    Unmappable(zx_sim::Error),
    /// Another provider of this process is recorded, or the program records itself.
    Already { by: &'static str },
    /// There is no buffer in which to start.
    NoBuffer,
    /// A buffer of the program's own is no stream.
    Streaming,
    /// A buffer of the program's own has too many or too few mebibytes.
    Mebibytes { found: u64, limit: u64 },
    /// The control group of the process has no room for the buffer: both in bytes.
    Memory { needed: u64, room: u64 },
    /// What is asked for has a value that is not possible.
    Option { name: &'static str, problem: String },
    /// There is no directory in which a program can record itself.
    NoDirectory,
    /// A file cannot be written.
    File { path: PathBuf, error: io::Error },
    /// No buffer has this size.
    Size(BadBufferSize),
    /// The engine is not in the state for it.
    Engine(engine::Error),
    /// The operating system has refused.
    System(zx_sim::Error),
}

impl fmt::Display for Unrecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BufferHeader { found } => write!(
                f,
                "the manager's buffer header has version {found}, this program writes version {BUFFER_VERSION}"
            ),
            Self::Clock { found } => {
                let source = zx_sim::ticks::source().name();
                write!(f, "the manager's clock is {found}, this program's is {source}")
            }
            Self::Unmappable(error) => write!(f, "cannot map the buffer: {error}"),
            Self::Already { by } => write!(f, "this process is recorded already{by}"),
            Self::NoBuffer => f.write_str("it has no buffer"),
            Self::Streaming => f.write_str("a buffer of its own is oneshot or circular"),
            Self::Mebibytes { found, limit } => write!(f, "a buffer of {found} MiB, expected 1 to {limit}"),
            Self::Memory { needed, room } => {
                let (needed, room) = (needed.div_ceil(1 << 20), room >> 20);
                write!(f, "the buffer takes {needed} MiB of memory, its control group has room for {room}")
            }
            Self::Option { name, problem } => write!(f, "{name} {problem}"),
            Self::NoDirectory => f.write_str("there is no runtime directory"),
            Self::File { path, error } => write!(f, "cannot write {}: {error}", path.display()),
            Self::Size(error) => error.fmt(f),
            Self::Engine(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unrecorded {}

impl From<BadBufferSize> for Unrecorded {
    fn from(error: BadBufferSize) -> Self {
        Self::Size(error)
    }
}

impl From<engine::Error> for Unrecorded {
    fn from(error: engine::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<zx_sim::Error> for Unrecorded {
    fn from(error: zx_sim::Error) -> Self {
        Self::System(error)
    }
}
