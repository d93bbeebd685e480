//! Repairs almost valid JSON, as other programs write it and other readers accept it.
//= docs/import.md#what-is-no-json

use crate::import::scanner::pass_space;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Words of other languages, in small letters, and the values that they stand for. Numbers that are not
/// finite have the texts that Chrome writes.
const WORDS: [(&str, &str); 12] = [
    ("true", "true"),
    ("false", "false"),
    ("null", "null"),
    ("none", "null"),
    ("nil", "null"),
    ("undefined", "null"),
    ("nan", "\"NaN\""),
    ("-nan", "\"NaN\""),
    ("inf", "\"Infinity\""),
    ("infinity", "\"Infinity\""),
    ("-inf", "\"-Infinity\""),
    ("-infinity", "\"-Infinity\""),
];

/// Larger values are not repaired: the result may be six times as large.
pub(super) const MAX_MENDED_BYTES: usize = 1 << 20;
/// Values are not repaired that are deeper in each other.
const MAX_DEPTH: usize = 100;

/// A repaired value.
pub(super) struct Mended {
    pub json: String,
    /// Members without a value, or with a comma in it.
    pub left_out: u64,
    /// How much of the text it is. There may be further events behind it.
    pub length: usize,
}

/// Repairs an event; none if it has nothing to repair, or cannot be repaired.
pub(super) fn mended(event: &[u8]) -> Option<Mended> {
    if event.len() > MAX_MENDED_BYTES {
        return None;
    }
    let text = String::from_utf8_lossy(event);
    let mut mended = Mender::mend(&text, false).or_else(|| Mender::mend(&text, true))?;
    if mended.json.as_bytes() == event {
        return None;
    }
    if mended.length == text.len() {
        mended.length = event.len();
    } else if matches!(text, Cow::Owned(_)) {
        // The length is not that in the event.
        return None;
    }
    Some(mended)
}

/// Repairs a text of many lines, in which an odd backslash says nothing of the others.
pub(super) fn mended_text(text: &str) -> Option<String> {
    let mut mender =
        Mender { rest: text, json: String::new(), left_out: 0, has_paths: false, is_line: false };
    mender.text()?;
    Some(mender.json)
}

/// Reads a value, and writes it as JSON.
struct Mender<'a> {
    rest: &'a str,
    json: String,
    left_out: u64,
    /// A quote behind a backslash may be the end of a text: `"C:\dir\"`.
    has_paths: bool,
    /// Texts are short: all of their backslashes have one meaning.
    is_line: bool,
}

impl<'a> Mender<'a> {
    fn mend(text: &'a str, has_paths: bool) -> Option<Mended> {
        let json = String::with_capacity(text.len() + 16);
        let mut mender = Self { rest: text, json, left_out: 0, has_paths, is_line: true };
        mender.value(0)?;
        mender.space();
        let is_end = mender.rest.is_empty() || mender.rest.starts_with(',');
        let length = text.len() - mender.rest.len();
        is_end.then_some(Mended { json: mender.json, left_out: mender.left_out, length })
    }

    fn first(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn pass(&mut self, length: usize) -> &'a str {
        let (passed, rest) = self.rest.split_at(length);
        self.rest = rest;
        passed
    }

    fn copy(&mut self, length: usize) {
        let copied = self.pass(length);
        self.json.push_str(copied);
    }

    /// White space, and comments, which are left out.
    fn space(&mut self) {
        loop {
            let rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
            self.copy(self.rest.len() - rest.len());
            if !rest.starts_with('/') || pass_space(rest.as_bytes()) == 0 {
                return;
            }
            self.pass(pass_space(rest.as_bytes()));
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.space();
        match self.first()? {
            _ if depth == MAX_DEPTH => None,
            '{' => self.object(depth + 1),
            '[' => self.list(depth + 1),
            '"' => self.text(),
            _ => {
                let word = self.word()?;
                self.json.push_str(&value_of(word));
                Some(())
            }
        }
    }

    /// What is not in quotes.
    fn word(&mut self) -> Option<&'a str> {
        let is_end = |other: char| other.is_ascii_whitespace() || ",:{}[]\"".contains(other);
        let length = self.rest.find(is_end).unwrap_or(self.rest.len());
        let word = &self.rest[..length];
        let length = word.find("/*").into_iter().chain(word.find("//")).min().unwrap_or(length);
        (length > 0).then(|| self.pass(length))
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        self.copy(1);
        let mut count = 0;
        loop {
            self.space();
            match self.first()? {
                ']' => {
                    self.copy(1);
                    return Some(());
                }
                ',' => _ = self.pass(1),
                _ => {
                    self.separate(&mut count);
                    self.value(depth)?;
                }
            }
        }
    }

    fn separate(&mut self, count: &mut usize) {
        if *count > 0 {
            self.json.push(',');
        }
        *count += 1;
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.copy(1);
        let mut count = 0;
        // Where the last member begins.
        let mut last = None;
        loop {
            self.space();
            let begin = self.json.len();
            match self.first()? {
                '}' => {
                    self.copy(1);
                    return Some(());
                }
                ',' => {
                    self.pass(1);
                    continue;
                }
                '"' => {
                    self.separate(&mut count);
                    self.text()?;
                }
                _ => {
                    let word = self.word()?;
                    if !self.rest.trim_ascii_start().starts_with(':') {
                        if !self.is_decimal(word, depth) {
                            count -= usize::from(self.leave_out(last.take()));
                        }
                        continue;
                    }
                    self.separate(&mut count);
                    self.json.push_str(&Value::from(word).to_string());
                }
            }
            self.space();
            match self.first()? {
                ':' => self.copy(1),
                ',' | '}' => {}
                _ => return None,
            }
            self.space();
            match self.first()? {
                ',' | '}' => count -= usize::from(self.leave_out(Some(begin))),
                _ => {
                    self.value(depth)?;
                    last = Some(begin);
                }
            }
        }
    }

    /// A comma was in a number. Of an event itself it is a decimal point; false elsewhere.
    fn is_decimal(&mut self, word: &str, depth: usize) -> bool {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let is_behind_one = self.json.ends_with(|last: char| last.is_ascii_digit());
        let is_decimal = depth == 1 && is_number && is_behind_one;
        if is_decimal {
            self.json.extend([".", word]);
        }
        is_decimal
    }

    /// Removes the last member, unless that was done for the same reason.
    fn leave_out(&mut self, last: Option<usize>) -> bool {
        if let Some(begin) = last {
            self.json.truncate(begin);
            self.left_out += 1;
        }
        last.is_some()
    }

    /// Text: what is no escape has backslashes that belong to it, and so have the other ones then.
    fn text(&mut self) -> Option<()> {
        let (length, ends_in_path) = self.length_of_text()?;
        let inner = &self.pass(length)[1..length - 1];
        let is_literal = self.is_line && (ends_in_path || has_other_escape(inner));
        self.json.push('"');
        let mut rest = inner;
        while let Some(first) = rest.chars().next() {
            let length = match (first, escape(rest)) {
                ('\\', Some(escape)) if !is_literal || !escape.is_letter() => {
                    self.json.push_str(if escape == Escape::Half {
                        "\\ufffd"
                    } else {
                        &rest[..escape.len()]
                    });
                    escape.len()
                }
                ('\\', _) => {
                    self.json.push_str("\\\\");
                    1
                }
                ('\0'..' ', _) => {
                    self.json.push_str(&format!("\\u{:04x}", u32::from(first)));
                    1
                }
                _ => {
                    self.json.push(first);
                    first.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        self.json.push('"');
        Some(())
    }

    /// The length of a text with its quotes, and whether it ends with a backslash.
    fn length_of_text(&self) -> Option<(usize, bool)> {
        let mut at = 1;
        loop {
            at += self.rest.get(at..)?.find(['"', '\\'])?;
            let rest = &self.rest[at..];
            if rest.starts_with('"') {
                return Some((at + 1, false));
            }
            if self.has_paths
                && let Some(behind) = rest.strip_prefix("\\\"")
                && behind.trim_ascii_start().starts_with([',', '}', ']'])
            {
                return Some((at + 2, true));
            }
            at += rest.chars().take(2).map(char::len_utf8).sum::<usize>();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// A character that has a meaning to JSON.
    Mark,
    Letter,
    Code,
    /// The codes of a surrogate pair.
    Pair,
    /// A half of one.
    Half,
}

impl Escape {
    const fn len(self) -> usize {
        match self {
            Self::Mark | Self::Letter => 2,
            Self::Code | Self::Half => 6,
            Self::Pair => 12,
        }
    }

    fn is_letter(self) -> bool {
        self == Self::Letter
    }
}

/// The escape at the beginning of a text.
fn escape(text: &str) -> Option<Escape> {
    let code = |text: &str| u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let behind = text.get(6..).and_then(code);
    match (code(text), behind) {
        (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => return Some(Escape::Pair),
        (Some(0xd800..0xe000), _) => return Some(Escape::Half),
        (Some(_), _) => return Some(Escape::Code),
        (None, _) => {}
    }
    match text.strip_prefix('\\')?.bytes().next()? {
        b'"' | b'\\' | b'/' => Some(Escape::Mark),
        b'b' | b'f' | b'n' | b'r' | b't' => Some(Escape::Letter),
        _ => None,
    }
}

/// Whether a text has a backslash that begins no escape.
fn has_other_escape(mut text: &str) -> bool {
    while let Some(at) = text.find('\\') {
        match escape(&text[at..]) {
            Some(escape) => text = &text[at + escape.len()..],
            None => return true,
        }
    }
    false
}

/// The value of what is not in quotes: a number also in the forms of other languages, or the text that it is.
fn value_of(word: &str) -> Cow<'_, str> {
    if serde_json::from_str::<&RawValue>(word).is_ok() {
        return word.into();
    }
    let small = word.to_ascii_lowercase();
    let unsigned = small.strip_prefix('+').unwrap_or(&small);
    if let Some((_, value)) = WORDS.iter().find(|(name, _)| *name == unsigned) {
        return (*value).into();
    }
    if !word.parse::<f64>().is_ok_and(f64::is_finite) {
        return Value::from(word).to_string().into();
    }
    let (sign, plain) = word.strip_prefix('-').map_or(("", word), |plain| ("-", plain));
    let (mantissa, exponent) = plain.split_at(plain.find(['e', 'E']).unwrap_or(plain.len()));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches(['+', '0']);
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}{exponent}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/import.md#what-is-no-json
    #[test]
    fn what_other_programs_write_becomes_json() {
        for (value, expected) in [
            (&br#"{"a":[1,],"b":2 , }"#[..], r#"{"a":[1],"b":2  }"#),
            (b"{\"a\":1, // a \"note\"\n\"b\":/* {\xff */\"//\"}", r#"{"a":1 ,"b":"//"}"#),
            (b"{\"a\":1, // a \"note\"\n\"b\":/* { */\"//\"/**/}", r#"{"a":1 ,"b":"//"}"#),
            (b"{\"a\":\"x\ny\x01,}\"}", r#"{"a":"x\u000ay\u0001,}"}"#),
            (
                br#"{"a":NaN,"b":[Infinity,-Infinity],"NaN":"NaN"}"#,
                r#"{"a":"NaN","b":["Infinity","-Infinity"],"NaN":"NaN"}"#,
            ),
            (b"{\"a\":\"b\xffad\"}", "{\"a\":\"b\u{fffd}ad\"}"),
            (
                br#"{"a":"\ud83d\ude00 \ud800 \udc00\ud800\u0041 \\ud800"}"#,
                r#"{"a":"\ud83d\ude00 \ufffd \ufffd\ufffd\u0041 \\ud800"}"#,
            ),
            (
                br#"{"a":"D:\work\new\u00e9 \"x\" \\","b":"\n"}"#,
                r#"{"a":"D:\\work\\new\u00e9 \"x\" \\","b":"\n"}"#,
            ),
            (br#"{"a":"C:\dir\","b":["D:\e\"]}"#, r#"{"a":"C:\\dir\\","b":["D:\\e\\"]}"#),
            (
                br#"{a:True,"b":None,"c":[nan,-inf,undefined, False],d:foo.bar,"e":0x1F}"#,
                r#"{"a":true,"b":null,"c":["NaN","-Infinity",null ,false],"d":"foo.bar","e":"0x1F"}"#,
            ),
            (
                br#"{"a":+5,"b":.5,"c":5.,"d":-007,"e":00.25e-3,"f":0}"#,
                r#"{"a":5,"b":0.5,"c":5,"d":-7,"e":0.25e-3,"f":0}"#,
            ),
            (br#"{"a":1 "b":2,,"c":[1 2]}"#, r#"{"a":1 ,"b":2,"c":[1 ,2]}"#),
            // Decimal commas.
            (br#"{"ts":1,5,"dur":2,25}"#, r#"{"ts":1.5,"dur":2.25}"#),
            (br#"{"ts":1,"a":{"b":0,5,"c":3,"d":1,2,3}}"#, r#"{"ts":1,"a":{"c":3}}"#),
            (br#"{"a":{"b":0,5}}"#, r#"{"a":{}}"#),
            (br#"{"a":,"b":{"c": },"d":1}"#, r#"{"b":{},"d":1}"#),
            (br#"{"a","b":{"c" },"d":1,"e"}"#, r#"{"b":{},"d":1}"#),
            (
                br#"{"a":[+Infinity,+inf,-INF],"b":[+NaN,-nan]}"#,
                r#"{"a":["Infinity","Infinity","-Infinity"],"b":["NaN","NaN"]}"#,
            ),
        ] {
            let mended = mended(value).unwrap().json;
            assert_eq!(mended, expected);
            serde_json::from_str::<Value>(&mended).unwrap();
        }
    }

    //= docs/import.md#what-is-no-json
    #[test]
    fn members_with_a_comma_in_their_value_are_counted() {
        let left_out = |value: &str| mended(value.as_bytes()).unwrap().left_out;
        assert_eq!(left_out(r#"{"ts":1,5,"args":{"b":0,5,"c":3,"d":1,2,3}}"#), 2);
        assert_eq!(left_out(r#"{"ts":1,5}"#), 0);
        assert_eq!(left_out(r#"{"a","b":{"c" },"d":1,"e"}"#), 3);
    }

    #[test]
    fn nothing_else_is_changed() {
        for value in
            [r#"{"a":"\u00e9\"\\ NaN,}","b":[1,2,{"c":null}]}"#, "{\"a\" 5}", "\"\\", "\"\\u12", "{\"é\\é"]
        {
            assert!(mended(value.as_bytes()).is_none(), "{value}");
        }
    }
}
