//! Root records for the user who has called `sudo`.
//= docs/recording.md#as-root

use super::meeting::{ALICE, Session, World, may_mount};
use trace_tests::Archive;

const BOB: u32 = 4_012;
/// As `sudo` runs a command.
const SUDO: &str = "SUDO_UID=4011 SUDO_GID=4011";
/// A service of root's that waits for the end of the world.
const OF_ROOT: &str =
    "(sleep 1000 | ./emit 1 5 --wait > root.out) & until [ -s root.out ]; do sleep 0.01; done";

/// A service of Alice's, and one of Bob's.
fn world() -> World {
    let mut world = World::new();
    for (uid, name) in [(ALICE, "alice"), (BOB, "bob")] {
        world.run(&format!(
            "cp emit {name} && (sleep 1000 | setpriv --reuid {uid} --regid {uid} --clear-groups ./{name} 1 5 --wait \
             > {name}.out) & until [ -s {name}.out ]; do sleep 0.01; done"
        ));
    }
    world
}

/// The users of the programs in a file, which is Alice's.
fn users(world: &mut World, file: &str) -> Vec<u32> {
    world.run(&format!("stat -c %u:%g:%a {file}"));
    assert_eq!(world.said(), format!("{ALICE}:{ALICE}:600\n"));
    let rows = "SELECT pid FROM programs WHERE id > 0";
    world.run(&format!("./trace query --format csv {file} '{rows}'"));
    let pids: Vec<String> = world.said().lines().skip(1).map(str::to_owned).collect();
    let mut users: Vec<u32> = pids
        .iter()
        .map(|pid| {
            world.run(&format!("stat -c %u /proc/{pid}"));
            world.said().trim().parse().unwrap()
        })
        .collect();
    users.sort_unstable();
    users
}

#[test]
fn a_users_programs_are_recorded_and_no_other_users() {
    if !may_mount("a_users_programs_are_recorded_and_no_other_users") {
        return;
    }
    let mut world = world();
    world.run(OF_ROOT);
    // Root's manager, which this command starts.
    world.run(&format!("{SUDO} ./trace record --duration 1s -o a.fxt"));
    assert_eq!(users(&mut world, "a.fxt"), [0, ALICE]);
    world.run("[ -S /run/trace/registry ] && [ ! -e /run/trace/buffers ]");
    world.run(&format!("./trace record --user {BOB} --duration 1s -o b.fxt; chown {ALICE}:{ALICE} b.fxt"));
    assert_eq!(users(&mut world, "b.fxt"), [0, BOB]);
    // In the background, and other commands.
    world.run(&format!(
        "{SUDO} ./trace start -o c.fxt && {SUDO} ./trace snapshot -o d.fxt && {SUDO} ./trace stop"
    ));
    assert_eq!([users(&mut world, "c.fxt"), users(&mut world, "d.fxt")], [[0, ALICE], [0, ALICE]]);
    // Not where Alice may not write.
    world.run(&format!("mkdir -m 755 roots; ! {SUDO} ./trace record --duration 1s -o roots/e.fxt"));
    let said = world.said();
    assert!(
        said.contains("it is made as user 4011, who called sudo; --user root makes it as root"),
        "{said}"
    );
    world.run(&format!(
        "[ -z \"$(ls roots)\" ]; {SUDO} ./trace record --user root --duration 1s -o roots/f.fxt"
    ));
    assert_eq!(
        Archive::read(&world.sandbox.file("roots/f.fxt"))
            .providers
            .values()
            .filter(|name| *name == "emit")
            .count(),
        3
    );
}

#[test]
fn the_users_manager_is_used_if_there_is_one() {
    if !may_mount("the_users_manager_is_used_if_there_is_one") {
        return;
    }
    let mut world = world();
    world.alice(Session::None, "./trace list-programs");
    world.run(&format!("{SUDO} ./trace record --duration 1s -o a.fxt"));
    assert_eq!(users(&mut world, "a.fxt"), [ALICE]);
    world.run("[ ! -e /run/trace ]");
    world.run(&format!("{SUDO} ./trace start -o b.fxt && {SUDO} ./trace status"));
    assert!(world.said().contains("b.fxt"), "{}", world.said());
    world.run(&format!("{SUDO} ./trace stop"));
    assert_eq!(users(&mut world, "b.fxt"), [ALICE]);
    // A command runs as root: its programs map no memory that Alice can cut.
    world.run(&format!("{SUDO} ./trace record -o c.fxt -- sh -c './emit 1 7; echo done'"));
    assert!(world.said().contains("done"), "{}", world.said());
    let archive = Archive::read(&world.sandbox.file("c.fxt"));
    assert_eq!(archive.providers.values().filter(|name| *name == "emit").count(), 1);
    // It does not register with Alice's manager.
    world.run(&format!(
        "! {SUDO} TRACE_RUNTIME_DIR=/dev/shm/trace-{ALICE} ./trace record -o e.fxt -- ./emit 1 7"
    ));
}

/// Her file and the buffers are joined, by root and into a file of hers.
//= docs/recovery.md#recovery
#[test]
fn a_recording_by_sudo_that_is_cut_off_is_recovered() {
    if !may_mount("a_recording_by_sudo_that_is_cut_off_is_recovered") {
        return;
    }
    let mut world = world();
    world.alice(Session::None, "mkdir hers");
    world.run(&format!("(cd hers; {SUDO} ../trace start --buffering-mode streaming -o cut.fxt)"));
    world.run("until ./trace list-programs | grep -q 'recorded by'; do sleep 0.01; done");
    world.run("kill -KILL $(cat /run/trace/lock)");
    // A link of hers leads where only root may write.
    world.run("mkdir -m 755 roots");
    world.alice(Session::None, "ln -s ../roots/x.fxt hers/link.fxt");
    world.run(&format!("(cd hers; ! {SUDO} ../trace recover -o link.fxt; ls ../roots > ../left; ! {SUDO} ../trace report -o link.fxt cut.fxt)"));
    world.run("[ ! -s left ] && [ -z \"$(ls roots)\" ]");
    world.run(&format!("(cd hers; {SUDO} ../trace recover)"));
    assert!(!world.said().contains("it is another file"), "{}", world.said());
    assert_eq!(users(&mut world, "hers/recovered.fxt"), [ALICE]);
}

/// Another user has taken both names of root's.
//= docs/protocol.md#where-processes-meet
#[test]
fn squatters_keep_root_from_nothing() {
    if !may_mount("squatters_keep_root_from_nothing") {
        return;
    }
    let mut world = world();
    world.run("mkdir /dev/shm/trace-0 /tmp/trace-0 && chown 1:1 /dev/shm/trace-0 /tmp/trace-0");
    world.run(&format!("{SUDO} ./trace record --duration 1s -o a.fxt"));
    assert_eq!(users(&mut world, "a.fxt"), [ALICE]);
    world.run("./trace record -o b.fxt -- ./emit 1 3");
    // No limit of the first caller's harms another one.
    world.run(&format!("(ulimit -f 8; {SUDO} ./trace list-programs)"));
    world.run("grep 'Max file size *unlimited *unlimited' /proc/$(cat /run/trace/lock)/limits");
    world.run(&format!("{SUDO} ./trace doctor --no-self-trace"));
    assert!(world.said().contains("/run/trace, of root's manager"), "{}", world.said());
}

#[test]
fn only_root_names_another_user() {
    if !may_mount("only_root_names_another_user") {
        return;
    }
    let mut world = World::new();
    for (user, code, text) in [
        (
            BOB.to_string(),
            2,
            "--user 4012: only root records the programs of another user: sudo trace record",
        ),
        ("nobody-is-called-so".to_owned(), 2, "/etc/passwd has no such user; give the user's number"),
        (ALICE.to_string(), 0, ""),
        ("root".to_owned(), 0, ""),
    ] {
        let record = format!("rm -f t.fxt; ./trace record --user {user} --duration 0.1 -o t.fxt");
        world.alice(Session::None, &format!("code=0; {record} || code=$?; [ $code = {code} ]"));
        assert!(world.said().contains(text), "{}", world.said());
    }
}
