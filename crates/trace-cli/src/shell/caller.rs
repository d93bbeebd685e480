//! The user on whose behalf root records: who has called `sudo`, or `--user`.
//!
//! Only that user's programs are recorded, beside root's own, and the user owns what is written.
//= docs/recording.md#as-root

use crate::shell::exit::Failure;
use std::fs;
use trace_archive::output::caller::set;
pub use trace_archive::output::caller::{Caller, by_sudo, files, is_callers, of_command};
use trace_format::shown::Shown;

/// Names and numbers of users: passwd(5).
const USERS: &str = "/etc/passwd";

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
    set(caller.filter(|_| is_root));
    Ok(())
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
