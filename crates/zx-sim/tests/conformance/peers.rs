//! Peers that try to block the processes they are connected to.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::time::Duration;
use zx_sim::{Channel, Error, Fifo, Handle, Socket, Vmo};

/// Long enough for any machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs something that must not block, and fails if it does.
fn without_waiting(act: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        act();
        let _ = done.send(());
    });
    is_done.recv_timeout(DEADLINE).expect("it ends, and without a panic");
}

/// As a peer does that has made the pair and kept a copy: the flag belongs to what both refer to.
fn clear_nonblocking(end: &impl AsFd) {
    rustix::io::ioctl_fionbio(end, false).unwrap();
}

fn until_it_would_wait(mut act: impl FnMut() -> Result<(), Error>) {
    loop {
        match act() {
            Ok(()) => {}
            Err(Error::ShouldWait) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_channel_does_not_wait_though_its_peer_clears_the_flag() {
    let (ours, _theirs) = Channel::pair().unwrap();
    let copy = ours.as_fd().try_clone_to_owned().unwrap();
    let ours = Channel::from_handle(ours.into_handle()).unwrap();
    clear_nonblocking(&copy);
    without_waiting(move || {
        assert!(matches!(ours.read(), Err(Error::ShouldWait)));
        until_it_would_wait(|| ours.write(&[7; 1000], Vec::new()));
    });
}

#[test]
fn a_socket_does_not_wait_though_its_peer_clears_the_flag() {
    let (ours, _theirs) = Socket::pair().unwrap();
    let copy = ours.as_fd().try_clone_to_owned().unwrap();
    let ours = Socket::from_handle(ours.into_handle()).unwrap();
    clear_nonblocking(&copy);
    without_waiting(move || {
        assert!(matches!(ours.read(&mut [0; 10]), Err(Error::ShouldWait)));
        until_it_would_wait(|| ours.write(&[7; 1000]).map(|_| ()));
    });
}

#[test]
fn a_fifo_does_not_wait_though_its_peer_clears_the_flag() {
    let (ours, _theirs) = Fifo::create(32, 256).unwrap();
    let copy = ours.as_fd().try_clone_to_owned().unwrap();
    let ours = Fifo::from_handle(ours.into_handle(), 32, 256).unwrap();
    clear_nonblocking(&copy);
    // The kernel's bound comes before that of the count.
    rustix::net::sockopt::set_socket_send_buffer_size(&copy, 0).unwrap();
    without_waiting(move || {
        assert!(matches!(ours.read(&mut [0; 32]), Err(Error::ShouldWait)));
        until_it_would_wait(|| ours.write(&[7; 32]));
    });
}

#[test]
fn only_sealed_memory_is_read_of_an_untrusted_peer() {
    let directory = tempfile::tempdir().unwrap();
    let file = Vmo::create_in(directory.path(), "file", 10).unwrap();
    let file = || file.duplicate().unwrap().into_handle();
    assert!(file().file().is_some() && !file().is_sealed_memory());
    let refused = Vmo::from_sealed_handle(file()).unwrap_err();
    assert_eq!(refused.to_string(), "handle is not a vmo");
    assert_eq!(Vmo::from_handle(file()).unwrap().size().unwrap(), 10);

    let memory = Vmo::of_bytes("message", b"hello").unwrap().into_handle();
    assert!(memory.is_sealed_memory());
    assert_eq!(Vmo::from_sealed_handle(memory).unwrap().to_bytes(5).unwrap(), b"hello");

    // It could be made shorter while it is read.
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let open = rustix::fs::memfd_create("open", flags).unwrap();
    assert!(Vmo::from_sealed_handle(Handle::new(open)).is_err());
    let (channel, _other) = Channel::pair().unwrap();
    assert!(Vmo::from_sealed_handle(channel.into_handle()).is_err());
}

/// A TCP connection whose last closing waits for a very long time, as its other end reads nothing: and that
/// other end, to be kept.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::from_secs(1000))).unwrap();
    stream.set_nonblocking(true).unwrap();
    // More than the other end takes.
    while stream.write(&[0; 1 << 16]).is_ok() {}
    (stream.into(), accepted)
}

/// Sends a byte with handles, more than a message may have.
fn send_handles(to: &impl AsFd, handles: &[OwnedFd]) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    let handles: Vec<_> = handles.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&handles)));
    rustix::net::sendmsg(to, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::NOSIGNAL).unwrap();
}

#[test]
fn a_handle_that_waits_in_its_closing_is_closed_all_the_same() {
    let (bomb, _accepted) = lingering();
    without_waiting(move || drop(Handle::new(bomb)));
}

/// Handles that were sent and never read are closed with the socket that they were sent to, by the process
/// that closes that.
#[test]
fn what_was_never_read_is_closed_without_waiting() {
    const IS_CHILD: &str = "ZX_SIM_TEST_CHILD";
    if std::env::var_os(IS_CHILD).is_none() {
        // What it says of peers holds for the whole process.
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "peers::what_was_never_read_is_closed_without_waiting"]).env(IS_CHILD, "1");
        let output = child.output().unwrap();
        return assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    zx_sim::distrust_peers();
    let mut accepted = Vec::new();
    let mut bomb = || {
        let (bomb, other) = lingering();
        accepted.push(other);
        bomb
    };
    // Behind an empty message, which looks like the end.
    let (ours, theirs) = Channel::pair().unwrap();
    rustix::net::send(&theirs, &[], rustix::net::SendFlags::NOSIGNAL).unwrap();
    send_handles(&theirs, &[bomb()]);
    without_waiting(move || drop(ours));

    // Behind the report that the other end has not read everything either.
    let (ours, theirs) = Channel::pair().unwrap();
    ours.write(b"unread", Vec::new()).unwrap();
    send_handles(&theirs, &[bomb()]);
    drop(theirs.into_handle().into_fd());
    without_waiting(move || drop(ours));

    // Behind more bytes than there can be messages.
    let (ours, theirs) = Socket::pair().unwrap();
    assert_eq!(theirs.write(&[7; 100_000]).unwrap(), 100_000);
    send_handles(&theirs, &[bomb()]);
    without_waiting(move || drop(ours));

    let (ours, theirs) = Fifo::create(1, 4).unwrap();
    send_handles(&theirs, &[bomb()]);
    let second = bomb();
    without_waiting(move || {
        ours.read(&mut [0]).unwrap();
        send_handles(&theirs, &[second]);
        drop(ours);
    });

    // In the queue of a socket that is itself a handle, and of one more in that.
    let (inner, to_inner) = Socket::pair().unwrap();
    send_handles(&to_inner, &[bomb()]);
    let (outer, to_outer) = Socket::pair().unwrap();
    send_handles(&to_outer, &[inner.into()]);
    without_waiting(move || drop(Handle::new(outer.into())));

    // Among more handles than a message may have.
    let (ours, theirs) = Channel::pair().unwrap();
    let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let handles: Vec<OwnedFd> = (0..252).map(|_| null()).chain([bomb()]).collect();
    send_handles(&theirs, &handles);
    drop(handles);
    without_waiting(move || {
        let refused = ours.read().unwrap_err();
        assert_eq!(refused.to_string(), "message with 253 handles, at most 64 are possible");
    });
}
