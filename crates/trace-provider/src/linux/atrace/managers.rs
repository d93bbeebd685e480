//! The files in which managers say which tags of markers they record: for programs without a provider.
//= docs/protocol.md#markers-that-are-wanted
//!
//! A file is read, not mapped: a mapped file that is cut ends the process that looks at it. Its lock says
//! that its manager lives.

use crate::linux::manager;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use trace_format::markers;
use trace_protocol::registry::{MARKERS_OF_ALL, markers_of};
use zx_sim::liveness;

/// The length of a file.
const BYTES: usize = 8;
const LOOK_INTERVAL_NS: i64 = 1_000_000_000;
/// Instead of tags.
const NEVER_LOOKED: u64 = u64::MAX;

static FOUND: AtomicU64 = AtomicU64::new(NEVER_LOOKED);
static NEXT_LOOK: AtomicI64 = AtomicI64::new(0);

/// The tags that managers record, as they were at the last look, which one thread does each second. Until
/// there was one, each thread looks: the first marker of each may be wanted.
pub(super) fn tags() -> u64 {
    let found = FOUND.load(Ordering::Relaxed);
    // Moves in steps of some milliseconds, and costs a quarter of the exact one.
    let time = clock_gettime(ClockId::MonotonicCoarse);
    let now = time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec);
    let next = NEXT_LOOK.load(Ordering::Relaxed);
    let is_mine = || {
        let taken = now.saturating_add(LOOK_INTERVAL_NS);
        NEXT_LOOK.compare_exchange(next, taken, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    if found != NEVER_LOOKED && (now < next || !is_mine()) {
        return found;
    }
    NEXT_LOOK.store(now.saturating_add(LOOK_INTERVAL_NS), Ordering::Relaxed);
    let found = look(&manager::directories());
    FOUND.store(found, Ordering::Relaxed);
    found
}

fn look(directories: &[impl AsRef<Path>]) -> u64 {
    let own = markers_of(rustix::process::geteuid().as_raw());
    let names = [MARKERS_OF_ALL, &own];
    let files = directories.iter().flat_map(|directory| names.map(|name| directory.as_ref().join(name)));
    files.filter_map(|file| read(&file)).fold(0, |all, tags| all | tags)
}

/// What a file says, if it is a file of this user's or root's, whole, and its manager lives. None of its
/// contents is trusted further: at worst, markers are written.
fn read(path: &Path) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    let is_trusted = stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw();
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_trusted || !is_file || usize::try_from(stat.st_size) != Ok(BYTES) {
        return None;
    }
    let mut bytes = [0; BYTES];
    let length = rustix::io::pread(&file, &mut bytes, 0).ok()?;
    let is_whole = length == BYTES && liveness::is_marked(&file).unwrap_or(false);
    is_whole.then(|| u64::from_le_bytes(bytes) & markers::ALL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    /// A directory with what is in it, and the tags that are found there.
    fn found(prepare: impl Fn(&Path)) -> u64 {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        look(&[directory.path().join("missing"), directory.path().to_owned()])
    }

    fn write(file: &Path, bytes: &[u8]) -> File {
        fs::write(file, bytes).unwrap();
        let file = File::options().read(true).write(true).open(file).unwrap();
        liveness::mark(&file).unwrap();
        file
    }

    //= docs/protocol.md#markers-that-are-wanted
    #[test]
    fn only_a_whole_file_of_a_living_manager_counts() {
        let held = std::cell::RefCell::new(Vec::new());
        let hold = |file| held.borrow_mut().push(file);
        let own = markers_of(rustix::process::geteuid().as_raw());
        let bytes = 0x1008_u64.to_le_bytes();
        assert_eq!(found(|_| {}), 0);
        assert_eq!(found(|at| hold(write(&at.join("markers"), &bytes))), 0x1008);
        assert_eq!(found(|at| hold(write(&at.join(&own), &bytes))), 0x1008);
        assert_eq!(found(|at| hold(write(&at.join("markers.4294967294"), &bytes))), 0);
        let both = |at: &Path| {
            hold(write(&at.join(&own), &bytes));
            hold(write(&at.join("markers"), &2_u64.to_le_bytes()));
        };
        assert_eq!(found(both), 0x100a);
        // Bits that are no tags.
        assert_eq!(found(|at| hold(write(&at.join("markers"), &[0xff; 8]))), markers::ALL);
        // Its manager is dead.
        assert_eq!(found(|at| drop(write(&at.join("markers"), &bytes))), 0);
        assert_eq!(found(|at| fs::write(at.join("markers"), bytes).unwrap()), 0);
        for odd in [&bytes[..0], &bytes[..7], &[0xff; 9], &vec![0xff; 1 << 20]] {
            assert_eq!(found(|at| hold(write(&at.join("markers"), odd))), 0, "{} bytes", odd.len());
        }
        let huge = |at: &Path| {
            let file = write(&at.join("markers"), &bytes);
            file.set_len(1 << 50).unwrap_or_else(|_| file.set_len(1 << 40).unwrap());
            hold(file);
        };
        assert_eq!(found(huge), 0);
        assert_eq!(found(|at| fs::create_dir(at.join("markers")).unwrap()), 0);
        // One without a writer would keep the program waiting.
        assert_eq!(found(|at| rustix::fs::mkfifoat(CWD, at.join("markers"), Mode::RWXU).unwrap()), 0);
        let link = |at: &Path| {
            hold(write(&at.join("other"), &bytes));
            std::os::unix::fs::symlink(at.join("other"), at.join("markers")).unwrap();
        };
        assert_eq!(found(link), 0);
        let socket = |at: &Path| drop(std::os::unix::net::UnixListener::bind(at.join("markers")).unwrap());
        assert_eq!(found(socket), 0);
        // Another user's.
        if rustix::process::geteuid().is_root() {
            let others = |at: &Path| {
                hold(write(&at.join("markers"), &bytes));
                std::os::unix::fs::chown(at.join("markers"), Some(1), None).unwrap();
            };
            assert_eq!(found(others), 0);
        }
    }
}
