//! Bounds what programs that record themselves leave.

use crate::linux::startup::directory::{ANNOUNCED, BUFFER, LOCK, PREFIX};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zx_sim::{RuntimeDir, debuglog};

/// The divisor of a file system's size that limits all that a user's programs have left there.
const SHARE: u64 = 4;
/// The unit of `stat`'s block counts.
const BLOCK_BYTES: u64 = 512;
/// Held by the program that makes room.
const MAKING: &str = "room.lock";

/// While recordings that this user's programs have left in a directory take more than a quarter of the file
/// system, deletes the oldest, and says so. Those that a process holds, and those that were offered to their
/// user, stay and do not count. Looks only where more than a quarter is in use.
//= docs/recovery.md#how-long-it-is-kept
pub(crate) fn make(runtime: &RuntimeDir) {
    let Ok(space) = rustix::fs::statvfs(runtime.path()) else { return };
    let room = space.f_blocks / SHARE * space.f_frsize;
    if (space.f_blocks - space.f_bfree.min(space.f_blocks)) * space.f_frsize <= room {
        return;
    }
    // Others that begin at the same time would delete more.
    let Ok(Some(_making)) = runtime.lock(MAKING) else { return };
    let mut found = Vec::new();
    let mut total = 0;
    for entry in std::fs::read_dir(runtime.path()).into_iter().flatten().flatten() {
        // The other sessions are managers' ones, or of earlier releases, whose programs hold no lock.
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let Ok(buffer) = path.join(BUFFER).symlink_metadata() else { continue };
        if path.join(ANNOUNCED).symlink_metadata().is_err() && lock_if_left(&path).is_some() {
            let bytes = buffer.blocks() * BLOCK_BYTES;
            total += bytes;
            found.push(((buffer.mtime(), buffer.mtime_nsec()), bytes, path));
        }
    }
    let mut deleted = 0;
    while total > room {
        let Some(oldest) = (0..found.len()).min_by_key(|place| found[*place].0) else { break };
        let (_, bytes, path) = found.swap_remove(oldest);
        total -= bytes;
        if lock_if_left(&path).is_some_and(|_lock| std::fs::remove_dir_all(&path).is_ok()) {
            deleted += 1;
        }
    }
    if deleted > 0 {
        debuglog::write_for_process(&format!(
            "trace: recordings of programs take too much room in {}: deleted {deleted} of the oldest",
            runtime.path().display()
        ));
    }
}

/// Locks a session, unless its program or a process that saves it has the lock.
fn lock_if_left(session: &Path) -> Option<File> {
    let lock = File::open(session.join(LOCK)).ok()?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).ok().map(|()| lock)
}
