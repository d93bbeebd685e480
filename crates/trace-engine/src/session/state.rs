//! The engine's state, which the dispatcher's calls change one at a time.

use crate::sync::{AtomicU32, Ordering};
use core::fmt;
use trace_format::buffer::BadBufferSize;

/// Why the dispatcher's call failed.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The call does not fit the engine's state.
    BadState {
        /// The state the call needs.
        expected: State,
        /// The state the engine is in.
        found: State,
    },
    /// No buffer can have the region's size.
    BadSize(BadBufferSize),
    /// A thread has been inside an event since an earlier trace or run: its buffer cannot be cleared.
    Straggler,
    /// The call is for streaming mode only.
    NotStreaming,
    /// The half that was saved is not the one that was handed over.
    NotHandedOver(u32),
    /// There is no memory for the part of the buffer that is needed at once.
    NotBacked,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadState { expected, found } => write!(f, "engine is {found}, expected {expected}"),
            Self::BadSize(size) => size.fmt(f),
            Self::Straggler => f.write_str("a thread has not left its event of an earlier trace"),
            Self::NotBacked => f.write_str("there is no memory for the buffer"),
            Self::NotStreaming => f.write_str("buffering mode is not streaming"),
            Self::NotHandedOver(number) => write!(f, "half {number} is not being saved"),
        }
    }
}

impl std::error::Error for Error {}

impl From<BadBufferSize> for Error {
    fn from(size: BadBufferSize) -> Self {
        Self::BadSize(size)
    }
}

/// The engine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// No buffer.
    Idle = 0,
    /// A buffer, but recording has not started.
    Initialized = 1,
    /// Events are accepted.
    Started = 2,
    /// A complete buffer; no events are accepted.
    Stopped = 3,
    /// Another thread is changing the state.
    Changing = 4,
    /// Another thread ends a run, and waits for references on it.
    Stopping = 5,
}

impl State {
    const ALL: [Self; 6] =
        [Self::Idle, Self::Initialized, Self::Started, Self::Stopped, Self::Changing, Self::Stopping];
}

impl core::fmt::Display for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Initialized => "initialized",
            Self::Started => "started",
            Self::Stopped => "stopped",
            Self::Changing => "changing",
            Self::Stopping => "stopping",
        })
    }
}

static STATE: AtomicU32 = AtomicU32::new(State::Idle as u32);

/// The engine's state.
#[must_use]
pub fn state() -> State {
    State::ALL[STATE.load(Ordering::Relaxed) as usize]
}

/// Whether what is counted now belongs to the trace.
pub(super) fn is_recording() -> bool {
    matches!(state(), State::Started | State::Stopping)
}

/// Takes the engine out of a state for as long as it is being changed.
pub(super) fn begin_change(expected: State) -> Result<(), Error> {
    begin_change_to(State::Changing, expected)
}

pub(super) fn begin_change_to(meanwhile: State, expected: State) -> Result<(), Error> {
    STATE
        .compare_exchange(expected as u32, meanwhile as u32, Ordering::Acquire, Ordering::Relaxed)
        .map(|_| ())
        .map_err(|found| Error::BadState { expected, found: State::ALL[found as usize] })
}

pub(super) fn end_change(state: State) {
    // Release: pairs with the Acquire in `begin_change`.
    STATE.store(state as u32, Ordering::Release);
}
