//! `kill -9` at random times of programs that record themselves, with their children: nothing that was
//! written is missing, and nothing that lives was recovered or deleted before.

use super::random::Random;
use rustix::process::{Pid, Signal};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use trace_tests::scene::{Scene, counted, numbers, stderr};
use trace_tests::{Requirement, Sandbox, build, native, wait_for};

/// What the program is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    C,
}

/// How it comes to record itself: by its environment, with threads or with children, or by itself.
const WAYS: [&str; 3] = ["startup", "forks", "local"];

/// The program in C, compiled once.
fn compiled() -> PathBuf {
    static PROGRAM: OnceLock<(Sandbox, PathBuf)> = OnceLock::new();
    let compile = || {
        let sandbox = Sandbox::new();
        let program = sandbox.file("burst");
        native::program("gcc", &["burst.c"], &["-D_GNU_SOURCE", "-O2", "-pthread"], &program);
        (sandbox, program)
    };
    PROGRAM.get_or_init(compile).1.clone()
}

/// Kills one, if there is a compiler for it.
pub fn kill_once(mode: &str, language: Language, random: &mut Random) {
    let program = match language {
        Language::Rust => build::program("burst").to_owned(),
        Language::C if Requirement::Compilers.is_met("kills of programs in C") => compiled(),
        Language::C => return,
    };
    let way = WAYS[random.below(3) as usize];
    let events = random.below(3000);
    let is_disturbed = random.below(2) == 0;
    let what = format!("{mode} {language:?} {way} after {events} events, disturbed: {is_disturbed}");
    println!("{what}");
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.file("page"), [0; 4096]).expect("a page");
    let mut command = Command::new(program);
    command.arg(sandbox.file("page")).args([&u64::MAX.to_string(), "10", way]).process_group(0);
    command.env("TRACE_RUNTIME_DIR", sandbox.runtime_dir());
    if way != "local" {
        let mode = if mode == "circular" { mode } else { "oneshot" };
        command.envs([("TRACE_STARTUP", "burst"), ("TRACE_STARTUP_MODE", mode)]);
        command.env("TRACE_STARTUP_BUFFER_SIZE", "64");
    }
    let process = Sandbox::spawn_command(command);
    wait_for("events", || (counted(&sandbox).iter().sum::<u64>() >= events).then_some(()));
    if is_disturbed {
        let before = Scene::sessions_of(&sandbox);
        let output = sandbox.trace(["recover", "-o", "never.fxt"]);
        assert_eq!(output.status.code(), Some(125), "{what}: {}", stderr(&output));
        assert!(!sandbox.file("never.fxt").exists(), "{what}");
        let after = Scene::sessions_of(&sandbox);
        assert!(before.iter().all(|session| after.contains(session)), "{what}: {before:?} {after:?}");
    }
    let group = Pid::from_raw(i32::try_from(process.pid()).expect("a pid")).expect("a process");
    rustix::process::kill_process_group(group, Signal::KILL).expect("it lives");
    let _ = process.finish();
    wait_for("the children to die", || rustix::process::test_kill_process_group(group).err());
    let counted = counted(&sandbox);
    let output = sandbox.trace(["recover", "-o", "recovered.fxt"]);
    let is_recovered = output.status.success();
    assert!(is_recovered || counted.iter().all(|count| *count == 0), "{what}: {}", stderr(&output));
    let found = if is_recovered { numbers(&sandbox, &["recovered.fxt"]) } else { Default::default() };
    for (thread, count) in (0..).zip(counted) {
        let of_thread = found.get(&thread).map_or(0, |numbers| numbers.len() as u64);
        let is_whole = found.get(&thread).is_none_or(|numbers| numbers.iter().copied().eq(0..of_thread));
        assert!(is_whole, "{what}: gaps of {thread}");
        assert!((count..=count + 1).contains(&of_thread), "{what}: {of_thread} of {count} of {thread}");
    }
    let left = Scene::sessions_of(&sandbox);
    assert!(left.is_empty() || !is_recovered, "{what}: {left:?}");
}
