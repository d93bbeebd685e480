//! Which records are selected, asked once for each category and name, and once for each thread.
//= docs/check.md#a-part-of-a-trace

use foldhash::fast::RandomState;
use std::collections::HashMap;
use trace_model::Chosen;
use trace_reader::item::{Event, Item, Koid, Scheduling, Time};
use trace_reader::{TextKey, Thread};

/// How many answers are remembered, of each kind.
const MAX_ANSWERS: usize = 1 << 16;

#[derive(Debug)]
pub(super) struct Selected<'a> {
    chosen: Option<&'a Chosen>,
    texts: HashMap<(TextKey, TextKey), bool, RandomState>,
    threads: HashMap<Thread, bool, RandomState>,
}

impl<'a> Selected<'a> {
    pub fn new(chosen: Option<&'a Chosen>) -> Self {
        Self { chosen, texts: HashMap::default(), threads: HashMap::default() }
    }

    /// Whether all are.
    pub const fn is_all(&self) -> bool {
        self.chosen.is_none()
    }

    /// Whether one is, as far as it has what is asked for.
    pub fn has(&mut self, item: &Item<'_>) -> bool {
        self.chosen.is_none_or(|chosen| self.asks(chosen, item))
    }

    #[inline(never)]
    fn asks(&mut self, chosen: &Chosen, item: &Item<'_>) -> bool {
        match item {
            Item::Event(event) => {
                self.has_place(chosen, event.time, event.thread) && self.has_texts(chosen, event)
            }
            Item::Log { time, thread, .. } | Item::Profiler { time, thread, .. } => {
                self.has_place(chosen, *time, *thread)
            }
            Item::LargeBlob { category, name, event: Some((time, thread, _)), .. } => {
                self.has_place(chosen, *time, *thread)
                    && chosen.has_category(&category.to_str())
                    && chosen.has_name(&name.to_str())
            }
            Item::Scheduling { time, kind, .. } => {
                let has = |thread: Koid| chosen.has_thread_number(thread);
                chosen.has_time(time.nanos().0)
                    && match kind {
                        Scheduling::ContextSwitch { outgoing, incoming, .. }
                        | Scheduling::FiberSwitch { outgoing, incoming } => has(*outgoing) || has(*incoming),
                        Scheduling::ThreadWakeup { thread, .. } => has(*thread),
                        Scheduling::LegacyContextSwitch { outgoing, incoming, .. } => {
                            chosen.has_thread(*outgoing) || chosen.has_thread(*incoming)
                        }
                    }
            }
            _ => true,
        }
    }

    fn has_place(&mut self, chosen: &Chosen, time: Time, thread: Thread) -> bool {
        if self.threads.len() >= MAX_ANSWERS {
            self.threads.clear();
        }
        chosen.has_time(time.nanos().0)
            && *self.threads.entry(thread).or_insert_with(|| chosen.has_thread(thread))
    }

    fn has_texts(&mut self, chosen: &Chosen, event: &Event<'_>) -> bool {
        let Event { category, name, keys, .. } = event;
        let ask = || chosen.has_category(&category.to_str()) && chosen.has_name(&name.to_str());
        if keys.0 == TextKey::NONE || keys.1 == TextKey::NONE {
            return ask();
        }
        if self.texts.len() >= MAX_ANSWERS {
            self.texts.clear();
        }
        *self.texts.entry(*keys).or_insert_with(ask)
    }
}
