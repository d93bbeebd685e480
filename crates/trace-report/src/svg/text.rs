//! Text in a picture: escaped, cut to the room that it has, and never anything else than text.

use crate::xml;
use std::fmt::Write as _;
use trace_format::shown::Shown;

/// About how wide a character of the picture's text is, in pixels.
const CHARACTER: f64 = 6.3;
/// The longest name that a title repeats, in characters.
const MAX_TITLE: usize = 300;

/// Text for XML, with characters that a reader obeys or hides written out.
pub fn escaped(text: &str) -> String {
    xml::escaped(&Shown(text).to_string())
}

/// A name as part of a title.
pub fn title(name: &str) -> String {
    match name.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => escaped(&name[..end]) + "…",
        None => escaped(name),
    }
}

/// A name cut to so many pixels; none if there is no room for a character of it.
pub fn cut(name: &str, width: f64) -> Option<String> {
    let shown = Shown(name).to_string();
    let wide = |letter: char| if is_wide(letter) { 2.0 } else { 1.0 };
    let room = width / CHARACTER;
    let whole: f64 = shown.chars().map(wide).sum();
    if whole <= room {
        return (!shown.is_empty()).then(|| escaped(&shown));
    }
    let mut used = 1.0;
    let mut out = String::new();
    for letter in shown.chars() {
        used += wide(letter);
        if used > room {
            break;
        }
        out.push(letter);
    }
    let out = out.trim_end();
    (out.chars().count() >= 2).then(|| escaped(out) + "…")
}

/// Whether a character takes twice the room: ideographs, syllables and emoji.
fn is_wide(letter: char) -> bool {
    matches!(letter, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}')
}

/// A coordinate, to a hundredth of a pixel.
pub fn px(value: f64) -> String {
    let mut text = String::new();
    _ = write!(text, "{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_whatever_they_are() {
        assert_eq!(
            escaped("</title><script>\"&'\u{1}\u{202e}\n\u{ffff}"),
            "&lt;/title&gt;&lt;script&gt;&quot;&amp;'\\u{1}\\u{202e}\\n\u{fffd}"
        );
        assert_eq!(title(&"x".repeat(301)), format!("{}…", "x".repeat(300)));
    }

    #[test]
    fn names_are_cut_to_their_room() {
        for (name, width, expected) in [
            ("draw", 30.0, Some("draw")),
            ("draw", 24.0, Some("dr…")),
            ("draw", 15.0, None),
            ("a<b>", 30.0, Some("a&lt;b&gt;")),
            ("漢字漢字", 30.0, None),
            ("漢字漢字", 40.0, Some("漢字…")),
            ("", 99.0, None),
        ] {
            assert_eq!(cut(name, width).as_deref(), expected, "{name} {width}");
        }
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!([0.0, 1.5, 100.0, 12.345, -0.001].map(px), ["0", "1.5", "100", "12.35", "0"]);
    }
}
