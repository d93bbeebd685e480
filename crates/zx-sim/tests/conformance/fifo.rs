//! Elements of one size with a counted capacity.

use crate::child::{
    self, assert_error, receive_bytes, receive_handle, receive_number, send_handle, send_number, signals_of,
    sleep_until_killed, wait_for,
};
use std::sync::Barrier;
use zx_sim::{Error, Fifo, Signals, Socket};

const ELEMENT_BYTES: usize = 16;

/// The element with a number in it.
fn element(number: u64) -> [u8; ELEMENT_BYTES] {
    let mut element = [0; ELEMENT_BYTES];
    element[..8].copy_from_slice(&number.to_le_bytes());
    element
}

fn read(fifo: &Fifo) -> Result<u64, Error> {
    let mut element = [0; ELEMENT_BYTES];
    fifo.read(&mut element)?;
    Ok(u64::from_le_bytes(element[..8].try_into().unwrap()))
}

/// Writes elements from a number on until no more fit; how many did.
fn fill(fifo: &Fifo, from: u64) -> u64 {
    for number in from.. {
        match fifo.write(&element(number)) {
            Ok(()) => {}
            Err(Error::ShouldWait) => return number - from,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("a fifo is full some time")
}

#[test]
fn it_holds_the_depth_asked_for_and_at_most_twice_that() {
    for depth in [1, 2, 4, 64, 200] {
        let (a, b) = Fifo::create(ELEMENT_BYTES, depth).unwrap();
        let range = depth as u64..=2 * depth as u64;
        let count = fill(&a, 0);
        assert!(range.contains(&count), "depth {depth} holds {count}");
        if depth > 1 {
            assert_eq!(signals_of(&a), Signals::empty(), "full is not writable");
        }
        assert_eq!(fill(&b, 1000), count, "the other direction is as deep");
        assert_eq!(read(&b).unwrap(), 0);
        assert_eq!(fill(&a, count), 1, "room for what was read");
        for number in 1..=count {
            assert_eq!(read(&b).unwrap(), number);
        }
        assert!(matches!(read(&b), Err(Error::ShouldWait)));
        assert!(signals_of(&a).contains(Signals::WRITABLE));
        assert_eq!(fill(&a, 0), count, "drained and filled again");
    }
}

#[test]
fn larger_elements_are_counted_alike() {
    for element_bytes in [1, 100, 1000, 5000] {
        let (a, _b) = Fifo::create(element_bytes, 8).unwrap();
        let count = (0..).take_while(|_| a.write(&vec![7; element_bytes]).is_ok()).count();
        assert!((8..=16).contains(&count), "elements of {element_bytes} bytes: {count}");
    }
}

/// A writer that does not count is held by the kernel.
#[test]
fn a_writer_that_does_not_count_stays_below_twice_the_depth() {
    for depth in [8, 16, 64] {
        let (a, b) = Fifo::create(ELEMENT_BYTES, depth).unwrap();
        let send = || rustix::net::send(&a, &element(1), rustix::net::SendFlags::NOSIGNAL);
        let count = (0..).take_while(|_| send().is_ok()).count();
        assert!((depth..=2 * depth).contains(&count), "depth {depth} holds {count}");
        assert_eq!((0..).take_while(|_| read(&b).is_ok()).count(), count);
    }
}

#[test]
fn several_writers_at_once_stay_below_twice_the_depth() {
    const DEPTH: usize = 16;
    let (a, b) = Fifo::create(ELEMENT_BYTES, DEPTH).unwrap();
    let start = Barrier::new(8);
    let written: u64 = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    fill(&a, 0)
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert!((DEPTH as u64..=2 * DEPTH as u64).contains(&written), "{written}");
    assert_eq!((0..).take_while(|_| read(&b).is_ok()).count() as u64, written);
}

#[test]
fn the_capacity_goes_with_the_handle() {
    let Some(child) = child::start(|channel| {
        let fifo = Fifo::from_handle(receive_handle(&channel), ELEMENT_BYTES, 4).unwrap();
        assert_eq!(read(&fifo).unwrap(), 77);
        let mut written = 0;
        while let Ok(()) = fifo.write(&element(written)) {
            written += 1;
        }
        assert!(matches!(fifo.write(&element(written)), Err(Error::ShouldWait)));
        send_number(&channel, written);
        // Room appears when the parent reads.
        for number in 0..1000 {
            while let Err(error) = fifo.write(&element(written + number)) {
                assert!(matches!(error, Error::ShouldWait), "{error}");
                wait_for(&fifo, Signals::WRITABLE);
            }
        }
        assert_eq!(receive_bytes(&channel), b"done");
    }) else {
        return;
    };
    let (ours, theirs) = Fifo::create(ELEMENT_BYTES, 4).unwrap();
    ours.write(&element(77)).unwrap();
    send_handle(&child.channel, theirs.into_handle());
    let written = receive_number(&child.channel);
    assert!((4..=8).contains(&written), "{written}");
    for number in 0..written + 1000 {
        wait_for(&ours, Signals::READABLE);
        assert_eq!(read(&ours).unwrap(), number);
    }
    child.channel.write(b"done", Vec::new()).unwrap();
    child.finish();
}

#[test]
fn a_killed_process_is_a_closed_peer() {
    let Some(mut child) = child::start(|channel| {
        let _fifo = Fifo::from_handle(receive_handle(&channel), ELEMENT_BYTES, 4).unwrap();
        channel.write(b"alive", Vec::new()).unwrap();
        sleep_until_killed(&channel);
    }) else {
        return;
    };
    let (ours, theirs) = Fifo::create(ELEMENT_BYTES, 4).unwrap();
    send_handle(&child.channel, theirs.into_handle());
    assert_eq!(receive_bytes(&child.channel), b"alive");
    assert_eq!(signals_of(&ours), Signals::WRITABLE);
    assert!(matches!(read(&ours), Err(Error::ShouldWait)));
    child.kill();
    wait_for(&ours, Signals::PEER_CLOSED);
    assert!(matches!(read(&ours), Err(Error::PeerClosed)));
    assert!(matches!(ours.write(&element(0)), Err(Error::PeerClosed)));
}

/// Though the dead process left an element unread, which the kernel reports ahead of them.
#[test]
fn elements_of_a_dead_process_are_read_before_its_death_is() {
    let Some(mut child) = child::start(|channel| {
        let fifo = Fifo::from_handle(receive_handle(&channel), ELEMENT_BYTES, 4).unwrap();
        wait_for(&fifo, Signals::READABLE);
        for number in 0..4 {
            fifo.write(&element(number)).unwrap();
        }
        channel.write(b"written", Vec::new()).unwrap();
        sleep_until_killed(&channel);
    }) else {
        return;
    };
    let (ours, theirs) = Fifo::create(ELEMENT_BYTES, 4).unwrap();
    ours.write(&element(99)).unwrap();
    send_handle(&child.channel, theirs.into_handle());
    assert_eq!(receive_bytes(&child.channel), b"written");
    child.kill();
    wait_for(&ours, Signals::PEER_CLOSED | Signals::READABLE);
    for number in 0..4 {
        assert_eq!(read(&ours).unwrap(), number);
    }
    assert!(matches!(read(&ours), Err(Error::PeerClosed)));
    assert!(matches!(read(&ours), Err(Error::PeerClosed)));
}

#[test]
fn an_element_of_another_size_is_refused() {
    let (a, b) = Fifo::create(ELEMENT_BYTES, 4).unwrap();
    assert_error(a.write(&[0; 15]), "element of 15 bytes, expected 16");
    assert_error(a.write(&[]), "element of 0 bytes, expected 16");
    assert_error(b.read(&mut [0; 17]), "element of 17 bytes, expected 16");
    // By a peer that keeps to nothing, it is gone when it was read, and the next one is whole.
    for bytes in [&[1; 15][..], &[1; 40][..]] {
        rustix::net::send(&a, bytes, rustix::net::SendFlags::NOSIGNAL).unwrap();
        a.write(&element(5)).unwrap();
        assert_error(read(&b), &format!("element of {} bytes, expected 16", bytes.len()));
        assert_eq!(read(&b).unwrap(), 5);
    }
}

#[test]
fn a_fifo_that_cannot_be_is_refused() {
    assert_error(Fifo::create(0, 4), "fifo element size in bytes is 0, expected 1 to 65536");
    let most = |depth| match Fifo::create(ELEMENT_BYTES, depth) {
        Err(Error::OutOfRange { what: "fifo depth in elements", found, least: 1, most }) => {
            assert_eq!(found, depth as u64);
            most
        }
        other => panic!("{other:?}"),
    };
    assert!(most(0) >= 1);
    let most = most(usize::MAX);
    let (deep, _end) = Fifo::create(ELEMENT_BYTES, most as usize).unwrap();
    assert!(fill(&deep, 0) >= most, "what is allowed is held");
    let socket = Socket::pair().unwrap().0;
    assert_error(Fifo::from_handle(socket.into_handle(), ELEMENT_BYTES, 4), "handle is not a fifo");
}
