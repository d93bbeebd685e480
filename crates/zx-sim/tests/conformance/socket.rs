//! A byte stream.

use crate::child::{
    self, assert_error, receive_bytes, receive_handle, receive_number, send_handle, send_number, signals_of,
    sleep_until_killed, wait_for,
};
use zx_sim::{Channel, Error, Fifo, Signals, Socket};

/// The byte of the stream at a position.
fn byte_at(position: usize) -> u8 {
    (position % 253) as u8
}

fn stream(from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(byte_at).collect()
}

/// Reads until there is nothing for now, or the end; whether it was the end.
fn read_all(socket: &Socket, bytes: &mut Vec<u8>) -> bool {
    let mut piece = [0; 10_000];
    loop {
        match socket.read(&mut piece) {
            Ok(0) => return true,
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(Error::ShouldWait) => return false,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_writer_that_is_too_fast_sees_it() {
    let Some(child) = child::start(|channel| {
        let socket = Socket::from_handle(receive_handle(&channel)).unwrap();
        let expected = receive_number(&channel) as usize;
        let mut bytes = Vec::new();
        while bytes.len() < expected {
            wait_for(&socket, Signals::READABLE);
            assert!(!read_all(&socket, &mut bytes));
        }
        assert_eq!(bytes, stream(0, expected));
        send_number(&channel, expected as u64);
        wait_for(&socket, Signals::PEER_CLOSED);
        assert!(read_all(&socket, &mut bytes));
        assert_eq!(bytes.len(), expected + 5);
    }) else {
        return;
    };
    let (ours, theirs) = Socket::pair().unwrap();
    assert_eq!(signals_of(&ours), Signals::WRITABLE);
    // More than there is ever room for: written in part.
    let all = stream(0, 64 << 20);
    let first = ours.write(&all).unwrap();
    assert!(0 < first && first < all.len(), "{first}");
    let mut written = first;
    loop {
        match ours.write(&all[written..]) {
            Ok(length) => written += length,
            Err(Error::ShouldWait) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(signals_of(&ours), Signals::empty(), "no room");
    send_handle(&child.channel, theirs.into_handle());
    send_number(&child.channel, written as u64);
    assert_eq!(receive_number(&child.channel), written as u64);
    wait_for(&ours, Signals::WRITABLE);
    assert_eq!(ours.write(&all[..5]).unwrap(), 5);
    drop(ours);
    child.finish();
}

#[test]
fn a_killed_process_is_a_closed_peer() {
    let Some(mut child) = child::start(|channel| {
        let socket = Socket::from_handle(receive_handle(&channel)).unwrap();
        assert_eq!(socket.write(b"last words").unwrap(), 10);
        channel.write(b"alive", Vec::new()).unwrap();
        sleep_until_killed(&channel);
    }) else {
        return;
    };
    let (ours, theirs) = Socket::pair().unwrap();
    assert_eq!(ours.write(b"never read").unwrap(), 10);
    send_handle(&child.channel, theirs.into_handle());
    assert_eq!(receive_bytes(&child.channel), b"alive");
    assert_eq!(signals_of(&ours), Signals::READABLE | Signals::WRITABLE);
    child.kill();
    wait_for(&ours, Signals::PEER_CLOSED);
    let mut bytes = Vec::new();
    assert!(read_all(&ours, &mut bytes));
    assert_eq!(bytes, b"last words");
    assert_eq!(ours.read(&mut [0; 8]).unwrap(), 0);
    assert!(matches!(ours.write(b"anyone?"), Err(Error::PeerClosed)));
}

/// In a child, because Rust programs ignore the signal by default, and other programs do not.
#[test]
fn writing_to_a_closed_peer_raises_no_signal() {
    let Some(child) = child::start(|channel| {
        // SAFETY: the default action is no handler of ours.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (socket, end) = Socket::pair().unwrap();
        drop(end);
        assert!(matches!(socket.write(b"x"), Err(Error::PeerClosed)));
        let (fifo, end) = Fifo::create(1, 1).unwrap();
        drop(end);
        assert!(matches!(fifo.write(b"x"), Err(Error::PeerClosed)));
        let (other, end) = Channel::pair().unwrap();
        drop(end);
        assert!(matches!(other.write(b"x", Vec::new()), Err(Error::PeerClosed)));
        send_number(&channel, 4);
    }) else {
        return;
    };
    assert_eq!(receive_number(&child.channel), 4);
    child.finish();
}

#[test]
fn only_a_socket_is_taken_for_one() {
    let handle = Channel::pair().unwrap().0.into_handle();
    assert_error(Socket::from_handle(handle), "handle is not a socket");
}
