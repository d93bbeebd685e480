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

/// Displays a length of time in nanoseconds, in a unit that suits it, with four digits.
///
/// ```
/// use trace_format::shown::Lasting;
///
/// let texts = [999.0, -2500.0, 1_234_567.0, 61e9].map(|nanos| Lasting(nanos).to_string());
/// assert_eq!(texts, ["999 ns", "-2.5 µs", "1.235 ms", "61 s"]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lasting(pub f64);

impl Display for Lasting {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
        let size = self.0.max(-self.0);
        let (factor, unit) = UNITS.into_iter().find(|(factor, _)| size >= *factor).unwrap_or((1.0, "ns"));
        write!(f, "{} {unit}", Digits(self.0 / factor))
    }
}

/// Displays a number with four digits, or with all digits of its whole part if that has more.
///
/// ```
/// use trace_format::shown::Digits;
///
/// assert_eq!([123_456.0, 12.345, 0.04, 7.0].map(|number| Digits(number).to_string()), ["123456", "12.35",
/// "0.04", "7"]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Digits(pub f64);

impl Display for Digits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let size = self.0.max(-self.0);
        let most = match size {
            _ if size < 10.0 => 3,
            _ if size < 100.0 => 2,
            _ if size < 1000.0 => 1,
            // Infinite, too.
            _ => return write!(f, "{:.0}", self.0),
        };
        let mut text = Short::default();
        write!(text, "{:.most$}", self.0)?;
        f.write_str(text.text().trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A text of a few characters.
#[derive(Default)]
struct Short {
    bytes: [u8; 12],
    length: usize,
}

impl Short {
    fn text(&self) -> &str {
        self.bytes.get(..self.length).and_then(|text| core::str::from_utf8(text).ok()).unwrap_or_default()
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
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

    #[test]
    fn numbers_have_four_digits() {
        for (nanos, text) in [
            (0.0, "0 ns"),
            (0.5, "0.5 ns"),
            (999.0, "999 ns"),
            (1000.0, "1 µs"),
            (1500.0, "1.5 µs"),
            (12_345_678.0, "12.35 ms"),
            (123_456_789.0, "123.5 ms"),
            (999_960_000.0, "1000 ms"),
            (1_999_999_999.0, "2 s"),
            (-2500.0, "-2.5 µs"),
            (4_321_987_000_000.0, "4322 s"),
            (f64::INFINITY, "inf s"),
        ] {
            assert_eq!(Lasting(nanos).to_string(), text);
        }
        for (number, text) in [(120.0, "120"), (123_456.0, "123456"), (0.04, "0.04"), (-0.1, "-0.1")] {
            assert_eq!(Digits(number).to_string(), text);
        }
        assert_eq!(Digits(1e300).to_string().len(), 301);
        assert_eq!(Digits(f64::NAN).to_string(), "NaN");
    }
}
