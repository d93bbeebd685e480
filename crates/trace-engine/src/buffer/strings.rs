//! The strings that have an index in the running trace: a fixed table from text to index.
//!
//! The texts themselves stand in the durable region, where their definitions are: a text of a library that
//! was unloaded is still known. A text that found no room there is known, too, by its length and a hash, so
//! that it is not tried again with each event, and is counted once.

/// Places in the table: half of them for texts with an index, of which there are 32 767, and a quarter for
/// texts without.
const SLOTS: usize = if cfg!(modelled) { 1 << 4 } else { 1 << 16 };
/// Largest string index.
const MAX_INDEX: u16 = 0x7fff;
/// Texts without an index that are known.
const MAX_INLINE: usize = SLOTS / 4;
/// Stands for the index of a text that has none.
const INLINE: u16 = u16::MAX;

/// A string that has an index.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Defined {
    /// Where its bytes are, from the start of the buffer: definitions stand in the first 4 GiB. Of a text
    /// without an index, the upper half of its hash.
    pub offset: u32,
    /// How many there are.
    pub length: u16,
    /// 0 in a slot that is free.
    index: u16,
}

/// Text to index, by open addressing in memory that is taken once.
pub(crate) struct StringTable {
    slots: Box<[Defined]>,
    last_index: u16,
    inline_count: usize,
}

impl StringTable {
    pub(crate) fn new() -> Self {
        let slots = vec![Defined::default(); SLOTS].into_boxed_slice();
        Self { slots, last_index: 0, inline_count: 0 }
    }

    /// The index of a text, or the place and the index it would get. `is_text` says whether the bytes of a
    /// defined one are those of the text; its length is.
    pub(crate) fn find(&self, text: &[u8], is_text: impl Fn(Defined) -> bool) -> Lookup {
        let hash = hash(text);
        let mut slot = hash as usize % SLOTS;
        while self.slots[slot].index != 0 {
            let known = self.slots[slot];
            if usize::from(known.length) == text.len() {
                if known.index == INLINE && known.offset == (hash >> 32) as u32 {
                    return Lookup::Inline;
                }
                if known.index != INLINE && is_text(known) {
                    return Lookup::Known(known.index);
                }
            }
            slot = (slot + 1) % SLOTS;
        }
        if self.last_index < MAX_INDEX {
            Lookup::Vacant { slot, index: self.last_index + 1 }
        } else {
            Lookup::Inline
        }
    }

    /// Records that the definition of a text of so many bytes was committed, and where they are.
    pub(crate) fn insert(&mut self, slot: usize, offset: u32, length: u16, index: u16) {
        self.slots[slot] = Defined { offset, length, index };
        self.last_index = index;
    }

    /// Records that a text found no room for its definition. Where there are too many of them it is tried
    /// again.
    pub(crate) fn insert_inline(&mut self, slot: usize, text: &[u8]) {
        if self.inline_count < MAX_INLINE {
            let offset = (hash(text) >> 32) as u32;
            self.slots[slot] = Defined { offset, length: text.len() as u16, index: INLINE };
            self.inline_count += 1;
        }
    }
}

/// What [`StringTable::find`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// It has this index.
    Known(u16),
    /// It has none, and gets none.
    Inline,
    /// It was not met before.
    Vacant { slot: usize, index: u16 },
}

/// FNV-1a.
fn hash(text: &[u8]) -> u64 {
    text.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(all(test, not(modelled)))]
mod tests {
    use super::*;

    /// A table whose texts lie one behind the other in memory.
    struct Texts {
        table: StringTable,
        bytes: Vec<u8>,
    }

    impl Texts {
        fn find(&self, text: &str) -> Lookup {
            self.table.find(text.as_bytes(), |known| {
                let start = known.offset as usize;
                self.bytes[start..start + usize::from(known.length)] == *text.as_bytes()
            })
        }

        fn insert(&mut self, text: &str, expected: u16) {
            let Lookup::Vacant { slot, index } = self.find(text) else { panic!("{text} is known") };
            assert_eq!(index, expected);
            self.table.insert(slot, self.bytes.len() as u32, text.len() as u16, index);
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }

    #[test]
    fn indices_count_from_one_and_stay() {
        let mut texts = Texts { table: StringTable::new(), bytes: Vec::new() };
        texts.insert("a", 1);
        texts.insert("b", 2);
        assert_eq!(texts.find("a"), Lookup::Known(1));
        assert_eq!(texts.find("b"), Lookup::Known(2));
    }

    #[test]
    fn the_last_index_is_32767() {
        let mut texts = Texts { table: StringTable::new(), bytes: Vec::new() };
        for number in 1..=0x7fff_u16 {
            texts.insert(&number.to_string(), number);
        }
        assert_eq!(texts.find("one more"), Lookup::Inline);
        assert_eq!(texts.find("32767"), Lookup::Known(32767));
    }

    #[test]
    fn a_text_without_room_is_known_and_others_still_get_an_index() {
        let mut texts = Texts { table: StringTable::new(), bytes: Vec::new() };
        for number in 0..MAX_INLINE {
            let text = format!("long {number}");
            let Lookup::Vacant { slot, index: 1 } = texts.find(&text) else { panic!("{text} is known") };
            texts.table.insert_inline(slot, text.as_bytes());
            assert_eq!(texts.find(&text), Lookup::Inline);
        }
        let Lookup::Vacant { slot, index: 1 } = texts.find("one more") else { panic!("it is known") };
        texts.table.insert_inline(slot, b"one more");
        assert!(matches!(texts.find("one more"), Lookup::Vacant { .. }), "there is no room for it");
        texts.insert("short", 1);
        assert_eq!(texts.find("short"), Lookup::Known(1));
        assert_eq!(texts.find("long 7"), Lookup::Inline);
    }
}
