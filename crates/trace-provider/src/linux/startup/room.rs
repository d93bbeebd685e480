//! Bounds what programs that record themselves leave.

use crate::linux::startup::directory::{ANNOUNCED, BUFFER, LOCK, PREFIX};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zx_sim::{RuntimeDir, debuglog};

/// The divisor of a file system's size that limits all that a user's programs have left there.
const SHARE: u64 = 4;
/// The unit of `stat`'s block counts.
const BLOCK_BYTES: u64 = 512;

/// While recordings of this user's programs in a directory take more than a quarter of the file system,
/// deletes the oldest that no process holds and that was not offered to its user, and says so. Looks only
/// where more than a quarter is in use.
//= docs/recovery.md#how-long-it-is-kept
pub(crate) fn make(runtime: &Path) {
    let Ok(space) = rustix::fs::statvfs(runtime) else { return };
    let room = space.f_blocks / SHARE * space.f_frsize;
    if (space.f_blocks - space.f_bfree.min(space.f_blocks)) * space.f_frsize <= room {
        return;
    }
    let mut found = Vec::new();
    let mut total = 0;
    for entry in std::fs::read_dir(runtime).into_iter().flatten().flatten() {
        // Other ones are managers', or of earlier releases, which hold no lock.
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        if let Ok(buffer) = path.join(BUFFER).symlink_metadata() {
            let bytes = buffer.blocks() * BLOCK_BYTES;
            total += bytes;
            found.push(((buffer.mtime(), buffer.mtime_nsec()), bytes, path));
        }
    }
    let mut deleted = 0;
    while total > room {
        let Some(oldest) = (0..found.len()).min_by_key(|place| found[*place].0) else { break };
        let (_, bytes, path) = found.swap_remove(oldest);
        // Its program, or who saves it, has the lock.
        let lock = RuntimeDir::open_or_create(&path).and_then(|own| own.lock(LOCK));
        if lock.is_ok_and(|lock| lock.is_some())
            && path.join(ANNOUNCED).symlink_metadata().is_err()
            && std::fs::remove_dir_all(&path).is_ok()
        {
            total -= bytes;
            deleted += 1;
        }
    }
    if deleted > 0 {
        debuglog::write_for_process(&format!(
            "trace provider: recordings of programs take too much room in {}: the {deleted} oldest are deleted",
            runtime.display()
        ));
    }
}
