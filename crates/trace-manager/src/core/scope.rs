//! The programs of a session: those that its user may see, or some of them by their names.
//!
//! No program is in two sessions: one whose programs may be those of another is refused, whichever programs
//! run.
//= docs/protocol.md#several-sessions

use super::Uid;
use std::collections::BTreeSet;

/// The programs that a session asks for.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    uid: Uid,
    /// Programs of other users too.
    is_of_all_users: bool,
    /// Names of providers; none means all.
    programs: BTreeSet<String>,
}

impl Scope {
    /// What a user asks for, in a manager of `owner`'s.
    pub fn new(uid: Uid, owner: Uid, programs: &[String]) -> Self {
        let is_of_all_users = uid == owner || uid == Uid::ROOT;
        Self { uid, is_of_all_users, programs: programs.iter().cloned().collect() }
    }

    /// Whether a user's program is one of them.
    pub fn has(&self, uid: Uid, name: &str) -> bool {
        self.has_user(uid) && (self.programs.is_empty() || self.programs.contains(name))
    }

    /// Whether programs of this name are asked for by it.
    pub fn names(&self, name: &str) -> bool {
        self.programs.contains(name)
    }

    /// Whether it may be, as far as its user goes.
    fn has_user(&self, uid: Uid) -> bool {
        self.is_of_all_users || self.uid == uid
    }

    /// Whether some program could be one of both.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_of_one_user = self.has_user(other.uid) || other.has_user(self.uid);
        let has_all = self.programs.is_empty() || other.programs.is_empty();
        is_of_one_user && (has_all || !self.programs.is_disjoint(&other.programs))
    }

    /// The user.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    pub fn is_of_all_users(&self) -> bool {
        self.is_of_all_users
    }
}
