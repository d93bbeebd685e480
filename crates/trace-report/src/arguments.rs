//! Arguments as templates and columns.
//!
//! Events of one kind have the same names of arguments, and differ in values. So the JSON text of arguments
//! is split: whole numbers, strings and other numbers leave a mark in the text, which then is the same for
//! many events, and their values are columns. Putting the values back gives the same text again.

use crate::columns::{put_number, put_signed, put_text};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Marks in templates. JSON has no such characters.
const NUMBER: u8 = 1;
const STRING: u8 = 2;
const OTHER: u8 = 3;
/// Longest whole number that a double holds for certain.
const MAX_DIGITS: usize = 15;

/// A column of values.
#[derive(Debug)]
enum Column {
    Numbers(Vec<i64>),
    /// Numbers of texts.
    Texts(Vec<u32>),
}

#[derive(Debug)]
struct Template {
    text: Box<[u8]>,
    columns: Vec<Column>,
}

/// The arguments of some events.
#[derive(Debug, Default)]
pub struct Arguments {
    templates: Vec<Template>,
    by_text: HashMap<Box<[u8]>, u32, RandomState>,
    /// The template of the last event.
    last: u32,
    texts: Vec<u8>,
    text_numbers: HashMap<Box<[u8]>, u32, RandomState>,
    /// The values of the arguments that are looked at.
    found: Vec<Found>,
    scratch: Vec<u8>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum Found {
    Number(i64),
    Text(usize, usize),
}

/// The end of a JSON string that begins at a place, behind its quotation mark.
fn string_end(json: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

/// A whole number that is printed as it is written.
fn whole(token: &[u8]) -> Option<i64> {
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    let is_plain = digits.len() <= MAX_DIGITS && digits.iter().all(u8::is_ascii_digit);
    let is_canonical = digits.first()? != &b'0' || token == b"0";
    if is_plain && is_canonical { std::str::from_utf8(token).ok()?.parse().ok() } else { None }
}

impl Arguments {
    /// Takes arguments, and returns the number of their template; 0 is for none.
    pub fn push(&mut self, json: &[u8]) -> u32 {
        if json.is_empty() {
            return 0;
        }
        self.split(json);
        // Events that follow each other often have the same.
        let is_last = self.templates.get(self.last as usize).is_some_and(|last| *last.text == *self.scratch);
        let known = if is_last { Some(&self.last) } else { self.by_text.get(&*self.scratch) };
        let number = match known {
            Some(number) => *number,
            None => {
                let column = |found: &Found| match found {
                    Found::Number(_) => Column::Numbers(Vec::new()),
                    Found::Text(..) => Column::Texts(Vec::new()),
                };
                let text: Box<[u8]> = self.scratch.as_slice().into();
                self.bytes += 2 * text.len() + 100;
                self.by_text.insert(text.clone(), self.templates.len() as u32);
                self.templates.push(Template { text, columns: self.found.iter().map(column).collect() });
                self.templates.len() as u32 - 1
            }
        };
        self.last = number;
        let columns = &mut self.templates[number as usize].columns;
        for (column, found) in columns.iter_mut().zip(&self.found) {
            self.bytes += 8;
            match (column, *found) {
                (Column::Numbers(numbers), Found::Number(number)) => numbers.push(number),
                (Column::Texts(list), Found::Text(from, to)) => {
                    let text = &json[from..to];
                    let number = self.text_numbers.get(text).copied().unwrap_or_else(|| {
                        let new = self.text_numbers.len() as u32;
                        put_text(&mut self.texts, text);
                        self.bytes += 2 * text.len() + 50;
                        self.text_numbers.insert(text.into(), new);
                        new
                    });
                    list.push(number);
                }
                // The marks of a template say which column has what.
                _ => debug_assert!(false, "a template with other columns"),
            }
        }
        number + 1
    }

    fn split(&mut self, json: &[u8]) {
        self.scratch.clear();
        self.found.clear();
        let mut at = 0;
        let mut is_value = false;
        while let Some(byte) = json.get(at) {
            match byte {
                b'"' => {
                    let end = string_end(json, at + 1).min(json.len());
                    if is_value {
                        self.scratch.push(STRING);
                        self.found.push(Found::Text(at + 1, end));
                    } else {
                        self.scratch.extend_from_slice(&json[at..(end + 1).min(json.len())]);
                    }
                    at = end + 1;
                    is_value = false;
                }
                b'-' | b'0'..=b'9' => {
                    let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    let length = json[at..].iter().position(|byte| !is_part(byte));
                    let end = length.map_or(json.len(), |length| at + length);
                    let (mark, found) = match whole(&json[at..end]) {
                        Some(number) => (NUMBER, Found::Number(number)),
                        None => (OTHER, Found::Text(at, end)),
                    };
                    self.scratch.push(mark);
                    self.found.push(found);
                    at = end;
                    is_value = false;
                }
                byte => {
                    is_value = *byte == b':' || *byte == b'[' || (is_value && *byte == b' ');
                    self.scratch.push(*byte);
                    at += 1;
                }
            }
        }
    }

    /// About how much memory is used.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes all texts and templates, with their columns.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.text_numbers.len() as u64);
        out.extend_from_slice(&self.texts);
        put_number(out, self.templates.len() as u64);
        for template in &self.templates {
            put_text(out, &template.text);
            for column in &template.columns {
                match column {
                    Column::Numbers(numbers) => put_shorter(out, numbers),
                    Column::Texts(numbers) => {
                        numbers.iter().for_each(|number| put_number(out, (*number).into()))
                    }
                }
            }
        }
    }
}

/// Writes numbers as they are (0), or each as what is to be added to the one before (1).
fn put_shorter(out: &mut Vec<u8>, numbers: &[i64]) {
    let (mut plain, mut deltas) = (Vec::new(), Vec::new());
    let mut before = 0;
    for number in numbers {
        put_signed(&mut plain, *number);
        put_signed(&mut deltas, number - before);
        before = *number;
    }
    let is_delta = deltas.len() < plain.len();
    out.push(is_delta.into());
    out.extend_from_slice(if is_delta { &deltas } else { &plain });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn templates(arguments: &Arguments) -> Vec<String> {
        let text = |template: &Template| String::from_utf8_lossy(&template.text).into_owned();
        arguments.templates.iter().map(text).collect()
    }

    #[test]
    fn events_of_one_kind_share_a_template() {
        let mut arguments = Arguments::default();
        assert_eq!(arguments.push(b""), 0);
        assert_eq!(arguments.push(br#"{"size":12,"path":"/a","ok":true}"#), 1);
        assert_eq!(arguments.push(br#"{"size":-3,"path":"/b\"","ok":true}"#), 1);
        assert_eq!(arguments.push(br#"{"size":0.5,"path":"/a","ok":true}"#), 2);
        assert_eq!(arguments.push(br#"{"1":007,"list":["a",1,null]}"#), 3);
        let shared = [
            "{\"size\":\u{1},\"path\":\u{2},\"ok\":true}",
            "{\"size\":\u{3},\"path\":\u{2},\"ok\":true}",
            "{\"1\":\u{3},\"list\":[\u{2},\u{1},null]}",
        ];
        assert_eq!(templates(&arguments), shared);
        let Column::Numbers(numbers) = &arguments.templates[0].columns[0] else { panic!("numbers") };
        assert_eq!(numbers, &[12, -3]);
        // Texts: /a, /b\", 0.5, 007, a.
        assert_eq!(arguments.text_numbers.len(), 5);
    }

    #[test]
    fn cut_text_is_survived() {
        for cut in [r#"{"a"#, r#"{"a":"b\"#, r#"{"a":-"#, "{", "\"", "1e"] {
            Arguments::default().push(cut.as_bytes());
        }
    }

    #[test]
    fn the_shorter_column_is_taken() {
        let mut out = Vec::new();
        put_shorter(&mut out, &[1000, 1001, 1002]);
        assert_eq!(out, [1, 0xd0, 0x0f, 2, 2]);
        out.clear();
        put_shorter(&mut out, &[60, -60]);
        assert_eq!(out, [0, 120, 119]);
    }
}
