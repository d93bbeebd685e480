//! Text that repeats, made once. What does not fit is made anew each time.

use crate::json::Json;
use std::io::Write;

/// Bytes of a block.
const BLOCK_BYTES: usize = 128;
/// A block of up to so many bytes is copied faster.
const SHORT_BYTES: usize = 64;

/// Blocks of text by their keys. A key that takes the place of another displaces it.
pub(crate) struct Blocks<K> {
    slots: Box<[Slot<K>]>,
}

#[derive(Clone)]
struct Slot<K> {
    /// The default is that of an empty slot.
    key: K,
    length: u8,
    text: [u8; BLOCK_BYTES],
}

impl<K: Copy + Default + Eq> Blocks<K> {
    /// Room for so many blocks, a power of two.
    pub fn new(count: usize) -> Self {
        let slot = Slot { key: K::default(), length: 0, text: [0; BLOCK_BYTES] };
        Self { slots: vec![slot; count].into() }
    }

    /// Writes the text of a key: that of its block, or what the function writes, which may have an outcome.
    /// The default key has no block.
    #[inline]
    pub fn write<W: Write>(
        &mut self,
        json: &mut Json<W>,
        place: usize,
        key: K,
        make: impl FnOnce(&mut Json<W>),
    ) {
        let mask = self.slots.len() - 1;
        let Some(slot) = self.slots.get_mut(place & mask) else { return make(json) };
        if slot.key != key {
            return slot.fill(json, key, make);
        }
        if key == K::default() {
            return make(json);
        }
        let length = usize::from(slot.length);
        match slot.text.first_chunk::<SHORT_BYTES>() {
            Some(short) if length <= SHORT_BYTES => json.block(short, length),
            _ => json.block(&slot.text, length),
        }
    }
}

impl<K: Copy + Default + Eq> Slot<K> {
    #[cold]
    fn fill<W: Write>(&mut self, json: &mut Json<W>, key: K, make: impl FnOnce(&mut Json<W>)) {
        let start = json.bytes().len();
        make(json);
        let text = json.bytes().get(start..).unwrap_or_default();
        let (Some(room), Ok(length)) = (self.text.get_mut(..text.len()), u8::try_from(text.len())) else {
            return;
        };
        if key != K::default() {
            room.copy_from_slice(text);
            (self.key, self.length) = (key, length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_fits_in_a_block_is_made_once() {
        let mut blocks = Blocks::new(4);
        let mut made = 0;
        for (key, length, expected) in [
            (1_u32, 10, 1),
            (1, 10, 1),
            (2, 64, 2),
            (2, 64, 2),
            (3, 65, 3),
            (3, 65, 3),
            (6, 128, 4),
            (6, 128, 4),
            // The place has been taken.
            (2, 64, 5),
            (4, 129, 6),
            (4, 129, 7),
            (0, 5, 8),
            (0, 5, 9),
        ] {
            let text = key.to_string().repeat(length);
            let mut json = Json::new(Vec::new());
            json.raw("before ");
            blocks.write(&mut json, key as usize, key, |json| {
                made += 1;
                json.raw(&text);
            });
            json.raw(" behind");
            assert_eq!(json.take(), format!("before {text} behind"));
            assert_eq!(made, expected, "{key}");
        }
    }
}
