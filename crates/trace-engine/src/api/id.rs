//! Ids of counters, asynchronous operations and flows.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// A 64-bit id. Numbers convert into it: `Id::from(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub u64);

impl Id {
    /// A fresh id, never 0, that no other process on this machine is likely to have: the time in
    /// nanoseconds above 16 random bits.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a default that differs each time would surprise")]
    pub fn new() -> Self {
        // A clock that was set before 1970 gives ids that differ by chance alone.
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let random = RandomState::new().build_hasher().finish() & 0xffff;
        Self((nanos << 16 | random).max(1))
    }
}

impl From<u64> for Id {
    fn from(id: u64) -> Self {
        Self(id)
    }
}

#[cfg(test)]
mod tests {
    use super::Id;

    #[test]
    fn fresh_ids_differ() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| Id::new()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(!ids.contains(&Id(0)));
    }
}
