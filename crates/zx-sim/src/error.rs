//! Errors of operations on objects.

use std::path::PathBuf;
use std::{fmt, io};

/// The result of an operation on an object.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on an object failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to read, or no room to write, for now.
    ShouldWait,
    /// The other end is closed.
    PeerClosed,
    /// More bytes than a message or element holds.
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its size in bytes.
        found: usize,
        /// The largest size in bytes.
        limit: usize,
    },
    /// A number that the object cannot have.
    OutOfRange {
        /// What the number counts, with its unit.
        what: &'static str,
        /// The number.
        found: u64,
        /// The smallest that is possible.
        least: u64,
        /// The largest that is possible.
        most: u64,
    },
    /// An element of another size than the FIFO's.
    ElementSize {
        /// Size of the FIFO's elements in bytes.
        expected: usize,
        /// Size found in bytes.
        found: usize,
    },
    /// More handles than a message carries.
    TooManyHandles {
        /// Handles in the message.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// A message was received whose handles this process can have no descriptors for: both are gone.
    HandlesLost,
    /// A handle of another kind than required.
    WrongType {
        /// The kind asked for.
        expected: &'static str,
    },
    /// The directory has no room for a VMO that is backed in full.
    NoSpace {
        /// The directory of the VMO.
        directory: PathBuf,
        /// Its size in bytes.
        needed: u64,
        /// Free bytes of the file system.
        available: u64,
    },
    /// A runtime directory that is not safe to use.
    Unsafe {
        /// The directory.
        path: PathBuf,
        /// The problem with it.
        problem: Unsafe,
    },
    /// A socket that the process was started with is not the one that is needed.
    ListensElsewhere {
        /// Its path; empty if it has none.
        found: PathBuf,
    },
    /// The operating system refused.
    Io {
        /// The operation that failed.
        what: String,
        /// The operating system's error; a part of the text, and no source.
        error: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShouldWait => f.write_str("not ready yet"),
            Self::PeerClosed => f.write_str("the other end is closed"),
            Self::TooLong { what, found, limit } => {
                write!(f, "{what} of {found} bytes, at most {limit} are possible")
            }
            Self::OutOfRange { what, found, least, most } => {
                write!(f, "{what} is {found}, expected {least} to {most}")
            }
            Self::ElementSize { expected, found } => {
                write!(f, "element of {found} bytes, expected {expected}")
            }
            Self::TooManyHandles { found, limit } => {
                write!(f, "message with {found} handles, at most {limit} are possible")
            }
            Self::HandlesLost => {
                f.write_str("this process has no descriptors for the handles of a message (ulimit -n)")
            }
            Self::WrongType { expected } => write!(f, "handle is not a {expected}"),
            Self::NoSpace { directory, needed, available } => {
                write!(f, "no room in {}: {needed} bytes needed, {available} available", directory.display())
            }
            Self::Unsafe { path, problem } => write!(f, "{}: {problem}", path.display()),
            Self::ListensElsewhere { found } => {
                write!(f, "the socket that this process was started with listens at {}", found.display())
            }
            Self::Io { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Why a runtime directory is not safe to use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsafe {
    /// Other users may replace a directory above it.
    Replaceable {
        /// That directory.
        above: PathBuf,
    },
    /// It is a symbolic link.
    Symlink,
    /// It is something else.
    NotDirectory,
    /// It is another user's.
    Owner {
        /// Its owner.
        found: u32,
        /// The user of this process.
        expected: u32,
    },
    /// Other users have more access to it, or less, than they may have.
    Mode {
        /// Its permissions.
        found: u32,
        /// Those that it should have.
        expected: u32,
    },
}

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaceable { above } => {
                write!(f, "is below {}, where other users may replace it", above.display())
            }
            Self::Symlink => f.write_str("is a symbolic link, which is not followed"),
            Self::NotDirectory => f.write_str("is not a directory"),
            Self::Owner { found, expected } => write!(f, "belongs to user {found}, not to user {expected}"),
            Self::Mode { found, expected } => write!(f, "has mode {found:04o}, expected {expected:04o}"),
        }
    }
}

impl Error {
    /// An error of the operating system, with the operation that failed.
    pub fn io(what: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::Io { what: what.into(), error: error.into() }
    }

    /// Sorts an error of a read or write into those every caller handles and the rest.
    pub(crate) fn of_transfer(what: &'static str, source: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        match source {
            Errno::AGAIN => Self::ShouldWait,
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN | Errno::CONNREFUSED => Self::PeerClosed,
            source => Self::io(what, source),
        }
    }
}
