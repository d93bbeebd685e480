//! An archive that is cut where the next record would make it too large.

use trace_format::record::RecordHeader;

/// Headers of records are words, and stand at their multiples.
const WORD: usize = 8;

/// Lets through what an archive of a limited size has room for, in whole records, and counts the rest.
#[derive(Debug)]
pub struct Limited {
    limit: u64,
    /// Bytes that came before what is looked at.
    position: u64,
    /// Where the next record begins.
    next: u64,
    /// What is less than a word at the end of what came.
    rest: Vec<u8>,
    /// Where it was cut.
    cut: Option<u64>,
    left_out: LeftOut,
}

/// What was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Limited {
    /// An archive of so many bytes at most.
    pub fn new(limit: u64) -> Self {
        Self { limit, position: 0, next: 0, rest: Vec::new(), cut: None, left_out: LeftOut::default() }
    }

    /// What of the next bytes is to be written.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut words = std::mem::take(&mut self.rest);
        words.extend_from_slice(bytes);
        self.rest = words.split_off(words.len() / WORD * WORD);
        let end = self.position + words.len() as u64;
        while let Some(header) = self.next.checked_sub(self.position).filter(|_| self.next < end) {
            let header = header as usize;
            let header = words[header..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            let size = RecordHeader(header).size().bytes().max(WORD) as u64;
            if self.cut.is_none() && self.next + size > self.limit {
                self.cut = Some(self.next);
            }
            if self.cut.is_some() {
                self.left_out.records += 1;
            }
            self.next += size;
        }
        let kept = self.cut.map_or(end, |cut| cut.clamp(self.position, end));
        self.left_out.bytes += end - kept;
        words.truncate((kept - self.position) as usize);
        self.position = end;
        words
    }

    /// What was left out so far.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of so many words, one behind the other.
    fn records(words: &[u64]) -> Vec<u8> {
        let record = |words: &u64| {
            let mut bytes = vec![7; *words as usize * WORD];
            bytes[..WORD].copy_from_slice(&(4 | words << 4).to_le_bytes());
            bytes
        };
        words.iter().flat_map(record).collect()
    }

    //= docs/recording.md#how-a-recording-ends
    #[test]
    fn it_is_cut_at_a_whole_record_however_it_comes() {
        let bytes = records(&[2, 3, 5, 1, 4]);
        for (limit, kept, records) in [
            (0, 0, 5),
            (15, 0, 5),
            (16, 16, 4),
            (79, 40, 3),
            (80, 80, 2),
            (88, 88, 1),
            (119, 88, 1),
            (120, 120, 0),
        ] {
            for piece in [1, 3, 8, 24, 120] {
                let mut limited = Limited::new(limit);
                let written: Vec<u8> = bytes.chunks(piece).flat_map(|piece| limited.take(piece)).collect();
                assert_eq!(written, bytes[..kept], "{limit} bytes, {piece} at a time");
                let left_out = LeftOut { records, bytes: (bytes.len() - kept) as u64 };
                assert_eq!(limited.left_out(), left_out, "{limit} bytes, {piece} at a time");
            }
        }
    }
}
