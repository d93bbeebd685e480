//! The user on whose behalf root records: who has called `sudo`, or `--user`.
//!
//! Only that user's programs are recorded, beside root's own, and the user owns what is written.
//= docs/recording.md#as-root

use crate::exit::Failure;
use std::fs;
use std::sync::OnceLock;
use trace_format::shown::Shown;
use zx_sim::process::FilesAs;

/// Names and numbers of users: passwd(5).
const USERS: &str = "/etc/passwd";
/// Set by `sudo` to the user that called it, and to that user's group.
const USER_VARIABLE: &str = "SUDO_UID";
const GROUP_VARIABLE: &str = "SUDO_GID";

/// A user who is not root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub uid: u32,
    gid: u32,
}

/// The caller of a recording.
static OF_RECORDING: OnceLock<Option<Caller>> = OnceLock::new();

/// Finds the user of a recording, who may be named. What this process writes from now on is that user's.
pub fn begin(named: Option<&str>) -> Result<(), Failure> {
    let is_root = rustix::process::geteuid().is_root();
    let caller = match named {
        None => by_sudo(),
        Some(name) => {
            let users = fs::read_to_string(USERS).unwrap_or_default();
            let user = user(&users, name).ok_or_else(|| {
                let name = Shown(name);
                Failure::usage(format!("--user {name}: {USERS} has no such user; give the user's number"))
            })?;
            if !is_root && ![0, rustix::process::geteuid().as_raw()].contains(&user.uid) {
                return Err(Failure::usage(format!(
                    "--user {}: only root records the programs of another user: sudo trace record",
                    Shown(name)
                )));
            }
            Some(user).filter(|user| user.uid != 0)
        }
    };
    let _ = OF_RECORDING.set(caller.filter(|_| is_root));
    Ok(())
}

/// The user whose recordings a command of root's is about.
pub fn of_command() -> Option<Caller> {
    OF_RECORDING.get().copied().unwrap_or_else(by_sudo)
}

/// Who has called `sudo`; none if that was root, and if this is not root.
fn by_sudo() -> Option<Caller> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let uid = number(USER_VARIABLE).filter(|uid| *uid != 0)?;
    let gid = number(GROUP_VARIABLE).unwrap_or(uid);
    rustix::process::geteuid().is_root().then_some(Caller { uid, gid })
}

/// A user by name or number; of one without a name the group has the same number.
fn user(users: &str, named: &str) -> Option<Caller> {
    // name:password:uid:gid:…
    let mut all = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, uid) = (fields.next()?, fields.nth(1)?);
        let caller = Caller { uid: uid.parse().ok()?, gid: fields.next()?.parse().ok()? };
        (name == named || uid == named).then_some(caller)
    });
    all.next().or_else(|| named.parse().ok().map(|uid| Caller { uid, gid: uid }))
}

/// As whom a file is made: as the user of a recording, and where a link of the user's leads.
fn of_file(is_linked: bool) -> Option<Caller> {
    if is_linked { of_command() } else { OF_RECORDING.get().copied().flatten() }
}

/// Whether something belongs to the caller of a command of root's.
pub fn is_callers(owner: u32) -> bool {
    of_command().is_some_and(|caller| caller.uid == owner)
}

/// While it lives, this thread makes files as the user of a recording. A path to them may have links of the
/// user's.
pub fn files(is_linked: bool) -> rustix::io::Result<Option<FilesAs>> {
    let files = of_file(is_linked).map(|caller| FilesAs::new(caller.uid, caller.gid));
    files.transpose().map_err(|_| rustix::io::Errno::PERM)
}

/// Why a file may not have been made.
pub fn about_files(is_linked: bool) -> Option<String> {
    let caller = of_file(is_linked)?;
    Some(format!("it is made as user {}, who called sudo; --user root makes it as root", caller.uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names_and_numbers() {
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1001:100::/:/bin/sh\nodd\n7:x:1002:9::/:/bin/sh\n";
        let of = |named| user(users, named).map(|caller| (caller.uid, caller.gid));
        assert_eq!([of("root"), of("ann"), of("1001")], [Some((0, 0)), Some((1001, 100)), Some((1001, 100))]);
        assert_eq!([of("4000"), of("7")], [Some((4000, 4000)), Some((1002, 9))]);
        assert_eq!([of("bob"), of(""), of("-1")], [None; 3]);
    }
}
