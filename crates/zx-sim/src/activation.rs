//! Sockets that another process listened on before this one was started: systemd's socket units.
//!
//! The environment names the process that they are for (`LISTEN_PID`) and their number (`LISTEN_FDS`), as
//! descriptors from 3 on. These are only numbers: a descriptor is used if it turns out to be what was
//! expected, and through a duplicate, so that no other part of the process can lose its own by it.

use crate::channel::BACKLOG;
use crate::environment;
use crate::error::{Error, Result};
use crate::sys;
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, getsockname, sockopt};
use std::ffi::OsStr;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const PID_VARIABLE: &str = "LISTEN_PID";
const COUNT_VARIABLE: &str = "LISTEN_FDS";
/// The first descriptor behind stderr.
const FIRST: RawFd = 3;

/// The socket at a path that this process was started with. None if it was started with none.
///
/// # Errors
/// It was started with something else: not with one socket, not with a listening one for channels, or with
/// one that has another path.
pub(crate) fn socket(path: &Path) -> Result<Option<OwnedFd>> {
    let number = |name| environment::variable(name)?.to_str()?.parse::<u32>().ok();
    if number(PID_VARIABLE) != Some(std::process::id()) {
        // For the process that started this one.
        return Ok(None);
    }
    match number(COUNT_VARIABLE) {
        Some(1) => {}
        None | Some(0) => return Ok(None),
        Some(count) => {
            return Err(Error::OutOfRange { what: COUNT_VARIABLE, found: count.into(), least: 0, most: 1 });
        }
    }
    let failed = |source| Error::io(format!("cannot use descriptor {FIRST} of {COUNT_VARIABLE}"), source);
    let socket = sys::duplicate_inherited(FIRST).map_err(failed)?;
    check(&socket, path)?;
    // Peers that connect see the credentials of this process, not of the one that listened before it.
    rustix::net::listen(&socket, BACKLOG).map_err(|source| failed(source.into()))?;
    let flags = rustix::fs::fcntl_getfl(&socket).map_err(|source| failed(source.into()))?;
    rustix::fs::fcntl_setfl(&socket, flags | OFlags::NONBLOCK).map_err(|source| failed(source.into()))?;
    Ok(Some(socket))
}

fn check(socket: &OwnedFd, path: &Path) -> Result<()> {
    let is_right = sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(socket) == Ok(SocketType::SEQPACKET)
        && sockopt::socket_acceptconn(socket) == Ok(true);
    if !is_right {
        return Err(Error::WrongType { expected: "listening Unix socket of type SEQPACKET" });
    }
    let address = getsockname(socket).ok().and_then(|address| SocketAddrUnix::try_from(address).ok());
    let found = address.as_ref().and_then(SocketAddrUnix::path_bytes).unwrap_or_default();
    let found = PathBuf::from(OsStr::from_bytes(found));
    if real(&found).is_some_and(|found| Some(found) == real(path)) {
        return Ok(());
    }
    Err(Error::ListensElsewhere { found })
}

/// A path whose directories are no symbolic links, such as `/var/run`.
fn real(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}
