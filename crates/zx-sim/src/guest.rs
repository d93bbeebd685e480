//! What a library keeps to itself in a program of others, and what it leaves alone.
//!
//! | module | keeps apart |
//! |---|---|
//! | [`apart`] | descriptors, in a table of a thread of the library's |
//! | [`identity`] | descriptors that have to be in the program's table, by what they stand for |
//! | [`thread`] | threads, which take none of the program's signals |
//! | [`children`] | forked children, which close what is their parent's |
//! | [`quiet`] | signals that writing raises |
//! | [`detached`] | processes, which are no children of the program's |
//! | [`loaded`] | its code, which stays where the program unloads a plugin |

pub mod apart;
pub mod children;
pub mod detached;
pub mod identity;
pub mod loaded;
pub mod quiet;
pub mod thread;

pub use children::ClosedInChildren;
pub use identity::{Guarded, Identity};
pub use quiet::Quiet;

use crate::error::{Error, Result};
use rustix::io::fcntl_dupfd_cloexec;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Standard input, output and error have the numbers below.
pub(crate) const FIRST_ORDINARY: RawFd = 3;

/// Not in the place of standard input, output or error, if the program has closed them: it opens others
/// there.
///
/// # Errors
/// The process is out of descriptors.
pub fn beyond_standard(descriptor: OwnedFd) -> Result<OwnedFd> {
    if descriptor.as_raw_fd() >= FIRST_ORDINARY { Ok(descriptor) } else { moved(&descriptor) }
}

#[cold]
#[inline(never)]
fn moved(descriptor: &OwnedFd) -> Result<OwnedFd> {
    fcntl_dupfd_cloexec(descriptor, FIRST_ORDINARY)
        .map_err(|source| Error::io("cannot duplicate a descriptor", source))
}
