//! A provider in a loop of the application's, without a thread.

use crate::linux::config::{self, Category};
use crate::linux::dispatcher::{Command, Commands, Dispatcher, Progress, Turn};
#[cfg(feature = "local")]
use crate::linux::echo;
use crate::linux::fork;
use crate::linux::memory_dump::{self, MemoryDump};
use crate::linux::provider::{self, FIRST_SIGN_WAIT, START_WAIT};
use crate::linux::queue::{Receiver, queue};
use crate::linux::{callbacks, manager, startup};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace_engine::engine;
use zx_sim::guest::children::generation;
use zx_sim::guest::{ClosedInChildren, beyond_standard};
use zx_sim::{Signals, WakeSender};

/// Turns of one [`PolledProvider::dispatch`], so that other tasks of the loop get theirs.
const MAX_TURNS: usize = 16;
/// Of the timer, among the objects that are waited for.
const KEY_TIMER: u64 = u64::MAX;

/// A registration with the trace manager whose work is done by the application's own loop.
///
/// Wait until [`as_fd`](AsFd::as_fd) is readable, together with everything else that the loop waits for, and
/// call [`PolledProvider::dispatch`] then. While the loop does not run, a recording neither starts nor ends
/// in this program, and a streaming recording drops events once the buffer is full. Its descriptors are in
/// the program's descriptor table, and if the program closes them, it runs on untraced; those of a
/// [`TraceProvider`](crate::TraceProvider) are not. A forked child is recorded as with a `TraceProvider`, by
/// a thread of its own.
///
/// ```no_run
/// use std::os::fd::AsFd;
/// use trace_provider::PolledProvider;
/// # fn wait_until_readable(_: std::os::fd::BorrowedFd<'_>) {}
///
/// let mut provider = PolledProvider::new("my-app")?;
/// loop {
///     wait_until_readable(provider.as_fd());
///     provider.dispatch();
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// `examples/tokio_loop.rs` uses it with a `tokio::io::unix::AsyncFd`.
//= docs/internals/providers.md#providers-without-a-thread
pub struct PolledProvider {
    /// None while it is dropped.
    running: Option<Running>,
    /// The process that made it: a forked child has no registration of its parent's.
    process: u32,
}

struct Running {
    dispatcher: Dispatcher,
    commands: Commands,
    timer: OwnedFd,
    /// Before what it names, so that it is dropped first.
    closed_in_children: [ClosedInChildren; 2],
    waker: Arc<WakeSender>,
    /// The program has closed its descriptors.
    is_lost: bool,
}

impl PolledProvider {
    /// Registers. If a recording is running, this blocks until it has started here, as
    /// [`TraceProvider::new`](crate::TraceProvider::new) does, and as long; otherwise it returns immediately.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new(name: &str) -> io::Result<Self> {
        let is_below_record = provider::is_below_record();
        let inherited = manager::inherited();
        let first_wait = match inherited.is_some() || manager::is_recording() {
            true => Some(FIRST_SIGN_WAIT),
            false => is_below_record.then_some(START_WAIT),
        };
        let name = provider::provider_name(name);
        callbacks::need_no_thread();
        fork::register_children_as(&name);
        if provider::has_one_thread() {
            engine::prepare();
        }
        startup::begin_by_environment_as(Some(&name));
        #[cfg(feature = "local")]
        echo::begin_by_environment(&name);
        let failed = |error: zx_sim::Error| io::Error::other(error.to_string());
        let (waker, wakes) = zx_sim::wake_pair().map_err(failed)?;
        let closed_in_children = [ClosedInChildren::new(&waker), ClosedInChildren::new(&wakes)];
        let waker = Arc::new(waker);
        let (commands, received) = Commands::new(&waker);
        let (sender, progress) = queue();
        let way = (commands.clone(), received);
        let dispatcher = Dispatcher::new(name.clone(), is_below_record, sender, way, wakes, inherited, true);
        let dispatcher = dispatcher.ok_or_else(|| io::Error::other("the process has no descriptors left"))?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let timer = beyond_standard(timer).map_err(failed)?;
        dispatcher.waits().add(&timer, KEY_TIMER, Signals::READABLE).map_err(failed)?;
        let is_lost = false;
        let mut running = Running { dispatcher, commands, timer, closed_in_children, waker, is_lost };
        running.dispatch();
        if let Some(first_wait) = first_wait {
            running.wait_for_start(&name, &progress, first_wait);
        }
        Ok(Self { running: Some(running), process: generation() })
    }

    /// Does the pending work without blocking, except that a stop waits for threads that are inside an event,
    /// for one second at most. May be called at any time.
    pub fn dispatch(&mut self) {
        if let Some(running) = self.running.as_mut().filter(|_| self.process == generation()) {
            running.dispatch();
        }
    }

    /// As [`TraceProvider::flush`](crate::TraceProvider::flush), with the next [`PolledProvider::dispatch`].
    pub fn flush(&self) {
        if let Some(running) = &self.running {
            running.commands.send(Command::Flush);
        }
    }

    /// As [`TraceProvider::describe_categories`](crate::TraceProvider::describe_categories). The function is
    /// called by [`PolledProvider::dispatch`].
    pub fn describe_categories(&self, describe: impl Fn() -> Vec<Category> + Send + Sync + 'static) {
        config::set_describe(Arc::new(describe));
    }

    /// As [`TraceProvider::on_memory_dump`](crate::TraceProvider::on_memory_dump). The function is called by
    /// [`PolledProvider::dispatch`].
    #[cfg(feature = "dumps")]
    pub fn on_memory_dump(&self, dump: impl Fn(&mut MemoryDump) + Send + Sync + 'static) {
        memory_dump::on_memory_dump(dump);
    }
}

impl Running {
    fn dispatch(&mut self) {
        let is_whole = self.closed_in_children.iter().all(ClosedInChildren::is_open);
        if self.is_lost || !is_whole || !self.dispatcher.is_whole() {
            if !self.is_lost {
                self.dispatcher.abandon();
            }
            self.is_lost = true;
            return;
        }
        self.set_timer(None);
        let Self { dispatcher, .. } = self;
        let next = callbacks::run_here(|| {
            for _ in 0..MAX_TURNS {
                let keys = dispatcher.ready(Some(Instant::now()));
                match dispatcher.turn(&keys) {
                    Turn::Wait(deadline) if keys.is_empty() => return deadline,
                    Turn::Wait(_) => {}
                    Turn::Over => return None,
                }
            }
            Some(Instant::now())
        });
        self.set_timer(next);
    }

    /// Makes the descriptor readable at this time, if nothing happens before.
    fn set_timer(&self, deadline: Option<Instant>) {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // Nothing at all would be no time.
        let left = left.map_or(Duration::ZERO, |left| left.max(Duration::from_nanos(1)));
        let it_value = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Itimerspec { it_interval, it_value };
        let _ = rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value);
    }

    fn wait_for_start(&mut self, name: &str, progress: &Receiver<Progress>, first_wait: Duration) {
        let begin = Instant::now();
        let mut deadline = begin + first_wait;
        loop {
            while let Ok(progress) = progress.receive(Some(begin)) {
                match progress {
                    Progress::Initializing | Progress::Registered { already_started: true } => {
                        deadline = Instant::now() + START_WAIT;
                    }
                    Progress::Registered { already_started: false }
                    | Progress::NotRecording
                    | Progress::Started
                    | Progress::NoManager
                    | Progress::Refused { .. }
                    | Progress::GoneOn => return,
                }
            }
            if Instant::now() >= deadline {
                // A manager that is only busy gives a sign sooner or later.
                if deadline >= begin + START_WAIT || manager::is_stopped() {
                    break;
                }
                deadline = begin + START_WAIT;
            }
            if self.is_lost {
                return;
            }
            let _ = zx_sim::wait_one(self.dispatcher.waits(), Signals::READABLE, Some(deadline));
            self.dispatch();
        }
        self.commands.send(Command::GoOn);
        self.dispatch();
        provider::report_late(name);
    }
}

impl AsFd for PolledProvider {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.running.as_ref().expect("only drop takes it").dispatcher.waits().as_fd()
    }
}

impl AsRawFd for PolledProvider {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl std::fmt::Debug for PolledProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolledProvider").field("process", &self.process).finish_non_exhaustive()
    }
}

impl Drop for PolledProvider {
    fn drop(&mut self) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        if self.process == generation() {
            running.commands.end();
            running.dispatch();
            if !running.is_lost {
                return;
            }
        }
        // Of a forked child's parent: its descriptors are closed here, and the engine is the child's own. Or
        // the program has closed them.
        let Running { dispatcher, commands, timer, waker, .. } = running;
        std::mem::forget((dispatcher, commands, timer, waker));
    }
}
