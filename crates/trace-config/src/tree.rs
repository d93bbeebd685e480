//! What JSON and the text form of protocol buffers have in common: fields with values, and their places.

use crate::near;
use std::fmt;
use trace_format::shown::Shown;

/// Maximum number of changes between similar words.
const MAX_CHANGES: usize = 4;

/// An error at an offset into the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The offset, in bytes.
    pub at: usize,
    /// The message.
    pub message: String,
}

/// A field of a message, or a member of a JSON object.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Where its name is.
    pub at: usize,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Where it is.
    pub at: usize,
    /// What it is.
    pub kind: Kind,
}

/// Kinds of value.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Bytes between quotes, without escapes.
    Text(Vec<u8>),
    /// A number, as written.
    Number(String),
    /// A word without quotes: a truth value or a name from a fixed set.
    Word(String),
    /// Values between brackets.
    List(Vec<Value>),
    /// Fields between braces.
    Message(Vec<Field>),
}

impl Wrong {
    /// An error there.
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

impl Value {
    /// An error about this value.
    pub fn wrong(&self, expected: &str) -> Wrong {
        Wrong::new(self.at, format!("expected {expected}, found {self}"))
    }

    /// Text between quotes.
    pub fn text(&self) -> Result<&str, Wrong> {
        match &self.kind {
            Kind::Text(bytes) => std::str::from_utf8(bytes).map_err(|_| self.wrong("text in UTF-8")),
            _ => Err(self.wrong("text in quotes")),
        }
    }

    /// A whole number up to a limit.
    pub fn whole(&self, most: u64) -> Result<u64, Wrong> {
        let number = match &self.kind {
            Kind::Number(digits) => parse_whole(digits),
            _ => None,
        };
        let number = number.filter(|number| *number <= most);
        number.ok_or_else(|| self.wrong(&format!("a whole number up to {most}")))
    }

    /// A truth value.
    pub fn truth(&self) -> Result<bool, Wrong> {
        match &self.kind {
            Kind::Word(word) if ["true", "True", "t"].contains(&word.as_str()) => Ok(true),
            Kind::Word(word) if ["false", "False", "f"].contains(&word.as_str()) => Ok(false),
            Kind::Number(number) if number == "1" => Ok(true),
            Kind::Number(number) if number == "0" => Ok(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// A word from a fixed set; JSON has such words between quotes.
    pub fn word(&self, known: &[&'static str]) -> Result<&'static str, Wrong> {
        let word = match &self.kind {
            Kind::Word(word) => word.as_str(),
            Kind::Text(_) => self.text()?,
            _ => return Err(self.wrong(&format!("one of {}", known.join(", ")))),
        };
        let found = known.iter().find(|known| **known == word);
        found.copied().ok_or_else(|| Wrong::new(self.at, unknown("value", word, known)))
    }

    /// Fields between braces.
    pub fn message(&self) -> Result<&[Field], Wrong> {
        match &self.kind {
            Kind::Message(fields) => Ok(fields),
            _ => Err(self.wrong("fields in braces")),
        }
    }

    /// The members of a list, or the value alone.
    pub fn each(&self) -> impl Iterator<Item = &Self> {
        let (list, alone) = match &self.kind {
            Kind::List(list) => (list.as_slice(), None),
            _ => (&[][..], Some(self)),
        };
        list.iter().chain(alone)
    }

    /// Whether it asks for nothing: zero, false, empty, or only such fields.
    pub fn is_nothing(&self) -> bool {
        match &self.kind {
            Kind::Text(text) => text.is_empty(),
            Kind::Number(number) => number.parse() == Ok(0.0),
            Kind::Word(word) => ["false", "False", "f", "null"].contains(&word.as_str()),
            Kind::List(list) => list.is_empty(),
            Kind::Message(fields) => fields.iter().all(|field| field.value.is_nothing()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Text(text) => write!(f, "{:?}", String::from_utf8_lossy(text)),
            Kind::Number(text) | Kind::Word(text) => write!(f, "{}", Shown(text)),
            Kind::List(_) => f.write_str("a list"),
            Kind::Message(_) => f.write_str("fields in braces"),
        }
    }
}

/// The text of an error about a word that is not known.
pub fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let plain = |text: &str| text.replace(['-', '_'], "");
    let hint = match near::nearest(word, known.iter().copied(), MAX_CHANGES, plain) {
        Some(near) => format!("; did you mean {near}?"),
        None => format!("; the {what}s are {}", known.join(", ")),
    };
    format!("unknown {what} {}{hint}", Shown(word))
}

fn parse_whole(digits: &str) -> Option<u64> {
    let is_octal = digits.len() > 1 && digits.starts_with('0');
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => u64::from_str_radix(digits, if is_octal { 8 } else { 10 }).ok(),
    }
}
