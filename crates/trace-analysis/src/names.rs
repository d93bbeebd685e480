//! Small numbers for categories and names, so that an event costs a comparison of texts instead of a hash.

use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use trace_reader::Text;

/// Pairs of category and name that are found without hashing, a power of two.
const RECENT: usize = 1024;
/// How many pairs are distinguished.
pub(crate) const MAX_PAIRS: usize = 50_000;
/// Bytes of texts that are kept.
const MAX_BYTES: usize = 32 << 20;
/// The number of all pairs beyond these.
pub(crate) const OTHERS: u32 = 0;
/// How they are shown.
pub(crate) const OTHERS_NAME: &str = "(other names)";

/// The numbers of a category and a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct What {
    /// The category.
    pub category: u32,
    /// The name.
    pub name: u32,
}

/// Categories and names of a trace, with their numbers.
#[derive(Debug)]
pub struct Whats {
    recent: Box<[u32; RECENT]>,
    numbers: HashMap<Arc<str>, u32, RandomState>,
    texts: Vec<Arc<str>>,
    pairs: HashMap<(u32, u32), u32, RandomState>,
    whats: Vec<What>,
    bytes: usize,
    /// Events whose pair has no number of its own.
    pub(crate) others: u64,
}

impl Default for Whats {
    fn default() -> Self {
        let mut whats = Self {
            recent: Box::new([OTHERS; RECENT]),
            numbers: HashMap::default(),
            texts: Vec::new(),
            pairs: HashMap::default(),
            whats: Vec::new(),
            bytes: 0,
            others: 0,
        };
        let (category, name) = (whats.text(""), whats.text(OTHERS_NAME));
        whats.whats.push(What { category, name });
        whats
    }
}

/// Texts of one provider stay where they are from event to event, until they are defined anew.
fn place(category: Text<'_>, name: Text<'_>) -> usize {
    let of = |text: Text<'_>| text.as_bytes().as_ptr() as usize;
    let mixed = of(name).wrapping_mul(31) ^ of(category);
    (mixed >> 4 ^ mixed >> 14) & (RECENT - 1)
}

impl Whats {
    /// The number of a category and a name.
    #[inline]
    pub(crate) fn number(&mut self, category: Text<'_>, name: Text<'_>) -> u32 {
        let place = place(category, name);
        let recent = self.recent[place];
        if self.name(recent).as_bytes() == name.as_bytes()
            && self.category(recent).as_bytes() == category.as_bytes()
            && recent != OTHERS
        {
            return recent;
        }
        self.find(category, name, place)
    }

    #[inline(never)]
    fn find(&mut self, category: Text<'_>, name: Text<'_>, place: usize) -> u32 {
        let (category, name) = (category.to_str(), name.to_str());
        let known = |text: &str| self.numbers.get(text).copied();
        let number = match (known(&category), known(&name)) {
            (Some(category), Some(name)) => self.pairs.get(&(category, name)).copied(),
            _ => None,
        };
        let number = number.or_else(|| {
            let bytes = category.len() + name.len();
            if self.whats.len() > MAX_PAIRS || self.bytes + bytes > MAX_BYTES {
                return None;
            }
            let (category, name) = (self.text(&category), self.text(&name));
            let number = u32::try_from(self.whats.len()).unwrap_or(OTHERS);
            self.whats.push(What { category, name });
            self.pairs.insert((category, name), number);
            Some(number)
        });
        if let Some(number) = number {
            self.recent[place] = number;
            return number;
        }
        self.others += 1;
        OTHERS
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        let text: Arc<str> = text.into();
        self.bytes += text.len();
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        number
    }

    /// The numbers of a pair's parts.
    #[inline]
    #[must_use]
    pub fn what(&self, number: u32) -> What {
        self.whats[number as usize]
    }

    /// The category of a pair.
    #[inline]
    #[must_use]
    pub fn category(&self, number: u32) -> &str {
        &self.texts[self.what(number).category as usize]
    }

    /// The name of a pair.
    #[inline]
    #[must_use]
    pub fn name(&self, number: u32) -> &str {
        &self.texts[self.what(number).name as usize]
    }

    /// A category or a name by its own number.
    #[must_use]
    pub fn text_of(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    /// How many categories and names there are together; their own numbers begin at 0.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.texts.len()
    }

    /// How many pairs there are; their numbers begin at 0, which is that of all further ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.whats.len()
    }

    /// Whether the trace has no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whats.len() == 1 && self.others == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_their_numbers_wherever_their_texts_are() {
        let mut whats = Whats::default();
        let mut number = |category: &str, name: &str| {
            // Another address each time.
            let (category, name) = (category.to_owned(), name.to_owned());
            whats.number(Text(category.as_bytes()), Text(name.as_bytes()))
        };
        assert_eq!((number("a", "x"), number("a", "y"), number("b", "x")), (1, 2, 3));
        assert_eq!((number("b", "x"), number("a", "x"), number("a", "y")), (3, 1, 2));
        assert_eq!(
            whats.number(Text(b"a"), Text(b"\xff")),
            whats.number(Text(b"a"), Text("\u{fffd}".as_bytes()))
        );
        assert_eq!((whats.category(3), whats.name(3), whats.len()), ("b", "x", 5));
    }

    #[test]
    fn what_is_too_many_is_one_pair() {
        let mut whats = Whats::default();
        for number in 0..MAX_PAIRS as u32 {
            assert_eq!(whats.number(Text(b"c"), Text(number.to_string().as_bytes())), number + 1);
        }
        assert_eq!(whats.number(Text(b"c"), Text(b"one more")), OTHERS);
        assert_eq!((whats.number(Text(b"c"), Text(b"7")), whats.others), (8, 1));
        assert_eq!((whats.category(OTHERS), whats.name(OTHERS)), ("", OTHERS_NAME));
    }
}
