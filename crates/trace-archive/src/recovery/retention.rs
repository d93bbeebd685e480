//! Limits the age and the total size of leftover sessions.

use super::{Leftover, Session, session_directories};
use crate::gave_up;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How long a leftover session is kept.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The divisor of their file system's size that limits all of them together.
const SHARE: u64 = 4;

/// Deletes the leftover sessions below a directory that are too old, and while all together take too much of
/// the file system, the oldest of the user whose sessions take most. Reports each deletion. A session that is
/// in use, or whose programs still have their buffers, stays.
//= docs/recovery.md#how-long-it-is-kept
pub fn delete_expired(runtime: &Path, say: impl Fn(&str)) {
    let room = rustix::fs::statvfs(runtime)
        .map_or(u64::MAX, |space| space.f_blocks.saturating_mul(space.f_frsize) / SHARE);
    let now = SystemTime::now();
    give_up(runtime, room, now, say);
    // Of programs whose recording is gone.
    for note in gave_up::notes(runtime, SystemTime::UNIX_EPOCH) {
        if now.duration_since(note.at).is_ok_and(|age| age > KEPT_FOR) {
            let _ = note.delete();
        }
    }
}

fn give_up(runtime: &Path, room: u64, now: SystemTime, say: impl Fn(&str)) {
    let directories = session_directories(runtime).unwrap_or_default();
    let mut left: Vec<(Session, u64)> = directories
        .iter()
        .filter_map(|directory| Session::read(directory).ok())
        .filter(|session| !session.has_manager())
        .map(|session| {
            let bytes = session.buffer_pieces().map(|piece| piece.bytes).sum();
            (session, bytes)
        })
        .collect();
    left.sort_by_key(|(session, _)| session.began());
    let is_old =
        |(session, _): &(Session, u64)| now.duration_since(session.began()).is_ok_and(|age| age > KEPT_FOR);
    loop {
        let next = match left.iter().position(is_old) {
            Some(place) => Some((place, "it is older than seven days")),
            None if left.iter().map(|(_, bytes)| bytes).sum::<u64>() > room => {
                oldest_of_greediest(&left).map(|place| (place, "leftovers take too much room"))
            }
            None => None,
        };
        let Some((place, why)) = next else { return };
        // One that cannot be deleted counts no more, either: others are not deleted for what stays anyway.
        let (session, _) = left.remove(place);
        let names: Vec<_> =
            session.manifest.buffers.values().map(|buffer| buffer.provider.name.as_str()).collect();
        let what = format!("{} (a recording of {})", session.directory.display(), names.join(", "));
        match Leftover::open(&session.directory).and_then(Leftover::delete) {
            Ok(()) => say(&format!("deleted {what}: {why}")),
            Err(error) => say(&format!("{what} is kept: {error}")),
        }
    }
}

/// The first session of the user whose sessions take most: one user's are not deleted for another's.
fn oldest_of_greediest(left: &[(Session, u64)]) -> Option<usize> {
    let mut of_users: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for (session, bytes) in left {
        *of_users.entry(session.manifest.session.uid).or_default() += bytes;
    }
    let (most, _) = of_users.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    left.iter().position(|(session, _)| session.manifest.session.uid == most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{BufferInfo, Entry, SessionInfo, Writer};
    use std::cell::RefCell;
    use std::os::unix::fs::DirBuilderExt;
    use std::time::UNIX_EPOCH;
    use trace_format::buffer::BufferMode;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// A session that began this long after 1970, with a buffer of this many pages.
    fn leave(runtime: &Path, name: &str, began: Duration, pages: usize) {
        leave_of(None, runtime, name, began, pages);
    }

    /// The same of a user.
    fn leave_of(uid: Option<u32>, runtime: &Path, name: &str, began: Duration, pages: usize) {
        let directory = runtime.join(format!("session-{name}"));
        std::fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        let began = u64::try_from(began.as_nanos()).unwrap();
        let mut info = SessionInfo::new(BufferMode::Oneshot, 1, began, Vec::new());
        info.uid = uid;
        let provider = BufferInfo {
            id: 1,
            name: name.to_owned(),
            pid: 7,
            bytes: 4096 * pages as u64,
            parent: None,
            command_line: None,
            registered: None,
            origin: None,
            mode: None,
        };
        let mut writer = Writer::open(&directory).unwrap();
        for entry in [
            Entry::Session(info),
            Entry::Provider(provider),
            Entry::Started { provider: 1, retains: false },
            Entry::Ended,
        ] {
            writer.append(&entry).unwrap();
        }
        std::fs::write(directory.join("provider-1"), vec![1; 4096 * pages]).unwrap();
    }

    fn left(runtime: &Path) -> Vec<String> {
        let names = session_directories(runtime).unwrap();
        let mut names: Vec<String> =
            names.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    //= docs/recovery.md#how-long-it-is-kept
    #[test]
    fn the_oldest_are_given_up_beyond_a_week_and_where_there_is_no_room() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = directory.path();
        // The second is exactly seven days old.
        for (name, day, pages) in [("a", 90, 10), ("b", 93, 20), ("c", 96, 30), ("d", 99, 10)] {
            leave(runtime, name, DAY * day, pages);
        }
        let messages = RefCell::new(Vec::new());
        let say = |text: &str| messages.borrow_mut().push(text.to_owned());
        give_up(runtime, 60 * 4096, UNIX_EPOCH + DAY * 100, say);
        assert_eq!(left(runtime), ["session-b", "session-c", "session-d"]);
        assert!(messages.borrow()[0].ends_with("session-a (a recording of a): it is older than seven days"));
        messages.borrow_mut().clear();
        give_up(runtime, 59 * 4096, UNIX_EPOCH + DAY * 100, say);
        assert_eq!(left(runtime), ["session-c", "session-d"]);
        assert!(messages.borrow()[0].ends_with("session-b (a recording of b): leftovers take too much room"));
    }

    #[test]
    fn a_session_of_another_decade_is_deleted() {
        let directory = tempfile::tempdir().unwrap();
        leave(directory.path(), "a", DAY, 1);
        let messages = RefCell::new(Vec::new());
        delete_expired(directory.path(), |text| messages.borrow_mut().push(text.to_owned()));
        assert_eq!((left(directory.path()), messages.borrow().len()), (Vec::new(), 1));
    }

    //= docs/recovery.md#how-long-it-is-kept
    #[test]
    fn a_user_who_leaves_much_costs_no_other_what_is_older() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = directory.path();
        let (few, many) = (Some(1000), Some(65534));
        for (uid, name, day, pages) in
            [(few, "a", 95, 10), (many, "b", 96, 20), (many, "c", 97, 20), (None, "d", 98, 10)]
        {
            leave_of(uid, runtime, name, DAY * day, pages);
        }
        let give_up = |pages: u64| give_up(runtime, pages * 4096, UNIX_EPOCH + DAY * 100, |_: &str| {});
        give_up(59);
        assert_eq!(left(runtime), ["session-a", "session-c", "session-d"]);
        give_up(39);
        assert_eq!(left(runtime), ["session-a", "session-d"]);
        // Of equals, the oldest of one.
        give_up(19);
        assert_eq!(left(runtime).len(), 1);
    }
}
