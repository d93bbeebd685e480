//! The user on whose behalf root records: who has called `sudo`, or `--user`.
//!
//! That user owns what is written. A process that was started with `sudo` and calls [`set`] nowhere makes its
//! own files as root, except where a link of the user's leads.
//= docs/recording.md#as-root

use std::sync::OnceLock;
use zx_sim::environment::variable;
use zx_sim::process::FilesAs;

/// Set by `sudo` to the user that called it, and to that user's group.
const USER_VARIABLE: &str = "SUDO_UID";
const GROUP_VARIABLE: &str = "SUDO_GID";

/// A user who is not root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user's number.
    pub uid: u32,
    /// The number of the user's group.
    pub gid: u32,
}

/// The caller of a recording.
static OF_RECORDING: OnceLock<Option<Caller>> = OnceLock::new();

/// From now on this process makes files as this user, if there is one. Only the first call counts.
pub fn set(caller: Option<Caller>) {
    let _ = OF_RECORDING.set(caller);
}

/// The user whose recordings a command of root's is about.
#[must_use]
pub fn of_command() -> Option<Caller> {
    OF_RECORDING.get().copied().unwrap_or_else(by_sudo)
}

/// Who has called `sudo`; none if that was root, and if this is not root.
#[must_use]
pub fn by_sudo() -> Option<Caller> {
    let number = |name: &str| variable(name)?.to_str()?.parse().ok();
    let uid = number(USER_VARIABLE).filter(|uid| *uid != 0)?;
    let gid = number(GROUP_VARIABLE).unwrap_or(uid);
    rustix::process::geteuid().is_root().then_some(Caller { uid, gid })
}

/// As whom a file is made: as the user of a recording, and where a link of the user's leads.
fn of_file(is_linked: bool) -> Option<Caller> {
    if is_linked { of_command() } else { OF_RECORDING.get().copied().flatten() }
}

/// Whether something belongs to the caller of a command of root's.
#[must_use]
pub fn is_callers(owner: u32) -> bool {
    of_command().is_some_and(|caller| caller.uid == owner)
}

/// While it lives, this thread makes files as the user of a recording. A path to them may have links of the
/// user's.
///
/// # Errors
/// This process may not act as that user.
pub fn files(is_linked: bool) -> rustix::io::Result<Option<FilesAs>> {
    let files = of_file(is_linked).map(|caller| FilesAs::new(caller.uid, caller.gid));
    files.transpose().map_err(|_| rustix::io::Errno::PERM)
}

/// Why a file may not have been made.
#[must_use]
pub fn about_files(is_linked: bool) -> Option<String> {
    let caller = of_file(is_linked)?;
    Some(format!("it is made as user {}, who called sudo; --user root makes it as root", caller.uid))
}
