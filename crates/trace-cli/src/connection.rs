//! Connections to managers, and advice where there is none.

use crate::exit::{Failure, INTERRUPTED};
use crate::record::patience::is_no_reader;
use rustix::fs::Access;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use trace_archive::problem;
pub use trace_client::Connection;
pub use trace_client::connection::{announces_recording, answers, directories, shared};
use trace_client::{Error, Tool};
use trace_protocol::names::RUNTIME_VARIABLE;

/// Directories in which a runtime directory may be made, the best first: in memory, then on disks.
const BASES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];
/// The directory of the manager that this process uses.
static USED: OnceLock<PathBuf> = OnceLock::new();
/// There is no recording that a command could act on.
pub const NOTHING_RECORDED: &str = "nothing is being recorded: begin with trace record or trace start";
/// There are several recordings that a command could be about.
pub const SEVERAL_RECORDED: &str = "several recordings are running: name a program of the one that is meant with \
     --program; trace list-providers shows which one a program belongs to";
/// Room for the buffers of a few programs.
pub const ENOUGH_MIB: u64 = 64;

/// Free mebibytes on the file system of a directory.
pub fn free_mebibytes(directory: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(directory).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize) >> 20)
}

/// The command that selects a new runtime directory, whatever problem the current one has, so that nothing in
/// that is deleted or made accessible to other users. None if no directory has enough room.
pub fn own_directory() -> Option<String> {
    let has_room = |base: &&str| {
        rustix::fs::access(*base, Access::WRITE_OK | Access::EXEC_OK).is_ok()
            && free_mebibytes(Path::new(base)) >= Some(ENOUGH_MIB)
    };
    let base = BASES.into_iter().find(has_room)?;
    Some(format!("export {RUNTIME_VARIABLE}=\"$(mktemp -d {base}/trace-XXXXXX)\""))
}

/// The same as part of a sentence.
pub fn advice() -> String {
    own_directory().map_or_else(
        || format!("set {RUNTIME_VARIABLE} to a directory of your own with enough room"),
        |command| format!("use another: {command}"),
    )
}

/// Why no recording could begin, with the command that ends the recording that is in its way.
pub fn with_remedy(reason: &str) -> String {
    let owner = reason.split_once(" is in use by ").map_or("", |(_, owner)| owner);
    let command = owner.split('"').nth(1).and_then(|line| line.split_whitespace().nth(1));
    let pid = owner.rsplit_once("pid ").map(|(_, pid)| pid.trim_end_matches(')'));
    match (command, pid) {
        // That process has ended long ago: the manager records.
        (Some("start"), _) => format!("{reason}; trace stop ends it"),
        (_, Some(pid)) => format!("{reason}; kill -INT {pid} ends it"),
        (_, None) => reason.to_owned(),
    }
}

/// What is in the way, if that is why no recording could begin.
pub fn in_use(failure: &str) -> Option<&str> {
    let (before, owner) = failure.split_once(" is in use by ")?;
    let begin = before.rfind(": ").map_or(0, |colon| colon + 2);
    let end = owner.rfind("; ").unwrap_or(owner.len());
    failure.get(begin..failure.len() - owner.len() + end)
}

/// Whether a runtime directory is root's, and this user is not: root alone can read what is left there.
//= docs/recovery.md#recordings-with-a-manager-for-all-users
pub fn is_roots(directory: &Path) -> bool {
    !rustix::process::geteuid().is_root() && std::fs::metadata(directory).is_ok_and(|found| found.uid() == 0)
}

/// The command that recovers what a recording of this process has left.
pub fn recover_command() -> &'static str {
    if USED.get().is_some_and(|used| is_roots(used)) { "sudo trace recover" } else { "trace recover" }
}

/// Connects to a running manager, or starts one: this executable.
pub fn open() -> Result<Connection, Failure> {
    let connection = Connection::open(&Tool::ThisProgram)?;
    let _ = USED.set(connection.directory().to_owned());
    Ok(connection)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        (&error).into()
    }
}

/// What failed, with advice.
impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        if is_no_reader(error) {
            return Self { code: INTERRUPTED, ..Self::new(problem(error)) };
        }
        Self::new(match error {
            Error::NothingRecorded => NOTHING_RECORDED.to_owned(),
            Error::SeveralRecordings => SEVERAL_RECORDED.to_owned(),
            Error::NotTrusted { .. } => format!("{error}; {}", advice()),
            Error::Directory { directory, source } => {
                let why = source.to_string();
                // A directory that others may write into is shared on purpose, as /tmp is.
                let is_private =
                    directory.metadata().is_ok_and(|found| found.permissions().mode() & 0o022 == 0);
                let remedy = match why.contains("has mode") && is_private {
                    true => format!("chmod 700 {}, or {}", directory.display(), advice()),
                    false => advice(),
                };
                format!("{why}; {remedy}")
            }
            error => problem(error),
        })
    }
}

/// An error of the operating system.
pub fn system(error: &zx_sim::Error) -> Failure {
    Failure::new(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_named_with_what_ends_it() {
        let of = |owner: &str| with_remedy(&format!("the trace manager is in use by {owner}"));
        let start = "\"/usr/bin/trace start -o a.fxt\" (pid 7)";
        assert_eq!(of(start), format!("the trace manager is in use by {start}; trace stop ends it"));
        assert!(of("\"trace record -- start\" (pid 7)").ends_with("(pid 7); kill -INT 7 ends it"));
        assert!(of("pid 7").ends_with("pid 7; kill -INT 7 ends it"));
        assert!(of("user 1000").ends_with("by user 1000"));
        assert_eq!(with_remedy("no room"), "no room");
        let failure = format!("unable to start trace: {}", of(start));
        assert_eq!(in_use(&failure), Some(&*format!("the trace manager is in use by {start}")));
        assert_eq!(
            in_use("the trace manager is in use by user 1"),
            Some("the trace manager is in use by user 1")
        );
        assert_eq!(in_use("no room"), None);
    }
}
