//! Untrusted text made safe to display: in one line, and without characters that control a terminal or
//! disguise the text.

use core::fmt::{self, Display, Formatter, Write};

/// Displays text with escapes for control characters, for characters that change the direction of text, and
/// for invisible ones; everything else stays as it is.
///
/// ```
/// use trace_format::shown::Shown;
///
/// assert_eq!(Shown("größer\n\u{1b}]0;x\u{7}").to_string(), r"größer\n\u{1b}]0;x\u{7}");
/// ```
//= docs/dump.md#names-of-others
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a str);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut escaper = Escaper::default();
        self.0.chars().try_for_each(|char| escaper.write(char, f))
    }
}

/// Writes one character after the other, with escapes where they are needed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Escaper {
    previous: Option<char>,
}

impl Escaper {
    /// Writes the next character.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, char: char, out: &mut impl Write) -> fmt::Result {
        let previous = self.previous.replace(char);
        match char {
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            _ if is_hidden(previous, char) => write!(out, "{}", char.escape_unicode()),
            _ => out.write_char(char),
        }
    }
}

/// Whether a character has an effect other than its own display, given the character before it. Joiners are
/// part of words in some scripts, and of emoji sequences; after ASCII they only hide.
#[must_use]
pub fn is_hidden(previous: Option<char>, char: char) -> bool {
    match char {
        // Variation of the picture before, zero-width joiner and non-joiner.
        '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0d}' => previous.is_none_or(|before| before.is_ascii()),
        // Soft hyphen, grapheme joiner, Arabic letter mark, fillers of Hangul, vowel separator.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' => {
            true
        }
        // Zero-width space, marks of direction, separators of lines and paragraphs, embeddings and overrides.
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        // Word joiner, invisible operators, isolates, deprecated formats.
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' => true,
        // Tags and what is not assigned beside them.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => char.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    //= docs/dump.md#names-of-others
    #[test]
    fn what_a_terminal_obeys_or_hides_is_escaped() {
        for (text, shown) in [
            ("\u{1b}]52;c;aGk=\u{7}", "\\u{1b}]52;c;aGk=\\u{7}"),
            ("a\nb\rc\td", "a\\nb\\rc\\td"),
            ("\u{0}\u{7f}\u{9b}31m", "\\u{0}\\u{7f}\\u{9b}31m"),
            ("abc\u{202e}cba\u{202c}\u{2066}x\u{2069}", "abc\\u{202e}cba\\u{202c}\\u{2066}x\\u{2069}"),
            ("\u{200e}\u{200f}\u{61c}\u{2028}\u{2029}", "\\u{200e}\\u{200f}\\u{61c}\\u{2028}\\u{2029}"),
            ("ad\u{200b}min\u{feff}\u{2060}\u{ad}", "ad\\u{200b}min\\u{feff}\\u{2060}\\u{ad}"),
            ("ad\u{200d}min\u{200c}", "ad\\u{200d}min\\u{200c}"),
            ("\u{200d}x\u{e0041}", "\\u{200d}x\\u{e0041}"),
        ] {
            assert_eq!(Shown(text).to_string(), shown);
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "",
            "render.frame <main> \"x\" \\n {y}",
            "größer, naïve, Ελληνικά, русский, 日本語, 한국어, עברית, العربية",
            // Joiners within words and pictures.
            "می\u{200c}خواهم क्\u{200d}ष 👩\u{200d}💻 ❤\u{fe0f}",
            "e\u{301}",
        ] {
            assert_eq!(Shown(text).to_string(), text);
        }
    }
}
