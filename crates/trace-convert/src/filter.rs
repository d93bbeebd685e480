//! Selection of events.

use regex::bytes::Regex;

/// Events are kept whose whole name matches one of the patterns, or whose category is one of these; without
/// either, all.
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
        let is_open = self.patterns.is_empty() && self.categories.is_empty();
        is_open
            || self.categories.iter().any(|wanted| wanted.as_bytes() == category)
            || self.patterns.iter().any(|pattern| pattern.is_match(name))
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
        ] {
            assert_eq!(filter.keeps(category.as_bytes(), name.as_bytes()), expected, "{category} {name}");
        }
        assert!(Filter::default().keeps(b"x", b"y"));
        assert!(Filter::new(&["(".to_owned()], &[]).unwrap_err().contains("unclosed"));
    }
}
