//! Connections to managers, and advice where there is none.

pub mod cgroup;
pub mod own_manager;
pub mod scratch;
pub mod state;

use crate::shell::caller;
use crate::shell::exit::{Failure, INTERRUPTED};
use rustix::fs::Access;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use trace_archive::problem;
use trace_archive::recovery::{self, Session, delete_blank};
pub use trace_client::Connection;
pub use trace_client::connection::{announces_recording, answers, directories, shared};
use trace_client::{Error, Tool};
use trace_format::shown::Shown;
use trace_protocol::controller::Refusal;
use trace_protocol::names::RUNTIME_VARIABLE;
use zx_sim::Unsafe;
use zx_sim::process::{FilesAs, start_time};

/// Directories in which a runtime directory may be made, the best first: in memory, then on disks.
const BASES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];
/// The directory of the manager that this process uses.
static USED: OnceLock<PathBuf> = OnceLock::new();
/// There is no recording that a command could act on.
pub const NOTHING_RECORDED: &str = "nothing is being recorded: begin with trace record or trace start";
/// There are several recordings that a command could be about.
pub const SEVERAL_RECORDED: &str = "several recordings are running: name a program of the one that is meant with \
     --program; trace list-programs shows which one a program belongs to";
/// Room for the buffers of a few programs.
pub const ENOUGH_MIB: u64 = 64;

/// Free mebibytes on the file system of a directory.
pub fn free_mebibytes(directory: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(directory).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize) >> 20)
}

/// Mebibytes that the buffers of the manager that this process uses may have together: what its file system
/// has left, and where that is in memory, what the control group of this process has. None where that is
/// unknown, as with root's manager.
pub fn room() -> Option<u64> {
    let directory = USED.get().filter(|used| !is_roots(used))?;
    let free = free_mebibytes(directory)?;
    let group = zx_sim::memory_room().filter(|_| is_in_memory(directory)).map(|bytes| bytes >> 20);
    Some(group.map_or(free, |room| free.min(room)))
}

/// Whether files of a directory are in memory.
#[allow(clippy::unnecessary_cast, reason = "its type differs between machines")]
pub fn is_in_memory(directory: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(directory).is_ok_and(|kind| kind.f_type as i64 == TMPFS)
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

/// A recording that the manager did not begin.
pub fn not_started(refusal: Refusal) -> Failure {
    let text = format!("unable to start trace: {}", Shown(&with_remedy(&refusal)));
    Failure { refusal: Some(Box::new(refusal)), ..Failure::new(text) }
}

/// Why no recording could begin, with the command that ends the one in its way.
fn with_remedy(refusal: &Refusal) -> String {
    let Refusal { reason, recorder, .. } = refusal;
    let Some(recorder) = recorder else {
        return reason.clone();
    };
    // The process that has asked for a task may have ended long ago: the manager records.
    if recorder.is_task {
        return format!("{reason}; trace stop ends it");
    }
    match recorder.pid.zip(recorder.started) {
        Some((pid, started)) if start_time(pid) == Some(started) => {
            format!("{reason}; kill -INT {pid} ends it")
        }
        _ => reason.clone(),
    }
}

/// Whether a runtime directory is root's, and this user is not: root alone can read what is left there.
//= docs/recovery.md#recordings-with-a-manager-for-all-users
pub fn is_roots(directory: &Path) -> bool {
    !rustix::process::geteuid().is_root() && std::fs::metadata(directory).is_ok_and(|found| found.uid() == 0)
}

/// The command that recovers what a recording of this process has left.
pub fn recover_command() -> &'static str {
    let is_of_root = |used: &PathBuf| {
        let owner = std::fs::metadata(used).map(|found| found.uid());
        is_roots(used) || owner.is_ok_and(|owner| owner == 0) && caller::of_command().is_some()
    };
    if USED.get().is_some_and(is_of_root) { "sudo trace recover" } else { "trace recover" }
}

/// Refuses a named runtime directory that is something else: no manager can be there, and none can be made.
//= docs/command-line.md#environment
pub fn check_named() -> Result<(), Failure> {
    let named = std::env::var_os(RUNTIME_VARIABLE).map(PathBuf::from);
    match named.filter(|named| std::fs::metadata(named).is_ok_and(|found| !found.is_dir())) {
        Some(named) => {
            let named = named.display().to_string();
            let why = format!("{RUNTIME_VARIABLE}: {} is not a directory; {}", Shown(&named), advice());
            Err(Failure::usage(why))
        }
        None => Ok(()),
    }
}

/// Connects to a running manager, if there is one. For root as a user's caller: that user's, and else root's;
/// of two the one that records.
//= docs/recording.md#as-root
pub fn find() -> Result<Option<Connection>, Failure> {
    check_named()?;
    if let Some(directory) = USED.get() {
        return Ok(Connection::find_of(directory, caller::of_command().map(|caller| caller.uid))?);
    }
    if caller::of_command().is_none() || is_named() {
        return Ok(Connection::find()?);
    }
    let for_all = directories().last().and_then(|last| Connection::find_in(last).ok().flatten());
    let mut found: Vec<Connection> =
        [of_caller(), for_all, Connection::find()?].into_iter().flatten().collect();
    let records = found.iter().position(|manager| announces_recording(manager.directory()));
    Ok((!found.is_empty()).then(|| found.swap_remove(records.unwrap_or(0))))
}

/// The running manager of the user who has called `sudo`.
fn of_caller() -> Option<Connection> {
    let caller = caller::of_command().filter(|_| !is_named())?;
    let directories = trace_client::connection::directories_of(caller.uid);
    let mut found = directories.iter().filter_map(|directory| {
        let found = Connection::find_of(directory, Some(caller.uid)).ok()??;
        (found.manager_user() == Some(caller.uid)).then_some(found)
    });
    found.next()
}

/// Whether a runtime directory is named: then there is no other.
fn is_named() -> bool {
    std::env::var_os(RUNTIME_VARIABLE).is_some_and(|directory| !directory.is_empty())
}

/// Connects to a running manager, or starts one: this executable.
pub fn open() -> Result<Connection, Failure> {
    open_for(false)
}

/// As [`open`], for a recording; `is_of_root` if that has programs of root's: the kernel's provider, or a
/// command that `sudo` runs. Those register with root's manager alone.
//= docs/recording.md#as-root
pub fn open_for(is_of_root: bool) -> Result<Connection, Failure> {
    check_named()?;
    let is_of_caller = caller::of_command().is_some() && !is_named();
    // Root's own manager has no program of the caller's.
    let found = match is_of_caller && USED.get().is_none() {
        true => of_caller().filter(|_| !is_of_root),
        false => find()?,
    };
    let connection = match found {
        Some(found) => found,
        None if is_of_caller => Connection::open_for_all(&Tool::ThisProgram)?,
        None => Connection::open(&Tool::ThisProgram)?,
    };
    let _ = USED.set(connection.directory().to_owned());
    Ok(connection)
}

/// While it lives, this thread handles files that a manager has named. What another user's manager says of
/// them may be anything.
pub fn named_files(connection: &Connection) -> Result<Option<FilesAs>, Failure> {
    let is_roots = connection.manager_user() == Some(0);
    let files = if is_roots { Ok(None) } else { caller::files(true) };
    files.map_err(|error| Failure::new(format!("cannot act as the user who has called sudo: {error}")))
}

/// The user to whose programs a recording with a manager has to be limited.
pub fn limited_to(connection: &Connection) -> Option<u32> {
    let caller = caller::of_command()?;
    (connection.manager_user() != Some(caller.uid)).then_some(caller.uid)
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
            Error::NothingRecorded => return Self::nothing_recorded(NOTHING_RECORDED),
            Error::SeveralRecordings => return Self::usage(SEVERAL_RECORDED),
            Error::NotTrusted { .. } => format!("{error}; {}", advice()),
            Error::Directory { directory, source } => {
                let remedy = match source {
                    // A directory that others may write into is shared on purpose, as /tmp is.
                    zx_sim::Error::Unsafe { problem: Unsafe::Mode { found, .. }, .. }
                        if found & 0o022 == 0 =>
                    {
                        format!("chmod 700 {}, or {}", directory.display(), advice())
                    }
                    _ => advice(),
                };
                format!("{source}; {remedy}")
            }
            Error::Start(refusal) => return not_started(refusal.clone()),
            error => problem(error),
        })
    }
}

/// An error of the operating system.
pub fn system(error: &zx_sim::Error) -> Failure {
    Failure::new(error.to_string())
}

/// All sessions in a runtime directory. Sessions of programs that have ended without an event are deleted.
pub fn sessions_of(runtime: &Path) -> Vec<Session> {
    let mut sessions = recovery::sessions(runtime);
    sessions.retain(|session| !delete_blank(session));
    sessions
}

/// The user wants to stop, and the reader is in the way.
#[derive(Debug, thiserror::Error)]
#[error("aborted: the reader of the trace takes nothing")]
pub struct NoReader;

/// Whether that is why a session has failed.
fn is_no_reader(error: &Error) -> bool {
    matches!(error, Error::Write(error) if error.get_ref().is_some_and(|error| error.is::<NoReader>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_protocol::controller::Recorder;

    #[test]
    fn what_is_in_the_way_is_named_with_what_ends_it() {
        let reason = "the trace manager is in use by \"/a b/trace start\" (pid 7)".to_owned();
        let by = |recorder| with_remedy(&Refusal { reason: reason.clone(), recorder, limit: None });
        let own = u64::from(std::process::id());
        let process =
            |pid: u64, started: Option<u64>| Recorder { pid: Some(pid), started, ..Recorder::default() };
        assert_eq!(by(None), reason);
        assert_eq!(by(Some(process(own, start_time(own)))), format!("{reason}; kill -INT {own} ends it"));
        // Another process has its number now, or that cannot be found out.
        assert_eq!(by(Some(process(own, start_time(own).map(|time| time + 1)))), reason);
        assert_eq!(by(Some(process(own, None))), reason);
        assert_eq!(by(Some(Recorder::default())), reason);
        let task = Recorder { is_task: true, ..process(own, start_time(own)) };
        assert_eq!(by(Some(task)), format!("{reason}; trace stop ends it"));
    }
}
