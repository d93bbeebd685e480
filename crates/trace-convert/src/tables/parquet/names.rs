//! Names that repeat get numbers, so that each is copied once.

use bytes::Bytes;
use std::collections::HashMap;

/// Memory for names with numbers, in bytes; others are copied each time.
const MEMORY: usize = 24 << 20;
/// Bytes around a name.
const ENTRY_BYTES: usize = 128;
/// Names whose numbers are found by their addresses.
const RECENT: usize = 256;
/// In a number: it counts the names of a batch that have none.
pub const IS_OTHER: u32 = 1 << 31;

/// The names so far.
pub struct Names {
    texts: Vec<Bytes>,
    numbers: HashMap<Bytes, u32, foldhash::fast::RandomState>,
    bytes: usize,
    recent: [(usize, u32); RECENT],
    /// Those that the other thread does not know yet.
    new: Vec<Bytes>,
}

impl Default for Names {
    fn default() -> Self {
        let (texts, numbers, new) = (Vec::new(), HashMap::default(), Vec::new());
        Self { texts, numbers, bytes: 0, recent: [(0, 0); RECENT], new }
    }
}

impl Names {
    /// The number of a name, from 1; none if there is no memory for it.
    #[inline]
    pub fn number(&mut self, text: &str) -> Option<u32> {
        let address = text.as_ptr() as usize;
        let slot = (address >> 3 ^ address >> 11) % RECENT;
        let (known_at, number) = self.recent[slot];
        if known_at == address
            && let Some(known) = self.texts.get((number as usize).wrapping_sub(1))
            && **known == *text.as_bytes()
        {
            return Some(number);
        }
        let number = self.find(text)?;
        self.recent[slot] = (address, number);
        Some(number)
    }

    fn find(&mut self, text: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(text.as_bytes()) {
            return Some(*number);
        }
        let bytes = self.bytes + text.len() + ENTRY_BYTES;
        if bytes > MEMORY {
            return None;
        }
        self.bytes = bytes;
        let text = Bytes::copy_from_slice(text.as_bytes());
        self.texts.push(text.clone());
        let number = self.texts.len() as u32;
        self.numbers.insert(text.clone(), number);
        self.new.push(text);
        Some(number)
    }

    /// The names that got numbers since the last call.
    pub fn take_new(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.new)
    }
}
