//! The strings that have an index in the running trace: a fixed table from text to index.

/// Places in the table; indices end at 32 767, so it is never more than half full.
const SLOTS: usize = 1 << 16;
/// Largest string index.
const MAX_INDEX: u16 = 0x7fff;

/// Text to index, by open addressing in memory that is taken once.
pub(crate) struct StringTable {
    slots: Box<[Option<(&'static str, u16)>]>,
    last_index: u16,
}

impl StringTable {
    pub(crate) fn new() -> Self {
        Self { slots: vec![None; SLOTS].into_boxed_slice(), last_index: 0 }
    }

    /// The index of a text, or the place and the index it would get.
    pub(crate) fn find(&self, text: &str) -> Lookup {
        let mut slot = hash(text) as usize % SLOTS;
        while let Some((known, index)) = self.slots[slot] {
            if known == text {
                return Lookup::Known(index);
            }
            slot = (slot + 1) % SLOTS;
        }
        if self.last_index < MAX_INDEX {
            Lookup::Vacant { slot, index: self.last_index + 1 }
        } else {
            Lookup::Exhausted
        }
    }

    /// Records that a text's definition was committed.
    pub(crate) fn insert(&mut self, slot: usize, text: &'static str, index: u16) {
        self.slots[slot] = Some((text, index));
        self.last_index = index;
    }
}

/// What [`StringTable::find`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Known(u16),
    Vacant { slot: usize, index: u16 },
    Exhausted,
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_count_from_one_and_stay() {
        let mut table = StringTable::new();
        for (text, expected) in [("a", 1), ("b", 2)] {
            let Lookup::Vacant { slot, index } = table.find(text) else { panic!("{text} is known") };
            assert_eq!(index, expected);
            table.insert(slot, text, index);
        }
        assert_eq!(table.find("a"), Lookup::Known(1));
        assert_eq!(table.find("b"), Lookup::Known(2));
    }

    #[test]
    fn the_last_index_is_32767() {
        let mut table = StringTable::new();
        for number in 1..=0x7fff_u16 {
            let text: &'static str = number.to_string().leak();
            let Lookup::Vacant { slot, index } = table.find(text) else { panic!("{text}") };
            assert_eq!(index, number);
            table.insert(slot, text, index);
        }
        assert_eq!(table.find("one more"), Lookup::Exhausted);
        assert_eq!(table.find("32767"), Lookup::Known(32767));
    }
}
