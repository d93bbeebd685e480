//! Patterns of names, in which `*` stands for any text.

use std::fmt;

/// A pattern of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pattern(Vec<Piece>);

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    /// This text.
    Text(String),
    /// Any text.
    Any,
}

impl Pattern {
    /// The pattern of some pieces; those that follow one another are joined.
    #[must_use]
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Self {
        let mut joined: Vec<Piece> = Vec::new();
        for piece in pieces {
            match (joined.last_mut(), piece) {
                (_, Piece::Text(text)) if text.is_empty() => {}
                (Some(Piece::Any), Piece::Any) => {}
                (Some(Piece::Text(last)), Piece::Text(text)) => last.push_str(&text),
                (_, piece) => joined.push(piece),
            }
        }
        Self(joined)
    }

    /// The pattern in a text whose asterisks stand for any text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let parts = text.split('*').map(|part| Piece::Text(part.to_owned()));
        Self::new(
            parts
                .enumerate()
                .flat_map(|(place, part)| (place > 0).then_some(Piece::Any).into_iter().chain([part])),
        )
    }

    /// Its pieces.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// The only text that it matches, if there is just one.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        match &*self.0 {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it matches a text.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let mut rest = text;
        let mut is_anywhere = false;
        let last = self.0.len().wrapping_sub(1);
        for (place, piece) in self.0.iter().enumerate() {
            match piece {
                Piece::Any => is_anywhere = true,
                Piece::Text(wanted) if is_anywhere && place == last => {
                    return rest.ends_with(wanted.as_str());
                }
                Piece::Text(wanted) => {
                    let found = if is_anywhere { rest.find(wanted.as_str()) } else { None };
                    let found =
                        found.or_else(|| (!is_anywhere && rest.starts_with(wanted.as_str())).then_some(0));
                    let Some(found) = found else { return false };
                    rest = &rest[found + wanted.len()..];
                    is_anywhere = false;
                }
            }
        }
        is_anywhere || rest.is_empty()
    }

    /// Whether it matches a category, or one of several that an event lists separated by commas.
    #[must_use]
    pub fn matches_category(&self, category: &str) -> bool {
        self.matches(category) || category.contains(',') && category.split(',').any(|one| self.matches(one))
    }
}

/// Characters that stand for themselves in a name without quotes.
fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || "_-/+#@$&|~[]{}'`^,;?".contains(char)
}

impl fmt::Display for Pattern {
    /// As the language of assertions writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pieces().is_empty() {
            return write!(f, "\"\"");
        }
        self.pieces().iter().try_for_each(|piece| match piece {
            Piece::Any => write!(f, "*"),
            Piece::Text(text) if text.chars().all(is_plain) => write!(f, "{text}"),
            Piece::Text(text) => write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asterisks_stand_for_any_text() {
        for (pattern, text, expected) in [
            ("frame", "frame", true),
            ("frame", "frames", false),
            ("frame", "a frame", false),
            ("frame*", "frames", true),
            ("*frame", "a frame", true),
            ("f*e", "frame", true),
            ("f*e", "fe", true),
            ("f*e", "f", false),
            ("*a*a*", "banana", true),
            ("*a*a", "banan", false),
            ("b*a*a", "banana", true),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("a*b*c", "abbc", true),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(Pattern::of(pattern).matches(text), expected, "{pattern} {text}");
        }
        assert!(Pattern::of("net*").matches_category("app,net:tcp"));
        assert!(!Pattern::of("tcp").matches_category("app,net:tcp"));
        assert_eq!((Pattern::of("a").exact(), Pattern::of("a*").exact()), (Some("a"), None));
    }
}
