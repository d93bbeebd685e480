//! Peers that try to hold up whoever they talk to.

use std::os::fd::AsFd;
use std::sync::mpsc;
use std::time::Duration;
use zx_sim::{Channel, Error, Fifo, Handle, Socket, Vmo};

/// Long enough for any machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs something that must not wait for anybody, and fails if it does.
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
fn only_sealed_memory_is_read_of_somebody_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let file = Vmo::create_in(directory.path(), "file", 10).unwrap();
    let file = || file.duplicate().unwrap().into_handle();
    assert!(file().is_file() && !file().is_sealed_memory());
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

/// A TCP socket with unsent data and a long linger time waits in its closing, as a file of a file system that
/// does not answer does.
#[test]
fn a_handle_that_waits_in_its_closing_is_closed_by_somebody_else() {
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut lingering = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_socket_linger(&lingering, Some(Duration::from_secs(1000))).unwrap();
    lingering.set_nonblocking(true).unwrap();
    // More than the other end takes.
    while lingering.write(&[0; 1 << 16]).is_ok() {}
    without_waiting(move || drop(Handle::new(lingering.into())));
    drop(accepted);
}
