//! Commands of the application, on their way to the dispatcher.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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

/// The application's side of the queue. No function here blocks.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    sender: SyncSender<Command>,
    /// The provider is no longer wanted.
    is_over: Arc<AtomicBool>,
    /// A descriptor of the application's table, which only the application's threads drop.
    waker: Weak<WakeSender>,
}

/// The other end of [`Commands`].
pub(crate) struct CommandReceiver {
    pub(super) commands: Receiver<Command>,
    is_over: Arc<AtomicBool>,
}

impl Commands {
    /// Both ends.
    pub fn new(waker: &Arc<WakeSender>) -> (Self, CommandReceiver) {
        let (sender, commands) = sync_channel(MAX_COMMANDS);
        let is_over = Arc::new(AtomicBool::new(false));
        let sender = Self { sender, is_over: is_over.clone(), waker: Arc::downgrade(waker) };
        (sender, CommandReceiver { commands, is_over })
    }

    /// Queues a command. If the queue is full, because the dispatcher does not run, the command is dropped.
    pub fn send(&self, command: Command) {
        let _ = self.sender.try_send(command);
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
    /// The provider is no longer wanted.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}
