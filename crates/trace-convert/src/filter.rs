//! Selection of events.

use foldhash::fast::RandomState;
use regex::bytes::Regex;
use std::collections::HashMap;
use trace_format::event::EventKind;
use trace_model::{OperationKey, token};
use trace_reader::{Event, Thread};

/// Begins without an end so far whose selection is remembered.
const MAX_OPEN: usize = 500_000;

/// Events are kept whose whole name matches one of the patterns, or one of whose categories is one of these;
/// without either, all.
//= docs/catapult.md#filters
#[derive(Clone, Debug, Default)]
pub struct Filter {
    patterns: Vec<Regex>,
    categories: Vec<String>,
}

impl Filter {
    /// A filter of regular expressions and categories.
    ///
    /// # Errors
    /// The error in a pattern.
    pub fn new(patterns: &[String], categories: &[String]) -> Result<Self, String> {
        let compile = |pattern: &String| {
            Regex::new(&format!("^(?:{pattern})$")).map_err(|error| format!("{pattern:?}: {error}"))
        };
        let patterns = patterns.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { patterns, categories: categories.to_vec() })
    }

    /// Whether an event is kept.
    pub(crate) fn keeps(&self, category: &[u8], name: &[u8]) -> bool {
        let is_wanted = |category: &[u8]| self.categories.iter().any(|wanted| wanted.as_bytes() == category);
        self.keeps_all()
            || is_wanted(category)
            || category.contains(&b',') && category.split(|byte| *byte == b',').any(is_wanted)
            || self.patterns.iter().any(|pattern| pattern.is_match(name))
    }

    /// Whether all events are kept.
    #[inline]
    pub(crate) const fn keeps_all(&self) -> bool {
        self.patterns.is_empty() && self.categories.is_empty()
    }
}

/// A filter at work: an end is kept if its begin was, whatever its own name and category.
//= docs/catapult.md#filters
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub filter: Filter,
    /// Of each thread, whether each open begin was kept, and how many there was no room for.
    threads: HashMap<Thread, (Vec<bool>, u64), RandomState>,
    /// Of each operation, the names of its open begins, and whether each was kept.
    operations: HashMap<OperationKey, Vec<(u64, bool)>, RandomState>,
    open: usize,
}

impl Selection {
    pub fn new(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Whether an event is kept. Takes each event, in the order of the archive.
    #[inline]
    pub fn keeps(&mut self, event: &Event<'_>) -> bool {
        self.filter.keeps_all() || self.selects(event)
    }

    fn selects(&mut self, event: &Event<'_>) -> bool {
        let is_kept = self.filter.keeps(event.category.as_bytes(), event.name.as_bytes());
        match event.kind {
            EventKind::DurationBegin => {
                let (open, refused) = self.threads.entry(event.thread).or_default();
                if *refused > 0 || self.open >= MAX_OPEN {
                    *refused += 1;
                } else {
                    self.open += 1;
                    open.push(is_kept);
                }
                is_kept
            }
            EventKind::DurationEnd => {
                let Some((open, refused)) = self.threads.get_mut(&event.thread) else { return is_kept };
                if let Some(less) = refused.checked_sub(1) {
                    *refused = less;
                    return is_kept;
                }
                let begin = open.pop();
                self.open -= usize::from(begin.is_some());
                begin.unwrap_or(is_kept)
            }
            EventKind::AsyncBegin { id } => {
                if self.open < MAX_OPEN {
                    self.open += 1;
                    let open = self.operations.entry(OperationKey::of(event, id)).or_default();
                    open.push((token(event.name), is_kept));
                }
                is_kept
            }
            EventKind::AsyncEnd { id } => {
                let key = OperationKey::of(event, id);
                let Some(open) = self.operations.get_mut(&key) else { return is_kept };
                let name = token(event.name);
                let place = open.iter().rposition(|open| open.0 == name).or(open.len().checked_sub(1));
                let begin = place.map(|place| open.remove(place).1);
                self.open -= usize::from(begin.is_some());
                if open.is_empty() {
                    self.operations.remove(&key);
                }
                begin.unwrap_or(is_kept)
            }
            _ => is_kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/catapult.md#filters
    #[test]
    fn the_whole_name_matches_or_the_category_is_equal() {
        let filter = Filter::new(&["dr.w".to_owned(), "a|bc".to_owned()], &["net".to_owned()]).unwrap();
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
            assert_eq!(filter.keeps(category.as_bytes(), name.as_bytes()), expected, "{category} {name}");
        }
        assert!(Filter::default().keeps(b"x", b"y"));
        assert!(Filter::new(&["(".to_owned()], &[]).unwrap_err().contains("unclosed"));
    }
}
