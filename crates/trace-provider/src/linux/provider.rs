//! The object an application holds.

use crate::linux::config::{self, Category, Config};
use crate::linux::dispatcher::{Command, Commands, Dispatcher, Progress};
#[cfg(feature = "local")]
use crate::linux::echo;
use crate::linux::lock::Mutex;
use crate::linux::memory_dump::{self, MemoryDump};
use crate::linux::queue::{Missing, Receiver, Sender, queue};
use crate::linux::{callbacks, fork, manager, startup};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trace_engine::engine;
use trace_format::refs::truncate;
use trace_format::shown::Shown;
use trace_protocol::names::RECORD_VARIABLE;
use zx_sim::guest::ClosedInChildren;
use zx_sim::guest::children::generation;
use zx_sim::guest::thread::{self, Apart};
use zx_sim::{Channel, Handle, WakeReceiver, WakeSender, debuglog};

/// How long a program that starts while a recording is announced waits for the first response of a manager
/// whose process is stopped.
pub(crate) const FIRST_SIGN_WAIT: Duration = Duration::from_secs(1);
/// How long it waits for each further response, and for the first of a manager that is not stopped: the
/// answer to its registration, its buffer, the start.
pub(crate) const START_WAIT: Duration = Duration::from_secs(5);
/// How long an application whose wait has timed out waits for its provider's thread to process that.
const GO_ON_WAIT: Duration = Duration::from_millis(100);
/// How long a synchronous registration waits for the manager's answer.
const REGISTRATION_WAIT: Duration = Duration::from_secs(5);

/// The message of a program whose wait has timed out.
const LATE: &str = "the trace manager has not answered in time; events are not recorded until it does";

/// Reports that the wait for the start of a recording has timed out.
pub(crate) fn report_late(name: &str) {
    if startup::is_recording() {
        // It is recorded all the same, and handed over when the manager answers.
        return;
    }
    manager::leave_note(name);
    let text = format!("trace: program \"{name}\": {LATE}");
    debuglog::write_for_process(&Shown(&text).to_string());
}

/// A registration with the trace manager of this machine, for as long as it is alive.
///
/// Keep it until the end of `main`. Several processes may use the same name. Create one provider per process:
/// a second one registers too, but the process is recorded through one of them only, and the other one does
/// not wait for the start of the recording.
#[derive(Debug)]
pub struct TraceProvider {
    /// None where the process has no descriptors or threads left: then it runs on untraced.
    running: Option<Running>,
    /// The process that has the thread: a forked child has not.
    process: u32,
}

/// The provider's thread, and the way to it.
#[derive(Debug)]
struct Running {
    commands: Commands,
    /// The thread, and what is closed when it ends. None while it is dropped.
    thread: Mutex<Option<(JoinHandle<()>, Receiver<()>)>>,
    /// Else the thread begins when a library that is being loaded has been.
    has_begun: bool,
    /// Before what it names, so that it is dropped first.
    _closed_in_children: ClosedInChildren,
    _waker: Arc<WakeSender>,
}

/// How long a provider that is dropped waits for its thread, which hands over what was recorded. The thread
/// ends later where the application keeps the descriptor that wakes it from doing so.
const END_WAIT: Duration = Duration::from_secs(10);

/// The result of a synchronous registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    /// No manager has answered: none runs, and the provider registers with the next one that starts; or one
    /// has not answered within 5 s, and knows the provider when it does.
    NoManager,
    /// A manager knows the provider.
    Registered {
        /// A trace is running: events will be recorded in a moment.
        already_started: bool,
    },
    /// The manager refused this provider; the program runs on without being recorded.
    Refused {
        /// Why, in a sentence.
        reason: String,
    },
}

impl TraceProvider {
    /// Registers in the background. Infallible. Returns immediately, unless a recording is running: then it
    /// blocks until this process has joined it, so that the first event is recorded. That takes a few
    /// milliseconds, more on a busy machine or with a large buffer. It gives up when the manager has not
    /// responded for 5 s, or for 1 s if the manager's process is stopped; the program then says so on stderr,
    /// runs on, and is recorded as soon as the manager is ready.
    ///
    /// A program that starts before any manager joins when one starts. `name` is cut to 100 bytes; an empty
    /// name becomes that of the process.
    #[must_use = "the provider is unregistered when this is dropped"]
    pub fn new(name: &str) -> Self {
        let is_below_record = is_below_record();
        let inherited = manager::inherited();
        // Of a manager whose directory cannot be seen, the answer says whether it records.
        let first_wait = match inherited.is_some() || manager::is_recording() {
            true => Some(FIRST_SIGN_WAIT),
            false => is_below_record.then_some(START_WAIT),
        };
        let (provider, progress) = Self::spawn(name, is_below_record, inherited);
        if let Some(first_wait) = first_wait {
            provider.wait_for_start(name, &progress, first_wait);
        }
        provider
    }

    /// Registers and waits for the manager's answer, at most 5 s; says whether a trace is running already. If
    /// so, it also waits until recording has started here, as [`TraceProvider::new`] does.
    #[must_use = "the provider is unregistered when this is dropped"]
    pub fn new_synchronously(name: &str) -> (Self, Registration) {
        let (provider, progress) = Self::spawn(name, true, manager::inherited());
        let registration = wait_for_registration(&progress);
        match registration {
            Some(Registration::Registered { already_started: true }) => {
                provider.wait_for_start(name, &progress, START_WAIT);
            }
            // Without a recording nothing is missing.
            None if manager::is_recording() => provider.go_on(name, &progress),
            _ => {}
        }
        (provider, registration.unwrap_or(Registration::NoManager))
    }

    /// Registers a function that returns names and descriptions of categories, for a client that lists them,
    /// beside those of the call sites. It is called on a thread of the provider's.
    pub fn describe_categories(&self, describe: impl Fn() -> Vec<Category> + Send + Sync + 'static) {
        config::set_describe(Arc::new(describe));
    }

    /// Registers a function that is called for each memory dump, to report what this program uses memory for:
    /// it adds named values to the dump. It is called on a thread of the provider's while a recording with
    /// the category `memory_dump` is running; a slow function delays the end of the recording. Several
    /// functions may be registered.
    ///
    /// ```no_run
    /// # let provider = trace_provider::TraceProvider::new("app");
    /// # fn cached_bytes() -> u64 { 0 }
    /// provider.on_memory_dump(|dump| {
    ///     dump.add("cache", cached_bytes());
    ///     if dump.is_detailed() {
    ///         dump.add("cache/images", cached_bytes() / 2);
    ///     }
    /// });
    /// ```
    //= docs/recording.md#memory-dumps
    #[cfg(feature = "dumps")]
    pub fn on_memory_dump(&self, dump: impl Fn(&mut MemoryDump) + Send + Sync + 'static) {
        memory_dump::on_memory_dump(dump);
    }

    /// The configuration of the trace that this process takes part in; none while no trace is running.
    #[must_use]
    pub fn config(&self) -> Option<Config> {
        config::config()
    }

    fn spawn(name: &str, is_answer_wanted: bool, inherited: Option<Channel>) -> (Self, Receiver<Progress>) {
        let (sender, progress) = queue();
        let name = provider_name(name);
        fork::register_children_as(&name);
        if has_one_thread() {
            engine::prepare();
        }
        startup::begin_by_environment_as(Some(&name));
        #[cfg(feature = "local")]
        echo::begin_by_environment(&name);
        callbacks::prepare();
        let running = Running::start(name.clone(), is_answer_wanted, inherited, sender);
        let running = running.inspect_err(|reason| {
            debuglog::write_for_process(&format!("trace: program \"{name}\": not traced: {reason}"));
        });
        (Self { running: running.ok(), process: generation() }, progress)
    }

    fn wait_for_start(&self, name: &str, progress: &Receiver<Progress>, first_wait: Duration) {
        let begin = Instant::now();
        let mut deadline = begin + first_wait;
        loop {
            match progress.receive(Some(deadline)) {
                Ok(Progress::Initializing | Progress::Registered { already_started: true }) => {
                    deadline = Instant::now() + START_WAIT;
                }
                Ok(
                    Progress::Registered { already_started: false }
                    | Progress::NotRecording
                    | Progress::Started
                    | Progress::NoManager
                    | Progress::Refused { .. }
                    | Progress::GoneOn,
                )
                | Err(Missing::Closed) => return,
                // A manager that is only busy responds sooner or later.
                Err(Missing::Late)
                    if deadline < begin + START_WAIT && self.has_begun() && !manager::is_stopped() =>
                {
                    deadline = begin + START_WAIT;
                }
                Err(Missing::Late) => break,
            }
        }
        self.go_on(name, progress);
    }

    fn has_begun(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.has_begun)
    }

    /// Waits no longer, and reports that.
    fn go_on(&self, name: &str, progress: &Receiver<Progress>) {
        if let Some(running) = &self.running {
            running.commands.send(Command::GoOn);
            // Else a manager that reads the registration right now would count the program as one that waits,
            // and not report what it does from here on as missing.
            let deadline = Instant::now() + GO_ON_WAIT;
            while progress.receive(Some(deadline)).is_ok_and(|progress| progress != Progress::GoneOn) {}
        }
        report_late(name);
    }

    /// Requests that what was recorded so far is handed to the manager: in streaming mode the half of the
    /// buffer that is in use, although it is not full. In other modes everything stays until the trace
    /// stops. Does not block.
    pub fn flush(&self) {
        if let Some(running) = &self.running {
            running.commands.send(Command::Flush);
        }
    }
}

impl Running {
    fn start(
        name: String,
        is_answer_wanted: bool,
        inherited: Option<Channel>,
        progress: Sender<Progress>,
    ) -> zx_sim::Result<Self> {
        let (waker, wakes) = zx_sim::wake_pair()?;
        let closed_in_children = ClosedInChildren::new(&waker);
        let waker = Arc::new(waker);
        let (commands, received) = Commands::new(&waker);
        let (end, is_ended) = queue();
        let way = (commands.clone(), received);
        let inherited = inherited.map(|inherited| inherited.into_handle().into_fd());
        let kept = [wakes.into_fd()].into_iter().chain(inherited).collect();
        let run = move |kept: Vec<OwnedFd>| {
            let mut kept = kept.into_iter();
            let Some(wakes) = kept.next().map(WakeReceiver::from_fd) else { return };
            let inherited = kept.next().and_then(|other| Channel::from_handle(Handle::new(other)).ok());
            let dispatcher = Dispatcher::new(name, is_answer_wanted, progress, way, wakes, inherited, false);
            if let Some(dispatcher) = dispatcher {
                dispatcher.run();
            }
            drop(end);
        };
        let Apart { thread, has_begun } = thread::spawn_apart("trace-dispatch", kept, Box::new(run))?;
        let thread = Mutex::new(Some((thread, is_ended)));
        Ok(Self { commands, thread, has_begun, _closed_in_children: closed_in_children, _waker: waker })
    }
}

impl Drop for TraceProvider {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        if self.process != generation() {
            // In a forked child, of its parent. The thread does not exist here and cannot be joined.
            core::mem::forget(running);
            return;
        }
        running.commands.end();
        let Some((thread, is_ended)) = running.thread.lock().take() else {
            return;
        };
        if is_ended.receive(Some(Instant::now() + END_WAIT)) == Err(Missing::Closed) {
            let _ = thread.join();
        }
    }
}

/// Whether this program, or an ancestor of it, was started by `trace record`.
pub(crate) fn is_below_record() -> bool {
    zx_sim::environment::variable(RECORD_VARIABLE).is_some_and(|value| value == "1")
}

/// None where the manager has not answered in time.
fn wait_for_registration(progress: &Receiver<Progress>) -> Option<Registration> {
    let deadline = Instant::now() + REGISTRATION_WAIT;
    loop {
        match progress.receive(Some(deadline)) {
            Ok(Progress::Registered { already_started }) => {
                return Some(Registration::Registered { already_started });
            }
            Ok(Progress::Refused { reason }) => return Some(Registration::Refused { reason }),
            Ok(Progress::Initializing | Progress::Started | Progress::GoneOn) => {}
            Ok(Progress::NoManager | Progress::NotRecording) | Err(Missing::Closed) => {
                return Some(Registration::NoManager);
            }
            Err(Missing::Late) => return None,
        }
    }
}

/// Whether this is the only thread of the process.
pub(crate) fn has_one_thread() -> bool {
    // The directory has an entry for each thread, beside its own two.
    rustix::fs::stat("/proc/self/task").is_ok_and(|tasks| tasks.st_nlink == 3)
}

/// The name as the protocol takes it.
pub(crate) fn provider_name(name: &str) -> String {
    let name = if name.is_empty() { zx_sim::process_name() } else { name.to_owned() };
    truncate(&name, trace_protocol::limits::MAX_PROVIDER_NAME_BYTES).to_owned()
}
