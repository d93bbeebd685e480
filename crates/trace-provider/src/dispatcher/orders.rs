//! What the application wants of its provider, on its way to the dispatcher.

use crossbeam_channel::{Receiver, Sender};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use zx_sim::WakeSender;

/// Orders that wait for the thread at most.
const MAX_ORDERS: usize = 1024;

/// What the application wants of its provider's thread.
#[derive(Debug)]
pub(crate) enum Order {
    /// Hand over what was recorded so far.
    Flush,
    /// Tell the manager.
    Alert(String),
    /// The application waits no longer for the answer to its registration.
    GoOn,
}

/// The application's way to its provider's thread. Nothing here waits.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    sender: Sender<Order>,
    /// The provider is no longer wanted.
    is_over: Arc<AtomicBool>,
    /// A descriptor of the application's table, which only the application's threads drop.
    waker: Weak<WakeSender>,
}

/// The other end of [`Orders`].
pub(crate) struct OrderReceiver {
    pub(super) orders: Receiver<Order>,
    is_over: Arc<AtomicBool>,
}

impl Orders {
    /// Both ends.
    pub fn new(waker: &Arc<WakeSender>) -> (Self, OrderReceiver) {
        let (sender, orders) = crossbeam_channel::bounded(MAX_ORDERS);
        let is_over = Arc::new(AtomicBool::new(false));
        let sender = Self { sender, is_over: is_over.clone(), waker: Arc::downgrade(waker) };
        (sender, OrderReceiver { orders, is_over })
    }

    /// Where orders pile up, because the thread has no time for them, the newest are dropped.
    pub fn give(&self, order: Order) {
        let _ = self.sender.try_send(order);
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

impl OrderReceiver {
    /// The provider is no longer wanted.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}
