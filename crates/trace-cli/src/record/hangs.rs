//! Limits for what has not ended, as conditions of triggers: the manager says which scopes are open, and what
//! has begun with a record of its own is found in the records.
//= docs/recording.md#triggers

use crate::args::trigger::OpenLimit;
use crate::record::live::feed::time_of;
use crate::record::live::frames::{FollowError, Frames, Pending, Waiting};
use crate::record::live::source;
use crate::shell::exit::Failure;
use std::collections::HashSet;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use trace_analysis::live::begun::{Begun, BegunByProgram};
use trace_format::scopes::ENTRIES;
use trace_format::shown::{Lasting, Shown};
use trace_format::units::ProviderId;
use trace_protocol::controller::observer::FRAME_HEADER_BYTES;
use trace_protocol::controller::{FrameKind, ObserveOptions};
use trace_reader::{Item, Reader, Thread};
use zx_sim::Socket;

/// How often the manager looks at scopes.
const INTERVAL: Duration = Duration::from_millis(100);
/// How often it looks for records: what they say is true of the time of the look before.
const RECORDS_INTERVAL: Duration = Duration::from_millis(50);

/// A limit, and what exceeded it when that was looked at last.
pub struct Watched {
    limit: OpenLimit,
    exceeded: HashSet<(Thread, u64)>,
    /// Those of the present look.
    found: HashSet<(Thread, u64)>,
    /// Set each time that something begins to exceed it.
    has_come: Arc<AtomicBool>,
}

/// What is open.
struct Open {
    thread: Thread,
    /// When it began, in ticks or nanoseconds.
    begun: u64,
    category: String,
    name: String,
    lasted_ns: u64,
}

impl Open {
    fn of(begun: &Begun, at_ns: u64) -> Self {
        Self {
            thread: begun.thread,
            begun: begun.at,
            category: begun.category.to_string(),
            name: begun.name.to_string(),
            lasted_ns: at_ns.saturating_sub(begun.at),
        }
    }
}

impl Watched {
    pub fn new(limit: OpenLimit, has_come: Arc<AtomicBool>) -> Self {
        Self { limit, exceeded: HashSet::new(), found: HashSet::new(), has_come }
    }

    /// A copy that has not seen any duration exceed the limit.
    fn anew(&self) -> Self {
        Self::new(self.limit.clone(), self.has_come.clone())
    }

    /// Looks at what a thread has open, the outermost first. What begins to exceed the limit.
    fn look<'o>(&mut self, scopes: &'o [Open]) -> Option<&'o Open> {
        let Self { limit: OpenLimit { selector, limit, .. }, exceeded, found, .. } = self;
        let is_it =
            |open: &&Open| open.lasted_ns as f64 > *limit && selector.matches(&open.category, &open.name);
        let mut first = None;
        for open in scopes.iter().filter(is_it) {
            let key = (open.thread, open.begun);
            found.insert(key);
            if !exceeded.contains(&key) {
                first = first.or(Some(open));
            }
        }
        first
    }

    /// All threads were looked at.
    fn finish(&mut self) {
        self.exceeded = std::mem::take(&mut self.found);
    }
}

/// Where messages go.
struct Reporter {
    news: Socket,
    say: Sender<String>,
}

impl Reporter {
    fn say(&self, text: String) {
        let _ = self.say.send(text);
        // When it is full, the other side has enough to read.
        let _ = self.news.write(&[0]);
    }

    /// Says what begins to exceed limits.
    fn look(&self, limits: &mut [Watched], open: &[Open], message: impl Fn(&OpenLimit, &Open) -> String) {
        for watched in limits {
            if let Some(open) = watched.look(open) {
                let text = message(&watched.limit, open);
                let _ = self.say.send(text);
                watched.has_come.store(true, Ordering::Relaxed);
                let _ = self.news.write(&[0]);
            }
        }
    }
}

/// Watches what is open in the recording of a program, or in the only one, until it ends. A message and a
/// byte of news follow each limit that something begins to exceed.
pub fn begin(
    mut limits: Vec<Watched>,
    program: Option<&str>,
    news: &Socket,
    say: Sender<String>,
) -> Result<(), Failure> {
    let failed = |error| Failure::new(format!("cannot start a thread: {error}"));
    let duplicate = || news.duplicate().map_err(|error| Failure::new(error.to_string()));
    let records = source::observe_running(&source::records(RECORDS_INTERVAL, program))?;
    let mut by_records: Vec<Watched> = limits.iter().map(Watched::anew).collect();
    let reporter = Reporter { news: duplicate()?, say: say.clone() };
    let follow = move || {
        // The other thread says that the manager is gone.
        let _ = follow_records(records, &mut by_records, &reporter);
    };
    std::thread::Builder::new().name("trace-begins".to_owned()).spawn(follow).map_err(failed)?;
    let least = limits.iter().map(|watched| watched.limit.limit).fold(f64::INFINITY, f64::min);
    let options = ObserveOptions {
        wants_records: false,
        open_for_ns: Some(least as u64),
        ..source::records(INTERVAL, program)
    };
    let mut socket = Waiting(source::observe_running(&options)?);
    let reporter = Reporter { news: duplicate()?, say };
    let work = move || {
        while let Some((kind, contents)) = next_frame(&mut socket) {
            match kind {
                FrameKind::OpenScopes => {
                    let (program, threads) = threads_of(&contents);
                    for (name, scopes) in &threads {
                        reporter.look(&mut limits, scopes, |limit, open| {
                            message(limit, &program, name, scopes, open)
                        });
                    }
                }
                FrameKind::Counts => limits.iter_mut().for_each(Watched::finish),
                FrameKind::End => return,
                FrameKind::Records | FrameKind::Unknown(_) => {}
            }
        }
        reporter.say("trace: open scopes are no condition any more: the trace manager is gone".to_owned());
    };
    std::thread::Builder::new().name("trace-hangs".to_owned()).spawn(work).map(drop).map_err(failed)
}

/// Looks at what has begun with a record of its own, at each update.
fn follow_records(socket: Socket, limits: &mut [Watched], reporter: &Reporter) -> Result<(), FollowError> {
    let pending = Pending::default();
    let mut reader = Reader::new(Frames::new(Waiting(socket), pending.clone()))?;
    let mut begun = BegunByProgram::default();
    // All that had ended at the last update has been read since.
    let mut last_ns = 0;
    while let Some(record) = reader.next_item()? {
        if let Item::Event(event) = &record.item {
            begun.event(record.provider, event);
        }
        while let Some(counts) = pending.take(reader.position().0) {
            let at_ns = std::mem::replace(&mut last_ns, time_of(&counts));
            for observed in &counts.providers {
                let provider = ProviderId(observed.progress.id);
                begun.set_missed(provider, observed.missed);
                let program = &observed.progress.name;
                // Among lost records may be ends.
                if observed.progress.dropped > 0 && begun.set_incomplete(provider) {
                    let (name, pid) = (Shown(program), observed.progress.pid);
                    reporter.say(format!(
                        "trace: {name} (pid {pid}) has lost records: of what it has open, limits see scopes alone"
                    ));
                }
                for open in begun.on_threads(provider) {
                    let open: Vec<Open> = open.into_iter().map(|begun| Open::of(begun, at_ns)).collect();
                    let name = reader.names().thread(open[0].thread);
                    let name = name.map_or_else(String::new, |name| name.to_str().into_owned());
                    reporter.look(limits, &open, |limit, exceeding| {
                        message(limit, program, &name, &open, exceeding)
                    });
                }
                for operation in begun.operations(provider) {
                    let open = Open::of(operation, at_ns);
                    reporter.look(limits, &[open], |limit, open| of_operation(limit, program, open));
                }
                if observed.has_ended {
                    begun.forget(provider);
                }
            }
            limits.iter_mut().for_each(Watched::finish);
        }
    }
    pending.finish()
}

/// Which thread of which program is in what.
fn message(limit: &OpenLimit, program: &str, name: &str, scopes: &[Open], open: &Open) -> String {
    let path: Vec<&str> = scopes.iter().take(ENTRIES).map(|scope| scope.name.as_str()).collect();
    let thread = if name.is_empty() { open.thread.thread.to_string() } else { format!("{name:?}") };
    let pid = open.thread.process;
    let text = format!(
        "{limit}: thread {thread} of {program} (pid {pid}) is in {}, in {} for {}",
        path.join(" > "),
        open.name,
        Lasting(open.lasted_ns as f64)
    );
    format!("trace: {}", Shown(&text))
}

/// Which operation of which program has not ended.
fn of_operation(limit: &OpenLimit, program: &str, open: &Open) -> String {
    let (pid, name, lasted) = (open.thread.process, &open.name, Lasting(open.lasted_ns as f64));
    let text = format!("{limit}: {program} (pid {pid}) has had {name} open for {lasted}");
    format!("trace: {}", Shown(&text))
}

/// The name of the program, and by the names of its threads what these have open.
fn threads_of(archive: &[u8]) -> (String, Vec<(String, Vec<Open>)>) {
    let mut program = String::new();
    let mut threads: Vec<(String, Vec<Open>)> = Vec::new();
    let Ok(mut reader) = Reader::of_slice(archive) else { return (program, threads) };
    while let Ok(Some(record)) = reader.next_item() {
        match record.item {
            Item::ProviderInfo { name } => program = name.to_str().into_owned(),
            Item::Event(event) => {
                let Some((_, Some(lasted_ns))) = event.ending() else { continue };
                let open = Open {
                    thread: event.thread,
                    begun: event.time.ticks.0,
                    category: event.category.to_str().into_owned(),
                    name: event.name.to_str().into_owned(),
                    lasted_ns,
                };
                match threads.last_mut() {
                    Some((_, scopes)) if scopes[0].thread == event.thread => scopes.push(open),
                    _ => threads.push((String::new(), vec![open])),
                }
            }
            _ => {}
        }
    }
    for (name, scopes) in &mut threads {
        *name = reader
            .names()
            .thread(scopes[0].thread)
            .map_or_else(String::new, |name| name.to_str().into_owned());
    }
    (program, threads)
}

/// The next frame; none at the end of the connection.
fn next_frame(socket: &mut Waiting) -> Option<(FrameKind, Vec<u8>)> {
    let mut header = [0; FRAME_HEADER_BYTES];
    socket.read_exact(&mut header).ok()?;
    let (kind, bytes) = FrameKind::of_header(header).ok()?;
    let mut contents = vec![0; bytes];
    socket.read_exact(&mut contents).ok()?;
    Some((kind, contents))
}
