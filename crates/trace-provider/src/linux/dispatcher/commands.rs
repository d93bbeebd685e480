//! Commands of the application, on their way to the dispatcher.

use crate::linux::lock::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use zx_sim::WakeSender;

/// Most commands that wait for the dispatcher.
const MAX_COMMANDS: usize = 1024;

/// A command of the application for the dispatcher.
#[derive(Debug)]
pub(crate) enum Command {
    /// Hand over what was recorded so far.
    Flush,
    /// Report an alert to the manager.
    Alert(String),
    /// The application waits no longer for the answer to its registration.
    GoOn,
}

/// The application's side of the queue. No function here waits for the dispatcher's work.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    waiting: Arc<Mutex<VecDeque<Command>>>,
    /// The provider is no longer wanted.
    is_over: Arc<AtomicBool>,
    /// A descriptor of the application's table, which only the application's threads drop.
    waker: Weak<WakeSender>,
}

/// The other end of [`Commands`].
pub(crate) struct CommandReceiver {
    waiting: Arc<Mutex<VecDeque<Command>>>,
    is_over: Arc<AtomicBool>,
}

impl Commands {
    /// Both ends.
    pub fn new(waker: &Arc<WakeSender>) -> (Self, CommandReceiver) {
        let waiting = Arc::new(Mutex::new(VecDeque::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let received = CommandReceiver { waiting: waiting.clone(), is_over: is_over.clone() };
        (Self { waiting, is_over, waker: Arc::downgrade(waker) }, received)
    }

    /// Queues a command. If the queue is full, because the dispatcher does not run, the command is dropped.
    pub fn send(&self, command: Command) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < MAX_COMMANDS {
            waiting.push_back(command);
        }
        drop(waiting);
        self.wake();
    }

    /// Ends the thread.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// The application drops the descriptor only when the thread has ended, and the trace with it: what is
    /// upgraded here, inside an event, is not the last of it.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.upgrade() {
            waker.wake();
        }
    }
}

impl CommandReceiver {
    /// The commands that were sent since the last call.
    pub fn take(&self) -> VecDeque<Command> {
        std::mem::take(&mut *self.waiting.lock())
    }

    /// The provider is no longer wanted.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}
