//! Waiting for any number of objects, with a deadline.

use crate::error::{Error, Result};
use crate::guest::beyond_standard;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

bitflags::bitflags! {
    /// The state of an object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Signals: u32 {
        /// There is something to read, or its end.
        const READABLE = 1;
        /// There is room to write.
        const WRITABLE = 2;
        /// The other end is closed, and not just for writing. There may still be something to read. This one
        /// is always reported, even if it was not requested.
        const PEER_CLOSED = 4;
    }
}

/// Signals of one object of a [`WaitSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key it was added with.
    pub key: u64,
    /// Its state.
    pub observed: Signals,
}

/// Maximum number of events returned at once; more come with the next wait.
const MAX_EVENTS: usize = 64;

/// Objects to wait for. Their signals are level-triggered.
#[derive(Debug)]
pub struct WaitSet(OwnedFd);

impl WaitSet {
    /// An empty set.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> Result<Self> {
        epoll::create(CreateFlags::CLOEXEC)
            .map_err(|source| Error::io("cannot make a wait set", source))
            .and_then(beyond_standard)
            .map(Self)
    }

    /// Adds an object. It leaves by itself when its last handle is closed.
    ///
    /// # Errors
    /// The object is in the set already or cannot be waited for.
    pub fn add(&self, object: &impl AsFd, key: u64, signals: Signals) -> Result<()> {
        epoll::add(&self.0, object, EventData::new_u64(key), flags(signals))
            .map_err(|source| Error::io("cannot wait for an object", source))
    }

    /// Changes the signals of an object.
    ///
    /// # Errors
    /// The object is not in the set.
    pub fn modify(&self, object: &impl AsFd, key: u64, signals: Signals) -> Result<()> {
        epoll::modify(&self.0, object, EventData::new_u64(key), flags(signals))
            .map_err(|source| Error::io("cannot wait for an object", source))
    }

    /// Takes an object out.
    ///
    /// # Errors
    /// The object is not in the set.
    pub fn remove(&self, object: &impl AsFd) -> Result<()> {
        epoll::delete(&self.0, object)
            .map_err(|source| Error::io("cannot stop waiting for an object", source))
    }

    /// Waits until an object has one of its signals, or the deadline has passed: then `events` is empty, as
    /// it may be when a signal of the operating system arrived.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn wait(&self, events: &mut Vec<Event>, deadline: Option<Instant>) -> Result<()> {
        events.clear();
        let mut space = [MaybeUninit::uninit(); MAX_EVENTS];
        loop {
            let timeout = timeout(deadline);
            let ready = match epoll::wait(&self.0, &mut space, timeout.as_ref()) {
                Ok((ready, _)) => ready,
                Err(rustix::io::Errno::INTR) => return Ok(()),
                Err(source) => return Err(Error::io("cannot wait", source)),
            };
            if !ready.is_empty() || has_passed(deadline) {
                let ready =
                    ready.iter().map(|event| Event { key: event.data.u64(), observed: signals(event.flags) });
                events.extend(ready);
                return Ok(());
            }
        }
    }
}

/// Readable while an object has one of its signals, so that another set can wait for this one.
impl AsFd for WaitSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn flags(signals: Signals) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, signals.contains(Signals::READABLE));
    flags.set(EventFlags::OUT, signals.contains(Signals::WRITABLE));
    // A closed peer is always reported.
    flags
}

fn signals(flags: EventFlags) -> Signals {
    let mut signals = Signals::empty();
    signals.set(Signals::READABLE, flags.contains(EventFlags::IN));
    signals.set(Signals::WRITABLE, flags.contains(EventFlags::OUT));
    signals.set(Signals::PEER_CLOSED, flags.intersects(EventFlags::HUP | EventFlags::ERR));
    signals
}

/// Longest single wait of the kernel's, in seconds: it takes milliseconds in an `int`.
const LONGEST_WAIT_S: u64 = 3600;

fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

fn timeout(deadline: Option<Instant>) -> Option<Timespec> {
    let left = deadline?.saturating_duration_since(Instant::now());
    Timespec::try_from(left.min(Duration::from_secs(LONGEST_WAIT_S))).ok()
}

/// Waits for one object. The result is empty when the deadline has passed, or a signal of the operating
/// system arrived.
///
/// # Errors
/// The operating system's error.
pub fn wait_one(object: &impl AsFd, wanted: Signals, deadline: Option<Instant>) -> Result<Signals> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, wanted.contains(Signals::READABLE));
    flags.set(PollFlags::OUT, wanted.contains(Signals::WRITABLE));
    let mut polled = [PollFd::new(object, flags)];
    loop {
        match poll(&mut polled, timeout(deadline).as_ref()) {
            Ok(0) if !has_passed(deadline) => {}
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => return Ok(Signals::empty()),
            Err(source) => return Err(Error::io("cannot wait", source)),
        }
    }
    let found = polled[0].revents();
    let mut signals = Signals::empty();
    signals.set(Signals::READABLE, found.contains(PollFlags::IN));
    signals.set(Signals::WRITABLE, found.contains(PollFlags::OUT));
    signals.set(Signals::PEER_CLOSED, found.intersects(PollFlags::HUP | PollFlags::ERR));
    Ok(signals)
}

/// Wakes a thread out of its wait: readable from the first [`Waker::wake`] until [`Waker::reset`].
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// A waker that was not woken.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> Result<Self> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map(Self)
            .map_err(|source| Error::io("cannot make a waker", source))
    }

    /// Wakes the threads that wait for it.
    pub fn wake(&self) {
        // Full only after 2^64 wakes, and then it is readable all the same.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Resets all wakes.
    pub fn reset(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
