//! Texts with numbers, and pairs of category and name.

use foldhash::fast::RandomState;
use std::collections::HashMap;

/// So many bytes of texts are kept; later ones are [`Texts::OTHER`].
const MAX_BYTES: usize = 32 << 20;

/// Texts, numbered in the order in which they occur. Number 0 is the empty text, and 1 stands for all that
/// there was no room for.
#[derive(Debug)]
pub struct Texts {
    numbers: HashMap<Box<str>, u32, RandomState>,
    list: Vec<Box<str>>,
    bytes: usize,
    /// How often there was no room.
    pub dropped: u64,
}

impl Default for Texts {
    fn default() -> Self {
        let (numbers, list) = (HashMap::default(), Vec::new());
        let mut texts = Self { numbers, list, bytes: 0, dropped: 0 };
        texts.number("");
        texts.number("<too many names>");
        texts
    }
}

impl Texts {
    /// The number of a text without room.
    pub const OTHER: u32 = 1;

    /// The number of a text.
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        if self.bytes + text.len() > MAX_BYTES {
            self.dropped += 1;
            return Self::OTHER;
        }
        self.bytes += 2 * text.len() + 64;
        let number = self.list.len() as u32;
        self.list.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// The text of a number.
    pub fn text(&self, number: u32) -> &str {
        self.list.get(number as usize).map_or("", |text| text)
    }

    /// All texts.
    pub fn list(&self) -> &[Box<str>] {
        &self.list
    }
}

/// Pairs of category and name, numbered in the order in which they occur.
#[derive(Debug, Default)]
pub struct Whats {
    numbers: HashMap<(u32, u32), u32, RandomState>,
    list: Vec<(u32, u32)>,
}

impl Whats {
    /// The number of a pair.
    pub fn number(&mut self, texts: &mut Texts, category: &str, name: &str) -> u32 {
        let pair = (texts.number(category), texts.number(name));
        let list = &mut self.list;
        *self.numbers.entry(pair).or_insert_with(|| {
            list.push(pair);
            list.len() as u32 - 1
        })
    }

    /// Category and name of each number.
    pub fn list(&self) -> &[(u32, u32)] {
        &self.list
    }
}
