//! Where records end in an archive that comes in pieces.

use std::io;
use trace_format::record::{RecordHeader, RecordType};

/// Records consist of words, and begin at multiples of their size.
const WORD: usize = 8;

/// Passes pieces of an archive on, cut at the ends of records.
#[derive(Debug, Default)]
pub struct WholeRecords {
    /// The beginning of a record whose end has not come.
    rest: Vec<u8>,
    /// Bytes of a large record that are still to come. It is passed on as it comes.
    large: u64,
}

impl WholeRecords {
    /// Passes on all whole records up to the end of the next bytes.
    pub fn pass(&mut self, bytes: &[u8], mut to: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut left = bytes;
        // At most the record that it belongs to, a few words at a time.
        while !self.rest.is_empty() && !left.is_empty() {
            let missing = match self.rest.first_chunk::<WORD>() {
                None => WORD - self.rest.len(),
                Some(word) => {
                    let (size, is_large) = size_of(*word);
                    if is_large { 0 } else { size as usize - self.rest.len() }
                }
            };
            let (part, behind) = left.split_at(missing.min(left.len()));
            self.rest.extend_from_slice(part);
            left = behind;
            if self.is_rest_whole() {
                let whole = std::mem::take(&mut self.rest);
                let whole_bytes = self.end_of(&whole);
                debug_assert_eq!(whole_bytes, whole.len());
                to(&whole)?;
            }
        }
        let whole = self.end_of(left);
        let (whole, rest) = left.split_at(whole);
        self.rest.extend_from_slice(rest);
        if whole.is_empty() { Ok(()) } else { to(whole) }
    }

    /// Whether the rest is a record, or the beginning of a large one.
    fn is_rest_whole(&self) -> bool {
        self.rest.first_chunk::<WORD>().is_some_and(|word| {
            let (size, is_large) = size_of(*word);
            is_large || self.rest.len() as u64 >= size
        })
    }

    /// How many of these bytes are whole records, or parts of a large one.
    fn end_of(&mut self, bytes: &[u8]) -> usize {
        let mut end = 0;
        loop {
            let rest = bytes.len() - end;
            let part = usize::try_from(self.large).unwrap_or(usize::MAX).min(rest);
            self.large -= part as u64;
            end += part;
            let Some(word) = bytes[end..].first_chunk::<WORD>().filter(|_| self.large == 0) else {
                return end;
            };
            match size_of(*word) {
                (size, true) => self.large = size,
                (size, false) if size <= (bytes.len() - end) as u64 => end += size as usize,
                (_, false) => return end,
            }
        }
    }

    /// What is no whole record.
    pub fn into_rest(self) -> Vec<u8> {
        self.rest
    }
}

/// The size of a record with this header in bytes, and whether it is large.
fn size_of(word: [u8; WORD]) -> (u64, bool) {
    let header = RecordHeader(u64::from_le_bytes(word));
    (header.size().bytes().max(WORD) as u64, header.record_type() == Some(RecordType::Large))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However an archive comes, all of it is passed on, cut only between records or in large ones.
    #[test]
    fn pieces_end_where_records_do() {
        let small = |words: u64| std::iter::once(4 | words << 4).chain(1..words);
        let large = |words: u64| std::iter::once(15 | words << 4).chain(1..words);
        let words = small(1).chain(small(5)).chain(large(6)).chain(small(2)).chain(large(1)).chain(small(9));
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let large = [(6 * WORD, 12 * WORD), (14 * WORD, 15 * WORD)];
        let ends = [1, 6, 12, 14, 15, 24].map(|words| words * WORD);
        for length in 1..=bytes.len() {
            let mut records = WholeRecords::default();
            let mut passed = Vec::new();
            for piece in bytes.chunks(length) {
                records
                    .pass(piece, |whole| {
                        passed.extend_from_slice(whole);
                        let end = passed.len();
                        let is_within = |(begin, last): &(usize, usize)| (*begin..*last).contains(&end);
                        assert!(ends.contains(&end) || large.iter().any(is_within), "{length}: {end}");
                        Ok(())
                    })
                    .unwrap();
            }
            assert_eq!(passed, bytes, "{length} at a time");
            assert!(records.into_rest().is_empty());
        }
    }
}
