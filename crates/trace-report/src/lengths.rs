//! How many slices are how long, so that the longest of a large trace can be kept.

/// Parts of each power of two.
const PARTS: usize = 1 << BITS;
const BITS: u32 = 3;

/// Counts of lengths, each in a class from 1/8 of a power of two to the next.
#[derive(Debug)]
pub struct Lengths {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Lengths {
    fn default() -> Self {
        Self { counts: vec![0; 64 * PARTS], total: 0 }
    }
}

fn class(length: u64) -> usize {
    let Some(power) = length.checked_ilog2() else { return 0 };
    let parts = if power >= BITS { length >> (power - BITS) } else { length << (BITS - power) };
    power as usize * PARTS + parts as usize - PARTS
}

/// The least length of a class.
fn least(class: usize) -> u64 {
    let (power, part) = (class / PARTS, class % PARTS);
    let length = ((PARTS + part) as u128) << power;
    u64::try_from(length.div_ceil(PARTS as u128)).unwrap_or(u64::MAX)
}

impl Lengths {
    /// Counts a slice; one that has not ended has the greatest length.
    pub fn add(&mut self, length: u64) {
        self.counts[class(length)] += 1;
        self.total += 1;
    }

    /// Slices that are shorter are drawn together, so that at most so many are left; 0 if there are few.
    pub fn cut(&self, few: u64, most: u64) -> u64 {
        if self.total <= few {
            return 0;
        }
        let mut kept = 0;
        for (class, count) in self.counts.iter().enumerate().rev() {
            kept += count;
            if kept > most {
                return least(class + 1);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_lengths() {
        for length in (0..2000).chain([u64::MAX, 1 << 40, (1 << 40) - 1]) {
            let class = class(length);
            assert!(least(class) <= length || class == 0, "{length}");
            assert!(class + 1 == 64 * PARTS || least(class + 1) > length, "{length}");
        }
    }

    #[test]
    fn the_longest_are_kept() {
        let mut lengths = Lengths::default();
        (0..1000).for_each(|length| lengths.add(length));
        assert_eq!(lengths.cut(1000, 10), 0);
        let cut = lengths.cut(999, 200);
        // A class of 64 lengths is where the limit is.
        assert_eq!(cut, 832);
        assert!((0..1000).filter(|length| *length >= cut).count() <= 200);
        // Equal lengths are kept or folded together.
        let mut equal = Lengths::default();
        (0..50).for_each(|_| equal.add(7));
        assert_eq!(equal.cut(10, 20), 8);
    }
}
