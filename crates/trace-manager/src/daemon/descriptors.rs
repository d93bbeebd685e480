//! The process's descriptors: connections may not use up those that recordings need.
//= docs/protocol.md#limits

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsFd, AsRawFd};
use zx_sim::{Error, Result};

/// How many are left for recordings: for buffers and files.
const RESERVED: u64 = 128;
/// What part of all that is at most.
const RESERVED_PART: u64 = 8;

/// Whether another connection may be accepted.
///
/// # Errors
/// There are too few descriptors left.
pub(super) fn check(listener: &impl AsFd) -> Result<()> {
    // A new descriptor has the lowest number that is free.
    let number = rustix::io::fcntl_dupfd_cloexec(listener, 0).map(|probe| probe.as_raw_fd());
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    match number.map(u64::try_from) {
        Ok(Ok(number)) if number < first_reserved(limit) => Ok(()),
        _ => Err(Error::io("cannot accept a connection", Errno::MFILE)),
    }
}

fn first_reserved(limit: u64) -> u64 {
    limit - RESERVED.min(limit / RESERVED_PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_left_for_recordings() {
        assert_eq!([64, 1024, 65_536].map(first_reserved), [56, 896, 65_408]);
        check(&std::io::stdin()).unwrap();
    }
}
