//! A statement in words, numbers, texts and signs: of those that are answered directly. All others have none.

/// A part of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A keyword or a name without quotes.
    Word(&'a str),
    /// A number without a sign.
    Number(&'a str),
    /// A text with its quotes.
    Text(&'a str),
    /// An operator, a parenthesis or a comma.
    Sign(&'a str),
}

impl<'a> Token<'a> {
    /// Whether it is this word, in capital letters or small ones.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own.eq_ignore_ascii_case(word))
    }

    /// As it stands in the statement.
    pub const fn text(&self) -> &'a str {
        match self {
            Self::Word(text) | Self::Number(text) | Self::Text(text) | Self::Sign(text) => text,
        }
    }
}

const SIGNS: [&str; 18] =
    ["<=", ">=", "<>", "!=", "==", "||", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", ",", ";"];
/// Comments, and operators that begin as another one does.
const OTHERS: [&str; 5] = ["--", "/*", "->", "<<", ">>"];

fn length_of_number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') {
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits((length + 1 + sign).min(bytes.len()));
        length += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    length
}

/// The length of a text with its quotes; a quote in it is doubled.
fn length_of_text(text: &str) -> Option<usize> {
    let mut from = 1;
    loop {
        from += text[from..].find('\'')? + 1;
        if !text[from..].starts_with('\'') {
            return Some(from);
        }
        from += 1;
    }
}

/// The parts of a statement; none if there are others than those.
pub fn tokens(mut rest: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let Some(first) = rest.chars().next() else { return Some(tokens) };
        let token = if first.is_ascii_digit() {
            let (number, behind) = rest.split_at(length_of_number(rest));
            if behind.starts_with(|letter: char| is_of_word(letter) || !letter.is_ascii()) {
                return None;
            }
            Token::Number(number)
        } else if is_of_word(first) {
            let length = rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len());
            // Other letters, and `$`, may be in a name, too; a text right behind is a blob.
            if rest[length..].starts_with(|next: char| !next.is_ascii() || matches!(next, '$' | '\'' | '.')) {
                return None;
            }
            Token::Word(&rest[..length])
        } else if first == '\'' {
            Token::Text(&rest[..length_of_text(rest)?])
        } else if OTHERS.iter().any(|other| rest.starts_with(other)) {
            return None;
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign))?;
            Token::Sign(&rest[..sign.len()])
        };
        rest = &rest[token.text().len()..];
        tokens.push(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_fall_into_parts() {
        use Token::{Number, Sign, Text, Word};
        assert_eq!(
            tokens("SELECT a_1,\n'it''s' || '' <= 1.5e-3;"),
            Some(vec![
                Word("SELECT"),
                Word("a_1"),
                Sign(","),
                Text("'it''s'"),
                Sign("||"),
                Text("''"),
                Sign("<="),
                Number("1.5e-3"),
                Sign(";"),
            ])
        );
        assert_eq!(tokens(" \t"), Some(Vec::new()));
        for other in [
            "'open", "a -- b", "/* */", "\"a\"", "[a]", "a->b", "0x10", "1_000", "x'00'", "s.a", "é", "aé",
            "?1", ":a", "1e",
        ] {
            assert_eq!(tokens(other), None, "{other}");
        }
    }
}
