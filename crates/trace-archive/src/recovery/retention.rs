//! Limits the age and the total size of leftover sessions.

use super::session::Now;
use super::{Leftover, Session, sessions};
use crate::gave_up;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use trace_format::shown::Shown;
use zx_sim::RuntimeDir;
use zx_sim::runtime_dir::UNFINISHED;

/// How long a leftover session is kept.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long one is kept that users were asked to save, however little room there is.
const ANNOUNCED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How old a directory is that was begun and will not be finished.
const UNFINISHED_FOR: Duration = Duration::from_secs(60);
/// The divisor of their file system's size that limits all of them together.
const SHARE: u64 = 4;

/// Deletes the leftover sessions below a directory that are too old, and while all together take too much of
/// the file system, the oldest of the user whose sessions take most, but for those that users were asked to
/// save less than a day ago. Reports each deletion. A session that is in use, or whose programs still have
/// their buffers, stays. What never became a session, or has no event, is deleted without a word.
//= docs/recovery.md#how-long-it-is-kept
pub fn delete_expired(runtime: &Path, say: impl Fn(&str)) {
    let now = Now::read();
    delete_unfinished(runtime, now.wall_clock);
    let room = rustix::fs::statvfs(runtime)
        .map_or(u64::MAX, |space| space.f_blocks.saturating_mul(space.f_frsize) / SHARE);
    give_up(sessions(runtime), room, &now, say);
    // Of programs whose recording is gone.
    for note in gave_up::notes(runtime, SystemTime::UNIX_EPOCH) {
        if now.wall_clock.duration_since(note.at).is_ok_and(is_expired) {
            let _ = note.delete();
        }
    }
}

fn is_expired(age: Duration) -> bool {
    age > KEPT_FOR
}

/// Deletes the session if it is [blank](Session::is_blank). Whether it was.
#[must_use]
pub fn delete_blank(session: &Session) -> bool {
    session.is_blank() && Leftover::open(&session.directory).and_then(Leftover::delete).is_ok()
}

/// Deletes directories of this user's whose makers were killed before they were complete.
fn delete_unfinished(runtime: &Path, now: SystemTime) {
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(runtime).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        let is_old = entry.metadata().is_ok_and(|found| {
            let age = found.modified().ok().and_then(|at| now.duration_since(at).ok());
            found.is_dir() && found.uid() == own && age.is_some_and(|age| age > UNFINISHED_FOR)
        });
        // The process that makes a directory holds the lock until the directory is complete.
        let lock =
            is_old.then(|| RuntimeDir::open_or_create(&entry.path()).ok()?.lock(super::LOCK_FILE).ok()?);
        if let Some(Some(_lock)) = lock {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn give_up(sessions: Vec<Session>, room: u64, now: &Now, say: impl Fn(&str)) {
    let mut left: Vec<(Session, Duration, u64)> = sessions
        .into_iter()
        .filter(|session| !session.has_manager() && !delete_blank(session))
        .map(|session| {
            let bytes = session.buffer_pieces().map(|piece| piece.bytes).sum();
            let age = session.age(now);
            (session, age, bytes)
        })
        .collect();
    left.sort_by_key(|(session, ..)| session.began());
    let is_offered = |session: &Session| session.announced(now).is_some_and(|ago| ago < ANNOUNCED_FOR);
    left.retain(|(session, ..)| !is_offered(session));
    let (old, mut left): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, age, _)| is_expired(*age));
    for (session, ..) in old {
        delete(&session, "it is older than seven days", &say);
    }
    left.retain(|(session, ..)| session.is_certainly_over());
    // What stays anyway does not count: others are not deleted for it.
    let mut total = left.iter().map(|(.., bytes)| bytes).sum::<u64>();
    while total > room
        && let Some(place) = oldest_of_greediest(&left)
    {
        let (session, _, bytes) = left.remove(place);
        total -= bytes;
        delete(&session, "leftovers take too much room", &say);
    }
}

fn delete(session: &Session, why: &str, say: impl Fn(&str)) {
    let names: Vec<_> =
        session.manifest.buffers.values().map(|buffer| buffer.provider.name.as_str()).collect();
    let names = names.join(", ");
    let what = format!("{} (a recording of {})", session.directory.display(), Shown(&names));
    match Leftover::open(&session.directory).and_then(Leftover::delete) {
        Ok(()) => say(&format!("deleted {what}: {why}")),
        Err(error) => say(&format!("{what} is kept: {error}")),
    }
}

/// The first session of the user whose sessions take most: one user's are not deleted for another's.
fn oldest_of_greediest(left: &[(Session, Duration, u64)]) -> Option<usize> {
    let mut of_users: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for (session, _, bytes) in left {
        *of_users.entry(session.manifest.session.uid).or_default() += bytes;
    }
    let (most, _) = of_users.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    left.iter().position(|(session, ..)| session.manifest.session.uid == most)
}

#[cfg(test)]
mod tests {
    use super::super::session::session_directories;
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
        // By the wall clock alone.
        info.boot_id = String::new();
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

    fn give_up_on_day(day: u32, runtime: &Path, pages: u64, say: impl Fn(&str)) {
        let now = Now { wall_clock: UNIX_EPOCH + DAY * day, ..Now::read() };
        give_up(sessions(runtime), pages * 4096, &now, say);
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
        give_up_on_day(100, runtime, 60, say);
        assert_eq!(left(runtime), ["session-b", "session-c", "session-d"]);
        assert!(messages.borrow()[0].ends_with("session-a (a recording of a): it is older than seven days"));
        messages.borrow_mut().clear();
        give_up_on_day(100, runtime, 59, say);
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
        let give_up = |pages: u64| give_up_on_day(100, runtime, pages, |_: &str| {});
        give_up(59);
        assert_eq!(left(runtime), ["session-a", "session-c", "session-d"]);
        give_up(39);
        assert_eq!(left(runtime), ["session-a", "session-d"]);
        // Of equals, the oldest of one.
        give_up(19);
        assert_eq!(left(runtime).len(), 1);
    }

    /// Nor is that said again at each recording.
    #[test]
    fn what_a_process_holds_is_no_leftover() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = RuntimeDir::open_or_create(&directory.path().join("run")).unwrap();
        let session = runtime.create_unique_dir("session").unwrap();
        let mut info = SessionInfo::new(BufferMode::Oneshot, 1, 1, Vec::new());
        info.is_marked = true;
        Writer::open(&session).unwrap().append(&Entry::Session(info)).unwrap();
        let lock =
            RuntimeDir::open_or_create(&session).unwrap().lock(super::super::LOCK_FILE).unwrap().unwrap();
        lock.mark().unwrap();
        let now = Now { boot_id: String::new(), ..Now::read() };
        let messages = RefCell::new(Vec::new());
        let give_up =
            || give_up(sessions(runtime.path()), 0, &now, |text| messages.borrow_mut().push(text.to_owned()));
        give_up();
        assert!(messages.borrow().is_empty() && session.exists());
        drop(lock);
        give_up();
        assert!(messages.borrow().len() == 1 && !session.exists());
    }

    //= docs/recovery.md#how-long-it-is-kept
    #[test]
    fn what_was_offered_stays_for_a_day_however_old_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = directory.path();
        ["a", "b"].iter().for_each(|name| leave(runtime, name, DAY, 1));
        sessions(runtime)
            .iter()
            .filter(|session| session.directory.ends_with("session-b"))
            .for_each(Session::announce);
        delete_expired(runtime, |_| {});
        assert_eq!(left(runtime), ["session-b"]);
    }

    //= docs/recovery.md#how-long-it-is-kept
    #[test]
    fn what_users_were_asked_to_save_stays_for_a_day() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = directory.path();
        for (name, day) in [("a", 98), ("b", 99)] {
            leave(runtime, name, DAY * day, 10);
        }
        let all = sessions(runtime);
        all[0].announce();
        // Twice is once.
        all[0].announce();
        let now = Now::read();
        let give_up = |later: Duration| {
            let boot_clock_ns = now.boot_clock_ns + u64::try_from(later.as_nanos()).unwrap();
            let now = Now { wall_clock: now.wall_clock + later, boot_clock_ns, ..now.clone() };
            let left = sessions(runtime);
            let say = |text: &str| assert!(text.ends_with("leftovers take too much room"), "{text}");
            let young = left.into_iter().map(|mut session| {
                session.manifest.session.wall_clock_ns = u64::MAX;
                session
            });
            give_up(young.collect(), 0, &now, say);
        };
        // Exactly now.
        let file = std::fs::OpenOptions::new().write(true).open(runtime.join("session-a/announced")).unwrap();
        file.set_len(0).unwrap();
        std::os::unix::fs::FileExt::write_all_at(
            &file,
            format!("{} {}", now.boot_id, now.boot_clock_ns).as_bytes(),
            0,
        )
        .unwrap();
        // Behind the writing, which changes it.
        file.set_modified(now.wall_clock).unwrap();
        give_up(Duration::ZERO);
        assert_eq!(left(runtime), ["session-a"]);
        give_up(DAY - Duration::from_secs(1));
        assert_eq!(left(runtime), ["session-a"]);
        give_up(DAY);
        assert!(left(runtime).is_empty());
    }

    //= docs/recovery.md#how-long-it-is-kept
    #[test]
    fn a_clock_that_is_set_forward_makes_nothing_older() {
        let now = Now::read();
        let later = Now { wall_clock: now.wall_clock + DAY * 30, ..now.clone() };
        let since =
            |now: &Now, boot: &str| now.since(later.wall_clock - DAY * 30, boot, now.boot_clock_ns - 7);
        assert_eq!(since(&later, &now.boot_id), Duration::from_nanos(7));
        assert_eq!(since(&later, "another"), DAY * 30);
        assert_eq!(since(&later, ""), DAY * 30);
        // Nor one of a time namespace.
        let elsewhere = Now { boot_clock_ns: now.boot_clock_ns + 1_000_000_000_000_000, ..now.clone() };
        assert_eq!(elsewhere.since(now.wall_clock, &now.boot_id, now.boot_clock_ns), Duration::ZERO);
    }

    #[test]
    fn what_was_never_finished_is_deleted_after_a_minute() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = RuntimeDir::open_or_create(&directory.path().join("run")).unwrap();
        let make = |age: u64| {
            let made = runtime.create_unfinished_dir("session").unwrap();
            std::fs::write(made.join("provider-1"), "").unwrap();
            let at = SystemTime::now() - Duration::from_secs(age);
            std::fs::File::open(&made).unwrap().set_modified(at).unwrap();
            made
        };
        let (old, held, young) = (make(61), make(0), make(50));
        let lock = RuntimeDir::open_or_create(&held).unwrap().lock(super::super::LOCK_FILE).unwrap();
        std::fs::File::open(&held).unwrap().set_modified(SystemTime::now() - DAY).unwrap();
        assert!(sessions(runtime.path()).is_empty());
        let file = runtime.path().join(".new-file");
        std::fs::write(&file, "").unwrap();
        delete_expired(runtime.path(), |_| {});
        assert_eq!([&old, &held, &young].map(|made| made.exists()), [false, true, true]);
        // To the nanosecond, and nothing but a directory.
        let made = std::fs::metadata(&young).unwrap().modified().unwrap();
        delete_unfinished(runtime.path(), made + UNFINISHED_FOR);
        assert!(young.exists());
        delete_unfinished(runtime.path(), made + UNFINISHED_FOR + Duration::from_nanos(1));
        assert!(!young.exists());
        delete_unfinished(runtime.path(), SystemTime::now() + DAY);
        assert!(file.exists() && held.exists());
        drop(lock);
    }
}
