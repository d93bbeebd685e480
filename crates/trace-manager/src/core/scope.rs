//! The programs of a session: those that its user may see, or some of them by their names.
//!
//! No program is in two sessions: one whose programs may be those of another is refused, whichever programs
//! run.
//!
//! What claims to be the kernel's provider is believed of root, of the manager's user, and of the session's
//! own user: no other user's program stands for the kernel in a session.
//= docs/protocol.md#several-sessions

use super::Uid;
use std::collections::BTreeSet;
use trace_protocol::controller::TraceConfig;
use trace_protocol::names::KERNEL_PROVIDER;

/// The programs that a session asks for.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    uid: Uid,
    /// Of the manager.
    owner: Uid,
    /// Whose programs they may be; none means everybody's.
    users: Option<BTreeSet<Uid>>,
    /// Names of providers; none means all.
    programs: BTreeSet<String>,
}

impl Scope {
    /// What a user asks for, in a manager of `owner`'s.
    pub fn new(uid: Uid, owner: Uid, config: &TraceConfig) -> Self {
        let may_see = |user: &Uid| uid.may_see(*user, owner);
        let sees_all = uid == owner || uid == Uid::ROOT;
        let users = match config.user.map(Uid) {
            None if sees_all => None,
            user => Some(user.into_iter().filter(may_see).chain([uid]).collect()),
        };
        Self { uid, owner, users, programs: config.programs.iter().cloned().collect() }
    }

    /// Whether a user's program is one of them.
    pub fn has(&self, uid: Uid, name: &str) -> bool {
        let has_name = self.programs.is_empty() || self.programs.contains(name);
        has_name && self.has_user(uid) && (name != KERNEL_PROVIDER || self.believes(uid))
    }

    /// A user's program may be the kernel's provider.
    fn believes(&self, uid: Uid) -> bool {
        [self.uid, self.owner, Uid::ROOT].contains(&uid)
    }

    /// Whether programs of this name are asked for by it.
    pub fn names(&self, name: &str) -> bool {
        self.programs.contains(name)
    }

    /// Whether it may be, as far as its user goes.
    fn has_user(&self, uid: Uid) -> bool {
        self.users.as_ref().is_none_or(|users| users.contains(&uid))
    }

    /// Whether some program could be one of both.
    pub fn overlaps(&self, other: &Self) -> bool {
        // All programs have other names than the kernel's provider, too.
        let is_more = |name: &&String| *name != KERNEL_PROVIDER;
        let is_common = match (self.programs.is_empty(), other.programs.is_empty()) {
            (true, true) => true,
            (true, false) => other.programs.iter().any(|name| is_more(&name)),
            (false, true) => self.programs.iter().any(|name| is_more(&name)),
            (false, false) => self.programs.intersection(&other.programs).any(|name| is_more(&name)),
        };
        let users = [self.uid, other.uid, self.owner, Uid::ROOT];
        let is_of_one_user = match (&self.users, &other.users) {
            (Some(own), Some(others)) => !own.is_disjoint(others),
            _ => true,
        };
        let has_both = |uid| self.has(uid, KERNEL_PROVIDER) && other.has(uid, KERNEL_PROVIDER);
        is_of_one_user && is_common || users.into_iter().any(has_both)
    }

    /// A program that both ask for by name.
    pub fn common(&self, other: &Self) -> Option<String> {
        self.programs.intersection(&other.programs).next().cloned()
    }

    /// The user.
    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Whose programs they may be; none means everybody's.
    pub fn users(&self) -> Option<&BTreeSet<Uid>> {
        self.users.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: Uid = Uid(1000);
    const BOB: Uid = Uid(1001);

    const KERNEL: &[&str] = &[KERNEL_PROVIDER];
    const WITH_APP: &[&str] = &["app", KERNEL_PROVIDER];

    fn scope(uid: Uid, owner: Uid, programs: &[&str]) -> Scope {
        let programs = programs.iter().map(ToString::to_string).collect();
        Scope::new(uid, owner, &TraceConfig { programs, ..TraceConfig::default() })
    }

    //= docs/protocol.md#several-sessions
    #[test]
    fn no_other_users_program_stands_for_the_kernel() {
        let who = |scope: Scope| [Uid::ROOT, ALICE, BOB].map(|uid| scope.has(uid, KERNEL_PROVIDER));
        for programs in [&[], WITH_APP] {
            // In root's manager for all users, and in a user's own, where root may record, too.
            assert_eq!(who(scope(Uid::ROOT, Uid::ROOT, programs)), [true, false, false]);
            assert_eq!(who(scope(ALICE, Uid::ROOT, programs)), [false, true, false]);
            assert_eq!(who(scope(ALICE, ALICE, programs)), [true, true, false]);
            assert_eq!(who(scope(Uid::ROOT, ALICE, programs)), [true, true, false]);
        }
        assert_eq!(who(scope(Uid::ROOT, Uid::ROOT, &["app"])), [false; 3]);
        assert!(scope(Uid::ROOT, Uid::ROOT, &["app"]).has(BOB, "app"));
    }

    //= docs/protocol.md#several-sessions
    #[test]
    fn sessions_overlap_by_what_both_could_have() {
        let overlap = |one: Scope, other: Scope| {
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            one.overlaps(&other)
        };
        let root = |programs| scope(Uid::ROOT, Uid::ROOT, programs);
        let alice = |programs| scope(ALICE, Uid::ROOT, programs);
        assert!(overlap(root(&[]), alice(&[])));
        assert!(overlap(root(&[]), alice(&["app"])) && overlap(root(&["app"]), alice(&[])));
        assert!(overlap(root(&["app"]), alice(&["app"])) && overlap(alice(&["a", "b"]), alice(&["b"])));
        assert!(!overlap(root(&["a"]), alice(&["b"])) && !overlap(alice(&[]), scope(BOB, Uid::ROOT, &[])));
        // A user's claim to be the kernel is in no session of root's, and is in both of that user's own.
        assert!(!overlap(root(&[]), alice(KERNEL)) && !overlap(root(WITH_APP), alice(KERNEL)));
        assert!(overlap(alice(WITH_APP), alice(KERNEL)));
        assert!(overlap(root(WITH_APP), root(&["b", KERNEL_PROVIDER])));
        // In a user's own manager root's provider is the user's, too.
        assert!(overlap(scope(ALICE, ALICE, WITH_APP), scope(Uid::ROOT, ALICE, KERNEL)));
        assert!(overlap(scope(ALICE, ALICE, &[]), scope(ALICE, ALICE, KERNEL)));
    }
}
