//! The durable region: records of threads that allocate side by side, any of which may have been killed.
//!
//! Zeros are allocations that were not announced, placeholders are ones that were not completed. After
//! either, the next nonzero word is a header or a placeholder again.

use trace_format::buffer::Layout;
use trace_format::record::RecordHeader;

/// The placeholder's header apart from its size and length: an anonymous blob of raw data.
const PLACEHOLDER: u64 = 0x0001_0000_0000_0005;
const PLACEHOLDER_MASK: u64 = 0xffff_8000_ffff_000f;

/// The records of a durable region that were handed on already.
pub(super) struct Durable {
    /// One bit for each word of the region.
    seen: Vec<u64>,
    /// Every record before this was handed on.
    first_unread: u64,
}

impl Durable {
    pub fn new(layout: &Layout) -> Self {
        Self { seen: vec![0; (layout.durable_bytes / 8).div_ceil(64) as usize], first_unread: 0 }
    }

    /// Where to continue reading.
    pub fn first_unread(&self) -> u64 {
        self.first_unread
    }

    /// The committed records that were not returned before, with their offsets in the region. `bytes` are
    /// those from `start` on.
    pub fn fresh_records<'a>(&mut self, start: u64, bytes: &'a [u8]) -> Vec<(u64, &'a [u8])> {
        let mut records = Vec::new();
        let mut offset = 0;
        while let Some(header) = header_at(bytes, offset) {
            let size = header.size().bytes();
            if header.0 == 0 {
                offset = behind_zeros(bytes, offset);
                continue;
            }
            let Some(record) = bytes.get(offset..offset + size).filter(|_| size > 0) else {
                // An impossible size: the position is lost.
                return records;
            };
            let place = start + offset as u64;
            let (word, bit) = ((place / 8 / 64) as usize, place / 8 % 64);
            if !is_placeholder(header) {
                if self.seen[word] & 1 << bit == 0 {
                    self.seen[word] |= 1 << bit;
                    records.push((place, record));
                }
                if self.first_unread == place {
                    self.first_unread += size as u64;
                }
            }
            offset += size;
        }
        records
    }
}

fn header_at(region: &[u8], offset: usize) -> Option<RecordHeader> {
    Some(RecordHeader(u64::from_le_bytes(*region.get(offset..)?.first_chunk::<8>()?)))
}

/// A word of zeros stands at this offset: where the next that is something else may stand. What was not used
/// of a region is long.
fn behind_zeros(region: &[u8], mut offset: usize) -> usize {
    const MANY: usize = 256;
    offset += 8;
    while region.get(offset..offset + MANY).is_some_and(|words| *words == [0; MANY]) {
        offset += MANY;
    }
    offset
}

fn is_placeholder(header: RecordHeader) -> bool {
    header.0 & PLACEHOLDER_MASK == PLACEHOLDER
}

/// Copies the first copy's header over each record that was not committed in it, so that a payload is only
/// trusted if its header was there before the payload was copied.
pub(super) fn keep_committed(first: &[u8], second: &mut [u8]) {
    let mut offset = 0;
    while let (Some(earlier), Some(later)) = (header_at(first, offset), header_at(second, offset)) {
        let size = later.size().bytes();
        if later.0 == 0 {
            offset = behind_zeros(second, offset);
            continue;
        }
        if size == 0 {
            offset += 8;
            continue;
        }
        if is_placeholder(earlier) || earlier.0 == 0 {
            // Step over it by its size in the second copy, but do not trust its payload yet.
            let hidden = PLACEHOLDER | (size as u64 / 8) << 4 | (size as u64 - 8) << 32;
            second[offset..offset + 8].copy_from_slice(&hidden.to_le_bytes());
        }
        offset += size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bytes;
    use trace_format::buffer::BufferMode;

    /// A record of one word, and one of two.
    const ONE: u64 = 0x0001_0012;
    const TWO: [u64; 2] = [0x0001_0022, 7];

    fn placeholder(words: u64) -> u64 {
        PLACEHOLDER | words << 4 | (words * 8 - 8) << 32
    }

    //= docs/buffer.md#durable-region
    #[test]
    fn records_come_once_and_all_before_the_first_hole_are_read() {
        let mut durable = Durable::new(&Layout::new(64 << 10, BufferMode::Oneshot).unwrap());
        let mut fresh = |start: u64, words: &[u64]| {
            let bytes = bytes(words);
            let records = durable.fresh_records(start, &bytes);
            let places: Vec<_> = records.iter().map(|(place, record)| (*place, record.len())).collect();
            (places, durable.first_unread())
        };
        let ones = |range: std::ops::Range<u64>| range.map(|word| (8 * word, 8)).collect::<Vec<_>>();
        assert_eq!(fresh(0, &[ONE; 100]), (ones(0..100), 800));
        assert_eq!(fresh(400, &[ONE; 150]), (ones(100..200), 1600));
        // A hole, a placeholder, and more zeros than are compared at once.
        let holes = [&[0, placeholder(2), 0][..], &TWO, &[0; 80], &[ONE]].concat();
        assert_eq!(fresh(1600, &holes), (vec![(1624, 16), (1600 + 85 * 8, 8)], 1600));
        assert_eq!(fresh(1600, &[&[ONE][..], &TWO, &TWO].concat()), (vec![(1600, 8), (1608, 16)], 1640));
        // A size that is impossible, at the beginning or the end.
        assert_eq!(fresh(1640, &[0x2, ONE]), (vec![], 1640));
        assert_eq!(fresh(1640, &[ONE, TWO[0]]), (vec![(1640, 8)], 1648));
    }

    //= docs/buffer.md#reading
    #[test]
    fn records_are_hidden_unless_their_header_is_in_the_first_copy() {
        let keep = |first: &[u64], second: &[u64]| {
            let mut copy = bytes(second);
            keep_committed(&bytes(first), &mut copy);
            copy.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()
        };
        let first = [ONE, 0, 0, placeholder(2), 0, TWO[0], 1, 0, 0];
        let second = [&[ONE][..], &TWO, &TWO, &TWO, &[0, ONE]].concat();
        let hidden = [placeholder(2), 7];
        let expected = [&[ONE][..], &hidden, &hidden, &TWO, &[0, placeholder(1)]].concat();
        assert_eq!(keep(&first, &second), expected);
        assert_eq!(keep(&[ONE, 0], &[0x2, ONE]), [0x2, placeholder(1)]);
    }
}
