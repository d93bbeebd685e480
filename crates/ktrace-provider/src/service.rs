//! The service: registers, waits for recordings, and handles one at a time.

use crate::categories::{ALL, EACH, GROUPS, RETAIN};
use crate::collector::Retained;
use crate::profiler::Sampling;
use crate::recording::Recording;
use crate::tracefs::{Error, Tracefs};
use crate::{cpu_counters, metrics, profiler};
use crossbeam_channel::{Receiver, Sender, select, unbounded};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace_engine::engine::{self, Observer, State};
use trace_engine::ffi::{self, TraceRef};
use trace_format::markers;
use trace_provider::{Registration, TraceProvider};

/// The provider's name, the same as that of Fuchsia's.
pub const NAME: &str = "ktrace_provider";
/// Printed on stdout when recording can begin.
pub const READY: &str = "ready";
/// How often to check whether a recording is over.
const INTERVAL: Duration = Duration::from_millis(10);
/// The strongest of the usual priorities.
const STRONGEST: i32 = -20;
/// How long a provider that was started for a recording waits for it to begin.
const BEGIN_WAIT: Duration = Duration::from_secs(30);

/// Options of the service.
#[derive(Clone, Debug)]
pub struct Options {
    /// It was started for one recording, after which it exits.
    pub is_on_demand: bool,
    /// Size of the kernel's buffer for each CPU, in KiB.
    pub buffer_kilobytes: u64,
    /// How often metrics are sampled.
    pub sample_interval: Duration,
    /// How threads are sampled, if a profile is wanted.
    pub sampling: Option<Sampling>,
    /// The command that runs it with the privileges that it needs.
    pub help: String,
}

/// Why it cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The trace manager refused it.
    #[error("the trace manager refused kernel events: {0}")]
    Refused(String),
    /// There is no manager.
    #[error("no trace manager is running")]
    NoManager,
    /// Signals cannot be handled.
    #[error("cannot handle signals: {0}")]
    Signals(std::io::Error),
}

/// A change of the trace's state.
#[derive(Clone, Copy, Debug)]
enum Command {
    Start,
    Stop,
}

/// An event for the service.
enum Happened {
    Command(Command),
    /// The process ends.
    Finished,
    Timeout,
}

static COMMANDS: OnceLock<Sender<Command>> = OnceLock::new();
/// A recording has begun that the kernel does not take part in yet.
static IS_PENDING: AtomicBool = AtomicBool::new(false);
/// The trace does not stop before the kernel's last events are in it.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Called on the thread of the provider.
fn on_change(state: State) {
    let command = match state {
        State::Started => {
            IS_PENDING.store(true, Ordering::SeqCst);
            IS_HELD.store(TraceRef::acquire_prolonged().map(TraceRef::leak).is_some(), Ordering::SeqCst);
            Command::Start
        }
        State::Stopping => Command::Stop,
        _ => return,
    };
    if let Some(commands) = COMMANDS.get() {
        let _ = commands.send(command);
    }
}

fn let_go() {
    IS_PENDING.store(false, Ordering::SeqCst);
    if IS_HELD.swap(false, Ordering::SeqCst) {
        drop(TraceRef::from_leaked_prolonged());
    }
}

/// Runs until a signal comes, or the recording that it was started for is over.
///
/// # Errors
/// The manager refuses it; or, for a single recording, there is none.
pub fn run(options: &Options) -> Result<(), Failure> {
    let tracefs = Tracefs::find(&options.help);
    tracefs.iter().for_each(Tracefs::remove_stale);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Failure::Signals)?;
    let (commands, received) = unbounded();
    let _ = COMMANDS.set(commands);
    engine::observe(Observer {
        on_change,
        is_start_pending: || IS_PENDING.load(Ordering::SeqCst),
        ..Observer::NONE
    });
    trace_provider::serve_caller_of_sudo();
    let (provider, registration) = TraceProvider::new_synchronously(NAME);
    provider.describe_categories(describe);
    match registration {
        Registration::Refused { reason } => return Err(Failure::Refused(reason)),
        Registration::NoManager if options.is_on_demand => return Err(Failure::NoManager),
        _ => {}
    }
    let mut stdout = std::io::stdout();
    // The reader may have gone.
    let _ = writeln!(stdout, "{READY}").and_then(|()| stdout.flush());
    let (quit, is_over) = unbounded();
    let over = quit.clone();
    std::thread::scope(|scope| {
        let handle = signals.handle();
        scope.spawn(move || {
            if signals.forever().next().is_some() {
                let _ = quit.send(());
            }
        });
        let service = Service { tracefs, options: options.clone(), recording: None, retained: None };
        let stop = Sender::clone(&over);
        let (finish, finished) = unbounded::<()>();
        let collecting = std::thread::Builder::new().name("ktrace".to_owned());
        let collecting = collecting.spawn_scoped(scope, move || {
            service.serve(&received, &finished);
            let _ = stop.send(());
        });
        let _ = is_over.recv();
        // Ends a running recording, and waits for its last events.
        drop(provider);
        drop(finish);
        let _ = collecting.map(std::thread::ScopedJoinHandle::join);
        handle.close();
    });
    Ok(())
}

/// Names of the categories that exist on every machine.
pub fn category_names() -> impl Iterator<Item = String> {
    describe().into_iter().map(|(name, _)| name)
}

fn describe() -> Vec<(String, String)> {
    let special = [
        (ALL, "All of the kernel's categories but atrace"),
        (EACH, "The same"),
        (RETAIN, "What the kernel's buffer holds since the recording before"),
    ];
    let special = special.map(|(name, description)| (name.to_owned(), description.to_owned()));
    let groups = GROUPS.iter().map(|group| (group.name.to_owned(), group.description.to_owned()));
    let metrics = metrics::CATEGORIES.map(|(name, description)| (name.to_owned(), description.to_owned()));
    let counters =
        cpu_counters::KINDS.iter().map(|kind| (kind.category.to_owned(), kind.description.to_owned()));
    let profile = (profiler::CATEGORY.to_owned(), "Samples of where threads are, with --profile".to_owned());
    let of_tag = |name: &&str| {
        let tag = name.trim_start_matches(markers::OF_TAG);
        ((*name).to_owned(), format!("Markers to which programs give the tag {tag}"))
    };
    let tags = markers::TAGS.iter().map(of_tag);
    special.into_iter().chain(groups).chain(tags).chain(metrics).chain(counters).chain([profile]).collect()
}

struct Service {
    /// The error if this user may not use it.
    tracefs: Result<Tracefs, Error>,
    options: Options,
    recording: Option<Recording>,
    /// The kernel's recording until the next one.
    retained: Option<Retained>,
}

impl Service {
    /// Follows the trace until `finished` reports a signal; on demand, also until its recording is over or
    /// none has begun in time.
    fn serve(mut self, commands: &Receiver<Command>, finished: &Receiver<()>) {
        // It has least time when there is most to do. Without the privilege it keeps the ordinary priority.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), STRONGEST);
        let mut give_up = self.options.is_on_demand.then(|| Instant::now() + BEGIN_WAIT);
        loop {
            let wait = match (&self.recording, give_up) {
                (Some(recording), _) => recording.next().saturating_duration_since(Instant::now()),
                (None, Some(_)) => INTERVAL,
                (None, None) => Duration::from_secs(3600),
            };
            let happened = select! {
                recv(commands) -> command => command.map_or(Happened::Finished, Happened::Command),
                recv(finished) -> _ => Happened::Finished,
                default(wait) => Happened::Timeout,
            };
            match happened {
                Happened::Command(Command::Start) => {
                    self.start();
                    give_up = give_up.map(|_| Instant::now());
                }
                Happened::Command(Command::Stop) => self.stop(),
                Happened::Timeout => {
                    if let Some(recording) = &mut self.recording {
                        recording.serve();
                    } else if give_up.is_some_and(|give_up| give_up <= Instant::now())
                        && engine::state() == State::Idle
                    {
                        return;
                    }
                }
                Happened::Finished => return self.stop(),
            }
        }
    }

    fn start(&mut self) {
        self.stop_collecting();
        let listed = trace_provider::config().map(|config| config.categories).unwrap_or_default();
        let is_wanted = |name: &str| ffi::is_category_wanted(name.as_bytes());
        let retained = self.retained.take();
        self.recording = Recording::start(&self.tracefs, &self.options, is_wanted, &listed, retained);
        match self.recording {
            Some(_) => IS_PENDING.store(false, Ordering::SeqCst),
            None => let_go(),
        }
    }

    fn stop_collecting(&mut self) {
        if let Some(recording) = self.recording.take() {
            self.retained = recording.finish();
        }
    }

    fn stop(&mut self) {
        self.stop_collecting();
        let_go();
    }
}
