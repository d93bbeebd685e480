//! Errors in files that users write: their position, and the key that may have been meant.

use crate::near;
use crate::tree::Wrong;
use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};
use trace_format::shown::Shown;

/// Maximum number of changes between similar keys.
const MAX_CHANGES: usize = 4;
/// The texts with which serde surrounds an unknown key.
const UNKNOWN: &str = "unknown field `";
const EXPECTED: &str = "`, expected ";

/// An error of a file with its line and column, at an offset into the file's text.
pub fn describe(text: &str, offset: Option<usize>, message: &str) -> String {
    let offset = offset.map(|offset| text.floor_char_boundary(offset));
    let Some((key, expected)) = unknown_key(message) else {
        return locate(text, offset, message);
    };
    // For a structure that is decided by one of its own members, serde gives the end.
    let is_key = |at: &usize| {
        let behind = text[at + key.len()..].trim_start_matches(['"', '\'']).trim_start();
        let before = text[..*at].chars().next_back();
        behind.starts_with([':', '=', '.', ']']) && before.is_none_or(|char| !char.is_alphanumeric())
    };
    let end = offset.map_or(text.len(), |offset| text.ceil_char_boundary(offset + key.len()));
    let found = text[..end].rmatch_indices(key).map(|(at, _)| at).find(is_key);
    let offset = found.map(|at| at - usize::from(text[..at].ends_with(['"', '\'']))).or(offset);
    locate(text, offset, &format!("unknown key {}{}", Shown(key), hint(key, &expected)))
}

/// The unknown key, and the known ones.
fn unknown_key(message: &str) -> Option<(&str, Vec<&str>)> {
    let (key, expected) = message.strip_prefix(UNKNOWN)?.split_once(EXPECTED)?;
    // Each between backticks.
    Some((key, expected.split('`').skip(1).step_by(2).collect()))
}

/// The key that may have been meant, as the end of a sentence; all known keys if none is similar.
fn hint(key: &str, expected: &[&str]) -> String {
    let plain = |text: &str| text.replace(['-', '_'], "");
    match near::nearest(key, expected.iter().copied(), MAX_CHANGES, plain) {
        Some(near) => format!("; did you mean {near}?"),
        None => format!("; the keys are {}", expected.join(", ")),
    }
}

fn locate(text: &str, offset: Option<usize>, message: &str) -> String {
    let Some(offset) = offset else {
        return message.to_owned();
    };
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|char| *char != '\n').count() + 1;
    format!("line {line}, column {column}: {message}")
}

/// Replaces comments, and commas before a closing bracket, by spaces, so that the position of everything else
/// is unchanged.
pub fn without_comments(text: &str) -> Result<String, Wrong> {
    let mut plain = text.as_bytes().to_vec();
    let mut blank = |range: std::ops::Range<usize>| {
        for byte in plain.get_mut(range).into_iter().flatten().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    };
    let mut scanner = Scanner::new(text, &ScannerOptions::default());
    let mut comma = None;
    while let Some(token) = scanner.scan().map_err(|error| Wrong::new(0, error.to_string()))? {
        let range = scanner.token_start()..scanner.token_end();
        match token {
            Token::CommentLine(_) | Token::CommentBlock(_) => blank(range),
            Token::Comma => comma = Some(range),
            Token::CloseBrace | Token::CloseBracket => comma.take().into_iter().for_each(&mut blank),
            _ => comma = None,
        }
    }
    String::from_utf8(plain).map_err(|error| Wrong::new(0, error.to_string()))
}

/// The offset of the position in a JSON parser's error.
pub fn offset(text: &str, error: &serde_json::Error) -> Option<usize> {
    let lines = text.split_inclusive('\n').take(error.line().checked_sub(1)?);
    Some((lines.map(str::len).sum::<usize>() + error.column()).min(text.len()))
}

/// The message of a JSON parser's error, without its position.
pub fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_has_its_place_and_a_near_one() {
        let text = "{\n  \"app\": \"durations\",\n  \"durations\": 1\n}";
        let message = "unknown field `durations`, expected one of `app`, `duration`";
        let expected = "line 3, column 3: unknown key durations; did you mean duration?";
        assert_eq!(describe(text, Some(text.len()), message), expected);
        let unlike = "unknown field `x`, expected `app` or `args`";
        assert_eq!(
            describe("x = 1", Some(0), unlike),
            "line 1, column 1: unknown key x; the keys are app, args"
        );
        let written_otherwise = "unknown field `buffer_size`, expected one of `buffer-size`, `command`";
        let expected = "line 2, column 1: unknown key buffer_size; did you mean buffer-size?";
        assert_eq!(describe("\nbuffer_size = 1", Some(1), written_otherwise), expected);
        assert_eq!(describe("\n\u{e4}b", Some(3), "wrong"), "line 2, column 2: wrong");
        assert_eq!(describe("", None, "wrong"), "wrong");
    }

    #[test]
    fn comments_and_last_commas_become_spaces() {
        let text = "{ // one\n \"a,]\": [1, /* \u{e4}\n */ 2, ], // two\n}";
        let plain = without_comments(text).unwrap();
        assert_eq!(plain.len(), text.len());
        assert_eq!(plain.matches('\n').count(), 3);
        let value: serde_json::Value = serde_json::from_str(&plain).unwrap();
        assert_eq!(value, serde_json::json!({"a,]": [1, 2]}));
        assert!(without_comments("/* open").is_err());
    }
}
