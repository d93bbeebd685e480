//! Where encoded words go.

/// Takes the words of records, in order.
pub trait Sink {
    /// Takes a word.
    fn word(&mut self, word: u64);

    /// Takes bytes, padded with zeros to a whole word.
    fn bytes(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.word(u64::from_le_bytes(*chunk));
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

/// A sink of fixed size. What does not fit is not stored, and [`SliceSink::is_overrun`] says so.
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

    /// What was stored.
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
    #[inline]
    fn word(&mut self, word: u64) {
        if let Some(slot) = self.words.get_mut(self.length) {
            *slot = word;
        }
        self.length = self.length.saturating_add(1);
    }
}
