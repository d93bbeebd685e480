//! Selection of events.

use regex::bytes::Regex;
use std::borrow::Cow;
use trace_format::event::EventKind;
use trace_model::{OperationKey, Pairing, token};
use trace_reader::{Event, ThreadNumbers};

/// Threads that are distinguished; what belongs to others is kept or not by itself.
const MAX_THREADS: usize = 1 << 20;

/// Events are kept whose whole name matches one of the patterns, or one of whose categories is one of these;
/// without either, all.
//= docs/catapult.md#filters
#[derive(Clone, Debug, Default)]
pub struct Filter {
    patterns: Vec<Regex>,
    categories: Vec<String>,
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
    /// A filter of regular expressions and categories.
    ///
    /// # Errors
    /// The error in a pattern.
    pub fn new(patterns: &[String], categories: &[String]) -> Result<Self, BadPattern> {
        let compile = |pattern: &String| {
            let compiled = Regex::new(&format!("^(?:{pattern})$"));
            compiled.map_err(|error| BadPattern { pattern: pattern.clone(), error })
        };
        let patterns = patterns.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { patterns, categories: categories.to_vec() })
    }

    /// Whether an event is kept: by its names, or by them as they are shown where they are no UTF-8.
    pub(crate) fn keeps(&self, category: &[u8], name: &[u8]) -> bool {
        self.keeps_all() || self.matches(category, name) || {
            let [category, name] = [category, name].map(String::from_utf8_lossy);
            let is_shown_otherwise = matches!(category, Cow::Owned(_)) || matches!(name, Cow::Owned(_));
            is_shown_otherwise && self.matches(category.as_bytes(), name.as_bytes())
        }
    }

    fn matches(&self, category: &[u8], name: &[u8]) -> bool {
        let is_wanted = |category: &[u8]| self.categories.iter().any(|wanted| wanted.as_bytes() == category);
        is_wanted(category)
            || category.contains(&b',') && category.split(|byte| *byte == b',').any(is_wanted)
            || self.patterns.iter().any(|pattern| pattern.is_match(name))
    }

    /// Whether all events are kept.
    #[inline]
    pub(crate) const fn keeps_all(&self) -> bool {
        self.patterns.is_empty() && self.categories.is_empty()
    }
}

/// A filter at work.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub filter: Filter,
    kept: KeptBegins,
}

impl Selection {
    pub fn new(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Whether an event is kept as far as it does not depend on its begin.
    pub fn keeps_itself(&self, event: &Event<'_>) -> bool {
        self.filter.keeps(event.category.as_bytes(), event.name.as_bytes())
    }

    /// Whether an event is kept. Takes each event, in the order of the archive.
    #[inline]
    pub fn keeps(&mut self, event: &Event<'_>) -> bool {
        self.filter.keeps_all() || {
            let is_kept = self.keeps_itself(event);
            self.kept.keeps(event, is_kept)
        }
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
        // Names that are no UTF-8 have what is shown of them, too.
        let shown = Filter::new(&["a.b".to_owned()], &["n\u{fffd}".to_owned()]).unwrap();
        assert!(
            shown.keeps(b"app", b"a\xffb") && shown.keeps(b"n\xff", b"x") && shown.keeps(b"m,n\xff", b"x")
        );
        assert!(!shown.keeps(b"app", b"a\xff") && !shown.keeps(b"n", b"x"));
        assert!(Filter::new(&[r"a(?-u:\xff)b".to_owned()], &[]).unwrap().keeps(b"app", b"a\xffb"));
        assert!(Filter::new(&["(".to_owned()], &[]).unwrap_err().to_string().contains("unclosed"));
    }
}
