//! The process's descriptors: connections may not use up those that recordings need.
//= docs/protocol.md#limits

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsFd, AsRawFd};
use zx_sim::{Error, Result};

/// How many are left for recordings, for buffers and files; as many again for connections of clients, who may
/// want to end one.
const RESERVED: u64 = 128;
/// What part of all that is at most.
const RESERVED_PART: u64 = 8;

/// What descriptors are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Programs.
    Provider,
    /// Connections of clients.
    Client,
}

/// Whether another descriptor may be used for something.
///
/// # Errors
/// There are too few left.
pub(super) fn check(any: &impl AsFd, purpose: Purpose) -> Result<()> {
    // A new descriptor has the lowest number that is free.
    let number = rustix::io::fcntl_dupfd_cloexec(any, 0).map(|probe| probe.as_raw_fd());
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    match number.map(u64::try_from) {
        Ok(Ok(number)) if number < first_reserved(limit, purpose) => Ok(()),
        _ => Err(Error::io("cannot accept a connection", Errno::MFILE)),
    }
}

fn first_reserved(limit: u64, purpose: Purpose) -> u64 {
    let reserved = RESERVED.min(limit / RESERVED_PART);
    match purpose {
        Purpose::Provider => limit - 2 * reserved,
        Purpose::Client => limit - reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_left_for_recordings() {
        let first =
            |limit| [Purpose::Provider, Purpose::Client].map(|purpose| first_reserved(limit, purpose));
        assert_eq!([64, 1024, 65_536].map(first), [[48, 56], [768, 896], [65_280, 65_408]]);
        check(&std::io::stdin(), Purpose::Provider).unwrap();
    }
}
