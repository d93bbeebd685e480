//! Names in folded stacks.
//!
//! Readers split a line at its last space, and then what is before it once more, where that ends in a number:
//! such a line would have two counts. They remove spaces at the ends, and skip empty names.
//= docs/folded.md#names

/// What stands for a name without letters.
const NO_NAME: &str = "(no name)";

/// Adds a name to a stack, so that readers find the same name in it.
pub fn push(stack: &mut String, name: &str) {
    let start = stack.len();
    let plain = |letter: char| match letter {
        ';' => ':',
        letter if letter.is_control() || letter.is_whitespace() => ' ',
        letter => letter,
    };
    stack.extend(name.chars().map(plain));
    let label = &stack[start..];
    let inner = label.trim_matches(' ');
    if inner.is_empty() {
        stack.truncate(start);
        stack.push_str(NO_NAME);
        return;
    }
    let (before, behind) =
        (label.len() - label.trim_start_matches(' ').len(), label.trim_end_matches(' ').len());
    let number = inner.rfind(' ').filter(|space| is_number(&inner[space + 1..]));
    let is_comment = start == 0 && label.starts_with('#');
    if before == 0 && behind == label.len() && number.is_none() && !is_comment {
        return;
    }
    let protected: String = label
        .char_indices()
        .map(|(at, letter)| match at {
            0 if is_comment => '_',
            at if at < before || at >= behind || number.is_some_and(|space| at == before + space) => '_',
            _ => letter,
        })
        .collect();
    stack.truncate(start);
    stack.push_str(&protected);
}

/// Whether readers take a text for a count.
fn is_number(text: &str) -> bool {
    let mut parts = text.splitn(2, '.');
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(|whole| !whole.is_empty() && is_digits(whole))
        && parts.next().is_none_or(is_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/folded.md#names
    #[test]
    fn names_are_as_readers_find_them_again() {
        for (name, expected) in [
            ("draw tile", "draw tile"),
            ("a;b\nc\td", "a:b c d"),
            (" both ends  ", "_both ends__"),
            ("frame 12", "frame_12"),
            ("frame 12.5", "frame_12.5"),
            ("frame 12. ", "frame_12._"),
            ("frame 1.2.3", "frame 1.2.3"),
            ("frame 12b", "frame 12b"),
            ("3 of 4", "3 of_4"),
            ("12", "12"),
            ("", "(no name)"),
            (" \u{2028}\r\n", "(no name)"),
            ("größe\u{a0}7", "größe_7"),
            ("#1", "#1"),
        ] {
            let mut stack = "app;".to_owned();
            push(&mut stack, name);
            assert_eq!(stack, format!("app;{expected}"), "{name:?}");
        }
        let mut first = String::new();
        push(&mut first, "# comment");
        assert_eq!(first, "_ comment");
    }
}
