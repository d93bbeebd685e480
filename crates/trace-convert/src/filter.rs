//! Selection of events.

mod late;

use foldhash::HashMap;
use late::LateEnds;
use regex::bytes::Regex;
use std::borrow::Cow;
use std::io::{self, Read};
use trace_format::event::EventKind;
use trace_model::{Chosen, OperationKey, Pairing, token};
use trace_reader::item::{Koid, ProfilerKind, Scheduling};
use trace_reader::{Disorder, Event, Item, Text, TextKey, Thread, ThreadNumbers, Time};

/// Threads that are distinguished; what belongs to others is kept or not by itself.
const MAX_THREADS: usize = 1 << 20;

/// What of a trace is kept: what is chosen, and in place of its category an event may have a name that
/// matches one of the patterns.
//= docs/catapult.md#filters
#[derive(Clone, Debug, Default)]
pub struct Filter {
    patterns: Vec<Regex>,
    chosen: Option<Chosen>,
}

/// What is no regular expression.
#[derive(Debug, thiserror::Error)]
#[error("{pattern:?}: {error}")]
pub struct BadPattern {
    /// The text.
    pub pattern: String,
    /// The error in it; a part of the text, and no source.
    pub error: regex::Error,
}

impl Filter {
    /// A filter of regular expressions and what is chosen.
    ///
    /// # Errors
    /// The error in a pattern.
    pub fn new(patterns: &[String], chosen: Option<Chosen>) -> Result<Self, BadPattern> {
        let compile = |pattern: &String| {
            let compiled = Regex::new(&format!("^(?:{pattern})$"));
            compiled.map_err(|error| BadPattern { pattern: pattern.clone(), error })
        };
        let patterns = patterns.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { patterns, chosen })
    }

    /// A filter of what is chosen; of everything, if nothing is said.
    #[must_use]
    pub const fn of(chosen: Option<Chosen>) -> Self {
        Self { patterns: Vec::new(), chosen }
    }

    /// Whether everything is kept.
    #[inline]
    #[must_use]
    pub const fn keeps_all(&self) -> bool {
        self.patterns.is_empty() && self.chosen.is_none()
    }

    /// Whether an event with a category and a name is kept, as far as these are concerned: by its texts, or
    /// by them as they are shown where they are no UTF-8.
    pub(crate) fn has_texts(&self, category: Text<'_>, name: Text<'_>) -> bool {
        let shown = name.to_str();
        let by_pattern = || {
            let is_match = |name: &[u8]| self.patterns.iter().any(|pattern| pattern.is_match(name));
            is_match(name.as_bytes()) || matches!(shown, Cow::Owned(_)) && is_match(shown.as_bytes())
        };
        let Some(chosen) = &self.chosen else { return self.patterns.is_empty() || by_pattern() };
        let by_category = || chosen.has_category(&category.to_str());
        let is_wanted = match (self.patterns.is_empty(), chosen.has_all_categories()) {
            (true, _) => by_category(),
            (false, true) => by_pattern(),
            (false, false) => by_pattern() || by_category(),
        };
        is_wanted && chosen.has_name(&shown)
    }

    /// Whether something that has only a name is kept, as far as that is concerned.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.has_name(name))
    }

    pub(crate) fn has_thread(&self, thread: Thread) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.has_thread(thread))
    }

    pub(crate) fn has_thread_number(&self, thread: Koid) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.has_thread_number(thread))
    }

    pub(crate) fn has_time(&self, at: u64) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.has_time(at))
    }
}

/// How many answers are remembered, of each kind.
const MAX_ANSWERS: usize = 1 << 16;

/// A filter at work, on the records of an archive in their order.
#[derive(Debug, Default)]
pub struct Selected {
    filter: Filter,
    begins: KeptBegins,
    late: Option<LateEnds>,
    texts: HashMap<(TextKey, TextKey), bool>,
    threads: HashMap<Thread, bool>,
    last_thread: Option<(Thread, bool)>,
}

impl Selected {
    /// A filter that has seen nothing.
    #[must_use]
    pub fn new(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// A filter for a trace that is read a second time, after its order was found. Ends that are out of order
    /// belong to their begins in the order of times.
    ///
    /// # Errors
    /// The archive cannot be read, or what had to be sorted could not be kept in a file.
    pub fn in_time(filter: Filter, disorder: Disorder, archive: impl Read) -> io::Result<Self> {
        let mut selected = Self::new(filter);
        selected.late = LateEnds::find(archive, disorder, &mut selected)?;
        Ok(selected)
    }

    /// Whether an event is kept as far as it does not depend on its begin.
    pub fn keeps_itself(&mut self, event: &Event<'_>) -> bool {
        self.filter.keeps_all()
            || self.filter.has_time(event.time.nanos().0)
                && self.has_texts(event.category, event.name, event.keys)
                && self.has_thread(event.thread)
    }

    /// Whether an event is kept. Takes each event, in the order of the archive: the end of something is kept
    /// if its begin was.
    #[inline]
    pub fn keeps(&mut self, event: &Event<'_>) -> bool {
        self.filter.keeps_all() || self.asks(event)
    }

    #[inline(never)]
    fn asks(&mut self, event: &Event<'_>) -> bool {
        let is_kept = self.keeps_itself(event);
        let late = self.late.as_mut().and_then(|late| late.keeps(event));
        late.unwrap_or_else(|| self.begins.keeps(event, is_kept))
    }

    /// Whether another record is kept; none of those that have neither a time nor a name.
    //= docs/selecting.md#other-records
    #[inline]
    pub fn keeps_record(&mut self, item: &Item<'_>) -> Option<bool> {
        if self.filter.keeps_all() { Some(true) } else { self.asks_of_record(item) }
    }

    #[inline(never)]
    fn asks_of_record(&mut self, item: &Item<'_>) -> Option<bool> {
        Some(match item {
            Item::Event(event) => self.keeps(event),
            Item::Log { time, thread, .. } => self.keeps_at(*time, *thread),
            Item::Profiler { time, thread, kind: ProfilerKind::Backtrace { .. } } => {
                self.keeps_at(*time, *thread)
            }
            Item::Scheduling { time, kind, .. } => {
                let has = |thread: Koid| self.filter.has_thread_number(thread);
                self.filter.has_time(time.nanos().0)
                    && match kind {
                        Scheduling::ContextSwitch { outgoing, incoming, .. }
                        | Scheduling::FiberSwitch { outgoing, incoming } => has(*outgoing) || has(*incoming),
                        Scheduling::ThreadWakeup { thread, .. } => has(*thread),
                        Scheduling::LegacyContextSwitch { outgoing, incoming, .. } => {
                            self.has_thread(*outgoing) || self.has_thread(*incoming)
                        }
                    }
            }
            Item::LargeBlob { category, name, event, .. } => {
                self.filter.has_texts(*category, *name)
                    && event.is_none_or(|(time, thread, _)| self.keeps_at(time, thread))
            }
            Item::Blob { name, .. } => self.filter.has_name(&name.to_str()),
            _ => return None,
        })
    }

    fn keeps_at(&mut self, time: Time, thread: Thread) -> bool {
        self.filter.has_time(time.nanos().0) && self.has_thread(thread)
    }

    fn has_texts(&mut self, category: Text<'_>, name: Text<'_>, keys: (TextKey, TextKey)) -> bool {
        if keys.0 == TextKey::NONE || keys.1 == TextKey::NONE {
            return self.filter.has_texts(category, name);
        }
        if self.texts.len() >= MAX_ANSWERS {
            self.texts.clear();
        }
        *self.texts.entry(keys).or_insert_with(|| self.filter.has_texts(category, name))
    }

    fn has_thread(&mut self, thread: Thread) -> bool {
        if let Some((last, has)) = self.last_thread
            && last == thread
        {
            return has;
        }
        if self.threads.len() >= MAX_ANSWERS {
            self.threads.clear();
        }
        let has = *self.threads.entry(thread).or_insert_with(|| self.filter.has_thread(thread));
        self.last_thread = Some((thread, has));
        has
    }
}

/// Which begins were kept. An end is kept if its begin was, whatever its own name and category.
//= docs/catapult.md#filters
#[derive(Debug, Default)]
pub(crate) struct KeptBegins {
    numbers: ThreadNumbers,
    pairing: Pairing<bool>,
}

impl KeptBegins {
    /// Whether an event is kept, of which that is known as far as it does not depend on its begin.
    pub fn keeps(&mut self, event: &Event<'_>, is_kept: bool) -> bool {
        let Self { numbers, pairing } = self;
        let mut number = || numbers.number(event.thread, MAX_THREADS);
        match event.kind {
            EventKind::DurationBegin if event.ending().is_some() => {}
            EventKind::DurationBegin => {
                number().map(|thread| pairing.begin(thread, is_kept));
            }
            EventKind::DurationEnd => {
                let begun = number().and_then(|thread| pairing.end(thread).begun());
                return begun.unwrap_or(is_kept);
            }
            EventKind::AsyncBegin { id } => {
                pairing.begin_operation(&OperationKey::of(event, id), token(event.name), is_kept);
            }
            EventKind::AsyncEnd { id } => {
                let begun = pairing.end_operation(&OperationKey::of(event, id), token(event.name)).begun();
                return begun.unwrap_or(is_kept);
            }
            _ => {}
        }
        is_kept
    }
}

/// Filters of tests.
#[cfg(test)]
pub(crate) mod testing {
    use super::Filter;
    use trace_model::{Choice, Selection, Survey};

    /// Of regular expressions and categories.
    pub fn filter(patterns: &[&str], categories: &[&str]) -> Filter {
        let selection = Selection { categories: Choice::of(categories), ..Selection::default() };
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Filter::new(&patterns, selection.choose(Survey::default()).unwrap()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::filter;
    use super::*;

    //= docs/catapult.md#filters
    #[test]
    fn the_whole_name_matches_or_the_category_is_equal() {
        let filter = filter(&["dr.w", "a|bc"], &["net"]);
        for (category, name, expected) in [
            ("app", "draw", true),
            ("app", "redraw", false),
            ("app", "drawn", false),
            ("app", "bc", true),
            ("app", "abc", false),
            ("net", "anything", true),
            ("net:tcp", "anything", false),
            // One of several categories.
            ("disk,net", "anything", true),
            ("disk,nets", "anything", false),
        ] {
            let found = filter.has_texts(Text(category.as_bytes()), Text(name.as_bytes()));
            assert_eq!(found, expected, "{category} {name}");
        }
        assert!(Filter::default().has_texts(Text(b"x"), Text(b"y")) && Filter::default().keeps_all());
        // Names that are no UTF-8 have what is shown of them, too.
        let shown = super::testing::filter(&["a.b"], &["n\u{fffd}"]);
        let has = |category: &[u8], name: &[u8]| shown.has_texts(Text(category), Text(name));
        assert!(has(b"app", b"a\xffb") && has(b"n\xff", b"x") && has(b"m,n\xff", b"x"));
        assert!(!has(b"app", b"a\xff") && !has(b"n", b"x"));
        let bytes = super::testing::filter(&[r"a(?-u:\xff)b"], &[]);
        assert!(bytes.has_texts(Text(b"app"), Text(b"a\xffb")));
        assert!(Filter::new(&["(".to_owned()], None).unwrap_err().to_string().contains("unclosed"));
    }
}
