//! The object an application holds.

use crate::dispatcher::{Dispatcher, Order, Orders, Progress};
use crate::{fork, signals};
use crossbeam_channel::{Receiver, bounded, unbounded};
use parking_lot::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Set to `1` by `trace record` in the environment of its command.
const RECORD_VARIABLE: &str = "TRACE_RECORD";
/// How long a program that is being recorded waits until a manager sets its trace up …
const INITIALIZE_WAIT: Duration = Duration::from_secs(1);
/// … and then for its trace to start.
const START_WAIT: Duration = Duration::from_secs(5);
/// How long a synchronous registration waits for the manager's answer.
const REGISTRATION_WAIT: Duration = Duration::from_secs(5);

/// A registration with the trace manager of this machine, for as long as it is alive.
///
/// Keep it until the end of `main`. The same name may be used by several processes. One provider for a
/// process is enough: a second one registers too, but only one of them is traced at a time.
#[derive(Debug)]
pub struct TraceProvider {
    /// None where the process has no descriptors or threads left: then it runs on untraced.
    orders: Option<Orders>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The process that has the thread: a forked child has not.
    pid: u32,
}

/// What became of a synchronous registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    /// No manager runs; the provider registers with the next one that starts.
    NoManager,
    /// A manager knows the provider.
    Registered {
        /// A trace is running: events will be recorded in a moment.
        already_started: bool,
    },
    /// The manager does not serve this provider, which runs on untraced.
    Refused {
        /// Why, in a sentence.
        reason: String,
    },
}

impl TraceProvider {
    /// Registers in the background. Never fails, and never waits: but in a program that `trace record`
    /// started it waits until recording has started, so that the first event counts: at most a second for a manager that
    /// wants to record it, and then at most 5 s until its buffer is there, which takes a while where it is large.
    ///
    /// An application that starts before any manager is picked up when one starts. `name` is cut to 100
    /// bytes; an empty name becomes that of the process.
    #[must_use = "the provider is unregistered when this is dropped"]
    pub fn new(name: &str) -> Self {
        let (provider, progress) = Self::spawn(name, false);
        if std::env::var_os(RECORD_VARIABLE).is_some_and(|value| value == "1") {
            let mut deadline = Instant::now() + INITIALIZE_WAIT;
            while let Ok(progress) = progress.recv_deadline(deadline) {
                match progress {
                    Progress::Started | Progress::NoManager | Progress::Refused { .. } => break,
                    Progress::Initializing => deadline = Instant::now() + START_WAIT,
                    Progress::Registered { .. } => {}
                }
            }
        }
        provider
    }

    /// Registers and waits for the manager's answer, at most 5 s; says whether a trace is running already.
    #[must_use = "the provider is unregistered when this is dropped"]
    pub fn new_synchronously(name: &str) -> (Self, Registration) {
        let (provider, progress) = Self::spawn(name, true);
        let deadline = Instant::now() + REGISTRATION_WAIT;
        let registration = loop {
            match progress.recv_deadline(deadline) {
                Ok(Progress::Registered { already_started }) => {
                    break Registration::Registered { already_started };
                }
                Ok(Progress::Refused { reason }) => break Registration::Refused { reason },
                Ok(Progress::Initializing | Progress::Started) => {}
                Ok(Progress::NoManager) | Err(_) => break Registration::NoManager,
            }
        };
        (provider, registration)
    }

    fn spawn(name: &str, synchronously: bool) -> (Self, Receiver<Progress>) {
        let (sender, progress) = unbounded();
        let (ready, is_ready) = bounded(1);
        let name = provider_name(name);
        fork::register_children_as(&name);
        let thread = signals::spawn_blocked("trace-dispatch", move || {
            if let Some(dispatcher) = Dispatcher::new(name, synchronously, sender) {
                let _ = ready.send(dispatcher.orders());
                dispatcher.run();
            }
        });
        let orders = is_ready.recv().ok();
        (Self { orders, thread: Mutex::new(thread), pid: std::process::id() }, progress)
    }

    /// Asks for what was recorded so far to be handed to the manager: in streaming mode the half of the buffer that is
    /// in use, although it is not full. In other modes everything stays until the trace stops. Waits for nobody.
    pub fn flush(&self) {
        if let Some(orders) = &self.orders {
            orders.give(Order::Flush);
        }
    }
}

impl Drop for TraceProvider {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            // Of a forked child's parent. The thread does not exist here, so nobody can wait for it.
            core::mem::forget(self.thread.lock().take());
            core::mem::forget(self.orders.take());
            return;
        }
        if let Some(orders) = &self.orders {
            orders.end();
        }
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

/// The name as the protocol takes it.
fn provider_name(name: &str) -> String {
    let name = if name.is_empty() { zx_sim::process_name() } else { name.to_owned() };
    name[..name.floor_char_boundary(trace_protocol::limits::MAX_PROVIDER_NAME_BYTES)].to_owned()
}
