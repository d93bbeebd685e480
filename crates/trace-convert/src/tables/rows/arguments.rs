//! Arguments as JSON, and texts that repeat.

use crate::export::catapult::blocks::Blocks;
use crate::json::Json;
use std::borrow::Cow;
use std::io::{self, Sink};
use trace_reader::{Arguments, Text, TextKey, Value};

/// Texts that are kept as they stand in JSON.
const BLOCKS: usize = 256;
/// Texts of which it is known that they are UTF-8.
const KNOWN: usize = 256;

/// Makes objects of arguments. Texts that the archive defines are made once.
pub struct Objects {
    json: Json<Sink>,
    members: Blocks<u32>,
    texts: Blocks<u32>,
}

impl Default for Objects {
    fn default() -> Self {
        Self { json: Json::new(io::sink()), members: Blocks::new(BLOCKS), texts: Blocks::new(BLOCKS) }
    }
}

impl Objects {
    /// The object of arguments; none if there are none.
    #[inline]
    pub fn object(&mut self, arguments: &Arguments<'_>) -> Option<Cow<'_, str>> {
        let Self { json, members, texts } = self;
        json.take_back(json.bytes().len());
        if arguments.is_empty() {
            return None;
        }
        let mut before = "{";
        for (name, value, [name_key, value_key]) in arguments.keyed() {
            json.raw(before);
            before = ",";
            let (name_key, value_key) = (name_key.number(), value_key.number());
            members.write(json, name_key as usize, name_key, |json| {
                json.string(name.as_bytes());
                json.raw(":");
            });
            match value {
                Value::String(text) => {
                    texts.write(json, value_key as usize, value_key, |json| json.string(text.as_bytes()));
                }
                Value::Int64(value) => json.integer(value),
                Value::Uint64(value) => json.integer(value),
                value => json.value(&value),
            }
        }
        json.raw("}");
        Some(Text(json.bytes()).to_str())
    }
}

/// Texts that the archive defines, as they are shown.
pub struct KnownTexts(Box<[(TextKey, Box<str>)]>);

impl Default for KnownTexts {
    fn default() -> Self {
        Self(vec![(TextKey::NONE, Box::default()); KNOWN].into())
    }
}

impl KnownTexts {
    /// A text as it is shown.
    #[inline]
    pub fn shown<'a>(&'a mut self, text: Text<'a>, key: TextKey) -> Cow<'a, str> {
        let slot = self.0.get_mut(key.number() as usize % KNOWN);
        let Some((of, known)) = slot.filter(|_| key != TextKey::NONE) else { return text.to_str() };
        if *of != key {
            (*of, *known) = (key, text.to_str().into());
        }
        Cow::Borrowed(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_reader::{Item, Reader};

    /// What is made of a text that repeats is the same each time, also if another one takes its place.
    #[test]
    fn texts_are_those_of_their_keys() {
        let mut text = String::from("[");
        for number in 0..3000 {
            let name = number % 7 * 100 + number % 3;
            text += &format!(
                r#"{{"ph":"X","ts":{number},"dur":1,"pid":1,"tid":1,"cat":"c{name}","name":"n\"{name}","args":{{"a{name}":"v{name}","\n":-{number},"x":0.5}}}},"#
            );
        }
        let archive = crate::tables::tests::archive(&(text.trim_end_matches(',').to_owned() + "]"));
        let mut reader = Reader::new(&archive[..]).unwrap();
        let (mut objects, mut known) = (Objects::default(), KnownTexts::default());
        let mut number = 0;
        while let Some(record) = reader.next_item().unwrap() {
            let Item::Event(event) = record.item else { continue };
            let name = number % 7 * 100 + number % 3;
            let expected = format!(r#"{{"a{name}":"v{name}","\n":-{number},"x":0.5}}"#);
            assert_eq!(objects.object(&event.arguments).unwrap(), expected.replace("-0,", "0,"));
            assert_eq!(known.shown(event.name, event.keys.1), format!("n\"{name}"));
            assert_eq!(known.shown(event.category, event.keys.0), format!("c{name}"));
            number += 1;
        }
        assert_eq!(number, 3000);
    }
}
