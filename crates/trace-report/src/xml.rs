//! Text in XML.

/// A text in an attribute or an element. XML has no other control characters, not even escaped.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' => escaped.push_str("&#9;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/stats.md#junit
    #[test]
    fn texts_are_escaped() {
        let text = "a<b> & \"c\"\t\n\r\u{1}\u{ffff}é";
        assert_eq!(escaped(text), "a&lt;b&gt; &amp; &quot;c&quot;&#9;&#10;&#13;\u{fffd}\u{fffd}é");
    }
}
