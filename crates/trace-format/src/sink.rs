//! Destinations of encoded words.

/// Takes the words of records, in order.
pub trait Sink {
    /// Takes a word.
    fn word(&mut self, word: u64);

    /// Takes bytes, padded with zeros to a whole word.
    //= docs/format.md#words-and-streams
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((word, behind)) = rest.split_first_chunk() {
            self.word(u64::from_le_bytes(*word));
            rest = behind;
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            for (to, from) in last.iter_mut().zip(rest) {
                *to = *from;
            }
            self.word(u64::from_le_bytes(last));
        }
    }
}

/// A sink of fixed size. Words that do not fit are not stored, and [`SliceSink::is_overrun`] reports that.
#[derive(Debug)]
pub struct SliceSink<'a> {
    words: &'a mut [u64],
    length: usize,
}

impl<'a> SliceSink<'a> {
    /// Fills a slice from its beginning.
    #[must_use]
    pub const fn new(words: &'a mut [u64]) -> Self {
        Self { words, length: 0 }
    }

    /// The stored words.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.words.get(..self.length).unwrap_or(self.words)
    }

    /// More was written than fits.
    #[must_use]
    pub const fn is_overrun(&self) -> bool {
        self.length > self.words.len()
    }
}

impl Sink for SliceSink<'_> {
    #[inline(always)]
    fn word(&mut self, word: u64) {
        if let Some(slot) = self.words.get_mut(self.length) {
            *slot = word;
        }
        self.length = self.length.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    //= docs/format.md#words-and-streams
    fn bytes_are_padded_with_zeros_to_a_word() {
        for (length, words) in [(0, 0), (1, 1), (7, 1), (8, 1), (9, 2), (15, 2), (16, 2)] {
            let mut room = [u64::MAX; 3];
            let mut sink = SliceSink::new(&mut room);
            sink.bytes(&[0x61; 16][..length]);
            let mut expected = [0; 16];
            expected[..length].fill(0x61);
            assert_eq!(sink.words().len(), words, "{length} bytes");
            for (word, bytes) in sink.words().iter().zip(expected.chunks(8)) {
                assert_eq!(word.to_le_bytes(), bytes, "{length} bytes");
            }
            assert_eq!(room[words..], [u64::MAX; 3][words..], "{length} bytes");
        }
    }

    #[test]
    fn what_does_not_fit_is_noticed() {
        let mut room = [0; 2];
        let mut sink = SliceSink::new(&mut room);
        sink.word(1);
        sink.word(2);
        assert!(!sink.is_overrun());
        sink.word(3);
        assert!(sink.is_overrun());
        assert_eq!(sink.words(), [1, 2]);
    }
}
