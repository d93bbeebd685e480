//! Waiting for several objects, with a deadline.

use crate::child::{
    self, deadline, receive_handle, receive_number, send_handle, send_number, signals_of, wait_until,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use zx_sim::{Channel, Event, Fifo, Signals, Socket, WaitSet, Waker, wait_one};

/// Waits once, under the tests' deadline.
fn wait(set: &WaitSet) -> Vec<Event> {
    let mut events = Vec::new();
    set.wait(&mut events, Some(deadline())).unwrap();
    events.sort_by_key(|event| event.key);
    events
}

/// What is true now.
fn look(set: &WaitSet) -> Vec<Event> {
    let mut events = vec![Event { key: 0, observed: Signals::all() }];
    set.wait(&mut events, Some(Instant::now())).unwrap();
    events
}

#[test]
fn a_wait_ends_at_its_deadline_and_not_before() {
    let set = WaitSet::new().unwrap();
    let (ours, _theirs) = Channel::pair().unwrap();
    set.add(&ours, 1, Signals::READABLE).unwrap();
    for length in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(50)] {
        let mut events = vec![Event { key: 9, observed: Signals::READABLE }];
        let end = Instant::now() + length;
        set.wait(&mut events, Some(end)).unwrap();
        assert_eq!(events, []);
        let late = Instant::now().checked_duration_since(end).expect("not before the deadline");
        assert!(late < Duration::from_secs(10), "{late:?}");

        let end = Instant::now() + length;
        assert_eq!(wait_one(&ours, Signals::READABLE, Some(end)).unwrap(), Signals::empty());
        let late = Instant::now().checked_duration_since(end).expect("not before the deadline");
        assert!(late < Duration::from_secs(10), "{late:?}");
    }
    // One that has passed is a look.
    assert_eq!(look(&set), []);
}

#[test]
fn a_waker_ends_a_wait_of_another_thread() {
    let set = WaitSet::new().unwrap();
    let waker = Waker::new().unwrap();
    set.add(&waker, 7, Signals::READABLE).unwrap();
    assert_eq!(look(&set), []);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut events = Vec::new();
            set.wait(&mut events, None).unwrap();
            events
        });
        waker.wake();
        waker.wake();
        assert_eq!(waiting.join().unwrap(), [Event { key: 7, observed: Signals::READABLE }]);
    });
    assert_eq!(wait(&set), [Event { key: 7, observed: Signals::READABLE }], "until it is reset");
    waker.reset();
    assert_eq!(look(&set), []);
}

#[test]
fn what_is_true_stays_true_until_it_is_dealt_with() {
    let Some(child) = child::start(|channel| {
        let fifo = Fifo::from_handle(receive_handle(&channel), 1, 4).unwrap();
        fifo.write(b"x").unwrap();
        send_number(&channel, 1);
        assert_eq!(receive_number(&channel), 2);
    }) else {
        return;
    };
    let (fifo, theirs) = Fifo::create(1, 4).unwrap();
    let set = WaitSet::new().unwrap();
    set.add(&fifo, 5, Signals::READABLE | Signals::PEER_CLOSED).unwrap();
    send_handle(&child.channel, theirs.into_handle());
    let readable = Event { key: 5, observed: Signals::READABLE };
    assert_eq!(wait(&set), [readable]);
    assert_eq!(wait(&set), [readable]);
    fifo.read(&mut [0]).unwrap();
    assert_eq!(look(&set), []);
    send_number(&child.channel, 2);
    let mut events = wait(&set);
    while !events.iter().any(|event| event.observed.contains(Signals::PEER_CLOSED)) {
        events = wait(&set);
    }
    assert_eq!(events, [Event { key: 5, observed: Signals::READABLE | Signals::PEER_CLOSED }]);
    child.finish();
}

#[test]
fn signals_are_changed_and_objects_taken_out() {
    let (ours, theirs) = Socket::pair().unwrap();
    let set = WaitSet::new().unwrap();
    set.add(&ours, 1, Signals::WRITABLE).unwrap();
    assert_eq!(look(&set), [Event { key: 1, observed: Signals::WRITABLE }]);
    set.modify(&ours, 2, Signals::READABLE).unwrap();
    assert_eq!(look(&set), []);
    theirs.write(b"x").unwrap();
    assert_eq!(look(&set), [Event { key: 2, observed: Signals::READABLE }]);
    set.modify(&ours, 3, Signals::empty()).unwrap();
    assert_eq!(look(&set), []);
    drop(theirs);
    assert_eq!(wait(&set), [Event { key: 3, observed: Signals::PEER_CLOSED }], "asked for or not");
    set.remove(&ours).unwrap();
    assert_eq!(look(&set), []);
    assert!(set.remove(&ours).is_err());
    assert!(set.modify(&ours, 1, Signals::READABLE).is_err());
    set.add(&ours, 4, Signals::READABLE).unwrap();
    assert!(set.add(&ours, 4, Signals::READABLE).is_err(), "once is enough");
    assert_eq!(look(&set).len(), 1);
    drop(ours);
    // Closed objects are gone.
    wait_until(|| look(&set).is_empty());
}

#[test]
fn each_of_many_objects_is_reported() {
    let set = WaitSet::new().unwrap();
    let pairs: Vec<_> = (0..150).map(|_| Socket::pair().unwrap()).collect();
    for (key, (ours, theirs)) in pairs.iter().enumerate() {
        set.add(ours, key as u64, Signals::READABLE).unwrap();
        theirs.write(b"x").unwrap();
    }
    let mut keys = Vec::new();
    while keys.len() < pairs.len() {
        let events = wait(&set);
        assert!(!events.is_empty(), "{} of {}", keys.len(), pairs.len());
        for event in events {
            pairs[event.key as usize].0.read(&mut [0]).unwrap();
            keys.push(event.key);
        }
    }
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..150));
    assert_eq!(look(&set), []);
}

extern "C" fn do_nothing(_: libc::c_int) {}

/// Installs a handler that does nothing, for a signal that then ends system calls.
pub fn interrupt_with(signal: libc::c_int) {
    // SAFETY: all zeros is an empty mask and no flags; the handler touches nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = do_nothing as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
    }
}

/// Ends a thread that waits for it, also where the test fails.
struct EndsThread<'a>(&'a AtomicBool);

impl Drop for EndsThread<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// In a child, because a signal handler is the whole process's.
#[test]
fn a_signal_ends_a_wait_with_no_events() {
    let Some(child) = child::start(|channel| {
        interrupt_with(libc::SIGUSR1);
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let process = rustix::process::getpid().as_raw_nonzero().get();
        let set = WaitSet::new().unwrap();
        let quiet = Waker::new().unwrap();
        set.add(&quiet, 1, Signals::READABLE).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    // SAFETY: numbers only; the thread outlives the scope.
                    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
                    std::thread::yield_now();
                }
            });
            let _end = EndsThread(&is_done);
            let mut events = Vec::new();
            set.wait(&mut events, None).unwrap();
            assert_eq!(events, []);
            assert_eq!(wait_one(&quiet, Signals::READABLE, None).unwrap(), Signals::empty());
        });
        assert_eq!(signals_of(&quiet), Signals::WRITABLE);
        send_number(&channel, 1);
    }) else {
        return;
    };
    assert_eq!(receive_number(&child.channel), 1);
    child.finish();
}
