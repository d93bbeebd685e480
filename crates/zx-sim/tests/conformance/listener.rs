//! Channels that are connected by path.

use crate::child::{self, assert_error, receive, receive_bytes, wait_for};
use std::path::{Path, PathBuf};
use zx_sim::{Channel, Error, Listener, Peer, Signals};

/// A child that connects to the path it is sent, says hello, and waits for an answer.
fn greet(channel: &Channel) {
    let path = PathBuf::from(String::from_utf8(receive_bytes(channel)).unwrap());
    let connection = Channel::connect(&path).unwrap();
    connection.write(b"hello", Vec::new()).unwrap();
    assert_eq!(receive_bytes(&connection), b"welcome");
}

/// The parent's half.
fn welcome(path: &Path, child: &child::Child) {
    let listener = Listener::bind(path).unwrap();
    assert_eq!(listener.path(), path);
    assert!(matches!(listener.accept(), Err(Error::ShouldWait)));
    child.channel.write(path.to_str().unwrap().as_bytes(), Vec::new()).unwrap();
    wait_for(&listener, Signals::READABLE);
    let connection = listener.accept().unwrap();
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(connection.peer().unwrap(), Peer { pid: child.pid(), uid });
    assert_eq!(receive(&connection).bytes, b"hello");
    connection.write(b"welcome", Vec::new()).unwrap();
    let names: Vec<_> =
        path.parent().unwrap().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names, [path], "nothing but the socket is there");
}

#[test]
fn a_process_connects_by_path() {
    let Some(child) = child::start(|channel| greet(&channel)) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    welcome(&directory.path().join("socket"), &child);
    child.finish();
}

#[test]
fn a_process_connects_by_a_path_longer_than_a_socket_address() {
    let Some(child) = child::start(|channel| greet(&channel)) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let long = directory.path().join("d".repeat(100)).join("e".repeat(100));
    std::fs::create_dir_all(&long).unwrap();
    let path = long.join("socket");
    assert!(path.as_os_str().len() > 200);
    welcome(&path, &child);
    child.finish();
}

#[test]
fn a_listener_takes_the_place_of_a_dead_one() {
    let Some(mut child) = child::start(|channel| {
        let path = PathBuf::from(String::from_utf8(receive_bytes(&channel)).unwrap());
        let _listener = Listener::bind(&path).unwrap();
        channel.write(b"listening", Vec::new()).unwrap();
        child::sleep_until_killed(&channel);
    }) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let nobody = |why: &str| format!("cannot connect to {}: {why}", path.display());
    assert_error(Channel::connect(&path), &nobody("No such file or directory (os error 2)"));
    child.channel.write(path.to_str().unwrap().as_bytes(), Vec::new()).unwrap();
    assert_eq!(receive_bytes(&child.channel), b"listening");
    assert_eq!(Channel::connect(&path).unwrap().peer().unwrap().pid, child.pid());
    child.kill();
    assert_error(Channel::connect(&path), &nobody("Connection refused (os error 111)"));
    let _listener = Listener::bind(&path).unwrap();
    assert_eq!(Channel::connect(&path).unwrap().peer().unwrap().pid, std::process::id());
}

#[test]
fn a_place_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing").join("socket");
    assert_error(
        Listener::bind(&path),
        &format!("cannot listen at {}: No such file or directory (os error 2)", path.display()),
    );
    // A directory is in the way, which a socket cannot replace.
    let path = directory.path().join("taken");
    std::fs::create_dir(&path).unwrap();
    assert_error(
        Listener::bind(&path),
        &format!("cannot listen at {}: Is a directory (os error 21)", path.display()),
    );
    assert_eq!(directory.path().read_dir().unwrap().count(), 1, "nothing is left behind");
}

/// Those that have connected before are served, and no other waits in vain.
#[test]
fn what_refuses_all_still_has_those_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = Listener::bind(&path).unwrap();
    let before = Channel::connect(&path).unwrap();
    listener.refuse_all();
    assert!(matches!(Channel::connect(&path), Err(error) if !matches!(error, Error::ShouldWait)));
    before.write(b"first", Vec::new()).unwrap();
    assert_eq!(listener.accept().unwrap().read().unwrap().bytes, b"first");
    assert!(listener.accept().is_err());
}
