//! Messages with handles.

use crate::child::{
    self, assert_error, descriptors, receive, receive_bytes, receive_number, send_number, signals_of,
    sleep_until_killed, wait_for,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use zx_sim::channel::{MAX_MESSAGE_BYTES, MAX_MESSAGE_HANDLES};
use zx_sim::{Channel, Error, Fifo, Handle, Peer, Signals, Socket, Vmo};

/// Handles whose other end reports when they are closed.
fn watched_handles(count: usize) -> (Channel, Vec<Handle>) {
    let (watch, end) = Channel::pair().expect("a channel");
    let end = end.into_handle();
    let copies = (1..count).map(|_| {
        Handle::new(end.as_fd().try_clone_to_owned().expect("the tests run with descriptors to spare"))
    });
    let copies = copies.collect::<Vec<_>>();
    (watch, std::iter::once(end).chain(copies).collect())
}

/// Sends what the type does not let through.
fn send_raw(channel: &Channel, bytes: &[u8], handles: &[Handle]) {
    let handles: Vec<_> = handles.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&handles)));
    rustix::net::sendmsg(channel, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)
        .expect("the kernel has larger limits");
}

#[test]
fn a_killed_process_is_a_closed_peer() {
    let Some(mut child) = child::start(|channel| {
        channel.write(b"alive", Vec::new()).unwrap();
        sleep_until_killed(&channel);
    }) else {
        return;
    };
    assert_eq!(receive_bytes(&child.channel), b"alive");
    assert_eq!(signals_of(&child.channel), Signals::WRITABLE);
    assert!(matches!(child.channel.read(), Err(Error::ShouldWait)));
    child.kill();
    wait_for(&child.channel, Signals::PEER_CLOSED);
    assert!(matches!(child.channel.read(), Err(Error::PeerClosed)));
    assert!(matches!(child.channel.write(b"anyone?", Vec::new()), Err(Error::PeerClosed)));
}

#[test]
fn messages_of_a_dead_process_are_read_though_it_left_some_unread() {
    let Some(mut child) = child::start(|channel| {
        assert_eq!(receive_bytes(&channel), b"go");
        let (_, handles) = watched_handles(1);
        channel.write(b"first", handles).unwrap();
        channel.write(b"last", Vec::new()).unwrap();
        sleep_until_killed(&channel);
    }) else {
        return;
    };
    child.channel.write(b"go", Vec::new()).unwrap();
    wait_for(&child.channel, Signals::READABLE);
    child.channel.write(b"never read", Vec::new()).unwrap();
    let first = receive(&child.channel);
    assert_eq!((first.bytes.as_slice(), first.handles.len()), (b"first".as_slice(), 1));
    wait_for(&child.channel, Signals::READABLE);
    child.kill();
    wait_for(&child.channel, Signals::PEER_CLOSED);
    assert_eq!(child.channel.read().unwrap().bytes, b"last");
    assert!(matches!(child.channel.read(), Err(Error::PeerClosed)));
    assert!(matches!(child.channel.read(), Err(Error::PeerClosed)));
}

#[test]
fn every_kind_of_object_arrives_and_works() {
    let Some(child) = child::start(|channel| {
        let message = receive(&channel);
        assert_eq!(message.bytes, b"one of each");
        let [inner, fifo, socket, vmo] = <[Handle; 4]>::try_from(message.handles).unwrap();
        Channel::from_handle(inner).unwrap().write(b"by channel", Vec::new()).unwrap();
        Fifo::from_handle(fifo, 7, 4).unwrap().write(b"by fifo").unwrap();
        assert_eq!(Socket::from_handle(socket).unwrap().write(b"by socket").unwrap(), 9);
        Vmo::from_handle(vmo).unwrap().write_at(4090, b"by vmo").unwrap();
    }) else {
        return;
    };
    let (inner, their_inner) = Channel::pair().unwrap();
    let (fifo, their_fifo) = Fifo::create(7, 4).unwrap();
    let (socket, their_socket) = Socket::pair().unwrap();
    let vmo = Vmo::of_bytes("test", &[0; 4096]).unwrap();
    let handles = vec![
        their_inner.into_handle(),
        their_fifo.into_handle(),
        their_socket.into_handle(),
        vmo.duplicate().unwrap().into_handle(),
    ];
    child.channel.write(b"one of each", handles).unwrap();
    child.finish();
    assert_eq!(inner.read().unwrap().bytes, b"by channel");
    let mut element = [0; 7];
    fifo.read(&mut element).unwrap();
    assert_eq!(&element, b"by fifo");
    let mut bytes = [0; 20];
    assert_eq!(socket.read(&mut bytes).unwrap(), 9);
    assert_eq!(&bytes[..9], b"by socket");
    assert_eq!(vmo.read_at(4088, &mut bytes).unwrap(), 8);
    assert_eq!(&bytes[..8], b"\0\0by vmo");
}

#[test]
fn the_largest_message_passes() {
    let Some(child) = child::start(|channel| {
        let message = receive(&channel);
        assert_eq!(message.bytes.len(), 65_536);
        assert!(message.bytes.iter().enumerate().all(|(index, byte)| *byte == (index % 251) as u8));
        assert_eq!(message.handles.len(), 64);
        let count = descriptors();
        drop(message);
        assert_eq!(descriptors(), count - 64);
    }) else {
        return;
    };
    assert_eq!((MAX_MESSAGE_BYTES, MAX_MESSAGE_HANDLES), (65_536, 64));
    let bytes: Vec<u8> = (0..65_536).map(|index| (index % 251) as u8).collect();
    let (watch, handles) = watched_handles(64);
    child.channel.write(&bytes, handles).unwrap();
    child.finish();
    wait_for(&watch, Signals::PEER_CLOSED);
    assert!(matches!(watch.read(), Err(Error::PeerClosed)));
}

/// In a child, because descriptors are counted.
#[test]
fn a_refused_message_leaks_no_handle() {
    let Some(child) = child::start(|channel| {
        let (ours, theirs) = Channel::pair().unwrap();
        let before = descriptors();
        let refuse = |bytes: &[u8], count: usize, expected: &str| {
            let (watch, handles) = watched_handles(count);
            assert_error(ours.write(bytes, handles), expected);
            assert!(matches!(watch.read(), Err(Error::PeerClosed)), "{expected}: a handle is open");
            drop(watch);
            assert_eq!(descriptors(), before, "{expected}");
            assert!(matches!(theirs.read(), Err(Error::ShouldWait)), "{expected}: it was sent");
        };
        refuse(&[1; 65_537], 3, "message of 65537 bytes, at most 65536 are possible");
        refuse(b"many", 65, "message with 65 handles, at most 64 are possible");
        assert_error(ours.write(b"", Vec::new()), "message size in bytes is 0, expected 1 to 65536");

        while ours.write(&[2; 60_000], Vec::new()).is_ok() {}
        assert_eq!(signals_of(&ours), Signals::empty(), "full");
        let (watch, handles) = watched_handles(2);
        assert!(matches!(ours.write(&[2; 60_000], handles), Err(Error::ShouldWait)));
        assert!(matches!(watch.read(), Err(Error::PeerClosed)));
        drop(watch);
        assert_eq!(descriptors(), before);
        while theirs.read().is_ok() {}
        wait_for(&ours, Signals::WRITABLE);

        drop(theirs);
        let (watch, handles) = watched_handles(2);
        assert!(matches!(ours.write(b"late", handles), Err(Error::PeerClosed)));
        assert!(matches!(watch.read(), Err(Error::PeerClosed)));
        drop(watch);
        assert_eq!(descriptors(), before - 1);
        send_number(&channel, 1);
    }) else {
        return;
    };
    assert_eq!(receive_number(&child.channel), 1);
    child.finish();
}

#[test]
fn handles_of_an_unread_message_are_closed() {
    let Some(mut child) = child::start(|channel| {
        wait_for(&channel, Signals::READABLE);
        drop(channel);
        std::thread::park();
    }) else {
        return;
    };
    let (watch, handles) = watched_handles(5);
    child.channel.write(b"unread", handles).unwrap();
    wait_for(&watch, Signals::PEER_CLOSED);
    child.kill();
}

#[test]
fn handles_that_are_not_taken_out_of_a_message_are_closed() {
    let Some(child) = child::start(|channel| {
        let before = descriptors();
        let message = receive(&channel);
        assert_eq!(descriptors(), before + 5);
        drop(message);
        assert_eq!(descriptors(), before);
        // Still here when the parent looks.
        assert_eq!(receive_bytes(&channel), b"seen");
    }) else {
        return;
    };
    let (watch, handles) = watched_handles(5);
    child.channel.write(b"unclaimed", handles).unwrap();
    wait_for(&watch, Signals::PEER_CLOSED);
    child.channel.write(b"seen", Vec::new()).unwrap();
    child.finish();
}

/// A peer that keeps to no limit costs its own message, and nothing else.
#[test]
fn a_message_beyond_the_limits_is_refused_by_its_receiver() {
    let Some(child) = child::start(|channel| {
        let before = descriptors();
        wait_for(&channel, Signals::READABLE);
        assert_error(channel.read(), "message of 65537 bytes, at most 65536 are possible");
        assert_eq!(descriptors(), before);
        for found in [65, 200] {
            wait_for(&channel, Signals::READABLE);
            let expected = format!("message with {found} handles, at most 64 are possible");
            assert_error(channel.read(), &expected);
            assert_eq!(descriptors(), before);
        }
        assert_eq!(receive_bytes(&channel), b"in order");
        // Still here when the parent looks at its handles.
        assert_eq!(receive_bytes(&channel), b"done");
    }) else {
        return;
    };
    let (few, handles) = watched_handles(2);
    send_raw(&child.channel, &[3; 70_000], &handles);
    drop(handles);
    let (one_more, handles) = watched_handles(65);
    send_raw(&child.channel, b"one more", &handles);
    drop(handles);
    let (many, handles) = watched_handles(200);
    send_raw(&child.channel, b"many", &handles);
    drop(handles);
    child.channel.write(b"in order", Vec::new()).unwrap();
    for watch in [few, one_more, many] {
        wait_for(&watch, Signals::PEER_CLOSED);
    }
    child.channel.write(b"done", Vec::new()).unwrap();
    child.finish();
}

/// Nothing that is received goes on to another program.
#[test]
fn handles_are_closed_when_another_program_is_run() {
    let (ours, theirs) = Channel::pair().unwrap();
    let (_watch, handles) = watched_handles(3);
    ours.write(b"handles", handles).unwrap();
    let message = theirs.read().unwrap();
    assert_eq!(message.handles.len(), 3);
    for handle in &message.handles {
        assert_eq!(rustix::io::fcntl_getfd(handle).unwrap(), rustix::io::FdFlags::CLOEXEC);
    }
    for end in [ours, theirs] {
        assert_eq!(rustix::io::fcntl_getfd(&end).unwrap(), rustix::io::FdFlags::CLOEXEC);
    }
}

/// A peer may have the kernel add a descriptor of the sender's process to each message.
#[test]
fn descriptors_that_the_kernel_adds_are_not_left_open() {
    /// `SO_PASSPIDFD`, of Linux 6.5.
    const PASS_PIDFD: libc::c_int = 76;
    let Some(child) = child::start(|channel| {
        let (ours, theirs) = Channel::pair().unwrap();
        let (number, on) = (std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(&theirs)), 1_i32);
        // SAFETY: a number, and a pointer to a value of this size.
        let status = unsafe {
            libc::setsockopt(
                number,
                libc::SOL_SOCKET,
                PASS_PIDFD,
                (&raw const on).cast(),
                size_of::<i32>() as u32,
            )
        };
        let before = descriptors();
        for _ in 0..10 {
            let (_watch, handles) = watched_handles(1);
            ours.write(b"message", handles).unwrap();
            assert_eq!(theirs.read().unwrap().handles.len(), 1);
            ours.write(b"message", Vec::new()).unwrap();
            assert_eq!(theirs.read_with_sender().unwrap().0.bytes, b"message");
        }
        assert_eq!(descriptors(), before, "the option was set: {}", status == 0);
        send_number(&channel, 3);
    }) else {
        return;
    };
    assert_eq!(receive_number(&child.channel), 3);
    child.finish();
}

/// In a child, because the limit holds for the whole process.
#[test]
fn a_process_without_descriptors_to_spare_loses_a_message_and_leaks_nothing() {
    let Some(child) = child::start(|channel| {
        let (ours, theirs) = Channel::pair().unwrap();
        let (watch, handles) = watched_handles(20);
        ours.write(b"much", handles).unwrap();
        ours.write(b"little", Vec::new()).unwrap();
        let before = descriptors();
        let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let few = rustix::process::Rlimit { current: Some(before as u64 + 3), ..limits };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();
        let result = theirs.read();
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limits).unwrap();
        assert_error(result, "this process has no descriptors for the handles of a message (ulimit -n)");
        assert_eq!(descriptors(), before);
        assert!(matches!(watch.read(), Err(Error::PeerClosed)));
        assert_eq!(theirs.read().unwrap().bytes, b"little");
        send_number(&channel, 3);
    }) else {
        return;
    };
    assert_eq!(receive_number(&child.channel), 3);
    child.finish();
}

#[test]
fn only_a_channel_is_taken_for_one() {
    let handles = [
        Socket::pair().unwrap().0.into_handle(),
        Vmo::of_bytes("test", &[0]).unwrap().into_handle(),
        Handle::new(
            rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::DGRAM, None)
                .unwrap(),
        ),
    ];
    for handle in handles {
        assert_error(Channel::from_handle(handle), "handle is not a channel");
    }
}

/// A pair's credentials are its maker's, whichever process has the ends now.
#[test]
fn a_pair_belongs_to_its_maker() {
    let Some(child) = child::start(|channel| {
        let peer = channel.peer().unwrap();
        send_number(&channel, u64::from(peer.pid));
    }) else {
        return;
    };
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(child.channel.peer().unwrap(), Peer { pid: std::process::id(), uid });
    assert_eq!(receive_number(&child.channel), u64::from(std::process::id()));
    child.finish();
}
