//! Placeholders of texts.

use foldhash::{HashMap, HashMapExt};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;

/// How many texts get a number.
const MAX_NUMBERED: usize = 1 << 20;
/// `text-` and 16 digits.
const MAX_BYTES: usize = 21;

/// The text that stands in place of another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Placeholder {
    bytes: [u8; MAX_BYTES],
    length: u8,
}

impl Placeholder {
    fn new(text: fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; MAX_BYTES];
        let mut rest = &mut bytes[..];
        let _ = rest.write_fmt(text);
        let length = (MAX_BYTES - rest.len()) as u8;
        Self { bytes, length }
    }

    /// Its text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The placeholders of all texts so far: equal ones for equal texts.
///
/// Of a text, only a hash is kept, with a key that is random and ends with this. The first texts are
/// numbered in their order; those that come when there are too many to be remembered are named by their
/// hash.
//= docs/filter.md#placeholders
pub(super) struct Texts {
    numbers: HashMap<u64, u32>,
    keys: RandomState,
    limit: usize,
    /// How many texts were replaced.
    pub replaced: u64,
}

impl Texts {
    pub fn new() -> Self {
        Self { numbers: HashMap::new(), keys: RandomState::new(), limit: MAX_NUMBERED, replaced: 0 }
    }

    /// The placeholder of a text that is not empty.
    pub fn placeholder(&mut self, text: &[u8]) -> Placeholder {
        self.replaced += 1;
        let hash = self.keys.hash_one(text);
        let next = self.numbers.len() + 1;
        if let Some(number) = self.numbers.get(&hash) {
            return Placeholder::new(format_args!("text-{number}"));
        }
        if next > self.limit {
            return Placeholder::new(format_args!("text-{hash:016x}"));
        }
        self.numbers.insert(hash, next as u32);
        Placeholder::new(format_args!("text-{next}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(texts: &mut Texts, text: &str) -> String {
        String::from_utf8(texts.placeholder(text.as_bytes()).as_bytes().to_vec()).unwrap()
    }

    //= docs/filter.md#placeholders
    #[test]
    fn equal_texts_have_equal_placeholders() {
        let mut texts = Texts::new();
        let found = ["a", "b", "a", "text-1", "b"].map(|text| shown(&mut texts, text));
        assert_eq!(found, ["text-1", "text-2", "text-1", "text-3", "text-2"]);
        assert_eq!(texts.replaced, 5);
    }

    //= docs/filter.md#placeholders
    #[test]
    fn more_texts_than_are_remembered_still_differ() {
        let mut texts = Texts { limit: 2, ..Texts::new() };
        let found = ["a", "b", "c", "d", "c", "a"].map(|text| shown(&mut texts, text));
        assert_eq!([&found[0], &found[1], &found[5]], ["text-1", "text-2", "text-1"]);
        assert_eq!(found[2], found[4]);
        assert_ne!(found[2], found[3]);
        assert_eq!(found[2].len(), MAX_BYTES);
        assert_eq!(texts.numbers.len(), 2);
        // Another file has other ones: they say nothing about the text.
        assert_ne!(found[2], shown(&mut Texts { limit: 0, ..Texts::new() }, "c"));
    }
}
