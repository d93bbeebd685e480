//! Users share what is bounded: one who takes much keeps no other from it.
//= docs/protocol.md#limits

use crate::core::Uid;
use std::collections::BTreeMap;

/// The user with most of something, given whose each is; of several with as many the last to have got one.
pub(super) fn greediest(users: impl Iterator<Item = Uid>) -> Option<Uid> {
    let mut counts: BTreeMap<Uid, (usize, usize)> = BTreeMap::new();
    for (place, uid) in users.enumerate() {
        let (count, last) = counts.entry(uid).or_default();
        (*count, *last) = (*count + 1, place);
    }
    counts.into_iter().max_by_key(|(_, count_and_last)| *count_and_last).map(|(uid, _)| uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_gives_way_and_of_equals_the_last() {
        let found = |users: &[u32]| greediest(users.iter().copied().map(Uid));
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[1, 2, 2, 1, 2]), Some(Uid(2)));
        assert_eq!(found(&[2, 1, 1, 2]), Some(Uid(2)));
        assert_eq!(found(&[2, 2, 1, 1]), Some(Uid(1)));
    }
}
