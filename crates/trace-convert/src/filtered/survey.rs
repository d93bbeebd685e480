//! What has to be known of the whole trace before the first record can be kept or removed.
//!
//! A first pass finds the processes, whose names may stand behind their events, and a second one the flows
//! and operations that the selection would cut, and the threads and processes of which something remains.
//! Each table has a limit.

use super::Options;
use super::selection::{SCHEDULING, Selection};
use crate::ConvertError;
use crate::source::for_each;
use foldhash::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use trace_format::event::EventKind;
use trace_format::kernel_object::{PROCESS_ARGUMENT, TYPE_CHANNEL, TYPE_PROCESS, TYPE_THREAD};
use trace_format::program_info::PROVIDER_ARGUMENT;
use trace_format::units::{Koid, ProviderId};
use trace_model::Pattern;
use trace_reader::item::Scheduling;
use trace_reader::{Arguments, Event, Item, MANAGER, Resolved, Thread, Value};

/// Largest number of entries of each table.
const MAX_ENTRIES: usize = 1 << 20;
/// How many categories are distinguished.
pub(super) const MAX_CATEGORIES: usize = 10_000;

/// The processes of a trace.
#[derive(Default)]
pub(super) struct Processes {
    /// Those that are wanted.
    pub wanted: HashSet<Koid>,
    /// Those of providers, as the manager describes them.
    pub homes: HashMap<ProviderId, Koid>,
    /// Those of threads.
    owners: HashMap<Koid, Koid>,
    /// Which of the wanted names occur.
    found: HashSet<usize>,
}

impl Processes {
    /// Whether a thread is one of a wanted process.
    pub fn is_of_wanted(&self, thread: Koid) -> bool {
        self.owners.get(&thread).is_some_and(|owner| self.wanted.contains(owner))
    }

    fn belongs(&mut self, thread: Koid, process: Koid) {
        if self.owners.len() < MAX_ENTRIES {
            self.owners.entry(thread).or_insert(process);
        }
    }

    fn record(&mut self, record: &Resolved<'_>, options: &Options, last: &mut Thread) {
        match &record.item {
            Item::Event(event) if event.thread != *last => {
                *last = event.thread;
                self.belongs(last.thread, last.process);
                self.number(last.process, options);
            }
            Item::KernelObject { object_type: TYPE_PROCESS, koid, name, .. } => {
                self.number(*koid, options);
                self.find(*koid, options, |wanted| Pattern::of(wanted).matches(&name.to_str()));
            }
            Item::KernelObject { object_type: TYPE_THREAD, koid, arguments, .. } => {
                if let Some(process) = process_of(arguments) {
                    self.belongs(*koid, process);
                    self.number(process, options);
                }
            }
            Item::KernelObject { object_type: TYPE_CHANNEL, arguments, .. } if record.provider == MANAGER => {
                let provider = arguments.integer(PROVIDER_ARGUMENT).and_then(|id| u32::try_from(id).ok());
                if let (Some(id), Some(process)) = (provider, process_of(arguments))
                    && self.homes.len() < MAX_ENTRIES
                {
                    self.homes.entry(ProviderId(id)).or_insert(process);
                }
            }
            _ => {}
        }
    }

    /// A process whose number may be a wanted one.
    fn number(&mut self, process: Koid, options: &Options) {
        self.find(process, options, |wanted| wanted.parse() == Ok(process.0));
    }

    fn find(&mut self, process: Koid, options: &Options, is_wanted: impl Fn(&str) -> bool) {
        for (place, wanted) in options.processes.iter().enumerate() {
            if is_wanted(wanted) && self.wanted.len() < MAX_ENTRIES {
                self.wanted.insert(process);
                self.found.insert(place);
            }
        }
    }
}

/// The process that the arguments of an object name.
pub(crate) fn process_of(arguments: &Arguments<'_>) -> Option<Koid> {
    match arguments.find(PROCESS_ARGUMENT)? {
        Value::Koid(process) => Some(process),
        _ => None,
    }
}

/// The categories of a trace, as far as that is needed to name those that it does not have.
#[derive(Default)]
pub(super) struct Categories {
    seen: BTreeSet<Box<[u8]>>,
    /// Of the event before, which often has the same.
    last: Vec<u8>,
}

impl Categories {
    fn record(&mut self, item: &Item<'_>) {
        let category = match item {
            Item::Event(event) => event.category.as_bytes(),
            Item::LargeBlob { category, .. } => category.as_bytes(),
            Item::Scheduling { .. } => SCHEDULING.as_bytes(),
            _ => return,
        };
        if category != self.last {
            self.last.clear();
            self.last.extend_from_slice(category);
            if self.seen.len() < MAX_CATEGORIES && !self.seen.contains(category) {
                self.seen.insert(category.into());
            }
        }
    }

    /// Wanted ones that the trace does not have, also not in a list of several.
    pub fn missing(&self, options: &Options) -> Vec<String> {
        let lists = || self.seen.iter().filter(|seen| seen.contains(&b','));
        let is_in_list =
            |wanted: &[u8]| lists().any(|seen| seen.split(|byte| *byte == b',').any(|one| one == wanted));
        let is_missing =
            |wanted: &&String| !self.seen.contains(wanted.as_bytes()) && !is_in_list(wanted.as_bytes());
        // Beyond the limit that is not known.
        let is_name = |entry: &&String| !entry.starts_with('-') && !entry.contains('*');
        let missing = options.categories.iter().filter(is_name).filter(|_| self.seen.len() < MAX_CATEGORIES);
        missing.filter(is_missing).cloned().collect()
    }

    /// All of them.
    pub fn seen(&self) -> impl Iterator<Item = String> + '_ {
        self.seen.iter().map(|category| String::from_utf8_lossy(category).into_owned())
    }
}

/// Parts of a flow or an operation.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    kept: i32,
    removed: i32,
}

/// What the passes before the last one have found.
#[derive(Default)]
pub(super) struct Survey {
    pub processes: Processes,
    pub categories: Categories,
    /// Threads and processes of which a record remains. Two processes may use one number for threads of
    /// theirs: all do for virtual ones.
    threads: HashSet<Thread>,
    numbers: HashSet<Koid>,
    shown: HashSet<Koid>,
    /// How many parts of flows are kept and removed.
    flows: HashMap<u64, Parts>,
    /// By how many the begins of operations exceed their ends, among the parts that are kept and removed.
    operations: HashMap<u64, Parts>,
    keys: RandomState,
}

impl Survey {
    /// The first pass.
    pub fn find_processes(&mut self, input: impl Read, options: &Options) -> Result<(), ConvertError> {
        let mut last = Thread { process: Koid(u64::MAX), thread: Koid(u64::MAX) };
        for_each(input, |record| {
            self.processes.record(record, options, &mut last);
            if !options.categories.is_empty() {
                self.categories.record(&record.item);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// The second pass.
    pub fn find_records(&mut self, input: impl Read, options: &Options) -> Result<(), ConvertError> {
        let Self { processes, threads, numbers, shown, flows, operations, keys, .. } = self;
        let mut selection = Selection::new(options, processes);
        let mut seen = Seen { threads, numbers, shown, last: None };
        for_each(input, |record| {
            let is_kept = selection.keeps(record);
            match &record.item {
                Item::Event(event) => {
                    if is_kept {
                        seen.thread(event.thread);
                    }
                    if let Some(id) = flow(event) {
                        count(flows, id, is_kept, 1);
                    } else if let Some((part, id)) = part(event).filter(|_| !options.processes.is_empty()) {
                        let key = keys.hash_one((event.category, event.name, id));
                        count(operations, key, is_kept, part);
                    }
                }
                Item::Log { thread, .. } | Item::Profiler { thread, .. } if is_kept => seen.thread(*thread),
                Item::LargeBlob { event: Some((_, thread, _)), .. } if is_kept => seen.thread(*thread),
                // Where processes are wanted, the other side of a switch stays a number all the same.
                Item::Scheduling { kind, .. } if is_kept => {
                    for (thread, process) in switched(kind).into_iter().flatten() {
                        let process = process.or_else(|| processes.owners.get(&thread).copied());
                        seen.thread(Thread { process: process.unwrap_or_default(), thread });
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Whether an event is one whose other parts are kept as well, if it is a part of something.
    //= docs/filter.md#what-belongs-together
    pub fn is_whole(&self, event: &Event<'_>, options: &Options) -> bool {
        if !options.selects() {
            return true;
        }
        if let Some(id) = flow(event) {
            return self.flows.get(&id).is_some_and(|parts| parts.removed == 0);
        }
        let Some((_, id)) = part(event) else { return true };
        let key = self.keys.hash_one((event.category, event.name, id));
        self.operations.get(&key).is_none_or(|parts| parts.kept == 0 || parts.removed == 0)
    }

    /// Whether the name of a process is kept.
    pub fn shows_process(&self, process: Koid, options: &Options) -> bool {
        (options.processes.is_empty() || self.processes.wanted.contains(&process))
            && (options.categories.is_empty() || self.shown.contains(&process))
    }

    /// Whether the name of a thread is kept.
    pub fn shows_thread(&self, thread: Koid, process: Option<Koid>, options: &Options) -> bool {
        // The kernel does not know the processes of all threads.
        let process = process.filter(|process| *process != Koid(0));
        let is_seen = || match process {
            Some(process) => [process, Koid(0)]
                .into_iter()
                .any(|process| self.threads.contains(&Thread { process, thread })),
            None => self.numbers.contains(&thread),
        };
        let is_wanted = || match process {
            Some(process) => self.processes.wanted.contains(&process),
            None => self.processes.is_of_wanted(thread),
        };
        (options.processes.is_empty() || is_wanted()) && (options.categories.is_empty() || is_seen())
    }

    /// The names of processes that no process has.
    pub fn missing(&self, options: &Options) -> Vec<String> {
        let found = &self.processes.found;
        let missing = options.processes.iter().enumerate().filter(|(place, _)| !found.contains(place));
        missing.map(|(_, name)| name.clone()).collect()
    }
}

struct Seen<'a> {
    threads: &'a mut HashSet<Thread>,
    numbers: &'a mut HashSet<Koid>,
    shown: &'a mut HashSet<Koid>,
    last: Option<Thread>,
}

impl Seen<'_> {
    fn thread(&mut self, thread: Thread) {
        if self.last == Some(thread) || self.threads.len() >= MAX_ENTRIES || self.shown.len() >= MAX_ENTRIES {
            return;
        }
        self.last = Some(thread);
        self.threads.insert(thread);
        self.numbers.insert(thread.thread);
        self.shown.insert(thread.process);
    }
}

fn count(all: &mut HashMap<u64, Parts>, key: u64, is_kept: bool, number: i32) {
    if all.len() >= MAX_ENTRIES && !all.contains_key(&key) {
        return;
    }
    let parts = all.entry(key).or_default();
    let side = if is_kept { &mut parts.kept } else { &mut parts.removed };
    *side = side.saturating_add(number);
}

fn flow(event: &Event<'_>) -> Option<u64> {
    match event.kind {
        EventKind::FlowBegin { id } | EventKind::FlowStep { id } | EventKind::FlowEnd { id } => Some(id),
        _ => None,
    }
}

/// Whether an event begins or ends an operation, as a number to be added up, and its id.
fn part(event: &Event<'_>) -> Option<(i32, u64)> {
    match event.kind {
        EventKind::AsyncBegin { id } => Some((1, id)),
        EventKind::AsyncInstant { id } => Some((0, id)),
        EventKind::AsyncEnd { id } => Some((-1, id)),
        _ => None,
    }
}

/// The threads of a switch or wakeup, with their processes as far as it has them.
fn switched(kind: &Scheduling) -> [Option<(Koid, Option<Koid>)>; 2] {
    let of = |thread: &Thread| Some((thread.thread, Some(thread.process)));
    match kind {
        Scheduling::ContextSwitch { outgoing, incoming, .. } => {
            [Some((*outgoing, None)), Some((*incoming, None))]
        }
        Scheduling::ThreadWakeup { thread, .. } => [Some((*thread, None)), None],
        Scheduling::LegacyContextSwitch { outgoing, incoming, .. } => [of(outgoing), of(incoming)],
        Scheduling::FiberSwitch { .. } => [None, None],
    }
}
