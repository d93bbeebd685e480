//! Koids, names and death.

use crate::child::{
    self, assert_error, receive_bytes, receive_number, send_number, signals_of, sleep_until_killed, wait_for,
};
use zx_sim::{ProcessFd, Signals, process_koid, process_name, thread_koid, thread_name};

#[test]
fn the_death_of_a_process_is_seen() {
    let Some(mut child) = child::start(|channel| {
        send_number(&channel, process_koid());
        sleep_until_killed(&channel);
    }) else {
        return;
    };
    assert_eq!(receive_number(&child.channel), u64::from(child.pid()));
    let process = ProcessFd::open(child.pid()).unwrap();
    assert!(!process.is_dead());
    assert_eq!(signals_of(&process), Signals::empty());
    child.kill();
    wait_for(&process, Signals::READABLE);
    assert!(process.is_dead());
    assert_error(
        ProcessFd::open(child.pid()),
        &format!("cannot find process {}: No such process (os error 3)", child.pid()),
    );
    assert_error(ProcessFd::open(0), "cannot find process 0: No such process (os error 3)");
    let large = u32::MAX;
    assert_error(
        ProcessFd::open(large),
        &format!("cannot find process {large}: No such process (os error 3)"),
    );
}

#[test]
fn threads_have_koids_and_names_of_their_own() {
    assert_eq!(process_koid(), u64::from(std::process::id()));
    let ours = thread_koid();
    assert_eq!(thread_koid(), ours);
    let other = std::thread::Builder::new().name("someone".to_owned());
    let (koid, name) = other.spawn(|| (thread_koid(), thread_name())).unwrap().join().unwrap();
    assert_ne!(koid, ours);
    assert_eq!(name, "someone");
}

#[test]
fn a_process_is_called_as_it_was_started() {
    use std::os::unix::process::CommandExt;
    let Some(child) = child::start_with(
        |command| {
            command.arg0("/some/where/a program");
        },
        |channel| channel.write(process_name().as_bytes(), Vec::new()).unwrap(),
    ) else {
        return;
    };
    assert_eq!(receive_bytes(&child.channel), b"a program");
    child.finish();
}
