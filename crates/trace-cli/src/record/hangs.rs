//! Limits for scopes that have not ended, as conditions of triggers: the manager says which are open.
//= docs/recording.md#triggers

use crate::args::trigger::OpenLimit;
use crate::exit::Failure;
use crate::live::frames::Waiting;
use crate::live::source;
use std::collections::HashSet;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use trace_format::scopes::ENTRIES;
use trace_format::shown::Shown;
use trace_protocol::controller::observer::FRAME_HEADER_BYTES;
use trace_protocol::controller::{FrameKind, ObserveOptions};
use trace_reader::{Item, Reader, Thread};
use zx_sim::Socket;

/// How often the manager looks.
const INTERVAL: Duration = Duration::from_millis(100);

/// A limit, and the scopes that exceeded it when that was looked at last.
pub struct Watched {
    limit: OpenLimit,
    exceeded: HashSet<(Thread, u64)>,
    /// Those of the present look.
    found: HashSet<(Thread, u64)>,
    /// Set each time that a scope begins to exceed it.
    has_come: Arc<AtomicBool>,
}

/// A scope that is open.
struct Open {
    thread: Thread,
    begun: u64,
    category: String,
    name: String,
    lasted_ns: u64,
}

impl Watched {
    pub fn new(limit: OpenLimit, has_come: Arc<AtomicBool>) -> Self {
        Self { limit, exceeded: HashSet::new(), found: HashSet::new(), has_come }
    }

    /// Looks at the scopes of a thread, of which the first is the outermost. The one that begins to exceed
    /// the limit.
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

/// Watches the open scopes of the recording of a program, or of the only one, until it ends. A message and a
/// byte of news follow each limit that a scope begins to exceed.
pub fn begin(
    mut limits: Vec<Watched>,
    program: Option<&str>,
    news: Socket,
    say: Sender<String>,
) -> Result<(), Failure> {
    let least = limits.iter().map(|watched| watched.limit.limit).fold(f64::INFINITY, f64::min);
    let options = ObserveOptions {
        wants_records: false,
        open_for_ns: Some(least as u64),
        ..source::records(INTERVAL, program)
    };
    let mut socket = Waiting(source::observe_running(&options)?);
    let work = move || {
        while let Some((kind, contents)) = next_frame(&mut socket) {
            match kind {
                FrameKind::OpenScopes => {
                    let (program, threads) = threads_of(&contents);
                    for (name, scopes) in &threads {
                        for watched in &mut limits {
                            if let Some(open) = watched.look(scopes) {
                                let _ = say.send(message(&watched.limit, &program, name, scopes, open));
                                watched.has_come.store(true, Ordering::Relaxed);
                                // When it is full, the other side has enough to read.
                                let _ = news.write(&[0]);
                            }
                        }
                    }
                }
                FrameKind::Counts => limits.iter_mut().for_each(Watched::finish),
                FrameKind::End => return,
                FrameKind::Records | FrameKind::Unknown(_) => {}
            }
        }
        let _ =
            say.send("trace: open scopes are no condition any more: the trace manager is gone".to_owned());
        let _ = news.write(&[0]);
    };
    let thread = std::thread::Builder::new().name("trace-hangs".to_owned()).spawn(work);
    thread.map(drop).map_err(|error| Failure::new(format!("cannot start a thread: {error}")))
}

/// Which thread of which program is in what.
fn message(limit: &OpenLimit, program: &str, name: &str, scopes: &[Open], open: &Open) -> String {
    let path: Vec<&str> = scopes.iter().take(ENTRIES).map(|scope| scope.name.as_str()).collect();
    let thread = if name.is_empty() { open.thread.thread.to_string() } else { format!("{name:?}") };
    let pid = open.thread.process;
    let text = format!(
        "{limit}: thread {thread} of {program} (pid {pid}) is in {}, in {} for {:.1} ms",
        path.join(" > "),
        open.name,
        open.lasted_ns as f64 / 1e6
    );
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
