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

/// Pairs that are found by where their texts are, a power of two.
const RECENT: usize = 1024;

/// Pairs of category and name, numbered in the order in which they occur.
#[derive(Debug)]
pub struct Whats {
    /// The pair that was last seen at each place.
    recent: Box<[u32; RECENT]>,
    numbers: HashMap<(u32, u32), u32, RandomState>,
    list: Vec<(u32, u32)>,
}

impl Default for Whats {
    fn default() -> Self {
        Self { recent: Box::new([0; RECENT]), numbers: HashMap::default(), list: Vec::new() }
    }
}

/// A place for two texts, which the reader keeps where they are from event to event.
fn place(category: &str, name: &str) -> usize {
    let mixed = (name.as_ptr() as usize).wrapping_mul(31) ^ category.as_ptr() as usize;
    (mixed >> 4 ^ mixed >> 14) % RECENT
}

impl Whats {
    /// The number of a pair.
    #[inline]
    pub fn number(&mut self, texts: &mut Texts, category: &str, name: &str) -> u32 {
        let place = place(category, name);
        let recent = self.recent[place];
        if let Some(of) = self.list.get(recent as usize)
            && texts.text(of.1) == name
            && texts.text(of.0) == category
        {
            return recent;
        }
        let number = self.find(texts, category, name);
        self.recent[place] = number;
        number
    }

    #[inline(never)]
    fn find(&mut self, texts: &mut Texts, category: &str, name: &str) -> u32 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_their_numbers_wherever_their_texts_are() {
        let (mut texts, mut whats) = (Texts::default(), Whats::default());
        let mut number = |category: &str, name: &str| {
            // Another address each time.
            let (category, name) = (category.to_owned(), name.to_owned());
            whats.number(&mut texts, &category, &name)
        };
        assert_eq!((number("a", "x"), number("a", "y"), number("b", "x")), (0, 1, 2));
        assert_eq!((number("b", "x"), number("a", "x"), number("a", "y")), (2, 0, 1));
        // Other texts at one address.
        let mut place = *b"c";
        let mut numbers = Vec::new();
        for letter in *b"cdcd" {
            place[0] = letter;
            numbers.push(whats.number(&mut texts, "k", std::str::from_utf8(&place).unwrap()));
        }
        assert_eq!(numbers, [3, 4, 3, 4]);
    }
}
