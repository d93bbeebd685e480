//! Which records belong to the wanted categories and processes.

use super::Options;
use super::survey::{MAX_CATEGORIES, Processes};
use crate::filter::KeptBegins;
use foldhash::HashMap;
use trace_format::function::KERNEL;
use trace_format::units::{Koid, ProviderId};
use trace_model::Choice;
use trace_reader::item::Scheduling;
use trace_reader::{Event, Item, Mark, Resolved, Text};

/// The category with which context switches and wakeups are recorded; they have none of their own.
pub(super) const SCHEDULING: &str = "kernel:sched";

/// Selects records, in the order of the file.
pub(super) struct Selection<'a> {
    options: &'a Options,
    processes: &'a Processes,
    categories: Choice,
    /// Whether the categories are wanted that were asked for: a trace has few.
    known: HashMap<Box<[u8]>, bool>,
    begins: KeptBegins,
}

impl<'a> Selection<'a> {
    pub fn new(options: &'a Options, processes: &'a Processes) -> Self {
        let categories = Choice::of(&options.categories);
        Self { options, processes, categories, known: HashMap::default(), begins: KeptBegins::default() }
    }

    /// Whether a record is kept, as far as itself and its thread are concerned. Objects, definitions and
    /// what the collector has written are none of its business.
    //= docs/filter.md#selection
    pub fn keeps(&mut self, record: &Resolved<'_>) -> bool {
        if !self.options.selects() {
            return true;
        }
        let has_all_categories = self.options.categories.is_empty();
        match &record.item {
            Item::Event(event) => self.keeps_event(record.provider, event),
            Item::Scheduling { kind, .. } => {
                self.is_wanted(Text(SCHEDULING.as_bytes())) && self.keeps_switch(kind)
            }
            Item::Log { thread, .. } | Item::Profiler { thread, .. } => {
                has_all_categories && self.is_of(thread.process)
            }
            Item::Function(function) => {
                has_all_categories && (function.process == KERNEL || self.is_of(function.process))
            }
            Item::LargeBlob { category, event, .. } => {
                let is_of = match event {
                    Some((_, thread, _)) => self.is_of(thread.process),
                    None => self.is_at_home(record.provider),
                };
                is_of && self.is_wanted(*category)
            }
            Item::Blob { .. } => has_all_categories && self.is_at_home(record.provider),
            _ => true,
        }
    }

    fn keeps_event(&mut self, provider: ProviderId, event: &Event<'_>) -> bool {
        let is_of = self.is_of(event.thread.process);
        let is_mark = Mark::of(provider, event).is_some();
        let is_kept = is_mark || is_of && self.is_wanted(event.category);
        // Some writers leave the category out where a duration ends, or have another one.
        if is_of && !self.options.categories.is_empty() { self.begins.keeps(event, is_kept) } else { is_kept }
    }

    fn keeps_switch(&self, kind: &Scheduling) -> bool {
        let is_of = |thread: Koid| self.processes.is_of_wanted(thread);
        self.options.processes.is_empty()
            || match kind {
                Scheduling::ContextSwitch { outgoing, incoming, .. } => is_of(*outgoing) || is_of(*incoming),
                Scheduling::ThreadWakeup { thread, .. } => is_of(*thread),
                Scheduling::LegacyContextSwitch { outgoing, incoming, .. } => {
                    self.is_of(outgoing.process) || self.is_of(incoming.process)
                }
                // Its fibers belong to no thread that is known.
                Scheduling::FiberSwitch { .. } => false,
            }
    }

    fn is_wanted(&mut self, category: Text<'_>) -> bool {
        if self.categories.is_all() {
            return true;
        }
        if let Some(is_wanted) = self.known.get(category.as_bytes()) {
            return *is_wanted;
        }
        let is_wanted = self.categories.has_category(&category.to_str());
        if self.known.len() < MAX_CATEGORIES {
            self.known.insert(category.as_bytes().into(), is_wanted);
        }
        is_wanted
    }

    fn is_of(&self, process: Koid) -> bool {
        self.options.processes.is_empty() || self.processes.wanted.contains(&process)
    }

    /// Whether a provider is that of a wanted process.
    pub fn is_at_home(&self, provider: ProviderId) -> bool {
        self.processes
            .homes
            .get(&provider)
            .map_or(self.options.processes.is_empty(), |home| self.is_of(*home))
    }
}
