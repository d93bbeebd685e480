//! Users share what is bounded: one who takes much keeps no other from it.
//= docs/protocol.md#limits

use crate::core::Uid;
use std::collections::{BTreeMap, BTreeSet};

/// The users with most of something, given whose each is.
pub(super) fn greediest(users: impl Iterator<Item = Uid>) -> BTreeSet<Uid> {
    let mut counts: BTreeMap<Uid, usize> = BTreeMap::new();
    for uid in users {
        *counts.entry(uid).or_default() += 1;
    }
    let most = counts.values().max().copied();
    counts.into_iter().filter(|(_, count)| Some(*count) == most).map(|(uid, _)| uid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_gives_way() {
        let found = |users: &[u32]| greediest(users.iter().copied().map(Uid)).into_iter().collect::<Vec<_>>();
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[1, 2, 2, 1, 2]), [Uid(2)]);
        assert_eq!(found(&[2, 3, 1, 1, 2]), [Uid(1), Uid(2)]);
    }
}
