//! The directory where sockets and VMOs live.

use crate::child::{self, assert_error, receive_bytes, receive_number, send_number, sleep_until_killed};
use crate::skip::skip;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use zx_sim::{Channel, Listener, RuntimeDir, liveness};

const VARIABLE: &str = "ZX_SIM_TEST_RUNTIME_DIR";
const NOBODY: u32 = 65_534;

fn receive_path(channel: &Channel) -> PathBuf {
    PathBuf::from(String::from_utf8(receive_bytes(channel)).unwrap())
}

fn send_path(channel: &Channel, path: &Path) {
    channel.write(path.to_str().unwrap().as_bytes(), Vec::new()).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn it_is_made_for_its_owner_alone() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("run");
    let first = RuntimeDir::open_or_create(&path).unwrap();
    assert_eq!(first.path(), path);
    assert_eq!(mode_of(&path), 0o700);
    RuntimeDir::open_or_create(&path).unwrap();
    let (a, b) = (first.create_unique_dir("part").unwrap(), first.create_unique_dir("part").unwrap());
    assert_ne!(a, b);
    for part in [a, b] {
        assert!(part.starts_with(&path) && part.is_dir());
        assert_eq!(mode_of(&part), 0o700);
    }
}

#[test]
fn one_for_all_users_lets_them_in_and_make_nothing() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("run");
    let directory = RuntimeDir::open_or_create_for_all(&path).unwrap();
    assert_eq!(mode_of(&path), 0o755);
    RuntimeDir::open_or_create_for_all(&path).unwrap();
    assert_error(
        RuntimeDir::open_or_create(&path),
        &format!("{}: has mode 0755, expected 0700", path.display()),
    );
    assert_eq!(mode_of(&directory.create_unique_dir("part").unwrap()), 0o700);
    set_mode(&path, 0o700);
    assert_error(
        RuntimeDir::open_or_create_for_all(&path),
        &format!("{}: has mode 0700, expected 0755", path.display()),
    );
    let (private, public) = (base.path().join("private"), base.path().join("public"));
    let _listeners = (Listener::bind(&private).unwrap(), Listener::bind_for_all(&public).unwrap());
    assert_eq!(mode_of(&public), 0o666);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap().trim();
    assert_eq!(mode_of(&private), 0o777 & !u32::from_str_radix(umask, 8).unwrap());
}

#[test]
fn what_is_not_safe_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("run");
    let refused = |problem: &str| {
        assert_error(RuntimeDir::open_or_create(&path), &format!("{}: {problem}", path.display()));
        // A slash at the end changes nothing.
        let slash = PathBuf::from(format!("{}/", path.display()));
        assert_error(RuntimeDir::open_or_create(&slash), &format!("{}: {problem}", path.display()));
    };
    let target = base.path().join("target");
    RuntimeDir::open_or_create(&target).unwrap();
    symlink(&target, &path).unwrap();
    refused("is a symbolic link, which is not followed");
    std::fs::remove_file(&path).unwrap();
    symlink(base.path().join("nothing"), &path).unwrap();
    refused("is a symbolic link, which is not followed");
    std::fs::remove_file(&path).unwrap();

    std::fs::create_dir(&path).unwrap();
    for mode in [0o755, 0o770, 0o701, 0o600] {
        set_mode(&path, mode);
        refused(&format!("has mode {mode:04o}, expected 0700"));
    }
    set_mode(&path, 0o700);
    RuntimeDir::open_or_create(&path).unwrap();
    std::fs::remove_dir(&path).unwrap();

    std::fs::write(&path, "").unwrap();
    refused("is not a directory");
    std::fs::remove_file(&path).unwrap();

    // Another user could put a directory of his own there.
    for (mode, is_refused) in [(0o777, true), (0o1777, false), (0o755, false)] {
        set_mode(base.path(), mode);
        if is_refused {
            refused(&format!("is below {}, where other users may replace it", base.path().display()));
            assert!(!path.exists());
        } else {
            RuntimeDir::open_or_create(&path).unwrap();
            std::fs::remove_dir(&path).unwrap();
        }
    }

    let missing = base.path().join("missing").join("run");
    assert_error(
        RuntimeDir::open_or_create(&missing),
        &format!("cannot create {}: No such file or directory (os error 2)", missing.display()),
    );
}

/// Whether this process may give files to other users: root may, but not in a user namespace. If not, the
/// test is reported as skipped.
fn may_give_away(test: &str) -> bool {
    // A child is only started where its parent may.
    if std::env::var_os(child::CHILD_OF).is_some() {
        return true;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let given = chown(file.path(), Some(NOBODY), None);
    given.map_err(|error| skip(test, "root", &format!("a file cannot be given away: {error}"))).is_ok()
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let test = "runtime_dir::a_directory_of_another_user_is_refused";
    if !may_give_away(test) {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("run");
    RuntimeDir::open_or_create(&path).unwrap();
    chown(&path, Some(NOBODY), None).unwrap();
    assert_error(
        RuntimeDir::open_or_create(&path),
        &format!("{}: belongs to user 65534, not to user 0", path.display()),
    );
}

#[test]
fn a_lock_is_held_until_its_process_dies() {
    let Some(mut child) = child::start(|channel| {
        let directory = RuntimeDir::open_or_create(&receive_path(&channel)).unwrap();
        let _lock = directory.lock("lock").unwrap().expect("nobody has it");
        send_number(&channel, 1);
        sleep_until_killed(&channel);
    }) else {
        return;
    };
    let base = tempfile::tempdir().unwrap();
    let directory = RuntimeDir::open_or_create(&base.path().join("run")).unwrap();
    assert_eq!(directory.lock_holder("lock"), None);
    // Of a process whose pid was longer.
    std::fs::write(directory.path().join("lock"), "12345678").unwrap();
    assert_eq!(directory.lock_holder("lock"), Some(12_345_678));
    send_path(&child.channel, directory.path());
    assert_eq!(receive_number(&child.channel), 1);
    assert!(directory.lock("lock").unwrap().is_none());
    assert_eq!(directory.lock_holder("lock"), Some(child.pid()));
    assert!(directory.lock("another").unwrap().is_some(), "of another name");
    child.kill();
    let lock = directory.lock("lock").unwrap().expect("its holder is dead");
    assert_eq!(directory.lock_holder("lock"), Some(std::process::id()));
    assert!(directory.lock("lock").unwrap().is_none());
    drop(lock);
    assert!(directory.lock("lock").unwrap().is_some());
}

/// What a child with an environment of its own finds.
fn candidates_of(channel: &Channel) {
    let found = RuntimeDir::candidates(VARIABLE, "name");
    let text: Vec<_> = found.iter().map(|path| path.to_str().unwrap()).collect();
    let text = format!("{}\n{}", rustix::process::geteuid().as_raw(), text.join("\n"));
    channel.write(text.as_bytes(), Vec::new()).unwrap();
}

/// User and candidates that the child found.
fn candidates_from(child: child::Child) -> (u32, Vec<String>) {
    let text = String::from_utf8(receive_bytes(&child.channel)).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    let uid = lines.next().unwrap().parse().unwrap();
    child.finish();
    (uid, lines.collect())
}

/// Where processes of a user meet, and its directory of login sessions.
fn usual_and_private(uid: u32) -> [String; 2] {
    let base = if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" };
    [format!("{base}/name-{uid}"), format!("/run/user/{uid}/name")]
}

#[test]
fn a_variable_names_the_only_candidate() {
    let change = |command: &mut Command| {
        command.env(VARIABLE, "/named/by/variable").env("XDG_RUNTIME_DIR", "/tmp");
    };
    let Some(child) = child::start_with(change, |channel| candidates_of(&channel)) else {
        return;
    };
    assert_eq!(candidates_from(child).1, ["/named/by/variable"]);
}

/// What is found with a value of the variable for login sessions: the same first place with any.
macro_rules! places {
    ($test:ident, $base:expr, $named:expr) => {
        //= docs/protocol.md#where-processes-meet
        #[test]
        fn $test() {
            let change = |command: &mut Command| {
                command.env(VARIABLE, "").env_remove("XDG_RUNTIME_DIR").current_dir("/");
                let base: Option<&str> = $base;
                base.map(|base| command.env("XDG_RUNTIME_DIR", base));
            };
            let Some(child) = child::start_with(change, |channel| candidates_of(&channel)) else {
                return;
            };
            let (uid, found) = candidates_from(child);
            let [usual, private] = usual_and_private(uid);
            let named: Option<&str> = $named;
            let expected: Vec<String> = [usual]
                .into_iter()
                .chain(named.map(str::to_owned))
                .chain([private, "/run/name".to_owned()])
                .collect();
            assert_eq!(found, expected);
        }
    };
}

places!(a_user_without_session_meets_in_the_usual_directory, None, None);
places!(the_directory_of_a_session_is_another_candidate, Some("/tmp"), Some("/tmp/name"));
places!(one_that_is_missing_may_appear, Some("/not/there"), Some("/not/there/name"));
places!(a_relative_runtime_directory_does_not_count, Some("tmp"), None);

/// A directory of which a manager has made use, and that is deleted or replaced.
#[test]
fn a_directory_that_is_gone_is_displaced() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("run");
    let directory = RuntimeDir::open_or_create(&path).unwrap();
    assert!(!directory.is_displaced());
    std::fs::remove_dir(&path).unwrap();
    assert!(directory.is_displaced());
    let next = RuntimeDir::open_or_create(&path).unwrap();
    assert!(directory.is_displaced() && !next.is_displaced());
    std::fs::rename(&path, base.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", &path).unwrap();
    assert!(next.is_displaced());
}

/// A program with privileges that its caller does not have must not go where its caller points.
#[test]
fn a_set_uid_program_ignores_the_environment() {
    let test = "runtime_dir::a_set_uid_program_ignores_the_environment";
    if !may_give_away(test) {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let program = || {
        let program = base.path().join("program");
        set_mode(base.path(), 0o755);
        // By another process: a child that another test is starting would have the file open for writing, and
        // then it cannot be run.
        let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
        assert!(copied.unwrap().success());
        chown(&program, Some(NOBODY), None).unwrap();
        set_mode(&program, 0o4755);
        program
    };
    let change = |command: &mut Command| {
        command.env(VARIABLE, "/named/by/variable").env("XDG_RUNTIME_DIR", "/tmp");
    };
    let Some(child) = child::start_program(program, change, |channel| candidates_of(&channel)) else {
        return;
    };
    let (uid, found) = candidates_from(child);
    if uid != NOBODY {
        return skip(test, "root", "the file system of the temporary directory ignores set-uid");
    }
    let [usual, private] = usual_and_private(NOBODY);
    assert_eq!(found, [usual, private, "/run/name".to_owned()]);
}

/// Any user may make a directory of that name, but it is not used.
//= docs/protocol.md#users
#[test]
fn a_directory_that_another_user_has_made_is_not_chosen() {
    let test = "runtime_dir::a_directory_that_another_user_has_made_is_not_chosen";
    if !may_give_away(test) {
        return;
    }
    if !Path::new("/dev/shm").is_dir() {
        return skip(test, "root", "there is no /dev/shm");
    }
    let name = format!("squat-{}", std::process::id());
    let [in_memory, on_disk] = ["/dev/shm", "/tmp"].map(|base| Path::new(base).join(format!("{name}-0")));
    let found = |name: &str| {
        let change = |command: &mut Command| {
            command.env_remove(VARIABLE).env_remove("XDG_RUNTIME_DIR");
        };
        let child = child::start_with(change, |channel| {
            let name = String::from_utf8(receive_bytes(&channel)).unwrap();
            let found = RuntimeDir::candidates(VARIABLE, &name);
            let text: Vec<_> = found.iter().map(|path| path.to_str().unwrap()).collect();
            channel.write(format!("0\n{}", text.join("\n")).as_bytes(), Vec::new()).unwrap();
        })?;
        child.channel.write(name.as_bytes(), Vec::new()).unwrap();
        Some(candidates_from(child).1)
    };
    let [private, system] = [format!("/run/user/0/{name}"), format!("/run/{name}")];
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let Some(before) = found(&name) else {
        return;
    };
    assert_eq!(before, [text(&in_memory), private.clone(), system.clone()]);
    std::fs::create_dir(&in_memory).unwrap();
    let own = found(&name).unwrap();
    chown(&in_memory, Some(NOBODY), None).unwrap();
    let taken = found(&name).unwrap();
    // Where this user's is in use, it is looked at when the first is free again.
    std::fs::create_dir(&on_disk).unwrap();
    std::fs::remove_dir(&in_memory).unwrap();
    let free_again = found(&name).unwrap();
    std::os::unix::fs::symlink("/", &in_memory).unwrap();
    let linked = found(&name).unwrap();
    std::fs::remove_file(&in_memory).unwrap();
    std::fs::remove_dir(&on_disk).unwrap();
    assert_eq!(own, before);
    assert_eq!(taken, [text(&on_disk), private.clone(), system.clone()]);
    assert_eq!(free_again, [text(&in_memory), private.clone(), text(&on_disk), system.clone()]);
    assert_eq!(linked, [text(&on_disk), private, system]);
}

#[test]
fn a_mark_lasts_as_long_as_its_process_without_a_descriptor() {
    let Some(mut child) = child::start(|channel| {
        let directory = RuntimeDir::open_or_create(&receive_path(&channel)).unwrap();
        let mark = directory.hold("lock").unwrap().unwrap();
        send_number(&channel, mark.is_lasting().into());
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
        let paths = descriptors.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
        send_number(&channel, u64::from(paths.into_iter().any(|path| path.ends_with("lock"))));
        sleep_until_killed(&channel);
    }) else {
        return;
    };
    let base = tempfile::tempdir().unwrap();
    let directory = RuntimeDir::open_or_create(&base.path().join("run")).unwrap();
    let file = || std::fs::File::open(directory.path().join("lock")).unwrap();
    drop(directory.lock("lock").unwrap());
    assert!(!liveness::is_marked(&file()).unwrap());
    send_path(&child.channel, directory.path());
    if receive_number(&child.channel) == 0 {
        let test = "runtime_dir::a_mark_lasts_as_long_as_its_process_without_a_descriptor";
        return skip(test, "locks", "mappings of the file system for temporary files keep no locks");
    }
    assert_eq!(receive_number(&child.channel), 0);
    assert!(liveness::is_marked(&file()).unwrap());
    assert!(directory.lock("lock").unwrap().is_none());
    child.kill();
    assert!(!liveness::is_marked(&file()).unwrap());
    let lock = directory.lock("lock").unwrap().expect("its holder is dead");
    assert!(!liveness::is_marked(&file()).unwrap(), "a lock alone is no mark");
    lock.mark().unwrap();
    assert!(liveness::is_marked(&file()).unwrap());
    drop(lock);
    assert!(!liveness::is_marked(&file()).unwrap());
    let mark = directory.hold("lock").unwrap().unwrap();
    assert!(liveness::is_marked(&file()).unwrap());
    drop(mark);
    // A child that another test forks has a copy until it executes its program.
    let deadline = Instant::now() + Duration::from_secs(60);
    while liveness::is_marked(&file()).unwrap() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(!liveness::is_marked(&file()).unwrap() && directory.lock("lock").unwrap().is_some());
}
